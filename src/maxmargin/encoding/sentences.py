"""Sentences given as lists of tagged words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np

from maxmargin.encoding.arcs import some_sentences
from maxmargin.encoding.tokens import Offsets
from maxmargin.wording import described, quoted


class Tagged(NamedTuple):
    """The words of all sentences, in lower case, their tags, and where each sentence begins."""

    words: list[str]
    tags: list[str]
    offsets: Offsets


def encode_tagged(X: object, *, owner: str) -> Tagged:
    """Return the words and tags of sentences given as lists of pairs."""
    words: list[str] = []
    tags: list[str] = []
    ends = [0]
    for i, sentence in enumerate(some_sentences(X, owner)):
        if not isinstance(sentence, Iterable) or isinstance(sentence, str | bytes | dict):
            raise TypeError(
                f"{owner}: sentence {i} of X is {described(sentence)}, expected a list of pairs (word, tag); "
                "if X is one sentence pass [X]."
            )
        for token in sentence:
            if not _is_pair(token):
                raise TypeError(
                    f"{owner}: word {len(words) - ends[-1] + 1} of sentence {i} of X is {quoted(token)}, "
                    "expected a pair (word, tag) of strings."
                )
            words.append(token[0].lower())
            tags.append(token[1])
        ends.append(len(words))
    return Tagged(words, tags, np.array(ends, dtype=np.int64))


def _is_pair(token: object) -> TypeGuard[Sequence[str]]:
    if not isinstance(token, Sequence) or isinstance(token, str):
        return False
    return len(token) == 2 and all(isinstance(field, str) for field in token)
