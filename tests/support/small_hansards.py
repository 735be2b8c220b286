"""A small corpus in the layout of the Hansards."""

import gzip
from pathlib import Path

ENGLISH = ["the nation", "the house is great", "a great house"]
FRENCH = ["la Nation", "la maison est à elle", "une grande maison"]
LINKS = "{0} 1 1 S\n{0} 1 2 P\n{0} 2 2 S\n"
N_TRIAL, N_TEST = 2, 105


def write(folder: Path, name: str, content: str) -> None:
    """Write one compressed file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.gz").write_bytes(gzip.compress(content.encode()))


def write_all(folder: Path) -> None:
    """Write all files: three distinct sentence pairs, repeated, with the same links in each pair."""
    sizes = {"trial": N_TRIAL, "test": N_TEST, "train36_2_25k": 8, "train36_1_sample": 2, "isi_short_tok": 3}
    for stem, size in sizes.items():
        for language, lines in (("en", ENGLISH), ("fr", FRENCH)):
            write(folder, f"{stem}.{language}", "".join(f"{lines[k % 3]}\n" for k in range(size)))
    for stem in ("trial", "test"):
        write(folder, f"{stem}.wa", "".join(LINKS.format(k + 1) for k in range(sizes[stem])))
