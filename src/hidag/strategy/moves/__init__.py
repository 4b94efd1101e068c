"""Moves between local optima of Stage I: levels, splits, row search."""
