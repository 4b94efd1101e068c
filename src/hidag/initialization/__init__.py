"""Where Stage I begins, how often, and under which law."""
