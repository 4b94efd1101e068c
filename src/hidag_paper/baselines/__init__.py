"""Baselines: other methods for the same data, for comparison in the studies."""

from collections.abc import Mapping
from types import MappingProxyType

from hidag_paper.baselines.baseline import Baseline, BaselineResult
from hidag_paper.baselines.factor_ges import FACTOR_GES
from hidag_paper.baselines.latent_class import LATENT_CLASS
from hidag_paper.baselines.mixture_oracle import MIXTURE_ORACLE
from hidag_paper.baselines.research_code import PRINTED, RESEARCH_CODE

BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        baseline.name: baseline
        for baseline in (MIXTURE_ORACLE, LATENT_CLASS, FACTOR_GES, RESEARCH_CODE, PRINTED)
    }
)

__all__ = ["BASELINES", "Baseline", "BaselineResult"]
