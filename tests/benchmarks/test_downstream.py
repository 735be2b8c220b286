"""The benchmark of projects' taggers, on a few made-up addresses."""

import gzip
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CITIES = ["Boston", "Salem", "Lynn", "Lowell", "Newton"]


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a folder of data with ten distinct addresses, and a package that describes them."""
    describe = SimpleNamespace(
        tokens2features=lambda words: [{"word": w, "digit": w.isdigit()} for w in words]
    )
    monkeypatch.setitem(sys.modules, "usaddress", describe)
    folder = tmp_path / "downstream" / "usaddress"
    folder.mkdir(parents=True)
    pairs = [(3 * k, CITIES[k % 5]) for k in range(10)]
    strings = [
        f"<AddressString><No>{no}</No> <City>{city} &amp;</City></AddressString>" for no, city in pairs
    ]
    for name, chosen in (
        ("labeled", [*strings, strings[0]]),
        ("more", strings[:2]),
        ("test_labeled", strings[3:5]),
    ):
        with gzip.open(folder / f"{name}.xml.gz", "wt", encoding="utf-8") as file:
            file.write(f"<AddressCollection>{''.join(chosen)}</AddressCollection>")
    return tmp_path


def test_strings_are_read_without_punctuation_and_once_if_they_are_to_be_distinct(home):
    from downstream import of_files

    once, all_of_them = (
        of_files(home, "usaddress", "labeled.xml.gz", distinct) for distinct in (True, False)
    )
    assert len(once.y) == 10
    assert len(all_of_them.y) == 11
    assert once.X[1] == [{"word": "3", "digit": True}, {"word": "Salem", "digit": False}]
    assert once.y[1] == ["No", "City"]


def test_folds_test_every_string_once_and_train_on_the_others(home):
    from downstream import tasks

    splits = list(tasks(1.0)["usaddress"](home, 0))
    assert sorted(k for split in splits for k in split.numbers) == list(range(10))
    for split in splits:
        words = [[x[1]["word"] + x[0]["word"] for x in part.X] for part in (split.train, split.test)]
        assert not set(words[0]) & set(words[1])
        assert len(words[0]) + len(words[1]) == 10


def test_the_test_file_is_apart_from_all_training_files(home):
    from downstream import tasks

    (split,) = tasks(1.0)["usaddress, its own test file"](home, 0)
    assert (len(split.train.y), len(split.test.y)) == (13, 2)


def test_a_table_has_every_model_and_a_later_call_makes_no_run_twice(home, tmp_path, capsys, monkeypatch):
    import downstream

    pytest.importorskip("pycrfsuite")
    options = Namespace(data=home, shuffles=2, share=1.0)
    splits = downstream.tasks(1.0)["usaddress"]
    downstream.measure("usaddress", splits, options, downstream.Store(tmp_path / "store"))
    table = capsys.readouterr().out.partition("\n\n")[2]
    models = [*downstream.OURS, *downstream.RIVALS]
    assert [line.split(" | ")[0] for line in table.splitlines()[2:] if line] == [
        f"| {model}" for model in models
    ]
    assert "| 100.0 | +0.0 ± 0.0 |" in table
    monkeypatch.setattr(downstream, "run", None)
    downstream.measure("usaddress", splits, options, downstream.Store(tmp_path / "store"))
    assert capsys.readouterr().out.strip() == table.strip()


def test_differences_are_paired_by_string_over_all_orders():
    from downstream import Run, by_string, difference

    ours = by_string([Run([0, 2], [1, 1], 0.0, 0), Run([1], [1], 0.0, 0), Run([2, 1, 0], [0, 1, 1], 0.0, 0)])
    assert ours.tolist() == [1.0, 1.0, 0.5]
    values = np.array([0.5, -1.0, 0.0, 0.0])
    assert difference(values) == f"-12.5 ± {100 * np.sqrt(values.var(ddof=1) / 4):.1f}"
    assert difference(np.array([-0.5, -0.4, -0.6])) == "-50.0 ± 5.8 BELOW"
