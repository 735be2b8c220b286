"""Displays draw what the model says, with texts that do not overlap, on any background."""

import itertools
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import DependencySVC, MulticlassSVC
from maxmargin.displays import (
    AlignmentDisplay,
    ConvergenceDisplay,
    DependencyDisplay,
    FeaturesDisplay,
    GraphDisplay,
    SegmentsDisplay,
    TransitionsDisplay,
)
from support.estimators import KINDS
from support.model_files import samples

matplotlib.use("Agg")

TEXT = "the old grey cat has been chasing the small dog and the child sees the extraordinary house ."
WORDS = TEXT.split()
PHRASES = [(0, 4, "NP"), (4, 7, "VP"), (7, 10, "NP"), (11, 13, "NP"), (13, 14, "VP"), (14, 17, "NP")]
TRUE_PHRASES = [(0, 4, "NP"), (4, 7, "VP"), (7, 13, "NP"), (13, 14, "VP"), (14, 17, "NP")]
HEADS, TRUE_HEADS = [2, 0, 5, 5, 2, 5, 8, 6, 2], [2, 0, 5, 5, 2, 2, 8, 6, 2]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@cache
def fitted(name: str, **parameters: Any) -> Any:
    kind = KINDS[name]
    return kind.new(**parameters).fit(kind.X, kind.y)


def colour(artist: Any) -> Any:
    return to_rgba(artist.get_color())


# What each display draws, in a figure of its own.
DRAWN: dict[str, Callable[..., Any]] = {
    "convergence": lambda **ax: ConvergenceDisplay.from_estimator(fitted("chain"), **ax),
    "transitions": lambda **ax: TransitionsDisplay.from_estimator(fitted("chain"), **ax),
    "features": lambda **ax: FeaturesDisplay.from_estimator(fitted("segments"), **ax),
    "segments": lambda **ax: SegmentsDisplay.from_predictions(TRUE_PHRASES, PHRASES, words=WORDS, **ax),
    "alignment": lambda **ax: AlignmentDisplay.from_predictions(
        [0, -1, 2, 1], WORDS[:4], WORDS[11:16], sure=[(0, 0)], possible=[(3, 1)], **ax
    ),
    "dependency": lambda **ax: DependencyDisplay.from_predictions(TRUE_HEADS, HEADS, words=WORDS[8:17], **ax),
    "graph": lambda **ax: GraphDisplay.from_predictions(
        [0, 1, 1, 0], [0, 1, 0, 0], edges=[(0, 1), (1, 2), (2, 3)], **ax
    ),
    "image": lambda **ax: GraphDisplay.from_predictions(
        np.eye(5, dtype=int), np.zeros((5, 5), dtype=int), **ax
    ),
}


def drawn_texts(ax: Any) -> list[Any]:
    """The texts of axes that are drawn: ticks outside of the limits are not."""
    texts = [*ax.texts, *(ax.get_legend().get_texts() if ax.get_legend() else [])]
    if ax.axison:
        texts += [ax.title, ax.xaxis.label, ax.yaxis.label]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [label for tick in ticks for label in (tick.label1, tick.label2)]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("name", DRAWN)
def test_texts_do_not_overlap_and_are_within_the_figure(name: str) -> None:
    figure = DRAWN[name]().figure_
    figure.canvas.draw()
    texts = [text for ax in figure.axes for text in drawn_texts(ax)]
    boxes = {text: text.get_window_extent() for text in texts}
    assert boxes
    frame = figure.bbox.padded(1.0)
    for text, box in boxes.items():
        corners = (frame.x0 <= box.x0, box.x1 <= frame.x1, frame.y0 <= box.y0, box.y1 <= frame.y1)
        assert all(corners), text
    # The box of a slanted text is larger than the text.
    straight = [text for text in texts if text.get_rotation() in (0.0, 90.0)]
    for first, second in itertools.combinations(straight, 2):
        assert not boxes[first].padded(-1.0).overlaps(boxes[second].padded(-1.0)), (first, second)


@pytest.mark.parametrize("name", DRAWN)
def test_new_figures_are_transparent_and_given_axes_are_used(name: str) -> None:
    display = DRAWN[name]()
    assert display.figure_.get_facecolor()[3] == 0.0
    figure, axes = plt.subplots(2, 1)
    given = axes if name == "convergence" else axes[0]
    again = DRAWN[name](ax=given)
    assert again.ax_ is given
    assert again.figure_ is figure
    assert figure.get_facecolor()[3] == 1.0


