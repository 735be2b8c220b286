"""Solvers of benchopt: methods of this library, each one watched run of `solve`, and rivals."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from benchopt import BaseSolver

from benchmark_utils.rivals import CrfSuite, iterations_upto
from benchmark_utils.trajectory import Row, Watch, Watched, checkpoints
from maxmargin import Status, solve
from maxmargin.structures.problem import sizes
from maxmargin.structures.sequences.oracle import ChainOracle


class MethodSolver(BaseSolver):
    """Base of the solvers; a subclass says what it is called and which method it is.

    Attributes
    ----------
    deterministic : bool
        Whether all seeds give the same run.
    sampling : str
        How examples are drawn: with replacement, as in the paper, unless a method says otherwise.
    cost : float
        About how many decoding passes a pass takes: an estimate of how long a run will last.
    """

    sampling_strategy = "run_once"
    deterministic: ClassVar[bool] = False
    sampling: ClassVar[str] = "uniform"
    cost: ClassVar[float] = 2.0

    @abstractmethod
    def method(self, lam: float) -> Any:
        """Return the method."""

    def set_objective(
        self,
        problem: Any,
        lam: float,
        first: float,
        passes: int,
        seconds: float,
        test_error: Callable[[Any], float],
        raw: Any,
    ) -> None:
        self.problem, self.lam, self.passes, self.seconds = problem, lam, passes, seconds
        self.stops, self.test_error = checkpoints(sizes(problem).examples, first, passes), test_error
        self.seed = self.get_seed(use_repetition=True)

    def warm_up(self) -> None:
        """Have everything compiled."""
        solve(self.problem, self.method(self.lam), tol=0.0, max_passes=1, random_state=0)

    def run(self, _: Any) -> None:
        watch = Watch(self.stops, self.test_error)
        result = solve(
            self.problem,
            Watched(self.method(self.lam), watch),
            tol=0.0,
            max_passes=self.passes,
            check_every=self.passes,
            sampling=self.sampling,
            callbacks=[lambda _: watch.seconds < self.seconds],
            random_state=self.seed,
        )
        if result.status is Status.INTERRUPTED:  # half a run must not be kept as a whole one
            raise KeyboardInterrupt
        self.rows: list[Row] = watch.rows

    def get_result(self) -> dict[str, Any]:
        return {"rows": self.rows}


class BatchSolver(MethodSolver):
    """Base of the methods that visit all examples before they move: every seed gives the same run."""

    deterministic = True
    cost = 1.5


class RivalSolver(BaseSolver):
    """Base of the systems outside this project; a subclass says what it suits and what it reaches."""

    sampling_strategy = "run_once"
    deterministic: ClassVar[bool] = True
    cost: ClassVar[float] = 25.0
    suits: ClassVar[type]

    def skip(self, problem: Any, **rest: Any) -> tuple[bool, str | None]:
        suitable = isinstance(problem.oracle, self.suits)
        return (
            not suitable,
            None if suitable else f"{self.name} solves problems of {self.suits.__name__} alone",
        )

    def set_objective(
        self, problem: Any, lam: float, passes: int, seconds: float, raw: Any, **rest: Any
    ) -> None:
        self.problem, self.lam, self.passes, self.seconds, self.raw = problem, lam, passes, seconds, raw

    @abstractmethod
    def row(self, iterations: int) -> Row:
        """Train from nothing for so many iterations; return what is reached."""

    def run(self, _: Any) -> None:
        self.rows: list[Row] = []
        for iterations in iterations_upto(self.passes):
            self.rows.append(self.row(iterations))
            if sum(row.seconds for row in self.rows) > self.seconds:
                break

    def get_result(self) -> dict[str, Any]:
        return {"rows": self.rows}


class CrfSuiteSolver(RivalSolver):
    """Base of python-crfsuite's algorithms, which have a regularisation of their own."""

    suits = ChainOracle
    algorithm: ClassVar[str]

    def row(self, iterations: int) -> Row:
        if not hasattr(self, "suite"):
            self.suite = CrfSuite(self.raw, self.algorithm)
        return self.suite.row(iterations)
