"""Estimators that train on a Dask cluster; predictions are made where they are asked for."""

from distributed import Client

from maxmargin.dask.teaching import Source, as_directory, learn_from_directory
from maxmargin.dask.training import TrainsOnCluster
from maxmargin.estimators.lessons import Lesson
from maxmargin.structures.classes.estimator import MulticlassSVC as LocalMulticlassSVC
from maxmargin.structures.dependency.estimator import DependencySVC as LocalDependencySVC
from maxmargin.structures.graphs.estimator import GraphSVC as LocalGraphSVC
from maxmargin.structures.label_sets.estimator import MultilabelSVC as LocalMultilabelSVC
from maxmargin.structures.matchings.estimator import MatchingSVC as LocalMatchingSVC
from maxmargin.structures.segments.estimator import SegmentSVC as LocalSegmentSVC
from maxmargin.structures.sequences.estimator import ChainSVC as LocalChainSVC

_SPANS = 4  # spans of a directory for each thread


class ChainSVC(TrainsOnCluster, LocalChainSVC):
    """`maxmargin.ChainSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults, and ``class_weight``
    is None or a dict. X may be a directory made by `maxmargin.encode_files`, without y.

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
