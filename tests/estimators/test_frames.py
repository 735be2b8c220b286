"""Frames of pandas and of polars: what holds for arrays holds for both, and names of columns are kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import ChainSVC, MulticlassSVC, MultilabelSVC, TokenTransformer, load

_rng = np.random.default_rng(0)
X = _rng.normal(size=(20, 3))
Y = np.array(["p", "q", "r"])[np.argmax(X, axis=1)]
NAMES = ["a", "b", "c"]

pytestmark = pytest.mark.every_case


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


@pytest.fixture
def table(library: Any) -> Any:
    return library.DataFrame(dict(zip(NAMES, X.T, strict=True)))


def test_columns_give_features_their_names(library: Any, table: Any, tmp_path: Path) -> None:
    model = MulticlassSVC(random_state=0).fit(table, library.Series(Y))
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(table), Y)
    assert model.score(table, library.Series(Y)) == 1.0
    np.testing.assert_allclose(model.coef_, MulticlassSVC(random_state=0).fit(X, Y).coef_, atol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[["b", "a", "c"]])
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(table), Y)


def test_a_row_of_a_frame_is_explained_by_its_columns(library: Any, table: Any) -> None:
    y = library.Series(Y)
    for model, output in (
        (MulticlassSVC(random_state=0).fit(table, y), Y[4]),
        (MultilabelSVC(random_state=0).fit(table, y == "p"), Y[4] == "p"),
    ):
        found = model.explain(table[4:5])
        assert found.output == output
        assert {each.feature for each in found.contributions} <= {*NAMES, None}


def test_columns_of_outputs_are_the_labels(library: Any, table: Any) -> None:
    sets = library.DataFrame({"u": (X[:, 0] > 0).astype(int), "v": (X[:, 1] > 0).astype(int)})
    model = MultilabelSVC(tol=0.1, random_state=0).fit(table, sets)
    assert model.classes_.tolist() == ["u", "v"]
    assert model.score(table, sets) == np.mean((model.predict(table) == (X[:, :2] > 0)).all(axis=1))


def test_weights_may_be_a_series(library: Any, table: Any) -> None:
    weights = np.arange(20) % 3
    found = MulticlassSVC(random_state=0).fit(table, library.Series(Y), sample_weight=library.Series(weights))
    expected = MulticlassSVC(random_state=0).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-12)


@pytest.mark.parametrize("estimator", [MulticlassSVC(), MultilabelSVC()])
def test_a_missing_class_is_named(library: Any, estimator: Any) -> None:
    y = library.Series(["p", None, "q"])
    with pytest.raises(ValueError, match=r"^Multi\w+SVC: .*(None for example 1|contains NaN)"):
        estimator.fit([[0.0], [1.0], [2.0]], y)


def test_sequences_may_be_frames(library: Any) -> None:
    tokens = [library.DataFrame(dict(zip(NAMES, x.T, strict=True))) for x in np.split(X, 5)]
    labels = [library.Series(y) for y in np.split(Y, 5)]
    pipeline = make_pipeline(TokenTransformer(StandardScaler()), ChainSVC(random_state=0)).fit(tokens, labels)
    arrays = make_pipeline(TokenTransformer(StandardScaler()), ChainSVC(random_state=0))
    arrays.fit(list(np.split(X, 5)), [y.tolist() for y in np.split(Y, 5)])
    assert pipeline.predict(tokens) == arrays.predict(list(np.split(X, 5)))
    assert pipeline.score(tokens, labels) == arrays.score(tokens, labels)


def test_names_pass_through_a_pipeline_that_makes_frames(library: Any, table: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), MulticlassSVC(random_state=0))
    pipeline.set_output(transform=library.__name__).fit(table, library.Series(Y))
    assert pipeline[-1].feature_names_in_.tolist() == NAMES


def test_the_rows_of_a_history_make_a_frame(library: Any) -> None:
    history = MulticlassSVC(random_state=0).fit(X, Y).history_
    frame = library.DataFrame(list(history.rows))
    assert list(frame.columns) == list(history.columns)
    np.testing.assert_array_equal(frame["gap"].to_numpy(), history.gap)
