"""Text chunking (Tjong Kim Sang and Buchholz 2000): 8,936 sentences to train on."""

from typing import Any

from benchopt import BaseDataset

from benchmark_utils import data


class Dataset(BaseDataset):
    """CoNLL-2000 chunking."""

    name = "CoNLL"

    def get_data(self) -> dict[str, Any]:
        return data.conll()._asdict()
