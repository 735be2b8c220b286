"""Threads: the pool itself, and that predictions and certificates do not depend on it."""

import threading
from typing import Any

import joblib
import numpy as np
import pytest

from maxmargin import BlockFrankWolfe, BrokenOracle, ChainSVC, Divided, solve
from maxmargin.problems import Multiclass
from maxmargin.runtime.threads import as_number, n_threads, run_all, threads
from maxmargin.solving import objective
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.problem import as_problem, sizes
from support import naive
from support.catalogue import Case, chain_case, layout, multiclass_case
from support.counting import Counting
from support.naive import Array

LAM = 0.05
# More examples than two pieces of a certificate have, and not a multiple of any number of threads below.
MANY = 613


def many_chains() -> Case:
    lengths = np.random.default_rng(0).integers(1, 4, MANY)
    return chain_case(3, tuple(lengths.tolist()), 3)


CASES = {"chain": many_chains, "multiclass": lambda: multiclass_case(4, n=MANY, n_labels=4)}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def random_weights(case: Case) -> Array:
    return np.random.default_rng(1).normal(size=case.data.psi[0].shape[1])


def test_one_thread_is_none() -> None:
    for n_jobs in (None, 1):
        with threads(n_jobs):
            assert n_threads() == 1
            assert run_all(lambda part: threading.get_ident(), range(3)) == 3 * [threading.get_ident()]


def test_answers_are_in_order() -> None:
    turn = threading.Barrier(2)  # each waits until another thread arrives
    with threads(2):
        assert n_threads() == 2
        assert run_all(lambda part: (turn.wait(10), part)[1], range(6)) == list(range(6))


def test_threads_are_gone_afterwards() -> None:
    before = threading.active_count()
    with threads(3):
        run_all(abs, range(20))
        assert threading.active_count() > before
    assert n_threads() == 1
    assert threading.active_count() == before


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """Return the list of all threads that are started from now on."""
    found, start = list[threading.Thread](), threading.Thread.start

    def note(self: threading.Thread) -> None:
        found.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", note)
    return found


@pytest.mark.parametrize("n_jobs", [2000, 10**9])
@pytest.mark.parametrize("n_parts", [0, 1, 2, 4, 1000])
def test_there_are_no_more_threads_than_parts_of_work(
    started: list[threading.Thread], n_jobs: int, n_parts: int
) -> None:
    with threads(n_jobs):
        assert run_all(abs, range(n_parts)) == list(range(n_parts))
    assert len(started) <= max(n_parts - 1, 0)  # the calling thread takes a part
    assert len(started) < max(32, joblib.cpu_count())


@pytest.mark.parametrize("n", [1, 2, 4])
def test_there_are_no_more_threads_than_examples_to_predict(started: list[threading.Thread], n: int) -> None:
    case = multiclass_case(5, n=n)
    w = layout(case.problem, random_weights(case))
    expected = decode_all(case.problem, w)
    with threads(2000):
        assert (decode_all(case.problem, w) == expected).all()
    assert len(started) < n


def test_a_model_with_many_threads_predicts_a_few_examples(started: list[threading.Thread]) -> None:
    X, y = [np.eye(3)] * 4, [[0, 1, 2]] * 4
    model = ChainSVC(verbose=0, random_state=0, n_jobs=2000).fit(X, y)
    started.clear()
    assert model.predict(X) == model.set_params(n_jobs=None).predict(X)
    assert len(started) < len(X)
    started.clear()
    model.set_params(n_jobs=2000).predict(X[:1])
    assert not started


