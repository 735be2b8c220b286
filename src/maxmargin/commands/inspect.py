"""``maxmargin inspect``: what a model has learnt."""

import argparse
from typing import Any

from maxmargin.commands.models import load_model
from maxmargin.commands.output import result


def run(arguments: argparse.Namespace) -> int:
    """Print the settings of a model and its largest weights."""
    model = load_model(arguments.model)
    estimator, task = model
    labels = getattr(estimator, "classes_", None)
    data: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "format": task.name,
        "features": int(estimator.n_features_in_),
        "labels": None if labels is None else labels.tolist(),
        "C": estimator.C,
        "gap": estimator.gap_,
        "certified": estimator.certified_,
        "passes": estimator.n_iter_,
        "top_features": _rows(_top_features(estimator, arguments)),
    }
    if hasattr(estimator, "top_transitions"):
        data["top_transitions"] = _rows(estimator.top_transitions(arguments.k))
    result(_text(data), data, arguments.json)
    return 0


def _top_features(estimator: Any, arguments: argparse.Namespace) -> Any:
    if arguments.label is None:
        return estimator.top_features(k=arguments.k)
    labels = getattr(estimator, "classes_", None)
    if labels is None:
        raise ValueError(f"--label: expected no label, as {type(estimator).__name__} has none")
    known = {str(label): label for label in labels.tolist()}
    if arguments.label not in known:
        raise ValueError(f"--label: expected one of {', '.join(known)}, got {arguments.label!r}")
    return estimator.top_features(known[arguments.label], k=arguments.k)


def _rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame as plain data."""
    found: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def _text(data: dict[str, Any]) -> str:
    certified = f"gap {data['gap']:.3g}" if data["certified"] else "no certificate"
    labels = "" if data["labels"] is None else f", {len(data['labels'])} labels"
    lines = [
        f"{data['estimator']} from {data['format']}: {data['features']} features{labels}, C = {data['C']:g}, "
        f"{certified} after {data['passes']} passes"
    ]
    for name in ("top_features", "top_transitions"):
        if data.get(name):
            lines += ["", f"{name.replace('_', ' ')}:", *_table(data[name])]
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table: the weight first, then what it is of."""
    return [
        "\t".join(
            [f"{row['weight']:+.4f}", *(str(v) for k, v in row.items() if k != "weight" and v is not None)]
        )
        for row in rows
    ]
