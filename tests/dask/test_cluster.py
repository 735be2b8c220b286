"""Runs on a cluster whose workers are threads of this process: against one machine, and after losses."""

import signal
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask import bag
from distributed import Client, LocalCluster

import maxmargin
from maxmargin import Accelerated, BlockFrankWolfe, Pairwise, Progress, Status, load, solve
from maxmargin import dask as on_dask
from maxmargin.dask import PartitionError, calls, rounds_of, tasks
from maxmargin.problems import Multiclass

LAM, PARTITIONS = 0.2, 4
_RNG = np.random.default_rng(3)
Y = np.arange(48) % 3
X = 0.7 * np.eye(3, 4)[Y] + _RNG.normal(size=(48, 4))
METHODS = {"accelerated": Accelerated(Pairwise(LAM)), "plain": BlockFrankWolfe(LAM)}
EACH_METHOD = pytest.mark.parametrize(
    "method",
    [METHODS["accelerated"], pytest.param(METHODS["plain"], marks=pytest.mark.long)],
    ids=list(METHODS),
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    with LocalCluster(n_workers=2, **options) as found:
        yield found


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster) as found:
        found.wait_for_workers(2)
        yield found


def part(p: int) -> Any:
    return Multiclass.from_arrays(X[p::PARTITIONS], Y[p::PARTITIONS])


def partitions() -> list[Any]:
    return [dask.delayed(part)(p) for p in range(PARTITIONS)]


def ran(method: Any, tol: float = 1e-2, **options: Any) -> Any:
    return on_dask.solve(partitions(), method, tol=tol, random_state=0, timeout=20.0, **options)


@pytest.fixture(scope="module")
def optimum() -> float:
    return solve(Multiclass.from_arrays(X, Y), METHODS["accelerated"], tol=1e-9, max_passes=5000).dual


def assert_true(found: Any, optimum: float, tol: float) -> None:
    """Every certificate brackets the optimum, and the last one is small enough."""
    assert found.status is Status.CONVERGED
    assert found.certified
    assert found.primal - tol - 1e-9 <= optimum <= found.primal + 1e-9
    assert all(row.dual <= optimum + 1e-8 <= row.primal + 2e-8 for row in found.history.rows)


def lose(where: int) -> None:
    """Let a worker lose what it holds, as if it had been started again."""
    lost = sorted({address for (_, address), _ in list(tasks._HELD)})[where]
    for key in [key for key in list(tasks._HELD) if key[0][1] == lost]:
        del tasks._HELD[key]


@EACH_METHOD
def test_a_cluster_reaches_the_optimum_of_one_machine(client: Client, optimum: float, method: Any) -> None:
    tol = 1e-4 if method is METHODS["accelerated"] else 1e-2
    found = ran(method, tol)
    assert_true(found, optimum, tol)
    rounds = rounds_of(found)
    assert {each.parts for each in rounds} == {2}
    assert sum(each.visits for each in rounds) == found.history.rows[-1].passes * len(X)
    assert all(0.0 < each.oracle_seconds <= each.seconds for each in rounds)
    assert all(0 < each.bytes_out <= 8 * len(found.w) for each in rounds[1:])


@EACH_METHOD
@pytest.mark.parametrize("when", [1, pytest.param(4, marks=pytest.mark.long)])
def test_a_loss_costs_progress_and_nothing_else(
    client: Client, optimum: float, method: Any, when: int
) -> None:
    def lose_one(progress: Progress) -> None:
        if progress.passes == when:
            lose(0)

    found = ran(method, callbacks=[lose_one], check_every=1)
    assert_true(found, optimum, 1e-2)
    assert found.stopped.problem.rounds.fleet.epoch > 0


