"""Slack rescaling by its definition, on all outputs."""

from typing import Any

import numpy as np
import pytest

from maxmargin.methods.scratch import find_corner, new_scratch
from maxmargin.problems import SlackRescaled
from maxmargin.structures.problem import sizes
from support import naive
from support.catalogue import flat, layout
from support.naive import Array, Enumerated


def rescaled(data: Enumerated) -> Enumerated:
    """Return the same outputs, with psi replaced by the loss times psi, as the paper defines it."""
    psi = [losses[:, None] * psi for losses, psi in zip(data.losses, data.psi, strict=True)]
    return data._replace(psi=psi)


def random_weights(problem: Any, data: Enumerated, seed: int) -> Array:
    """Return weights in the problem's layout, small or large."""
    rng = np.random.default_rng(seed)
    return layout(problem, rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=data.psi[0].shape[1]))


def check_slack_oracle(problem: Any, data: Enumerated, seed: int) -> None:
    """Compare what is found for every example with the largest of all values, at random weights."""
    w, slack, data = random_weights(problem, data, seed), SlackRescaled(problem), rescaled(data)
    scratch = new_scratch(slack)
    for i in range(sizes(slack).examples):
        loss, hinge = find_corner(slack, i, w, scratch)
        assert hinge == pytest.approx(naive.margins(data, i, flat(problem, w)).max(), abs=1e-10)
        answer = tuple(scratch.y[: len(data.outputs[i][0])].tolist())
        assert loss == pytest.approx(data.losses[i][data.outputs[i].index(answer)])
