"""Estimators that train on a Dask cluster; predictions are made where they are asked for."""

import inspect
from functools import partial
from typing import Any, NamedTuple, Self, cast

from distributed import Client

from maxmargin.dask.fleet import Round
from maxmargin.dask.method import on_workers
from maxmargin.dask.solving import a_fleet, the_client
from maxmargin.dask.teaching import (
    NEXT,
    Prototype,
    Source,
    as_directory,
    as_examples,
    learn_from,
    learn_from_directory,
    prepared,
    sources,
)
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import Lesson, Moments
from maxmargin.estimators.parameters import filled
from maxmargin.estimators.selection import is_auto
from maxmargin.estimators.state import transaction, twin
from maxmargin.files.container import Path
from maxmargin.runtime.limits import Shares
from maxmargin.runtime.wording import shown
from maxmargin.structures.classes.estimator import MulticlassSVC as LocalMulticlassSVC
from maxmargin.structures.dependency.estimator import DependencySVC as LocalDependencySVC
from maxmargin.structures.graphs.estimator import GraphSVC as LocalGraphSVC
from maxmargin.structures.label_sets.estimator import MultilabelSVC as LocalMultilabelSVC
from maxmargin.structures.matchings.estimator import MatchingSVC as LocalMatchingSVC
from maxmargin.structures.problem import AnyProblem
from maxmargin.structures.segments.estimator import SegmentSVC as LocalSegmentSVC
from maxmargin.structures.sequences.estimator import ChainSVC as LocalChainSVC
from maxmargin.structures.wrappers import Weighted

_SHARED_TEXT = """
Set ``client`` after construction to use another client than the current one.

Attributes
----------
rounds_ : list of Round
    What each round of training took. All other attributes are those of the local class.
"""
# Parameters that a cluster cannot serve, and what they must be.
_FIXED = {
    "l1_ratio": None,
    "kernel": "linear",
    "probability": False,
    "checkpoint": None,
    "warm_start": False,
    "all_possible_states": True,  # which pairs a partition has seen, the others do not know
}


class FarExamples(NamedTuple):
    """Examples on workers, as the training of estimators sees them."""

    number: int
    mean_weight: float
    data: tuple[None]
    weights: None = None


def encoded_problem(prototype: Prototype, X: object, y: object, sample_weight: object) -> AnyProblem:
    """Return the problem of a partition, encoded as the prototype has learnt."""
    draft = twin(prototype, dict(vars(prototype)))
    parts, weights = prepared(draft, *as_examples(X, y), sample_weight, NEXT)
    examples = draft._structure.encode(draft, parts, weights, NEXT)
    problem: AnyProblem = draft._structure.problem(draft, examples)
    return problem if examples.weights is None else Weighted(problem, examples.weights)


class TrainsOnCluster(MaxMarginEstimator[Any, Any, Any]):
    """Base of the estimators that train on a cluster; the other one is the local class."""

    client: Client | None = None
    rounds_: list[Round]
    _moments: Moments | None

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Insert the documentation that all of them share where the class has ``%(cluster)s``."""
        super().__init_subclass__(**kwargs)
        if "%(cluster)s" in (cls.__doc__ or ""):
            cls.__doc__ = filled(inspect.getdoc(cls) or "", {"cluster": _SHARED_TEXT})

    @transaction
    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Train on the workers of a cluster.

        Parameters
        ----------
        X : Dask bag, Dask array or list of delayed partitions
            What a partition computes is an X of the estimator's local class. Without y, a bag is one of pairs
            ``(x, y)``, and a delayed partition is a pair ``(X, y)``. `ChainSVC` also takes a directory made
            by `maxmargin.encode_files`, or the corpus opened from it, where all workers see it.
        y : Dask bag, Dask array or list of delayed partitions, optional
            In the same partitions as X.
        sample_weight : Dask array or list of delayed partitions, optional
            Weights of examples, in the same partitions.

        Returns
        -------
        Self
            The estimator itself. It predicts on the machine that asks, and is saved and loaded like the
            local one.
        """
        self._check_parameters_for_cluster()
        client, time = the_client(self.client), Shares(self.time_limit, 1)
        self._forget()
        given, lesson = self._taught(client, X, y, sample_weight)
        self._structure.cluster.learn(self, lesson)
        present = [source for p, source in enumerate(given) if lesson.numbers[p]]
        make = partial(encoded_problem, self._prototype())
        with a_fleet(present, make, client) as problem:
            n = problem.map.sizes.examples
            self._moments = lesson.moments
            examples = FarExamples(n, lesson.weight / n, (None,))
            self.time_limit = time.next()  # on a draft; the user's limit stays
            result = self._solve(problem, examples, None)  # type: ignore[arg-type]
            self._remember_nothing()
            self._keep(problem, examples, result.w)  # type: ignore[arg-type]
            self.rounds_ = list(problem.rounds.log)
        return self

    def _taught(
        self, client: Client, X: object, y: object, sample_weight: object
    ) -> tuple[list[Source], Lesson]:
        """Return the sources of all partitions, and their lesson."""
        given = sources(X, y, sample_weight)
        return given, learn_from(client, given, self._prototype())

    def partial_fit(self, X: object, y: object, *args: object, **kwargs: object) -> Self:
        """Raise an error: on a cluster, only `fit` trains."""
        name = type(self).__name__
        raise NotImplementedError(f"{name}: partial_fit is not for clusters; use maxmargin.{name}.")

    def _check_parameters_for_cluster(self) -> None:
        given, ours = self.get_params(deep=False), f"maxmargin.{type(self).__name__}"
        for name, expected in _FIXED.items():
            if name in given and given[name] != expected:
                raise ValueError(
                    f"{name} must be {expected!r} on a cluster, got {shown(given[name])}; use {ours}."
                )
        if is_auto(self.C):
            raise ValueError(
                f"C must be a number on a cluster, got {shown(self.C)}; choose it on a part of the data, by "
                f"{ours}."
            )
        if isinstance(given.get("class_weight"), str):
            raise ValueError(
                "class_weight must be None or a dict on a cluster, got "
                f"{given['class_weight']!r}; give the weights as a dict."
            )

    def to_local(self) -> Prototype:
        """Return the same model as an estimator of the local class.

        Returns
        -------
        estimator
            Of the class of the same name in `maxmargin`.
        """
        local = next(cls for cls in type(self).__mro__ if cls.__module__.startswith("maxmargin.structures."))
        own = ("client", "rounds_")
        model = cast("Prototype", object.__new__(local))
        model.__dict__ = {name: value for name, value in vars(self).items() if name not in own}
        return model

    def save(self, path: Path, *, dtype: str | None = None, notes: object = None) -> None:
        """Write the model to a file, as the local class does; `maxmargin.load` reads it as one of these.

        Parameters
        ----------
        path, dtype, notes
            As for the local class.
        """
        self.to_local().save(path, dtype=dtype, notes=notes)

    def _prototype(self) -> Prototype:
        """Return the estimator as workers need it, without what only the client uses."""
        prototype = self.to_local()
        prototype.callbacks, prototype.verbose = None, 0
        return prototype

    def _chosen_C(self, examples: FarExamples) -> float:  # type: ignore[override]
        """Return C; where it depends on the features, by their sums over all partitions."""
        if self._moments is None:
            return float(cast("float", self.C))
        size = self._moments.weight / (examples.number * examples.mean_weight)
        return self._scaled_C(self._moments.variance, size)

    def _method(self, lam: float, problem: AnyProblem) -> object:
        return on_workers(super()._method(lam, problem))

    def _forget(self) -> None:
        """Drop what an earlier fit has learnt: workers need none of it."""
        kept = {name: value for name, value in vars(self).items() if name == "client"}
        self.__dict__ = kept | self.get_params(deep=False)

    def _remember_nothing(self) -> None:
        """No call continues from this one."""
        self._seen = None
        self.__dict__.pop("_last", None)
        self.__dict__.pop("_moments", None)


