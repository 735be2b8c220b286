"""Reports on predictions: the scores of a task as text, as the field prints them, and as JSON."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from maxmargin.evaluation import (
    Counts,
    PhraseScores,
    are_phrase_tags,
    attachment_scores,
    n_equal,
    paired,
    phrase_scores,
    set_scores,
    share,
)

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
