"""Stage I over listed joint states: E-step, M-step, EM, SAEM, support selection, posteriors."""
