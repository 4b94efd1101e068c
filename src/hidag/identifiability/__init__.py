"""Identifiability: the conditions of the paper's theorems, checked for a Q-matrix or a fit."""

from hidag.identifiability.blocks import Blocks
from hidag.identifiability.certificate import Certificate, check_identifiability
from hidag.identifiability.design import Finding
from hidag.identifiability.information import InformationRank, ResponseModel, information_rank

__all__ = [
    "Blocks", "Certificate", "Finding", "InformationRank", "ResponseModel", "check_identifiability",
    "information_rank",
]  # fmt: skip
