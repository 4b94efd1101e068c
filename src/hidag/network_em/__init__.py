"""EM and SAEM with a network as latent distribution when joint states are too many to list."""
