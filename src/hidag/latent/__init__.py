"""Latents: state space, laws, counts."""

from hidag.latent.counts import LatentCounts
from hidag.latent.laws import LatentLaw, NetworkLaw, SaturatedLaw
from hidag.latent.state_space import StateSpace

__all__ = ["LatentCounts", "LatentLaw", "NetworkLaw", "SaturatedLaw", "StateSpace"]
