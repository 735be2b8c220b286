"""Margins of classes, links and heads; `_sequence_margins` and `_graph_margins` have those of labels."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic_with_default, helper
from maxmargin.compiling.views import table
from maxmargin.inference.assignment_margins import ExchangeWork, assignment_margins, exchange_work
from maxmargin.inference.dependency_trees import ProjectiveTrees
from maxmargin.inference.eisner_margins import Outside, eisner_margins, outside_work
from maxmargin.inference.margins import lead
from maxmargin.problems import margins as protocol
from maxmargin.problems.oracle import decode, oracle_workspace
from maxmargin.problems.oracles.arborescence import ArborescenceOracle, ArborescenceOracleWork
from maxmargin.problems.oracles.matching import MatchingOracle, MatchingOracleWork
from maxmargin.problems.oracles.multiclass import MulticlassOracle


@protocol.decode_with_margins.register(MulticlassOracle)
def multiclass_decode_with_margins(classes, i, theta, y, margins, work):
    decode(classes, i, theta, y, work.oracle)
    margins[0] = lead(theta, classes.n_labels, y[0])


class MatchingMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `assignment_margins`."""

    oracle: MatchingOracleWork
    exchanges: ExchangeWork


@protocol.margin_workspace.register(MatchingOracle)
def matching_margin_workspace(pairs: MatchingOracle) -> MatchingMarginWork:
    exchanges = exchange_work(pairs.most_sources * pairs.fertility, pairs.most_targets)
    return MatchingMarginWork(oracle_workspace(pairs), exchanges)


@protocol.n_parts.register(MatchingOracle)
def matching_n_parts(pairs, i):
    """Return the number of links that could be made."""
    return pairs.links[i, 1] - pairs.links[i, 0]


@protocol.decode_with_margins.register(MatchingOracle)
def matching_decode_with_margins(pairs, i, theta, y, margins, work):
    """Write, for each link, by how much the score falls if the link is forced to change: added or removed."""
    decode(pairs, i, theta, y, work.oracle)
    shape, further = (pairs.sources[i], pairs.targets[i]), pairs.fertility - 1
    scores = theta[further : further + margins.shape[0]].reshape(shape)
    prices, bonus = work.oracle.search, work.oracle.bonus
    assignment_margins(scores, bonus, prices, work.exchanges, y, margins.reshape(shape))


class ArborescenceMarginWork(NamedTuple):
    """Workspace for projective trees: of the oracle, and of `eisner_margins`."""

    oracle: ArborescenceOracleWork
    outside: Outside


@protocol.margin_workspace.register(ArborescenceOracle)
def arborescence_margin_workspace(
    sentences: ArborescenceOracle,
) -> ArborescenceMarginWork | protocol.DecodingAgain:
    work = oracle_workspace(sentences)
    if isinstance(sentences.trees, ProjectiveTrees):
        return ArborescenceMarginWork(work, outside_work(sentences.longest))
    return protocol.DecodingAgain(work, np.zeros(sentences.longest, dtype=np.int64))


@protocol.decode_with_margins.register(ArborescenceOracle)
def arborescence_decode_with_margins(sentences, i, theta, y, margins, work):
    _heads_with_margins(sentences.trees, sentences, i, theta, y, margins, work)


@generic_with_default
def _heads_with_margins(trees, sentences, i, theta, y, margins, work):
    """Write the best heads and their margins."""
    protocol.decode_again(sentences, i, theta, y, margins, work)


@_heads_with_margins.register(ProjectiveTrees)
def projective_heads_with_margins(trees, sentences, i, theta, y, margins, work):
    decode(sentences, i, theta, y, work.oracle)
    n_words = margins.shape[0]
    scores = table(theta[: n_words * (n_words + 1)], n_words + 1)
    eisner_margins(scores, trees.single_root, work.oracle.search, work.outside, y, margins)


@protocol.output_score.register(ArborescenceOracle)
def arborescence_output_score(sentences, i, theta, y):
    n_words, total = sentences.words[i, 1] - sentences.words[i, 0], 0.0
    for j in range(n_words):
        total += theta[j * (n_words + 1) + y[j]]
    return total


@protocol.forbid.register(ArborescenceOracle)
def arborescence_forbid(sentences, i, theta, y, p):
    """Lower the score of an arc by more than two trees can differ."""
    n_words = sentences.words[i, 1] - sentences.words[i, 0]
    index = p * (n_words + 1) + y[p]
    before = theta[index]
    theta[index] -= 1.0 + n_words * _range_of_arcs(theta, n_words)
    return index, before


@helper
def _range_of_arcs(theta, n_words):
    """Return the difference of the largest and the smallest score of an arc."""
    low, high = np.inf, -np.inf
    for j in range(n_words):
        for h in range(n_words + 1):
            if h != j + 1:
                score = theta[j * (n_words + 1) + h]
                low, high = min(low, score), max(high, score)
    return high - low
