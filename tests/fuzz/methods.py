"""Methods of every kind, in every wrapper that may wrap them."""

from typing import Any

from hypothesis import strategies as st

from maxmargin import (
    BMRM,
    Accelerated,
    Anchored,
    Averaged,
    Away,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    CuttingPlane,
    Divided,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    NSlackCuttingPlane,
    Pairwise,
    Perceptron,
    Predefined,
    Subgradient,
)
from maxmargin.methods.protocol import needs

PLAIN = {
    "pairwise": Pairwise,
    "bcfw": BlockFrankWolfe,
    "away": Away,
    "one pairwise step": lambda lam: Pairwise(lam, 1),
    "many away steps": lambda lam: Away(lam, 9),
    "bcfw, predefined": lambda lam: BlockFrankWolfe(lam, Predefined()),
    "fw": FrankWolfe,
    "fw, predefined": lambda lam: FrankWolfe(lam, Predefined()),
    "exact": BlockExact,
    "ssg": Subgradient,
    "1-slack": CuttingPlane,
    "n-slack": NSlackCuttingPlane,
    "bmrm": BMRM,
    "eg": ExponentiatedGradient,
    "extragradient": Extragradient,
    "excessive gap": ExcessiveGap,
    "perceptron": Perceptron,
}
# The costs of oracles are not timed, so that runs are the same every time.
WRAPPERS = {
    "Accelerated": [Accelerated, lambda inner: Accelerated(inner, 0.3)],
    "Averaged": [lambda inner, scheme=s: Averaged(inner, scheme) for s in ("weighted", "uniform", "suffix")],
    "Cached": [lambda inner: Cached(inner, 8.0), lambda inner: Cached(inner, 3.0, 2, 2)],
    "Divided": [Divided, lambda inner: Divided(inner, 3), lambda inner: Divided(inner, 7)],
    "Anchored": [lambda inner: Anchored(inner, 1), lambda inner: Anchored(inner, 2)],
}
# What converges fast enough for a small gap in a test.
FAST = ("pairwise", "away", "exact", "1-slack", "n-slack", "bmrm")


@st.composite
def methods(draw: Any, lam: float) -> Any:
    """Draw a method, in up to two wrappers."""
    method = PLAIN[draw(st.sampled_from(sorted(PLAIN)))](lam)
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        name = draw(st.sampled_from(sorted(WRAPPERS)))
        if not needs(name, method):
            method = draw(st.sampled_from(WRAPPERS[name]))(method)
    return method


@st.composite
def fast_methods(draw: Any, lam: float) -> Any:
    """Draw a method that converges geometrically."""
    name = draw(st.sampled_from(FAST))
    method = PLAIN[name](lam)
    return Accelerated(method) if name in ("pairwise", "away") and draw(st.booleans()) else method
