"""Optimisation methods, each in one file."""

from maxmargin.methods.accelerated import Accelerated as Accelerated
from maxmargin.methods.anchored import Anchored as Anchored
from maxmargin.methods.averaged import Averaged as Averaged
from maxmargin.methods.block_exact import BlockExact as BlockExact
from maxmargin.methods.block_frank_wolfe import BlockFrankWolfe as BlockFrankWolfe
from maxmargin.methods.bmrm import BMRM as BMRM
from maxmargin.methods.cached import Cached as Cached
from maxmargin.methods.cutting_plane import CuttingPlane as CuttingPlane
from maxmargin.methods.divided import Divided as Divided
from maxmargin.methods.excessive_gap import ExcessiveGap as ExcessiveGap
from maxmargin.methods.exponentiated_gradient import ExponentiatedGradient as ExponentiatedGradient
from maxmargin.methods.extragradient import Extragradient as Extragradient
from maxmargin.methods.frank_wolfe import FrankWolfe as FrankWolfe
from maxmargin.methods.n_slack import NSlackCuttingPlane as NSlackCuttingPlane
from maxmargin.methods.pairwise import Away as Away
from maxmargin.methods.pairwise import Pairwise as Pairwise
from maxmargin.methods.perceptron import Perceptron as Perceptron
from maxmargin.methods.steps import LineSearch as LineSearch
from maxmargin.methods.steps import Predefined as Predefined
from maxmargin.methods.subgradient import Subgradient as Subgradient

__all__ = [
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
]
