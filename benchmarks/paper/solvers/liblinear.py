"""scikit-learn's LinearSVC (liblinear) on the multiclass problem."""

from benchmark_utils.rivals import crammer_singer_row
from benchmark_utils.solver import RivalSolver
from benchmark_utils.trajectory import Row
from maxmargin.structures.classes.model import MulticlassOracle


class Solver(RivalSolver):
    """scikit-learn's LinearSVC (liblinear) on the multiclass problem."""

    name = "liblinear"
    suits = MulticlassOracle

    def row(self, iterations: int) -> Row:
        return crammer_singer_row(self.raw, self.problem, self.lam, iterations)
