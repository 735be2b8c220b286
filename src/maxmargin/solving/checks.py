"""Checks of a user's problem, with an explanation of each defect found."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.methods.scratch import Scratch, new_scratch
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import described, errors_of
from maxmargin.solving.driver import check_count, generator
from maxmargin.solving.kinds import checked_problem
from maxmargin.structures.feature_map import (
    add_entry,
    gram,
    inner,
    norm2,
    push,
    rebuilt,
    reset,
    score,
    unconstrained,
)
from maxmargin.structures.oracle import argmax, decode, is_exact, loss, psi, write_output
from maxmargin.structures.problem import AnyProblem, Problem, sizes
from maxmargin.structures.slack import is_rescaled

# Tolerance for rounding between two ways to compute a number, relative to its terms.
_ROUNDING = 1e-9
# Scales of the weights at which the oracle is called; at scale 1, scores are as large as losses.
_SCALES = (0.0, 0.1, 0.1, 1.0, 1.0, 10.0, 10.0)
_TRUTH_STEPS = 20


class Finding(NamedTuple):
    """A defect: the check that found it, the example, and a message with advice."""

    check: str
    example: int | None
    message: str


class Judged(NamedTuple):
    """An output to compare the oracle's answers with: its loss, and its psi by index and value."""

    loss: float
    where: Any
    value: FloatArray

    def score(self, theta: FloatArray) -> float:
        """Return its score minus the truth's."""
        return -float(self.value @ theta[self.where])


class Asked(NamedTuple):
    """Weights, their scores, and the planes of both oracles' answers."""

    w: FloatArray
    theta: FloatArray
    argmax: Judged
    decode: Judged


class Flawed(Exception):
    """A check has failed; its name and message are the arguments."""


