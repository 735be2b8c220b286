"""What a worker does with its partitions, without a cluster: against sums over all examples."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from maxmargin import Away, BlockExact, BlockFrankWolfe, Pairwise
from maxmargin.dask import tasks
from maxmargin.dask.calls import Lost, PartitionError, Turn, Update, combined, dense, difference, encoded
from maxmargin.dask.tasks import Held
from maxmargin.methods.accelerated import first_kappa
from maxmargin.methods.protocol import dual_weights
from maxmargin.problems import GaussianKernel, Kernelised, Multiclass
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes

RUN, LAM, SIZES = "run", 0.05, (7, 4, 6)
N = sum(SIZES)
METHODS = {"bcfw": BlockFrankWolfe(LAM), "pairwise": Pairwise(LAM), "away": Away(LAM)}


def data(p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(p)
    return rng.normal(size=(SIZES[p], 3)), np.arange(SIZES[p]) % 3


def problem(p: int) -> Any:
    return Multiclass.from_arrays(*data(p))


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Held]]:
    """Hold all partitions on a worker that is no Dask worker."""
    monkeypatch.setattr(tasks, "here", lambda run: (run, "here"))
    return [tasks.load(RUN, p, problem, None, p) for p in range(len(SIZES))]


def begun(method: Any) -> None:
    for p in range(len(SIZES)):
        tasks.begin(RUN, p, method)


def turn(method: Any, sigma: float = 1.0, first: int = 0, stop: int = N) -> Turn:
    return Turn(method, sigma, N, 5, "permutation", first, stop)


def whole(version: int, w: np.ndarray) -> Update:
    return Update(version, None, encoded(w))


def weights_of_duals(method: Any, worker: list[Held]) -> np.ndarray:
    return sum(dual_weights(method, held.state, held.problem) for held in worker)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_moves_of_two_parts_are_those_of_their_dual_variables(worker: list[Held], method: Any) -> None:
    begun(method)
    d, sigma, groups = sizes(worker[0].problem).weights, 2.0, ((0, 2), (1,))
    w = np.zeros(d)
    for number in (1, 2):
        for k, mine in enumerate(groups):
            assert tasks.move(RUN, k, 0, mine, number, turn(method, sigma), whole(number, w), 10.0)
        reports = [tasks.collect(RUN, k, 0, mine, number, method) for k, mine in enumerate(groups)]
        found = combined(*reports)
        w = w + dense(found.change) / sigma
        # lam n w is the sum of Phi_i z_i of all partitions.
        np.testing.assert_allclose(LAM * N * w, weights_of_duals(method, worker), atol=1e-12)
        assert found.square == pytest.approx(sum(np.square(dense(each.change)).sum() for each in reports))
        assert found.ell == pytest.approx(sum(held.state.ell.sum() for held in worker))
    images = [tasks.image(RUN, 0, p, method) for p in range(len(SIZES))]
    np.testing.assert_allclose(dense(combined(*images).change), LAM * N * w, atol=1e-12)
    assert combined(*images).ell == pytest.approx(found.ell)


def test_every_example_is_visited_once_in_a_pass() -> None:
    for size in (1, 5, 17):
        rounds = [
            tasks.own_visits(turn(None, first=first, stop=min(first + 4, N)), 3, size)
            for first in range(0, N, 4)
        ]
        assert sorted(np.concatenate(rounds)) == list(range(size))


def test_partitions_draw_their_own_visits() -> None:
    orders = [tasks.own_visits(turn(None), p, 50).tolist() for p in (0, 1)]
    assert orders[0] != orders[1]
    uniform = tasks.own_visits(turn(None)._replace(sampling="uniform"), 0, 50)
    assert len(uniform) == 50
    assert 0 <= uniform.min() <= uniform.max() < 50


def test_work_in_pieces_gives_the_same_bits(worker: list[Held], monkeypatch: pytest.MonkeyPatch) -> None:
    method, w = Pairwise(LAM), np.zeros(sizes(worker[0].problem).weights)
    begun(method)
    assert tasks.move(RUN, 0, 0, (0, 1, 2), 1, turn(method), whole(1, w), 10.0)
    expected = tasks.collect(RUN, 0, 0, (0, 1, 2), 1, method)
    again = [tasks.load(RUN, p, problem, None, p) for p in range(len(SIZES))]
    begun(method)
    clock = iter(np.arange(0.0, 1e6, 0.4))
    monkeypatch.setattr(tasks, "now", lambda: 0.0)
    monkeypatch.setattr("maxmargin.runtime.limits.now", lambda: next(clock))
    calls = 1
    while not tasks.move(RUN, 0, 0, (0, 1, 2), 2, turn(method), whole(2, w), calls * 3.0):
        calls += 1
    assert calls > 2
    found = tasks.collect(RUN, 0, 0, (0, 1, 2), 2, method)
    np.testing.assert_array_equal(dense(found.change), dense(expected.change))
    assert found.ell == expected.ell
    assert len(again) == 3


def test_asked_twice_a_worker_works_once(worker: list[Held]) -> None:
    method, w = Pairwise(LAM), np.zeros(sizes(worker[0].problem).weights)
    begun(method)
    for _ in range(2):
        assert tasks.move(RUN, 0, 0, (0, 1), 1, turn(method), whole(1, w), 10.0)
    once = dense(tasks.collect(RUN, 0, 0, (0, 1), 1, method).change)
    np.testing.assert_allclose(
        LAM * N * once,
        sum(dual_weights(method, held.state, held.problem) for held in worker[:2]),
        atol=1e-12,
    )


def test_tasks_of_an_earlier_epoch_change_nothing(worker: list[Held]) -> None:
    method, w = Pairwise(LAM), np.zeros(sizes(worker[0].problem).weights)
    begun(method)
    before = dense(tasks.image(RUN, 3, 0, method).change)
    with pytest.raises(Lost):
        tasks.move(RUN, 0, 2, (0, 1), 1, turn(method), whole(1, w), 10.0)
    with pytest.raises(Lost):
        tasks.collect(RUN, 0, 2, (0, 1), 1, method)
    np.testing.assert_array_equal(dense(tasks.image(RUN, 3, 0, method).change), before)


def test_weights_come_as_differences(worker: list[Held]) -> None:
    bench, old = worker[0].bench, np.array([1.0, 0.0, 2.0, 3.0])
    bench.adopt(whole(1, old))
    new = np.array([1.0, 5.0, 2.0, 0.0])
    update = Update(2, 1, difference(new, old))
    bench.adopt(update)
    bench.adopt(update)  # another part of the same worker has the same message
    np.testing.assert_array_equal(bench.w, new)
    with pytest.raises(Lost, match="version 4"):
        bench.adopt(Update(5, 4, difference(new, old)))


def test_hinges_in_pieces_are_those_at_once(worker: list[Held], monkeypatch: pytest.MonkeyPatch) -> None:
    w = np.random.default_rng(1).normal(size=sizes(worker[0].problem).weights)
    expected = sum(float(objective.hinge_losses(held.problem, w).sum()) for held in worker)
    done, found = tasks.hinges(RUN, 0, (0, 1, 2), 1, encoded(w), 10.0)
    assert done
    assert found == pytest.approx(expected, rel=1e-12)
    clock = iter(np.arange(0.0, 1e6, 0.4))
    monkeypatch.setattr(tasks, "now", lambda: 0.0)
    monkeypatch.setattr("maxmargin.runtime.limits.now", lambda: next(clock))
    calls = 1
    while not (answer := tasks.hinges(RUN, 0, (0, 1, 2), 2, encoded(w), 2.0 * calls))[0]:
        calls += 1
    assert calls > 2
    assert answer[1] == pytest.approx(expected, rel=1e-12)


def test_a_partition_takes_its_state_along(worker: list[Held]) -> None:
    method, w = Pairwise(LAM), np.zeros(sizes(worker[0].problem).weights)
    begun(method)
    tasks.move(RUN, 0, 0, (0,), 1, turn(method), whole(1, w), 10.0)
    moved = tasks.load(RUN, 0, problem, tasks.state_of(RUN, 0), 0)
    tasks.begin(RUN, 0, method, False)
    expected = dual_weights(method, worker[0].state, worker[0].problem)
    np.testing.assert_array_equal(dual_weights(method, moved.state, moved.problem), expected)
    assert np.abs(expected).max() > 0.0
    moved.state.ell[:] = 7.0
    assert worker[0].state.ell.max() < 7.0


def test_what_is_let_go_of_is_lost(worker: list[Held]) -> None:
    worker.clear()
    with pytest.raises(Lost):
        tasks.begin(RUN, 0, Pairwise(LAM))


def test_a_partition_stays_on_its_worker(worker: list[Held]) -> None:
    import pickle

    with pytest.raises(TypeError, match="partition 1 stays on its worker"):
        pickle.dumps(worker[1])


def test_errors_name_the_partition(worker: list[Held]) -> None:
    def fail(p: int) -> Any:
        raise OSError("no such file")

    with pytest.raises(PartitionError, match="partition 2 failed: OSError: no such file"):
        tasks.load(RUN, 2, fail, None, 2)
    with pytest.raises(PartitionError, match="partition 2 must be a problem"):
        tasks.load(RUN, 2, lambda: 3, None)
    X, y = data(0)
    with pytest.raises(PartitionError, match="partition 0 must have weights without kernels"):
        tasks.load(RUN, 0, lambda: Kernelised(Multiclass.from_arrays(X, y), X, GaussianKernel(1.0)), None)


def test_kappa_of_a_partition_is_for_all_examples(worker: list[Held]) -> None:
    # Its square is inversely proportional to the number of examples, whatever measures it.
    found = [(n, tasks.kappa(RUN, 0, BlockExact(LAM), n)) for n in (SIZES[0], 10 * SIZES[0])]
    (first, second) = (n * kappa**2 for n, kappa in found)
    assert first == pytest.approx(second, rel=1e-9)
    assert first > 0.0
    assert found[0][1] == first_kappa(problem(0), BlockExact(LAM))
