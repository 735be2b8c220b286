"""Estimators that train on a Dask cluster; predictions are made where they are asked for."""

import numpy as np
from distributed import Client

from maxmargin.dask.teaching import CYCLES, OUTSIDE, Lesson, Source, as_directory, learn_from_directory
from maxmargin.dask.training import FarExamples, TrainsOnCluster
from maxmargin.encoding.kinds import Tokens
from maxmargin.encoding.sequences import HashingEncoder, ObjectEncoder, SequenceEncoder
from maxmargin.structures.classes.estimator import MulticlassSVC as LocalMulticlassSVC
from maxmargin.structures.dependency.estimator import DependencySVC as LocalDependencySVC
from maxmargin.structures.graphs.estimator import GraphSVC as LocalGraphSVC
from maxmargin.structures.label_sets.estimator import MultilabelSVC as LocalMultilabelSVC
from maxmargin.structures.matchings.estimator import MatchingSVC as LocalMatchingSVC
from maxmargin.structures.segments.estimator import SegmentSVC as LocalSegmentSVC
from maxmargin.structures.sequences.estimator import ChainSVC as LocalChainSVC

_SPANS = 4  # spans of a directory for each thread


class SequencesOnCluster(TrainsOnCluster):
    """Base of the estimators over sequences of tokens; a subclass defines `_take_in_labels`."""

    min_count: int
    _encoder: SequenceEncoder | HashingEncoder | ObjectEncoder

    def _take_in(self, lesson: Lesson) -> None:
        names, about = lesson.names, lesson.attributes
        if names is not None:
            names = {name: count for name, count in names.items() if count >= self.min_count}
            if not names:
                raise ValueError(
                    f"{self._owner}: no feature occurs in min_count={self.min_count} tokens; lower min_count."
                )
        n_features = about["n_features_in_"] if names is None else len(names)
        listed = None if names is None else list(names)
        self._encoder = SequenceEncoder.restored(about["kind"], n_features, listed, self._owner)
        self._dtype = about["_dtype"]
        self._name_features()
        self._learn_kernel(None)
        self._take_in_labels(lesson)

    def _take_in_labels(self, lesson: Lesson) -> None:
        """Hook: set what follows from the labels."""
        raise NotImplementedError


class ChainSVC(SequencesOnCluster, LocalChainSVC):
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

    def _take_in(self, lesson: Lesson) -> None:
        if "_encoder" in lesson.attributes:  # a directory has all
            self.__dict__ |= lesson.attributes
        else:
            super()._take_in(lesson)

    def _take_in_labels(self, lesson: Lesson) -> None:
        self._learn_labels(lesson.labels, lesson.attributes["gives_arrays"])


class SegmentSVC(SequencesOnCluster, LocalSegmentSVC):
    """`maxmargin.SegmentSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults.

    %(cluster)s
    """

    def _take_in_labels(self, lesson: Lesson) -> None:
        """Learn labels and lengths from the longest segments, one in each sequence, as if from all."""
        longest = dict(lesson.largest)
        outside = longest.pop(OUTSIDE, 0)
        y = [[(0, length, label)] for label, length in longest.items()] + [[]] * outside
        offsets = np.cumsum([0, *longest.values(), *[1] * outside])
        self._first_segments(y, Tokens(np.zeros((offsets[-1], 0)), offsets))


class MulticlassSVC(TrainsOnCluster, LocalMulticlassSVC):
    """`maxmargin.MulticlassSVC`, trained on the workers of a Dask cluster; see there for parameters.

    ``kernel``, ``probability``, ``checkpoint`` and ``warm_start`` keep their defaults, and ``class_weight``
    is None or a dict.

    %(cluster)s
    """

    def _take_in(self, lesson: Lesson) -> None:
        super()._take_in(lesson)
        self.classes_ = lesson.labels
        self._learn_kernel(None)


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

    def _take_in(self, lesson: Lesson) -> None:
        super()._take_in(lesson)
        self.classes_ = lesson.labels
        self.inference_ = self._inference_for(bool(lesson.largest[CYCLES]))

    def _rows_per_example(self, examples: FarExamples) -> float:  # type: ignore[override]
        assert self._moments is not None  # else C is given
        return self._C_per_node(self._moments.weight / (examples.number * examples.mean_weight))
