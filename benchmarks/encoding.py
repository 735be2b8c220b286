"""The cost of encoding, all in one run: the table of names against a dict, and the checks of indices.

    python benchmarks/encoding.py [--quick] [--data DIRECTORY]

The first part encodes a million tokens with the named features of CoNLL-2000, read from --data or
$MAXMARGIN_DATA, alternately with the table of names and with a plain dict. Each run has fresh strings,
as a user's feature function makes them: whoever looks a string up first has to hash it.

The second part measures the checks that builders do, as a share of the time of encoding. Kernels do not check
indices, so builders check all of them once. The sentences are random, and as many and as long as those of
CoNLL-2000, with as many features per token.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import chain, compress, repeat
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from _crfsuite import fresh
from _measure import Figure, Target, Times, print_figures, ratio
from _problems import if_there
from maxmargin.datasets import load_conll2000
from maxmargin.encoding import sequences
from maxmargin.encoding.kinds import Tokens
from maxmargin.encoding.labels import checked_numbers, checked_offsets, encode_labels
from maxmargin.encoding.matrices import checked_csr
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.encoding.table import Bags, Vocabulary
from maxmargin.structures import rows

TOKENS = 1_000_000
SENTENCES, LENGTH, FEATURES, LABELS = 8936, 24, 20, 22
SHARE = Target(must=0.02)
# The table must not slow fitting down much, and is kept only while transforming is faster with it.
TARGETS = {"fit_transform": Target(must=0.9, floor=True), "transform": Target(must=1.25, floor=True)}
ROUNDS = 3
TABLE, DICT = "table", "dict"


def look_up_in_dict(self: Vocabulary, bags: Bags, sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Do the same as `Vocabulary.lookup`, with a dict alone."""
    unknown = len(self)
    found = map(self.codes.get, chain.from_iterable(bags), repeat(unknown))
    codes = np.fromiter(found, np.int32, int(sizes.sum()))
    unseen = compress(chain.from_iterable(bags), (codes == unknown).tolist())
    if not all(issubclass(kind, str) for kind in set(map(type, unseen))):
        raise TypeError("a name is not a string")
    return codes


class DictOnly(Vocabulary):
    """A vocabulary that looks up all names in its dict."""

    lookup = look_up_in_dict

    def prepare(self, n_strings: int) -> None:
        """Build no table."""


def fitted_with_dict(X: Any) -> tuple[SequenceEncoder, Tokens]:
    """Return an encoder without a table, fitted on X, and the encoded X."""
    with mock.patch.object(sequences, "Vocabulary", DictOnly):
        encoder = SequenceEncoder()
        return encoder, encoder.fit_transform(X)


def fitted_with_table(X: Any) -> tuple[SequenceEncoder, Tokens]:
    """Return an encoder with a table, fitted on X, and the encoded X."""
    encoder = SequenceEncoder()
    return encoder, encoder.fit_transform(X)


def measure_lookup(data: str | None, quick: bool) -> None:
    """Print the seconds that a million tokens take with the table and with a dict, and their ratio."""
    known = load_conll2000(data_home=data)[0]
    n_copies = 1 if quick else -(-TOKENS // sum(map(len, known)))
    X = list(chain.from_iterable(repeat(known, n_copies)))
    ways = {TABLE: fitted_with_table, DICT: fitted_with_dict}
    encoders = {way: fit(known)[0] for way, fit in ways.items()}
    tasks: dict[str, dict[str, Callable[[Any], Any]]] = {
        "fit_transform": ways,
        "transform": {way: encoder.transform for way, encoder in encoders.items()},
    }
    print(f"{sum(map(len, X))} tokens of CoNLL-2000, {encoders[TABLE].n_features_in_} names")
    for task, encode in tasks.items():
        seconds: dict[str, list[float]] = {way: [] for way in encode}
        for round_ in range(ROUNDS):
            for way in list(encode)[:: 1 if round_ % 2 else -1]:
                copy = fresh(X)
                seconds[way].append(timed(partial(encode[way], copy))[0])
        times = {way: Times(tuple(measured)) for way, measured in seconds.items()}
        compared = ratio(f"{task}: {DICT} / {TABLE}", [(times[DICT], times[TABLE])], TARGETS[task])
        print_figures([*(Figure(f"{task}, {way}", s.median, "s") for way, s in times.items()), compared])


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
    """Return the processor seconds of a call, which other processes disturb less, and its answer."""
    begin = time.process_time()
    answer = function()
    return time.process_time() - begin, answer


def check(tokens: Tokens, labels: Any, n_labels: int) -> None:
    """Run all checks of a builder of chains."""
    rows._canonical(checked_csr(tokens.rows, "benchmark"))
    checked_offsets(tokens.offsets, tokens.rows.shape[0], "benchmark")
    checked_numbers(labels, tokens.rows.shape[0], n_labels, "benchmark")


def measure_checks(quick: bool) -> None:
    """Print the time of the checks, as a share of the time of encoding."""
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


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer sentences and rounds")
    parser.add_argument("--data", help="directory with CoNLL-2000 (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    if_there(lambda: measure_lookup(options.data, options.quick))
    measure_checks(options.quick)


if __name__ == "__main__":
    main()
