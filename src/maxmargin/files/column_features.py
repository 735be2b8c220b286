"""Features of the tokens of column files: by a template of CRF++, or those that words have by default.

The module does not import NumPy, as `maxmargin tag` uses it.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from maxmargin.files.columns import split_fields
from maxmargin.files.sources import Malformed, Source
from maxmargin.files.templates import Macro, Template, macro, parse_template, with_edges

if TYPE_CHECKING:
    from maxmargin.encoding.sequences import NumberedSequences

# The columns that a word is described by; the columns of the file after the first follow.
_OF_WORD = (
    "word",
    "lower",
    "shape",
    "form",
    *(f"prefix{k}" for k in range(1, 5)),
    *(f"suffix{k}" for k in range(1, 5)),
)


def word_features(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the features of each token of a sentence, whose first column is the word.

    These are the words and further columns, such as parts of speech, up to two positions away; pairs of
    neighbouring words; pairs and triples of neighbours in further columns; and of the word itself its lower
    case, its shape, also of both neighbours, and its first and last one to four letters.

    Examples
    --------
    >>> word_features([["Dr", "NNP"], ["No", "NNP"]])[1][:4]
    ['word[-2]=_B-1', 'word[-1]=Dr', 'word[0]=No', 'word[1]=_B+1']
    """
    rows_of = [[*described(row[0]), *row[1:]] for row in rows]
    return word_template(len(rows[0])).features(rows_of)


@lru_cache(maxsize=1 << 16)
def described(word: str) -> tuple[str, ...]:
    """Return what is known of a word by its spelling, in the order of `_OF_WORD`."""
    shape = "".join(map(_class_of, word))
    form = "".join(c for k, c in enumerate(shape) if k == 0 or c != shape[k - 1])
    affixes = [word[:k] for k in range(1, 5)] + [word[-k:] for k in range(1, 5)]
    return word, word.lower(), shape, form, *affixes


def _class_of(letter: str) -> str:
    """Return X for a capital, x for another letter, 0 for a digit, and any other character itself."""
    if letter.isalpha():
        return "X" if letter.isupper() else "x"
    return "0" if letter.isdigit() else letter


@lru_cache
def word_template(n_columns: int) -> Template:
    """Return the templates for sentences of this many columns."""
    of_word = {name: column for column, name in enumerate(_OF_WORD)}
    macros = [*_windows("word", 0, 1), _window("word", 0, -1, 2), _window("word", 0, 0, 2)]
    for name in ("shape", "form"):
        macros += [_window(name, of_word[name], row, 1) for row in (-1, 0, 1)]
    macros += [
        _window(name, column, 0, 1)
        for name, column in of_word.items()
        if name not in ("word", "shape", "form")
    ]
    for k in range(1, n_columns):
        for length in (1, 2, 3):
            macros += _windows(f"column{k}", len(_OF_WORD) + k - 1, length)
    return with_edges(macros, [macro("B")])


def _windows(name: str, column: int, length: int) -> Iterator[Macro]:
    """Yield the templates of all runs of this many neighbours within two positions."""
    return (_window(name, column, row, length) for row in range(-2, 4 - length))


def _window(name: str, column: int, row: int, length: int) -> Macro:
    """Return the template of ``length`` neighbouring entries of a column."""
    rows = range(row, row + length)
    entries = " ".join(f"%x[{r},{column}]" for r in rows)
    return macro(f"{name}[{':'.join(str(r) for r in sorted({rows[0], rows[-1]}))}]={entries}")


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
        from maxmargin.files.numbered_features import number_features

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
    with Source(template, source.encoding) as stream:
        text = "\n".join(line.text for line in stream.lines())
        return ColumnFeatures(text, width, stream.name)
