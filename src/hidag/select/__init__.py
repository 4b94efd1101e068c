"""Select: how many latents, chosen from the data."""
