"""Pictures of what a model has learnt and predicts, in the manner of scikit-learn's displays."""

from maxmargin.displays.alignment import AlignmentDisplay as AlignmentDisplay
from maxmargin.displays.convergence import ConvergenceDisplay as ConvergenceDisplay
from maxmargin.displays.dependency import DependencyDisplay as DependencyDisplay
from maxmargin.displays.features import FeaturesDisplay as FeaturesDisplay
from maxmargin.displays.graph import GraphDisplay as GraphDisplay
from maxmargin.displays.segments import SegmentsDisplay as SegmentsDisplay
from maxmargin.displays.transitions import TransitionsDisplay as TransitionsDisplay

__all__ = [
    "AlignmentDisplay",
    "ConvergenceDisplay",
    "DependencyDisplay",
    "FeaturesDisplay",
    "GraphDisplay",
    "SegmentsDisplay",
    "TransitionsDisplay",
]
