"""The Hansards: reading, the two kinds of labels, error rates by hand, and the real pairs."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import MatchingSVC
from maxmargin.datasets import alignment_error_rate, load_hansards

ENGLISH = ["the nation", "the house is great", "a great house"]
FRENCH = ["la Nation", "la maison est à elle", "une grande maison"]
LINKS = "{0} 1 1 S\n{0} 1 2 P\n{0} 2 2 S\n"
N_TRIAL, N_TEST = 2, 105


def write(folder: Path, name: str, content: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.gz").write_bytes(gzip.compress(content.encode()))


def write_all(folder: Path) -> None:
    """Write a small corpus in the layout of the real one."""
    sizes = {"trial": N_TRIAL, "test": N_TEST, "train36_2_25k": 8, "train36_1_sample": 2, "isi_short_tok": 3}
    for stem, size in sizes.items():
        for language, lines in (("en", ENGLISH), ("fr", FRENCH)):
            write(folder, f"{stem}.{language}", "".join(f"{lines[k % 3]}\n" for k in range(size)))
    for stem in ("trial", "test"):
        write(folder, f"{stem}.wa", "".join(LINKS.format(k + 1) for k in range(sizes[stem])))


@pytest.mark.parametrize("folder", ["", "hansards"])
def test_pairs_aligned_by_hand(tmp_path: Path, folder: str) -> None:
    write_all(tmp_path / folder)
    train, test, names = load_hansards(data_home=tmp_path)
    assert (len(train.X), len(test.X)) == (N_TRIAL + 100, N_TEST - 100)
    assert train.words[1] == (["the", "house", "is", "great"], ["la", "maison", "est", "a", "elle"])
    assert [x.shape for x in train.X[:2]] == [(2, 2, len(names)), (4, 5, len(names))]
    assert (train.sure[0], train.possible[0]) == ([(0, 0), (1, 1)], [(0, 0), (0, 1), (1, 1)])
    assert train.y == train.sure
    assert len(set(names)) == len(names)


def test_pairs_aligned_automatically(tmp_path: Path) -> None:
    write_all(tmp_path)
    train, test, _ = load_hansards(data_home=tmp_path, labels="automatic")
    assert (len(train.X), len(test.X)) == (3, N_TEST - 100)  # without repetitions
    assert train.sure == train.possible
    for (english, french), links in zip(train.words, train.y, strict=True):
        linked = {(english[j], french[k]) for j, k in links}
        assert linked <= {(e, f) for e in english for f in french}
        for side in zip(*links, strict=True):
            assert len(set(side)) == len(side)
    assert sum(map(len, train.y)) > 0


@pytest.mark.parametrize("fertility", [1, 2, 3])
def test_sure_links_are_thinned_to_a_matching(tmp_path: Path, fertility: int) -> None:
    write_all(tmp_path)
    # The first English word has two French ones, the first French word two English ones.
    links = "{0} 1 1 S\n{0} 1 2 S\n{0} 2 1 S\n"
    write(tmp_path, "trial.wa", "".join(links.format(k + 1) for k in range(N_TRIAL)))
    train, _, _ = load_hansards(data_home=tmp_path, fertility=fertility, n_text=1)
    for sure, y in zip(train.sure[:N_TRIAL], train.y[:N_TRIAL], strict=True):
        assert sure == [(0, 0), (0, 1), (1, 0)]
        sources, targets = Counter(j for j, _ in y), Counter(k for _, k in y)
        assert max(sources.values()) <= fertility
        assert max(targets.values()) == 1
        left_out = set(sure) - set(y)
        assert len(left_out) + len(y) == 3
        assert all(sources[j] == fertility or targets[k] == 1 for j, k in left_out)


DAMAGED = [
    ("trial.wa", "1 1 1 S\n1 9 1 P\n", "line 2 is no link 'pair english french S|P' of a pair"),
    ("test.wa", "106 1 1 S\n", "line 1 is no link"),
    ("test.wa", "1 1 1 X\n", "line 1 is no link"),
    ("trial.fr", "la nation\n", "1 lines, but 2 in trial.en.gz"),
    ("isi_short_tok.en", "the\n \nhouse\n", "line 2 is empty"),
]


@pytest.mark.parametrize(("name", "content", "reason"), DAMAGED)
def test_damaged_files_are_named(tmp_path: Path, name: str, content: str, reason: str) -> None:
    write_all(tmp_path)
    write(tmp_path, name, content)
    with pytest.raises(OSError, match=r"^load_hansards: .* is damaged") as caught:
        load_hansards(data_home=tmp_path)
    assert f"{name}.gz" in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_all(tmp_path)
    (tmp_path / "train36_1_sample.fr.gz").unlink()
    missing = "^load_hansards: no 'hansards/train36_1_sample.fr.gz' or 'train36_1_sample.fr.gz' in "
    with pytest.raises(FileNotFoundError, match=missing):
        load_hansards(data_home=tmp_path)


@pytest.mark.parametrize("options", [{"labels": "sure"}, {"fertility": 0}, {"n_text": -1}])
def test_refused_options(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"^load_hansards: {name} must be "):
        load_hansards(**options)


LINK_SETS = st.lists(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3))), min_size=2, max_size=2)


@given(LINK_SETS, LINK_SETS, LINK_SETS)
def test_error_rate_is_one_minus_its_shares(sure: Any, possible: Any, predicted: Any) -> None:
    S, P, A = ({(s, *link) for s in (0, 1) for link in side[s]} for side in (sure, possible, predicted))
    P = P | S
    expected = 1 - (len(A & S) + len(A & P)) / (len(A) + len(S)) if A or S else 0.0
    assert alignment_error_rate(sure, possible, predicted) == pytest.approx(expected)


def test_error_rate_of_predicted_targets() -> None:
    sure, possible = [[(0, 0)], [(1, 2)]], [[(0, 0), (1, 1)], [(1, 2)]]
    assert alignment_error_rate(sure, possible, [np.array([0, 1]), [-1, 2]]) == 0.0
    assert alignment_error_rate(sure, possible, [np.array([1, -1]), [-1, -1]]) == 1.0
    with pytest.raises(ValueError, match=r"^alignment_error_rate: expected as many .*, got 2, 2, 1"):
        alignment_error_rate(sure, possible, [[0]])


def test_real_pairs(real_data: Path) -> None:
    """With little text the features are weak; the model trained on them is not."""
    train, test, names = load_hansards(data_home=real_data, n_text=3000)
    assert (len(train.X), len(test.X), len(names)) == (137, 347, 80)
    assert sum(map(len, train.sure + test.sure)) == 338 + 4038
    assert sum(map(len, train.possible + test.possible)) == 338 + 1446 + 4038 + 13400
    best = [x[:, :, names.index("model 1 best")] for x in test.X]
    intersection = alignment_error_rate(test.sure, test.possible, [np.argwhere(x == 1.0) for x in best])
    model = MatchingSVC(C=0.1, tol=0.5, random_state=0).fit(train.X, train.y, train.possible)
    learnt = alignment_error_rate(test.sure, test.possible, model.predict(test.X))
    assert 0.15 < intersection < 0.4
    assert learnt < min(0.15, 0.6 * intersection)
