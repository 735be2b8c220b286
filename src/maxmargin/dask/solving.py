"""`solve` with partitions on the workers of a Dask cluster."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real

import dask
from dask.delayed import Delayed
from distributed import Client, Future, get_client

from maxmargin.dask.calls import Calls
from maxmargin.dask.fleet import Fleet, Round, Rounds
from maxmargin.dask.method import Partitioned, on_workers, partitioned
from maxmargin.runtime.wording import shown
from maxmargin.solving.driver import solve as solve_here
from maxmargin.solving.result import Callback, Result

_TIMEOUT = 60.0


def solve(
    partitions: Iterable[object],
    method: object,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    tol: float = 1e-3,
    rtol: float = 0.0,
    max_passes: int = 1000,
    time_limit: float | None = None,
    check_every: int = 5,
    sampling: str = "permutation",
    callbacks: Iterable[Callback] = (),
    random_state: object = None,
) -> Result:
    """Solve a problem whose examples are in partitions on the workers of a Dask cluster.

    Parameters
    ----------
    partitions : list of Delayed, futures or problems
        Each is, or computes, a problem of `maxmargin.problems` of some of the examples. All have the same
        weights, so encode features and labels alike. A partition that is computed again must be the same.
    method : method
        A block method, accelerated or not, such as ``Accelerated(Pairwise(lam=0.01))``. Partitions on one
        thread of a worker are a part, as of `Divided`.
    client : distributed.Client, optional
        By default the current one.
    timeout : float, optional
        Seconds after which a worker that does not answer counts as lost: the setting ``maxmargin.timeout`` of
        ``dask.config``, or 60. Tasks take about three seconds, however long a round is.
    tol, rtol, max_passes, time_limit, check_every, callbacks, random_state
        As for `maxmargin.solve`. Loading the partitions does not count towards ``time_limit``.
    sampling : {"permutation", "uniform"}
        As for `maxmargin.solve`; each partition draws its own visits.

    Returns
    -------
    Result
        As for `maxmargin.solve`, except that no run can continue from it. `rounds_of` says what rounds took.

    Raises
    ------
    PartitionError
        If a partition cannot be loaded or trained on.

    Examples
    --------
    >>> from distributed import Client
    >>> from maxmargin import Accelerated, Pairwise
    >>> from maxmargin.dask import solve
    >>> from maxmargin.problems import Multiclass
    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.2], [0.1, 0.8]]]
    >>> partitions = [Multiclass.from_arrays(rows, [0, 1]) for rows in X]
    >>> with Client(processes=False, dashboard_address=":0") as client:  # doctest: +SKIP
    ...     solve(partitions, Accelerated(Pairwise(lam=0.1)), tol=1e-4).status.name
    'CONVERGED'
    """
    sources = [(_as_task(each),) for each in partitions]
    with a_fleet(sources, _as_it_is, client, timeout) as problem:
        return solve_here(
            problem,
            on_workers(method),
            tol=tol,
            rtol=rtol,
            max_passes=max_passes,
            time_limit=time_limit,
            check_every=check_every,
            sampling=sampling,
            callbacks=callbacks,
            random_state=random_state,
        )


@contextmanager
def a_fleet(
    sources: Sequence[tuple[object, ...]],
    make: Callable[..., object],
    client: Client | None = None,
    timeout: float | None = None,
) -> Iterator[Partitioned]:
    """Load partitions, and let go of them at the end of the block."""
    if not sources:
        raise ValueError("maxmargin.dask: there must be a partition, got none.")
    fleet = Fleet(Calls(the_client(client), _checked_timeout(timeout)), sources, make)
    try:
        fleet.load()
        yield partitioned(Rounds(fleet))
    finally:
        fleet.close()


def rounds_of(result: Result) -> list[Round]:
    """Return what each round of a run of `maxmargin.dask.solve` took: seconds and bytes.

    Parameters
    ----------
    result : Result

    Returns
    -------
    list of Round
    """
    problem: object = result.stopped.problem
    if not isinstance(problem, Partitioned):
        raise ValueError(
            f"rounds_of: result must come from maxmargin.dask.solve, got one of {shown(problem)}."
        )
    return list(problem.rounds.log)


def _as_task(partition: object) -> Delayed:
    """Return a partition as a task, which Dask does not look into."""
    is_task = isinstance(partition, Delayed | Future)
    return partition if is_task else dask.delayed(partition, pure=False, traverse=False)


def _as_it_is(problem: object) -> object:
    return problem


def the_client(client: Client | None) -> Client:
    """Return the client, or the current one."""
    if client is None:
        try:
            return get_client()
        except ValueError:
            raise ValueError(
                "maxmargin.dask: there must be a distributed.Client, got none; make one: client = Client()."
            ) from None
    if not isinstance(client, Client) or client.asynchronous:
        raise ValueError(
            f"maxmargin.dask: client must be a synchronous distributed.Client, got {shown(client)}."
        )
    return client


def _checked_timeout(timeout: object) -> float:
    found = dask.config.get("maxmargin.timeout", _TIMEOUT) if timeout is None else timeout
    if not (isinstance(found, Real) and float(found) > 0.0):
        raise ValueError(f"maxmargin.dask: timeout must be a number of seconds > 0, got {shown(found)}.")
    return float(found)
