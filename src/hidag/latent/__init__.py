"""Latent variables: state space, distributions and counts."""

from hidag.latent.counts import LatentCounts, expected_counts, resample, resample_size
from hidag.latent.laws import LatentLaw, NetworkLaw, Parents, SaturatedLaw
from hidag.latent.state_space import StateSpace

__all__ = [
    "LatentCounts", "LatentLaw", "NetworkLaw", "Parents", "SaturatedLaw", "StateSpace",
    "expected_counts", "resample", "resample_size",
]  # fmt: skip
