"""Moves that lead a fit out of a local optimum: hops, splits, recombination, row search."""
