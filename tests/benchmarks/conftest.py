"""The benchmark's modules, which are run from their own directory, and made-up results."""

from pathlib import Path

import pandas as pd
import pytest

PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"


@pytest.fixture(autouse=True)
def _modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PAPER)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return two seeds of three methods on one problem, whose least objective is 1."""
    primal = {
        "BCFW": ([3.0, 2.0, 1.5], [5.0, 2.2, 1.3]),
        "BCFW-wavg": ([2.0, 1.2, 1.1], [2.0, 1.4, 1.1]),
        "FW": ([4.0, 6.0, 3.0], [4.0, 6.0, 3.0]),
    }
    rows = [
        ("OCR", "1/n", method, seed, passes, 100 * passes, 0.1 * passes, value, 1.0, value - 1.0, value / 10)
        for method, seeds in primal.items()
        for seed, values in enumerate(seeds)
        for passes, value in zip((1.0, 2.0, 4.0), values, strict=True)
    ]
    columns = ["dataset", "lam", "method", "seed", "passes", "oracle_calls", "seconds", "primal", "dual"]
    return pd.DataFrame(rows, columns=[*columns, "gap", "test_error"])
