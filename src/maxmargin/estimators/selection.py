r"""C, chosen by cross-validation.

The examples are encoded once. A fold is a subset of the encoded problem: it shares all features, and needs no
kernels of its own. Each fold has a model for the smallest C, from which the model for the next one starts, as
dual variables are feasible for every C. These runs stop at a gap of twice ``tol``, or of a tenth of the
objective if that is more: enough to rank values of C. At larger gaps large values of C look better than they
are, as a run that stops early is regularised by it.

The search begins at a third of a central value, goes up by factors of three as long as the mean loss of
held-out examples falls by more than one standard error, and goes down as long as the smallest value is the
best. A value of C is left after any fold if it is worse than the best one so far, on the examples of these
folds, by more than two standard errors. These are errors of differences: with :math:`d_i` the difference of
the two losses of example i and :math:`c_i` its weight, the mean :math:`\bar d = \sum c_i d_i / \sum c_i` has
the standard error :math:`\sqrt{\sum c_i^2 (d_i - \bar d)^2} / \sum c_i`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.compiling import can_compile
from maxmargin.compiling.generics import has_implementation
from maxmargin.estimators.examples import FLOOR, Examples
from maxmargin.estimators.state import twin
from maxmargin.methods.protocol import carried
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import OutOfTime, now
from maxmargin.runtime.threads import alone, n_threads, run_all, threads
from maxmargin.runtime.wording import caller, counted, errors_of, shown
from maxmargin.solving.decoding import losses
from maxmargin.solving.display import LogLines, ProgressLine, shown_progress
from maxmargin.solving.driver import solve
from maxmargin.solving.kinds import is_count
from maxmargin.solving.result import Progress, Result, Status
from maxmargin.structures.problem import take
from maxmargin.structures.wrappers import Weighted

if TYPE_CHECKING:
    from maxmargin.estimators.structure import AnyEstimator, Problem

# Neighbouring values of C differ by this factor, of which the search takes at most so many steps up or down.
FACTOR, STEPS = 3.0, 10
# The gap at which the runs of a fold stop, relative to tol and at least, and how often it is measured.
_COARSER, _COARSE, _CHECK_EVERY = 2.0, 0.1, 3
# A value of C that is worse by more standard errors than this is left, once so many examples were held out.
_ERRORS, _LEAST = 2.0, 20

Pair = tuple[IntArray, IntArray]  # numbers of the examples to train on, and of those held out


@dataclass(frozen=True)
class CrossValidated:
    """How `fit` chooses C by cross-validation: the options of ``C="auto"``.

    The C of lowest mean loss on held-out examples is chosen, the smallest one of several, and the estimator
    is trained with it on all examples.

    Parameters
    ----------
    Cs : list of float or None, default=None
        Values to choose from. They are tried in ascending order, until one is worse than an earlier one by
        more than two standard errors. By default, factors of three around the estimator's own default (or
        around 1, with a kernel other than "linear"), as far as the loss falls.
    cv : int, splitter or list of pairs, default=3
        Number of folds, whose examples are drawn at random; or a splitter of scikit-learn, which gets the
        encoded examples without those of weight zero and empty sequences; or a list of pairs of arrays, the
        numbers of the examples to train on and of those held out, such as
        ``list(GroupKFold(5).split(X, y, groups))``.
    one_standard_error : bool, default=False
        Choose the smallest C whose mean loss is within one standard error of the lowest: the standard
        deviation over folds, divided by the root of their number.
    l1_ratios : list of float or None, default=None
        Values of ``l1_ratio`` to choose from, together with C; each has a search of its own. By default, the
        estimator's own. ``l1_ratio_`` is the number.

    Examples
    --------
    >>> from maxmargin import CrossValidated, MulticlassSVC
    >>> X, y = [[0.0], [0.1], [0.9], [1.0]], [0, 0, 1, 1]
    >>> model = MulticlassSVC(C=CrossValidated(Cs=[0.1, 1, 10], cv=2), random_state=0).fit(X, y)
    >>> model.C_ in (0.1, 1, 10)
    True
    """

    Cs: Sequence[float] | None = None
    cv: Any = 3
    one_standard_error: bool = False
    l1_ratios: Sequence[float] | None = None

    @errors_of("CrossValidated")
    def __post_init__(self) -> None:
        """Raise unless the values are of the right kind; keep lists of what can be read only once."""
        if self.Cs is not None:
            object.__setattr__(self, "Cs", _checked("Cs", self.Cs, "> 0", lambda C: 0.0 < C < math.inf))
        if self.l1_ratios is not None:
            ratios = _checked("l1_ratios", self.l1_ratios, "in [0, 1)", lambda ratio: 0.0 <= ratio < 1.0)
            object.__setattr__(self, "l1_ratios", ratios)
        can_split = hasattr(self.cv, "split") and not isinstance(self.cv, str)
        if isinstance(self.cv, Iterable) and not (can_split or isinstance(self.cv, str)):
            object.__setattr__(self, "cv", list(self.cv))
        elif not (can_split or (is_count(self.cv) and self.cv >= 2)):
            expected = "an int >= 2, a splitter or a list of pairs of arrays"
            raise ValueError(f"cv must be {expected}, got {shown(self.cv)}.")


def _checked(name: str, given: object, expected: str, is_right: Callable[[float], bool]) -> tuple[float, ...]:
    """Return values in ascending order; raise unless there are one or more, and all are right."""
    values = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
    bad = [value for value in values if not (isinstance(value, Real) and is_right(float(value)))]
    if not values or bad:
        raise ValueError(
            f"{name} must be one or more numbers {expected}, got {shown(bad[0] if bad else given)}."
        )
    return tuple(sorted({float(value) for value in values}))


def is_auto(C: object) -> bool:
    """Whether C is to be chosen by cross-validation."""
    return isinstance(C, CrossValidated) or C == "auto"


class Trial(NamedTuple):
    """A value of C, and how its models did.

    Attributes
    ----------
    C, l1_ratio : float, float or None
        l1_ratio is None where it is not chosen.
    losses : list of arrays
        The losses of the examples that each fold holds out, for the folds that were trained.
    scores, seconds : arrays of shapes (n_folds,) and (n_folds, 2)
        Their negative means, and the time to train and to predict; NaN for folds that were not trained.
    results : list of Result
        Of the folds, from which the runs for another C start.
    """

    C: float
    l1_ratio: float | None
    losses: list[FloatArray]
    scores: FloatArray
    seconds: FloatArray
    results: list[Result]

    @property
    def score(self) -> float:
        """The mean over folds; NaN if not all were trained."""
        return float(self.scores.mean())


class Fold(NamedTuple):
    """Some examples to train on, and some that are held out.

    Attributes
    ----------
    problem : Problem
        With the weights of examples, if they have any.
    number, mean : int, float
        The number of examples to train on, and their mean weight.
    held_out : Problem
    weights : array
        Of the examples held out.
    """

    problem: "Problem"
    number: int
    mean: float
    held_out: "Problem"
    weights: FloatArray


def choose(
    model: "AnyEstimator", problem: "Problem", examples: Examples[Any], centre: float, deadline: float
) -> dict[str, Any]:
    """Return the fitted attributes of a choice: `C_`, `cv_results_` and, if it is chosen too, `l1_ratio_`.

    ``centre`` is a value to begin with, which is returned if time is up before a value has been tried.
    """
    options = model.C if isinstance(model.C, CrossValidated) else CrossValidated()
    rng = check_random_state(model.random_state)
    pairs, seed = _pairs(model, examples, options.cv, rng), int(rng.randint(2**31 - 1))
    ratios: Sequence[float | None] = (None,) if options.l1_ratios is None else options.l1_ratios
    searches, begin = list[_Search](), centre
    with shown_progress(caller(), int(model.verbose)) as line, suppress(OutOfTime):
        for ratio in ratios:
            own = model if ratio is None else twin(model, {**vars(model), "l1_ratio_": ratio})
            searches.append(_Search(own, _folds(own, problem, examples, pairs), seed, deadline, line))
            searches[-1].run(options, begin)
            found = searches[-1].found(options.one_standard_error)
            begin = begin if found is None else FACTOR * found.C  # the larger the ratio, the larger C
    known = [trial for search in searches if (trial := search.found(options.one_standard_error))]
    best = max(known, key=lambda trial: trial.score, default=None)
    chosen = (
        {"C_": centre, "l1_ratio_": ratios[0]} if best is None else {"C_": best.C, "l1_ratio_": best.l1_ratio}
    )
    table = _table([trial for search in searches for trial in search.trials], len(pairs))
    return {name: value for name, value in chosen.items() if value is not None} | {"cv_results_": table}


class _Search:
    """The trials so far, and how to make another one."""

    def __init__(
        self,
        model: "AnyEstimator",
        folds: list[Fold],
        seed: int,
        deadline: float,
        line: ProgressLine | LogLines | None,
    ) -> None:
        self.trials = list[Trial]()
        self._model = twin(model, {**vars(model), "n_jobs": None})
        self._folds, self._seed, self._deadline, self._line = folds, seed, deadline, line
        # Users' objects may not be thread-safe.
        self._n_jobs = model.n_jobs if can_compile(folds[0].problem) else None
        self._is_over = False

    def run(self, options: CrossValidated, centre: float) -> None:
        """Try the values of C that are given, or those around the centre."""
        if options.Cs is None:
            self.around(centre, options.one_standard_error)
        else:
            self.upwards(options.Cs)

    def around(self, centre: float, one_error: bool) -> None:
        """Try values around the centre: up as long as the score rises, down if the first was the best."""
        values = [
            float(f"{centre * FACTOR**k:.3g}") for k in range(-STEPS, STEPS)
        ]  # easily read and repeated
        first = STEPS - 1
        smallest = last = self._try(values[first], None)
        for C in values[first + 1 :]:
            last, before = self._try(C, last), last
            if not (last.score > before.score and self._is_worse(before.losses, last, 1.0)):
                break
        for C in reversed(values[:first]):
            if self.found(one_error) is not smallest:
                break
            smallest, before = self._try(C, None), smallest
            if smallest.score == before.score:  # smaller ones may do no better either
                break

    def upwards(self, Cs: Iterable[float]) -> None:
        """Try values in ascending order, until one is worse than an earlier one beyond doubt."""
        last = None
        for C in Cs:
            last = self._try(C, last)
            if math.isnan(last.score):
                return

    def found(self, one_error: bool) -> Trial | None:
        """Return the trial whose C is chosen, if there is any."""
        known = sorted((trial for trial in self.trials if not math.isnan(trial.score)), key=lambda t: t.C)
        if not known:
            return None
        best = max(known, key=lambda trial: trial.score)
        error = float(best.scores.std(ddof=1)) / math.sqrt(len(best.scores)) if one_error else 0.0
        least = best.score - error
        return next(trial for trial in known if trial.score >= least)

    def _try(self, C: float, start: Trial | None) -> Trial:
        """Train and score the folds, each from its result in another trial, until C is known to be worse."""
        n, best, done = len(self._folds), self.found(False), list[_Run]()
        starts: Sequence[Result | None] = n * [None] if start is None else start.results
        with threads(self._n_jobs):
            while len(done) < n and not self._is_left(done, best):
                some = range(len(done), min(len(done) + n_threads(), n))
                done += run_all(lambda k: self._run(C, k, starts[k]), some, self._give_up)
        # So that the answer does not depend on how many folds were trained at the same time.
        last = next((k for k in range(1, len(done)) if self._is_left(done[:k], best)), len(done))
        if start is not None:
            start.results.clear()  # only the last ones are needed
        trial = _trial(C, vars(self._model).get("l1_ratio_"), done[:last], self._folds)
        self.trials.append(trial)
        return trial

    def _is_left(self, done: "list[_Run]", best: Trial | None) -> bool:
        """Whether C is known to be worse than the best one after these folds."""
        losses = [run.losses for run in done]
        return best is not None and sum(map(len, losses)) >= _LEAST and self._is_worse(losses, best, _ERRORS)

    def _is_worse(self, losses: list[FloatArray], best: Trial, errors: float) -> bool:
        """Whether losses in the first folds are above the best ones by more than so many standard errors."""
        d = np.concatenate([own - other for own, other in zip(losses, best.losses, strict=False)])
        c = np.concatenate([fold.weights for fold in self._folds[: len(losses)]])
        mean = float(np.average(d, weights=c))
        return mean > errors * float(np.sqrt(np.square(c * (d - mean)).sum()) / c.sum())

    def _run(self, C: float, k: int, start: Result | None) -> "_Run":
        """Train and score one fold."""
        with alone():
            begin, fold = now(), self._folds[k]
            result = self._solved(C, k, start)
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            middle, found = now(), losses(fold.held_out, result.w)
            if self._model._structure.scores_whole:
                found = np.sign(found)
            if now() >= self._deadline or self._is_over:
                raise OutOfTime
            return _Run(result, found, (middle - begin, now() - middle))

    def _solved(self, C: float, k: int, start: Result | None) -> Result:
        model, (problem, n, mean, *_) = twin(self._model, {**vars(self._model), "C_": C}), self._folds[k]
        rtol = max(_COARSER * model.tol, _COARSE)
        lam, left = model._lam(n), self._deadline - now()
        if left <= 0.0:
            raise OutOfTime

        def note(progress: Progress) -> bool:
            if self._line is not None:
                self._line.name = f"{caller()}: C = {C:.3g}, fold {k + 1} of {len(self._folds)}"
                self._line(progress)
            return not self._is_over

        method = model._method(lam, problem)
        return solve(
            problem,
            method,
            tol=FLOOR * rtol * mean,
            rtol=rtol,
            max_passes=model.max_iter,
            time_limit=None if math.isinf(left) else left,
            check_every=_CHECK_EVERY,
            sampling=model.sampling,
            callbacks=[note],
            random_state=self._seed,
            start=start if has_implementation(method, carried) else None,
        )

    def _give_up(self) -> None:
        """Let the runs of other threads end."""
        self._is_over = True


class _Run(NamedTuple):
    """The run of a fold, the losses of the examples held out, and the time of both."""

    result: Result
    losses: FloatArray
    seconds: tuple[float, float]


def _trial(C: float, l1_ratio: float | None, done: list[_Run], folds: list[Fold]) -> Trial:
    scores, seconds = np.full(len(folds), np.nan), np.full((len(folds), 2), np.nan)
    for k, run in enumerate(done):
        scores[k], seconds[k] = -np.average(run.losses, weights=folds[k].weights), run.seconds
    return Trial(C, l1_ratio, [run.losses for run in done], scores, seconds, [run.result for run in done])


def _folds(
    model: "AnyEstimator", problem: "Problem", examples: Examples[Any], pairs: list[Pair]
) -> list[Fold]:
    """Return the folds, whose problems share the encoding of all examples."""
    found = []
    for others, held_out in pairs:
        weights, (part, rest) = (
            examples.weights,
            (model._penalised(take(problem, some)) for some in (others, held_out)),
        )
        if weights is not None:
            part = Weighted(part, weights[others])
        mean = 1.0 if weights is None else float(weights[others].mean())
        of_held_out = np.ones(len(held_out)) if weights is None else weights[held_out]
        found.append(Fold(part, len(others), mean, rest, of_held_out))
    return found


def _pairs(model: "AnyEstimator", examples: Examples[Any], cv: Any, rng: np.random.RandomState) -> list[Pair]:
    """Return for each fold the numbers of the examples to train on, and of those held out."""
    n = examples.number
    if is_count(cv):
        if n < cv:
            raise ValueError(
                f"C must be a number where there are fewer examples than the {cv} folds that choose it, got "
                f"{counted(n, 'sample')}; give a number, or a CrossValidated with a smaller cv."
            )
        order = rng.permutation(n)
        parts = [np.sort(part) for part in np.array_split(order, int(cv))]
        return [(np.setdiff1d(np.arange(n), part), part) for part in parts]
    given = cv if isinstance(cv, list) else list(_split(examples, cv))
    return _checked_pairs(given, n)


def _split(examples: Examples[Any], cv: Any) -> Iterable[Pair]:
    """Return the folds of a splitter; labels are known to it if an example has one."""
    states, n = examples.states, examples.number
    pairs: Iterable[Pair] = cv.split(np.zeros((n, 1)), states if len(states) == n else None)
    return pairs


def _checked_pairs(given: list[Any], n: int) -> list[Pair]:
    """Return pairs of arrays of numbers of examples; raise unless they are that."""
    pairs = [tuple(np.asarray(part) for part in pair) for pair in given]
    sound = all(
        len(pair) == 2 and all(part.ndim == 1 and part.dtype.kind in "iu" and len(part) for part in pair)
        for pair in pairs
    )
    if not sound or len(pairs) < 2:
        raise ValueError("cv must be two or more pairs of arrays of ints, none empty.")
    numbers = np.concatenate([part for pair in pairs for part in pair])
    low, high = numbers.min(), numbers.max()
    if low < 0 or high != n - 1:
        raise ValueError(
            f"cv must have the numbers, from 0 to {n - 1}, of the {n} examples that are not empty "
            f"and have weights > 0, got {low} to {high}; leave other examples out before you split."
        )
    return cast("list[Pair]", pairs)


def _table(trials: list[Trial], n_folds: int) -> dict[str, Any]:
    """Return the trials as `cv_results_`, named as scikit-learn does, C in ascending order."""
    trials = sorted(trials, key=lambda trial: (trial.l1_ratio or 0.0, trial.C))
    scores = np.array([trial.scores for trial in trials]).reshape(-1, n_folds)
    seconds = np.array([trial.seconds for trial in trials]).reshape(-1, n_folds, 2)
    table: dict[str, Any] = {}
    for name, columns in zip(("fit_time", "score_time"), np.moveaxis(seconds, 2, 0), strict=True):
        table |= {f"mean_{name}": np.nanmean(columns, axis=1), f"std_{name}": np.nanstd(columns, axis=1)}
    names = ("C", "l1_ratio") if any(trial.l1_ratio is not None for trial in trials) else ("C",)
    table |= {f"param_{name}": np.array([getattr(trial, name) for trial in trials]) for name in names}
    table |= {"params": [{name: getattr(trial, name) for name in names} for trial in trials]}
    table |= {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
    table |= {"mean_test_score": scores.mean(axis=1), "std_test_score": scores.std(axis=1)}
    losses = np.nan_to_num(-table["mean_test_score"], nan=np.inf)
    table["rank_test_score"] = np.array([1 + int((losses < loss).sum()) for loss in losses], dtype=np.int64)
    return table
