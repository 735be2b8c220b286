"""scikit-learn's own checks, for every estimator; those that cannot hold are named, with the reason."""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from maxmargin import MulticlassSVC, MultilabelSVC
from support.estimators import KINDS
from support.rows_as_examples import ADAPTED, ChainRows, SegmentRows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
LISTS = ("chain", "segments", "graph", "matching", "dependency", "structured")


@parametrize_with_checks([MultilabelSVC(tol=1e-2, random_state=0)])
def test_multilabel_passes_the_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("compares decision functions to seven digits, beyond tol; see test_sample_weights.py")
    check(estimator)


@parametrize_with_checks(
    [
        MulticlassSVC(kernel="rbf", tol=1e-2, random_state=0),
        MultilabelSVC(kernel="rbf", tol=1e-2, random_state=0),
    ]
)
def test_kernels_pass_the_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("compares to seven digits, beyond tol, and gamma='scale' depends on repeated rows")
    check(estimator)


@parametrize_with_checks(
    [MulticlassSVC(C="auto", tol=1e-2, random_state=0), MultilabelSVC(C="auto", tol=1e-2, random_state=0)]
)
def test_estimators_that_choose_C_pass_the_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("an example that occurs twice may be in two folds")
    check(estimator)


@parametrize_with_checks(
    [
        MulticlassSVC(probability=True, tol=1e-2, random_state=0),
        MultilabelSVC(probability=True, tol=1e-2, random_state=0),
    ]
)
def test_probabilities_pass_the_checks(estimator, check):
    if check.func.__name__.startswith("check_sample_weight_equivalence"):
        pytest.skip("an example that occurs twice may be in two folds")
    check(estimator)


# The checks that cannot hold for lists of sequences, graphs, ...: they are about the form of a table. Behind
# `Rows` they would pass, but test how `Rows` reads a table, not the estimator.
_FEATURES = "the features of lists are validated by their own encoders, tested in tests/encoding"
_FORMS = "a list of examples is not an array of one or two dimensions"
ABOUT_TABLES = {
    "check_complex_data": _FEATURES,
    "check_dtype_object": _FEATURES,
    "check_estimators_dtypes": _FEATURES,
    "check_estimators_nan_inf": _FEATURES,
    "check_estimators_empty_data_messages": _FEATURES,
    "check_f_contiguous_array_estimator": _FEATURES,
    "check_estimator_sparse_tag": "whether examples may be sparse matrices depends on the estimator",
    "check_estimator_sparse_array": "a sparse matrix is one example, not a list of them",
    "check_estimator_sparse_matrix": "a sparse matrix is one example, not a list of them",
    "check_fit1d": _FORMS,
    "check_fit2d_predict1d": _FORMS,
    "check_fit2d_1feature": _FORMS,
    "check_n_features_in": "the number of features is not known before the examples are encoded",
    "check_requires_y_none": "a list of outputs is validated by its own encoder, tested in tests/encoding",
}


def failing_checks(estimator):
    if isinstance(estimator, SegmentRows):
        return {"check_fit2d_1sample": "one example may be enough: its error is of labels and lengths"}
    return {}


@parametrize_with_checks(
    [cls(max_iter=20, random_state=0) for cls in ADAPTED], expected_failed_checks=failing_checks
)
def test_estimators_over_lists_pass_the_checks(estimator, check):
    name = check.func.__name__
    if name in ABOUT_TABLES:
        pytest.skip(ABOUT_TABLES[name])
    if name.startswith("check_sample_weight_equivalence") and isinstance(estimator, ChainRows):
        pytest.skip("compares to seven digits, beyond tol; test_sample_weights.py compares by objective")
    check(estimator)


@pytest.mark.parametrize("name", LISTS)
def test_estimators_over_lists_do_not_claim_to_take_tables(name):
    tags = get_tags(KINDS[name].new())
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required
    with pytest.warns(UserWarning, match="Can't test estimator"):
        checks = list(estimator_checks_generator(KINDS[name].new()))
    for estimator, check in checks:  # what holds without data
        check(estimator)


def test_multilabel_has_its_tags_and_classes():
    tags = get_tags(MultilabelSVC())
    assert tags.target_tags.multi_output
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    kind = KINDS["multilabel"]
    assert kind.new().fit(kind.X, kind.y).classes_.tolist() == [0, 1, 2]
