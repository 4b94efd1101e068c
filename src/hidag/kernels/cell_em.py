"""EM for binary items whose predictors depend on few cells of the latents' levels.

A cell of an item is a set of states with the same values of its terms. All loops over rows, items
and states are compiled: with some hundred rows and a few dozen states, array calls would cost many
times what the sums do.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Groups multiplied between two rescalings of a row, and items of a group at most, so that products
#: of probabilities of at least 1e-12 stay in range.
GROUPS_PER_SCALING, MOST_GROUPED = 2, 8


@njit(cache=True, nogil=True)
def _group_tables(beta, cell, n_cells, design, smallest, items, patterns, n_patterns, tables):
    """Write the probability of patterns of answers (2: missing) by group and state, (G, M, S)."""
    n_states = cell.shape[1]
    chance = np.empty(design.shape[1])
    success, failure = np.empty(n_states), np.empty(n_states)
    for g in range(items.size - 1):
        tables[g, : n_patterns[g]] = 1.0
        for place in range(items[g + 1] - items[g]):
            j = items[g] + place
            for c in range(n_cells[j]):
                eta = 0.0
                for p in range(design.shape[2]):
                    eta += design[j, c, p] * beta[j, p]
                chance[c] = min(max(1.0 / (1.0 + math.exp(-eta)), smallest), 1.0 - smallest)
            for s in range(n_states):
                success[s] = chance[cell[j, s]]
                failure[s] = 1.0 - success[s]
            for m in range(n_patterns[g]):
                if patterns[g, m, place] == 1:
                    for s in range(n_states):
                        tables[g, m, s] *= success[s]
                elif patterns[g, m, place] == 0:
                    for s in range(n_states):
                        tables[g, m, s] *= failure[s]


@njit(cache=True, nogil=True)
def _sum_rows(pattern, weights, law, tables, sums):
    """Return the log-likelihood; write expected rows by pattern and state, (G, M, S)."""
    n_rows, n_groups = pattern.shape
    n_states = law.size
    joint = np.empty(n_states)
    sums[:] = 0.0
    value = 0.0
    for i in range(n_rows):
        joint[:] = law
        log_scale = 0.0
        for g in range(n_groups):
            table = tables[g, pattern[i, g]]
            for s in range(n_states):
                joint[s] *= table[s]
            if (g + 1) % GROUPS_PER_SCALING == 0:
                largest = 0.0
                for s in range(n_states):
                    largest = max(largest, joint[s])
                if largest > 0.0:
                    log_scale += math.log(largest)
                    largest = 1.0 / largest
                    for s in range(n_states):
                        joint[s] *= largest
        total = 0.0
        for s in range(n_states):
            total += joint[s]
        if total <= 0.0:
            return -np.inf
        value += weights[i] * (math.log(total) + log_scale)
        factor = weights[i] / total
        for s in range(n_states):
            joint[s] *= factor
        for g in range(n_groups):
            own = sums[g, pattern[i, g]]
            for s in range(n_states):
                own[s] += joint[s]
    return value


@njit(cache=True, nogil=True)
def _sum_patterns(items, patterns, n_patterns, sums, count, hits, unseen):
    """Write expected rows in each state (S,), with a 1, and with a missing cell, (J, S)."""
    count[:] = 0.0
    hits[:] = 0.0
    unseen[:] = 0.0
    n_states = count.size
    for m in range(n_patterns[0]):
        for s in range(n_states):
            count[s] += sums[0, m, s]
    for g in range(items.size - 1):
        for place in range(items[g + 1] - items[g]):
            j = items[g] + place
            for m in range(n_patterns[g]):
                if patterns[g, m, place] == 1:
                    for s in range(n_states):
                        hits[j, s] += sums[g, m, s]
                elif patterns[g, m, place] == 2:
                    for s in range(n_states):
                        unseen[j, s] += sums[g, m, s]


@njit(cache=True, nogil=True)
def _objective(beta, design, n_cells, rows, total):
    """Return the expected log-likelihood of an item from its cells' sums."""
    value = 0.0
    for c in range(n_cells):
        eta = 0.0
        for p in range(beta.size):
            eta += design[c, p] * beta[p]
        value += total[c] * eta - rows[c] * (max(eta, 0.0) + math.log1p(math.exp(-abs(eta))))
    return value


@njit(cache=True, nogil=True)
def _solve(matrix, right, size):
    """Solve a positive definite system in place; return whether it is positive definite."""
    for a in range(size):
        for b in range(a + 1):
            rest = matrix[a, b]
            for k in range(b):
                rest -= matrix[a, k] * matrix[b, k]
            if a > b:
                matrix[a, b] = rest / matrix[b, b]
            elif rest <= 0.0:
                return False
            else:
                matrix[a, a] = math.sqrt(rest)
    for a in range(size):
        for k in range(a):
            right[a] -= matrix[a, k] * right[k]
        right[a] /= matrix[a, a]
    for a in range(size - 1, -1, -1):
        for k in range(a + 1, size):
            right[a] -= matrix[k, a] * right[k]
        right[a] /= matrix[a, a]
    return True


