"""Explain: what people do with a fit: how sure it is, whether it fits, who is where, what if."""
