"""The dual variables of a state, one number per output, found from what the state keeps of them."""

from typing import Any

import numpy as np
from scipy.optimize import nnls

from maxmargin.methods.planes import Planes
from support.catalogue import Case, dense_block, flat
from support.maps import feature_map
from support.naive import Array


def iterate_of(state: Any) -> Any:
    """Return the state of the block method within averages and accelerations."""
    return iterate_of(state.inner) if hasattr(state, "inner") else state


def alpha_of(case: Case, state: Any, numbers: Any = None) -> list[Array]:
    """Return the dual variables of every block; they need not add up to one if the state is wrong.

    Block j is that of example ``numbers[j]``; by default the blocks are those of all examples.
    """
    state, examples = iterate_of(state), range(len(case.X)) if numbers is None else numbers
    if hasattr(state, "planes"):
        return [_alpha_of_planes(case, state.planes, i, j) for j, i in enumerate(examples)]
    return [_alpha_of_block(case, state, i, j) for j, i in enumerate(examples)]


def _alpha_of_planes(case: Case, planes: Planes, i: int, j: int) -> Array:
    """Find the output of every plane by its psi and its loss."""
    alpha, Phi = np.zeros(len(case.data.losses[i])), feature_map(case, i)
    first, size = planes.extent[j, :2]
    begin = origin = planes.entries[j, 0]
    for c in range(first, first + size):
        end = origin + planes.stop[c]
        psi = np.zeros(Phi.shape[1])
        np.add.at(psi, planes.where[begin:end], planes.value[begin:end])
        away = np.abs(case.data.psi[i] - flat(case.problem, Phi @ psi)).max(axis=1)
        fits = (away < 1e-12) & (np.abs(case.data.losses[i] - planes.loss[c]) < 1e-12)
        assert fits.any(), f"a plane of example {i} is that of no output"
        alpha[np.argmax(fits)] += planes.alpha[c]
        begin = end
    return alpha


def _alpha_of_block(case: Case, state: Any, i: int, j: int) -> Array:
    """Write z and the dual loss of the block as a convex combination of those of outputs."""
    Phi, losses, psi = feature_map(case, i), case.data.losses[i], case.data.psi[i]
    z = flat(case.problem, Phi @ dense_block(state.z, j, Phi.shape[1]))
    corners = np.vstack([psi.T, losses, np.ones(len(losses))])
    alpha, residual = nnls(corners, np.concatenate([z, [state.ell[j], 1.0]]))
    assert residual < 1e-8, f"the block of example {i} is no convex combination of outputs"
    return alpha
