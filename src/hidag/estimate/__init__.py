"""Stage I: statistics, E-steps, the M-step, the loops, the choice of loadings."""
