"""Users' sequences, labels and links to arrays."""

from .labels import encode_labels
from .sequences import SequenceEncoder
from .tokens import Tokens

__all__ = ["SequenceEncoder", "Tokens", "encode_labels"]
