"""hidag: hidden discrete causes in a table of mixed responses, and the causal graph among them."""
