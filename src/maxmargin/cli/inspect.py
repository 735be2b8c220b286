"""``maxmargin inspect``: what a model has learnt."""

import argparse
from typing import TYPE_CHECKING, TypedDict, cast

from maxmargin.cli.models import Estimator, edge_features, load_model
from maxmargin.cli.output import result

if TYPE_CHECKING:
    from pandas import DataFrame


_Row = dict[str, object]


class _Findings(TypedDict, total=False):
    """What is printed."""

    estimator: str
    format: str
    features: int
    edge_features: int
    labels: list[object] | None
    C: float
    gap: float
    certified: bool
    passes: int
    top_features: list[_Row]
    top_transitions: list[_Row]


def run(arguments: argparse.Namespace) -> int:
    """Print the settings of a model and its largest weights."""
    model = load_model(arguments.model)
    estimator, task = model
    labels = getattr(estimator, "classes_", None)
    data: _Findings = {
        "estimator": type(estimator).__name__,
        "format": task.name,
        "features": int(estimator.n_features_in_),
        "labels": None if labels is None else labels.tolist(),
        "C": estimator.C_,
        "gap": estimator.gap_,
        "certified": estimator.certified_,
        "passes": estimator.n_iter_,
        "top_features": _rows(_top_features(estimator, arguments)),
    }
    data |= cast("_Findings", edge_features(estimator))
    top_transitions = getattr(estimator, "top_transitions", None)
    if top_transitions is not None:
        data["top_transitions"] = _rows(top_transitions(arguments.k))
    result(_text(data), data, arguments.json)
    return 0


def _top_features(estimator: Estimator, arguments: argparse.Namespace) -> "DataFrame":
    if arguments.label is None:
        return estimator.top_features(k=arguments.k)
    labels = getattr(estimator, "classes_", None)
    if labels is None:
        raise ValueError(f"--label: expected no label, as {type(estimator).__name__} has none")
    known = {str(label): label for label in labels.tolist()}
    if arguments.label not in known:
        raise ValueError(f"--label: expected one of {', '.join(known)}, got {arguments.label!r}")
    return estimator.top_features(known[arguments.label], k=arguments.k)


def _rows(frame: "DataFrame") -> list[_Row]:
    """Return the rows of a frame as plain data."""
    found: list[_Row] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def _text(data: _Findings) -> str:
    certified = f"gap {data['gap']:.3g}" if data["certified"] else "no certificate"
    edges = f", {data['edge_features']} of edges" if "edge_features" in data else ""
    labels = "" if data["labels"] is None else f", {len(data['labels'])} labels"
    lines = [
        f"{data['estimator']} from {data['format']}: {data['features']} features{edges}{labels}, "
        f"C = {data['C']:g}, {certified} after {data['passes']} passes"
    ]
    for name, rows in (
        ("features", data["top_features"]),
        ("transitions", data.get("top_transitions")),
    ):
        if rows:
            lines += ["", f"top {name}:", *_table(rows)]
    return "\n".join(lines)


def _table(rows: list[_Row]) -> list[str]:
    """Return the lines of a table: each weight, then its name."""
    return [
        "\t".join(
            [f"{row['weight']:+.4f}", *(str(v) for k, v in row.items() if k != "weight" and v is not None)]
        )
        for row in rows
    ]
