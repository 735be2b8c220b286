"""The problem whose examples are on workers, as the driver sees it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin import _arguments, kinds, objective
from maxmargin.arrays import FloatArray, IntArray
from maxmargin.dask.rounds import Rounds
from maxmargin.limits import OutOfTime
from maxmargin.methods._first_kappa import kappa_of
from maxmargin.methods.sampling import Listed, Visits
from maxmargin.problems import feature_map, oracle
from maxmargin.problems.feature_map import MapSizes
from maxmargin.problems.oracle import OutputSizes
from maxmargin.problems.problem import Sizes
from maxmargin.resume import Beginning, UnfitStart, WarmStart, begin_anew


class FarMap(NamedTuple):
    """The feature map of examples on workers: sizes, and where the weights are that users see."""

    sizes: MapSizes
    layout: IntArray


class FarOracle(NamedTuple):
    """The oracle of examples on workers."""

    sizes: OutputSizes
    bounded: bool


class Partitioned(NamedTuple):
    """A problem whose examples are on the workers of a cluster."""

    map: FarMap
    oracle: FarOracle
    rounds: Rounds

    def unpack(self, w: FloatArray) -> tuple[FloatArray, ...]:
        """Return the weights in the order that users expect."""
        return (w[self.map.layout],)


def partitioned(rounds: Rounds) -> Partitioned:
    """Return the problem of a fleet whose partitions are loaded."""
    size: Sizes = rounds.fleet.sizes
    of_map = MapSizes(size.examples, size.weights, size.statistics)
    bounded = all(about.is_bounded for about in rounds.fleet.about.values())
    phi = FarMap(of_map, rounds.surely(rounds.layout))
    return Partitioned(phi, FarOracle(OutputSizes(size.output, size.parts), bounded), rounds)


@feature_map.map_sizes.register(FarMap)
def far_map_sizes(phi: FarMap) -> MapSizes:
    return phi.sizes


@oracle.output_sizes.register(FarOracle)
def far_output_sizes(of: FarOracle) -> OutputSizes:
    return of.sizes


@oracle.is_exact.register(FarOracle)
def far_is_exact(of: FarOracle) -> bool:
    """Whether its certificates hold: that of an approximate oracle with a bound does, too."""
    return of.bounded


@dataclass(frozen=True)
class Turns:
    """Visits of a pass that each partition draws for itself: what is sent is a seed."""

    seed: int
    sampling: str
    first: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.first

    def __getitem__(self, some: slice) -> "Turns":
        first, stop, _ = some.indices(len(self))
        return Turns(self.seed, self.sampling, self.first + first, self.first + max(first, stop))


class FarSampler(NamedTuple):
    """Draws the seed of a pass."""

    n: int
    sampling: str

    def draw(self, rng: np.random.Generator) -> Visits:
        """Return the visits of the next pass."""
        return Listed(Turns(int(rng.integers(2**62)), self.sampling, 0, self.n))  # type: ignore[arg-type]

    def none(self) -> Visits:
        """Return no visits."""
        return Listed(Turns(0, self.sampling, 0, 0))  # type: ignore[arg-type]


@kinds.sampler.register(Partitioned)
def partitioned_sampler(problem: Partitioned, sampling: str) -> FarSampler:
    _arguments.sampler(sampling, 1)  # raises if there is no such sampling
    return FarSampler(problem.map.sizes.examples, sampling)


@kinds.begin.register(Partitioned)
def partitioned_begin(problem: Partitioned, method: object, warm: WarmStart | None) -> Beginning:
    if warm is not None:
        raise UnfitStart("solve: start must be None on a cluster, got a result; leave start out.")
    return begin_anew(problem, method)  # type: ignore[arg-type]


@objective.mean_hinge.register(Partitioned)
def partitioned_mean_hinge(problem: Partitioned, w: FloatArray) -> float:
    rounds = problem.rounds
    return float(rounds.surely(lambda: rounds.hinges(w))) / problem.map.sizes.examples


@objective.reaches.register(Partitioned)
def partitioned_reaches(problem: Partitioned, zero: FloatArray, bound: float) -> bool:
    return partitioned_mean_hinge(problem, zero) >= bound


@kappa_of.register(Partitioned)
def partitioned_kappa_of(problem: Partitioned, method: object) -> float:
    rounds = problem.rounds
    try:
        return float(rounds.surely(lambda: rounds.kappa(method, problem.map.sizes.examples)))
    except OutOfTime:  # as where no step was measured
        return 0.0
