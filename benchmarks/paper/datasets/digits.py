"""Single scanned digits, which need no download: ten classes."""

from typing import Any

from benchmark_utils import data
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Digits, embedded in scikit-learn."""

    name = "digits"

    def get_data(self) -> dict[str, Any]:
        return data.digits()._asdict()
