"""Moves between local optima of Stage I: recombination, basin hopping, splits, row search."""
