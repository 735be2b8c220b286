"""The word aligner is not installed: it is imported from the directory of the examples."""

import sys
from pathlib import Path

_EXAMPLES = Path(__file__).parents[2] / "examples"
# Appended, so that no example can hide an installed package.
if str(_EXAMPLES) not in sys.path:
    sys.path.append(str(_EXAMPLES))
