"""Models of structured prediction, each a feature map and an oracle."""

from maxmargin.problems.arborescence import Arborescence as Arborescence
from maxmargin.problems.chain import Chain as Chain
from maxmargin.problems.custom import Custom as Custom
from maxmargin.problems.feature_map import MapSizes as MapSizes
from maxmargin.problems.graph import Graph as Graph
from maxmargin.problems.kernels import Kernelised as Kernelised
from maxmargin.problems.maps.arborescence import ArborescenceWeights as ArborescenceWeights
from maxmargin.problems.maps.chain import ChainWeights as ChainWeights
from maxmargin.problems.maps.graph import GraphWeights as GraphWeights
from maxmargin.problems.maps.matching import MatchingWeights as MatchingWeights
from maxmargin.problems.maps.multiclass import MulticlassWeights as MulticlassWeights
from maxmargin.problems.maps.second_order import SecondOrderWeights as SecondOrderWeights
from maxmargin.problems.maps.segments import SegmentWeights as SegmentWeights
from maxmargin.problems.matching import Matching as Matching
from maxmargin.problems.multiclass import Multiclass as Multiclass
from maxmargin.problems.oracle import OutputSizes as OutputSizes
from maxmargin.problems.oracles import _graph_margins as _graph_margins
from maxmargin.problems.oracles import _margins as _margins
from maxmargin.problems.oracles import _sequence_margins as _sequence_margins
from maxmargin.problems.oracles import _slack_classes as _slack_classes
from maxmargin.problems.oracles import _slack_graph as _slack_graph
from maxmargin.problems.oracles import _slack_oracles as _slack_oracles
from maxmargin.problems.problem import Problem as Problem
from maxmargin.problems.problem import Sizes as Sizes
from maxmargin.problems.problem import take as take
from maxmargin.problems.second_order import SecondOrderChain as SecondOrderChain
from maxmargin.problems.segments import Segments as Segments
from maxmargin.problems.wrappers import SignConstrained as SignConstrained
from maxmargin.problems.wrappers import SlackRescaled as SlackRescaled
from maxmargin.problems.wrappers import Weighted as Weighted
from maxmargin.rows.kernel_functions import GaussianKernel as GaussianKernel
from maxmargin.rows.kernel_functions import LinearKernel as LinearKernel
from maxmargin.rows.kernel_functions import PolynomialKernel as PolynomialKernel
from maxmargin.rows.kernel_functions import PrecomputedKernel as PrecomputedKernel
from maxmargin.rows.kernel_functions import SigmoidKernel as SigmoidKernel

__all__ = [
    "Arborescence",
    "ArborescenceWeights",
    "Chain",
    "ChainWeights",
    "Custom",
    "GaussianKernel",
    "Graph",
    "GraphWeights",
    "Kernelised",
    "LinearKernel",
    "MapSizes",
    "Matching",
    "MatchingWeights",
    "Multiclass",
    "MulticlassWeights",
    "OutputSizes",
    "PolynomialKernel",
    "PrecomputedKernel",
    "Problem",
    "SecondOrderChain",
    "SecondOrderWeights",
    "SegmentWeights",
    "Segments",
    "SigmoidKernel",
    "SignConstrained",
    "Sizes",
    "SlackRescaled",
    "Weighted",
    "take",
]
