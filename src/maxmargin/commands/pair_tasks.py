"""Tasks whose pairs of neighbouring labels have weights that depend on the tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from maxmargin.commands.tasks import Columns, Example, Labels
from maxmargin.encoding.grids import grid_edges

# The features of tokens that have none: estimators expect one, and the weights of zeros stay zero.
_NONE = {"none": 0.0}

if TYPE_CHECKING:
    from maxmargin.encoding.labels import Labels as LabelArray
    from maxmargin.formats.column_features import ColumnFeatures
    from maxmargin.formats.columns import Sentence


class PairColumns(Columns):
    """Sentences in columns, with a template such as ``B01:%x[0,0]``: graphs whose edges join neighbours.

    Tokens have no features if the template has none for them.
    """

    estimators = ("graph",)
    describes_pairs = True

    @property
    def note(self) -> str:
        parsed = self._features.parsed
        assert parsed is not None  # as it describes pairs
        return (
            f"template: {len(parsed.macros)} features per token, {len(parsed.bigrams)} per pair of neighbours"
        )

    @property
    def data(self) -> str:
        return "a template with features of pairs of labels"

    def _example(self, sentence: "Sentence") -> Example["Sentence", Labels]:
        """Return the graph, the labels and the sentence; a line that starts a document has no tokens."""
        if sentence.starts_document:
            return Example(([], [], []), [], sentence, 0)
        rows, n = sentence.rows, len(sentence.rows)
        tokens = [names or _NONE for names in self._features.of(rows)]
        graph = tokens, grid_edges((1, n)), self._features.of_pairs(rows)
        return Example(graph, sentence.column(-1), sentence, n)

    def outputs(self, predicted: object) -> Sequence[Labels]:
        return [labels.tolist() for labels in cast("Sequence[LabelArray]", predicted)]


def column_task(features: "ColumnFeatures") -> Columns:
    """Return the task of columns with these features."""
    return (PairColumns if features.describes_pairs else Columns)(features.template, features.columns)
