"""The loops of tagging by name, to be compiled or interpreted."""

from collections.abc import Callable

from maxmargin.tagging.lines import tag_text
from maxmargin.tagging.table import index_features

KERNELS: dict[str, Callable[..., int]] = {"index_features": index_features, "tag_text": tag_text}
