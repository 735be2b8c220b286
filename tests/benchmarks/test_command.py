"""The command on data that need no download: it runs, stores, goes on, draws and fills the page."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("benchopt", reason="needs benchopt: pip install maxmargin[bench]")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """Return a copy of the benchmark, with nothing run yet."""
    unwanted = shutil.ignore_patterns("outputs", "__cache__", "__pycache__")
    aligner = Path("examples", "word_alignment")  # which the benchmark finds relative to itself
    shutil.copytree(ROOT / aligner, tmp_path / aligner, ignore=unwanted)
    copy = tmp_path / "benchmarks" / "paper"
    return Path(shutil.copytree(ROOT / "benchmarks" / "paper", copy, ignore=unwanted))


def printed(paper: Path, *arguments: str) -> str:
    environment = {**os.environ, "MAXMARGIN_DATA": str(paper), "XDG_CACHE_HOME": str(paper)}
    run = subprocess.run(
        [sys.executable, str(paper), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.slow
def test_runs_are_stored_and_drawn(paper: Path, tmp_path: Path) -> None:
    run = ("run", "--profile", "short", "--only", "digits", "--jobs", "1")
    assert "0 of 3 groups of runs are there" in printed(paper, *run)
    stored = sorted(file.name for file in (paper / "outputs" / "short").iterdir())
    assert stored == [f"digits_0.001_{name}.parquet" for name in ("BCFW", "accelerated", "liblinear")]
    (paper / "outputs" / "short" / stored[0]).unlink()
    assert "2 of 3 groups of runs are there" in printed(paper, *run)
    shutil.copy(ROOT / "docs" / "experiments.md", tmp_path)
    assert "Drew rivals" in printed(paper, "figures", "--profile", "short", "--docs", str(tmp_path))
    page = (tmp_path / "experiments.md").read_text()
    assert "![rivals](figures/rivals.svg)" in page
    assert "| digits, λ = 0.001, primal suboptimality | BCFW | 2 |" in page
    assert (tmp_path / "figures" / "rivals.svg").stat().st_size > 1000


@pytest.mark.slow
def test_missing_data_are_skipped(paper: Path) -> None:
    text = printed(paper, "run", "--only", "CoNLL", "--jobs", "1")
    assert "Skipped CoNLL: load_conll2000: no 'conll2000/train.txt.gz'" in text
    assert "set MAXMARGIN_DATA" in text
    assert "0 of 0 groups of runs are there" in text
