"""Which labels of a set are joined, and how the best set is found."""

from itertools import combinations

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.inference.chow_liu import chow_liu
from maxmargin.inference.subsets import MOST_NODES

STRUCTURES = {"auto", "independent", "tree", "full"}
# The feature of a pair of labels. A pair has only this feature, while a label has all those of X, so with a
# value of one the weights of pairs would be regularised too much. On the data of benchmarks/multilabel.py,
# three is best or nearly so, and ten needs three times as many passes.
PAIR = 3.0
# The names of the entries of a pair's table, row by row.
PAIR_STATES = ("neither", "second", "first", "both")


def chosen_structure(
    structure: str, n_labels: int, is_slack: bool, probability: bool, owner: str
) -> tuple[str, str]:
    """Return which labels are joined, and how the best set is found; raise if there is no oracle for it."""
    is_small = n_labels <= MOST_NODES
    if structure == "auto":
        # Up to two labels, a tree has all pairs.
        has_oracle = n_labels > 2 and is_small and not is_slack and not probability
        structure = "full" if has_oracle else "tree"
    if is_slack and structure == "full":
        raise ValueError(
            f"{owner}: structure must be 'independent' or 'tree' where rescaling is 'slack', got "
            "'full'; use one of these, or rescaling='margin'."
        )
    if structure != "full":
        return structure, "tree"
    return structure, "subsets" if is_small else "messages"


def joined_labels(structure: str, y: IntArray, weights: FloatArray | None) -> IntArray:
    """Return the pairs of labels that are joined."""
    if structure == "tree":
        return chow_liu(y, weights)
    pairs = combinations(range(y.shape[1]), 2) if structure == "full" else ()
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
