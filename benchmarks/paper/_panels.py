"""The paper's figures as data: which methods, which axes and which ranges each panel has."""

from typing import NamedTuple

from _curves import SUBOPTIMALITY, TEST_ERROR
from _plan import CRFSUITE, LAMS, OURS, PERCEPTRON


class Panel(NamedTuple):
    """One set of axes; ``None`` in place of a range leaves it to the data."""

    title: str
    dataset: str
    lam: str
    quantity: str
    methods: tuple[str, ...]
    xlim: tuple[float, float] | None
    ylim: tuple[float, float] | None
    xscale: str = "log"
    x: str = "passes"


_COMPARED = "BCFW", "BCFW-wavg", "SSG", "SSG-wavg", "FW", "cutting plane", OURS
_STOCHASTIC = (
    *("BCFW", "BCFW-wavg", "BCFW-tavg", "BCFW-fix"),
    *("SSG", "SSG-wavg", "SSG-tavg", "SSG-avg", "online-EG", OURS),
)
_STEPS = "BCFW", "BCFW-fix", "FW", "FW-fix", "SSG", "cutting plane", OURS
_RIVALS = OURS, "BCFW-wavg", "SSG-wavg", PERCEPTRON, *CRFSUITE

_OCR_X, _CONLL_X, _MATCHING_X = (1.0, 149.0), (0.1, 49.0), (0.1, 30.0)


def _main() -> list[Panel]:
    """Figure 1 of the paper, (a) to (f)."""
    with_eg = (*_COMPARED, "online-EG")
    ranges = ((0.01, 1.0), (0.02, 10.0), (0.06, 10.0))
    return [
        *(
            Panel(f"({letter}) OCR, λ = {lam}", "OCR", lam, SUBOPTIMALITY, with_eg, _OCR_X, ylim, "linear")
            for letter, lam, ylim in zip("abc", LAMS, ranges, strict=True)
        ),
        Panel("(d) CoNLL, λ = 1/n", "CoNLL", "1/n", SUBOPTIMALITY, _COMPARED, (0.1, 48.0), (0.002, 5.0)),
        Panel("(e) CoNLL, λ = 1/n", "CoNLL", "1/n", TEST_ERROR, _COMPARED, (0.1, 48.0), (0.04, 0.10)),
        Panel(
            "(f) matching, λ = 0.001", "matching", "0.001", SUBOPTIMALITY, _COMPARED, (0.01, 30), (1e-4, 100)
        ),
    ]


def _step_sizes() -> list[Panel]:
    return [
        Panel(f"OCR, λ = {lam}", "OCR", lam, SUBOPTIMALITY, _STEPS, _OCR_X, (1e-2, 1e3), "linear")
        for lam in LAMS
    ]


def _appendix(
    dataset: str,
    xlim: tuple[float, float],
    xscale: str,
    objectives: tuple[tuple[float, float], ...],
    errors: tuple[tuple[float, float], ...],
) -> list[Panel]:
    """Suboptimality above and test error below, a column for each lam."""
    rows = ((SUBOPTIMALITY, objectives), (TEST_ERROR, errors))
    return [
        Panel(f"{dataset}, λ = {lam}", dataset, lam, quantity, _STOCHASTIC, xlim, ylim, xscale)
        for quantity, ranges in rows
        for lam, ylim in zip(LAMS, ranges, strict=True)
    ]


FIGURES: dict[str, list[Panel]] = {
    "figure1": _main(),
    "step_sizes": _step_sizes(),
    "ocr": _appendix(
        "OCR", _OCR_X, "linear", ((0.01, 100.0),) * 3, ((0.12, 0.15), (0.11, 0.23), (0.11, 0.23))
    ),
    "conll": _appendix(
        "CoNLL", _CONLL_X, "log", ((0.001, 100.0), (0.001, 100.0), (0.01, 100.0)), ((0.04, 0.07),) * 3
    ),
    "matching": _appendix("matching", _MATCHING_X, "log", ((1e-4, 100.0),) * 3, ((0.05, 0.15),) * 3),
    "rivals": [
        Panel("OCR", "OCR", "1/n", TEST_ERROR, _RIVALS, None, (0.10, 0.20), x="seconds"),
        Panel("CoNLL", "CoNLL", "1/n", TEST_ERROR, _RIVALS, None, (0.035, 0.07), x="seconds"),
        Panel(
            *("digits, λ = 0.001", "digits", "0.001", SUBOPTIMALITY),
            *(("BCFW", "BCFW-wavg", OURS, "liblinear"), None, None),
            x="seconds",
        ),
    ],
}