def test_convergence_is_that_of_the_history() -> None:
    model = fitted("chain")
    display = ConvergenceDisplay.from_estimator(model)
    assert ConvergenceDisplay.from_history(model.history_, tol=0.5).tol == 0.5
    drawn = {line.get_label().split(":")[0]: line.get_ydata() for line in display.ax_[0].lines}
    np.testing.assert_array_equal(drawn["primal"], model.history_.primal)
    np.testing.assert_array_equal(drawn["dual"], model.history_.dual)


def test_transitions_of_chains_have_a_start_and_an_end() -> None:
    model = fitted("chain")
    display = TransitionsDisplay.from_estimator(model)
    (image,) = display.ax_.images
    shown = image.get_array().filled(np.nan)
    np.testing.assert_array_equal(shown[1:, :-1], model.transitions_)
    np.testing.assert_array_equal(shown[0, :-1], model.start_)
    np.testing.assert_array_equal(shown[1:, -1], model.end_)
    assert np.isnan(shown[0, -1])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["start", "0", "1", "2"]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["0", "1", "2", "end"]
    numbers = [float(text.get_text().replace("−", "-")) for text in display.ax_.texts]
    np.testing.assert_allclose(numbers, shown[np.isfinite(shown)], atol=0.05)


def test_transitions_of_edges_are_drawn_by_name() -> None:
    graph = samples()["graph-names"].fitted()
    number = graph.edge_feature_names_.index("then dog")
    display = TransitionsDisplay.from_estimator(graph, feature="then dog")
    np.testing.assert_array_equal(display.weights, graph.edge_coef_[number])
    assert display.meaning == "weight: edge feature then dog"
    by_number = TransitionsDisplay.from_estimator(graph, feature=number)
    np.testing.assert_array_equal(by_number.weights, display.weights)


def test_transitions_of_segments_edges_and_pairs_are_drawn() -> None:
    segments, graph, sets = (fitted(name) for name in ("segments", "graph", "multilabel"))
    weights = TransitionsDisplay.from_estimator(segments).weights
    np.testing.assert_array_equal(weights, np.vstack([segments.start_, segments.transitions_]))
    np.testing.assert_array_equal(
        TransitionsDisplay.from_estimator(graph, feature=1).weights, graph.edge_coef_[1]
    )
    cut = TransitionsDisplay.from_estimator(fitted("graph", inference="cut"))
    np.testing.assert_array_equal(np.diag(cut.weights), 2 * [fitted("graph", inference="cut").edge_coef_[0]])
    gains = TransitionsDisplay.from_estimator(sets).weights
    for (a, b), table in zip(sets.edges_, sets.edge_coef_, strict=True):
        assert (
            gains[a, b] == gains[b, a] == pytest.approx(table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0])
        )


def test_bars_are_the_largest_weights() -> None:
    model = fitted("multiclass")
    display = FeaturesDisplay.from_estimator(model, 1, k=3)
    widths = [bar.get_width() for bar in display.ax_.patches]
    expected = sorted([*model.coef_[1], model.intercept_[1]], key=abs, reverse=True)[:3]
    assert widths == expected
    assert len({bar.get_facecolor() for bar in display.ax_.patches}) == len(set(np.sign(widths)))
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert [name.split()[-1] for name in names] == [
        row.kind if row.feature is None else str(row.feature) for row in display.rows
    ]
    assert display.ax_.get_xlabel() == "weight for 1"


def test_names_of_bars_are_shortened() -> None:
    X = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
    model = DependencySVC(C=1.0, verbose=0, random_state=0).fit(X, [[2, 3, 0], [2, 0]])
    display = FeaturesDisplay.from_estimator(model, k=20)
    lengths = [len(text.get_text()) for text in display.ax_.get_yticklabels()]
    assert max(lengths) == 60


def test_displays_accept_pipelines() -> None:
    X, y = KINDS["multiclass"].X, KINDS["multiclass"].y
    model = make_pipeline(StandardScaler(), MulticlassSVC(verbose=0, random_state=0)).fit(X, y)
    assert len(FeaturesDisplay.from_estimator(model, k=2).rows) == 2
    assert len(ConvergenceDisplay.from_estimator(model).history)


