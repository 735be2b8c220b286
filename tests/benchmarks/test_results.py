"""From results to curves, claims, tables and pages."""

import numpy as np
import pandas as pd
import pytest


def test_curves_hold_median_and_best_over_seeds(frame):
    from _curves import SUBOPTIMALITY, TEST_ERROR, Results

    results = Results(frame)
    curve = results.curve("OCR", "1/n", "BCFW", SUBOPTIMALITY)
    assert curve.x.tolist() == [1.0, 2.0, 4.0]
    np.testing.assert_allclose(curve.median, [3.0, 1.1, 0.4])
    np.testing.assert_allclose(curve.best, [2.0, 1.0, 0.3])
    np.testing.assert_allclose(curve.worst, [4.0, 1.2, 0.5])
    assert curve.at(2.0 * np.sqrt(2.0)) == pytest.approx((1.1 + 0.4) / 2)
    assert results.curve("OCR", "1/n", "BCFW", TEST_ERROR).median[-1] == pytest.approx(0.14)


def test_a_curve_reaches_a_level_where_its_line_first_crosses_it():
    from _curves import Curve

    median = np.array([8.0, 2.0, 4.0, 1.0])
    curve = Curve(np.array([1.0, 4.0, 5.0, 9.0]), median, median, median)
    assert curve.reaches(10.0) == 1.0
    assert curve.reaches(4.0) == pytest.approx(2.0)  # halfway on the axes of the figures
    assert curve.reaches(2.0) == pytest.approx(4.0)
    assert curve.reaches(1.0) == pytest.approx(9.0)
    assert curve.reaches(0.5) == np.inf


@pytest.mark.parametrize(
    ("late", "verdict"), [(1.0, "agrees, in 2 of 2"), (1.5, "does not agree, in 0 of 2")]
)
def test_ours_is_compared_with_the_weighted_average(frame, late, verdict):
    """Suboptimality that falls as 1 / passes, from 0.2 of the optimum on; or as much, but later."""
    from _curves import Results
    from _document import claims_section

    averaged = frame[frame["method"] == "BCFW-wavg"]
    averaged = averaged.assign(primal=1.0 + 0.2 / averaged["passes"])
    later = {"passes": late * averaged["passes"], "seconds": late * averaged["seconds"]}
    text = claims_section(Results(pd.concat([averaged, averaged.assign(method="accelerated", **later)])))
    assert f"to any suboptimality below 10 %**: {verdict}" in text
    assert text.count(f"at most {late:.2f} of its passes, at a suboptimality of 0.05") == 1


def test_batch_methods_are_shown_by_their_lowest_objective(frame):
    from _curves import SUBOPTIMALITY, Results

    assert Results(frame).curve("OCR", "1/n", "FW", SUBOPTIMALITY).median.tolist() == [3.0, 3.0, 2.0]


def test_the_bound_is_the_best_dual_of_all_methods(frame):
    from _curves import SUBOPTIMALITY, Results

    frame.loc[(frame["method"] == "FW") & (frame["passes"] == 2.0), "dual"] = 1.05
    curve = Results(frame).curve("OCR", "1/n", "BCFW-wavg", SUBOPTIMALITY)
    assert curve.median[-1] == pytest.approx(0.05)


def test_runs_of_different_length_meet_where_both_are(frame):
    from _curves import SUBOPTIMALITY, Results

    shorter = frame[~((frame["method"] == "BCFW") & (frame["seed"] == 1) & (frame["passes"] == 4.0))]
    assert Results(shorter).curve("OCR", "1/n", "BCFW", SUBOPTIMALITY).x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "agrees, in 2 of 2"), (9.0, "does not agree, in 0 of 2")]
)
def test_claims_follow_the_results(frame, factor, verdict):
    from _curves import Results
    from _document import claims_section

    averaged = frame["method"] == "BCFW-wavg"
    frame.loc[averaged, "primal"] = 1.0 + factor * (frame.loc[averaged, "primal"] - 1.0)
    text = claims_section(Results(frame))
    assert f"above all early and at small λ**: {verdict}" in text
    assert "online-EG" not in text  # what was not run has no verdict


