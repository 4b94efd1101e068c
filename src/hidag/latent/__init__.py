"""Latents: state space, laws, counts."""

from hidag.latent.counts import LatentCounts, expected_counts, resample, resampled_rows
from hidag.latent.laws import LatentLaw, NetworkLaw, Parents, SaturatedLaw
from hidag.latent.state_space import StateSpace

__all__ = [
    "LatentCounts",
    "LatentLaw",
    "NetworkLaw",
    "Parents",
    "SaturatedLaw",
    "StateSpace",
    "expected_counts",
    "resample",
    "resampled_rows",
]
