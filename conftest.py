"""What holds for all tests, those in documents and docstrings included."""

from collections.abc import Generator
from contextlib import nullcontext

import pytest

from maxmargin.compiling.interpreting import interpreted

# Settings and scripts of the site, and what building it leaves behind.
collect_ignore_glob = ["docs/*.py", "docs/_*", "docs/gallery/*", "docs/reference/*"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    group = parser.getgroup("maxmargin")
    group.addoption("--compiled", action="store_true", help="compile the kernels of every test")
    group.addoption("--few", type=int, metavar="N", help="run each test with its first N sets of parameters")
    group.addoption("--costs", metavar="FILE", help="append what each test costs to FILE: .ci/costs shows it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Interpret kernels, except in tests marked as compiled or slow: most are not about compiled code."""
    marks = {mark.name for mark in item.iter_markers()}
    is_compiled = item.config.getoption("--compiled") or marks & {"compiled", "slow"}
    with nullcontext() if is_compiled else interpreted():
        return (yield)
