"""Words of scanned digits, which need no download."""

from typing import Any

from benchopt import BaseDataset

from benchmark_utils import data


class Dataset(BaseDataset):
    """Digit words, embedded in scikit-learn."""

    name = "digit words"

    def get_data(self) -> dict[str, Any]:
        return data.digit_words()._asdict()
