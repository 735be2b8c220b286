"""The time to label the test set of CoNLL-2000 from lists of strings, compared with python-crfsuite."""

import warnings
from typing import Any

from _measure import Figure, Target, Times, interleaved, ratio
from _rivals import crfsuite_tagger
from maxmargin import ChainSVC

MIN_COUNT = 3
TAGGING = Target(must=1.0, aim=3.0, floor=True)
OURS, THEIRS = "ChainSVC.predict", "crfsuite Tagger.tag"


def tagging_figures(X: Any, y: Any, X_test: Any, repetitions: int) -> list[Figure]:
    """Train both briefly on the same features, and time both on the test set."""
    tagger = crfsuite_tagger(X, y, **{"max_iterations": 5, "feature.minfreq": MIN_COUNT})
    model = train_chain(X, y)
    figures = []
    for kind, prepare in (("strings hashed before", lambda X: X), ("fresh strings", fresh)):
        times = time_both(model, tagger, [(prepare(X_test), prepare(X_test)) for _ in range(repetitions)])
        figures += [
            Figure(f"CoNLL-2000 test: {name}, {kind}", 1e3 * measured.median, "ms")
            for name, measured in times.items()
        ]
        name = f"CoNLL-2000 test: crfsuite / ChainSVC, {kind}"
        figures.append(ratio(name, [(times[THEIRS], times[OURS])], TAGGING))
    return figures


def train_chain(X: Any, y: Any) -> ChainSVC:
    """Return a chain trained for a few passes: the time to label does not depend on the weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ChainSVC(min_count=MIN_COUNT, max_iter=5, verbose=0, random_state=0).fit(X, y)


def fresh(X: Any) -> Any:
    """Return equal strings that have not been hashed yet, as a user's feature function makes them."""
    return [[[name.encode().decode() for name in token] for token in tokens] for tokens in X]


def time_both(model: ChainSVC, tagger: Any, copies: list[tuple[Any, Any]]) -> dict[str, Times]:
    """Time both, each repetition on its own copies: whoever reads a string first has to hash it."""
    ours, theirs = (iter(column) for column in zip(*copies, strict=True))
    tasks = {
        OURS: lambda: model.predict(next(ours)),
        THEIRS: lambda: [tagger.tag(tokens) for tokens in next(theirs)],
    }
    return interleaved(tasks, len(copies))
