"""Changes of weights as messages, against plain vectors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.dask.calls import Change, add, dense, difference, encoded, total, write

NUMBERS = st.one_of(st.just(0.0), st.integers(-4, 4).map(float))


def vectors(count: int) -> st.SearchStrategy[list[np.ndarray]]:
    """Some vectors of one length, with many zeros."""
    return st.integers(1, 30).flatmap(
        lambda size: st.lists(
            st.lists(NUMBERS, min_size=size, max_size=size).map(np.array), min_size=count, max_size=count
        )
    )


@given(vectors(1))
def test_a_vector_comes_back(given_vectors: list[np.ndarray]) -> None:
    (vector,) = given_vectors
    change = encoded(vector)
    np.testing.assert_array_equal(dense(change), vector)
    assert change.n_bytes <= 8 * len(vector)
    assert change.n_bytes == min(8 * len(vector), 12 * np.count_nonzero(vector)) or not vector.all()


@given(vectors(2))
def test_a_difference_makes_the_old_vector_the_new_one(given_vectors: list[np.ndarray]) -> None:
    new, old = given_vectors
    held = old.copy()
    write(difference(new, old), held)
    np.testing.assert_array_equal(held, new)


@given(vectors(3), st.integers(-3, 3))
def test_changes_add_up(given_vectors: list[np.ndarray], scale: int) -> None:
    first, second, vector = given_vectors
    found = total(encoded(first), encoded(second))
    np.testing.assert_array_equal(dense(found), first + second)
    expected = vector + scale * (first + second)
    add(found, float(scale), vector)
    np.testing.assert_array_equal(vector, expected)


def test_sparse_messages_are_short() -> None:
    vector = np.zeros(1000)
    vector[[3, 500]] = 1.5, -2.0
    assert encoded(vector).n_bytes == 24
    assert encoded(np.ones(1000)).n_bytes == 8000
    both = total(encoded(vector), encoded(vector))
    assert both.n_bytes == 24
    assert both.where is not None


def test_the_sum_of_many_sparse_messages_becomes_dense() -> None:
    odd, even = np.zeros(100), np.zeros(100)
    odd[1::2], even[::2] = 1.0, 2.0
    assert encoded(odd).where is not None
    found = total(encoded(odd), encoded(even))
    assert found == Change(100, None, found.values)
    np.testing.assert_array_equal(found.values, odd + even)
