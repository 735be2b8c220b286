"""What the paper's text claims, each checked against the results: numbers, and whether they agree."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from _curves import SUBOPTIMALITY, TEST_ERROR, Results
from _plan import BLOCK_METHODS, OURS

EARLY, MIDDLE = 1.0, 10.0
# Two curves this close count as doing alike.
ALIKE = 1.25
# Suboptimality counts as small below this share of the optimum.
SMALL_SHARE = 0.1
_PAPERS = (*BLOCK_METHODS, "online-EG", "FW", "FW-fix", "cutting plane")


class Case(NamedTuple):
    """One comparison: where, what was found in words, and whether it is what the paper says."""

    where: str
    found: str
    agrees: bool


class Claim(NamedTuple):
    """A sentence of the paper, the comparisons that test it, and the share that must agree."""

    text: str
    cases: Callable[[Results], Iterator[Case]]
    needed: float = 1.0


def _last(results: Results, dataset: str, lam: str, *methods: str) -> float:
    """Return the number of passes that all these methods reach."""
    return min(results.curve(dataset, lam, method, TEST_ERROR).x[-1] for method in methods)


def _where(dataset: str, lam: str, passes: float) -> str:
    return f"{dataset}, λ = {lam}, pass {passes:.0f}"


def _ratios(
    results: Results, quantity: str, pairs: list[tuple[str, str]], settings: list[tuple[str, str]]
) -> Iterator[tuple[str, str, float]]:
    """Yield where, "a / b" and the ratio of their medians, early, in the middle and at the end."""
    for dataset, lam in settings:
        for a, b in pairs:
            if not results.has(dataset, lam, a, b):
                continue
            for passes in _moments(_last(results, dataset, lam, a, b)):
                at_a, at_b = (results.curve(dataset, lam, m, quantity).at(passes) for m in (a, b))
                yield _where(dataset, lam, passes), f"{a} / {b}", at_a / at_b


def _moments(last: float) -> list[float]:
    return [*(passes for passes in (EARLY, MIDDLE) if passes < last), last]


def _at_most(
    quantity: str,
    pairs: list[tuple[str, str]],
    bound: float,
    settings: list[tuple[str, str]] | None = None,
) -> Callable[[Results], Iterator[Case]]:
    """Return the cases of: the first of each pair has at most ``bound`` times what the second has."""

    def cases(results: Results) -> Iterator[Case]:
        for where, name, ratio in _ratios(results, quantity, pairs, settings or results.settings()):
            yield Case(where, f"{name} = {ratio:.3g}", ratio <= bound)

    return cases


def _dominates(results: Results) -> Iterator[Case]:
    """Yield who is ahead of all; BCFW-tavg, the other average of the same run, is shown but no competitor."""
    for dataset, lam in results.settings():
        methods = [m for m in _PAPERS if results.has(dataset, lam, m)]
        if "BCFW-wavg" not in methods or len(methods) < 2:
            continue
        for passes in _moments(_last(results, dataset, lam, *methods)):
            at = {m: results.curve(dataset, lam, m, SUBOPTIMALITY).at(passes) for m in methods}
            other = f", BCFW-tavg {at.pop('BCFW-tavg'):.3g}" if "BCFW-tavg" in at else ""
            best = min(at, key=lambda m: at[m])
            found = f"lowest: {best} ({at[best]:.3g}); BCFW-wavg {at['BCFW-wavg']:.3g}{other}"
            yield Case(_where(dataset, lam, passes), found, best == "BCFW-wavg")


def _is_worst(method: str, datasets: tuple[str, ...]) -> Callable[[Results], Iterator[Case]]:
    """Return the cases of: no other stochastic method has a higher objective."""

    def cases(results: Results) -> Iterator[Case]:
        for dataset, lam in results.settings():
            others = [m for m in BLOCK_METHODS if m != method and results.has(dataset, lam, m)]
            if dataset not in datasets or not others or not results.has(dataset, lam, method):
                continue
            for passes in _moments(_last(results, dataset, lam, method, *others))[1:]:
                at = {m: results.curve(dataset, lam, m, SUBOPTIMALITY).at(passes) for m in (method, *others)}
                worst = max(at, key=lambda m: at[m])
                found = f"highest: {worst} ({at[worst]:.3g}); {method} {at[method]:.3g}"
                yield Case(_where(dataset, lam, passes), found, worst == method)

    return cases


def _roughness(results: Results, dataset: str, lam: str, method: str) -> float:
    """Return the mean over seeds of the sum of all rises of the log suboptimality after the first pass."""
    sums = []
    for passes, values in results.seeds(dataset, lam, method, SUBOPTIMALITY):
        steps = np.diff(np.log(np.maximum(values[passes >= EARLY], 1e-12)))
        sums.append(np.maximum(steps, 0.0).sum())
    return float(np.mean(sums))


def _fluctuates(results: Results) -> Iterator[Case]:
    for dataset, lam in results.settings():
        if results.has(dataset, lam, "BCFW-tavg", "BCFW-wavg"):
            suffix, weighted = (_roughness(results, dataset, lam, m) for m in ("BCFW-tavg", "BCFW-wavg"))
            found = f"rises of log suboptimality: BCFW-tavg {suffix:.3g}, BCFW-wavg {weighted:.3g}"
            yield Case(f"{dataset}, λ = {lam}", found, suffix > weighted)


def _overfits(results: Results) -> Iterator[Case]:
    if results.has("OCR", "0.001", "BCFW-wavg"):
        curve = results.curve("OCR", "0.001", "BCFW-wavg", TEST_ERROR)
        k = int(np.argmin(curve.median))
        found = f"least {curve.median[k]:.4f} at pass {curve.x[k]:.1f}, {curve.median[-1]:.4f} at the last"
        yield Case("OCR, λ = 0.001", found, bool(curve.median[k] < curve.median[-1]))


def _accelerated(results: Results) -> Iterator[Case]:
    for dataset, lam in results.settings():
        if not results.has(dataset, lam, OURS, "BCFW-wavg"):
            continue
        ours, theirs = (results.curve(dataset, lam, m, SUBOPTIMALITY) for m in (OURS, "BCFW-wavg"))
        reached = np.flatnonzero(ours.median <= theirs.median[-1])
        when = f"{ours.x[reached[0]]:.2g}" if len(reached) else f"more than {ours.x[-1]:.0f}"
        found = f"{when} passes to where BCFW-wavg is after {theirs.x[-1]:.0f}"
        yield Case(f"{dataset}, λ = {lam}", found, bool(len(reached)) and ours.x[reached[0]] < theirs.x[-1])


def _never_behind(results: Results) -> Iterator[Case]:
    """Yield the largest ratio of passes, and of seconds, to a suboptimality that BCFW-wavg reaches."""
    for dataset, lam in results.settings():
        if not results.has(dataset, lam, OURS, "BCFW-wavg"):
            continue
        for x in ("passes", "seconds"):
            ours, theirs = (results.curve(dataset, lam, m, SUBOPTIMALITY, x) for m in (OURS, "BCFW-wavg"))
            levels = theirs.median[theirs.median < SMALL_SHARE * results.bound(dataset, lam)]
            levels = levels[levels < ours.median[0]]  # the first checkpoint may be below others already
            ratios = [(ours.reaches(level) / theirs.reaches(level), level) for level in levels]
            if ratios:
                worst, level = max(ratios)
                found = f"at most {worst:.2f} of its {x}, at a suboptimality of {level:.2g}"
                yield Case(f"{dataset}, λ = {lam}", found, worst <= 1.0)


_SMALL = [("OCR", "1/n"), ("OCR", "0.001")]
_OCR = [("OCR", lam) for lam in ("0.01", "0.001", "1/n")]
_BATCH_SSG = [("FW", "SSG"), ("cutting plane", "SSG")]
_SSG_BATCH = [(a, b) for a in ("BCFW", "SSG") for b in ("FW", "cutting plane")]

CLAIMS = [
    Claim(
        "BCFW-wavg dominates all competitors in most experiments, above all early and at small λ",
        _dominates,
        needed=0.5,  # "most"
    ),
    Claim(
        "at λ = 0.01 on OCR, BCFW and SSG do considerably better than the batch methods",
        _at_most(SUBOPTIMALITY, _SSG_BATCH, 1.0, [("OCR", "0.01")]),
    ),
    Claim(
        "at λ = 1/n on OCR, even the batch methods have a lower objective than SSG",
        _at_most(SUBOPTIMALITY, _BATCH_SSG, 1.0, [("OCR", "1/n")]),
    ),
    Claim(
        "with predefined steps BCFW does about as SSG does, no better (SSG at most 1.25 times it)",
        _at_most(SUBOPTIMALITY, [("SSG", "BCFW-fix")], ALIKE, _OCR),
    ),
    Claim(
        "at small λ, BCFW with predefined steps is worse than FW with line search in the early passes",
        _at_most(SUBOPTIMALITY, [("FW", "BCFW-fix")], 1.0, _SMALL),
    ),
    Claim("online-EG is the worst of the stochastic methods on OCR", _is_worst("online-EG", ("OCR",))),
    Claim(
        "SSG-avg has the worst objective of the stochastic methods but online-EG",
        _is_worst("SSG-avg", ("OCR", "CoNLL", "matching")),
    ),
    Claim(
        "averaging lowers the test error",
        _at_most(TEST_ERROR, [("BCFW-wavg", "BCFW"), ("SSG-wavg", "SSG")], 1.0),
    ),
    Claim(
        "SSG-wavg sometimes has a lower test error than BCFW-wavg",
        _at_most(TEST_ERROR, [("SSG-wavg", "BCFW-wavg")], 1.0),
        needed=0.1,  # "sometimes"
    ),
    Claim("BCFW-tavg fluctuates more than BCFW-wavg", _fluctuates),
    Claim("at λ = 0.001 on OCR, BCFW-wavg's test error falls early and then rises", _overfits),
    Claim("(ours) accelerated steps are sooner where BCFW-wavg ends", _accelerated),
    Claim(
        "(ours) accelerated steps take no longer than BCFW-wavg to any suboptimality below 10 %",
        _never_behind,
    ),
]
