"""An independent plain EM for items of any family with a given Q, and tables to hold fits against.

It shares no code with the library: textbook densities of the values by cell, Newton steps from
finite differences, random starts of several kinds, no acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import special as sp

try:
    from .plain_em import all_states, item_designs, random_q
except ImportError:  # a benchmark, with this folder on the path
    from plain_em import all_states, item_designs, random_q

#: Step of the finite differences, and iterations of the short runs and of a run at most.
STEP, SHORT_STEPS, MAX_STEPS = 1e-4, 60, 3000
#: Largest absolute predictor of items with a log or probability link.
BOUND = 25.0


def _log_expit(v):
    return -np.logaddexp(0.0, -v)


def _gaussian(x, eta, a):
    return -0.5 * ((x - eta) ** 2 * np.exp(-a[0]) + a[0] + np.log(2 * np.pi))


def _negative_binomial(x, eta, a):
    r = np.exp(-a[0])
    size = sp.gammaln(x + r) - sp.gammaln(r) - sp.gammaln(x + 1)
    return (
        size - r * np.logaddexp(0.0, eta + a[0]) + x * (eta + a[0] - np.logaddexp(0.0, eta + a[0]))
    )


def _poisson(x, eta, a):
    return x * eta - np.exp(eta) - sp.gammaln(x + 1)


def _zero_inflated(x, eta, a):
    counts = _log_expit(-a[0]) + _poisson(x, eta, a)
    return np.where(x == 0, np.logaddexp(_log_expit(a[0]), counts), counts)


def _beta(x, eta, a):
    p, q = sp.expit(eta) * np.exp(-a[0]), sp.expit(-eta) * np.exp(-a[0])
    return (p - 1) * np.log(x) + (q - 1) * np.log1p(-x) - sp.betaln(p, q)


def _gamma(x, eta, a):
    k = np.exp(-a[0])
    return k * (np.log(k) - eta - x * np.exp(-eta)) - sp.gammaln(k) + (k - 1) * np.log(x)


def _graded(x, eta, a):
    cuts = np.concatenate([[-np.inf, 0.0], np.cumsum(np.exp(a)), [np.inf]])
    x = x.astype(int)
    low, high = eta - cuts[x], eta - cuts[x + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = _log_expit(low) + _log_expit(-high) + np.log(-np.expm1(high - low))
    ends = np.where(x == 0, _log_expit(-high), _log_expit(low))
    return np.where((x == 0) | (x == len(a) + 1), ends, inner)


def _binomial(n):
    def log_density(x, eta, a):
        ways = sp.gammaln(n + 1) - sp.gammaln(x + 1) - sp.gammaln(n - x + 1)
        return ways + x * eta - n * np.logaddexp(0.0, eta)

    return log_density


def _cloglog(x, eta, a):
    rate = np.exp(eta)
    return np.where(x == 1, np.log(-np.expm1(-rate)), -rate)


@dataclass(frozen=True)
class Kind:
    """A family: log density of values (V, 1) at predictors (1, C), and how to start."""

    log_density: object
    link: object  # from a mean to a predictor
    aux: tuple[float, ...] = ()  # first values of the unbounded other parameters
    low: float = -np.inf
    high: float = np.inf
    bound: float = BOUND


def _logit_of(scale):
    return lambda m: sp.logit(np.clip(m / scale, 0.02, 0.98))


def _log(m):
    return np.log(np.maximum(m, 0.05))


def kind_of(name):
    """Return the kind of a family of the library."""
    base, _, rest = name.partition("(")
    number = int(rest.rstrip(")").split("..")[-1]) if rest and base != "categorical" else 0
    if base == "ordinal":
        return Kind(_graded, lambda m: 2 * (m - (number - 1) / 2), (0.0,) * (number - 2), -7.0, 3.6)
    return {
        "bernoulli": Kind(_binomial(1), _logit_of(1)),
        "binomial": Kind(_binomial(number), _logit_of(number)),
        "bernoulli-probit": Kind(
            lambda x, e, a: sp.log_ndtr(np.where(x == 1, e, -e)),
            lambda m: sp.ndtri(np.clip(m, 0.02, 0.98)),
            bound=8.0,
        ),
        "bernoulli-cloglog": Kind(
            _cloglog, lambda m: np.log(-np.log1p(-np.clip(m, 0.02, 0.98))), bound=6.0
        ),
        "poisson": Kind(_poisson, _log),
        "negative-binomial": Kind(_negative_binomial, _log, (0.0,), np.log(1e-5), 9.0),
        "zero-inflated-poisson": Kind(_zero_inflated, _log, (-1.0,), sp.logit(1e-6), 13.0),
        "gaussian": Kind(_gaussian, lambda m: m, (0.0,), bound=np.inf),
        "lognormal": Kind(
            lambda x, e, a: _gaussian(np.log(x), e, a) - np.log(x), _log, (0.0,), bound=np.inf
        ),
        "gamma": Kind(_gamma, _log, (0.0,), np.log(1e-6), 6.0),
        "beta": Kind(_beta, _logit_of(1), (-1.0,), np.log(1e-8), 6.0),
    }[base]


def expand_nominal(X, families):
    """Return columns and families with a binary column for each category but the last.

    Categories are asked for from the most to the least frequent.
    """
    columns, names, items = [], [], []
    for j, name in enumerate(families):
        x = X[:, j]
        if not name.startswith("categorical"):
            columns, names, items = [*columns, x], [*names, name], [*items, j]
            continue
        values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
        open_rows = ~np.isnan(x)
        for value in values[np.lexsort((values, -counts))][:-1]:
            columns.append(np.where(open_rows, x == value, np.nan))
            names, items = [*names, "bernoulli"], [*items, j]
            open_rows = open_rows & (x != value)
    return np.column_stack(columns), names, np.array(items)


@dataclass
class Item:
    """One column: its values, the cells of the states, and its parameters."""

    kind: Kind
    values: np.ndarray  # (V,): distinct values
    place: np.ndarray  # (N,): position of each row's value, V if missing
    rows: np.ndarray  # (C, P): design of the cells
    member: np.ndarray  # (S,): cell of each state
    order: np.ndarray  # (C,): cells by height
    gaussian: bool
    beta: np.ndarray = field(default=None)
    aux: np.ndarray = field(default=None)

    def table(self, beta=None, aux=None):
        beta, aux = self.beta if beta is None else beta, self.aux if aux is None else aux
        return self.kind.log_density(self.values[:, None], (self.rows @ beta)[None], aux)

    def start(self, centre, spread, sign, rng):
        """Draw ordered predictors between two means of the responses."""
        heights = np.sort(rng.uniform(-1.6, 1.6, len(self.order)))
        eta = np.empty(len(self.order))
        eta[self.order] = self.kind.link(centre + sign * spread * heights)
        self.beta = np.linalg.lstsq(self.rows, eta, rcond=None)[0]
        self.aux = np.array(self.kind.aux)
        if self.gaussian:
            self.aux = np.array([np.log(0.7 * self.variance)])

    @property
    def variance(self):
        x = np.log(self.values) if self.logged else self.values
        n = np.bincount(self.place, minlength=len(x) + 1)[:-1]
        return np.average((x - np.average(x, weights=n)) ** 2, weights=n)

    @property
    def logged(self):
        return self.kind.link is _log and self.gaussian

    def maximise(self, weights, n_steps=2):
        """Improve the expected log-likelihood given weights of values by cell, (V, C)."""
        if self.gaussian:
            x = np.log(self.values) if self.logged else self.values
            n, total = weights.sum(axis=0), x @ weights
            bend = (self.rows * n[:, None]).T @ self.rows
            bend += 1e-9 * np.trace(bend) / len(bend) * np.eye(len(bend))
            self.beta = np.linalg.solve(bend, self.rows.T @ total)
            rest = weights * (x[:, None] - self.rows @ self.beta) ** 2
            least = 1e-4 * self.variance
            self.aux = np.array([np.log(max(rest.sum() / n.sum(), least))])
            return
        for _ in range(n_steps):
            self._newton(weights)

    def _newton(self, weights):
        eta, a, h = (self.rows @ self.beta)[None], self.aux, STEP
        x, f, n_aux = self.values[:, None], self.kind.log_density, len(self.aux)
        unit = h * np.eye(n_aux)

        def total(e, b):
            return np.einsum("vc,vc->c", weights, np.nan_to_num(f(x, e, b), neginf=-1e10))

        now, up, down = total(eta, a), total(eta + h, a), total(eta - h, a)
        size = self.rows.shape[1]
        slope, bend = np.zeros(size + n_aux), np.zeros((size + n_aux,) * 2)
        slope[:size] = self.rows.T @ ((up - down) / (2 * h))
        bend[:size, :size] = (self.rows * ((up - 2 * now + down) / h**2)[:, None]).T @ self.rows
        for i in range(n_aux):
            more, less = total(eta, a + unit[i]), total(eta, a - unit[i])
            slope[size + i] = (more - less).sum() / (2 * h)
            bend[size + i, size + i] = (more - 2 * now + less).sum() / h**2
            cross = total(eta + h, a + unit[i]) - total(eta + h, a - unit[i])
            cross = cross - total(eta - h, a + unit[i]) + total(eta - h, a - unit[i])
            bend[:size, size + i] = bend[size + i, :size] = self.rows.T @ (cross / (4 * h**2))
            for k in range(i):
                mixed = total(eta, a + unit[i] + unit[k]) - total(eta, a + unit[i] - unit[k])
                mixed = mixed - total(eta, a - unit[i] + unit[k])
                mixed = (mixed + total(eta, a - unit[i] - unit[k])).sum() / (4 * h**2)
                bend[size + i, size + k] = bend[size + k, size + i] = mixed
        values, vectors = np.linalg.eigh(-bend)
        least = max(1e-7 * np.abs(values).max(), 1e-8)
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), least))
        before = now.sum()
        for _ in range(14):
            beta = self.beta + step[:size]
            aux = np.clip(a + step[size:], self.kind.low, self.kind.high)
            inside = np.abs(self.rows @ beta).max() < self.kind.bound
            if inside and total((self.rows @ beta)[None], aux).sum() >= before:
                self.beta, self.aux = beta, aux
                return
            step = step * 0.4


def items_of(X, q, levels, effects, families):
    """Return the items of a table, one for each column of nested binary responses."""
    columns, names, places = expand_nominal(X, families)
    designs = item_designs(np.asarray(q)[places], levels, effects)
    items = []
    for x, name, (rows, member, order) in zip(columns.T, names, designs, strict=True):
        seen = ~np.isnan(x)
        values = np.unique(x[seen])
        place = np.full(len(x), len(values))
        place[seen] = np.searchsorted(values, x[seen])
        if name.startswith("ordinal("):
            values = values - (int(name[8:].split("..")[0]) if ".." in name else 0)
            top = name[8:-1].split("..")
            n = int(top[0]) if len(top) == 1 else int(top[1]) - int(top[0]) + 1
            name = f"ordinal({n})"
        gaussian = name in ("gaussian", "lognormal")
        items.append(Item(kind_of(name), values, place, rows, member, order, gaussian))
    return columns, items


def _factorise(counts, levels, parents):
    cube, out = counts.reshape(levels), np.ones(levels)
    for k, own in enumerate(parents):
        keep = (k, *own)
        joint = cube.sum(axis=tuple(i for i in range(len(levels)) if i not in keep), keepdims=True)
        out = out * joint / np.maximum(joint.sum(axis=k, keepdims=True), 1e-300)
    return out.ravel()


class PlainEM:
    """Plain EM for one table and model; ``parents`` of each latent give a network law."""

    def __init__(self, X, q, levels, effects, families, weights=None, parents=None):
        self.columns, self.items = items_of(X, q, levels, effects, families)
        self.levels, self.parents = tuple(levels), parents
        self.n_states = len(all_states(levels))
        self.weights = np.ones(len(X)) if weights is None else weights
        centred = self.columns - np.nanmean(self.columns, axis=0)
        self.sd = np.maximum(np.nanstd(self.columns, axis=0), 1e-9)
        self.z = np.nan_to_num(centred / self.sd)
        axis = np.linalg.svd(self.z, full_matrices=False)[2][0] + 1e-12
        # A conjunctive model with all items reversed is the other one with reversed levels.
        self.signs = np.sign(axis * axis.sum())

    def _law(self, counts):
        shares = counts / counts.sum()
        if self.parents is None:
            return np.maximum(shares, 1e-300)
        return np.maximum(_factorise(shares, self.levels, self.parents), 1e-300)

    def start(self, seed):
        """Draw a start: ordered cells, signs of the first principal axis, or rows as centres."""
        rng = np.random.default_rng(seed)
        signs = np.ones(len(self.items)) if seed % 3 == 0 else self.signs
        if seed % 3 == 2:
            signs = signs * rng.choice([-1, 1], len(signs), p=[0.2, 0.8])
        for j, item in enumerate(self.items):
            item.start(np.nanmean(self.columns[:, j]), self.sd[j], signs[j], rng)
        self.law = self._law(rng.dirichlet(np.full(self.n_states, 2.0)))

    def run(self, gain, max_steps):
        """Run EM; return the log-likelihood."""
        last, small = -np.inf, 0
        for _ in range(max_steps):
            joint = np.tile(np.log(self.law), (len(self.weights), 1))
            for item in self.items:
                table = np.vstack([item.table(), np.zeros(len(item.rows))])
                joint += table[:, item.member][item.place]
            top = joint.max(axis=1, keepdims=True)
            posterior = np.exp(joint - top)
            mass = posterior.sum(axis=1, keepdims=True)
            value = float(self.weights @ (np.log(mass) + top)[:, 0])
            small = small + 1 if value - last < gain else 0
            if small > 2:
                break
            last = value
            posterior *= self.weights[:, None] / mass
            for item in self.items:
                n_cells = len(item.rows)
                cells = posterior @ np.eye(n_cells)[item.member]
                n_values = len(item.values) + 1
                by_value = np.stack(
                    [np.bincount(item.place, cells[:, c], n_values) for c in range(n_cells)], axis=1
                )
                item.maximise(by_value[:-1])
            self.law = self._law(posterior.sum(axis=0))
        return last

    def best(self, n_starts, *, n_long=4, gain=1e-5):
        """Return the best log-likelihood: short runs of all starts, the best ones to the end."""
        ends = []
        for seed in range(n_starts):
            self.start(seed)
            value = self.run(1e-2, SHORT_STEPS)
            ends.append((value, seed, [(i.beta, i.aux) for i in self.items], self.law))
        out = []
        for _, _, own, law in sorted(ends, key=lambda e: -e[0])[:n_long]:
            for item, (beta, aux) in zip(self.items, own, strict=True):
                item.beta, item.aux = beta, aux
            self.law = law
            out.append(self.run(gain, MAX_STEPS))
        return max(out)


@dataclass(frozen=True)
class MixedTable:
    """A table of any families with its Q-matrix, levels of the latents and row weights."""

    X: np.ndarray
    q: np.ndarray
    levels: tuple[int, ...]
    families: tuple[str, ...]
    weights: np.ndarray | None = None


def _draw(name, height, rng):
    """Draw responses at heights in [0, 1]."""
    base = name.partition("(")[0]
    eta = 3.0 * height - 1.5
    if base == "ordinal":
        grades = int(name[8:-1])
        cuts = np.linspace(-1.5, 1.5, grades - 1)
        return (sp.logit(rng.uniform(1e-9, 1, eta.shape)) + 1.4 * eta > cuts[:, None]).sum(0) * 1.0
    if base == "categorical":
        scores = np.outer(eta, rng.standard_normal(int(name[12:-1]))) + rng.gumbel(
            size=(len(eta), int(name[12:-1]))
        )
        return scores.argmax(axis=1) * 1.0
    return {
        "bernoulli": lambda: rng.random(eta.shape) < sp.expit(eta),
        "bernoulli-probit": lambda: rng.random(eta.shape) < sp.ndtr(0.7 * eta),
        "bernoulli-cloglog": lambda: rng.random(eta.shape) < -np.expm1(-np.exp(eta - 0.5)),
        "binomial": lambda: rng.binomial(6, sp.expit(0.6 * eta)),
        "poisson": lambda: rng.poisson(np.exp(0.5 * eta + 0.7)),
        "poisson-identity": lambda: rng.poisson(1 + 2 * height),
        "negative-binomial": lambda: rng.negative_binomial(
            2, 1 / (1 + 0.5 * np.exp(0.6 * eta + 1))
        ),
        "zero-inflated-poisson": lambda: (
            rng.poisson(np.exp(0.5 * eta + 1)) * (rng.random(eta.shape) > 0.25)
        ),
        "gaussian": lambda: 0.6 * eta + rng.standard_normal(eta.shape),
        "lognormal": lambda: np.exp(0.5 * (0.6 * eta + rng.standard_normal(eta.shape))),
        "gamma": lambda: rng.gamma(2.0, 0.5 * np.exp(0.5 * eta)),
        "beta": lambda: np.clip(
            rng.beta(4 * sp.expit(0.6 * eta), 4 * sp.expit(-0.6 * eta)), 1e-4, 1 - 1e-4
        ),
    }[base]().astype(float)


def draw_mixed(
    seed, families, *, n_rows=500, n_items=10, levels=(2, 2, 2), missing=0.0, weighted=False
):
    """Return a table whose items take turns in the families; effects of latents are random."""
    rng = np.random.default_rng(seed)
    n_latents = len(levels)
    q = random_q(n_items, n_latents, rng)
    trait = 0.8 * rng.standard_normal((n_rows, 1)) + rng.standard_normal((n_rows, n_latents))
    states = np.column_stack(
        [
            np.digitize(trait[:, k], np.quantile(trait[:, k], np.arange(1, m) / m))
            for k, m in enumerate(levels)
        ]
    )
    share = states / (np.array(levels) - 1.0)
    names = tuple(families[j % len(families)] for j in range(n_items))
    columns = []
    for j, name in enumerate(names):
        effect = q[j] * rng.uniform(0.4, 1.0, n_latents)
        height = share @ effect / effect.sum()
        if rng.random() < 0.3:
            height = share[:, q[j] == 1].min(axis=1)
        columns.append(_draw(name, height, rng))
    X = np.column_stack(columns)
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(1, 4, n_rows).astype(float) if weighted else None
    return MixedTable(X, q, tuple(levels), names, weights)
