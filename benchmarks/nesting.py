"""The order of wrappers, weights of examples and signs of weights nested both ways; and an L1 penalty.

    python benchmarks/nesting.py [--rounds 15]

Both orders make the same pair of a wrapped map and a wrapped oracle, so a pass must take the same time,
within 10 %: the median ratio of passes that take turns. A pass with an L1 penalty may take half as long
again as one without. Words of scanned digits, and three Python functions.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from _measure import Figure, Target, interleaved, print_figures
from maxmargin import BlockFrankWolfe
from maxmargin.datasets import load_digit_words
from maxmargin.methods.protocol import start
from maxmargin.methods.sweep import advance
from maxmargin.problems import Chain, Custom, L1Penalised, SignConstrained, Weighted
from maxmargin.structures.problem import AnyProblem, sizes
from own_oracle import N_CLASSES, N_FEATURES, argmax, dense, loss

SAME, NEAR = Target(must=1.10), Target(must=1.5)
SIGNED = np.arange(5)


def chain_problem() -> AnyProblem:
    """Return words of scanned digits as a problem."""
    X, y, _, _ = load_digit_words(n_test=1)
    return Chain.from_sequences(X, y)


def custom_problem() -> AnyProblem:
    """Return a problem of three Python functions."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, N_FEATURES)), rng.integers(N_CLASSES, size=500).tolist()
    return Custom(dense, loss, argmax, X, y)


def passes(problem: AnyProblem) -> Callable[[], None]:
    """Return a function that makes a pass, compiled."""
    method, n, rng = BlockFrankWolfe(0.01), sizes(problem).examples, np.random.default_rng(1)
    state: Any = start(method, problem)

    def a_pass() -> None:
        nonlocal state
        state = advance(method, state, problem, rng.permutation(n))

    a_pass()
    return a_pass


def order_figure(name: str, problem: AnyProblem, rounds: int) -> Figure:
    """Return the ratio of the slower order to the faster one."""
    weights = np.random.default_rng(2).uniform(0.5, 2.0, sizes(problem).examples)
    orders = {
        "Weighted(SignConstrained)": passes(Weighted(SignConstrained(problem, SIGNED), weights)),
        "SignConstrained(Weighted)": passes(SignConstrained(Weighted(problem, weights), SIGNED)),
    }
    times = interleaved(orders, rounds)
    ratio = times["Weighted(SignConstrained)"].ratio_to(times["SignConstrained(Weighted)"])
    return Figure(f"{name}: one order / the other", max(ratio, 1.0 / ratio), "", SAME)


def penalty_figure(name: str, problem: AnyProblem, rounds: int) -> Figure:
    """Return the ratio of a pass with weights that are thresholded to one with weights that are not."""
    runs = {"with": passes(L1Penalised(problem, 0.1)), "without": passes(problem)}
    times = interleaved(runs, rounds)
    return Figure(f"{name}: with an L1 penalty / without", times["with"].ratio_to(times["without"]), "", NEAR)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(f"load of the machine {os.getloadavg()[0]:.1f}\n")
    problems = {"chain": chain_problem(), "three functions": custom_problem()}
    print_figures(
        [
            make(name, problem, rounds)
            for make in (order_figure, penalty_figure)
            for name, problem in problems.items()
        ]
    )


if __name__ == "__main__":
    main()
