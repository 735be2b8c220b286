"""Scores of predictions as each field reports them: of phrases, tokens, heads, links and sets of labels."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import zip_longest
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")
Link = tuple[int, int]
Phrase = tuple[int, int, str]

_OUTSIDE = "O"
# Prefixes of tags by the part of a phrase they mark. "L" and "U" are other names of "E" and "S".
_BEGINS, _ENDS = ("B", "S", "U"), ("E", "L", "S", "U")
_PREFIXES = {"B", "I", "E", "S", "L", "U"}


class Counts(NamedTuple):
    """Counts of phrases, or of other items, that are true, predicted, and both."""

    true: int = 0
    predicted: int = 0
    right: int = 0

    @property
    def precision(self) -> float:
        """The share of those predicted that are true; 0 if none is predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the true ones that are predicted; 0 if there is none."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if none is right."""
        return 2 * self.right / (self.true + self.predicted) if self.right else 0.0


class PhraseScores(NamedTuple):
    """Phrases and tokens that are right.

    Attributes
    ----------
    by_type : dict
        The counts of each type of phrase, in alphabetical order.
    tokens, right_tokens : int
        The number of tokens, and of those whose tag is right.
    """

    by_type: dict[str, Counts]
    tokens: int
    right_tokens: int

    @property
    def overall(self) -> Counts:
        """The counts of all types together."""
        return Counts(*(sum(column) for column in zip(*self.by_type.values(), strict=True)))

    @property
    def accuracy(self) -> float:
        """The share of tokens whose tag is right; 1 if there are none."""
        return share(self.right_tokens, self.tokens)


def phrases(tags: Iterable[str]) -> Iterator[Phrase]:
    """Yield the phrases that tags describe, as ``(start, stop, type)``, by the rules of ``conlleval``.

    A tag is ``O``, or a prefix with the type of a phrase, such as ``B-NP``. A phrase starts at ``B``, and at
    ``I`` or ``E`` where no phrase of its type is under way. It ends with ``E``, and before a token that
    starts another phrase, has another type or is ``O``. So IOB1, IOB2 and IOBES can be read, well-formed or
    not. A tag without a type has the empty type.

    Parameters
    ----------
    tags : iterable of str
        The tags of a sentence.

    Examples
    --------
    >>> list(phrases(["I-NP", "I-NP", "B-NP", "O", "I-VP"]))
    [(0, 2, 'NP'), (2, 3, 'NP'), (4, 5, 'VP')]
    """
    start, under_way, stop = 0, None, 0
    for place, tag in enumerate(tags):
        prefix, kind = _parts(tag)
        if under_way is not None and (prefix in ("O", *_BEGINS) or kind != under_way):
            yield start, place, under_way
            under_way = None
        if under_way is None and prefix != _OUTSIDE:
            start, under_way = place, kind
        stop = place + 1
        if under_way is not None and prefix in _ENDS:
            yield start, stop, under_way
            under_way = None
    if under_way is not None:
        yield start, stop, under_way


def _parts(tag: str) -> tuple[str, str]:
    """Return the prefix of a tag and the type of its phrase."""
    if tag == _OUTSIDE:
        return _OUTSIDE, ""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def are_phrase_tags(labels: Iterable[str]) -> bool:
    """Return whether labels are tags of phrases: some ``B-x``, ``I-x``, ... and nothing else but ``O``.

    Examples
    --------
    >>> are_phrase_tags(["B-NP", "O"]), are_phrase_tags(["NOUN", "X"]), are_phrase_tags(["O"])
    (True, False, False)
    """
    tags = set(labels) - {_OUTSIDE}
    return bool(tags) and all(prefix in _PREFIXES and kind for prefix, kind in map(_parts, tags))


