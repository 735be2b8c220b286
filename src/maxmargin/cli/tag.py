"""``maxmargin tag``: from a model and a data file to predictions, with bounded memory.

Chains that were trained on attribute files or on columns tag without NumPy, Numba and scikit-learn, whose
import would take most of the time; everything else is left to the estimator.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from maxmargin.cli.output import note, noted_warnings, opened
from maxmargin.files.columns import OUTSIDE, ColumnFeatures, Sentence, read_columns
from maxmargin.files.sources import Source
from maxmargin.tagging.tagger import Tagged, Tagger, TaskTagger, open_tagger

if TYPE_CHECKING:
    from maxmargin.cli.models import Model
    from maxmargin.cli.tasks import Batch, ItemT, OutputT


# Bytes of a file that are read, tagged and written at a time, so that memory does not grow with the file.
_BLOCK = 1 << 25
_TOKENS = 5_000  # the same for column files, in tokens, whose features are made as strings


class _Way(Protocol):
    """A way to tag a file."""

    @property
    def nouns(self) -> tuple[str, str]:
        """What an example and a part of it are called."""

    def tagged(self, source: Source) -> Iterator[Tagged]:
        """Yield the predictions of a file, some examples at a time."""


def run(arguments: argparse.Namespace) -> int:
    """Predict the outputs of a file, some examples at a time, and write them."""
    begin = time.perf_counter()
    way = _way(arguments)
    examples = parts = 0
    source = Source(arguments.file, arguments.encoding)
    with source, opened(arguments.output, arguments.encoding) as stream, noted_warnings():
        for found in way.tagged(source):
            stream.write(found.text)
            examples, parts = examples + found.sequences, parts + found.tokens
    words = f"{examples} {way.nouns[0]}s, {parts} {way.nouns[1]}s"
    note(f"{words} in {time.perf_counter() - begin:.1f} s", quiet=arguments.quiet)
    return 0


def _way(arguments: argparse.Namespace) -> _Way:
    """Return the way to tag: without the estimator, unless an option requires it."""
    if not arguments.margins and arguments.jobs is None:
        found = open_tagger(arguments.model, _WAYS)
        way = None if found is None else _WAYS[found.task](found, arguments)
        if way is not None:
            return way
    estimator = _ByEstimator(arguments)
    estimator.model  # noqa: B018  # an error of the model comes before one of the data
    return estimator


class _ByEstimator:
    """Tag with the estimator: every model, task and option."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments

    @cached_property
    def model(self) -> "Model":
        """The model, which is loaded when it is first needed."""
        from maxmargin.cli.models import load_model

        model = load_model(self.arguments.model)
        if self.arguments.jobs is not None:
            model.estimator.set_params(n_jobs=self.arguments.jobs)
        return model

    @property
    def nouns(self) -> tuple[str, str]:
        return self.model.task.nouns

    def tagged(self, source: Source) -> Iterator[Tagged]:
        return map(self.of_batch, self.model.task.batches(source, labelled=False))

    def of_batch(self, batch: "Batch[ItemT, OutputT]") -> Tagged:
        """Return the predictions of some examples."""
        model, n = self.model, len(batch.items)
        margins: Sequence[object] = model.margins(batch.X) if self.arguments.margins else [None] * n
        found = zip(batch.items, model.predict(batch.X), margins, strict=True)
        text = "".join(f"{line}\n" for example in found for line in model.task.lines(*example))
        return Tagged(text, n, batch.size)


class _AttributesByTagger:
    """Tag attribute files with a chain; blocks that are not simple go to the estimator."""

    nouns = ("sequence", "token")

    def __init__(self, tagger: Tagger, estimator: _ByEstimator) -> None:
        self.tagger, self.estimator = tagger, estimator

    def tagged(self, source: Source) -> Iterator[Tagged]:
        n_lines = source.n_skipped
        for block in source.blocks(_BLOCK):
            yield self.tagger.tag(block) or self._by_estimator(source, block, n_lines)
            n_lines += block.count(b"\n")

    def _by_estimator(self, source: Source, block: bytes, n_lines: int) -> Tagged:
        from maxmargin.cli.tasks import Attributes

        return self.estimator.of_batch(Attributes().batch(source, block, n_lines))


class _ColumnsByTagger:
    """Tag column files with a chain; sentences with odd features go to the estimator."""

    nouns = ("sentence", "token")

    def __init__(self, tagger: Tagger, features: ColumnFeatures, estimator: _ByEstimator) -> None:
        self.tagger, self.features, self.estimator = tagger, features, estimator

    def tagged(self, source: Source) -> Iterator[Tagged]:
        widths = self.features.columns - 1, self.features.columns
        kept: list[Sentence] = []
        n_tokens = 0
        for sentence in read_columns(source, widths=widths):
            kept.append(sentence)
            n_tokens += len(sentence.rows)
            if n_tokens >= _TOKENS:
                yield self._of_sentences(kept)
                kept, n_tokens = [], 0
        if kept:
            yield self._of_sentences(kept)

    def _of_sentences(self, sentences: list[Sentence]) -> Tagged:
        """Return the predictions of some sentences; a line that starts a document has no tokens."""
        X = [[] if s.starts_document else self.features.of(s.rows) for s in sentences]
        labels = self.tagger.predict(list(filter(None, X)))
        if labels is None:
            return self._by_estimator(sentences, X)
        found, lines = iter(labels), list[str]()
        for sentence, x in zip(sentences, X, strict=True):
            lines += sentence.with_columns(next(found) if x else [OUTSIDE])
        return Tagged("".join(f"{line}\n" for line in lines), len(X), sum(map(len, X)))

    def _by_estimator(self, sentences: list[Sentence], X: list[list[list[str]]]) -> Tagged:
        from maxmargin.cli.tasks import Batch

        return self.estimator.of_batch(Batch(X, sentences, sentences, sum(map(len, X))))


def _attributes(found: TaskTagger, arguments: argparse.Namespace) -> _Way | None:
    return None if found.settings else _AttributesByTagger(found.tagger, _ByEstimator(arguments))


def _columns(found: TaskTagger, arguments: argparse.Namespace) -> _Way | None:
    """Return the way to tag columns, or None if the settings are not those of columns."""
    settings = found.settings
    if not isinstance(settings, dict) or settings.keys() != {"template", "columns"}:
        return None
    template, columns = settings["template"], settings["columns"]
    if type(columns) is not int or not isinstance(template, str | None):
        return None
    features = ColumnFeatures(template, columns)
    if features.describes_pairs:  # no chain has weights for them
        return None
    return _ColumnsByTagger(found.tagger, features, _ByEstimator(arguments))


# By the names of tasks, as models have them.
_WAYS = {"Attributes": _attributes, "Columns": _columns}
