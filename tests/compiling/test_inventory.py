"""Which kernels are ready: what `maxmargin compile --list` prints."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maxmargin import cli
from maxmargin.compiling import kernel_cache
from maxmargin.compiling import places as baseline
from maxmargin.compiling.kernel_cache import Inventory, Trained, inventories


def type_of(name: str, *fields: Any) -> SimpleNamespace:
    """A type as Numba describes named tuples."""
    return SimpleNamespace(instance_class=type(name, (), {}), types=fields)


NUMBER = object()
SIGNATURES = {
    b"chain": (
        type_of(
            "Problem",
            type_of("ChainMap", type_of("DenseRows", NUMBER), NUMBER),
            type_of("ChainOracle", NUMBER),
        ),
        type_of("Pairwise", NUMBER, type_of("LineSearch")),
        NUMBER,
    ),
    b"links": (
        type_of("Problem", type_of("MatchingMap", NUMBER), type_of("MatchingOracle")),
        type_of("Pairwise"),
    ),
}


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user's cache and a directory of kernels compiled beforehand."""
    for name, contents in (("kept", ["chain", "links", "damaged"]), ("shared/kernels-0", ["links"])):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        for content in contents:
            (directory / f"maxmargin.methods.sweep.sweep-{content}").write_text(content)
        (directory / "maxmargin.compiling.loops.copy-0").write_bytes(bytes(2_000_000))
    monkeypatch.setattr(kernel_cache, "readable_directories", lambda: (tmp_path / "kept",))
    monkeypatch.setattr(kernel_cache, "directory_name", lambda: "kernels-0")
    monkeypatch.setattr(kernel_cache, "read_trusted", lambda file: file.read_bytes())
    monkeypatch.setattr(kernel_cache, "kept_signature", SIGNATURES.get)
    monkeypatch.setattr(baseline, "_SHIPPED", tmp_path / "shared")
    monkeypatch.setattr(baseline, "baseline_for", lambda processor: processor)
    monkeypatch.delenv(baseline.VARIABLE, raising=False)
    return tmp_path


def test_the_inventory_says_what_is_on_disk_and_for_what(places: Path) -> None:
    kept, shipped = inventories()
    both = (Trained("Chain", "dense", "Pairwise"), Trained("Matching", "", "Pairwise"))
    assert kept == ("this user's cache", places / "kept", 4, 2_000_017, both)
    assert shipped[:3] == ("compiled beforehand, shipped", places / "shared" / "kernels-0", 2)
    assert shipped.trained == both[1:]


def test_the_variable_is_named(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(baseline.VARIABLE, str(places / "shared"))
    assert [each.origin for each in inventories()][1:] == ["compiled beforehand, MAXMARGIN_KERNELS"]
    monkeypatch.setenv(baseline.VARIABLE, "")
    assert len(inventories()) == 1


def test_kernels_for_another_processor_are_not_ready(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "baseline_for", lambda processor: None)
    assert [each.origin for each in inventories()] == ["this user's cache"]


def test_inventory_has_one_line_and_one_for_each_model(tmp_path: Path) -> None:
    trained = (
        Trained("Chain", "dense", "BlockFrankWolfe"),
        Trained("Chain", "dense", "Pairwise"),
        Trained("Chain", "sparse", "Pairwise"),
        Trained("Matching", "", "Pairwise"),
    )
    assert str(Inventory("this user's cache", tmp_path, 1, 2_340_000, trained)).splitlines() == [
        f"this user's cache: 1 function, 2.3 MB, in {tmp_path}",
        "  Chain: dense rows by BlockFrankWolfe, Pairwise; sparse rows by Pairwise",
        "  Matching: Pairwise",
    ]


def test_the_command_lists_and_compiles_nothing(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compile", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"this user's cache: 4 functions, 2.0 MB, in {places / 'kept'}"
    assert lines[1] == "  Chain: dense rows by Pairwise"
    assert len(lines) == 5


def test_the_command_says_that_nothing_is_ready(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_cache, "inventories", lambda: [Inventory("here", tmp_path, 0, 0, ())])
    assert cli.main(["compile", "--list"]) == 0
    assert capsys.readouterr().out == "no kernels ready: a first fit compiles those that it needs\n"
