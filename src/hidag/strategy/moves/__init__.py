"""Moves between local optima of Stage I: unpenalised steps, levels, splits, row search."""
