"""What a Q-matrix or a fit allows to be identified: the conditions of the paper, one by one."""

from hidag.identify.blocks import Blocks
from hidag.identify.certificate import Certificate, check_identifiability
from hidag.identify.findings import Finding
from hidag.identify.fit_certificate import certify_fit
from hidag.identify.information import InformationRank, information_rank

__all__ = [
    "Blocks",
    "Certificate",
    "Finding",
    "InformationRank",
    "certify_fit",
    "check_identifiability",
    "information_rank",
]
