"""Single scanned digits, which need no download: ten classes."""

from typing import Any

from benchopt import BaseDataset

from benchmark_utils import data


class Dataset(BaseDataset):
    """Digits, embedded in scikit-learn."""

    name = "digits"

    def get_data(self) -> dict[str, Any]:
        return data.digits()._asdict()