@pytest.mark.long
def test_a_loss_during_a_certificate_does_no_harm(
    client: Client, optimum: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    hinges, calls = on_dask.fleet.Rounds.hinges, []

    def losing(self: Any, w: Any) -> float:
        calls.append(w)
        if len(calls) == 2:
            lose(1)
        return hinges(self, w)

    monkeypatch.setattr(on_dask.fleet.Rounds, "hinges", losing)
    assert_true(ran(METHODS["accelerated"], check_every=1), optimum, 1e-2)
    assert len(calls) > 3


@pytest.mark.long
def test_the_same_seed_gives_the_same_bits(client: Client) -> None:
    method = on_dask.Distributed(Pairwise(LAM), rounds=2)
    first, second = (ran(Accelerated(method)) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    assert len(rounds_of(first)) == 2 * first.history.rows[-1].passes


def test_a_partition_that_fails_is_named(client: Client) -> None:
    def fail() -> Any:
        raise OSError("no such file")

    broken = [*partitions()[:2], dask.delayed(fail)()]
    with pytest.raises(PartitionError, match="partition 2 failed: OSError: no such file"):
        on_dask.solve(broken, METHODS["plain"])
    other = [*partitions()[:1], Multiclass.from_arrays(X[:, :2], Y)]
    with pytest.raises(PartitionError, match="partition 1 must have the 16 weights of the others"):
        on_dask.solve(other, METHODS["plain"])


def test_a_partition_must_be_the_same_when_computed_again(client: Client) -> None:
    def random() -> Any:
        return Multiclass.from_arrays(np.random.default_rng().normal(size=(6, 4)), np.arange(6) % 3)

    def lose_all(progress: Progress) -> None:
        lose(0)

    with pytest.raises(PartitionError, match="must be the same when it is computed again"):
        on_dask.solve([dask.delayed(random)()], METHODS["plain"], tol=0.0, callbacks=[lose_all])


def test_a_partition_cannot_be_lost_again_and_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def losing(*arguments: Any) -> bool:
        raise tasks.Lost("again")

    monkeypatch.setattr(tasks, "move", losing)
    with pytest.raises(PartitionError, match=r"partition [0-3, ]+ was lost with its worker 3 times in a row"):
        ran(METHODS["plain"])


@pytest.mark.parametrize("limit", ["time", "callback", "interrupt"])
def test_the_end_of_a_run_is_the_end_of_the_work(client: Client, limit: str) -> None:
    def stop(progress: Progress) -> bool:
        if limit == "interrupt" and progress.passes == 2:
            signal.raise_signal(signal.SIGINT)
        return limit != "callback" or progress.passes < 3

    options = {"time_limit": 1.0} if limit == "time" else {}
    found = ran(METHODS["plain"], tol=0.0, callbacks=[stop], max_passes=10**6, **options)
    expected = {"time": Status.TIME_LIMIT, "callback": Status.STOPPED, "interrupt": Status.INTERRUPTED}
    assert found.status is expected[limit]
    assert found.dual <= found.primal < np.inf
    assert not any(client.processing().values())


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("_visit", 3 * PARTITIONS),
        pytest.param("_measure", 2 * PARTITIONS, marks=pytest.mark.long),
        ("_visit", 0),
        pytest.param("_measure", 0, marks=pytest.mark.long),
        pytest.param("kappa_by_steps", 0, marks=pytest.mark.long),
    ],
)
def test_a_worker_that_hangs_does_not_delay_the_end_of_a_run(
    client: Client, optimum: float, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    """In a round or a certificate, from the first one on or later."""
    asked, number, released, there = getattr(tasks, name), count(), threading.Event(), client.nthreads()

    def hang(*arguments: Any) -> Any:
        if next(number) >= after:
            released.wait()
        return asked(*arguments)

    monkeypatch.setattr(tasks, name, hang)
    monkeypatch.setattr(calls, "_GRACE", 0.2)
    method = Accelerated(on_dask.Distributed(Pairwise(LAM), rounds=1))
    try:
        found = ran(method, tol=0.0, max_passes=10**6, check_every=1, time_limit=1.0)
    finally:
        released.set()
    assert found.status is Status.TIME_LIMIT
    assert (found.primal < np.inf) == (after > 0)
    assert all(row.dual <= optimum + 1e-8 <= row.primal + 2e-8 for row in found.history.rows)
    assert client.nthreads() == there  # time was up before a worker was given up


@pytest.mark.long
def test_a_worker_that_joins_is_used(client: Client, cluster: LocalCluster, optimum: float) -> None:
    def join(progress: Progress) -> None:
        if progress.passes == 2:
            cluster.scale(3)
            client.wait_for_workers(3)

    try:
        found = ran(METHODS["accelerated"], 1e-4, callbacks=[join])
    finally:
        cluster.scale(2)
    assert_true(found, optimum, 1e-4)
    rounds = rounds_of(found)
    assert rounds[0].parts == 2
    assert rounds[-1].parts == 3
    assert found.stopped.problem.rounds.fleet.epoch == 0  # nothing was lost


def test_chains_of_a_bag_are_trained(client: Client, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    words = [rng.integers(9, size=rng.integers(1, 5)).tolist() for _ in range(16)]
    sequences = [[{"w": str(j), "s": {"rest": {f"{j % 3}"}}} for j in each] for each in words]
    labels = [["AB"[j % 2] for j in each] for each in words]
    pairs = [*zip(sequences, labels, strict=True), ([], [])]
    options: dict[str, Any] = {"C": 1.0, "tol": 1e-2, "min_count": 2, "random_state": 0, "verbose": 0}
    expected = maxmargin.ChainSVC(**options).fit(sequences, labels)
    found = on_dask.ChainSVC(**options).fit(bag.from_sequence(pairs, npartitions=3))
    assert found.feature_names_ == expected.feature_names_
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.gap_ <= 1e-2 * found.history_.primal[-1] + 1e-4
    assert found.history_.dual[-1] <= expected.history_.primal[-1]
    assert expected.history_.dual[-1] <= found.history_.primal[-1]
    assert found.predict(sequences) == expected.predict(sequences)
    assert len(found.rounds_) >= found.n_iter_
    found.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is maxmargin.ChainSVC
    assert loaded.predict(sequences) == found.predict(sequences)


@pytest.mark.parametrize("hash_bits", [None, pytest.param(6, marks=pytest.mark.long)])
def test_chains_of_a_directory_are_trained(client: Client, tmp_path: Path, hash_bits: int | None) -> None:
    words = [[0, 1], [2], [3, 4, 1], [0, 2], [5, 4], [1]]
    lines = ["".join(f"w{j} {'AB'[j % 2]}\n" for j in each) for each in words]
    (tmp_path / "data").write_text("\n".join(lines))
    corpus = maxmargin.encode_files(tmp_path / "data", tmp_path / "corpus", hash_bits=hash_bits)
    options: dict[str, Any] = {"C": 0.1, "tol": 0.2, "random_state": 0, "verbose": 0}
    expected = maxmargin.ChainSVC(**options).fit(corpus)
    model = on_dask.ChainSVC(**options)
    for given in (tmp_path / "corpus", corpus):  # the second fit forgets the first
        found = model.fit(given)
        assert len(found.rounds_) >= 1
        assert found.history_.dual[-1] <= expected.history_.primal[-1]
        assert expected.history_.dual[-1] <= found.history_.primal[-1]
        assert found.feature_names_ == expected.feature_names_
        assert found.predict(corpus.X) == [["AB"[j % 2] for j in each] for each in words]
    with pytest.raises(ValueError, match="a corpus is for fit with kernel='linear' and min_count=1"):
        on_dask.ChainSVC(min_count=2).fit(corpus)
    with pytest.raises(TypeError, match="MulticlassSVC: X must be a Dask bag"):
        on_dask.MulticlassSVC().fit(tmp_path / "corpus")


@pytest.mark.long
def test_classes_of_an_array_are_trained(client: Client) -> None:
    weights = np.linspace(0.0, 2.0, len(X))
    options: dict[str, Any] = {"tol": 1e-3, "random_state": 0, "verbose": 0, "class_weight": {0: 2.0}}
    expected = maxmargin.MulticlassSVC(**options).fit(X, Y, weights)
    arrays = [da.from_array(each, chunks=(20, *each.shape[1:])) for each in (X, Y, weights)]
    found = on_dask.MulticlassSVC(**options).fit(*arrays)
    assert pytest.approx(expected.C_) == found.C_
    assert found.history_.primal[-1] == pytest.approx(expected.history_.primal[-1], rel=2e-3)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=0.1)
    assert found.score(X, Y) == pytest.approx(expected.score(X, Y), abs=0.05)


def test_parameters_that_a_cluster_does_not_serve_are_refused(client: Client) -> None:
    data = bag.from_sequence([([["a"]], ["X"])])
    refused = {"C": "auto", "kernel": "rbf", "l1_ratio": 0.3, "probability": True, "warm_start": True}
    for name, value in refused.items():
        with pytest.raises(ValueError, match=f"ChainSVC: {name} must be .* on a cluster"):
            on_dask.ChainSVC(**{name: value}).fit(data)
    with pytest.raises(ValueError, match="class_weight must be None or a dict on a cluster"):
        on_dask.ChainSVC(class_weight="balanced").fit(data)
    with pytest.raises(NotImplementedError, match=r"use maxmargin\.ChainSVC"):
        on_dask.ChainSVC().partial_fit(data, data)
    with pytest.raises(ValueError, match="X must have an example, got none in 1 partitions"):
        on_dask.ChainSVC().fit([dask.delayed(([], []))])


def test_wrong_arguments_are_refused(client: Client) -> None:
    for options, message in (
        ({"timeout": 0}, "timeout must be a number of seconds > 0"),
        ({"client": 3}, "client must be a synchronous"),
        ({"sampling": "gap"}, "sampling must be 'permutation' or 'uniform'"),
    ):
        with pytest.raises(ValueError, match=message):
            on_dask.solve(partitions(), METHODS["plain"], **options)
    with pytest.raises(ValueError, match="there must be a partition, got none"):
        on_dask.solve([], METHODS["plain"])
    with pytest.raises(ValueError, match="Distributed: inner must be"):
        on_dask.solve(partitions(), maxmargin.FrankWolfe(LAM))
    with pytest.raises(ValueError, match="Distributed: rounds must be"):
        on_dask.Distributed(Pairwise(LAM), rounds=0)
    with pytest.raises(ValueError, match=r"result must come from maxmargin\.dask\.solve"):
        rounds_of(solve(part(0), Pairwise(LAM), max_passes=1))


def test_without_a_client_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"there must be a distributed\.Client, got none"):
        on_dask.solve(partitions(), METHODS["plain"])
