"""The two kinds of dependency trees, arbitrary and projective, behind one interface."""

from typing import NamedTuple

from maxmargin.compiling import generic
from maxmargin.inference.arborescence import arborescence, arborescence_work
from maxmargin.inference.eisner import eisner, eisner_work
from maxmargin.inference.projective_means import projective_means, projective_sums
from maxmargin.inference.spanning_tree_means import spanning_tree_means, tree_sums


class AnyTrees(NamedTuple):
    """All trees; with ``single_root`` only those in which exactly one word is attached to the root."""

    single_root: bool


class ProjectiveTrees(NamedTuple):
    """Trees without crossing arcs; with ``single_root`` exactly one word is attached to the root."""

    single_root: bool


Trees = AnyTrees | ProjectiveTrees


@generic
def tree_work(trees, n_words):
    """Return a workspace for sentences of up to ``n_words`` words."""
    raise NotImplementedError


@generic
def best_tree(trees, scores, work, y):
    """Write the heads of the tree of largest score to ``y``; see `arborescence`."""
    raise NotImplementedError


@tree_work.register(AnyTrees)
def any_trees_tree_work(trees, n_words):
    return arborescence_work(n_words)


@tree_work.register(ProjectiveTrees)
def projective_trees_tree_work(trees, n_words):
    return eisner_work(n_words)


@best_tree.register(AnyTrees)
def any_trees_best_tree(trees, scores, work, y):
    arborescence(scores, trees.single_root, work, y)


@best_tree.register(ProjectiveTrees)
def projective_trees_best_tree(trees, scores, work, y):
    eisner(scores, trees.single_root, work, y)


@generic
def arc_sums(trees, n_words):
    """Return workspace of `arc_means`, for sentences of up to ``n_words`` words."""
    raise NotImplementedError


@generic
def arc_means(trees, scores, work, mean):
    """Write the probability of each arc to ``mean``, return the log-partition; see `projective_means`."""
    raise NotImplementedError


@arc_sums.register(AnyTrees)
def any_trees_arc_sums(trees, n_words):
    return tree_sums(n_words)


@arc_sums.register(ProjectiveTrees)
def projective_trees_arc_sums(trees, n_words):
    return projective_sums(n_words)


@arc_means.register(AnyTrees)
def any_trees_arc_means(trees, scores, work, mean):
    return spanning_tree_means(scores, trees.single_root, work, mean)


@arc_means.register(ProjectiveTrees)
def projective_trees_arc_means(trees, scores, work, mean):
    return projective_means(scores, trees.single_root, work, mean)
