"""What a Q-matrix or a fit allows to be identified: the conditions of the paper, one by one."""

from hidag.identifiability.blocks import Blocks
from hidag.identifiability.certificate import Certificate, check_identifiability
from hidag.identifiability.findings import Finding
from hidag.identifiability.fit_certificate import certify_fit
from hidag.identifiability.information import InformationRank, information_rank

__all__ = [
    "Blocks",
    "Certificate",
    "Finding",
    "InformationRank",
    "certify_fit",
    "check_identifiability",
    "information_rank",
]
