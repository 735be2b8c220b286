"""One example of a problem, with all that can be asked of it: the checks of `check_problem`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.methods._move import add_entry, reset
from maxmargin.methods._scratch import Scratch, new_scratch
from maxmargin.problems import Custom, SlackRescaled, Weighted
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._protocol import Sizes, sizes

# How far rounding may part two ways to the same number, relative to its terms.
_ROUNDING = 1e-9
# Weights at which the oracle is asked: so many times those at which scores are as large as losses.
_SCALES = (0.0, 0.1, 0.1, 1.0, 1.0, 10.0, 10.0)
_TRUTH_STEPS = 20


class Finding(NamedTuple):
    """Something that is wrong: which check found it, for which example, and what to do about it."""

    check: str
    example: int | None
    message: str


class Plane(NamedTuple):
    """An output as the oracle is judged by: its loss, and its psi by index and value."""

    loss: float
    where: Any
    value: FloatArray

    def score(self, theta: FloatArray) -> float:
        """Return how much better than the truth it scores."""
        return -float(self.value @ theta[self.where])


class Asked(NamedTuple):
    """Weights, the scores that follow from them, and the planes of both answers."""

    w: FloatArray
    theta: FloatArray
    argmax: Plane
    decode: Plane


class Flawed(Exception):
    """A finding, on its way out."""


class Probe:
    """One example, with all that is asked of it."""

    def __init__(self, problem: Any, i: int, outputs: Iterable[Any], rng: np.random.Generator) -> None:
        self.problem, self.i, self.outputs, self.rng = problem, i, outputs, rng
        self.unweighted = problem.inner if isinstance(problem, Weighted) else problem
        self.size: Sizes = sizes(problem)
        self.scratch: Scratch = new_scratch(problem)
        self.asked: list[Asked] = []
        self.planes: list[Plane] = []

    def findings(self) -> Iterator[Finding]:
        """Yield what each check finds; those that need answers need all functions to work."""
        checks: list[Callable[[], None]] = [self.answers, self.truth]
        checks += [self.linearity, self.adjoint, self.gram]
        if protocol.is_exact(self.problem):
            checks.append(self.oracle)
            if not isinstance(self.unweighted, SlackRescaled):  # whose psi is not that of predictions
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
        """Ask both oracles at a few weights."""
        try:
            unit = self._unit()
            for scale in _SCALES:
                self._ask(scale * unit * self.rng.normal(size=self.size.weights))
            self.planes += [self._plane_of(output) for output in self.outputs]
        except (Flawed, KeyboardInterrupt):
            raise
        except Exception as error:
            said = " ".join(str(error).split())
            raise Flawed("functions", f"makes a function raise {type(error).__name__}: {said}") from error

    def _unit(self) -> float:
        """Return about which size of weights makes scores as large as losses."""
        plane = self._answer(protocol.argmax, np.zeros(self.size.weights))
        w = self._pushed(plane)
        return max(plane.loss, 1.0) / max(float(np.linalg.norm(w)), 1e-12)

    def _ask(self, w: FloatArray) -> None:
        pair = [self._answer(oracle, w) for oracle in (protocol.argmax, protocol.decode)]
        for oracle, plane in zip((protocol.argmax, protocol.decode), pair, strict=True):
            if not _same(plane, self._answer(oracle, w)):
                name = oracle.__name__
                raise Flawed(
                    "twice", f"gets two answers of {name} at the same weights; it must always be one"
                )
        self.asked.append(Asked(w, self._theta(w), *pair))
        self.planes += pair

    def _theta(self, w: FloatArray) -> FloatArray:
        before, theta = w.copy(), self.scratch.theta
        protocol.score(self.problem, self.i, w, theta)
        _expect_same(w, before, "score changes the weights; write to theta alone")
        return theta.copy()

    def _answer(self, oracle: Any, w: FloatArray) -> Plane:
        theta, scratch, name = self._theta(w), self.scratch, oracle.__name__
        oracle(self.problem, self.i, scratch.theta, scratch.y, scratch.oracle)
        _expect_same(scratch.theta, theta, f"{name} changes the scores it is given; work on a copy")
        return self._plane()

    def _plane_of(self, output: Any) -> Plane:
        if isinstance(self.unweighted, Custom):
            self.unweighted.recall(self.i, output)
        else:
            self.scratch.y[: len(output)] = output
        return self._plane()

    def _plane(self) -> Plane:
        """Return the plane of the output in hand, made twice."""
        first, second = (self._plane_once() for _ in range(2))
        if not _same(first, second):
            raise Flawed(
                "twice", "gets two values of loss or psi for one output; they must depend on it alone"
            )
        return first

    def _plane_once(self) -> Plane:
        corner, y = self.scratch.corner, self.scratch.y
        before = y.copy()
        count = protocol.psi(self.problem, self.i, y, corner.where, corner.value)
        loss = protocol.loss(self.problem, self.i, y)
        _expect_same(y, before, "loss or psi changes the output; work on a copy")
        if not 0 <= count <= self.size.parts:
            raise Flawed(
                "psi", f"has {count} entries of psi, expected at most sizes().parts, {self.size.parts}"
            )
        where, value = corner.where[:count].copy(), corner.value[:count].copy()
        if (where >= self.size.statistics).any() or not np.isfinite(value).all():
            raise Flawed("psi", "has entries of psi outside sizes().statistics, or that are not finite")
        if not 0.0 <= loss < np.inf:
            raise Flawed("loss", f"has an output of loss {loss}; losses are finite and at least 0")
        return Plane(float(loss), where, value)

    def _pushed(self, *planes: Plane, by: Any = (1.0,)) -> FloatArray:
        """Return the weights of a sum of planes."""
        w, move = np.zeros(self.size.weights), self._move(planes, by)
        protocol.push(self.problem, self.i, move, 1.0, w, self.scratch.oracle)
        return w

    def _move(self, planes: Sequence[Plane], by: Any) -> Any:
        reset(self.scratch.move)
        for plane, scale in zip(planes, by, strict=True):
            for p, value in zip(plane.where, plane.value, strict=True):
                add_entry(self.scratch.move, p, scale * value)
        return self.scratch.move

    def truth(self) -> None:
        """Learn the example until the truth is predicted, and see that it costs nothing."""
        w = np.zeros(self.size.weights)
        for _ in range(_TRUTH_STEPS):
            plane = self._answer(protocol.decode, w)
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
        """Scores of a sum of weights are the sum of scores."""
        a, b = self.asked[-1], self.asked[-2]
        found, expected = self._theta(a.w + 0.5 * b.w), a.theta + 0.5 * b.theta
        if not _close(found, expected):
            raise Flawed("score", "has scores that are not linear in the weights; score is Phi_i' w")

    def _direction(self) -> tuple[Any, FloatArray]:
        """Return a random sum of psi, as a move, and the weights it is pushed to."""
        by = self.rng.normal(size=len(self.planes))
        w = self._pushed(*self.planes, by=by)
        return self._move(self.planes, by), w

    def adjoint(self) -> None:
        """``<push(delta), w> == <delta, score(w)>``"""
        move, pushed = self._direction()
        for asked in self.asked:
            found, expected = float(pushed @ asked.w), float(move.delta @ asked.theta)
            if not _close(found, expected, float(np.abs(pushed) @ np.abs(asked.w))):
                raise Flawed(
                    "push",
                    f"pushes a direction to weights that score {found:.6g}, expected {expected:.6g} by its "
                    "scores; push adds scale * Phi_i delta, with the Phi_i of score",
                )

    def gram(self) -> None:
        """``gram(delta) == score(push(delta))`` where psi has entries, and norm2 is what follows."""
        move, pushed = self._direction()
        image, work = self.scratch.image, self.scratch.oracle
        expected = self._theta(pushed)
        protocol.gram(self.problem, self.i, move, image, work)
        places = np.unique(np.concatenate([plane.where for plane in self.planes]))
        if not _close(image[places], expected[places]):
            raise Flawed("gram", "has a gram that is not score(push(delta)): it is Phi_i' Phi_i delta")
        norm2 = protocol.norm2(self.problem, self.i, move, image, work)
        if not _close(norm2, float(pushed @ pushed)):
            raise Flawed(
                "gram", f"has norm2 {norm2:.6g}, expected that of the weights pushed, {pushed @ pushed:.6g}"
            )

    def oracle(self) -> None:
        """No output met is better than the max oracle's answer, nor is the truth."""
        for asked in self.asked:
            found = asked.argmax.loss + asked.argmax.score(asked.theta)
            best = max([0.0, *(plane.loss + plane.score(asked.theta) for plane in self.planes)])
            if not found >= best - _ROUNDING * (1.0 + abs(best)):
                raise Flawed(
                    "argmax",
                    f"has an output of loss plus score {best:.6g} above the truth's, where argmax returns "
                    f"one of {found:.6g}; {self._advice()}",
                )

    def _advice(self) -> str:
        if all(_same(asked.argmax, asked.decode) for asked in self.asked):
            return "argmax answers as the prediction does: add the loss to the scores"
        return "it must be the largest of all outputs, by the features and the loss of the other functions"

    def prediction(self) -> None:
        """No output met scores more than the prediction, nor does the truth."""
        for asked in self.asked:
            found = asked.decode.score(asked.theta)
            best = max([0.0, *(plane.score(asked.theta) for plane in self.planes)])
            if not found >= best - _ROUNDING * (1.0 + abs(best)):
                raise Flawed(
                    "decode",
                    f"has an output that scores {best:.6g} above the truth, where the prediction scores "
                    f"{found:.6g}; it must be the largest of all outputs, without the loss",
                )


def _same(a: Plane, b: Plane) -> bool:
    return a.loss == b.loss and np.array_equal(a.where, b.where) and np.array_equal(a.value, b.value)


def _close(found: Any, expected: Any, size: float = 0.0) -> bool:
    scale = 1.0 + max(size, float(np.max(np.abs(expected), initial=0.0)))
    return bool(np.max(np.abs(found - expected), initial=0.0) <= _ROUNDING * scale)


def _expect_same(array: Any, before: Any, message: str) -> None:
    if not np.array_equal(array, before):
        raise Flawed("arguments", f"is not safe: {message}")