def test_bands_are_below_their_words() -> None:
    display = SegmentsDisplay.from_predictions(TRUE_PHRASES, PHRASES, words=WORDS)
    texts, bands = display.ax_.texts, display.ax_.patches
    places = [text.get_position() for text in texts[: len(WORDS)]]
    assert [text.get_text() for text in texts[: len(WORDS)]] == WORDS
    lines = sorted({y for _, y in places}, reverse=True)
    assert len(lines) == 2
    # One row of bands for each kind of segments, in each line; a segment may have a part in both lines.
    rows = sorted({band.get_y() for band in bands}, reverse=True)
    assert len(rows) == 4
    assert lines[0] > rows[0] > rows[1] > lines[1] > rows[2] > rows[3]
    for k, segments in enumerate((PHRASES, TRUE_PHRASES)):
        for start, stop, _ in segments:
            for word in range(start, stop):
                x, line = places[word]
                row = rows[2 * lines.index(line) + k]
                assert any(b.get_y() == row and b.get_x() <= x < b.get_x() + b.get_width() for b in bands)
    assert len({band.get_facecolor() for band in bands}) == 2
    labels = [text.get_text() for text in texts]
    assert labels.count("VP") == 4
    assert labels.count("predicted") == labels.count("true") == 2


def test_segments_of_models_are_drawn() -> None:
    model, x = fitted("segments"), KINDS["segments"].X[0]
    display = SegmentsDisplay.from_estimator(model, x)
    assert display.segments == model.predict([x])[0]
    assert display.words == ["0", "1", "2", "3"]
    tags = SegmentsDisplay.from_predictions(["B-A", "I-A", "O"], ["B-A", "O", "B-B"], words=WORDS[:3])
    assert tags.segments == [(0, 1, "A"), (2, 3, "B")]
    assert tags.true_segments == [(0, 2, "A")]


def test_links_have_marks() -> None:
    display = DRAWN["alignment"]()
    marks = {
        line.get_label(): set(zip(*map(list, line.get_data()), strict=True)) for line in display.ax_.lines
    }
    assert marks == {
        "predicted": {(0, 0), (1, 3)},
        "predicted, wrong": {(2, 2)},
        "sure": {(0, 0)},
        "possible": {(1, 3)},
    }
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == WORDS[:4]


def test_alignment_of_a_model_is_drawn() -> None:
    model, x = fitted("matching"), KINDS["matching"].X[0]
    display = AlignmentDisplay.from_estimator(model, x, sure=[0, 1])
    linked = {(j, k) for j, k in enumerate(model.predict([x])[0].tolist()) if k >= 0}
    assert set(zip(*map(list, np.nonzero(display.predicted)), strict=True)) == linked
    np.testing.assert_allclose(display.ax_.images[0].get_array(), x @ model.coef_ + model.intercept_)


def test_arcs_have_the_colours_of_the_legend() -> None:
    display = DRAWN["dependency"]()
    ends = [(round(note.xy[0]), note.arrow_patch.get_edgecolor()) for note in display.ax_.texts]
    assert [word for word, _ in ends] == [1, 2, 3, 4, 5, 6, 6, 7, 8, 9]
    legend = {text.get_text(): colour(line) for text, line in _legend_lines(display.ax_)}
    assert [c for word, c in ends if word == 6] == [legend["wrong"], legend["missed"]]
    assert {c for word, c in ends if word != 6} == {legend["right"]}
    starts = [round(line.get_xdata()[0]) for line in display.ax_.lines if len(line.get_xdata())]
    assert starts == [2, 0, 5, 5, 2, 5, 2, 8, 6, 2]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["root", *WORDS[8:17]]


def _legend_lines(ax: Any) -> list[tuple[Any, Any]]:
    legend = ax.get_legend()
    return list(zip(legend.get_texts(), legend.get_lines(), strict=True))


def test_arcs_that_overlap_have_different_heights() -> None:
    display = DRAWN["dependency"]()
    levels = [
        (*sorted(line.get_xdata()[[0, 2]]), line.get_ydata()[1])
        for line in display.ax_.lines
        if len(line.get_xdata())
    ]
    for (a, b, height), (c, d, other) in itertools.combinations(levels, 2):
        assert height != other or b <= c or d <= a


def test_tree_of_a_model_is_drawn() -> None:
    X = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
    model = DependencySVC(C=1.0, verbose=0, random_state=0).fit(X, [[2, 3, 0], [2, 0]])
    display = DependencyDisplay.from_estimator(model, X[0])
    assert display.heads == [2, 3, 0]
    assert display.words == ["the", "dog", "barks"]
    assert display.ax_.get_legend() is None


def test_images_show_their_wrong_pixels() -> None:
    display = DRAWN["image"]()
    assert display.ax_.images[0].get_array().shape == (5, 5)
    wrong = {tuple(map(int, point)) for line in display.ax_.lines for point in line.get_xydata()}
    assert wrong == {(k, k) for k in range(5)}


