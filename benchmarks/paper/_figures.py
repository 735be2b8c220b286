"""The figures, drawn so that colour is never the only difference between two lines."""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from _curves import SUBOPTIMALITY, Results
from _panels import FIGURES, Panel

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS, WIDTH, HEIGHT = 3, 4.2, 3.2
# Okabe and Ito's colours, which readers with any kind of colour vision can tell apart.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
)
SOLID, DASHED, DOTTED, DASH_DOT = "-", "--", ":", "-."


class Style(NamedTuple):
    """Colour says which family a method is of, line and marker which member."""

    color: str
    line: str
    marker: str


STYLES = {
    "BCFW": Style(BLUE, SOLID, "o"),
    "BCFW-wavg": Style(BLUE, DASHED, "s"),
    "BCFW-tavg": Style(BLUE, DOTTED, "^"),
    "BCFW-fix": Style(SKY, DASH_DOT, "v"),
    "SSG": Style(VERMILION, SOLID, "x"),
    "SSG-wavg": Style(VERMILION, DASHED, "+"),
    "SSG-tavg": Style(VERMILION, DOTTED, "1"),
    "SSG-avg": Style(VERMILION, DASH_DOT, "2"),
    "online-EG": Style(ORANGE, SOLID, "D"),
    "FW": Style(GREEN, SOLID, "<"),
    "FW-fix": Style(GREEN, DASH_DOT, ">"),
    "cutting plane": Style(PURPLE, SOLID, "p"),
    "accelerated": Style(BLACK, SOLID, "*"),
    "perceptron": Style(SKY, DASHED, "h"),
    "crfsuite-ap": Style(GREEN, DASHED, "d"),
    "crfsuite-l2sgd": Style(PURPLE, DASHED, "P"),
    "liblinear": Style(ORANGE, DASHED, "X"),
}


def draw_all(results: Results, folder: Path) -> list[str]:
    """Draw all figures of which there is a panel with results; return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [name for name, panels in FIGURES.items() if any(shown(results, panel) for panel in panels)]
    for name in drawn:
        # Without a date and with ids of its own making, the same results give the same file.
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 8}):
            figure = draw(results, [panel for panel in FIGURES[name] if shown(results, panel)])
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return drawn


def shown(results: Results, panel: Panel) -> list[str]:
    """Return the methods of a panel that have results."""
    return [method for method in panel.methods if results.has(panel.dataset, panel.lam, method)]


def draw(results: Results, panels: list[Panel]) -> Figure:
    """Draw the panels in rows of three, under one legend."""
    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(COLUMNS * WIDTH, rows * HEIGHT + 0.5), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes in grid[len(panels) :]:
        axes.remove()
    lines: dict[str, Any] = {}
    for axes, panel in zip(grid, panels, strict=False):
        for method in shown(results, panel):
            lines[method] = draw_curve(axes, results, panel, method)
        dress(axes, panel)
    order = [method for method in STYLES if method in lines]
    handles = [lines[method] for method in order]
    figure.legend(handles, order, loc="outside lower center", ncols=8, frameon=False)
    return figure


def draw_curve(axes: Any, results: Results, panel: Panel, method: str) -> Any:
    """Draw the median of the seeds, on a shade from the best to the worst; return the line."""
    curve, style = results.curve(panel.dataset, panel.lam, method, panel.quantity, panel.x), STYLES[method]
    if results.frame["seed"].nunique() > 1:
        axes.fill_between(curve.x, curve.best, curve.worst, color=style.color, alpha=0.15, linewidth=0)
    every = max(1, len(curve.x) // 8)
    (line,) = axes.plot(
        *(curve.x, curve.median),
        color=style.color,
        linestyle=style.line,
        marker=style.marker,
        markevery=(list(STYLES).index(method) % every, every),
        markersize=4,
        linewidth=1.1,
    )
    return line


def dress(axes: Any, panel: Panel) -> None:
    """Set scales, ranges and labels."""
    axes.set_xscale(panel.xscale)
    axes.set_yscale("log" if panel.quantity == SUBOPTIMALITY else "linear")
    axes.set(xlim=panel.xlim, ylim=panel.ylim, title=panel.title, ylabel=panel.quantity)
    axes.set_xlabel("effective passes" if panel.x == "passes" else "seconds")
    axes.grid(alpha=0.3, linewidth=0.5)
