"""How many latents there are, when nobody says it: correlations count, a few fits settle it."""
