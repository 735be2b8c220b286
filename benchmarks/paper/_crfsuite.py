"""Seconds to a test score, beside python-crfsuite: the same features, one thread, one process, one run.

Seconds are those of encoding the training set and of training; those that measure the score are not counted.
Loss, method and C of `ChainSVC` are chosen beforehand on a fifth of the training set that is held out;
crfsuite runs with its defaults.
"""

import itertools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from _document import table
from benchmark_utils.data import Raw
from benchmark_utils.rivals import CrfSuite
from benchmark_utils.trajectory import Watch, Watched
from maxmargin import solve
from maxmargin.datasets import chunk_f1, load_conll2000, load_ocr
from maxmargin.encoding.labels import encode_labels
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.estimators.parameters import METHODS
from maxmargin.problems import Chain
from maxmargin.runtime.arrays import FloatArray
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.sequences.model import ChainProblem

Score = Callable[[list[Any]], float]
ITERATIONS = 10, 30, 50, 100
PASSES, REPETITIONS = 100, 3
FOLDS, CHOICE_PASSES = 5, 20


class Setting(NamedTuple):
    """What is to be chosen of `ChainSVC`."""

    method: str
    loss: str
    C: float


SETTINGS = [
    Setting(*choice)
    for choice in itertools.product(
        ("auto", "bcfw-wavg"), ("hamming", "normalized_hamming"), (0.1, 0.3, 1.0, 3.0)
    )
]


class Race(NamedTuple):
    """Who is to reach which score, and by which share of their seconds; higher scores are better."""

    name: str
    load: Callable[[], Any]
    score: Callable[[Any], Score]
    target: float
    algorithm: str
    must: float
    aim: float = 0.1


class Time(NamedTuple):
    """Seconds before training and of training; infinite if the score was not reached, and the best score."""

    before: float
    training: float
    best: float

    @property
    def total(self) -> float:
        return self.before + self.training


def f1_score(y_test: Any) -> Score:
    """Return the function that takes predicted tags to the F1 of chunks."""
    return lambda found: chunk_f1(y_test, found)


def accuracy(y_test: Any) -> Score:
    """Return the function that takes predicted labels to the share of right ones."""
    truth = np.concatenate(y_test).astype(str)
    return lambda found: float(np.mean(np.concatenate(found).astype(str) == truth))


RACES = [
    Race("CoNLL-2000, chunk F1", load_conll2000, f1_score, 0.936, "l2sgd", must=0.2),
    Race("OCR, letters right", load_ocr, accuracy, 0.885, "ap", must=1 / 3),
]


def theirs(race: Race, raw: Raw) -> Time:
    """Train crfsuite from nothing for more and more iterations until the score is reached, or to the last."""
    suite, score = CrfSuite(raw, race.algorithm, min_count=1), race.score(raw.y_test)
    seconds, best = math.inf, 0.0
    for iterations in ITERATIONS:
        seconds, labels = suite.train(iterations)
        best = max(best, score(labels))
        if best >= race.target:
            break
    return Time(suite.seconds_to_load, seconds, best)


class Encoded(NamedTuple):
    """The training set as a problem, the seconds that took, and what weights miss of a perfect test score."""

    problem: ChainProblem
    seconds: float
    missing: Callable[[FloatArray], float]


def encode(race: Race, loss: str, raw: Raw) -> Encoded:
    """Encode both sets as `ChainSVC` does."""
    begin = time.perf_counter()
    encoder = SequenceEncoder()
    rows, offsets = encoder.fit_transform(raw.X)
    labels, classes = encode_labels(raw.y, offsets)
    problem = Chain.from_encoded(rows, offsets, labels, len(classes), loss=loss)
    seconds = time.perf_counter() - begin
    test, score = Chain.for_prediction(*encoder.transform(raw.X_test), len(classes)), race.score(raw.y_test)
    bounds = test.offsets.tolist()

    def missing(w: FloatArray) -> float:
        found = classes[decode_all(test, w)]
        return 1.0 - score([found[a:b].tolist() for a, b in itertools.pairwise(bounds)])

    return Encoded(problem, seconds, missing)


def ours(race: Race, setting: Setting, raw: Raw, passes: int = PASSES) -> Time:
    """Train as `ChainSVC` does until the score, looked at after every pass, is reached."""
    n, encoded = len(raw.X), encode(race, setting.loss, raw)
    watch = Watch(n * np.arange(1, passes + 1), encoded.missing)
    solve(
        encoded.problem,
        Watched(METHODS[setting.method](1.0 / (setting.C * n)), watch),
        tol=0.0,
        max_passes=passes,
        check_every=passes,
        callbacks=[lambda progress: watch.rows[-1].test_error > 1.0 - race.target],
        random_state=0,
    )
    best = 1.0 - min(row.test_error for row in watch.rows)
    return Time(encoded.seconds, watch.rows[-1].seconds if best >= race.target else math.inf, best)


def held_out(raw: Raw) -> Raw:
    """Return four fifths of the training set, with the last fifth in the place of the test set."""
    stop = len(raw.X) - len(raw.X) // FOLDS
    return Raw(raw.X[:stop], raw.y[:stop], raw.X[stop:], raw.y[stop:])


def chosen(race: Race, raw: Raw) -> Setting:
    """Return the setting whose best score on the fifth that is held out is the highest."""
    split, unbounded = held_out(raw), race._replace(target=math.inf)
    return max(SETTINGS, key=lambda setting: ours(unbounded, setting, split, CHOICE_PASSES).best)


def run_race(race: Race) -> list[str]:
    """Return a row of the table: seconds of both, the least of several of ours, and the share."""
    raw = Raw(*race.load())
    setting = chosen(race, raw)  # compiles, too
    mine = min((ours(race, setting, raw) for _ in range(REPETITIONS)), key=lambda time: time.total)
    their = theirs(race, raw)
    share = mine.total / their.total if math.isfinite(mine.total) else math.inf
    verdict = "aim reached" if share <= race.aim else "reached" if share <= race.must else "MISSED"
    shown = (f"{t.before:.2f} + {t.training:.2f} s (best {t.best:.4f})" for t in (mine, their))
    shown_setting = f"{setting.method}, {setting.loss} loss, C = {setting.C:g}"
    return [
        f"{race.name} ≥ {race.target}",
        shown_setting,
        *shown,
        f"{share:.3f}",
        f"{race.must:.2f}",
        verdict,
    ]


def crfsuite() -> str:
    """Return both races as a table."""
    rows = []
    for race in RACES:
        try:
            rows.append(run_race(race))
        except FileNotFoundError as error:
            print(f"Skipped. {error}")
    header = ["score", "ChainSVC", "its seconds", "crfsuite's seconds", "share", "at most", "verdict"]
    return table(header, rows)