def test_threads_can_be_nested() -> None:
    with threads(3):
        with threads(2):
            assert n_threads() == 2
            assert run_all(abs, [-1, -2, -3]) == [1, 2, 3]
        assert n_threads() == 3
        # Parts do not wait for threads of the pool: all of these may be waiting, too.
        counts = run_all(lambda part: (n_threads(), sum(run_all(abs, range(part)))), range(9))
        assert counts == [(1, part * (part - 1) // 2) for part in range(9)]
    assert n_threads() == 1


def test_the_first_error_is_raised_and_the_pool_ends() -> None:
    def fail(part: int) -> None:
        if part in (2, 4):
            raise ZeroDivisionError(part)

    with pytest.raises(ZeroDivisionError, match=r"^2$"), threads(2):
        run_all(fail, range(6))
    assert n_threads() == 1


def test_minus_one_is_as_many_as_processors() -> None:
    assert as_number(-1) >= 1
    assert as_number(None) == 1
    assert as_number(5) == 5
    assert as_number(10**9) == max(32, joblib.cpu_count())


@pytest.mark.parametrize(
    ("n_jobs", "got"), [(0, "0"), ("two", "'two'"), (1.5, "1.5"), (np.nan, "nan"), ([2], "a list")]
)
def test_wrong_numbers_of_threads_are_refused(n_jobs: Any, got: str) -> None:
    problem = multiclass_case(1).problem
    with pytest.raises(
        ValueError, match=r"^solve: n_jobs must be an int other than 0, or None, got"
    ) as caught:
        solve(problem, BlockFrankWolfe(LAM), n_jobs=n_jobs)
    assert str(caught.value).endswith(f"got {got}.")


@pytest.mark.parametrize("n_jobs", [2, 3, -1, np.int64(2)])
def test_certificates_have_the_same_bits(case: Case, n_jobs: int) -> None:
    w = random_weights(case)
    expected = objective.hinge_losses(case.problem, layout(case.problem, w))
    naive_hinges = [naive.margins(case.data, i, w).max() for i in range(MANY)]
    assert expected == pytest.approx(naive_hinges, abs=1e-10)
    with threads(n_jobs):
        found = objective.hinge_losses(case.problem, layout(case.problem, w))
    assert (found == expected).all()


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
def test_predictions_do_not_depend_on_threads(case: Case, n_jobs: int) -> None:
    w = random_weights(case)
    expected = decode_all(case.problem, layout(case.problem, w))
    # The score of y less that of the truth is -<w, psi(y)>.
    best = [
        outputs[(-psi @ w).argmax()] for outputs, psi in zip(case.data.outputs, case.data.psi, strict=True)
    ]
    assert expected.tolist() == [label for output in best for label in output]
    with threads(n_jobs):
        assert (decode_all(case.problem, layout(case.problem, w)) == expected).all()


def test_fewer_examples_than_threads_give_the_same_numbers() -> None:
    case = multiclass_case(5, n=2)
    w = layout(case.problem, random_weights(case))
    expected = decode_all(case.problem, w), objective.hinge_losses(case.problem, w)
    method = Divided(BlockFrankWolfe(LAM), 4)
    run = solve(case.problem, method, max_passes=5, tol=0.0, random_state=0)
    with threads(5):
        assert (decode_all(case.problem, w) == expected[0]).all()
        assert (objective.hinge_losses(case.problem, w) == expected[1]).all()
    again = solve(case.problem, method, max_passes=5, tol=0.0, random_state=0, n_jobs=5)
    assert (again.w == run.w).all()


class OneThread(Counting):
    """A problem that records the threads from which it is called."""

    def __init__(self, problem: Any) -> None:
        super().__init__(problem)
        self.callers: set[int] = set()

    def call(self, name: str, *args: Any) -> Any:
        self.callers.add(threading.get_ident())
        return super().call(name, *args)


def test_users_objects_are_called_from_one_thread() -> None:
    case = multiclass_case(6, n=300)  # more than a piece of a certificate
    counted, w = OneThread(case.problem), layout(case.problem, random_weights(case))
    expected = decode_all(case.problem, w), objective.hinge_losses(case.problem, w)
    problem = as_problem(counted)
    with threads(2):
        assert (decode_all(problem, w) == expected[0]).all()
        assert objective.hinge_losses(problem, w) == pytest.approx(expected[1], abs=1e-12)
    solve(counted, Divided(BlockFrankWolfe(LAM)), max_passes=1, tol=0.0, random_state=0, n_jobs=2)
    assert counted.callers == {threading.get_ident()}


@pytest.mark.parametrize("example", [0, 300, MANY - 1])
def test_what_breaks_in_a_thread_is_named(example: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(MANY, 3)), rng.integers(4, size=MANY)
    X[example, 1], y[example] = np.nan, 2
    problem = Multiclass.from_encoded(X, y, 4, loss=1.0 - np.eye(4))
    with pytest.raises(BrokenOracle, match=f"^solve: example {example} has") as caught, threads(2):
        objective.hinge_losses(problem, np.ones(sizes(problem).weights))
    assert "\n" not in str(caught.value)
    assert n_threads() == 1
