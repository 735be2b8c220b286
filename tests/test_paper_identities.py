"""Identities that the paper states, step by step on small problems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BlockFrankWolfe, FrankWolfe
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import push_blocks
from maxmargin.structures.problem import sizes
from maxmargin.structures.sequences.model import ChainMap
from support import naive
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    dense_block,
    flat,
    multiclass_case,
    multiclass_cases,
)
from support.maps import feature_map
from support.naive import Array
from support.runs import RULES, batch_states, block_states, gap_of, random_order

LAM = 0.25
small_cases = st.one_of(chain_cases(max_length=3, max_labels=3), multiclass_cases())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", [chain_case(0, (3,), 3), multiclass_case(0, n=1, n_labels=4)])
def test_with_one_example_both_methods_are_the_same(case: Case, rule: str) -> None:
    """Section 4: for n = 1 Algorithm 3 is Algorithm 1."""
    blocks = block_states(case.problem, BlockFrankWolfe(LAM, RULES[rule]), np.zeros(40, dtype=int))
    batches = batch_states(case.problem, FrankWolfe(LAM, RULES[rule]), 40)
    for block, batch in zip(blocks, batches, strict=True):
        assert block.w == pytest.approx(batch.w, abs=1e-11)
        assert block.ell[0] == pytest.approx(batch.ell[0], abs=1e-11)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", [chain_case(1), multiclass_case(1)])
def test_a_batch_step_is_a_subgradient_step(case: Case, rule: str) -> None:
    """Section 3: w - beta d with the subgradient d = lam w - mean_i psi_i(y_i*) and beta = gamma / lam."""
    n, w = len(case.X), np.zeros(case.data.psi[0].shape[1])
    for k, state in enumerate(batch_states(case.problem, FrankWolfe(LAM, RULES[rule]), 30)):
        psi = [case.data.psi[i][naive.best_output(case.data, i, w)] for i in range(n)]
        d = LAM * w - np.mean(psi, axis=0)
        after = flat(case.problem, state.w)
        beta = -(after - w) @ d / (d @ d)
        assert after == pytest.approx(w - beta * d, abs=1e-11)
        assert 0.0 <= LAM * beta <= 1.0 + 1e-12
        if rule == "predefined":
            assert LAM * beta == pytest.approx(2.0 / (k + 2.0), abs=1e-11)
        w = after


def block_gaps(case: Case, state, lam: float) -> Array:
    """Return each block's linearisation gap, max_s <alpha_i - s, grad_i f>, from its vector z_i."""
    n, m, w = len(case.X), sizes(case.problem).statistics, flat(case.problem, state.w)
    gaps = np.zeros(n)
    for i in range(n):
        Phi, z = feature_map(case, i), dense_block(state.z, i, m)
        inner = state.w @ (Phi @ z[: Phi.shape[1]])
        gaps[i] = (naive.margins(case.data, i, w).max() - (state.ell[i] - inner)) / n
    return gaps


@settings(max_examples=30)
@given(small_cases, st.integers(0, 1000), st.sampled_from(list(RULES)))
def test_the_linearisation_gap_is_the_duality_gap(case: Case, seed: int, rule: str) -> None:
    """Appendix B.2 and the decomposition over blocks of Appendix C.1; no block's gap is negative."""
    method = BlockFrankWolfe(LAM, RULES[rule])
    for state in block_states(case.problem, method, random_order(case.problem, 15, seed)):
        gaps = block_gaps(case, state, LAM)
        assert gaps.min() >= -1e-12
        assert gaps.sum() == pytest.approx(gap_of(case.problem, method, state), abs=1e-11)


@settings(max_examples=30)
@given(small_cases, st.integers(0, 1000), st.sampled_from(list(RULES)))
def test_weights_are_the_image_of_the_blocks(case: Case, seed: int, rule: str) -> None:
    """w = sum_i w_i = sum_i Phi_i z_i / (lam n), rebuilt by the package and by hand."""
    method, size = BlockFrankWolfe(LAM, RULES[rule]), sizes(case.problem)
    *_, state = block_states(case.problem, method, random_order(case.problem, 40, seed))
    rebuilt, by_hand = np.zeros(size.weights), np.zeros(size.weights)
    work, scale = new_scratch(case.problem).block, 1.0 / (LAM * size.examples)
    push_blocks(case.problem.map, state.z, scale, rebuilt, work)
    for i in range(size.examples):
        Phi, z = feature_map(case, i), dense_block(state.z, i, size.statistics)
        by_hand += Phi @ z[: Phi.shape[1]] / (LAM * size.examples)
    assert state.w == pytest.approx(rebuilt, abs=1e-12)
    assert state.w == pytest.approx(by_hand, abs=1e-12)


def marginals(case: Case, state, i: int) -> tuple[Array, Array]:
    """Return mu_i = s_i(y_i) - z_i: pairs of labels (none but for a chain), and labels per position."""
    phi = case.problem.map
    width, K, chain = phi.width, phi.n_labels, isinstance(phi, ChainMap)
    truth = case.data.outputs[i][case.data.truths[i]]
    s = np.zeros((K + phi.longest if chain else 1, width))
    for t, label in enumerate(truth):
        s[(K if chain else 0) + t, label] = 1.0
        if t > 0:
            s[truth[t - 1], label] += 1.0
    mu = s - dense_block(state.z, i, s.size).reshape(s.shape)
    return (mu[:K], mu[K : K + len(truth)]) if chain else (mu[:0], mu)


@settings(max_examples=30)
@given(small_cases, st.integers(0, 1000), st.sampled_from(list(RULES)))
def test_blocks_stay_in_the_marginal_polytope(case: Case, seed: int, rule: str) -> None:
    """alpha_i is in the simplex, so mu_i holds probabilities: of a label at each position, of all pairs."""
    method = BlockFrankWolfe(LAM, RULES[rule])
    for state in block_states(case.problem, method, random_order(case.problem, 25, seed)):
        for i in range(len(case.X)):
            pairs, labels = marginals(case, state, i)
            assert min(labels.min(), pairs.min(initial=0.0)) >= -1e-13
            assert labels.sum(axis=1) == pytest.approx(1.0, abs=1e-13)
            assert not labels[:, case.problem.map.n_labels :].any()
            assert not pairs[:, case.problem.map.n_labels :].any()
            if len(pairs):
                assert pairs.sum() == pytest.approx(len(labels) - 1, abs=1e-12)
                first, last = labels[:-1].sum(axis=0), labels[1:].sum(axis=0)
                K = case.problem.map.n_labels
                assert pairs.sum(axis=1) == pytest.approx(first[:K], abs=1e-12)
                assert pairs.sum(axis=0) == pytest.approx(last, abs=1e-12)
