"""Encode users' sequences, labels, links, arcs and graphs as arrays."""

from maxmargin.encoding.kinds import Tokens
from maxmargin.encoding.labels import encode_labels
from maxmargin.encoding.sequences import SequenceEncoder

__all__ = ["SequenceEncoder", "Tokens", "encode_labels"]
