"""``maxmargin evaluate``: scores of a model on a data file, or of predictions in files."""

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from maxmargin.cli.models import is_model, load_model
from maxmargin.cli.output import noted_warnings, result
from maxmargin.encoding.labels import Label
from maxmargin.evaluation import (
    Counts,
    PhraseScores,
    alignment_error_rate,
    are_phrase_tags,
    attachment_scores,
    n_equal,
    paired,
    phrase_scores,
    set_scores,
    share,
)
from maxmargin.files.columns import read_columns, read_links
from maxmargin.files.conllu import read_conllu
from maxmargin.files.detection import ATTRIBUTES, COLUMNS, CONLLU, JSON, detect
from maxmargin.files.sources import Malformed, Source
from maxmargin.runtime.wording import shown

Outputs = Sequence[Any]  # of each example: labels, heads, a class or a set


class Report(NamedTuple):
    """Scores: lines of text, and the same as plain data."""

    text: str
    data: dict[str, object]


def report(outcome: str, truth: Outputs, predicted: Outputs, items: Outputs = ()) -> Report:
    """Return the scores of predictions.

    Parameters
    ----------
    outcome : {"labels", "heads", "classes", "sets"}
        What is predicted.
    truth, predicted : sequences
        The outputs of each example.
    items : sequence
        The sentences of trees, for their punctuation.
    """
    return _REPORTS[outcome](truth, predicted, items)


def _of_labels(truth: Outputs, predicted: Outputs, items: Outputs) -> Report:
    """Report phrases if labels are tags of phrases, else the accuracy of tokens and of whole sequences."""
    labels = {label for sequence in truth for label in sequence}
    if all(isinstance(label, str) for label in labels) and are_phrase_tags(labels):
        scores = phrase_scores(truth, predicted)
        return Report(conlleval(scores), _phrase_data(scores))
    pairs = list(paired(truth, predicted))
    tokens, right = sum(len(a) for a, _ in pairs), sum(n_equal(a, b) for a, b in pairs)
    whole = share(sum(list(a) == list(b) for a, b in pairs), len(pairs))
    text = (
        f"accuracy: {share(right, tokens):7.2%} of {tokens} tokens; "
        f"whole sequences: {whole:7.2%} of {len(pairs)}"
    )
    data = {"accuracy": share(right, tokens), "tokens": tokens, "sequence_accuracy": whole}
    return Report(text, {**data, "sequences": len(pairs)})


def conlleval(scores: PhraseScores) -> str:
    """Return scores in the layout of ``conlleval``."""
    overall = scores.overall
    lines = [
        f"processed {scores.tokens} tokens with {overall.true} phrases; "
        f"found: {overall.predicted} phrases; correct: {overall.right}.",
        f"accuracy: {100 * scores.accuracy:6.2f}%; {_percentages(overall)}",
    ]
    for kind, counts in scores.by_type.items():
        lines.append(f"{kind:>17}: {_percentages(counts)}  {counts.predicted}")
    return "\n".join(lines)


def _percentages(counts: Counts) -> str:
    precision, recall, f1 = (100 * value for value in (counts.precision, counts.recall, counts.f1))
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _phrase_data(scores: PhraseScores) -> dict[str, object]:
    kinds = {kind: _counts_data(counts) for kind, counts in scores.by_type.items()}
    found = {"tokens": scores.tokens, "accuracy": scores.accuracy}
    return {**found, **_counts_data(scores.overall), "types": kinds}


def _counts_data(counts: Counts) -> dict[str, object]:
    shares = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
    return {**shares, **counts._asdict()}


def _of_heads(truth: Outputs, predicted: Outputs, items: Outputs) -> Report:
    """Report attachment scores, with and without punctuation."""
    found = attachment_scores(truth, predicted, [item.punctuation() for item in items] if items else None)
    text = (
        f"UAS: {found.uas:7.2%} of {found.words} words; "
        f"without punctuation: {found.uas_without_punctuation:7.2%}"
    )
    return Report(text, found._asdict())


def _of_classes(truth: Outputs, predicted: Outputs, items: Outputs) -> Report:
    """Report the accuracy."""
    accuracy = share(n_equal(truth, predicted), len(truth))
    text = f"accuracy: {accuracy:7.2%} of {len(truth)} examples"
    return Report(text, {"accuracy": accuracy, "examples": len(truth)})


