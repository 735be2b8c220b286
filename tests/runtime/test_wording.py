"""The name that errors begin with: that of what the user called, however deep the error is raised."""

from typing import Any

import numpy as np
import pytest

from maxmargin import ChainSVC, StructuredSVC, problems
from maxmargin.runtime.threads import run_all, threads
from maxmargin.runtime.wording import call_user, caller, errors_of


def fail(error: Exception) -> None:
    raise error


@errors_of("Inner")
def inner(message: str = "x must be 1, got 2.") -> None:
    raise ValueError(message)


def test_the_outermost_name_stands_first_and_once() -> None:
    with pytest.raises(ValueError, match=r"^Inner: x must be 1, got 2\.$"):
        inner()
    with pytest.raises(ValueError, match=r"^Outer: x must be 1, got 2\.$"), errors_of("Outer"):
        inner()
    with pytest.raises(ValueError, match=r"^Outer: x$"), errors_of("Outer"):
        fail(ValueError("Outer: x"))
    assert caller("nobody") == "nobody"


def test_an_error_keeps_its_type_and_has_one_line() -> None:
    with pytest.raises(TypeError, match=r"^Outer: first line second line$") as caught, errors_of("Outer"):
        fail(TypeError("first line\n   second line"))
    assert caught.value.__cause__ is None
    with pytest.raises(ValueError, match=r"^Outer: 'utf-8' codec") as caught, errors_of("Outer"):
        b"\xff".decode()
    assert type(caught.value) is ValueError
    assert isinstance(caught.value.__cause__, UnicodeDecodeError)


class OfAUser(ValueError):
    """An error of a class that is not of the libraries below us."""


@pytest.mark.parametrize("error", [OfAUser("theirs"), KeyError("theirs"), RuntimeError("theirs")])
def test_errors_of_other_classes_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, errors_of("Outer"):
        fail(error)
    assert caught.value is error
    assert caught.value.args == ("theirs",)


def test_a_users_function_names_its_own_errors() -> None:
    """What it calls of this package is called by the user, not by the estimator that called the function."""
    with pytest.raises(ValueError, match=r"^Inner: x must be 1, got 2\.") as caught, errors_of("Outer"):
        call_user(inner, "argmax", 3, otherwise="nobody")
    assert caught.value.__notes__ == ["Outer: raised by argmax for example 3"]
    with errors_of("Outer"):
        assert call_user(caller, "argmax", 3, "nobody", otherwise="") == "nobody"
        assert caller() == "Outer"


def test_threads_know_what_the_user_called() -> None:
    with errors_of("Outer"), threads(4):
        assert run_all(lambda _: caller(), list(range(8))) == ["Outer"] * 8
        with pytest.raises(ValueError, match=r"^x must be 1"):  # the name comes with the outermost block
            run_all(lambda _: inner(), list(range(8)))


def test_an_estimator_names_errors_of_the_builders_that_it_calls() -> None:
    wrong: Any = [[["a"], "b"]]
    with pytest.raises(TypeError, match=r"^ChainSVC: token 1 of sequence 0"):
        ChainSVC().fit(wrong, [["X", "Y"]])
    with pytest.raises(TypeError, match=r"^Chain: token 1 of sequence 0"):
        problems.Chain.from_sequences(wrong, [["X", "Y"]])
    with pytest.raises(TypeError, match=r"^SecondOrderChain: token 1 of sequence 0"):
        problems.SecondOrderChain.from_sequences(wrong, [["X", "Y"]])


def test_errors_of_a_run_name_what_made_the_problem() -> None:
    def functions(loss: float) -> tuple[Any, Any, Any]:
        return lambda x, y: np.eye(2)[y] * x, lambda true, y: loss * (true != y), lambda x, w, true=None: 1

    svc = StructuredSVC(*functions(-1.0)).problem([1.0, 2.0], [0, 1])
    with pytest.raises(ValueError, match=r"^StructuredSVC: loss must be a finite number >= 0, got -1\.0"):
        _loss_of_wrong_answer(svc.oracle)
    custom = problems.Custom(*functions(-1.0), [1.0, 2.0], [0, 1])
    with pytest.raises(ValueError, match=r"^Custom: loss must be a finite number >= 0, got -1\.0"):
        _loss_of_wrong_answer(custom.oracle)


def _loss_of_wrong_answer(oracle: Any) -> None:
    oracle.recall(0, 1)
    oracle.loss(0, np.zeros(1, dtype=np.int64))


def test_the_name_as_an_argument_of_builders_is_deprecated() -> None:
    old: Any = problems.Chain.from_sequences
    with (
        pytest.warns(FutureWarning, match=r"^Chain: owner is deprecated; leave it out\.$"),
        pytest.raises(TypeError, match=r"^Mine: token 1 of sequence 0"),
    ):
        old([[["a"], "b"]], [["X", "Y"]], owner="Mine")
