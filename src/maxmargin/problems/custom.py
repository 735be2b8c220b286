"""A problem given by three Python functions: features, loss and argmax, on objects of any kind."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from maxmargin.problems.maps.identity import IdentityMap
from maxmargin.problems.oracles.custom import CustomOracle
from maxmargin.problems.problem import Problem, fitting


def Custom(
    features: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], float],
    argmax: Callable[..., object],
    X: object,
    y: object,
    *,
    n_features: int | None = None,
    feature_names: Iterable[Hashable] | None = None,
    exact: bool = True,
    owner: str = "Custom",
) -> Problem[IdentityMap, CustomOracle]:
    """Return a problem given by three functions. Its loop is interpreted, its steps are compiled.

    Parameters
    ----------
    features : callable
        ``features(x, y)``, the joint feature map: a 1-D array, a sparse row, a dict ``{name: number}`` or a
        pair ``(indices, values)``; of the same kind and length for all.
    loss : callable
        ``loss(y_true, y)``, a number >= 0, and 0 for the truth.
    argmax : callable
        ``argmax(x, w, y_true)`` returns the y of largest ``loss(y_true, y) + <w, features(x, y)>``, and
        ``argmax(x, w)`` the y of largest ``<w, features(x, y)>``. The weights w are a read-only array; for
        features that are dicts, an object with ``w[name]`` and ``w.dot(features)``.
    X, y : lists
        Examples and their true outputs: any objects.
    n_features : int, optional
        Number of weights; needed only for pairs.
    feature_names : iterable, optional
        Names that get a weight, if features are dicts; by default the names in the features of the truths.
    exact : bool
        Whether argmax always returns the best output; if not, there is no certificate.
    owner : str
        The name that errors begin with.
    """
    oracle = CustomOracle(features, loss, argmax, X, y, n_features, feature_names, exact, owner)
    return fitting(Problem(IdentityMap(len(oracle.X), oracle.joint.size), oracle), owner)
