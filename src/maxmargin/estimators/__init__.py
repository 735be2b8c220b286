"""The scikit-learn layer: validation, encoding of labels and features, presets of methods."""

from typing import TYPE_CHECKING

from maxmargin._lazy import lazy_names

if TYPE_CHECKING:  # what type checkers and editors read; the table below says the same
    from maxmargin.estimators._explanation import Explanation as Explanation
    from maxmargin.estimators._pickles import pickle_training_data as pickle_training_data
    from maxmargin.estimators.chain import ChainSVC as ChainSVC
    from maxmargin.estimators.dependency import DependencySVC as DependencySVC
    from maxmargin.estimators.graph import GraphSVC as GraphSVC
    from maxmargin.estimators.loading import load as load
    from maxmargin.estimators.matching import MatchingSVC as MatchingSVC
    from maxmargin.estimators.multiclass import MulticlassSVC as MulticlassSVC
    from maxmargin.estimators.multilabel import MultilabelSVC as MultilabelSVC
    from maxmargin.estimators.segments import SegmentSVC as SegmentSVC
    from maxmargin.estimators.structured import StructuredSVC as StructuredSVC
    from maxmargin.estimators.token_transformer import TokenTransformer as TokenTransformer

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "_explanation": ["Explanation"],
            "_pickles": ["pickle_training_data"],
            "chain": ["ChainSVC"],
            "dependency": ["DependencySVC"],
            "graph": ["GraphSVC"],
            "loading": ["load"],
            "matching": ["MatchingSVC"],
            "multiclass": ["MulticlassSVC"],
            "multilabel": ["MultilabelSVC"],
            "segments": ["SegmentSVC"],
            "structured": ["StructuredSVC"],
            "token_transformer": ["TokenTransformer"],
        },
    )