@pytest.mark.slow
def test_figures_are_the_same_for_the_same_results(frame, tmp_path):
    from _curves import Results
    from _figures import draw_all

    drawn = [draw_all(Results(frame), tmp_path / name) for name in ("a", "b")]
    assert drawn == [["figure1", "step_sizes", "ocr", "rivals"]] * 2
    for name in drawn[0]:
        first, second = ((tmp_path / folder / f"{name}.svg").read_bytes() for folder in ("a", "b"))
        assert first == second
        assert b"BCFW-wavg" in first or name == "step_sizes"


def test_every_method_has_a_look_of_its_own():
    from _figures import STYLES
    from _panels import FIGURES

    panels = [panel for figure in FIGURES.values() for panel in figure]
    assert {method for panel in panels for method in panel.methods} <= set(STYLES)
    assert len({(style.color, style.line) for style in STYLES.values()}) == len(STYLES)
    assert len({style.marker for style in STYLES.values()}) == len(STYLES)


def test_pages_are_filled_between_markers(tmp_path):
    from _document import fill

    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin x -->\nold\nlines\n<!-- end x -->\nb\n")
    fill(page, {"x": r"new \1"})
    assert page.read_text() == "a\n<!-- begin x -->\nnew \\1\n<!-- end x -->\nb\n"
    with pytest.raises(SystemExit, match="expected one pair of markers for y, found 0"):
        fill(page, {"y": ""})


def test_the_page_has_a_place_for_every_figure():
    from _figures import DOCS
    from _panels import FIGURES

    text = (DOCS / "experiments.md").read_text()
    for name in (*FIGURES, "bounds", "claims", "table1", "crfsuite"):
        assert text.count(f"<!-- begin {name} -->\n") == text.count(f"<!-- end {name} -->\n") == 1


def test_names_of_one_kind_add_up_and_those_of_several_narrow_down():
    from _plan import chosen, full

    found = chosen(full(), ["OCR", "digits", "1/n", "accelerated"], seeds=3)
    assert [(group.dataset, group.lam, group.solver) for group in found] == [
        ("OCR", "1/n", "accelerated"),
        ("digits", "1/n", "accelerated"),
    ]
    assert {group.limits.seeds for group in found} == {3}
    assert chosen(full(), []) == full()
    assert chosen(full(), ["crfsuite-ap"], seeds=3)[0].limits.seeds == 1  # no more than the plan has
    with pytest.raises(SystemExit, match=r"^--only: expected names of .*BCFW, .* got 'SGD'$"):
        chosen(full(), ["SGD", "OCR"])


def test_published_results_stand_in_for_those_that_are_not_stored(frame, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install maxmargin[bench]")
    import _store

    monkeypatch.setattr(_store, "OUTPUTS", tmp_path / "outputs")
    with pytest.raises(SystemExit, match="No results in"):
        _store.read("full", tmp_path)
    _store.publish(frame.sample(frac=1.0, random_state=0), "full", tmp_path)
    order = ["method", "seed", "passes"]
    read = _store.read("full", tmp_path)
    pd.testing.assert_frame_equal(read, frame.sort_values(order, ignore_index=True), check_dtype=False)
    anew = frame[frame["method"] == "BCFW"].assign(primal=1.25)
    names = {new: old for old, new in _store._RENAMED.items()}
    folder = tmp_path / "outputs" / "full"
    folder.mkdir(parents=True)
    anew.rename(columns=names).to_parquet(folder / "OCR_1-over-n_BCFW.parquet")
    both = _store.read("full", tmp_path).groupby("method")["primal"].max().to_dict()
    assert both == {"BCFW": 1.25, "BCFW-wavg": 2.0, "FW": 6.0}
