"""Each model on real data, compared with targets: passes, training to a certified gap, test quality.

    python benchmarks/structures.py [--rounds 15] [--only matching] [--data DIRECTORY]

One thread. A BlockFrankWolfe pass is compared with a pass of the max oracle alone, at fixed weights and over
all training examples. Training ends when the gap is at most 1 % of the objective.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _crfsuite import MIN_COUNT
from _measure import Figure, Target, interleaved, print_figures, ratio
from _passes import Runner
from _pictures import nuclei_graphs, snake_graphs
from _problems import if_there
from maxmargin import (
    Accelerated,
    BlockFrankWolfe,
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MultilabelSVC,
    Pairwise,
    SegmentSVC,
    solve,
)
from maxmargin.datasets import (
    alignment_error_rate,
    chunk_f1,
    intersection_over_union,
    load_conll2000,
    load_nuclei,
    load_ocr,
    load_scene,
    load_snakes,
    load_ud_ewt,
)
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import hinges
from maxmargin.problems import Dependency, Graph, Matching, SecondOrderChain, Segments
from maxmargin.structures.dependency.encode import ArcEncoder, encode_heads, encode_tagged
from maxmargin.structures.label_sets.model import LabelGraph, LabelSets, chow_liu
from maxmargin.structures.matchings.encode import encode_links, encode_matchings
from maxmargin.structures.problem import sizes
from maxmargin.structures.segments.encode import encode_limits, encode_segments

# The word aligner is not installed: it is part of the examples.
sys.path.append(str(Path(__file__).parents[1] / "examples"))
from word_alignment import load_described_hansards

PASS = Target(must=2.0, aim=1.3)
SECONDS = Target(must=180.0)
ALIGNMENT = Target(must=0.12, aim=0.08)
ATTACHMENT = Target(must=0.82, aim=0.86, floor=True)
NUCLEI = Target(must=0.02, aim=0.05, floor=True)
SNAKES = Target(must=0.90, aim=0.97, floor=True)
# The gap at which training stops, as a share of the objective.
SHARE = 0.01
WARMUP = 5


class Structure(NamedTuple):
    """A model: the problem to time, the quality of its predictions after training, and the C of training."""

    name: str
    problem: Any
    quality: Callable[[], list[Figure]]
    C: float = 1.0


def pass_figure(structure: Structure, rounds: int) -> Figure:
    """Return the ratio of a pass to a pass of the oracle alone."""
    problem, n = structure.problem, sizes(structure.problem).examples
    runner = Runner(problem, BlockFrankWolfe(lam=1.0 / (structure.C * n)))
    runner.run_to(WARMUP)
    oracle = partial(hinges, problem, runner.state.w.copy(), 0, np.zeros(n), new_scratch(problem))
    oracle()
    times = interleaved({"pass": runner, "oracle": oracle}, rounds)
    name = f"{structure.name}: BCFW pass / oracle pass ({1e6 * times['oracle'].least / n:.1f} us an example)"
    return ratio(name, [(times["pass"], times["oracle"])], PASS)


def training_figure(structure: Structure) -> Figure:
    """Return the seconds from scratch to a certified gap of 1 % of the objective, with certificates."""
    problem, n = structure.problem, sizes(structure.problem).examples
    method = Accelerated(Pairwise(lam=1.0 / (structure.C * n)))
    solve(problem, method, max_passes=1, random_state=0)  # compiled from here on
    begin = time.perf_counter()
    result = solve(problem, method, tol=0.0, callbacks=[_is_far], time_limit=SECONDS.must, random_state=0)
    seconds = time.perf_counter() - begin
    share = result.gap / result.primal
    name = f"{structure.name}: training to a gap of {share:.2%} ({result.history.passes[-1]:.0f} passes)"
    return Figure(name, seconds if share <= SHARE else np.inf, "s", SECONDS)


def _is_far(progress: Any) -> bool:
    """Return whether the last certificate is not good enough yet; solve stops when it is."""
    return progress.last is None or progress.last.gap > SHARE * progress.last.primal


def matching(data: str | None) -> Structure:
    """Return word alignment: timed on 5,000 pairs aligned automatically, tested on pairs aligned by hand."""
    train, test, _ = load_described_hansards(data_home=data, labels="automatic")
    links = encode_links(train.X, constant=True)
    problem = Matching.from_encoded(links, encode_matchings(train.y, links))

    def quality() -> list[Figure]:
        error = partial(alignment_error_rate, test.sure, test.possible)
        model = MatchingSVC(random_state=0).fit(train.X, train.y)
        figure = Figure("matching: error rate after 5,000 automatic pairs", error(model.predict(test.X)))
        by_hand, _, _ = load_described_hansards(data_home=data, fertility=2)
        model = MatchingSVC(fertility=2, random_state=0).fit(by_hand.X, by_hand.y, by_hand.possible)
        name = f"matching: error rate after {len(by_hand.X)} pairs by hand, fertility 2"
        return [figure, Figure(name, error(model.predict(test.X)), "", ALIGNMENT)]

    return Structure("matching", problem, quality)


def trees(data: str | None) -> Structure:
    """Return dependency parsing, by first-order features of gold tags."""
    train, _, test = load_ud_ewt(data_home=data)
    tagged = encode_tagged(train.X)
    heads = encode_heads(train.y, tagged.offsets, projective=False, single_root=True)
    arcs = ArcEncoder().fit(tagged, heads).transform(tagged)
    model = DependencySVC(random_state=0)

    def quality() -> list[Figure]:
        model.fit(train.X, train.y)
        name = f"trees: attachment score after {len(train.X)} sentences"
        return [Figure(name, model.score(test.X, test.y), "", ATTACHMENT)]

    return Structure("trees", Dependency.from_encoded(arcs, heads, loss="hamming"), quality, model.C)


def nuclei(data: str | None) -> Structure:
    """Return segmentation by minimum cuts, compared with logistic regression on the features of pixels.

    C and the features of edges were chosen on a third of the training half; the test half was not used.
    """
    train, test = load_nuclei(data_home=data)
    X, tested = nuclei_graphs(train.images), nuclei_graphs(test.images)
    C, settings = 1e-3, {"loss": "hamming", "inference": "cut"}

    def quality() -> list[Figure]:
        from sklearn.linear_model import LogisticRegression

        pixels, labels = np.concatenate([x[0] for x in X]), np.concatenate([y.ravel() for y in train.y])
        alone = LogisticRegression(max_iter=300).fit(pixels, labels)
        base = intersection_over_union(test.y, [alone.predict(x[0]) for x in tested])
        model = GraphSVC(C=C, random_state=0, **settings).fit(X, train.y)
        found = intersection_over_union(test.y, model.predict(tested))
        name = f"nuclei: intersection over union {found:.3f}, less {base:.3f} by logistic regression"
        return [Figure(name, found - base, "", NUCLEI)]

    return Structure("nuclei", Graph.from_graphs(X, train.y, **settings), quality, C)


def snakes(data: str | None) -> Structure:
    """Return snakes: a grid with arbitrary scores of pairs of labels, labelled by message passing."""
    train, test = load_snakes(data_home=data)
    X, tested, C = snake_graphs(train.images), snake_graphs(test.images), 0.1

    def quality() -> list[Figure]:
        model = GraphSVC(C=C, random_state=0).fit(X, train.y)
        return [Figure("snakes: share of pixels right", model.score(tested, test.y), "", SNAKES)]

    problem = Graph.from_graphs(X, train.y, loss="hamming", inference="messages")
    return Structure("snakes", problem, quality, C)


def scenes(data: str | None) -> Structure:
    """Return sets of labels of photographs, joined by the tree of Chow and Liu."""
    train, test, _ = load_scene(data_home=data)
    labels = LabelGraph(train.y.shape[1], chow_liu(train.y), 1.0, "tree")

    def quality() -> list[Figure]:
        models = [MultilabelSVC(structure=kind, random_state=0) for kind in ("independent", "tree", "full")]
        return [
            Figure(f"scenes: share of sets right, {model.structure}", model.fit(*train).score(test.X, test.y))
            for model in models
        ]

    return Structure("scenes", LabelSets.from_encoded(train.X, train.y, labels), quality)


def words(data: str | None) -> Structure:
    """Return the OCR words as second-order chains of letters, compared with those of first order."""
    X, y, tested, truth = load_ocr(data_home=data)

    def quality() -> list[Figure]:
        figures = []
        for order in (1, 2):
            model = ChainSVC(C=1.0, order=order, loss="normalized_hamming", tol=0.02, random_state=0).fit(
                X, y
            )
            name = f"words: share of letters wrong, order {order}, after {len(X)} words"
            figures.append(Figure(name, 1.0 - model.score(tested, truth)))
        return figures

    return Structure("words", SecondOrderChain.from_sequences(X, y), quality)


def segments(data: str | None) -> Structure:
    """Return text chunking by segments, compared with a chain of tags on the same features.

    C is the best of each on the last 1,500 training sentences, after training on the others.
    """
    X, y, test_X, test_y = load_conll2000(data_home=data)
    tokens = SequenceEncoder(min_count=MIN_COUNT).fit_transform(X)
    found = encode_segments(y, tokens.offsets)
    limits = encode_limits(None, found, tokens.offsets)
    settings = {"C": 0.2, "min_count": MIN_COUNT, "tol": 0.02, "random_state": 0}

    def quality() -> list[Figure]:
        chain = ChainSVC(loss="hamming", **settings).fit(X, y)
        model = SegmentSVC(loss="segments", **settings).fit(X, y)
        base = chunk_f1(test_y, chain.predict(test_X))
        name = f"segments: F1 of chunks after {len(X)} sentences, beside {base:.4f} by a chain of tags"
        return [Figure(name, model.score(test_X, test_y))]

    problem = Segments.from_encoded(tokens.rows, tokens.offsets, found, limits, loss="segments")
    return Structure("segments", problem, quality, settings["C"])


MODELS: dict[str, Callable[[str | None], Structure]] = {
    "matching": matching,
    "nuclei": nuclei,
    "scenes": scenes,
    "segments": segments,
    "snakes": snakes,
    "trees": trees,
    "words": words,
}


def measure(make: Callable[[str | None], Structure], data: str | None, rounds: int) -> None:
    """Print the figures of one model."""
    structure = make(data)
    print_figures([pass_figure(structure, rounds), training_figure(structure)])
    print_figures(structure.quality())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help=f"only one model: {', '.join(MODELS)}")
    parser.add_argument("--data", help="directory with the data (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    print(f"One thread; load of the machine {os.getloadavg()[0]:.1f} at the start\n")
    for name, make in MODELS.items():
        if name.startswith(options.only):
            if_there(partial(measure, make, options.data, options.rounds))
    print(f"load of the machine {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
