"""``maxmargin tag``: from a model and a data file to predictions, with bounded memory.

Chains that were trained on attribute files tag without NumPy, Numba and scikit-learn, whose import would take
most of the time; everything else is left to the estimator.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from maxmargin.commands.output import note, noted_warnings, opened
from maxmargin.formats.sources import Source
from maxmargin.tagging.tagger import Tagged, Tagger, open_tagger

if TYPE_CHECKING:
    from maxmargin.commands.models import Model
    from maxmargin.commands.tasks import Batch, ItemT, OutputT

# Bytes of a file that are read, tagged and written at a time, so that memory does not grow with the file.
_BLOCK = 1 << 25


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
    with Source(arguments.file) as source, opened(arguments.output) as stream, noted_warnings():
        for found in way.tagged(source):
            stream.write(found.text)
            examples, parts = examples + found.sequences, parts + found.tokens
    words = f"{examples} {way.nouns[0]}s, {parts} {way.nouns[1]}s"
    note(f"{words} in {time.perf_counter() - begin:.1f} s", quiet=arguments.quiet)
    return 0


def _way(arguments: argparse.Namespace) -> _Way:
    """Return the way to tag: without the estimator, if nothing is asked for that it alone can do."""
    if not arguments.margins and arguments.jobs is None:
        tagger = open_tagger(arguments.model)
        if tagger is not None:
            return _ByTagger(tagger, arguments)
    way = _ByEstimator(arguments)
    way.model  # noqa: B018  # an error of the model comes before one of the data
    return way


class _ByEstimator:
    """Tag with the estimator: every model, task and option."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments

    @cached_property
    def model(self) -> "Model":
        """The model, which is loaded when it is first needed."""
        from maxmargin.commands.models import load_model

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


class _ByTagger:
    """Tag attribute files with a chain; blocks that are not simple go to the estimator."""

    nouns = ("sequence", "token")

    def __init__(self, tagger: Tagger, arguments: argparse.Namespace) -> None:
        self.tagger, self.estimator = tagger, _ByEstimator(arguments)

    def tagged(self, source: Source) -> Iterator[Tagged]:
        n_lines = source.n_skipped
        for block in source.blocks(_BLOCK):
            yield self.tagger.tag(block) or self._by_estimator(source, block, n_lines)
            n_lines += block.count(b"\n")

    def _by_estimator(self, source: Source, block: bytes, n_lines: int) -> Tagged:
        from maxmargin.commands.tasks import Attributes

        return self.estimator.of_batch(Attributes().batch(source, block, n_lines))
