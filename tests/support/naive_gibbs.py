"""Methods of Gibbs distributions on the dual variables themselves, one number per output."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from support import naive
from support.naive import Array, Enumerated


def gibbs(exponents: Array) -> Array:
    """Return the distribution proportional to the exponentials."""
    return np.exp(exponents - logsumexp(exponents))


def tilted(block: Array, exponents: Array) -> Array:
    """Return a distribution times exponentials, made to add up to one."""
    with np.errstate(divide="ignore"):
        return gibbs(np.log(block) + exponents)


def uniform_alpha(data: Enumerated) -> list[Array]:
    return [np.full(len(losses), 1.0 / len(losses)) for losses in data.losses]


def mixed(alpha: list[Array], beta: list[Array], tau: float) -> list[Array]:
    """Return (1 - tau) alpha + tau beta."""
    return [(1.0 - tau) * a + tau * b for a, b in zip(alpha, beta, strict=True)]


def all_margins(data: Enumerated, w: Array) -> list[Array]:
    return [naive.margins(data, i, w) for i in range(len(data.losses))]


class Visit(NamedTuple):
    """Where exponentiated gradient is after a visit: dual variables, step sizes, oracle calls so far."""

    alpha: list[Array]
    eta: Array
    calls: int


def exponentiated_gradient(data: Enumerated, lam: float, order: Array) -> Iterator[Visit]:
    """Yield each visit; step sizes are halved twice at most in the first pass, and five times later."""
    alpha, n = uniform_alpha(data), len(data.losses)
    eta, calls = np.full(n, 0.5), n
    for k, i in enumerate(order):
        before, margins = (
            naive.dual(data, alpha, lam),
            naive.margins(data, i, naive.weights_of(data, alpha, lam)),
        )
        for trial in range(1 + (2 if k < n else 5)):
            eta[i] *= 0.5 if trial > 0 else 1.0
            calls += 1
            ahead = [tilted(a, eta[i] * margins) if j == i else a for j, a in enumerate(alpha)]
            if naive.dual(data, ahead, lam) >= before:
                alpha = ahead
                eta[i] *= 1.05
                break
        yield Visit(alpha, eta.copy(), calls)


def smoothed_primal(data: Enumerated, w: Array, lam: float, mu: float) -> float:
    """Return P with every maximum at the temperature mu, less what the uniform distribution has."""
    hinges = [mu * (logsumexp(H / mu) - np.log(len(H))) for H in all_margins(data, w)]
    return 0.5 * lam * float(w @ w) + float(np.mean(hinges))


class Pair(NamedTuple):
    """Where excessive gap reduction is."""

    w: Array
    alpha: list[Array]
    mu: float


def excessive_gap(data: Enumerated, lam: float, n_steps: int) -> Iterator[Pair]:
    """Yield the first pair and that after each step; the bound of the curvature is found on the way."""
    uniform = uniform_alpha(data)
    w, mu = naive.weights_of(data, uniform, lam), naive.dual_loss(data, uniform)
    pair = Pair(w, _smoothed_alpha(data, w, mu), mu)
    while not _holds(data, lam, pair):
        mu *= 2.0
        pair = Pair(w, _smoothed_alpha(data, w, mu), mu)
    yield pair
    bound = mu
    for _ in range(n_steps):
        ahead = _excessive_step(data, lam, pair, bound)
        while not _holds(data, lam, ahead):
            bound *= 2.0
            ahead = _excessive_step(data, lam, pair, bound)
        pair, bound = ahead, 0.9 * bound
        yield pair


def _smoothed_alpha(data: Enumerated, w: Array, mu: float) -> list[Array]:
    return [gibbs(H / mu) for H in all_margins(data, w)]


def _holds(data: Enumerated, lam: float, pair: Pair) -> bool:
    return smoothed_primal(data, pair.w, lam, pair.mu) <= naive.dual(data, pair.alpha, lam) + 1e-13


def _excessive_step(data: Enumerated, lam: float, pair: Pair, bound: float) -> Pair:
    ratio = pair.mu / bound
    tau = (np.sqrt(ratio**2 + 4.0 * ratio) - ratio) / 2.0  # tau^2 / (1 - tau) = ratio
    smoothed = _smoothed_alpha(data, pair.w, pair.mu)
    w_hat = naive.weights_of(data, mixed(pair.alpha, smoothed, tau), lam)
    gamma = tau / ((1.0 - tau) * pair.mu)
    towards = [tilted(a, gamma * H) for a, H in zip(smoothed, all_margins(data, w_hat), strict=True)]
    w = (1.0 - tau) * pair.w + tau * w_hat
    return Pair(w, mixed(pair.alpha, towards, tau), (1.0 - tau) * pair.mu)


class Saddle(NamedTuple):
    """Where the dual extragradient method is: all points u so far, with their step sizes."""

    w: list[Array]
    alpha: list[list[Array]]
    eta: list[float]

    def mean_w(self) -> Array:
        return np.average(self.w, axis=0, weights=self.eta)

    def mean_alpha(self) -> list[Array]:
        return [np.average(blocks, axis=0, weights=self.eta) for blocks in zip(*self.alpha, strict=True)]


def extragradient(data: Enumerated, lam: float, kappa: float, etas: list[float]) -> Iterator[Saddle]:
    """Yield the points u of steps of these sizes.

    v minimises the sum of all linear terms so far plus the prox-functions and the regulariser, u the same
    with the gradient at v in addition.
    """
    saddle, n = Saddle([], [], []), len(data.losses)
    slopes, exponents = np.zeros(data.psi[0].shape[1]), [np.zeros(len(losses)) for losses in data.losses]
    for eta in etas:
        S = sum(saddle.eta)
        v_w, v_alpha = slopes / (kappa + S * lam), [gibbs(e) for e in exponents]
        g = lam * naive.weights_of(data, v_alpha, lam)
        u_w = (slopes + eta * g) / (kappa + (S + eta) * lam)
        u_alpha = [tilted(a, eta * H) for a, H in zip(v_alpha, all_margins(data, v_w), strict=True)]
        slopes = slopes + eta * lam * naive.weights_of(data, u_alpha, lam)
        exponents = [exponents[i] + eta * naive.margins(data, i, u_w) for i in range(n)]
        for points, u in ((saddle.w, u_w), (saddle.alpha, u_alpha), (saddle.eta, eta)):
            points.append(u)
        yield saddle
