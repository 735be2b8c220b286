"""The Hansards with features: both kinds of labels, matchings, and a model trained on the real pairs."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import MatchingSVC
from maxmargin.datasets import alignment_error_rate, load_hansards
from support.small_hansards import N_TEST, N_TRIAL, write, write_all
from word_alignment import load_described_hansards


@pytest.mark.long
def test_pairs_aligned_by_hand_are_described(tmp_path: Path) -> None:
    write_all(tmp_path)
    train, test, names = load_described_hansards(data_home=tmp_path)
    pairs = load_hansards(data_home=tmp_path)
    for described, read in ((train, pairs.train), (test, pairs.test)):
        assert (described.words, described.sure, described.possible) == read
        shapes = [(len(english), len(french), len(names)) for english, french in read.words]
        assert [x.shape for x in described.X] == shapes
        assert described.y == described.sure  # which are a matching
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_pairs_aligned_automatically_are_a_matching(tmp_path: Path) -> None:
    write_all(tmp_path)
    train, test, _ = load_described_hansards(data_home=tmp_path, labels="automatic")
    assert (len(train.X), len(test.X)) == (3, N_TEST - 100)  # without repetitions
    assert train.sure == train.possible
    for (english, french), links in zip(train.words, train.y, strict=True):
        linked = {(english[j], french[k]) for j, k in links}
        assert linked <= {(e, f) for e in english for f in french}
        for side in zip(*links, strict=True):
            assert len(set(side)) == len(side)
    assert sum(map(len, train.y)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("fertility", [1, 2, 3])
def test_sure_links_are_thinned_to_a_matching(tmp_path: Path, fertility: int) -> None:
    write_all(tmp_path)
    # The first English word has two French ones, the first French word two English ones.
    links = "{0} 1 1 S\n{0} 1 2 S\n{0} 2 1 S\n"
    write(tmp_path, "trial.wa", "".join(links.format(k + 1) for k in range(N_TRIAL)))
    train, _, _ = load_described_hansards(data_home=tmp_path, fertility=fertility, n_text=1)
    for sure, y in zip(train.sure[:N_TRIAL], train.y[:N_TRIAL], strict=True):
        assert sure == [(0, 0), (0, 1), (1, 0)]
        sources, targets = Counter(j for j, _ in y), Counter(k for _, k in y)
        assert max(sources.values()) <= fertility
        assert max(targets.values()) == 1
        left_out = set(sure) - set(y)
        assert len(left_out) + len(y) == 3
        assert all(sources[j] == fertility or targets[k] == 1 for j, k in left_out)


@pytest.mark.parametrize("options", [{"labels": "sure"}, {"fertility": 0}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"^load_described_hansards: {name} must be "):
        load_described_hansards(**options)


def test_a_model_trained_on_real_pairs_beats_the_intersection(real_data: Path) -> None:
    """Little text makes weak features, but the model trained on them is much better than each of them."""
    train, test, names = load_described_hansards(data_home=real_data, n_text=3000)
    assert (len(train.X), len(test.X), len(names)) == (137, 347, 80)
    best = [x[:, :, names.index("model 1 best")] for x in test.X]
    intersection = alignment_error_rate(test.sure, test.possible, [np.argwhere(x == 1.0) for x in best])
    model = MatchingSVC(C=0.1, tol=0.5, random_state=0).fit(train.X, train.y, train.possible)
    learnt = alignment_error_rate(test.sure, test.possible, model.predict(test.X))
    assert 0.15 < intersection < 0.4
    assert learnt < min(0.15, 0.6 * intersection)
