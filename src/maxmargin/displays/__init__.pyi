from .alignment import AlignmentDisplay as AlignmentDisplay
from .canvas import ConvergenceDisplay as ConvergenceDisplay
from .dependency import DependencyDisplay as DependencyDisplay
from .graph import GraphDisplay as GraphDisplay
from .segments import SegmentsDisplay as SegmentsDisplay
from .weights import FeaturesDisplay as FeaturesDisplay
from .weights import TransitionsDisplay as TransitionsDisplay
