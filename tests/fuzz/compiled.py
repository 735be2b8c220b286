"""Compiled runs, against enumeration, a quadratic program and the bits of interpreted runs.

Compiling takes seconds for each type of problem and method, and a run of a tiny problem milliseconds. So each
piece of cases has one type, drawn by the number of the piece.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from fuzz.methods import PLAIN, WRAPPERS
from fuzz.problems import SEEDS, WRAPPED, cases, posed, wrapped
from fuzz.solves import LAMS, SAMPLINGS, Draw, check_bounds, may_run, solved
from maxmargin.compiling.interpreting import interpreted
from maxmargin.methods.protocol import needs
from support import naive
from support.catalogue import ROWS


class Types(NamedTuple):
    """What decides which code is compiled."""

    model: str
    rows: str
    wrappers: list[str]
    method: Callable[[float], Any]


def drawn_types(number: int) -> Types:
    """Return types that go together, by a number; models and methods take turns."""
    rng = np.random.default_rng(number)
    models, names = sorted(cases(st.just("dense"))), sorted(PLAIN)
    plain = PLAIN[names[number % len(names)]]
    outer = [make for name in WRAPPERS if not needs(name, plain(1.0)) for make in WRAPPERS[name]]
    chosen = outer[int(rng.integers(len(outer)))] if outer and rng.random() < 0.6 else None
    return Types(
        models[number % len(models)],
        str(rng.choice(list(ROWS))),
        [name for name in WRAPPED if rng.random() < 0.2],
        plain if chosen is None else lambda lam: chosen(plain(lam)),
    )


def of_one_type(number: int) -> Callable[[Draw], int]:
    """Return what checks compiled runs of one type."""
    types = drawn_types(number)
    strategy = cases(st.just(types.rows))[types.model]

    def check(draw: Draw) -> int:
        given = wrapped(draw, posed(draw(strategy), types.model, types.model != "messages"), types.wrappers)
        lam = draw(LAMS)
        method = types.method(lam)
        sampling = may_run(given, method, draw(SAMPLINGS))
        options = {"tol": 0.0, "max_passes": draw(st.integers(1, 6)), "random_state": draw(SEEDS)}
        if sampling is None:
            return 0
        found = solved(given, method, sampling=sampling, **options)
        if found is None:
            return 0
        check_bounds(given, found, lam, naive.optimum(given.data, lam, given.signed))
        with interpreted():
            expected = solved(given, method, sampling=sampling, **options)
        assert expected is not None
        assert (found.primal, found.dual) == (expected.primal, expected.dual)
        assert (found.w == expected.w).all()
        return 1

    return check
