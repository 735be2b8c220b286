"""Structural SVMs, trained fast, with a certificate of how far from optimal they are."""

from typing import TYPE_CHECKING

from maxmargin._lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:  # what type checkers and editors read; the table below says the same
    from maxmargin.checks import check_problem as check_problem
    from maxmargin.corpus import Corpus as Corpus
    from maxmargin.corpus import encode_files as encode_files
    from maxmargin.corpus import open_corpus as open_corpus
    from maxmargin.display import ProgressLine as ProgressLine
    from maxmargin.driver import solve as solve
    from maxmargin.encoding.grids import edge_differences as edge_differences
    from maxmargin.encoding.grids import grid_directions as grid_directions
    from maxmargin.encoding.grids import grid_edges as grid_edges
    from maxmargin.estimators import ChainSVC as ChainSVC
    from maxmargin.estimators import DependencySVC as DependencySVC
    from maxmargin.estimators import Explanation as Explanation
    from maxmargin.estimators import GraphSVC as GraphSVC
    from maxmargin.estimators import MatchingSVC as MatchingSVC
    from maxmargin.estimators import MulticlassSVC as MulticlassSVC
    from maxmargin.estimators import MultilabelSVC as MultilabelSVC
    from maxmargin.estimators import SegmentSVC as SegmentSVC
    from maxmargin.estimators import StructuredSVC as StructuredSVC
    from maxmargin.estimators import TokenTransformer as TokenTransformer
    from maxmargin.estimators import load as load
    from maxmargin.estimators import pickle_training_data as pickle_training_data
    from maxmargin.history import History as History
    from maxmargin.methods import BMRM as BMRM
    from maxmargin.methods import Accelerated as Accelerated
    from maxmargin.methods import Anchored as Anchored
    from maxmargin.methods import Averaged as Averaged
    from maxmargin.methods import Away as Away
    from maxmargin.methods import BlockExact as BlockExact
    from maxmargin.methods import BlockFrankWolfe as BlockFrankWolfe
    from maxmargin.methods import Cached as Cached
    from maxmargin.methods import CuttingPlane as CuttingPlane
    from maxmargin.methods import Divided as Divided
    from maxmargin.methods import ExcessiveGap as ExcessiveGap
    from maxmargin.methods import ExponentiatedGradient as ExponentiatedGradient
    from maxmargin.methods import Extragradient as Extragradient
    from maxmargin.methods import FrankWolfe as FrankWolfe
    from maxmargin.methods import LineSearch as LineSearch
    from maxmargin.methods import NSlackCuttingPlane as NSlackCuttingPlane
    from maxmargin.methods import Pairwise as Pairwise
    from maxmargin.methods import Perceptron as Perceptron
    from maxmargin.methods import Predefined as Predefined
    from maxmargin.methods import Subgradient as Subgradient
    from maxmargin.methods.protocol import BrokenOracle as BrokenOracle
    from maxmargin.methods.protocol import ScaleError as ScaleError
    from maxmargin.path import CPath as CPath
    from maxmargin.path import c_path as c_path
    from maxmargin.persistence.checkpoint import Checkpoint as Checkpoint
    from maxmargin.persistence.container import FileError as FileError
    from maxmargin.plotting import plot_convergence as plot_convergence
    from maxmargin.result import Progress as Progress
    from maxmargin.result import Result as Result
    from maxmargin.result import Status as Status
    from maxmargin.resume import WarmStart as WarmStart

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "checks": ["check_problem"],
            "corpus": ["Corpus", "encode_files", "open_corpus"],
            "display": ["ProgressLine"],
            "driver": ["solve"],
            "encoding.grids": ["edge_differences", "grid_directions", "grid_edges"],
            "estimators": [
                "ChainSVC",
                "DependencySVC",
                "Explanation",
                "GraphSVC",
                "MatchingSVC",
                "MulticlassSVC",
                "MultilabelSVC",
                "SegmentSVC",
                "StructuredSVC",
                "TokenTransformer",
                "load",
                "pickle_training_data",
            ],
            "history": ["History"],
            "methods": [
                "BMRM",
                "Accelerated",
                "Anchored",
                "Averaged",
                "Away",
                "BlockExact",
                "BlockFrankWolfe",
                "Cached",
                "CuttingPlane",
                "Divided",
                "ExcessiveGap",
                "ExponentiatedGradient",
                "Extragradient",
                "FrankWolfe",
                "LineSearch",
                "NSlackCuttingPlane",
                "Pairwise",
                "Perceptron",
                "Predefined",
                "Subgradient",
            ],
            "methods.protocol": ["BrokenOracle", "ScaleError"],
            "path": ["CPath", "c_path"],
            "persistence.checkpoint": ["Checkpoint"],
            "persistence.container": ["FileError"],
            "plotting": ["plot_convergence"],
            "problems": [],
            "result": ["Progress", "Result", "Status"],
            "resume": ["WarmStart"],
        },
    )
