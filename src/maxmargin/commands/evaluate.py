"""``maxmargin evaluate``: scores of a model on a data file, or of predictions in files."""

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from maxmargin.commands.models import is_model, load_model
from maxmargin.commands.output import noted_warnings, result
from maxmargin.commands.reports import Report, report
from maxmargin.encoding.labels import Label
from maxmargin.evaluation import alignment_error_rate
from maxmargin.formats.columns import read_columns
from maxmargin.formats.conllu import read_conllu
from maxmargin.formats.detection import ATTRIBUTES, CONLLU, JSON, detect
from maxmargin.formats.links import read_links
from maxmargin.formats.sources import Malformed, Source
from maxmargin.wording import shown


def run(arguments: argparse.Namespace) -> int:
    """Print the scores."""
    if len(arguments.files) == 1:
        found = _of_columns(arguments.files[0])
    elif is_model(arguments.files[0]):
        found = _of_model(*arguments.files)
    elif arguments.links:
        found = _of_links(*arguments.files)
    else:
        found = _of_files(*arguments.files)
    result(found.text, found.data, arguments.json)
    return 0


def _of_model(path: str, data: str) -> Report:
    """Return the scores of a model on a data file."""
    model = load_model(path)
    truth: list[object] = []
    predicted: list[object] = []
    items: list[object] = []
    with Source(data) as source, noted_warnings():
        for batch in model.task.batches(source, labelled=True):
            truth += batch.y
            predicted += list(model.predict(batch.X))
            items += batch.items if model.task.outcome == "heads" else []
        if not truth:
            raise Malformed(f"{source.name}: expected a {model.task.nouns[0]}, got none")
    return report(model.task.outcome, truth, predicted, items)


def _of_columns(path: str) -> Report:
    """Return the scores of the last column of a file, against the column before it."""
    with Source(path) as source:
        sentences = [s for s in read_columns(source) if not s.starts_document]
        if not sentences or len(sentences[0].rows[0]) < 2:
            raise Malformed(f"{source.name}: expected two columns or more, the last two truth and prediction")
    truth, predicted = ([s.column(k) for s in sentences] for k in (-2, -1))
    _check_predictions(truth, predicted, source.name)
    return report("labels", truth, predicted)


def _check_predictions(
    truth: Sequence[Sequence[Label]], predicted: Sequence[Sequence[Label]], name: str
) -> None:
    """Raise if most labels of the last column never occur in the one before it: no tagger chose them."""
    known = set(chain.from_iterable(truth))
    strange = [label for label in chain.from_iterable(predicted) if label not in known]
    if 2 * len(strange) > sum(map(len, predicted)):
        raise Malformed(
            f"{name}: expected truth and prediction in the last two columns, got {shown(strange[0])} in the "
            f"last, which is never true; add predictions: maxmargin tag MODEL FILE"
        )


def _of_files(truth: str, predicted: str) -> Report:
    """Return the scores of the predictions in one file, against the truth in another."""
    with Source(truth) as source:
        form = detect(source).name
        if form == CONLLU:
            return _of_trees(source, predicted)
        labels = list(_labels(source, form))
    with Source(predicted) as source:
        found = list(_labels(source, ""))
        lengths = ([len(sequence) for sequence in sequences] for sequences in (labels, found))
        for number, (a, b) in enumerate(zip_longest(*lengths, fillvalue=0), start=1):
            if a != b:
                raise Malformed(f"{source.name}: expected {a} labels in sentence {number}, got {b}")
    return report("labels", labels, found)


def _of_trees(source: Source, predicted: str) -> Report:
    sentences = list(read_conllu(source))
    with Source(predicted) as other:
        found = [sentence.heads() for sentence in read_conllu(other)]
    return report("heads", [sentence.heads() for sentence in sentences], found, sentences)


def _labels(source: Source, form: str) -> Iterator[Sequence[Label]]:
    """Yield the labels of each sentence: the last columns, or the first of attribute files."""
    if form == ATTRIBUTES:
        from maxmargin.formats.attributes import read_attributes

        for _, y, _ in read_attributes(source):
            yield from y
    elif form == JSON:
        from maxmargin.formats.json_lines import read_json_lines

        yield from (s.labels for s in read_json_lines(source))
    else:
        yield from (s.column(-1) for s in read_columns(source) if not s.starts_document)


def _of_links(truth: str, predicted: str) -> Report:
    """Return the alignment error rate of links."""
    with Source(truth) as source, Source(predicted) as other:
        true, found = list(read_links(source)), list(read_links(other))
    if len(true) != len(found):
        raise Malformed(f"{other.name}: expected {len(true)} lines as in {source.name}, got {len(found)}")
    sure, possible = [links.sure for links in true], [links.possible for links in true]
    rate = alignment_error_rate(sure, possible, [links.possible for links in found])
    return Report(f"AER: {rate:.4f} of {len(true)} pairs", {"aer": rate, "pairs": len(true)})
