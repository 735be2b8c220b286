"""Features of the tokens of column files: by a template of CRF++, or those that words have by default."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maxmargin.formats.columns import split_fields
from maxmargin.formats.sources import Malformed, Source
from maxmargin.formats.templates import parse_template
from maxmargin.formats.word_features import described, word_features, word_template

if TYPE_CHECKING:
    from maxmargin.encoding.numbered import NumberedSequences


class ColumnFeatures:
    """How rows of columns become features.

    Parameters
    ----------
    template : str or None
        The text of the template.
    columns : int
        The number of columns, the label included.
    template_name : str
        The file of the template, for errors.
    """

    def __init__(self, template: str | None, columns: int, template_name: str = "template") -> None:
        self.template, self.columns = template, columns
        self.parsed = None if template is None else parse_template(template, template_name)
        self._features = word_features if self.parsed is None else self.parsed.features
        needed = 1 if self.parsed is None else self.parsed.n_columns
        if needed > columns - 1:
            raise Malformed(
                f"{template_name}: expected columns below {columns - 1}, as the data have {columns} and the "
                f"last is the label, got column {needed - 1}"
            )

    @property
    def describes_pairs(self) -> bool:
        """Whether pairs of neighbours have features of their own."""
        return self.parsed is not None and self.parsed.describes_pairs

    def numbered(self, sentences: Sequence[Sequence[Sequence[str]]]) -> "NumberedSequences":
        """Return the features of each token of many sentences, numbered."""
        from maxmargin.formats.numbered_features import number_features  # imports NumPy

        if self.parsed is not None:
            return number_features(self.parsed, sentences)
        return number_features(word_template(self.columns - 1), sentences, described)

    def of(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each token of a sentence, whose label is not read."""
        return self._features([row[: self.columns - 1] for row in rows])

    def of_pairs(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each pair of neighbours of a sentence, if the template has some."""
        assert self.parsed is not None
        return self.parsed.pair_features([row[: self.columns - 1] for row in rows])


def column_features(source: Source, template: str | None) -> ColumnFeatures:
    """Return the features for a file with as many columns as its first line.

    Parameters
    ----------
    source : Source
        Nothing of it is read, only peeked at.
    template : str or None
        The file of the template.
    """
    first = next(filter(str.strip, source.peek().decode("utf-8", "replace").split("\n")), "")
    width = len(split_fields(first.rstrip("\r")))
    if template is None:
        return ColumnFeatures(None, width)
    with Source(template) as stream:
        text = "\n".join(line.text for line in stream.lines())
        return ColumnFeatures(text, width, stream.name)
