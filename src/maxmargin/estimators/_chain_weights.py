"""The weights of a chain: as arrays, by name, and as tables."""

from maxmargin.arrays import FloatArray
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._base import Output
from maxmargin.estimators._examples import Data
from maxmargin.estimators._inspection import (
    LabelFeatureInspector,
    TransitionInspector,
    WeightTable,
    by_name,
    joint_table,
)
from maxmargin.estimators._sequences import SequenceEstimator, feature_part, weights_part


class ChainWeights(LabelFeatureInspector, TransitionInspector, SequenceEstimator[Data, Output]):
    """Base of `ChainSVC`: its weights."""

    classes_: Labels
    _order: int

    coef_ = feature_part("unary", "coef_", "Feature weights of each label.")
    transitions_ = weights_part("transitions", "Scores of each label after each label.")
    start_ = weights_part("start", "Score of each label at the start of a sequence.")
    end_ = weights_part("end", "Score of each label at the end of a sequence.")

    @property
    def state_features_(self) -> dict[tuple[str | int, str | int], float]:
        """Nonzero feature weights by (feature, label), from the largest to the smallest."""
        return by_name(self._feature_tables())

    @property
    def transition_features_(self) -> dict[tuple[str | int | None, str | int | None], float]:
        """Nonzero scores of a label after a label, or None at the start and the end, largest first."""
        return by_name(self._pair_tables())

    def _feature_tables(self) -> list[WeightTable]:
        return [WeightTable("token", self._feature_names(), self.classes_.tolist(), self.coef_.T)]

    def _pair_tables(self) -> list[WeightTable]:
        """Return the weights of a label after a label, or at the start or the end."""
        labels, none = self.classes_.tolist(), [None]
        return [
            joint_table("transition", self.transitions_, labels, labels),
            joint_table("start", self.start_, none, labels),
            joint_table("end", self.end_, labels, none),
        ]

    def _transition_tables(self) -> list[WeightTable]:
        tables, labels = self._pair_tables(), self.classes_.tolist()
        return (
            tables if self._order == 1 else [*tables, joint_table("trigram", self.trigrams_, *3 * [labels])]
        )

    @property
    def trigrams_(self) -> FloatArray:
        """Scores of each label after each two labels, for a model of order 2."""
        weights = self._weights
        if self._order == 1:
            raise AttributeError(
                f"{self._owner}: trigrams_ needs a model of order 2, got order 1; fit with order=2."
            )
        found: FloatArray = weights.trigrams  # type: ignore[attr-defined]
        return found