def test_nodes_have_colours_by_their_labels() -> None:
    model, x = fitted("graph"), KINDS["graph"].X[0]
    places = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
    display = GraphDisplay.from_estimator(model, x, positions=places, y_true=1 - model.predict([x])[0])
    nodes, rings = display.ax_.collections
    np.testing.assert_array_equal(nodes.get_offsets(), places)
    np.testing.assert_array_equal(rings.get_offsets(), places)  # all are wrong
    labels = model.predict([x])[0]
    for v, w in itertools.combinations(range(3), 2):
        same = (nodes.get_facecolors()[v] == nodes.get_facecolors()[w]).all()
        assert same == (labels[v] == labels[w])
    ends = [tuple(map(tuple, line.get_xydata())) for line in display.ax_.lines if len(line.get_xydata())]
    assert ends == [tuple(map(tuple, places[list(edge)])) for edge in x[1]]


def test_nodes_without_positions_are_apart() -> None:
    edges = [(k, (k + 1) % 8) for k in range(8)]
    places = GraphDisplay(range(8), edges=edges).positions
    gaps = [np.linalg.norm(places[a] - places[b]) for a, b in itertools.combinations(range(8), 2)]
    assert min(gaps) > 0.1
    near = [np.linalg.norm(places[a] - places[b]) for a, b in edges]
    assert max(near) < 0.7 * max(gaps)


def test_many_labels_have_colours_of_their_own() -> None:
    display = GraphDisplay.from_predictions(None, np.arange(16).reshape(4, 4))
    colours = {tuple(c) for c in display.ax_.images[0].cmap.colors}
    assert len(colours) == 16


ERRORS = {
    r"^TransitionsDisplay: estimator must have top_transitions, got a MulticlassSVC.*none\.$": lambda: (
        TransitionsDisplay.from_estimator(fitted("multiclass"))
    ),
    r"^TransitionsDisplay: feature must be from 0 to 1, got 2\.$": lambda: TransitionsDisplay.from_estimator(
        fitted("graph"), feature=2
    ),
    r"^TransitionsDisplay: feature must be from 0 to 4, or a name, got 'no'\.$": lambda: (
        TransitionsDisplay.from_estimator(samples()["graph-names"].fitted(), feature="no")
    ),
    r"^FeaturesDisplay: label must be one of 0, 1, 2, got 'x'\.$": lambda: FeaturesDisplay.from_estimator(
        fitted("chain"), "x"
    ),
    r"^SegmentsDisplay: words must have 4 entries, one per token, got 2\.$": lambda: (
        SegmentsDisplay.from_estimator(fitted("segments"), KINDS["segments"].X[0], words=["a", "b"])
    ),
    r"^DependencyDisplay: true_heads must have 2 entries, as heads has, got 1\.$": lambda: (
        DependencyDisplay.from_predictions([0], [0, 1])
    ),
    r"^DependencyDisplay: heads must be ints from 0 to 1, one per word, got \[<Comp.*\.$": lambda: (
        DependencyDisplay.from_predictions(None, [csr_array(np.eye(3))])
    ),
    r"^DependencyDisplay: heads must be ints from 0 to 2, one per word, got \[0, 3\]\.$": lambda: (
        DependencyDisplay.from_predictions(None, [0, 3])
    ),
    r"^GraphDisplay: shape must be that of an image of 4 pixels, got \(2, 3\)\.$": lambda: GraphDisplay(
        [0, 1, 0, 1], shape=(2, 3)
    ),
    r"^GraphDisplay: give edges, or the shape of the image": lambda: GraphDisplay([0, 1]),
    r"^GraphDisplay: positions must have shape \(2, 2\), got \(3, 2\)\.$": lambda: GraphDisplay(
        [0, 1], edges=[(0, 1)], positions=np.zeros((3, 2))
    ),
    r"^AlignmentDisplay: .*predicted": lambda: AlignmentDisplay.from_predictions([7], ["a"], ["b"]),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_are_one_line(message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        ERRORS[message]()
    assert "\n" not in str(caught.value)


def test_models_must_be_fitted() -> None:
    for draw in (FeaturesDisplay, TransitionsDisplay, ConvergenceDisplay):
        with pytest.raises(NotFittedError):
            draw.from_estimator(KINDS["chain"].new())


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    display = GraphDisplay([0, 1], edges=[(0, 1)])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"^GraphDisplay.plot needs matplotlib.*maxmargin\[plot\]$"):
        display.plot()
