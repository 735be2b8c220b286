"""Handwritten words, letter by letter (Taskar 2003): 6,251 to train on."""

from typing import Any

from benchopt import BaseDataset

from benchmark_utils import data


class Dataset(BaseDataset):
    """OCR letters in the paper's setting."""

    name = "OCR"

    def get_data(self) -> dict[str, Any]:
        return data.ocr()._asdict()
