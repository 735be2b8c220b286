"""Which method may wrap which: the table, what is made of it, and what the constructors allow."""

import re
from pathlib import Path

import pytest

from maxmargin import methods
from maxmargin.methods.protocol import WRAPPERS, Traits, allowed_methods, needs, traits, wrapping_table

PLAIN = {
    name: getattr(methods, name)(lam=0.1)
    for name in methods.__all__
    if "lam" in getattr(getattr(methods, name), "_fields", ())
}
BLOCKS = {"Away", "BlockFrankWolfe", "Pairwise"}
SEARCHES = BLOCKS | {"BlockExact"}


def test_the_table_is_that_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    assert wrapping_table() in re.sub(r"^   ", "", text, flags=re.MULTILINE)


def test_what_the_table_allows_is_what_the_methods_are_for() -> None:
    assert set(PLAIN) == {line.split("|")[1].strip() for line in wrapping_table().splitlines()[2:]}
    assert set(allowed_methods("Cached")) == BLOCKS
    assert set(allowed_methods("Divided")) == SEARCHES
    assert set(allowed_methods("Accelerated")) == SEARCHES
    # All but those whose answer is an average, or the best, of iterates already.
    assert set(PLAIN) - set(allowed_methods("Averaged")) == {"BMRM", "Extragradient", "ExcessiveGap"}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", PLAIN)
def test_constructors_follow_the_table(wrapper: str, name: str) -> None:
    wrap, method = getattr(methods, wrapper), PLAIN[name]
    if name in allowed_methods(wrapper):
        assert wrap(method).inner == method
        return
    with pytest.raises(ValueError, match=f"^{wrapper}: inner must be .*, got {name}; it.*[.]$") as caught:
        wrap(method)
    assert "\n" not in str(caught.value)
    assert needs(wrapper, method)[0].reason in str(caught.value)


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_wrappers_wrap_wrappers_by_the_table(name: str) -> None:
    method = PLAIN[name]
    accelerated = methods.Accelerated(methods.Cached(method))
    own = {"has_step": False, "is_average": True, "projects": True, "weighs": True, "wraps": True}
    expected = Traits(**own, joins=name == "BlockFrankWolfe")
    assert traits(accelerated) == expected
    assert traits(methods.Cached(methods.Averaged(method))).is_average
    for wrapper, inner, reason in (
        (methods.Averaged, methods.Cached(method), "write Cached[(]Averaged[(]"),
        (methods.Averaged, accelerated, "must not be an average already"),
        (methods.Divided, methods.Averaged(method), "must not wrap another method"),
        (methods.Cached, methods.Divided(method), "leave the loop over examples"),
        (methods.Accelerated, methods.Averaged(method), "must not be an average already"),
    ):
        with pytest.raises(ValueError, match=reason):
            wrapper(inner)


def test_every_trait_that_is_needed_exists() -> None:
    for wanted in WRAPPERS.values():
        assert all(hasattr(Traits(), need.trait) for need in wanted)