_SPANS = 4  # spans of a directory for each thread


class ChainSVC(TrainsOnCluster, LocalChainSVC):
    """`maxmargin.ChainSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint``, ``warm_start`` and ``all_possible_states`` keep their
    defaults, and ``class_weight`` is None or a dict. X may be a directory made by `maxmargin.encode_files`,
    without y.

    %(cluster)s

    Examples
    --------
    >>> from dask import bag
    >>> from distributed import Client
    >>> from maxmargin.dask import ChainSVC
    >>> pairs = [([["the"], ["dog"]], ["DET", "NOUN"]), ([["a"], ["cat"]], ["DET", "NOUN"])]
    >>> with Client(processes=False, dashboard_address=":0"):  # doctest: +SKIP
    ...     model = ChainSVC(C=10).fit(bag.from_sequence(pairs, npartitions=2))
    >>> model.predict([[["the"], ["cat"]]])  # doctest: +SKIP
    [['DET', 'NOUN']]
    """

    def _taught(
        self, client: Client, X: object, y: object, sample_weight: object
    ) -> tuple[list[Source], Lesson]:
        spans = _SPANS * sum(client.nthreads().values())
        directory = as_directory(X, y, sample_weight, max(spans, 1))
        if directory is None:
            return super()._taught(client, X, y, sample_weight)
        return directory.sources, learn_from_directory(directory, self._prototype())


class SegmentSVC(TrainsOnCluster, LocalSegmentSVC):
    """`maxmargin.SegmentSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults.

    %(cluster)s
    """


class MulticlassSVC(TrainsOnCluster, LocalMulticlassSVC):
    """`maxmargin.MulticlassSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults, and ``class_weight``
    is None or a dict.

    %(cluster)s
    """


class MultilabelSVC(TrainsOnCluster, LocalMultilabelSVC):
    """`maxmargin.MultilabelSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults. y has a
    column for each label. ``structure`` is not ``"tree"`` where there are more than two labels.

    %(cluster)s
    """


class MatchingSVC(TrainsOnCluster, LocalMatchingSVC):  # type: ignore[misc]
    """`maxmargin.MatchingSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``checkpoint`` and ``warm_start`` keep their defaults. `fit` takes no ``possible`` links.

    %(cluster)s
    """


class DependencySVC(TrainsOnCluster, LocalDependencySVC):
    """`maxmargin.DependencySVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``checkpoint`` and ``warm_start`` keep their defaults. Sentences are arrays of the features of arcs, not
    words and tags.

    %(cluster)s
    """


class GraphSVC(TrainsOnCluster, LocalGraphSVC):  # type: ignore[misc]
    """`maxmargin.GraphSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults, and ``class_weight``
    is None or a dict. Weights of nodes and ``nonnegative`` are not available. Features are arrays, not names.

    %(cluster)s
    """
