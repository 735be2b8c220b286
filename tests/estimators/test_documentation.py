"""Every class documents all of its parameters and data, from texts that are written once."""

import inspect

import pytest

import maxmargin.estimators as estimators
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.state import validate_parameters
from support.estimators import KINDS

PUBLIC = [getattr(estimators, name) for name in estimators.__all__]
CLASSES = [cls for cls in PUBLIC if isinstance(cls, type) and issubclass(cls, MaxMarginEstimator)]
METHODS = (
    "fit",
    "partial_fit",
    "predict",
    "predict_single",
    "score",
    "decision_function",
    "predict_k_best",
    "predict_margins",
    "predict_marginals",
    "calibrate",
    "predict_tags",
    "top_features",
    "top_transitions",
    "explain",
)


def entries(doc, section):
    """The names that a section of a docstring documents, and the lines below each."""
    lines = inspect.cleandoc(doc).split("\n")
    first = lines.index(section) + 2
    found, names = {}, []
    for line in lines[first:]:
        if not line:
            break
        if line[0] != " ":
            names = line.partition(" : ")[0].split(", ")
            found.update({name: [line] for name in names})
        else:
            for name in names:
                found[name].append(line)
    return found


@pytest.mark.parametrize("cls", CLASSES)
def test_class_documents_its_parameters_in_order_with_their_defaults(cls):
    documented, parameters = entries(cls.__doc__, "Parameters"), inspect.signature(cls).parameters
    assert list(documented) == list(parameters)
    assert set(cls._parameter_constraints) == set(parameters)
    for name, (first, *text) in documented.items():
        default = parameters[name].default
        assert text, f"{name} has no text"
        if default is not inspect.Parameter.empty:
            written = f'"{default}"' if isinstance(default, str) else repr(default)
            assert first.endswith(f"default={written}"), first


@pytest.mark.parametrize("cls", CLASSES)
def test_defaults_are_what_parameters_may_be(cls):
    """A fit does not check them again."""
    defaults = {name: each.default for name, each in inspect.signature(cls).parameters.items()}
    given = {name: value for name, value in defaults.items() if value is not inspect.Parameter.empty}
    constraints = {name: cls._parameter_constraints[name] for name in given}
    validate_parameters(constraints, given, caller_name=cls.__name__)
    assert len(given) > 5


@pytest.mark.parametrize("cls", CLASSES)
def test_class_documents_its_attributes(cls):
    kind = next(kind for kind in KINDS.values() if isinstance(kind.new(), cls))
    names = {*vars(kind.new().fit(kind.X, kind.y)), *(name for base in cls.__mro__ for name in vars(base))}
    public = {name for name in names if name.endswith("_") and not name.startswith("_")}
    assert "gap_" in public
    assert public <= set(entries(cls.__doc__, "Attributes"))


@pytest.mark.parametrize("cls", CLASSES)
def test_methods_document_their_parameters_in_each_class(cls):
    for name in METHODS:
        method = getattr(cls, name, None)
        if method is None:
            continue
        assert "%(" not in method.__doc__
        documented, parameters = entries(method.__doc__, "Parameters"), inspect.signature(method).parameters
        assert set(documented) == set(parameters) - {"self"}
        assert method.__qualname__ == f"{cls.__name__}.{name}"
    assert "%(" not in cls.__doc__


def test_a_class_documents_its_own_data():
    assert "one row per token" in estimators.ChainSVC.fit.__doc__
    assert "one row per node" in estimators.GraphSVC.fit.__doc__
    assert estimators.ChainSVC.predict is not estimators.SegmentSVC.predict


def test_a_subclass_of_a_user_keeps_its_own_docstring():
    class Mine(estimators.ChainSVC):
        """Costs 5 %(C)s."""

    assert Mine.__doc__ == "Costs 5 %(C)s."
    assert Mine(C=2.0).get_params()["C"] == 2.0
    assert set(Mine._parameter_constraints) == set(estimators.ChainSVC._parameter_constraints)