class Probe:
    """The checks of one example."""

    def __init__(
        self, problem: AnyProblem, i: int, outputs: Iterable[object], rng: np.random.Generator
    ) -> None:
        self.problem, self.i, self.outputs, self.rng = problem, i, outputs, rng
        self.map, self.oracle = problem
        self.size = sizes(problem)
        self.scratch: Scratch = new_scratch(problem)
        self.asked: list[Asked] = []
        self.planes: list[Judged] = []

    def findings(self) -> Iterator[Finding]:
        """Yield the finding of each check; if a function fails, the checks of its answers are skipped."""
        checks: list[Callable[[], None]] = [self.answers, self.truth]
        checks += [self.linearity, self.adjoint, self.gram]
        if is_exact(self.oracle):
            checks.append(self.maximum)
            if not is_rescaled(self.oracle):  # its psi is not that of predictions
                checks.append(self.prediction)
        for check in checks:
            try:
                check()
            except Flawed as flaw:
                name, message = flaw.args
                yield Finding(name, self.i, f"{name}: example {self.i} {message}.")
                if check == self.answers:
                    return

    def answers(self) -> None:
        """Call both oracles at a few weights."""
        try:
            unit = self._unit()
            for scale in _SCALES:
                self._ask(rebuilt(self.map, scale * unit * self.rng.normal(size=self.size.weights)))
            self.planes += [self._plane_of(output) for output in self.outputs]
        except (Flawed, KeyboardInterrupt):
            raise
        except Exception as error:
            raise Flawed("functions", f"makes a function raise {told(error)}") from error

    def _unit(self) -> float:
        """Return the size of weights that makes scores about as large as losses."""
        plane = self._answer(argmax, np.zeros(self.size.weights))
        w = self._pushed(plane)
        length = float(np.sqrt(inner(self.map, w, w)))
        return max(plane.loss, 1.0) / length if length > 1e-12 else 1.0  # the answer may be the truth

    def _ask(self, w: FloatArray) -> None:
        pair = [self._answer(oracle, w) for oracle in (argmax, decode)]
        for oracle, plane in zip((argmax, decode), pair, strict=True):
            if not _same(plane, self._answer(oracle, w)):
                name = oracle.__name__
                raise Flawed(
                    "twice", f"gets two answers of {name} at the same weights; it must be deterministic"
                )
        self.asked.append(Asked(w, self._theta(w), *pair))
        self.planes += pair

    def _theta(self, w: FloatArray) -> FloatArray:
        before, theta = w.copy(), self.scratch.block.theta
        score(self.map, self.i, w, theta)
        _expect_same(w, before, "score changes the weights; write to theta only")
        return theta.copy()

    def _answer(self, oracle: Callable[..., object], w: FloatArray) -> Judged:
        theta, scratch, name = self._theta(w), self.scratch, oracle.__name__
        oracle(self.oracle, self.i, scratch.block.theta, scratch.y, scratch.oracle)
        _expect_same(scratch.block.theta, theta, f"{name} changes the scores it is given; work on a copy")
        return self._plane()

    def _plane_of(self, output: object) -> Judged:
        write_output(self.oracle, self.i, output, self.scratch.y)
        return self._plane()

    def _plane(self) -> Judged:
        """Return the plane of the current output, after computing it twice."""
        first, second = (self._plane_once() for _ in range(2))
        if not _same(first, second):
            raise Flawed("twice", "gets two values of loss or psi for one output; they must be deterministic")
        return first

    def _plane_once(self) -> Judged:
        corner, y = self.scratch.block.corner, self.scratch.y
        before = y.copy()
        count = psi(self.oracle, self.i, y, corner.where, corner.value)
        loss_y = loss(self.oracle, self.i, y)
        _expect_same(y, before, "loss or psi changes the output; work on a copy")
        if not 0 <= count <= self.size.parts:
            raise Flawed(
                "psi", f"has {count} entries of psi, expected at most sizes().parts, {self.size.parts}"
            )
        where, value = corner.where[:count].copy(), corner.value[:count].copy()
        if (where >= self.size.statistics).any() or not np.isfinite(value).all():
            raise Flawed("psi", "has entries of psi outside sizes().statistics, or that are not finite")
        if not 0.0 <= loss_y < np.inf:
            raise Flawed("loss", f"has an output of loss {loss_y}; losses are finite and at least 0")
        return Judged(float(loss_y), where, value)

    def _pushed(self, *planes: Judged, by: Sequence[float] | FloatArray = (1.0,)) -> FloatArray:
        """Return the weights of a sum of planes."""
        w, move = np.zeros(self.size.weights), self._move(planes, by)
        push(self.map, self.i, move, 1.0, w, self.scratch.block.map)
        return w

    def _move(self, planes: Sequence[Judged], by: Sequence[float] | FloatArray) -> Any:
        reset(self.scratch.block.move)
        for plane, scale in zip(planes, by, strict=True):
            for p, value in zip(plane.where, plane.value, strict=True):
                add_entry(self.scratch.block.move, p, scale * value)
        return self.scratch.block.move

    def truth(self) -> None:
        """Check that the loss is zero once the example is learnt and its truth is predicted."""
        w = np.zeros(self.size.weights)
        for _ in range(_TRUTH_STEPS):
            plane = self._answer(decode, w)
            step = self._pushed(plane)
            if not step.any():
                break
            w += step
        if not step.any() and plane.loss > 0.0:
            raise Flawed(
                "truth",
                f"has loss {plane.loss:.6g} for an output whose features are those of the truth; "
                "the loss of the truth must be 0",
            )

    def linearity(self) -> None:
        """Check that the scores of a sum of weights are the sum of their scores."""
        a, b = self.asked[-1], self.asked[-2]
        found, expected = self._theta(a.w + 0.5 * b.w), a.theta + 0.5 * b.theta
        if not _close(found, expected):
            raise Flawed("score", "has scores that are not linear in the weights; score is Phi_i' w")

    def _direction(self) -> tuple[Any, FloatArray]:
        """Return a random combination of psi, as a move, and the weights that `push` makes of it."""
        by = self.rng.normal(size=len(self.planes))
        w = self._pushed(*self.planes, by=by)
        return self._move(self.planes, by), w

    def adjoint(self) -> None:
        """Check that ``<push(delta), w> == <delta, score(w)>``."""
        move, pushed = self._direction()
        for asked in self.asked:
            found, expected = inner(self.map, pushed, asked.w), float(move.delta @ asked.theta)
            size = np.sqrt(inner(self.map, pushed, pushed) * inner(self.map, asked.w, asked.w))
            if not _close(found, expected, float(size)):
                raise Flawed(
                    "push",
                    f"has pushed weights that score {found:.6g}, expected {expected:.6g}; "
                    "push adds scale * Phi_i delta, with the Phi_i of score",
                )

    def gram(self) -> None:
        """Check that ``gram(delta) == score(push(delta))`` where psi has entries, and that norm2 agrees."""
        move, pushed = self._direction()
        image, work = self.scratch.block.image, self.scratch.block.map
        expected = self._theta(pushed)
        gram(self.map, self.i, move, image, work)
        places = np.unique(np.concatenate([plane.where for plane in self.planes]))
        if not _close(image[places], expected[places]):
            raise Flawed("gram", "has a gram that is not score(push(delta)): it is Phi_i' Phi_i delta")
        found, square = norm2(self.map, self.i, move, image, work), inner(self.map, pushed, pushed)
        if not _close(found, square):
            raise Flawed("gram", f"has norm2 {found:.6g}, expected that of the weights pushed, {square:.6g}")

    def maximum(self) -> None:
        """Check that neither the truth nor any output seen is better than the max oracle's answer."""
        for asked in self.asked:
            found = asked.argmax.loss + asked.argmax.score(asked.theta)
            best = max([0.0, *(plane.loss + plane.score(asked.theta) for plane in self.planes)])
            if not found >= best - _ROUNDING * (1.0 + abs(best)):
                raise Flawed(
                    "argmax",
                    f"has an output with loss plus score {best:.6g} above the truth's, but argmax returns "
                    f"one with {found:.6g}; {self._advice()}",
                )

    def _advice(self) -> str:
        if all(self._is_worst(asked) for asked in self.asked):
            return "argmax returns the smallest value: take the largest"
        if all(_same(asked.argmax, asked.decode) for asked in self.asked):
            return "argmax returns the prediction: add the loss to the scores"
        return "it must return the best of all outputs, by the features and the loss of the other functions"

    def _is_worst(self, asked: Asked) -> bool:
        """Whether no output seen is worse than the max oracle's answer."""
        found = asked.argmax.loss + asked.argmax.score(asked.theta)
        return found <= min([0.0, *(plane.loss + plane.score(asked.theta) for plane in self.planes)])

    def prediction(self) -> None:
        """Check that neither the truth nor any output seen scores more than the prediction."""
        for asked in self.asked:
            found = asked.decode.score(asked.theta)
            best = max([0.0, *(plane.score(asked.theta) for plane in self.planes)])
            if not found >= best - _ROUNDING * (1.0 + abs(best)):
                raise Flawed(
                    "decode",
                    f"has an output that scores {best:.6g} above the truth, but the prediction scores "
                    f"{found:.6g}; it must be the best of all outputs, without the loss",
                )


def told(error: Exception) -> str:
    """Return an error of a user's function as one line, with the notes that name function and example."""
    said = " ".join(str(error).split()).rstrip(".")
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {said}{notes}"


def _same(a: Judged, b: Judged) -> bool:
    return a.loss == b.loss and np.array_equal(a.where, b.where) and np.array_equal(a.value, b.value)


def _close(found: float | FloatArray, expected: float | FloatArray, size: float = 0.0) -> bool:
    scale = 1.0 + max(size, float(np.max(np.abs(expected), initial=0.0)))
    return bool(np.max(np.abs(found - expected), initial=0.0) <= _ROUNDING * scale)


def _expect_same(array: ArrayLike, before: ArrayLike, message: str) -> None:
    if not np.array_equal(array, before):
        raise Flawed("arguments", f"shows a side effect: {message}")


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
    with errors_of("check_problem"):
        check_count("n_examples", n_examples)
        rng, found = generator(random_state), dict[str, Finding]()
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
