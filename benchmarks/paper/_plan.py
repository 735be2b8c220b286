"""What is run: methods, problems, values of lam, seeds and limits, in two profiles."""

from typing import NamedTuple

LAMS = "0.01", "0.001", "1/n"
BLOCK_METHODS = "BCFW", "BCFW-wavg", "BCFW-tavg", "BCFW-fix", "SSG", "SSG-wavg", "SSG-tavg", "SSG-avg"
BATCH_METHODS = "FW", "cutting plane", "BMRM"
EXPECTATION_METHODS = "online-EG", "extragradient", "excessive gap"
OURS, PERCEPTRON = "accelerated", "perceptron"
CRFSUITE = "crfsuite-ap", "crfsuite-l2sgd"


class Limits(NamedTuple):
    """How far runs go: the first checkpoint and the last one in passes, seconds, and seeds."""

    passes: int
    seconds: float
    seeds: int
    first: float = 0.1


class Group(NamedTuple):
    """All seeds of one method on one problem at one lam: the unit that is run and stored."""

    dataset: str
    lam: str
    solver: str
    limits: Limits


def _groups(dataset: str, lams: tuple[str, ...], solvers: tuple[str, ...], limits: Limits) -> list[Group]:
    return [Group(dataset, lam, solver, limits) for lam in lams for solver in solvers]


def full() -> list[Group]:
    """Return the paper's experiments, and the rivals'.

    Systems that know no lam run once. The paper leaves online-EG out of all but OCR, where it did worst.
    """
    everywhere = (*BLOCK_METHODS, *BATCH_METHODS, OURS)
    ocr, conll = Limits(150, 60.0, 10), Limits(50, 60.0, 10)
    alignment = Limits(30, 60.0, 10, first=0.01)
    return [
        *_groups("OCR", LAMS, (*everywhere, "BCFW-fix-wavg", "FW-fix", *EXPECTATION_METHODS), ocr),
        *_groups("OCR", ("1/n",), (PERCEPTRON,), ocr),
        *_groups("OCR", ("1/n",), CRFSUITE, Limits(100, 90.0, 1)),
        *_groups("CoNLL", LAMS, everywhere, conll),
        *_groups("CoNLL", ("1/n",), (PERCEPTRON,), conll),
        *_groups("CoNLL", ("1/n",), CRFSUITE, Limits(100, 90.0, 1)),
        *_groups("matching", LAMS, everywhere, alignment),
        *_groups("digits", LAMS, ("BCFW", "BCFW-wavg", OURS, "liblinear"), Limits(100, 60.0, 10)),
    ]


def short() -> list[Group]:
    """Return a few passes of every method on data that need no download."""
    words = (*BLOCK_METHODS, *BATCH_METHODS, "FW-fix", "n-slack cutting plane", *EXPECTATION_METHODS)
    few = Limits(4, 10.0, 2)
    return [
        *_groups("digit words", ("1/n",), (*words, OURS, PERCEPTRON, "crfsuite-ap"), few),
        *_groups("digits", ("0.001",), ("BCFW", OURS, "liblinear"), few),
    ]


PROFILES = {"full": full, "short": short}


def chosen(groups: list[Group], only: list[str], seeds: int | None = None) -> list[Group]:
    """Return the groups of the named problems, methods and values of lam, with at most so many seeds each.

    Names of one kind add up, those of several kinds narrow down: ``OCR CoNLL accelerated`` is one method on
    two problems.
    """
    kinds = {group.dataset for group in groups}, {group.solver for group in groups}, {*LAMS}
    unknown = sorted(set(only).difference(*kinds))
    if unknown:
        raise SystemExit(
            f"--only: expected names of {', '.join(sorted(set().union(*kinds)))}; got {unknown[0]!r}"
        )
    datasets, solvers, lams = (kind & set(only) or kind for kind in kinds)
    return [
        _with_seeds(group, seeds or group.limits.seeds)
        for group in groups
        if group.dataset in datasets and group.solver in solvers and group.lam in lams
    ]


def _with_seeds(group: Group, most: int) -> Group:
    limits = group.limits
    return group._replace(limits=limits._replace(seeds=min(most, limits.seeds)))