def phrase_scores(truth: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> PhraseScores:
    """Count the phrases that are found, as ``conlleval`` does.

    A phrase is right if its start, stop and type are.

    Parameters
    ----------
    truth, predicted : iterables of sequences of str
        The tags of each sentence.

    Examples
    --------
    >>> scores = phrase_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    >>> scores.overall.f1, round(scores.accuracy, 2)
    (0.5, 0.67)
    """
    true, found, right = Counter[str](), Counter[str](), Counter[str]()
    tokens = right_tokens = 0
    for a, b in paired(truth, predicted):
        in_truth, in_prediction = set(phrases(a)), set(phrases(b))
        for counter, some in ((true, in_truth), (found, in_prediction), (right, in_truth & in_prediction)):
            counter.update(kind for _, _, kind in some)
        tokens += len(a)
        right_tokens += n_equal(a, b)
    kinds = sorted(true.keys() | found.keys())
    return PhraseScores({k: Counts(true[k], found[k], right[k]) for k in kinds}, tokens, right_tokens)


class AttachmentScores(NamedTuple):
    """Unlabelled attachment scores: shares of words whose head is right, of all and without punctuation."""

    uas: float
    uas_without_punctuation: float
    words: int


def attachment_scores(
    truth: Iterable[Sequence[int]],
    predicted: Iterable[Sequence[int]],
    punctuation: Iterable[Sequence[bool]] | None = None,
) -> AttachmentScores:
    """Return the unlabelled attachment scores of heads.

    Parameters
    ----------
    truth, predicted : iterables of sequences of int
        The heads of the words of each sentence.
    punctuation : iterable of sequences of bool, optional
        Whether each word is punctuation; none is by default.

    Examples
    --------
    >>> attachment_scores([[2, 0, 2]], [[2, 0, 1]], [[False, False, True]])
    AttachmentScores(uas=0.6666666666666666, uas_without_punctuation=1.0, words=3)
    """
    pairs = list(paired(truth, predicted))
    marks = [[False] * len(a) for a, _ in pairs] if punctuation is None else list(punctuation)
    right = [[p == q for p, q in zip(a, b, strict=True)] for a, b in pairs]
    words = [r for row in right for r in row]
    kept = [r for row, mark in paired(right, marks) for r, m in zip(row, mark, strict=True) if not m]
    return AttachmentScores(share(sum(words), len(words)), share(sum(kept), len(kept)), len(words))


def alignment_error_rate(
    sure: Iterable[Set[Link]], possible: Iterable[Set[Link]], predicted: Iterable[Set[Link]]
) -> float:
    """Return the alignment error rate of Och and Ney, ``1 - (|A & S| + |A & P|) / (|A| + |S|)``.

    Parameters
    ----------
    sure, possible, predicted : iterables of sets of pairs
        The links of each pair of sentences: S, P and A. Sure links count as possible ones too.

    Examples
    --------
    >>> alignment_error_rate([{(0, 0)}], [{(1, 1)}], [{(0, 0), (1, 1), (2, 2)}])
    0.25
    """
    right = total = 0
    for S, P, A in zip(sure, possible, predicted, strict=True):
        right += len(A & S) + len(A & (P | S))
        total += len(A) + len(S)
    return 1.0 - share(right, total)


class SetScores(NamedTuple):
    """Sets of labels: shares of sets and of single decisions that are right, and counts of labels."""

    subset_accuracy: float
    hamming_loss: float
    labels: Counts


def set_scores(truth: Iterable[Set[Item]], predicted: Iterable[Set[Item]], n_labels: int) -> SetScores:
    """Return the scores of sets of labels.

    Parameters
    ----------
    truth, predicted : iterables of sets
        The labels of each example.
    n_labels : int
        How many labels there are.

    Examples
    --------
    >>> scores = set_scores([{1}, {1, 2}], [{1}, {2}], n_labels=2)
    >>> scores.subset_accuracy, scores.hamming_loss, scores.labels.recall
    (0.5, 0.25, 0.6666666666666666)
    """
    examples = whole = wrong = 0
    counts = [0, 0, 0]
    for a, b in zip(truth, predicted, strict=True):
        examples += 1
        whole += a == b
        wrong += len(a ^ b)
        counts = [counts[0] + len(a), counts[1] + len(b), counts[2] + len(a & b)]
    return SetScores(
        share(whole, examples), 1.0 - share(examples * n_labels - wrong, examples * n_labels), Counts(*counts)
    )


def share(part: int, whole: int) -> float:
    """Return a part of a whole; 1 if there is nothing."""
    return part / whole if whole else 1.0


def n_equal(a: Sequence[object], b: Sequence[object]) -> int:
    """Return the number of places where two sequences of one length agree."""
    return sum(p == q for p, q in zip(a, b, strict=True))


def paired(
    truth: Iterable[Sequence[Item]], predicted: Iterable[Sequence[Item]]
) -> Iterator[tuple[Sequence[Item], Sequence[Item]]]:
    """Yield the two outputs of each example; raise if their numbers or lengths differ."""
    for number, (a, b) in enumerate(zip_longest(truth, predicted)):
        if a is None or b is None:
            which = ("predicted", "true") if a is None else ("true", "predicted")
            raise ValueError(
                f"evaluation: expected as many predicted sequences as true ones, got more that are "
                f"{which[0]} than {which[1]}."
            )
        if len(a) != len(b):
            raise ValueError(
                f"evaluation: expected {len(a)} predictions for sequence {number}, got {len(b)}."
            )
        yield a, b
