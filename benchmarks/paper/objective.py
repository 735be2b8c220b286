"""The structural SVM's objective at one lam, measured at checkpoints of a run."""

from collections.abc import Callable
from typing import Any

from benchopt import BaseObjective

from benchmark_utils.trajectory import Row
from maxmargin.structures.problem import sizes


class Objective(BaseObjective):
    """The objective of the paper: regularised mean structured hinge loss.

    Parameters: ``lam``; the first checkpoint, in passes; the last pass; the seconds after which a run ends.
    """

    name = "structural SVM"
    min_benchopt_version = "1.10"
    parameters = {"lam": ["0.01", "0.001", "1/n"], "first": [0.1], "passes": [20], "seconds": [60.0]}  # noqa: RUF012
    sampling_strategy = "run_once"
    test_dataset_name = "digit words"

    def skip(self, problem: Any, missing: str, **rest: Any) -> tuple[bool, str | None]:
        return problem is None, missing or None

    def set_data(self, problem: Any, test_error: Callable[[Any], float], raw: Any, missing: str) -> None:
        self.problem, self.test_error, self.raw = problem, test_error, raw

    def get_objective(self) -> dict[str, Any]:
        lam = 1.0 / sizes(self.problem).examples if self.lam == "1/n" else float(self.lam)
        return {
            "problem": self.problem,
            "lam": lam,
            "first": self.first,
            "passes": self.passes,
            "seconds": self.seconds,
            "test_error": self.test_error,
            "raw": self.raw,
        }

    def evaluate_result(self, rows: list[Row]) -> list[dict[str, float]]:
        return [{"value": row.primal, **row._asdict()} for row in rows]

    def get_one_result(self) -> dict[str, list[Row]]:
        return {"rows": [Row(1.0, 1, 0.0, 1.0, 0.0, 1.0, 1.0)]}
