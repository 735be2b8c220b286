"""Checks of a user's problem, with an explanation of each defect found."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from maxmargin._arguments import check_count, checked_problem, generator
from maxmargin._probe import Finding, Probe, told
from maxmargin.problems.feature_map import unconstrained
from maxmargin.problems.problem import Problem, sizes
from maxmargin.wording import described


class Report(NamedTuple):
    """The findings of `check_problem`; as text, one line for each.

    Attributes
    ----------
    findings : tuple of Finding
        The first finding of each check.
    examples : int
        Number of examples checked.
    """

    findings: tuple[Finding, ...]
    examples: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        if self.ok:
            return f"check_problem: nothing wrong with the {self.examples} examples checked"
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
    """Look for defects in a problem: in its oracle, its loss and its features.

    The checks use a few examples, and weights that are zero, random or learnt from the example. They check
    that all functions are deterministic and do not change their arguments; that losses are at least zero,
    zero for the truth and positive for some output; that the answers of the max oracle and of the prediction
    are as good as all other outputs seen; and that `score`, `push` and `gram` use the same linear map.

    Parameters
    ----------
    subject : problem, or StructuredSVC
        A problem for `solve`; or an estimator, together with its data.
    X, y : lists, optional
        Examples and truths, for an estimator.
    outputs : sequence of iterables, optional
        Further outputs of the examples: the oracle's answer for example i must be as good as each of
        ``outputs[i]``. Outputs that the oracle returns at other weights are always compared.
    n_examples : int
        Check the first ``n_examples`` examples.
    random_state : int or Generator
        Seed of the random weights.

    Returns
    -------
    Report
        ``report.ok`` if nothing was found; ``print(report)`` explains the findings, and
        ``report.raise_if_any()`` raises the first.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVC, check_problem
    >>> def argmax(x, w, y_true=None):  # the loss is left out
    ...     return int(np.argmax([w @ np.eye(2)[y] * x for y in (0, 1)]))
    >>> model = StructuredSVC(lambda x, y: np.eye(2)[y] * x, lambda y_true, y: float(y != y_true), argmax)
    >>> print(check_problem(model, [1.0, 2.0], [0, 1]))  # doctest: +ELLIPSIS
    argmax: example 0 has an output ...; argmax returns the prediction: add the loss to the scores.
    """
    try:
        problem = subject.problem(X, y) if callable(getattr(subject, "problem", None)) else subject
        phi, oracle = checked_problem(problem)
        problem = Problem(unconstrained(phi), oracle)  # a linear map
    except Exception as error:
        is_ours = isinstance(error, TypeError | ValueError) and not hasattr(error, "__notes__")
        said = str(error) if is_ours else f"{told(error)}."
        return Report((Finding("functions", None, f"functions: {said}"),), 0)
    check_count("n_examples", n_examples, "check_problem")
    rng, found = generator(random_state, "check_problem"), dict[str, Finding]()
    count = min(int(n_examples), sizes(problem).examples)
    _check_outputs(outputs, count)
    largest = 0.0
    for i in range(count):
        probe = Probe(problem, i, () if outputs is None else outputs[i], rng)
        for finding in probe.findings():
            found.setdefault(finding.check, finding)
        largest = max([largest, *(plane.loss for plane in probe.planes)])
    if not found and largest == 0.0:
        message = f"loss: no output seen of {count} examples has a loss above 0; there is nothing to learn."
        found["loss"] = Finding("loss", None, message)
    return Report(tuple(found.values()), count)


def _check_outputs(outputs: object, count: int) -> None:
    """Raise unless further outputs are given for each example, or for none."""
    if outputs is not None and (not isinstance(outputs, Sequence) or len(outputs) < count):
        raise ValueError(
            f"check_problem: outputs must be a sequence of outputs for each of {count} examples, "
            f"got {described(outputs)}."
        )
