"""Reference implementation of BDeu and BIC in Python, cell by cell."""

from __future__ import annotations

import math
from collections import defaultdict

from hidag.structure.scores import CountBasedScore


class ReferenceScore(CountBasedScore):
    """BDeu or BIC by the formulas; parameters as of CountScore."""

    def local(self, node: int, parents: tuple[int, ...]) -> float:
        cells: dict[tuple[int, ...], dict[int, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for state, weight in zip(self.counts.states, self.counts.weights, strict=True):
            if weight > 0:
                cells[tuple(int(state[k]) for k in parents)][int(state[node])].append(float(weight))
        r = self.counts.levels[node]
        q = math.prod(self.counts.levels[k] for k in parents)
        terms: list[float] = []
        for of_node in cells.values():
            n_jk = [math.fsum(weights) for weights in of_node.values()]
            n_j = math.fsum(n_jk)
            if self.kind == "bdeu":
                a_j = self.equivalent_sample_size / q
                a_jk = self.equivalent_sample_size / (q * r)
                terms.append(math.lgamma(a_j) - math.lgamma(a_j + n_j))
                terms.extend(math.lgamma(a_jk + n) - math.lgamma(a_jk) for n in n_jk)
            else:
                terms.extend(n * math.log(n / n_j) for n in n_jk)
        if self.kind == "bic":
            terms.append(-0.5 * math.log(self._total) * q * (r - 1))
        return math.fsum(terms)
