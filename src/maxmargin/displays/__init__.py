"""Pictures of what a model has learnt and predicts, in the manner of scikit-learn's displays."""

from maxmargin.displays.alignment import AlignmentDisplay
from maxmargin.displays.canvas import ConvergenceDisplay
from maxmargin.displays.dependency import DependencyDisplay
from maxmargin.displays.graph import GraphDisplay
from maxmargin.displays.segments import SegmentsDisplay
from maxmargin.displays.weights import FeaturesDisplay, TransitionsDisplay

__all__ = [
    "AlignmentDisplay",
    "ConvergenceDisplay",
    "DependencyDisplay",
    "FeaturesDisplay",
    "GraphDisplay",
    "SegmentsDisplay",
    "TransitionsDisplay",
]
