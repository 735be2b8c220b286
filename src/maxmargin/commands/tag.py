"""``maxmargin tag``: from a model and a data file to predictions, with bounded memory."""

import argparse
import time

from maxmargin.commands.models import load_model
from maxmargin.commands.output import note, noted_warnings, opened
from maxmargin.formats.sources import Source


def run(arguments: argparse.Namespace) -> int:
    """Predict the outputs of a file, some examples at a time, and write them."""
    begin = time.perf_counter()
    model = load_model(arguments.model)
    if arguments.jobs is not None:
        model.estimator.set_params(n_jobs=arguments.jobs)
    examples = parts = 0
    with Source(arguments.file) as source, opened(arguments.output) as stream, noted_warnings():
        for batch in model.task.batches(source, labelled=False):
            margins = model.margins(batch.X) if arguments.margins else [None] * len(batch.items)
            found = zip(batch.items, model.predict(batch.X), margins, strict=True)
            stream.writelines(f"{line}\n" for example in found for line in model.task.lines(*example))
            examples, parts = examples + len(batch.items), parts + batch.size
    words = f"{examples} {model.task.nouns[0]}s, {parts} {model.task.nouns[1]}s"
    note(f"{words} in {time.perf_counter() - begin:.1f} s", quiet=arguments.quiet)
    return 0
