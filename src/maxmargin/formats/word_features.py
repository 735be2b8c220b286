"""Features of words when there is no template: the word, its spelling, and the words around it."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from maxmargin.formats.macros import Macro, Template
from maxmargin.formats.templates import macro, with_edges

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
