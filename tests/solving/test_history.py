"""The table of certificates."""

import pickle
import sys

import numpy as np
import pytest

from maxmargin import History
from maxmargin.solving.result import Measurement

ROWS = (Measurement(5.0, 50, 0.25, 1.5, 0.5, 1.0), Measurement(7.5, 75, 0.5, 1.25, 0.75, 0.5))


def test_columns_are_arrays():
    history = History(ROWS)
    assert history.columns == ("passes", "oracle_calls", "seconds", "primal", "dual", "gap")
    assert history.gap.tolist() == history["gap"].tolist() == [1.0, 0.5]
    assert history.passes.tolist() == [5.0, 7.5]
    assert history["oracle_calls"].dtype == np.int64
    assert history.seconds.dtype == np.float64


def test_a_history_is_a_sequence_of_rows():
    history = History(ROWS)
    assert len(history) == 2
    assert tuple(history) == ROWS
    assert repr(history) == "History(2 certificates, last gap 0.5)"


def test_an_empty_history_has_no_rows():
    assert len(History()) == 0
    assert History().gap.shape == (0,)
    assert repr(History()) == "History(0 certificates)"
    assert repr(History(ROWS[:1])).startswith("History(1 certificate, ")


def test_other_columns_are_refused():
    history = History(ROWS)
    with pytest.raises(KeyError, match=r"column must be one of passes, .*gap, got 'loss'"):
        history["loss"]
    with pytest.raises(AttributeError, match="loss"):
        _ = history.loss


def test_pickles_and_copies_are_equal():
    again = pickle.loads(pickle.dumps(History(ROWS)))
    assert tuple(again) == ROWS


def test_to_frame_has_all_columns():
    frame = History(ROWS).to_frame()
    assert list(frame.columns) == list(Measurement._fields)
    assert frame.to_numpy().tolist() == [list(row) for row in ROWS]
    assert frame["oracle_calls"].dtype == np.int64
    assert History().to_frame().shape == (0, 6)


def test_to_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas.*pip install maxmargin\[frame\]") as caught:
        History(ROWS).to_frame()
    assert "\n" not in str(caught.value)
