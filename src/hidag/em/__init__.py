"""Penalised EM and SAEM over listed joint states: E-step, M-step, support, posteriors."""
