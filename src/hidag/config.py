"""Tuning constants of the estimation algorithms, one frozen dataclass per stage.

Modules read ``CONFIG`` when they use a constant, as ``CONFIG.em.gain_window``. Every stage names
a benchmark that shows its constants, and `benchmarks/constants.py` shows any of them. Safeguards
only keep numbers finite. Settings that users may want to change are parameters of `hidag.DCRL`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from hidag.exceptions import SettingError, suggest_name


@dataclass(frozen=True)
class EStepConfig:
    """E-step over listed joint states or in blocks (``hidag.em.e_step``; benchmarks/fit.py)."""

    # A block of posteriors of about this many numbers stays in the processor's cache; its rows.
    listed_block_cells: int = 1 << 17
    listed_block_rows: tuple[int, int] = (16, 2048)
    # The same for the two smaller tables of the block E-step.
    block_cells: int = 1 << 16
    block_rows: tuple[int, int] = (64, 512)
    # Posteriors of new rows are computed for this many blocks at a time, to bound the memory.
    blocks_at_once: int = 64
    # Rows are summed in this many lanes for any number of threads, so that sums have the same bits.
    n_lanes: int = 4
    # Safeguard: largest exponents in this range need no shift, exp neither over- nor underflows.
    safe_exponents: tuple[float, float] = (-300.0, 600.0)
    # Safeguard: log probability of a state without mass; 0 * log(0) never becomes NaN.
    log_zero: float = -1e4
    # Safeguard: smaller exponents of a block need no shift, a product of three stays in range.
    largest_block_exponent: float = 150.0
    # Safeguard: rows whose mass, relative to the largest possible, is below this are computed again
    # over listed states, because the block products lost their digits.
    smallest_mass: float = 1e-200
    # With fewer joint states the set-up of two blocks costs more than listing them.
    min_states_for_blocks: int = 32
    # Cost of an exponential in multiplications, to choose the split into blocks.
    exponential_cost: int = 4
    min_complete_rows: int = 500  # Separating fewer from incomplete rows costs more than it saves.
    # Stored block densities of an E-step with fixed item parameters: at most 32 MB.
    max_stored_densities: int = 1 << 22


@dataclass(frozen=True)
class MStepConfig:
    """M-step: penalised regressions (``hidag.em.m_step``; benchmarks/constants.py m_step)."""

    # A step that lowers the objective is repeated with four times the curvature, up to 12 times.
    damping_factor: float = 4.0
    # Safeguard: limits of a step of tied coefficients, as a share of them.
    tied_steps: tuple[float, float] = (-0.5, 1.0)
    max_dampings: int = 12
    # Coordinate descent ends after so many sweeps, or when coordinates move by fewer standard
    # errors than the tolerance.
    descent_sweeps: int = 50
    descent_tolerance: float = 1e-7
    ridge: float = 1e-9  # Safeguard: states that are almost empty would make systems singular.
    # Safeguard: distance of a cell's mean from the ends of its range, where predictors would be
    # infinite. The log-likelihood of a million rows loses 1e-6 by it.
    boundary_mean: float = 1e-12
    newton_steps: int = 2  # Newton steps of an M-step; the next E-step changes their target.
    newton_tolerance: float = 1e-8  # Newton steps end when no coefficient moves by more than this.
    # Safeguard: smallest dispersion as a share of the variance; at 0 the likelihood is unbounded.
    min_dispersion_share: float = 1e-4
    # A dispersion within this share of its floor counts as being on the boundary.
    boundary_share: float = 1e-3
    # Prior mass in rows, spread over an item's sub-states in network EM: coefficients stay finite
    # when a latent separates the responses.
    item_mass: float = 1.0
    # A dispersion up to this multiple of what the prior mass alone produces is on the boundary:
    # Monte Carlo noise inflates it by less.
    mass_dispersion_factor: float = 1.2
    # Items with a smaller noise share have standard errors far below the penalty's default
    # threshold, which is narrowed for them.
    low_noise_share: float = 0.25
    # An estimate must indicate six times less noise than regressions on the other items do before
    # it narrows the threshold: an estimate overfits while the latents are poorly recovered.
    estimated_noise_factor: float = 6.0
    # A regression with fewer rows than this per regressor overfits, and is not used.
    min_rows_per_regressor: int = 5
    min_noise_share: float = 1e-4  # Safeguard: noise shares are bounded below by this.
    # Active-set rounds for families whose linear predictor has a lower bound.
    max_floor_rounds: int = 6
    # Safeguard: active states end above the bound by this share of it, whatever the rounding.
    floor_margin: float = 1e-6
    # Safeguard: quadratic penalty of further active states, in units of the largest curvature.
    floor_stiffness: float = 1e6


@dataclass(frozen=True)
class EMConfig:
    """Iterations of EM and SAEM (``hidag.em``; benchmarks/constants.py em)."""

    # The tolerance is per row; beyond this many rows the criterion gets no looser.
    max_tolerance_rows: int = 3000
    # Gains are compared over this many iterations to extrapolate the remaining gain.
    gain_window: int = 10
    # Over-relaxation: the step length grows by this factor while the objective rises, up to the
    # maximum (adaptive over-relaxed EM).
    relaxation_growth: float = 1.3
    max_relaxation: float = 5.0
    # Safeguard: smaller probabilities are not extrapolated, powers of their ratios would overflow.
    negligible_probability: float = 1e-30
    # Prior mass in rows, spread over all states: the Gibbs sampler can reach every state.
    saem_mass: float = 1.0
    # SAEM iterations of step size 1 before the Robbins-Monro average, and the exponent of its step
    # sizes, between 1/2 and 1.
    saem_burn_in: int = 10
    saem_decay: float = 0.7
    saem_initial_sweeps: int = 5  # Gibbs sweeps before the first SAEM iteration.
    # SAEM converges when over so many averaged iterations coefficients drift by fewer units of
    # scale / sqrt(N), well inside their standard errors.
    drift_window: int = 20
    max_drift: float = 2.0


@dataclass(frozen=True)
class CellsConfig:
    """Compiled EM for binary items (``hidag.em.cells``; benchmarks/maximum.py)."""

    # Rows times classes of states up to which compiled loops are faster than array operations.
    most_work: int = 1 << 20
    most_cells: int = 64  # Largest number of cells of an item, for memory.
    # Patterns times classes of a group of items up to which its table stays in the cache.
    most_table_cells: int = 1 << 13
    # Bound of an extrapolation in EM steps: its growth, smallest and largest values. Without it
    # weak items and three levels take up to 1.8 times the steps (docs/experiments.md).
    extrapolation: tuple[float, float, float] = (4.0, 4.0, 1024.0)


@dataclass(frozen=True)
class SupportConfig:
    """Selection of loadings (``hidag.em.support``; benchmarks/constants.py support)."""

    max_rounds: int = 3  # Rounds of selection and EM; later rounds rarely change anything.
    # Longest step of a coefficient, in units of its item's scale: a step is unbounded where a
    # latent separates the responses and the information vanishes.
    max_step: float = 8.0
    min_loadings: int = 8  # The penalty strength is estimated from at least this many loadings.
    # Upper bound of the strength: the lower one plus this times the log of the number of terms.
    log_terms_factor: float = 4.0
    n_thresholds: int = 200  # Grid on which the strength is estimated.
    # Safeguards: relative and absolute ridge of the empirical information.
    relative_ridge: float = 1e-6
    absolute_ridge: float = 1e-9


@dataclass(frozen=True)
class InformationConfig:
    """Information and evidence (``hidag.em.information``; benchmarks/effective_size.py)."""

    n_rows: int = 2000  # Rows for averages that need two digits.
    # Rows for variances of score tests: those of nearly certain items depend on few rows.
    n_rows_for_tests: int = 10_000
    # Rows for the information ratio, which also averages over pairs of latents.
    n_rows_for_ratio: int = 1000
    # Safeguard: posterior probabilities are raised to this; smaller ones are slow to compute with.
    min_probability: float = 1e-15
    # Safeguard: error up to which a derivative counts as a linear combination of terms.
    linear_tolerance: float = 1e-9
    # Below this information ratio the items are weakly informative about the latents: agreement of
    # starts proves little, and expected counts do not determine a graph.
    low_ratio: float = 0.1
    # Safeguards: smallest ratio that rows are divided by, and of a pair of levels in a mean.
    min_ratio: float = 1e-6
    min_pair_ratio: float = 1e-3
    max_effective_ratio: float = 4.0  # Effective rows that one row counts for, at most.
    # Prior variance of loadings in units of their items' scales, and its weight in loadings.
    prior_variance: float = 0.25
    prior_weight: float = 1.0
    prior_iterations: int = 20  # Iterations of empirical Bayes for the distribution of the loadings
    # Safeguards: bound of sampling variances of loadings in the same units, and ridge of the
    # information about an item's loadings.
    max_sampling_variance: float = 9.0
    ridge: float = 1e-3


@dataclass(frozen=True)
class NetworkEMConfig:
    """EM and SAEM without a list of states (``hidag.network_em``; benchmarks/many_latents.py)."""

    # With more joint states posteriors use a junction tree, or Gibbs sampling.
    max_listed_states: int = 1 << 16
    # With more cells in a clique's table Gibbs sampling is faster (benchmarks/large.py).
    max_clique_cells: int = 1 << 12
    max_item_states: int = 1 << 16  # With more states of its own latents an item is not tabulated.
    # Cells of all cliques' tables in a block of rows, and rows of a block.
    block_cells: int = 1 << 22
    max_block_rows: int = 4096
    law_mass: float = 1.0  # Prior mass in rows of each conditional table: no zero probabilities.
    # SAEM converges when coefficients drift by fewer units of scale / sqrt(N).
    max_drift: float = 4.0
    # EM converges when log-likelihood can gain less: half a standard error in all parameters.
    remaining_gain: float = 0.1
    # EM iterations, and cells of a row's tables visited per loading: as much work as SAEM before.
    max_iter: int = 60
    cells_per_loading: int = 1000
    # Gibbs estimates of posteriors: burn-in sweeps, and sweeps that are averaged.
    burn_in_sweeps: int = 20
    averaged_sweeps: int = 200
    # Simulated annealing: inverse temperatures, sweeps at each, independent runs.
    inverse_temperatures: tuple[float, ...] = (
        1.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 1e6, 1e6,
    )  # fmt: skip
    annealing_sweeps: int = 4
    annealing_runs: int = 4
    # Rows that are sampled at once, and rows whose residuals are held at once.
    sampled_block_rows: int = 65536
    residual_block_rows: int = 4096
    # With more joint states the dispersion test uses one draw: faster, and nearly as informative.
    max_summed_states: int = 256
    dispersion_block_rows: int = 8192
    # Support selection: candidates per item besides its loadings, smallest screening |z|, and
    # largest number of latents, because an item's table has an entry for each of their states.
    max_candidates: int = 8
    min_screening_z: float = 2.0
    max_item_latents: int = 10
    min_explained_share: float = 1e-3  # Safeguard: explained share of a latent that divides |z|.
    # Largest starting value of a selected coefficient, in units of its item's scale.
    max_step: float = 4.0
    # Safeguard: eigenvalues of the information are raised to this share of the largest, because it
    # is a product of two Monte Carlo averages and may be indefinite.
    min_eigenvalue_share: float = 1e-4


@dataclass(frozen=True)
class FamilyConfig:
    """Dispersions and cutpoints (``hidag.measurement``; benchmarks/constants.py families)."""

    # Step of finite differences, and largest Newton step, on a dispersion's unbounded scale.
    difference: float = 1e-3
    longest_step: float = 1.5
    # A step without gain is halved so many times at most, and not below the smallest step.
    max_halvings: int = 8
    smallest_step: float = 1e-9
    longest_threshold_step: float = 2.0  # Largest Newton step of the cutpoints of ordered grades.
    # Safeguard: curvature per row that ties cutpoints which move together, far above any other.
    tie_stiffness: float = 1e6
    # Alternations of the mean and the share of extra zeros of an item without latents.
    zero_share_steps: int = 20
    # Ranges of the dispersions from which items start, inside the bounds of their estimates: of
    # counts, positive amounts and proportions; of shares of extra zeros; and the smallest share of
    # uncensored times, beyond which censoring is not corrected further.
    count_dispersions: tuple[float, float] = (0.05, 20.0)
    amount_dispersions: tuple[float, float] = (1e-4, 1e2)
    proportion_dispersions: tuple[float, float] = (1e-4, 1.0)
    zero_shares: tuple[float, float] = (0.02, 0.95)
    smallest_uncensored: float = 0.2
    # Smallest variance of an answer when differences of means become log odds: those of an item
    # with nearly the same answer everywhere would be infinite.
    smallest_answer_variance: float = 0.1


@dataclass(frozen=True)
class LawConfig:
    """Laws of the latents and their tables (``hidag.latent.laws``; benchmarks/constants.py law)."""

    # Marginals come from the list of joint states up to this many, else from a junction tree whose
    # cliques have at most this many cells, else from so many forward draws.
    few_states: int = 1 << 13
    largest_clique: int = 1 << 18
    n_marginal_draws: int = 100_000
    # Larger tables are always free: fitting log-linear ones would take too long.
    max_log_linear_cells: int = 4096
    # Largest number of Newton steps, and the gain in log-likelihood at which they end.
    newton_steps: int = 25
    smallest_gain: float = 1e-6
    smallest_step: float = 1e-3  # A Newton step without gain is halved down to this share.
    ridge: float = 1e-9  # Safeguard: the curvature is invertible where counts are zero.


@dataclass(frozen=True)
class GraphSearchConfig:
    """Scores and searches of graphs (``hidag.structure``; benchmarks/graph_search.py)."""

    # Safeguard: a gain must exceed this share of the empty graph's score, far above rounding errors
    # and far below any gain that data can support.
    relative_threshold: float = 1e-12
    # Forced insertions tried at a local optimum, per variable and in total: all of them up to about
    # 13 variables, beyond that a share that limits the run time to about ten times that of GES.
    max_forced_insertions_each: int = 10
    max_forced_insertions: int = 600
    # Largest number of variables for an exact search where equivalent graphs may have different
    # scores, and where it is asked for: its tables have 2^K rows, about one second with 12.
    max_exact_lean_variables: int = 6
    max_exact_variables: int = 12
    # Candidate equivalent sample sizes, in rows, when the data choose one.
    equivalent_sample_sizes: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    # Tables with more cells are counted from row codes instead of bit planes: at this size both
    # take the same time.
    max_plane_cells: int = 128
    # Whole weights are expanded into rows (and bit planes) up to so many rows per configuration.
    max_rows_per_configuration: float = 16.0
    max_lean_states: int = 1 << 13  # With more joint states fitting lean tables takes too long.
    # Initial size of the table of known scores, and scores that are computed at once, at most.
    initial_capacity: int = 1 << 14
    max_requests: int = 1 << 16


@dataclass(frozen=True)
class InitializationConfig:
    """Starts (``hidag.initialization``; benchmarks/constants.py initialization)."""

    # Starts retain loadings of at least this share of their item's largest, the shares in turn: EM
    # adds a missing loading more easily than it removes a false one.
    loading_shares: tuple[float, ...] = (0.45, 0.3)
    # Latents per item of a start: more rotated loadings are mostly rotation error.
    max_item_latents: int = 4
    # Principal-axis iterations for the communalities; safeguard: their bounds (Heywood cases).
    communality_rounds: int = 10
    communality_bounds: tuple[float, float] = (0.02, 0.98)
    # Safeguard: ridge of the factors' Gram matrix, as a share of its mean eigenvalue.
    gram_ridge: float = 1e-6
    # Latents with identical columns of Q use directions with a cosine below this.
    same_direction: float = 0.9
    # With fewer items all eigenvectors are cheap; beyond, a randomised range finder with so many
    # extra directions and power iterations.
    max_dense_items: int = 600
    extra_directions: int = 20
    power_iterations: int = 6
    # Iterations of Varimax and Geomin; share of its criterion that the former gains, and length of
    # the projected gradient of the latter, at which they end.
    rotation_steps: int = 500
    varimax_tolerance: float = 1e-10
    geomin_tolerance: float = 1e-3
    # Geomin adds this to squared loadings, so that one zero does not hide the rest of a row.
    geomin_offset: float = 0.01
    # Safeguard: Geomin steps to directions with a larger condition number are rejected.
    max_condition: float = 1e6
    max_step_halvings: int = 12  # Line search of Geomin: step lengths tried per iteration.
    # Items within this cosine of an anchor measure the same latent, and are averaged.
    anchor_cosine: float = 0.97
    # Items shorter than this share of the median do not determine a direction.
    min_length_share: float = 0.3
    # All items must have at least this cosine with the axis of the cone.
    min_axis_cosine: float = 0.02
    # Safeguard: anchors with a smaller singular value are linearly dependent.
    min_anchor_singular_value: float = 1e-3
    truncation: float = 1e-4  # Means stay so far inside their range before the link is applied.
    # Singular values above this multiple of sqrt(N) count as signal (Algorithm S.1).
    singular_value_factor: float = 1.01
    score_ridge: float = 1e-8  # Safeguard: scores exist although latents have the same loadings.
    fill_rounds: int = 4  # Rounds in which missing cells are filled from the low-rank approximation
    # Rotated loadings below 1 / (factor * sqrt(J)) start at zero (Algorithm S.1).
    threshold_factor: float = 2.5
    # SAEM steps on a start's own support, before loadings may enter or leave: iterations, those of
    # step size 1, and exponent of the step sizes.
    warm_up_steps: int = 10
    warm_up_burn_in: int = 3
    warm_up_decay: float = 0.6
    # Newton steps of the M-step on hard-assigned states: enough to converge from null parameters.
    n_newton: int = 8
    uniform_share: float = 0.1  # Uniform share of a start's law: no state starts impossible.
    # Largest sum of an item's absolute loadings, in units of its scale: larger ones saturate.
    max_effect: float = 4.0
    min_dispersion_share: float = 0.2  # Share of an item's variance that starts leave unexplained.
    # Confirmatory starts: total effect of an item's latents in units of its scale, and range of
    # the random factors of random starts.
    total_effect: float = 1.5
    effect_factors: tuple[float, float] = (0.3, 1.7)
    # Dirichlet weight per state of a random latent distribution; below 1 some states are rare.
    dirichlet_weight: float = 0.3


@dataclass(frozen=True)
class LevelsConfig:
    """Latents with more than two levels (benchmarks/unequal_levels.py)."""

    kmeans_rounds: int = 30  # Iterations of one-dimensional k-means.
    # Rows and EM steps of the normal mixtures that are compared: differences are large.
    n_rows: int = 3000
    mixture_steps: int = 60
    # Safeguard: smallest standard deviation of a level as a share of the score's, for ties.
    min_level_sd: float = 0.05
    # Latents first have the largest number of levels with at most so many joint states.
    root_states: int = 1 << 10
    # EM steps after the number of levels of a latent has changed, starts whose assignments are
    # improved by exchanges, and assignments that become starting points.
    steps_of_gain: int = 20
    max_climbs: int = 3
    max_points: int = 3
    max_rounds: int = 3  # Rounds of moves.
    # Units of log-likelihood that a move must gain: EM ends within less of its maximum.
    min_gain: float = 0.5
    # EM steps before moves that merge and split levels are compared, and the distance of the two
    # parts of a split level from their mean, in mean steps between levels.
    steps_of_move: int = 20
    split_reach: float = 0.5
    # Share of the variance of an item's predictor that may stay unexplained when a loading leaves
    # with other levels of two latents, and the number of such moves tried.
    relabelled_residual: float = 0.05
    max_relabelled: int = 3
    # levels="auto" (benchmarks/remedies.py): levels of the traits with which the search starts, and
    # the largest number selected; joint states up to which levels are added.
    first_levels: int = 3
    most_levels: int = 5
    most_auto_states: int = 1 << 12
    # Rows and EM steps with which levels are compared, the gain of the log-likelihood at which EM
    # ends, below min_gain, and rounds of changes.
    rows_to_choose: int = 10_000
    steps_to_choose: int = 60
    choice_tolerance: float = 0.05
    max_level_rounds: int = 6
    # Exchanges of levels, and merged and split levels, that loadings are selected again after.
    max_moved: int = 2


@dataclass(frozen=True)
class NuisanceConfig:
    """Nuisance factors (``hidag.strategy.moves.nuisance_factors``; benchmarks/remedies.py)."""

    # Standard deviation with which a nuisance starts, in coefficient scales of its items.
    first_sd: float = 0.4
    # Levels of a factor of many items (a binomial law of four trials is nearly normal), and of one
    # of two items, whose dependence is one number.
    style_levels: int = 5
    pair_levels: int = 2
    # Joint states, nuisances included, up to which a fit is possible.
    most_states: int = 1 << 15


@dataclass(frozen=True)
class FactorCountConfig:
    """Number of common factors (benchmarks/number_of_latents.py)."""

    # Safeguard: pairwise correlations may be indefinite; eigenvalues are raised to this.
    min_eigenvalue: float = 1e-3
    # Ridge of the loadings that impute correlations of pairs never observed together: these pairs
    # do not bound the loadings. An observed pair has weight 1.
    imputation_ridge: float = 0.02
    # Largest communality of an imputed item, and L-BFGS iterations.
    max_communality: float = 0.98
    imputation_steps: int = 500
    smallest_start: float = 1e-3  # Smallest sum of squared loadings that imputation starts at.
    # Parallel analysis: an eigenvalue must exceed that of so many permuted tables.
    n_permutations: int = 10
    # The first eigenvalue must exceed that of so many tables if factor BIC selects no factor: a
    # test of independence at level .01 (its benchmark with --grid --numbers 0).
    n_independence_permutations: int = 99
    min_indicator_variance: float = 1e-12  # Safeguard: indicators with less variance are constant.
    # Numbers of factors that are considered at first; twice as many while a count reaches the end.
    max_factors: int = 40
    patience: int = 3  # Factors are added until so many in a row do not improve the criterion.
    # Bounds of an item's unique variance, and L-BFGS iterations of the factor model.
    unique_variance_bounds: tuple[float, float] = (0.005, 1.3)
    factor_steps: int = 100


@dataclass(frozen=True)
class ConfirmatoryConfig:
    """Starts when Q is given (``hidag.strategy.confirmatory``; benchmarks/maximum.py)."""

    # Share of random starts with ordered cells, and their range in units of the items' scales.
    ordered_share: float = 0.7
    ordered_reach: float = 2.5
    # Best ends of the short runs that continue as a share of the starts, EM steps of each, and
    # their tolerance relative to the schedule: likelihoods are flat where items are few.
    race_share: float = 0.25
    race_steps: int = 150
    race_tolerance: float = 0.3
    # Ends that are run to convergence, and the gain of a restart that counts.
    n_finalists: int = 4
    same_objective: float = 0.01
    # Ends of the race this close are the same maximum: they have not converged. Restarts of items
    # of the finalists, unless most starts are this close to the best: shares of the items, and
    # restarts in a row without a gain that end them.
    agreement: float = 0.1
    restarted_shares: tuple[float, float] = (0.15, 0.6)
    restarts_without_gain: int = 20
    # Multiplications of all starts' E-steps together per EM step, unless the user sets n_starts.
    work_for_starts: float = 3e8
    fewest_starts: int = 4
    most_starts: int = 100
    # Starts compete on a sample of this many rows; the best continue on samples that grow so.
    rows_for_starts: int = 5000
    row_growth: int = 10
    law_steps: int = 16  # EM steps of a restarted law before a graph is learned from it.
    # Starts after which the others are skipped, if most of them converged to the same maximum, and
    # distances that count as the same in units of their tolerance: remaining gains are estimates.
    starts_to_agree: int = 8
    starts_distance: float = 2.0
    # A nested model gets this fraction of the starts of the model itself, and is fitted like a
    # model of its own if it then ends at most so far below it in log-likelihood.
    submodel_share: int = 12
    submodel_margin: float = 10.0
    # Length and tolerance of the short runs, and tolerance and length of the final run, relative
    # to the schedule; of network laws, whose steps are slow, and of models with interactions, which
    # converge slowly near the boundary.
    short_steps: int = 30
    short_tolerance: float = 3.0
    final_tolerance: float = 0.003
    law_tolerance: float = 0.01
    interaction_tolerance: float = 1e-4
    final_steps: int = 10
    # Objectives this close to the best, per row, count as the same optimum.
    same_optimum: float = 1e-3


@dataclass(frozen=True)
class SelectionConfig:
    """Selection of the number of latents (benchmarks/number_of_latents.py)."""

    near_tie: float = 10.0  # BIC differences up to this are a near tie: Bayes factors up to 150.
    # BIC differences up to this are "not worth more than a bare mention" (Kass and Raftery 1995).
    no_evidence: float = 2.0
    min_items: int = 2  # A latent needs so many items to explain a correlation.
    # With a low information ratio so many numbers on either side of the best must be worse,
    # because one search may fail; and so many numbers are fitted at most.
    n_neighbours: int = 2
    max_low_information_fits: int = 8
    # Numbers fitted at most otherwise, by DCRL("auto") and by select.
    max_auto_fits: int = 4
    max_select_fits: int = 7
    # Latents of a neighbouring fit that are split or removed, and rounds of exchange.
    max_neighbour_starts: int = 4
    max_neighbour_rounds: int = 3
    # A number whose BIC exceeds that of the numbers on both sides by this is refitted from them,
    # and a refit that is better by this replaces the fit of its number: a search has failed.
    failed_fit: float = 10.0
    min_gain: float = 1.0  # BIC gain that counts as an improvement: less is a step of EM.
    few_rows: int = 50  # Information criteria are asymptotic: with fewer rows none is reliable.
    # Weight of the EBIC term for the number of supports (Chen and Chen 2008, gamma = 1).
    ebic_weight: float = 1.0


@dataclass(frozen=True)
class InteractionConfig:
    """Interactions (``hidag.strategy.interactions``; benchmarks/interactions.py)."""

    # Familywise level of the score tests of products of two latents of an item. At most .005 of
    # tables may have false ones, which leaves room for scores that are not quite normal.
    level: float = 0.001
    # Share of a score's variance that the item's present coefficients must leave: products that a
    # hierarchy implies have none.
    min_own_variance: float = 0.01
    # Rounds of tests and refits with a given Q, and times that items' latents may change under
    # interactions: later rounds rarely change anything.
    max_rounds: int = 3
    tolerance: float = 0.01  # Tolerance of these refits, relative to the schedule.
    # Starts with interactions, unless the user sets n_starts, and the rows on which they compete.
    starts_with_interactions: int = 6
    rows_for_starts: int = 4000
    # Tolerance and length of the final run of conjunctive items, relative to the schedule.
    final_tolerance: float = 1e-6
    final_steps: int = 10


@dataclass(frozen=True)
class GraphStageConfig:
    """Stages II and III (``hidag.fitting.stages``; benchmarks/graph_evidence.py)."""

    max_resampled_rows: int = 10**8  # Largest number of rows that users may resample, for memory.
    max_edge_tests: int = 20  # Weakest pairs of latents tested on the observed data, at most.
    # Multiplications for all tests; divided by those of one E-step it bounds their number.
    edge_test_work: float = 1e10


@dataclass(frozen=True)
class FitWarningConfig:
    """Thresholds of warnings (``hidag.fitting.fit_warnings``; benchmarks/graph_evidence.py)."""

    low_information: float = 0.05  # Below this information ratio a graph is not reliable.
    # Rows per coefficient of an item. Ten are customary for observed covariates, and latents are
    # not observed. The coefficients of other items do not compete for an item's rows.
    rows_per_coefficient: int = 15
    rows_per_probability: int = 2  # Effective rows per free probability of the graph's law.
    overdispersion_level: float = 0.001  # Familywise level of the warning about overdispersion.
    # Rows that an estimate on the boundary leaves for the other answer, or for a joint state.
    boundary_rows: float = 0.01
    min_variance_ratio: float = 1.2  # Smaller ones change no conclusion, however significant.


@dataclass(frozen=True)
class ExploratoryConfig:
    """Unknown Q (``hidag.strategy.exploratory``; benchmarks/constants.py exploratory)."""

    rows_for_first_steps: int = 2500  # Candidates are first fitted to a sample of this many rows.
    # Rows for candidates of weakly informative items, whose graph is learned first.
    rows_for_weak_items: int = 10_000
    steps_under_independence: int = 15  # EM steps before that graph is learned.
    # Tolerances of preparatory EM runs, as multiples of the final one.
    brief_tolerance: float = 200.0
    rough_tolerance: float = 30.0
    same_directions: float = 0.92  # Two starts agree if matched latents' loadings have this cosine.
    starts_on_disagreement: int = 8  # Number of starts when the first two do not agree.
    # Objectives this close to the best, per row, count as the same optimum.
    same_optimum: float = 1e-3
    final_tolerance: float = 0.1  # Tolerance of the final fit of the selected Q.


@dataclass(frozen=True)
class StructuralEMConfig:
    """``hidag.strategy.structural_em`` (benchmarks/constants.py structural_em)."""

    occupied: float = 0.5  # States with a smaller expected count are no parameters of the law.
    max_rounds: int = 4  # Times that the graph is learned and the model fitted again under it.
    # Unconstrained updates of the law before the graph is learned from it.
    unconstrained_updates: int = 4
    # EM steps of the law without an edge, and the gain of a step at which they end.
    edge_steps: int = 20
    edge_tolerance: float = 0.1
    max_parents: int = 6  # Parents of a latent during estimation: tables have 2^parents rows.

    @property
    def unconstrained_steps(self) -> int:
        """EM steps of the unconstrained updates: each is as long as two."""
        return 2 * self.unconstrained_updates


@dataclass(frozen=True)
class SAEMNetworkConfig:
    """Sampled latents (``hidag.strategy.saem_network``; benchmarks/large.py)."""

    # Products of pairs of latents that are held at once, and smallest and largest number of rows.
    block_cells: int = 1 << 19
    block_rows: tuple[int, int] = (16, 8192)
    most_rows_for_labels: int = 100_000  # Rows of draws that determine the order of the latents.
    draw_sweeps: int = 2  # Sweeps between two draws, so that their errors are nearly independent.
    # Number of draws that a graph is learned from, and the largest number of rows of all draws.
    # Draws are noisier if items are less informative.
    fewest_graph_draws: int = 4
    most_graph_draws: int = 16
    most_graph_rows: int = 320_000
    between: int = 10  # Steps after each new graph or support.
    # Largest effective number of rows of a graph with too many edges, as a multiple of the table's.
    max_row_multiple: float = 16.0
    first_sweeps: int = 10  # Sweeps before the first draw, independent of the initial states.
    n_draws: int = 16  # Draws for support selection.
    warm_up: int = 30  # Steps before the first graph search.
    # Graph searches before the first support selection, and after each change of support. Draws
    # under a law without an edge have only a part of its dependence, so that several are needed.
    first_graphs: int = 5
    later_graphs: int = 2
    most_choices: int = 6  # Largest number of support selections.
    most_splits: int = 6  # Largest number of split moves.
    draws_compared: int = 2  # Draws for the comparison of fits.
    fewest_last: int = 40  # Smallest number of steps of the final run.


@dataclass(frozen=True)
class EnumerationConfig:
    """Choice between EM and SAEM (``hidag.strategy.problem``; benchmarks/growth.py)."""

    # Exact E-steps cost about N * J * 2^K multiplications; beyond this many sampling is cheaper.
    largest_exact_work: float = 4e9
    # The largest number of joint states that method="auto" enumerates, and that any method does.
    largest_exact_states: int = 1 << 13
    largest_states: int = 1 << 16


@dataclass(frozen=True)
class SaturatedSAEMConfig:
    """SAEM under a saturated law (``hidag.strategy.estimation``; benchmarks/growth.py)."""

    # From this many joint states on a start by sampling costs less than the first exact steps.
    states_for_sampled_start: int = 1 << 12
    saem_starts: int = 4  # Starts of SAEM under a saturated law, unless the user sets n_starts.


@dataclass(frozen=True)
class OptimaConfig:
    """Converged candidates and their comparison (benchmarks/constants.py optima)."""

    most_ends: int = 4  # Largest number of candidates that are run to convergence.
    # Two candidates are the same optimum if matched latents' loadings have at least this cosine.
    same_optimum_cosine: float = 0.97
    ends_tolerance: float = 3.0  # Tolerance of these runs, as a multiple of the final one.
    rounds_to_end: int = 2  # Rounds of structural EM in these runs.
    # A latent with fewer items is unused: a single item does not distinguish it from noise.
    fewest_items: int = 2
    # Cost of an unused latent, in units of log-likelihood: the user asked for this many latents, so
    # that an optimum without one of them must fit far better.
    unused_latent_cost: float = 10.0
    # With a larger share of reversed loadings, items are taken to be keyed in both directions.
    largest_share_against: float = 0.25


@dataclass(frozen=True)
class UnpenalisedStepsConfig:
    """EM without penalty from an optimum (benchmarks/constants.py unpenalised_steps)."""

    n_steps: int = 60  # EM steps without penalty, which converge slowly.
    # Loadings that stay after them have at least this share of their item's largest; the second
    # share is tried if the first gains nothing.
    loading_shares: tuple[float, ...] = (0.45, 0.3)
    steps_on_support: int = 8  # EM steps on these loadings before others may enter or leave.
    most_moves: int = 10  # Largest number of moves from the best optimum; 0 for none at all.
    # Least gain of a move, in units of log-likelihood; smaller ones are within the EM tolerance.
    least_gain: float = 1.0


@dataclass(frozen=True)
class SplitMovesConfig:
    """A latent that stands for two (benchmarks/constants.py split_moves)."""

    fewest_items: int = 3  # A latent with fewer items is not split.
    # Initial probability that the two parts of a latent have the same level.
    split_agreement: float = 0.7
    # Iterations of the minimiser: the criteria of supports differ by far more than the last ones
    # gain.
    most_steps: int = 100
    largest_correlation: float = 0.98  # Bound on correlations of factors: no two of them coincide.
    most_rows: int = 5000  # Largest number of rows that correlations are computed from.
    # Smallest excess of a latent with m items: this share of 2 sqrt(m / N), which random
    # correlations reach without a fit, and at least the second number, because large samples show
    # any misfit.
    beyond_chance: float = 0.7
    smallest_excess: float = 0.1
    most_start_points: int = 2  # Largest number of start points from one fit.
    # Two latents that share more than this part of their items are taken for mixtures of each
    # other.
    shared_items: float = 0.5
    smallest_spread: float = 1e-9  # Safeguard: smaller variances of standardised columns are zero.


@dataclass(frozen=True)
class QRowSearchConfig:
    """Rows of Q with interactions (benchmarks/constants.py q_row_search)."""

    # Largest number of joint states, and of latents in a set.
    most_states: int = 1 << 10
    most_latents: int = 3
    most_combinations: int = 600  # Largest number of combinations of levels of all sets together.
    largest_exponent: float = 600.0  # Safeguard: exponentials of larger numbers would overflow.
    # Steps of the short EM, and the smallest share of an item's variance that its noise may have.
    steps: int = 25
    smallest_noise: float = 1e-3
    # Gain in log-likelihood at which the short EM ends; safeguard: rows that a mean needs.
    tolerance: float = 0.01
    smallest_share: float = 1e-6
    inside: float = 1e-4  # Safeguard: means stay this far inside the family's range.


@dataclass(frozen=True)
class LikelihoodSearchConfig:
    """Graph search by observed-data likelihood (benchmarks/graph_evidence.py)."""

    # EM for a restricted law ends when a step gains less than this, in units of log-likelihood.
    law_tolerance: float = 0.05
    max_law_steps: int = 40
    most_members: int = 32  # Largest number of members of an equivalence class that are enumerated.
    # Safeguard: conditional probabilities nearer to 0 or 1 than this are taken for this.
    near_certain: float = 1e-3
    least_information: float = 1e-6  # Safeguard: rows without information leave it invertible.
    # Largest estimated loss of a change that is fitted all the same: estimates are rough.
    within_reach: float = 3.0
    most_tried: int = 10  # Largest number of changes that are fitted without an improvement.
    # Least gain of a change, in units of log-likelihood; smaller ones are within the EM tolerance.
    least_gain: float = 0.1
    # Largest number of graphs that are fitted, fewer if an E-step is expensive: this many
    # multiplications divided by those of an E-step, and at least the last number.
    most_fits: int = 100
    work_for_fits: float = 1e10
    fewest_fits: int = 10


@dataclass(frozen=True)
class EdgeTestsConfig:
    """Likelihood-ratio tests of edges (benchmarks/graph_evidence.py)."""

    # Difference of criteria, in units of log-likelihood, that counts as very strong evidence.
    very_strong: float = 5.0
    # Edges whose removal lowers the graph's score by more than this are not tested. The bound grows
    # with the ratio of the score's number of rows to the effective one.
    certain_loss: float = 15.0
    # No graph without an edge is searched if dropping it alone loses this many times that bound.
    no_search_needed: float = 4.0


@dataclass(frozen=True)
class EdgeProbabilitiesConfig:
    """Posterior probabilities of edges (benchmarks/calibration.py)."""

    # A law's prior has as many rows as a table of so many latents has cells. With fewer, arrows are
    # stated too often, with more, adjacencies.
    prior_latents: float = 3.0
    # Standard deviation of the prior of the log weight of an edge, which is estimated. Twice as
    # much makes edges of weak items too improbable.
    density_sd: float = 1.0
    # Largest number of classes of graphs whose likelihood is computed, and number in each round.
    quick_graphs: int = 96
    graphs_per_round: int = 24
    # No further round if the last one changed no probability by as much; less with more graphs, in
    # proportion.
    least_change: float = 0.02
    # Markov chain that proposes graphs: steps, of which every fifth is noted, and the power of
    # weights is 1 / heat, so that it also visits less probable graphs.
    chain_steps: int = 20_000
    thinning: int = 5
    heat: float = 1.5
    # Regression of log-likelihoods on pairs and triples: standard deviation of what the sum of
    # terms misses, times 1 + the distance to the best graph, and precision of its coefficients.
    noise: float = 0.2
    prior_precision: float = 0.1
    max_parents: int = 6  # Larger families are too many to list for 12 latents.
    max_members: int = 500  # Larger classes have the predicted likelihood.
    # EM for the law over a graph ends with smaller gains, or after so many steps.
    law_tolerance: float = 0.03
    max_law_steps: int = 60
    # Numbers in the table of densities (rows times states), 16 MB; second derivatives are from
    # fewer rows if there are more.
    density_cells: int = 1 << 22
    # Changes of a law are projected on as many functions of the state as there are states if these
    # are at most as many; otherwise on products of at most three latents.
    most_functions: int = 1 << 8
    # Safeguard: possible states have at least about this probability times that without a graph.
    smallest_probability: float = 1e-4
    max_states: int = 1 << 12


@dataclass(frozen=True)
class ModelChecksConfig:
    """Checks of the model after a fit (``hidag.model_checks``; benchmarks/misspecification.py)."""

    # Rows that are tested: a sample that does not depend on the order of the table, so that rows
    # times joint states times responses stay below the work; more rows only show smaller misfit.
    most_rows: int = 3000
    fewest_rows: int = 1000
    most_work: float = 1e8
    # Parameters are taken into account up to the number of rows divided by this.
    rows_per_direction: int = 4
    # Levels of the tests, for the whole table: those of residual correlations by Bonferroni, those
    # of residual products one-sided. Far below .05 because Q was selected on the same rows.
    pair_level: float = 0.002
    moment_level: float = 0.0002
    # Misfit of no consequence, however significant: residual correlations, and standard deviations
    # of a trait within its levels in steps between them.
    smallest_correlation: float = 0.03
    smallest_spread: float = 0.1
    largest_spread: float = 2.0  # Safeguard: larger ones come from moments without information.
    # Residual correlations come first if their largest z is above this share of that of residual
    # products: on tables of the benchmark .2 to .5 for traits and styles, .7 to 1.2 for a missing
    # latent, which leaves products too.
    pair_precedence: float = 0.6
    # Of dependent pairs, those are named whose z has this share of the largest; the others are
    # mostly consequences. So many pairs at most.
    share_of_largest: float = 0.5
    most_pairs: int = 12
    fewest_items: int = 4  # Items of a format from which a response style is tested.
    # A response style explains the residual products unless the remaining chi-square exceeds its
    # degrees of freedom by this share of the one explained.
    remainder_share: float = 0.2
    rival_gap: float = 3.0  # Starts with smaller differences of criteria count as equally good.
    general: float = 0.9  # A latent is general if it drives this share of the items of a format.
    # Two latents imitate one with a larger cosine of loadings and correlation.
    same_items: float = 0.7
    same_trait: float = 0.5
    # Q is dense if items measure more than this share of the latents on average, and a latent has
    # fewer items of its own.
    dense_share: float = 0.4
    own_items: int = 2


@dataclass(frozen=True)
class DerivativesConfig:
    """Derivatives of a fit (``hidag.information``; benchmarks/standard_errors.py)."""

    max_states: int = 1 << 13  # Joint states are listed up to this number.
    block_cells: int = 1 << 22  # Cells (rows times states) of posteriors that are held at once.
    # Steps of numerical first derivatives, and of second derivatives and those of scores; errors
    # are about their squares, and rounding about 1e-16 divided by them.
    step: float = 1e-5
    larger_step: float = 1e-4
    # Safeguard: singular values below this share of the largest are zero.
    smallest_singular_value: float = 1e-9
    # Rows with a smaller posterior probability of a state are omitted from its sums.
    smallest_posterior: float = 1e-12
    max_work: float = 1e12  # More multiplications would take many minutes.
    # Directions with a smaller share of the complete-data information are flat, and a parameter
    # with this share in flat directions is not estimated.
    flat: float = 1e-6
    flat_share: float = 1e-2
    # Safeguard: boundary directions are known up to rounding, with many coefficients.
    boundary_share: float = 1e-6


@dataclass(frozen=True)
class LimitsConfig:
    """Largest settings that are accepted, beyond them are typos (benchmarks/bad_inputs.py)."""

    #: Latents: each needs items of its own, and no benchmark has more than 100.
    n_latents: int = 10_000
    #: Starts, of which 100 are enough for any likelihood that was measured.
    n_starts: int = 100_000
    #: Processes or threads; more than any machine has, so that -1 is never refused.
    n_jobs: int = 4096
    #: Other counts: iterations, sweeps, resamples, simulated tables.
    count: int = 10_000_000
    #: Gain per row at which EM stops: beyond some units it stops at once.
    tol: float = 100.0
    #: Binary digits of a seed: those of NumPy's entropy, and as many again.
    seed_bits: int = 256
    #: Weight of a row in numbers of rows: sums of squares of more would not be exact.
    largest_weight: float = 1e12
    #: Share of the machine's memory that a fit may need by its estimate, which is a lower bound.
    memory_share: float = 0.9


@dataclass
class Config:
    """All stages."""

    e_step: EStepConfig = EStepConfig()
    m_step: MStepConfig = MStepConfig()
    em: EMConfig = EMConfig()
    cells: CellsConfig = CellsConfig()
    support: SupportConfig = SupportConfig()
    information: InformationConfig = InformationConfig()
    network_em: NetworkEMConfig = NetworkEMConfig()
    families: FamilyConfig = FamilyConfig()
    law: LawConfig = LawConfig()
    graph_search: GraphSearchConfig = GraphSearchConfig()
    initialization: InitializationConfig = InitializationConfig()
    levels: LevelsConfig = LevelsConfig()
    nuisance: NuisanceConfig = NuisanceConfig()
    factor_count: FactorCountConfig = FactorCountConfig()
    confirmatory: ConfirmatoryConfig = ConfirmatoryConfig()
    selection: SelectionConfig = SelectionConfig()
    interactions: InteractionConfig = InteractionConfig()
    graph_stage: GraphStageConfig = GraphStageConfig()
    fit_warnings: FitWarningConfig = FitWarningConfig()
    exploratory: ExploratoryConfig = ExploratoryConfig()
    structural_em: StructuralEMConfig = StructuralEMConfig()
    saem_network: SAEMNetworkConfig = SAEMNetworkConfig()
    enumeration: EnumerationConfig = EnumerationConfig()
    saturated_saem: SaturatedSAEMConfig = SaturatedSAEMConfig()
    optima: OptimaConfig = OptimaConfig()
    unpenalised_steps: UnpenalisedStepsConfig = UnpenalisedStepsConfig()
    split_moves: SplitMovesConfig = SplitMovesConfig()
    q_row_search: QRowSearchConfig = QRowSearchConfig()
    likelihood_search: LikelihoodSearchConfig = LikelihoodSearchConfig()
    edge_tests: EdgeTestsConfig = EdgeTestsConfig()
    edge_probabilities: EdgeProbabilitiesConfig = EdgeProbabilitiesConfig()
    model_checks: ModelChecksConfig = ModelChecksConfig()
    derivatives: DerivativesConfig = DerivativesConfig()
    limits: LimitsConfig = LimitsConfig()


CONFIG = Config()


@contextmanager
def override(changes: Mapping[str, object]) -> Iterator[None]:
    """Change constants for an experiment, in this process only, and restore them.

    Parameters
    ----------
    changes : mapping of str to value
        New values by stage and constant: ``{"em.gain_window": 5, "optima.most_ends": 1}``.

    Raises
    ------
    SettingError
        If there is no such constant.
    """
    before = dict(vars(CONFIG))
    known = [f"{stage}.{one.name}" for stage in before for one in fields(before[stage])]
    for name in changes:
        if name not in known:
            advice = suggest_name(
                name, known, "constants are named STAGE.CONSTANT, as em.gain_window"
            )
            text = "there is no tuning constant {name!r}"
            raise SettingError("unknown-constant", text, {"name": name}, advice=advice)
    for name, value in changes.items():
        stage, _, constant = name.partition(".")
        new: dict[str, Any] = {constant: value}
        setattr(CONFIG, stage, replace(getattr(CONFIG, stage), **new))
    try:
        yield
    finally:
        vars(CONFIG).update(before)
