"""Runs of the panel: each is made once, and kept in a file that a later call continues from."""

import json
import time
import warnings
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _panel import Data, Task, held_out, of_share
from _rivals import crfsuite_tagger, named_features
from _scores import FloatArray
from maxmargin.methods.protocol import point

# As few examples as have several labels.
_WARMUP = 50
_TURNS = 5
_RESOLVED = ("C", "loss", "tol", "max_iter", "random_state")
SEED = 0


class Run(NamedTuple):
    """A run: its score, the counts of the score by test example, and what it cost.

    Attributes
    ----------
    seconds : float
        Processor time of training, from the user's features; kernels were compiled before.
    passes : float
        Passes over the data; 0 where they are not known.
    share : float
        The certified gap as a share of the objective; 0 where there is none.
    """

    score: float
    counts: FloatArray
    seconds: float
    passes: float = 0.0
    share: float = 0.0


class Runs:
    """All runs of the panel on one directory of data.

    Parameters
    ----------
    panel : mapping of names to tasks
    home : str or None
        The directory of data.
    store : Path or None
        A file of lines of JSON, one per run, which is read first and appended to.
    """

    def __init__(self, panel: Mapping[str, Task], home: str | None, store: Path | None) -> None:
        self.panel, self.home, self.store = panel, home, store
        self.found: dict[str, Run] = {}
        self._data = lru_cache(maxsize=2)(self._load)
        self._is_warm: set[str] = set()
        if store is not None and store.exists():
            for line in store.read_text().splitlines():
                key, *row = json.loads(line)
                self.found[key] = Run(*row)._replace(counts=np.array(row[1]))

    def of_model(
        self, name: str, share: float, on: str, settings: Mapping[str, Any], returned: str = "best"
    ) -> Run:
        """Return the run of an estimator with these settings.

        ``on`` is "test", or "held-out" for training examples that are not trained on: the last fifth, or each
        fifth in turn if there are few. ``returned`` is "best", or the "mean" or "last" weights at the end of
        the run instead.
        """
        model = self.panel[name].estimator(**{"random_state": SEED, "verbose": 0, **settings})
        key = _key(name, share, on, {**settings, **self._chosen(model)}, returned)
        if key not in self.found:
            self._keep(key, self._trained(name, share, on, model, returned))
        return self.found[key]

    def in_turn(self, name: str, share: float, algorithms: Iterable[str]) -> list[Run]:
        """Return the runs of the default and of crfsuite as it comes, timed one after the other.

        Their seconds are medians of several turns, or of one turn with all training examples.
        """
        model = self.panel[name].estimator(random_state=SEED, verbose=0)
        makers = {"default": partial(self._trained, name, share, "test", model, "best")}
        makers |= {each: partial(self._of_crfsuite, name, share, each) for each in algorithms}
        keys = {each: _key(name, share, "in turn", self._chosen(model), each) for each in makers}
        if not all(key in self.found for key in keys.values()):
            turns = [[make() for make in makers.values()] for _ in range(_TURNS if share < 1.0 else 1)]
            for key, runs in zip(keys.values(), zip(*turns, strict=True), strict=True):
                seconds = float(np.median([run.seconds for run in runs]))
                self._keep(key, runs[0]._replace(seconds=seconds))
        return [self.found[key] for key in keys.values()]

    def _of_crfsuite(self, name: str, share: float, algorithm: str) -> Run:
        data, task = of_share(self._data(name), share), self.panel[name]
        (X, y, _), test = data.train, data.test
        X, test_X = named_features(X), named_features(test.X)
        begin = time.process_time()
        tagger = crfsuite_tagger(X, [list(map(str, labels)) for labels in y], algorithm)
        seconds = time.process_time() - begin
        truth = [list(map(str, labels)) for labels in test.truth]
        counts = task.score.counts(truth, [tagger.tag(tokens) for tokens in test_X])
        return Run(task.score.value(counts), counts, seconds)

    def _chosen(self, model: Any) -> dict[str, Any]:
        """Return the parameters that make one run differ from another."""
        return {key: getattr(model, key) for key in _RESOLVED if hasattr(model, key)}

    def _load(self, name: str) -> Data:
        return self.panel[name].load(self.home)

    def _trained(self, name: str, share: float, on: str, model: Any, returned: str) -> Run:
        data = of_share(self._data(name), share)
        self._warm_up(name, data)
        if on == "test":
            return self._scored(name, data, model, returned)
        runs = [self._scored(name, split, model, returned) for split in held_out(data)]
        counts = np.concatenate([run.counts for run in runs])
        means = np.mean([run[2:] for run in runs], axis=0).tolist()
        return Run(self.panel[name].score.value(counts), counts, *means)

    def _scored(self, name: str, data: Data, model: Any, returned: str) -> Run:
        """Train and score on the test examples of the data."""
        task = self.panel[name]
        model.set_params(warm_start=returned != "best")  # keeps the state of the run
        seconds = _fit(model, data)
        if returned != "best":
            model._w = _weights(model._last, returned)
        counts = task.score.counts(data.test.truth, getattr(model, task.predict)(data.test.X))
        gap = model.gap_ / model.history_.primal.min()
        return Run(task.score.value(counts), counts, seconds, float(model.n_iter_), float(gap))

    def _warm_up(self, name: str, data: Data) -> None:
        """Compile or load the kernels."""
        if name not in self._is_warm:
            model = self.panel[name].estimator(verbose=0, max_iter=1)
            _fit(model, Data(data.train.take(np.arange(min(_WARMUP, len(data.train.y)))), data.test))
            self._is_warm.add(name)

    def _keep(self, key: str, run: Run) -> None:
        self.found[key] = run
        if self.store is not None:
            with self.store.open("a") as stream:
                stream.write(json.dumps([key, *run._replace(counts=run.counts.tolist())]) + "\n")


def _key(name: str, share: float, on: str, settings: Mapping[str, Any], what: str) -> str:
    chosen = {key: value for key, value in settings.items() if key != "verbose"}
    return json.dumps([name, share, on, chosen, what], sort_keys=True)


def _fit(model: Any, data: Data) -> float:
    """Fit, and return the seconds; a run that does not converge is judged by its score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        model.fit(data.train.X, data.train.y)
        return time.process_time() - begin


def _weights(result: Any, which: str) -> FloatArray:
    """Return the mean or the last weights of an accelerated run."""
    stopped = result.stopped
    answer = point(stopped.method, stopped.state, stopped.problem)
    return {"mean": answer.w, "last": answer.others[0]}[which]
