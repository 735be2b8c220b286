"""The scikit-learn layer: what all estimators share, and the table of them."""

from importlib import import_module

from maxmargin._moved import former

# The structure of each estimator: its folder in `maxmargin.structures`.
STRUCTURES = {
    "ChainSVC": "sequences",
    "DependencySVC": "dependency",
    "GraphSVC": "graphs",
    "MatchingSVC": "matchings",
    "MulticlassSVC": "classes",
    "MultilabelSVC": "label_sets",
    "SegmentSVC": "segments",
    "StructuredSVC": "custom",
}
__all__ = sorted(STRUCTURES)


def estimator_class(name: str) -> type:
    """Return the class of an estimator by its name; its module is imported when it is needed."""
    found: type = getattr(import_module(f"maxmargin.structures.{STRUCTURES[name]}.estimator"), name)
    return found


def __getattr__(name: str) -> object:
    if name in STRUCTURES:
        return estimator_class(name)
    return former(__name__, name)
