"""Word alignment of the Hansards (Taskar 2006): 5,000 sentence pairs to train on."""

from typing import Any

from benchopt import BaseDataset

from benchmark_utils import data


class Dataset(BaseDataset):
    """Bipartite matching of words."""

    name = "matching"

    def get_data(self) -> dict[str, Any]:
        return data.matching()._asdict()