def _of_sets(truth: Outputs, predicted: Outputs, items: Outputs) -> Report:
    """Report scores of sets of labels."""
    n_labels = len(frozenset().union(*truth, *predicted))
    found = set_scores(truth, predicted, n_labels)
    text = (
        f"subset accuracy: {found.subset_accuracy:7.2%} of {len(truth)} examples; "
        f"Hamming loss: {found.hamming_loss:.4f}; {_percentages(found.labels)}"
    )
    data = {"subset_accuracy": found.subset_accuracy, "hamming_loss": found.hamming_loss}
    return Report(text, {**data, "examples": len(truth), **_counts_data(found.labels)})


_REPORTS = {"labels": _of_labels, "heads": _of_heads, "classes": _of_classes, "sets": _of_sets}


def run(arguments: argparse.Namespace) -> int:
    """Print the scores."""
    files: list[str] = arguments.files
    encoding: str = arguments.encoding
    if len(files) == 1:
        if arguments.links or is_model(files[0]):
            first = "a file of links" if arguments.links else "a model"
            raise ValueError(
                f"evaluate: expected two files, got {first} alone: {files[0]}; give the other, too"
            )
        found = _of_columns(files[0], encoding)
    elif is_model(files[0]):
        found = _of_model(files[0], files[1], encoding)
    elif arguments.links:
        found = _of_links(files[0], files[1], encoding)
    else:
        found = _of_files(files[0], files[1], encoding)
    result(found.text, found.data, arguments.json)
    return 0


def _of_model(path: str, data: str, encoding: str) -> Report:
    """Return the scores of a model on a data file."""
    model = load_model(path)
    truth: list[object] = []
    predicted: list[object] = []
    items: list[object] = []
    with Source(data, encoding) as source, noted_warnings():
        for batch in model.task.batches(source, labelled=True):
            truth += batch.y
            predicted += list(model.predict(batch.X))
            items += batch.items if model.task.outcome == "heads" else []
        if not truth:
            raise Malformed(f"{source.name}: expected a {model.task.nouns[0]}, got none")
    return report(model.task.outcome, truth, predicted, items)


def _of_columns(path: str, encoding: str) -> Report:
    """Return the scores of the last column of a file, against the column before it."""
    with Source(path, encoding) as source:
        form = detect(source).name
        if form not in (COLUMNS, ATTRIBUTES):  # lines of either may have any width
            raise Malformed(
                f"{source.name}: expected columns, the last two truth and prediction, got the format {form}; "
                "give a model or predictions, too: maxmargin evaluate MODEL FILE, or TRUTH PREDICTED"
            )
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


def _of_files(truth: str, predicted: str, encoding: str) -> Report:
    """Return the scores of the predictions in one file, against the truth in another."""
    with Source(truth, encoding) as source:
        form = detect(source).name
        if form == CONLLU:
            return _of_trees(source, predicted)
        labels = list(_labels(source, form))
    with Source(predicted, encoding) as source:
        found = list(_labels(source, ""))
        lengths = ([len(sequence) for sequence in sequences] for sequences in (labels, found))
        for number, (a, b) in enumerate(zip_longest(*lengths, fillvalue=0), start=1):
            if a != b:
                raise Malformed(f"{source.name}: expected {a} labels in sentence {number}, got {b}")
    return report("labels", labels, found)


def _of_trees(source: Source, predicted: str) -> Report:
    sentences = list(read_conllu(source))
    with Source(predicted, source.encoding) as other:
        found = [sentence.heads() for sentence in read_conllu(other)]
    return report("heads", [sentence.heads() for sentence in sentences], found, sentences)


def _labels(source: Source, form: str) -> Iterator[Sequence[Label]]:
    """Yield the labels of each sentence: the last columns, or the first of attribute files."""
    if form == ATTRIBUTES:
        from maxmargin.files.attributes import read_attributes

        for _, y, _ in read_attributes(source):
            yield from y
    elif form == JSON:
        from maxmargin.files.json_lines import read_json_lines

        yield from (s.labels for s in read_json_lines(source))
    else:
        yield from (s.column(-1) for s in read_columns(source) if not s.starts_document)


def _of_links(truth: str, predicted: str, encoding: str) -> Report:
    """Return the alignment error rate of links."""
    with Source(truth, encoding) as source, Source(predicted, encoding) as other:
        true, found = list(read_links(source)), list(read_links(other))
    if len(true) != len(found):
        raise Malformed(f"{other.name}: expected {len(true)} lines as in {source.name}, got {len(found)}")
    sure, possible = [links.sure for links in true], [links.possible for links in true]
    rate = alignment_error_rate(sure, possible, [links.possible for links in found])
    return Report(f"AER: {rate:.4f} of {len(true)} pairs", {"aer": rate, "pairs": len(true)})
