"""Tasks: how data files of a format become examples, and predictions lines of text.

The settings of a task are stored with a model, so that new files are read as the training file was.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np
from scipy.sparse import csr_array

from maxmargin.cli.output import margin_texts, with_margins
from maxmargin.encoding.grids import grid_edges
from maxmargin.encoding.labels import Label
from maxmargin.estimators import commands
from maxmargin.files.columns import OUTSIDE
from maxmargin.files.detection import ATTRIBUTES, COLUMNS, CONLLU, JSON, SVMHMM, SVMLIGHT
from maxmargin.files.sealed import Json
from maxmargin.files.sources import Malformed, Source
from maxmargin.runtime.arrays import IntArray

if TYPE_CHECKING:
    from maxmargin.encoding.labels import Labels as LabelArray
    from maxmargin.encoding.sequences import NumberedSequences
    from maxmargin.files.attributes import Sequences
    from maxmargin.files.columns import ColumnFeatures, Sentence
    from maxmargin.files.conllu import Sentence as Tree
    from maxmargin.files.json_lines import JsonSequence


# Tokens that are read, tagged and written at a time, so that memory does not grow with the file; words of
# sentences to parse, each of which has features with all others; and bytes of files that are read as such.
TOKENS, WORDS, BLOCK = 50_000, 5_000, 1 << 25
_NOTHING = "_"  # the margin of the start of a document
Settings = dict[str, Json]
Labels = Sequence[Label]
Rows = Sequence[Sequence[str]]
Margins = Iterable[float]
# What the text of a prediction is made from, an output, and its margins.
ItemT = TypeVar("ItemT")
OutputT = TypeVar("OutputT")
MarginsT = TypeVar("MarginsT")


class Example(NamedTuple, Generic[ItemT, OutputT]):
    """An example of a file: its input, its output, its item and its number of tokens."""

    x: Sequence[object]
    y: OutputT
    item: ItemT
    size: int


class Batch(NamedTuple, Generic[ItemT, OutputT]):
    """Some examples of a file.

    Attributes
    ----------
    X : object
        Inputs as estimators take them.
    y : sequence
        The output of each example.
    items : sequence
        What the text of predictions is made from, one item per example.
    size : int
        The number of tokens or rows.
    """

    X: object
    y: Sequence[OutputT]
    items: Sequence[ItemT]
    size: int


class TrainingSet(NamedTuple):
    """All examples of a file, as estimators take them, and the numbers of examples and of tokens or rows."""

    X: object
    y: object
    n: int
    size: int


class Task(Generic[ItemT, OutputT, MarginsT]):
    """Base of tasks, generic in the types of their items, outputs and margins.

    A subclass has the name of its format; says
    what is predicted, and what an example and a part of it are called; defines `batches` and `lines`; and
    takes its `settings`, of these ``kinds``, as arguments.
    """

    name: ClassVar[str]
    outcome: ClassVar[str] = "labels"
    nouns: ClassVar[tuple[str, str]] = ("sentence", "token")
    kinds: ClassVar[dict[str, type | tuple[type, ...]]] = {}

    @property
    def note(self) -> str:
        """What to say about the features."""
        raise NotImplementedError

    @property
    def estimators(self) -> tuple[str, ...]:
        """The estimators for this task, by their names on the command line; the first is the default."""
        return commands(type(self).__name__)

    @property
    def data(self) -> str:
        """The name, in errors, of the data that the estimators are for."""
        return f"the format {self.name}"

    @property
    def settings(self) -> Settings:
        """What is stored with a model."""
        return {name: getattr(self, name) for name in self.kinds}

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch[ItemT, OutputT]]:
        """Yield the examples of a file, some at a time or all at once; ``labelled`` if outputs are needed."""
        raise NotImplementedError

    def lines(self, item: ItemT, output: OutputT, margins: MarginsT | None) -> list[str]:
        """Return the lines of an example with its prediction, and its margins if they are not None."""
        raise NotImplementedError

    def outputs(self, predicted: object) -> Sequence[OutputT]:
        """Return predictions in the form of the outputs of `batches`."""
        return cast("Sequence[OutputT]", predicted)

    def training(self, source: Source) -> TrainingSet:
        """Return all examples of a file; raise if there are none."""
        found = self._all(source)
        return TrainingSet(found.X, found.y, len(found.y), found.size)

    def _all(self, source: Source) -> Batch[ItemT, OutputT]:
        found = next(self.batches(source, labelled=True, whole=True), None)
        if found is None or not found.size:
            raise self._empty(source)
        return found

    def _empty(self, source: Source) -> Malformed:
        return Malformed(f"{source.name}: expected a {self.nouns[0]}, got none")


# A task that was chosen by a file: whatever its types are, `lines` takes what `batches` and `outputs` return.
SomeTask = Task[Any, Any, Any]


class Columns(Task["Sentence", Labels, Margins]):
    """Sentences in columns, with a template of features or the default features of words.

    Parameters
    ----------
    template : str or None
        The text of the template.
    columns : int
        The number of columns, the label included.
    template_name : str
        The file of the template, for errors.
    """

    # Whether the template has features of pairs of neighbours.
    describes_pairs: ClassVar[bool] = False

    name = COLUMNS
    kinds: ClassVar = {"template": (str, type(None)), "columns": int}

    def __init__(self, template: str | None, columns: int, template_name: str = "template") -> None:
        from maxmargin.files.columns import ColumnFeatures

        self.template, self.columns = template, columns
        self._features = ColumnFeatures(template, columns, template_name)
        if self._features.describes_pairs != self.describes_pairs:
            raise Malformed(f"{template_name}: expected a template for {type(self).__name__}, got another")

    @property
    def note(self) -> str:
        parsed = self._features.parsed
        if parsed is None:
            return "no template: default features of words"
        known = f"template: {len(parsed.macros)} features per token"
        return known if parsed.transitions else f"{known}; pairs of labels have weights, with or without 'B'"

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch["Sentence", Labels]]:
        from maxmargin.files.columns import read_columns

        widths = (self.columns,) if labelled else (self.columns - 1, self.columns)
        sentences = read_columns(source, widths=widths)
        return _grouped(map(self._example, sentences), None if whole else TOKENS)

    def _example(self, sentence: "Sentence") -> Example["Sentence", Labels]:
        """Return the features, the labels and the sentence; a line that starts a document has no tokens."""
        if sentence.starts_document:
            return Example([], [], sentence, 0)
        rows = sentence.rows
        return Example(self._features.of(rows), sentence.column(-1), sentence, len(rows))

    def training(self, source: Source) -> TrainingSet:
        """Return all sentences of a file, whose features are numbered block by block: no token has texts."""
        from maxmargin.encoding.sequences import joined
        from maxmargin.files.columns import read_columns

        if self.describes_pairs:
            return super().training(source)
        sentences = read_columns(source, widths=(self.columns,))
        labels: list[Labels] = []

        def numbered(block: Batch[Rows, Labels]) -> "NumberedSequences":
            labels.extend(block.y)
            return self._features.numbered(block.items)

        blocks = _grouped(map(_labelled, sentences), TOKENS)
        X = joined(map(numbered, blocks))
        if not len(X.counts):
            raise self._empty(source)
        return TrainingSet(X, labels, len(labels), len(X.counts))

    def lines(self, item: "Sentence", output: Labels, margins: Margins | None) -> list[str]:
        labels = [OUTSIDE] if item.starts_document else [str(label) for label in output]
        if margins is None:
            return item.with_columns(labels)
        return item.with_columns(labels, [_NOTHING] if item.starts_document else margin_texts(margins))


def _labelled(sentence: "Sentence") -> "Example[Rows, Labels]":
    """Return the rows and labels of a sentence; a line that starts a document has none."""
    if sentence.starts_document:
        return Example([], [], [], 0)
    return Example([], sentence.column(-1), sentence.rows, len(sentence.rows))


def _grouped(
    examples: Iterable[Example[ItemT, OutputT]], size: int | None
) -> Iterator[Batch[ItemT, OutputT]]:
    """Yield examples in batches of about this many tokens, or all in one."""
    kept: list[Example[ItemT, OutputT]] = []
    n_tokens = 0
    for example in examples:
        kept.append(example)
        n_tokens += example.size
        if size is not None and n_tokens >= size:
            yield _batch(kept, n_tokens)
            kept, n_tokens = [], 0
    if kept:
        yield _batch(kept, n_tokens)


def _batch(examples: list[Example[ItemT, OutputT]], size: int) -> Batch[ItemT, OutputT]:
    return Batch([e.x for e in examples], [e.y for e in examples], [e.item for e in examples], size)


class Attributes(Task[Labels, Labels, Margins]):
    """Sequences of tokens with attributes, as CRFsuite has them."""

    name = ATTRIBUTES
    nouns = ("sequence", "token")

    @property
    def note(self) -> str:
        return "attributes as they are"

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch[Labels, Labels]]:
        from maxmargin.files.attributes import read_attributes

        return map(_of_sequences, read_attributes(source, labelled=labelled, size=None if whole else BLOCK))

    def batch(self, source: Source, block: bytes, n_before: int) -> Batch[Labels, Labels]:
        """Return the examples in some bytes of a file, which follow this many lines; labels may be empty."""
        from maxmargin.files.attributes import read_block

        return _of_sequences(read_block(source, block, n_before, labelled=False))

    def lines(self, item: Labels, output: Labels, margins: Margins | None) -> list[str]:
        return [*with_margins(output, margins), ""]


def _of_sequences(found: "Sequences") -> Batch[Labels, Labels]:
    return Batch(found.X, found.y, found.y, int(found.X.offsets[-1]))


class JsonLines(Task["JsonSequence", Labels, Margins]):
    """Sequences of tokens with named features, in lines of JSON."""

    name = JSON
    nouns = ("sequence", "token")

    @property
    def note(self) -> str:
        return "features by their names"

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch["JsonSequence", Labels]]:
        from maxmargin.files.json_lines import read_json_lines

        found = read_json_lines(source, labelled=labelled)
        examples: Iterator[Example[JsonSequence, Labels]] = (
            Example(s.tokens, s.labels, s, len(s.tokens)) for s in found
        )
        return _grouped(examples, None if whole else TOKENS)

    def lines(self, item: "JsonSequence", output: Labels, margins: Margins | None) -> list[str]:
        return [*with_margins(output, margins), ""]


class Trees(Task["Tree", list[int], Margins]):
    """Sentences with the heads of their words, in CoNLL-U.

    Parameters
    ----------
    tags : {"both", "upos", "xpos"}
        The part-of-speech tags to use.
    """

    name = CONLLU
    outcome = "heads"
    nouns = ("sentence", "word")
    kinds: ClassVar = {"tags": str}

    def __init__(self, tags: str) -> None:
        from maxmargin.files.conllu import TAGS

        if tags not in TAGS:
            raise Malformed(f"tags: expected one of {', '.join(TAGS)}, got {tags!r}")
        self.tags = tags

    @property
    def note(self) -> str:
        return f"features of words and tags ({self.tags})"

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch["Tree", list[int]]]:
        from maxmargin.files.conllu import read_conllu

        sentences = read_conllu(source, labelled=labelled)
        words = ((s.tagged(self.tags), s) for s in sentences)
        examples = (Example(x, s.heads() if labelled else [], s, len(x)) for x, s in words)
        return _grouped(examples, None if whole else WORDS)

    def lines(self, item: "Tree", output: list[int], margins: Margins | None) -> list[str]:
        notes = None if margins is None else [f"Margin={text}" for text in margin_texts(margins)]
        return [*item.with_heads([int(head) for head in output], notes), ""]


class RowTask(Task[ItemT, ItemT, MarginsT]):
    """Base of the tasks over rows.

    Parameters
    ----------
    features : int
        The number of columns; features of larger numbers are unknown. By default that of the first file.
    """

    nouns = ("example", "row")
    kinds: ClassVar = {"features": int}

    def __init__(self, features: int = 0) -> None:
        self.features = features

    @property
    def note(self) -> str:
        return "features by their numbers"

    def _fitted(self, X: csr_array) -> csr_array:
        """Return the features with as many columns as those of the first file."""
        from maxmargin.files.svmlight import with_columns

        self.features = self.features or X.shape[1]
        return with_columns(X, self.features)


class SequenceRows(RowTask[Labels, Margins]):
    """Sequences of rows with the same ``qid``, as SVM^hmm has them."""

    name = SVMHMM
    nouns = ("sequence", "row")

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch[Labels, Labels]]:
        from maxmargin.files.svmlight import one_label, read_queries, sequences

        for examples in read_queries(source, size=None if whole else BLOCK):
            labels = one_label(source, examples) if labelled else [0] * len(examples.y)
            X, y = sequences(self._fitted(examples.X), labels, examples.queries)
            yield Batch(X, y, y, len(labels))

    def lines(self, item: Labels, output: Labels, margins: Margins | None) -> list[str]:
        return with_margins(output, margins)


class Classes(RowTask[int, float]):
    """Examples with a class each."""

    name = SVMLIGHT
    outcome = "classes"

    def batches(self, source: Source, *, labelled: bool, whole: bool = False) -> Iterator[Batch[int, int]]:
        from maxmargin.files.svmlight import one_label, read_svmlight

        for examples in read_svmlight(source, size=None if whole else BLOCK):
            y = one_label(source, examples) if labelled else [0] * len(examples.y)
            yield Batch(self._fitted(examples.X), y, y, len(y))

    def lines(self, item: int, output: int, margins: float | None) -> list[str]:
        return with_margins([output], None if margins is None else [margins])


class LabelSets(RowTask[frozenset[int], Margins]):
    """Examples with a set of labels each.

    Parameters
    ----------
    features : int
        As in `RowTask`.
    labels : list of int
        The labels that sets are of, by the columns of outputs. By default those of the first file.
    """

    name = SVMLIGHT
    outcome = "sets"
    kinds: ClassVar = {"features": int, "labels": list}

    def __init__(self, features: int = 0, labels: Sequence[int] = ()) -> None:
        super().__init__(features)
        self.labels = list(labels)

    def batches(
        self, source: Source, *, labelled: bool, whole: bool = False
    ) -> Iterator[Batch[frozenset[int], frozenset[int]]]:
        from maxmargin.files.svmlight import read_svmlight

        for examples in read_svmlight(source, size=None if whole else BLOCK):
            y = list(map(frozenset, examples.y))
            yield Batch(self._fitted(examples.X), y, y, len(y))

    def training(self, source: Source) -> TrainingSet:
        batch = self._all(source)
        self.labels = sorted(frozenset().union(*batch.y))
        column = {label: k for k, label in enumerate(self.labels)}
        y = np.zeros((len(batch.y), len(column)), dtype=np.int64)
        for row, labels in zip(y, batch.y, strict=True):
            row[[column[label] for label in labels]] = 1
        return TrainingSet(batch.X, y, len(y), batch.size)

    def outputs(self, predicted: object) -> list[frozenset[int]]:
        labels = np.array(self.labels)
        return [frozenset(labels[row > 0].tolist()) for row in cast("IntArray", predicted)]

    def lines(self, item: frozenset[int], output: frozenset[int], margins: Margins | None) -> list[str]:
        text = ",".join(map(str, sorted(output)))
        return [text if margins is None else "\t".join([text, *margin_texts(margins)])]


# The features of tokens that have none: estimators expect one, and the weights of zeros stay zero.
_NONE = {"none": 0.0}


class PairColumns(Columns):
    """Sentences in columns, with a template such as ``B01:%x[0,0]``: graphs whose edges join neighbours.

    Tokens have no features if the template has none for them.
    """

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
