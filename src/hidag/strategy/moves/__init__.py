"""Moves between local optima of Stage I: basin hopping, levels, splits, row search."""
