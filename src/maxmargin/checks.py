"""What is wrong with a problem: a diagnosis of a user's functions, with an explanation of what was found."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._arguments import check_protocol
from maxmargin._probe import Finding, Probe
from maxmargin.problems._protocol import sizes
from maxmargin.problems.signs import Signed


class Report(NamedTuple):
    """What `check_problem` found; as text, one line for each finding.

    Attributes
    ----------
    findings : tuple of Finding
        The first of each check.
    examples : int
        How many examples were looked at.
    """

    findings: tuple[Finding, ...]
    examples: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        if self.ok:
            return f"check_problem: nothing wrong with the {self.examples} examples looked at"
        return "\n".join(finding.message for finding in self.findings)

    def raise_if_any(self) -> None:
        """Raise a ValueError with the first finding, if there is one."""
        if self.findings:
            raise ValueError(f"check_problem: {self.findings[0].message}")


def check_problem(
    subject: Any,
    X: Any = None,
    y: Any = None,
    *,
    outputs: Sequence[Iterable[Any]] | None = None,
    n_examples: int = 10,
    random_state: Any = 0,
) -> Report:
    """Look for what is wrong with a problem: its oracle, its loss, its features.

    On a few examples, at weights that are zero, random or learnt from the example: all functions give the
    same answer twice, and change none of their arguments; losses are at least zero, and zero for the truth;
    the max oracle is as good as every other output met, the prediction as well; and `score`, `push` and
    `gram` are made of one linear map.

    Parameters
    ----------
    subject : problem, or StructuredSVC
        A problem as `solve` takes it; or an estimator, together with its data.
    X, y : lists, optional
        Examples and truths, for an estimator.
    outputs : sequence of iterables, optional
        Outputs that example i may have: the oracle must be as good as each of ``outputs[i]`` too. By default
        those that it returns itself, at other weights.
    n_examples : int
        Look at the first so many examples.
    random_state : int or Generator
        Seed of the weights.

    Returns
    -------
    Report
        ``report.ok`` if nothing was found; ``print(report)`` explains, ``report.raise_if_any()`` raises.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVC, check_problem
    >>> def argmax(x, w, y_true=None):  # the loss is left out
    ...     return int(np.argmax([w @ np.eye(2)[y] * x for y in (0, 1)]))
    >>> model = StructuredSVC(lambda x, y: np.eye(2)[y] * x, lambda y_true, y: float(y != y_true), argmax)
    >>> print(check_problem(model, [1.0, 2.0], [0, 1]))  # doctest: +ELLIPSIS
    argmax: example 0 has an output ...; argmax answers as the prediction does: add the loss to the scores.
    """
    try:
        problem = subject.problem(X, y) if callable(getattr(subject, "problem", None)) else subject
        check_protocol(problem)
        problem = problem.inner if isinstance(problem, Signed) else problem  # whose map is linear
    except (TypeError, ValueError) as error:
        return Report((Finding("functions", None, f"functions: {error}"),), 0)
    rng, found = np.random.default_rng(random_state), dict[str, Finding]()
    count = min(n_examples, sizes(problem).examples)
    for i in range(count):
        for finding in Probe(problem, i, () if outputs is None else outputs[i], rng).findings():
            found.setdefault(finding.check, finding)
    return Report(tuple(found.values()), count)
