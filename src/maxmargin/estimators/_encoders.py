"""How the encoders of features, which `fit` learns, are stored."""

from collections.abc import Hashable
from typing import cast

import numpy as np

from maxmargin.corpus.hashing import MOST_BITS, HashingEncoder
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.arc_features import ArcEncoder
from maxmargin.encoding.joint import DenseJoint, Joint, NamedJoint, PairJoint, SparseJoint
from maxmargin.encoding.kinds import NOUNS, Kind
from maxmargin.encoding.objects import ObjectEncoder
from maxmargin.encoding.tokens import Words
from maxmargin.estimators._fields import COUNT, Field, choice
from maxmargin.persistence.parts import Draft, Stored
from maxmargin.persistence.plain import NotPlain
from maxmargin.wording import quoted

_OBJECTS, _HASHED, _TEXTS, _NAMES = "objects", "hashed", "texts", "names"
_JOINTS: dict[str, type[DenseJoint]] = {"arrays": DenseJoint, "sparse": SparseJoint, "pairs": PairJoint}
_SIZE = ".size"


TokenEncoder = SequenceEncoder | HashingEncoder | ObjectEncoder


def _write_tokens(draft: Draft, name: str, encoder: TokenEncoder) -> None:
    kind: str = getattr(encoder, "kind_", _OBJECTS if isinstance(encoder, ObjectEncoder) else _HASHED)
    draft.put(name, kind)
    draft.put(name + _SIZE, encoder.n_features_in_)
    if encoder.feature_names_ is not None:
        draft.put_texts(name, encoder.feature_names_)


def _read_tokens(stored: Stored, name: str) -> TokenEncoder:
    kind = choice(_OBJECTS, _HASHED, *NOUNS).read(stored, name)
    size = COUNT.read(stored, name + _SIZE)
    if kind == _OBJECTS:
        return ObjectEncoder(stored.owner)
    if kind == _HASHED:
        return HashingEncoder(_checked_bits(stored, size), stored.owner)
    names = stored.take_texts(name) if stored.has(name) else None
    return SequenceEncoder.restored(cast("Kind", kind), size, names, stored.owner)


def _checked_bits(stored: Stored, size: int) -> int:
    bits = size.bit_length() - 1
    if size != 1 << max(bits, 0) or not 1 <= bits <= MOST_BITS:
        stored.fail("a power of two of hashed features", str(size))
    return bits


def _write_arcs(draft: Draft, name: str, encoder: ArcEncoder) -> None:
    words, tags, keys = encoder.learnt
    draft.put_texts(name + ".words", words)
    draft.put_texts(name + ".tags", tags)
    draft.arrays[name] = keys


def _read_arcs(stored: Stored, name: str) -> ArcEncoder:
    words, tags = stored.take_texts(name + ".words"), stored.take_texts(name + ".tags")
    return ArcEncoder.restored(words, tags, stored.take_array(name, "u", None).astype(np.uint64))


def _write_joint(draft: Draft, name: str, joint: Joint) -> None:
    if not isinstance(joint, NamedJoint):
        draft.put(name, next(kind for kind, known in _JOINTS.items() if type(joint) is known))
    elif all(type(feature) is str for feature in joint.names):
        draft.put(name, _TEXTS)
        draft.put_texts(name, map(str, joint.names))
    else:
        draft.put(name, _NAMES)
        _write_names(draft, name, list(joint.names))
    draft.put(name + _SIZE, joint.size)


def _write_names(draft: Draft, name: str, names: list[Hashable]) -> None:
    try:
        draft.put_long(name, names)
    except NotPlain as error:
        raise ValueError(
            f"names of features must be texts, numbers or tuples of these to be saved, got {error}; pickle "
            "the model, or name features otherwise"
        ) from None


def _read_joint(stored: Stored, name: str) -> Joint:
    kind = choice(_TEXTS, _NAMES, *_JOINTS).read(stored, name)
    size = COUNT.read(stored, name + _SIZE)
    if kind in _JOINTS:
        return _JOINTS[kind](size)
    names = stored.take_texts(name) if kind == _TEXTS else stored.take_long(name)
    if not isinstance(names, list) or not all(isinstance(item, Hashable) for item in names):
        stored.fail(f"names for {name!r}", quoted(names))
    joint = NamedJoint(names)
    if joint.size != size:
        stored.fail(f"{size} names for {name!r}", str(joint.size))
    return joint


def named_rows(words: Words) -> Field:
    """Return the field of the encoder of the names of features of these parts."""

    def read(stored: Stored, name: str) -> SequenceEncoder:
        kind = choice("dicts", "strings").read(stored, name)
        size, names = COUNT.read(stored, name + _SIZE), stored.take_texts(name)
        return SequenceEncoder.restored(cast("Kind", kind), size, names, stored.owner, words)

    return Field(_write_tokens, read)


TOKENS = Field(_write_tokens, _read_tokens)
ARCS = Field(_write_arcs, _read_arcs)
JOINT = Field(_write_joint, _read_joint)
