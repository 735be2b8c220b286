"""Problems of the catalogue as three Python functions, their features in every form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from maxmargin.problems import Custom
from support.catalogue import Case
from support.naive import Array, Enumerated

FORMS: dict[str, Callable[[Array], Any]] = {
    "dense": lambda phi: phi,
    "list": lambda phi: phi.tolist(),
    "sparse row": lambda phi: scipy.sparse.csr_array(phi[None]),
    "sparse column format": lambda phi: scipy.sparse.csc_matrix(phi[None]),
    "sparse vector": scipy.sparse.coo_array,
    "pairs": lambda phi: (np.flatnonzero(phi), phi[np.flatnonzero(phi)]),
    "pairs twice": lambda phi: (np.tile(np.flatnonzero(phi), 2), np.tile(phi[np.flatnonzero(phi)], 2) / 2),
    "dict": lambda phi: {f"w{p}": phi[p] for p in np.flatnonzero(phi)},
}


def best_output(data: Enumerated, i: int, w: Any, with_loss: bool) -> int:
    """Return the best output by enumeration; ties go to the first."""
    d = data.psi[i].shape[1]
    dense = w if isinstance(w, np.ndarray) else np.array([w[f"w{p}"] for p in range(d)])
    values = -data.psi[i] @ dense + (data.losses[i] if with_loss else 0.0)
    return int(np.argmax(values.max() - values < 1e-11))


def custom(case: Case, form: str = "pairs") -> Any:
    """Return the case as a problem of three functions.

    An example x is its number, an output y the number of the example and that of the output.
    Features are minus psi, which is phi but for a vector that is the same for all y.
    """
    data, n = case.data, len(case.data.losses)
    d = data.psi[0].shape[1]

    def features(i: int, y: Any) -> Any:
        return FORMS[form](-data.psi[i][y[1]])

    def loss(truth: Any, y: Any) -> float:
        return float(data.losses[truth[0]][y[1]])

    def argmax(i: int, w: Any, truth: Any = None) -> Any:
        return i, best_output(data, i, w, truth is not None)

    names = [f"w{p}" for p in range(d)] if form == "dict" else None
    truths = list(enumerate(data.truths))
    return Custom(features, loss, argmax, range(n), truths, n_features=d, feature_names=names)