@njit(cache=True, nogil=True)
def _newton_step(beta, design, n_cells, n_terms, rows, total, ridge):
    """Return coefficients after a Newton step, halved until the objective does not fall."""
    gradient, information = np.zeros(n_terms), np.zeros((n_terms, n_terms))
    for c in range(n_cells):
        eta = 0.0
        for p in range(n_terms):
            eta += design[c, p] * beta[p]
        chance = 1.0 / (1.0 + math.exp(-eta))
        rest, weight = total[c] - rows[c] * chance, rows[c] * chance * (1.0 - chance)
        for p in range(n_terms):
            gradient[p] += rest * design[c, p]
            for q in range(p + 1):
                information[p, q] += weight * design[c, p] * design[c, q]
    for p in range(n_terms):
        information[p, p] = information[p, p] * (1.0 + ridge) + ridge
    if not _solve(information, gradient, n_terms):
        return beta.copy()
    before = _objective(beta, design, n_cells, rows, total)
    step = 1.0
    for _ in range(12):
        found = beta.copy()
        for p in range(n_terms):
            found[p] += step * gradient[p]
        if _objective(found, design, n_cells, rows, total) >= before - 1e-12 * abs(before):
            return found
        step *= 0.25
    return beta.copy()


@njit(cache=True, nogil=True)
def _m_step(beta, cell, n_cells, n_terms, design, inverse, saturated, sums, limits):
    """Return the coefficients (J, P) that maximise, or improve, the expected log-likelihood.

    Cells of saturated items have their means; those without rows keep their predictors.
    """
    smallest, ridge, n_newton = limits[:3]
    count, hits, unseen = sums
    n_items, n_states = cell.shape
    n_most = design.shape[1]
    rows, total, eta = np.empty(n_most), np.empty(n_most), np.empty(n_most)
    out = np.zeros_like(beta)
    for j in range(n_items):
        rows[:] = 0.0
        total[:] = 0.0
        for s in range(n_states):
            rows[cell[j, s]] += count[s] - unseen[j, s]
            total[cell[j, s]] += hits[j, s]
        cells, terms = n_cells[j], n_terms[j]
        if not saturated[j]:
            now = beta[j, :terms].copy()
            for _ in range(int(n_newton)):
                now = _newton_step(now, design[j, :, :terms], cells, terms, rows, total, ridge)
            out[j, :terms] = now
            continue
        for c in range(cells):
            if rows[c] > 0.0:
                mean = min(max(total[c] / rows[c], smallest), 1.0 - smallest)
                eta[c] = math.log(mean / (1.0 - mean))
            else:
                eta[c] = 0.0
                for p in range(terms):
                    eta[c] += design[j, c, p] * beta[j, p]
        for p in range(terms):
            for c in range(cells):
                out[j, p] += inverse[j, p, c] * eta[c]
    return out


@njit(cache=True, nogil=True)
def cell_em_steps(
    pattern, weights, items, patterns, n_patterns, cell, n_cells, n_terms, design, inverse,
    saturated, scale, beta, law, longest, objectives, changes, limits,
):  # fmt: skip
    """Run EM steps, as many as ``objectives`` has places; update the point in place.

    Every second step is extrapolated from the last two (SQUAREM, Varadhan and Roland 2008, third
    step length), unless the objective would fall. ``beta`` (J, P) and ``law`` (S,) are the point;
    ``longest`` (1,) bounds the extrapolation. ``objectives[0]`` is that of the point on entry,
    ``changes[t]`` the largest change of a coefficient in a step, in units of ``scale`` (J,).
    ``limits`` are the smallest probability of a response, the ridge, the number of Newton steps,
    the growth of the bound, its smallest and largest values, and the smallest probability of a
    state that is extrapolated.
    """
    smallest, _, _, growth, least, most, negligible = limits
    n_items, n_states = cell.shape
    tables = np.empty((n_patterns.size, n_patterns.max(), n_states))
    by_pattern = np.empty_like(tables)
    count = np.empty(n_states)
    hits, unseen = np.empty((n_items, n_states)), np.empty((n_items, n_states))
    sums = (count, hits, unseen)
    _group_tables(beta, cell, n_cells, design, smallest, items, patterns, n_patterns, tables)
    objectives[0] = _sum_rows(pattern, weights, law, tables, by_pattern)
    before, before_law = np.zeros_like(beta), np.zeros(n_states)
    for t in range(1, objectives.size):
        _sum_patterns(items, patterns, n_patterns, by_pattern, count, hits, unseen)
        new = _m_step(beta, cell, n_cells, n_terms, design, inverse, saturated, sums, limits)
        new_law = count / count.sum()
        step, step_law = new - beta, np.zeros(n_states)
        for j in range(n_items):
            changes[t] = max(changes[t], np.abs(step[j]).max() / scale[j])
        for s in range(n_states):
            if new_law[s] > negligible and law[s] > negligible:
                step_law[s] = math.log(new_law[s] / law[s])
        accepted, value = False, 0.0
        if t % 2 == 0:
            bend, bend_law = step - before, step_law - before_law
            above = (before * before).sum() + (law * before_law * before_law).sum()
            below = (bend * bend).sum() + (law * bend_law * bend_law).sum()
            length = min(math.sqrt(above / max(below, 1e-300)), longest[0])
            if length > 1.0:
                along, across = 2.0 * (length - 1.0), length * length - 1.0
                far = new + along * before + across * bend
                far_law = new_law * np.exp(along * before_law + across * bend_law)
                far_law /= far_law.sum()
                _group_tables(
                    far, cell, n_cells, design, smallest, items, patterns, n_patterns, tables
                )
                value = _sum_rows(pattern, weights, far_law, tables, by_pattern)
                accepted = value >= objectives[t - 1]
                if accepted:
                    new, new_law = far, far_law
                    longest[0] = min(longest[0] * (growth if length == longest[0] else 1.0), most)
                else:
                    longest[0] = max(longest[0] / growth, least)
        if not accepted:
            _group_tables(new, cell, n_cells, design, smallest, items, patterns, n_patterns, tables)
            value = _sum_rows(pattern, weights, new_law, tables, by_pattern)
        before, before_law = step, step_law
        beta[:] = new
        law[:] = new_law
        objectives[t] = value
