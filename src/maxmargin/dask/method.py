r"""A block method whose examples are on workers: `Divided` with parts elsewhere.

A round is as in `maxmargin.methods.divided`: parts move from the common weights with steps that count
:math:`\sigma` times, and :math:`w \leftarrow w + \frac1\sigma \sum_p d_p`. Then :math:`G \leftarrow G +
\frac{\lambda n}{\sigma} \sum_p d_p` is the sum of :math:`\Phi_i z_i` (see `maxmargin.dask`).

**How often parts synchronise.** With P parts and R rounds in a pass, the number of passes to a gap is about
:math:`N (1 + c P / R)`: what a part does not see of the others in a round costs passes. If the visits of a
pass take A seconds on one thread, and a round b seconds besides its visits, a pass takes :math:`A / P + R b`.
The time of all passes is least for

.. math:: R = \sqrt{c \, A / b} ,

whatever P. A and b are measured in the passes so far. c was fitted to passes of two parts
(``docs/guides/scaling.md``).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from maxmargin.compiling import is_wrapper
from maxmargin.dask.calls import Report, Trouble, Turn, add, dense
from maxmargin.dask.fleet import Round, Rounds
from maxmargin.methods import protocol
from maxmargin.methods.accelerated import first_kappa
from maxmargin.methods.divided import Divided, mean_interaction, sigma_for
from maxmargin.methods.momentum import affordable_updates
from maxmargin.methods.protocol import Point, Traits, needs
from maxmargin.methods.rules import Listed, Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.limits import OutOfTime, stopped_clock
from maxmargin.runtime.wording import shown
from maxmargin.solving import objective
from maxmargin.solving.kinds import Kind, check_scale, checked_method, kind_of, named_sampler
from maxmargin.solving.resume import Beginning, UnfitStart, WarmStart
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.feature_map import MapSizes, inner
from maxmargin.structures.oracle import OutputSizes
from maxmargin.structures.problem import Sizes


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


@objective.mean_hinge.register(Partitioned)
def partitioned_mean_hinge(problem: Partitioned, w: FloatArray) -> float:
    rounds = problem.rounds
    return float(rounds.surely(lambda: rounds.hinges(w))) / problem.map.sizes.examples


@objective.reaches.register(Partitioned)
def partitioned_reaches(problem: Partitioned, zero: FloatArray, bound: float) -> bool:
    return partitioned_mean_hinge(problem, zero) >= bound


@first_kappa.register(Partitioned)
def partitioned_first_kappa(problem: Partitioned, method: object) -> float:
    rounds = problem.rounds
    try:
        return float(rounds.surely(lambda: rounds.kappa(method, problem.map.sizes.examples)))
    except OutOfTime:  # as where no step was measured
        return 0.0


_FIRST_ROUNDS = 8  # most rounds of the first pass, when costs are not known
_MOST_ROUNDS = 256
_STALENESS = 0.6  # the c of the formula
_CAUTION = 2.0  # rounds are long, and rho changes from one to the next


class _Distributed(NamedTuple):
    inner: Any
    rounds: int | None


class Distributed(_Distributed):
    """A block method whose examples are on the workers of a cluster; used by `maxmargin.dask.solve`.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise, Away or BlockExact
        The method that moves the blocks.
    rounds : int, optional
        How often parts synchronise in a pass. By default this follows from what a round costs, so that runs
        with the same seed need not give the same bits.
    """

    __slots__ = ()

    def __new__(cls, inner: object, rounds: int | None = None) -> "Distributed":
        if not protocol.is_method(inner) or needs("Divided", inner):
            raise ValueError(
                f"Distributed: inner must be BlockFrankWolfe, Pairwise, Away or BlockExact, got "
                f"{shown(inner)}."
            )
        if rounds is not None and not (isinstance(rounds, int | np.integer) and rounds >= 1):
            raise ValueError(f"Distributed: rounds must be an int >= 1 or None, got {rounds!r}.")
        return super().__new__(cls, inner, rounds)


class DistributedState(NamedTuple):
    """What the client knows of a run.

    Attributes
    ----------
    w : array
        The common weights.
    image : array
        G, the sum of Phi_i z_i.
    ell : float
        The mean dual loss.
    interaction : float
        The running mean of rho: how much the moves of parts interact.
    epoch : int
        The epoch of the fleet in which this was true.
    """

    w: FloatArray
    image: FloatArray
    ell: float
    interaction: float
    epoch: int


class PartitionedKind(Kind):
    """A problem whose examples are on workers, and a method for it."""

    problem: Partitioned  # type: ignore[assignment]

    def __init__(self, problem: Partitioned, method: object) -> None:
        innermost = checked = checked_method(method)
        while is_wrapper(type(innermost)) and not isinstance(innermost, Distributed):
            innermost = innermost.inner  # type: ignore[attr-defined]
        if not isinstance(innermost, Distributed):
            raise ValueError(
                f"solve: method must be Distributed, accelerated or not, for a Partitioned problem, got "
                f"{shown(method)}; use maxmargin.dask.solve."
            )
        check_scale(problem, checked)  # type: ignore[arg-type]
        self.problem, self.method = problem, checked

    def sampler(self, sampling: str) -> FarSampler:  # type: ignore[override]
        """Return a sampler of seeds."""
        named_sampler(sampling, 1)  # raises if there is no such sampling
        return FarSampler(self.problem.map.sizes.examples, sampling)

    def begin(self, warm: WarmStart | None) -> Beginning:
        """Return the state at zero weights; raise if there is a warm start."""
        if warm is not None:
            raise UnfitStart("solve: start must be None on a cluster, got a result; leave start out.")
        return super().begin(None)


@kind_of.register(Partitioned)
def partitioned_kind(problem: Partitioned, method: object) -> PartitionedKind:
    return PartitionedKind(problem, method)


@protocol.start.register(Distributed)
def distributed_start(method: Distributed, problem: Partitioned) -> DistributedState:
    fleet, d = problem.rounds.fleet, problem.map.sizes.weights
    with stopped_clock():  # workers compile their kernels
        fleet.start(method.inner)
    return DistributedState(aligned_zeros(d), np.zeros(d), 0.0, np.inf, fleet.epoch)


@advance.register(Distributed)
def distributed_advance(
    method: Distributed, state: DistributedState, problem: Partitioned, visits: Visits | IntArray
) -> DistributedState:
    length, total = protocol.grain(method, problem), n_visits(visits)
    try:
        for first in range(0, max(total, 1), length):
            turns = cast("Turns", some_visits(visits, first, first + length).order)
            state = _surely_one_round(method, state, problem, turns)
        if turns.stop == problem.map.sizes.examples:
            problem.rounds.end_pass()
    except OutOfTime:  # the state is that after the last whole round; what parts did since is unknown
        problem.rounds.fleet.epoch += 1
    return state


def _surely_one_round(
    method: Distributed, state: DistributedState, problem: Partitioned, turns: Turns
) -> DistributedState:
    """Make a round; if workers are lost, put the run together again and repeat it."""
    fleet = problem.rounds.fleet
    while True:
        try:
            if state.epoch != fleet.epoch:
                state = _restored(method, state, problem)
            return _one_round(method, state, problem, turns)
        except Trouble as trouble:
            fleet.recover(trouble)


def _restored(method: Distributed, state: DistributedState, problem: Partitioned) -> DistributedState:
    """Make the weights those of the dual variables that are left."""
    rounds, n = problem.rounds, problem.map.sizes.examples
    epoch = rounds.fleet.epoch
    found = rounds.image(method.inner)
    image = dense(found.change)
    w = state.w + (image - state.image) / (protocol.regularisation(method) * n)
    return state._replace(w=w, image=image, ell=found.ell / n, epoch=epoch)


def _one_round(
    method: Distributed, state: DistributedState, problem: Partitioned, turns: Turns
) -> DistributedState:
    """Move the blocks, each in its part, and synchronise the weights."""
    rounds, n = problem.rounds, problem.map.sizes.examples
    parts = rounds.fleet.parts()
    before = min(state.interaction, float(len(parts)))
    sigma = sigma_for(before, len(parts), _CAUTION)
    turn = Turn(method.inner, sigma, n, turns.seed, turns.sampling, turns.first, turns.stop)
    found = rounds.one(turn, state.w, parts)
    rho, gain = _measured(method, state, problem, found, sigma)
    add(found.change, 1.0 / sigma, state.w)
    add(found.change, protocol.regularisation(method) * n / sigma, state.image)
    interaction = mean_interaction(before, before if rho is None else rho, gain, len(parts))
    rounds.note(turn, parts, found)
    return state._replace(ell=found.ell / n, interaction=interaction)


def _measured(
    method: Distributed, state: DistributedState, problem: Partitioned, found: Report, sigma: float
) -> tuple[float | None, float]:
    """Return rho, if parts have moved, and by how much the dual has grown."""
    d = dense(found.change)
    square, slope = inner(problem.map, d, d), inner(problem.map, state.w, d)
    gain = found.ell / problem.map.sizes.examples - state.ell
    gain -= protocol.regularisation(method) * (slope / sigma + 0.5 * square / sigma**2)
    return square / found.square if found.square > 0.0 else None, gain


@protocol.grain.register(Distributed)
def distributed_grain(method: Distributed, problem: Partitioned) -> int:
    n, log = problem.map.sizes.examples, problem.rounds.earlier
    first = affordable_updates(problem, _FIRST_ROUNDS)  # type: ignore[arg-type]
    in_a_pass = method.rounds or (best_rounds(log, n) if log else first)
    return -(-n // min(in_a_pass, n))


def best_rounds(log: list[Round], n: int) -> int:
    """Return how many rounds a pass of n visits should have, by what earlier ones took."""
    visits = sum(each.visits for each in log)
    on_one_thread = sum(each.parts * each.oracle_seconds for each in log) * n / max(visits, 1)
    cost = float(np.median([each.seconds - each.oracle_seconds for each in log]))
    if cost <= 0.0:
        return _MOST_ROUNDS
    return max(1, min(_MOST_ROUNDS, round(np.sqrt(_STALENESS * on_one_thread / cost))))


@protocol.weights.register(Distributed)
def distributed_weights(method: Distributed, state: DistributedState) -> FloatArray:
    return state.w


@protocol.oracle_calls.register(Distributed)
def distributed_oracle_calls(method: Distributed, state: DistributedState, visits: int) -> int:
    return visits


@protocol.dual_loss.register(Distributed)
def distributed_dual_loss(method: Distributed, state: DistributedState) -> float:
    return state.ell


@protocol.point.register(Distributed)
def distributed_point(method: Distributed, state: DistributedState, problem: Partitioned) -> Point:
    return protocol.dual_point(problem, state.w, state.ell)  # type: ignore[arg-type]


@protocol.traits.register(Distributed)
def distributed_traits(method: Distributed) -> Traits:
    own = {"has_step": False, "notes_gaps": False, "projects": False, "wraps": True}
    return protocol.traits(method.inner)._replace(**own)


def on_workers(method: Any) -> Any:
    """Return a method with its block method, or with `Divided`, in `Distributed`."""
    if isinstance(method, Distributed):
        return method
    if isinstance(method, Divided):
        return Distributed(method.inner)
    if is_wrapper(type(method)):
        return method._replace(inner=on_workers(method.inner))
    return Distributed(method)
