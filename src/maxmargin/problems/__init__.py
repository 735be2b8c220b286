"""What is solved: structured-prediction models, each in one file."""

from maxmargin.problems import _chain_map as _chain_map
from maxmargin.problems import _chain_means as _chain_means
from maxmargin.problems import _graph_map as _graph_map
from maxmargin.problems import _segment_map as _segment_map
from maxmargin.problems import _segment_oracles as _segment_oracles
from maxmargin.problems import _segment_parts as _segment_parts
from maxmargin.problems import _slack_oracles as _slack_oracles
from maxmargin.problems._protocol import Sizes as Sizes
from maxmargin.problems.arborescence import Arborescence as Arborescence
from maxmargin.problems.arborescence import ArborescenceWeights as ArborescenceWeights
from maxmargin.problems.chain import Chain as Chain
from maxmargin.problems.chain import ChainWeights as ChainWeights
from maxmargin.problems.custom import Custom as Custom
from maxmargin.problems.graph import Graph as Graph
from maxmargin.problems.graph import GraphWeights as GraphWeights
from maxmargin.problems.matching import Matching as Matching
from maxmargin.problems.matching import MatchingWeights as MatchingWeights
from maxmargin.problems.multiclass import Multiclass as Multiclass
from maxmargin.problems.multiclass import MulticlassWeights as MulticlassWeights
from maxmargin.problems.second_order import SecondOrderChain as SecondOrderChain
from maxmargin.problems.second_order import SecondOrderWeights as SecondOrderWeights
from maxmargin.problems.segments import Segments as Segments
from maxmargin.problems.segments import SegmentWeights as SegmentWeights
from maxmargin.problems.signs import SignConstrained as SignConstrained
from maxmargin.problems.slack import SlackRescaled as SlackRescaled
from maxmargin.problems.weighted import Weighted as Weighted

__all__ = [
    "Arborescence",
    "ArborescenceWeights",
    "Chain",
    "ChainWeights",
    "Custom",
    "Graph",
    "GraphWeights",
    "Matching",
    "MatchingWeights",
    "Multiclass",
    "MulticlassWeights",
    "SecondOrderChain",
    "SecondOrderWeights",
    "SegmentWeights",
    "Segments",
    "SignConstrained",
    "Sizes",
    "SlackRescaled",
    "Weighted",
]
