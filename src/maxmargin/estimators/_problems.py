"""The seam between estimators and problems: what estimators need beyond builders, wrappers and `unpack`."""

from maxmargin.encoding.joint import Joint
from maxmargin.problems import SignConstrained, SlackRescaled
from maxmargin.problems._labels import check_several as check_several
from maxmargin.problems.maps.identity import IdentityMap
from maxmargin.problems.oracles._k_best import KBest as KBest
from maxmargin.problems.oracles._k_best import KBestSegments as KBestSegments
from maxmargin.problems.oracles._k_best import check_k as check_k
from maxmargin.problems.oracles._k_best import k_best_outputs as k_best_outputs
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.custom import CustomOracle
from maxmargin.problems.oracles.second_order import SecondOrderOracle
from maxmargin.problems.oracles.segments import SegmentsOracle
from maxmargin.problems.oracles.slack import check_rescalable
from maxmargin.problems.problem import AnyProblem, sizes
from maxmargin.problems.problem import Problem as PairProblem
from maxmargin.problems.segments import check_choice as check_choice

Problem = AnyProblem
CustomProblem = PairProblem[IdentityMap, CustomOracle]
SequenceProblem = PairProblem[object, ChainOracle | SecondOrderOracle | SegmentsOracle]


def n_weights(problem: Problem) -> int:
    """Return the number of weights in the layout of the problem."""
    return int(sizes(problem).weights)


def joint_features(problem: CustomProblem) -> Joint:
    """Return how the features of a user's function are encoded."""
    return problem.oracle.joint


def rescaled(problem: Problem, rescaling: str, owner: str) -> Problem:
    """Return the problem with margins or slacks rescaled; raise if it has no oracle for the latter."""
    if rescaling == "margin":
        return problem
    check_rescalable(problem.oracle, owner)
    return SlackRescaled(problem)


def signed(problem: Problem, nonnegative: object) -> Problem:
    """Return the problem with some weights kept from being negative, or as it is if there are none."""
    return problem if nonnegative is None else SignConstrained(problem, nonnegative)
