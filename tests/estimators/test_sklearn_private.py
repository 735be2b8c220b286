"""Private names of scikit-learn: in one module, tried out on import, with a fallback."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin
from maxmargin.estimators import state as private
from support.imports import tree_of

ROOT = Path(maxmargin.__file__).parent
TESTS = Path(__file__).parent
# scikit-learn without its checks of parameters, as a later version might be. Its modules are loaded before.
BLOCKED = """
import sys, types, warnings
import sklearn.linear_model, sklearn.model_selection, sklearn.pipeline, sklearn.preprocessing, sklearn.svm
import sklearn.datasets, sklearn.metrics, sklearn.multioutput, sklearn.utils.estimator_checks
sys.modules["sklearn.utils._param_validation"] = types.ModuleType("sklearn.utils._param_validation")
sklearn.utils._param_validation = sys.modules["sklearn.utils._param_validation"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import maxmargin.structures.sequences.estimator
mine = [w for w in caught if str(w.message).startswith("maxmargin")]
assert len(mine) == 1 and mine[0].category is RuntimeWarning, mine
assert "do not check their parameters" in str(mine[0].message)
"""


def imported(path):
    """The names of scikit-learn that a module imports."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "sklearn")


def test_other_modules_import_no_private_name():
    for path in sorted(ROOT.rglob("*.py")):
        names = [name for name in imported(path) if any(part.startswith("_") for part in name.split("."))]
        assert not names or path.name == "state.py", path


def test_the_checks_are_scikit_learns():
    from sklearn.utils import _param_validation

    assert private.Interval is _param_validation.Interval
    assert private.InvalidParameterError is _param_validation.InvalidParameterError


@pytest.mark.long
def test_estimators_work_without_the_private_names():
    files = [str(TESTS / f"test_{name}.py") for name in ("scores", "k_best")]
    files.append(str(TESTS.parent / "structures" / "label_sets" / "test_multilabel_svc.py"))
    program = BLOCKED + (
        "import pytest\n"
        f"sys.path.insert(0, {str(TESTS.parent)!r})\n"
        f"sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', *{files!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def wrong_checks(changes):
    return private.ParameterChecks(*private.parameter_checks()[:5], ValueError)._replace(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"validate": lambda *args, **kwargs: None},  # accepts everything
        {"validate": lambda constraints, given: None},  # takes other arguments
        {"interval": lambda *args: None},
    ],
)
def test_names_that_do_something_else_are_found_out(changes):
    with pytest.raises((RuntimeError, TypeError)):
        private._try_out(wrong_checks(changes))
    private._try_out(wrong_checks({}))


def test_the_fallback_warns_once_and_accepts_everything(monkeypatch):
    monkeypatch.setattr(private, "_scikit_learns", lambda: 1 / 0)
    with pytest.warns(RuntimeWarning, match="do not check their parameters") as caught:
        checks = private.parameter_checks()
    assert len(caught) == 1
    checks.validate({"C": [checks.interval(float, 0, None, closed="left")]}, {"C": -1}, caller_name="x")
