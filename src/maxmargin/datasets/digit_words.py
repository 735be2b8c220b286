"""Words keyed on a telephone, each key a scanned handwritten digit."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime.wording import shown

# numpy.random takes longer to import than this package
if TYPE_CHECKING:
    from numpy.random import Generator

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_KEYPAD = str.maketrans("abcdefghijklmnopqrstuvwxyz", "22233344455566677778889999")
_BRIGHTEST = 16.0
_TRAIN_SHARE = 0.6
# The two endings give a chain something to learn: in English in general, a key says little about the
# next one. No two words have the same keys, so different words are different label sequences.
_LEXICON = """
action addition admission application attention attraction beginning being bleeding boiling
breathing bringing building buying camping carrying catching celebration changing citation
cleaning climbing closing collection combination coming communication competition completion
composition concentration conclusion condition confusion connection consideration constitution
construction consultation contribution conversation cooking cooperation correction counting
covering creation crossing crying dancing decision declaration decoration definition demonstration
description destination destruction dining direction discussion distinction distribution division
donation dreaming dressing drinking driving duration dying earning eating education election
emotion ending evening examination exception exciting exhibition expectation expedition
explanation explosion expression extension falling federation feeding feeling fiction fighting
filling finding finishing fishing fitting flying following formation foundation freezing function
gardening generation getting giving going graduation greeting growing hanging happening having
hearing heating helping hesitation hiding hitting holding hunting hurrying illustration
imagination immigration impression inclusion indication inflation information inspection
inspiration institution instruction intention interaction interesting interpretation introduction
investigation invitation isolation joining jumping keeping kicking knitting knowing landing
lasting laughing leading learning leaving legislation lending lifting lighting limitation
listening living location looking losing loving making marching marrying meaning meditation
meeting melting mention migration missing mission morning motion moving nation negotiation
nutrition observation occasion occupation opening operation opposition option ordering
organisation orientation packing painting parking passing passion paying pension permission
picking planning planting playing pointing pollution population position pouring praying
preparation presentation pressing prevention printing production profession projection promising
promotion protection publication pulling pushing putting question raining raising reaching
reaction reading recommendation reduction reflection regulation relation religion repetition
reputation reservation resolution resting restriction revolution riding ringing rising rolling
rotation running sailing satisfaction saving searching section seeing selection selling sending
session setting sewing sharing shining shooting shopping shouting sitting situation skating
sleeping smiling smoking solution speaking spelling spending spinning standing starting station
staying stealing stopping studying substitution suggestion surprising swimming swinging talking
teaching television telling tension thinking throwing touching tradition training transition
translation transportation travelling trying turning understanding vacation variation version
vision visiting waiting walking warning washing wearing wedding willing winning wondering working
writing
"""


def load_digit_words(
    *, n_train: int = 700, n_test: int = 400, noise: float = 0.4, random_state: "int | Generator | None" = 0
) -> tuple[list[FloatArray], list[IntArray], list[FloatArray], list[IntArray]]:
    """Make words of scikit-learn's scanned digits, without downloading anything.

    English words in -ing and -ion are keyed on a telephone (abc is 2, ..., wxyz is 9) and each key
    is drawn as a scan of that digit. Training and test words share neither scans nor words: what a
    chain learns, which digit follows which, must carry over to new words.

    Parameters
    ----------
    n_train, n_test : int, default=700 and 400
        Number of words. Words and scans are drawn with replacement.
    noise : float, default=0.4
        Standard deviation of the noise a poor scanner adds to every pixel, before the values
        are clipped to [0, 1]. At 0 a linear classifier of single digits errs on 3 % of them; at
        0.4 on 15 %, and a chain on 12 %.
    random_state : int, Generator or None, default=0
        Seed of the words, scans and noise.

    Returns
    -------
    X_train, y_train, X_test, y_test : lists of arrays
        Each word is a float64 array of shape (length, 64), the 8 x 8 pixels of its scans in
        [0, 1], with an int64 array of its digits, 2 to 9.

    Examples
    --------
    >>> X_train, y_train, X_test, y_test = load_digit_words()
    >>> len(X_train), len(X_test), X_train[0].shape[1]
    (700, 400, 64)
    """
    from sklearn.datasets import load_digits

    _validate(n_train=n_train, n_test=n_test, noise=noise)
    scans, digits = load_digits(return_X_y=True)
    # Separate streams: the test set does not depend on n_train.
    split, train, test = _generator(random_state).spawn(3)
    lexicon = _keyed_lexicon()
    words, rows = _divide(len(lexicon), split), _divide(len(scans), split)
    train_words, test_words = ([lexicon[i] for i in part] for part in words)
    return (
        *_draw(n_train, train_words, scans[rows[0]], digits[rows[0]], noise, train),
        *_draw(n_test, test_words, scans[rows[1]], digits[rows[1]], noise, test),
    )


def _validate(*, n_train: int, n_test: int, noise: float) -> None:
    for name, value, least in (("n_train", n_train, 1), ("n_test", n_test, 1), ("noise", noise, 0)):
        if not value >= least:
            raise ValueError(f"load_digit_words: {name} must be at least {least}; got {shown(value)}.")


def _generator(random_state: "int | Generator | None") -> "Generator":
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "load_digit_words: random_state must be an int >= 0, a Generator or None; "
            f"got {shown(random_state)}."
        ) from None


def _keyed_lexicon() -> list[IntArray]:
    keyed = _LEXICON.translate(_KEYPAD).split()
    return [np.array([int(key) for key in word], dtype=np.int64) for word in keyed]


def _divide(size: int, rng: "Generator") -> tuple[IntArray, IntArray]:
    """Divide 0..size-1 at random into training and test indices."""
    order = rng.permutation(size)
    cut = round(_TRAIN_SHARE * size)
    return order[:cut], order[cut:]


def _draw(
    n_words: int, words: list[IntArray], scans: FloatArray, digits: IntArray, noise: float, rng: "Generator"
) -> tuple[list[FloatArray], list[IntArray]]:
    """Draw words, a scan for each of their digits, and noise."""
    chosen = [words[i] for i in rng.integers(len(words), size=n_words)]
    y = np.concatenate(chosen)
    X = scans[_rows_showing(y, digits, rng)] / _BRIGHTEST
    X += noise * rng.standard_normal(X.shape)
    np.clip(X, 0.0, 1.0, out=X)
    bounds = np.cumsum([len(word) for word in chosen])[:-1]
    return np.split(X, bounds), np.split(y, bounds)


def _rows_showing(y: IntArray, digits: IntArray, rng: "Generator") -> IntArray:
    """For each entry of y, choose a row with that digit, uniformly at random."""
    order = np.argsort(digits, kind="stable")
    first = np.searchsorted(digits[order], y, side="left")
    stop = np.searchsorted(digits[order], y, side="right")
    return order[rng.integers(first, stop)]
