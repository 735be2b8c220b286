"""What the checks of encoded examples cost, as a share of the time of encoding them, all in one run.

    python benchmarks/encoding.py [--quick]

Kernels check no index, so that builders look at all of them once. The sentences are random, and as many and
as long as those of CoNLL-2000, with as many features per token.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from _measure import Target, Times, print_figures, ratio
from maxmargin.encoding import SequenceEncoder, Tokens, encode_labels
from maxmargin.encoding.matrices import checked_csr
from maxmargin.problems._checked import checked_numbers, checked_offsets
from maxmargin.rows import _storage

SENTENCES, LENGTH, FEATURES, LABELS = 8936, 24, 20, 22
SHARE = Target(must=0.02)


def sentences(n: int, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    """Return tokens with named features, few of which are frequent, and their labels."""
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(LENGTH // 2, 3 * LENGTH // 2))
        numbers = rng.zipf(1.3, (length, FEATURES)) % 10_000
        X.append([[f"{f}={number}" for f, number in enumerate(row)] for row in numbers.tolist()])
        y.append([f"L{k}" for k in rng.integers(LABELS, size=length)])
    return X, y


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its answer."""
    begin = time.perf_counter()
    answer = function()
    return time.perf_counter() - begin, answer


def check(tokens: Tokens, labels: Any, n_labels: int) -> None:
    """Do all that builders do to know that a chain is sound."""
    _storage._canonical(checked_csr(tokens.rows, "benchmark"))
    checked_offsets(tokens.offsets, tokens.rows.shape[0], "benchmark")
    checked_numbers(labels, tokens.rows.shape[0], n_labels, "benchmark")


def main() -> None:
    """Print the share."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer sentences and rounds")
    quick = parser.parse_args().quick
    X, y = sentences(SENTENCES // 8 if quick else SENTENCES, np.random.default_rng(0))
    encoding, checking = [], []
    for _ in range(2 if quick else 5):
        first, tokens = timed(lambda: SequenceEncoder().fit_transform(X))
        second, (labels, classes) = timed(lambda tokens=tokens: encode_labels(y, tokens.offsets))
        encoding.append(first + second)
        arguments = tokens, labels, len(classes)
        checking.append(timed(lambda arguments=arguments: check(*arguments))[0])
    print(f"{len(X)} sentences, {tokens.rows.shape[0]} tokens, {tokens.rows.nnz} features")
    print(f"encoding {min(encoding):.3f} s, checks {1e3 * min(checking):.1f} ms")
    print_figures([ratio("checks / encoding", [(Times(tuple(checking)), Times(tuple(encoding)))], SHARE)])


if __name__ == "__main__":
    main()
