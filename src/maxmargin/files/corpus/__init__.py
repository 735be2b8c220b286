"""Data sets on disk: files of sequences become a directory of arrays, which are mapped into memory.

The manifest says what the arrays are, and how they were made. It is written last. A directory without one is
not a corpus, so an encoding that was interrupted cannot be opened. It is a JSON object with the kind and
version of the format, a header, and the digest of the header.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.labels import Label
from maxmargin.files.sealed import Json, fail, loads, write_atomically
from maxmargin.files.sources import UTF_8
from maxmargin.runtime.wording import quoted

NAME = "manifest.json"
_KIND, _VERSION = "corpus", 1
# The arrays and their types. The rows of tokens are a CSR matrix: starts, columns and, unless all values are
# one, values; offsets say where sequences begin among the tokens. Names are texts in UTF-8.
DTYPES: dict[str, np.dtype[np.number]] = {
    "columns": np.dtype("<u4"),
    "starts": np.dtype("<i8"),
    "values": np.dtype("<f8"),
    "labels": np.dtype("<i8"),
    "offsets": np.dtype("<i8"),
    "names": np.dtype("u1"),
}
# What tells whether a file has changed: its name, its size, and the time of its last change.
Input = list[str | int]
OPTIONAL = {"values", "names"}
_LONGEST = 1 << 28
_PIECE = 1 << 22  # bytes


class StoredArray(NamedTuple):
    """What the manifest says of an array: its number of entries, and the digest of its file."""

    length: int
    sha256: str


class Recipe(NamedTuple):
    """How a corpus is made of files.

    Attributes
    ----------
    format : str
        The format of the files.
    settings : dict
        How their lines become features, as plain data.
    min_count : int
    hash_bits : int or None
    encoding : str
    """

    format: str
    settings: dict[str, Json]
    min_count: int = 1
    hash_bits: int | None = None
    encoding: str = UTF_8


class Manifest(NamedTuple):
    """What a corpus holds.

    Attributes
    ----------
    arrays : dict of StoredArray
    n_columns : int
    kind : {"strings", "dicts"}
        What tokens were: names alone, or names with values.
    classes : list of str or of int
        The labels in order.
    recipe : Recipe
    inputs : list
        The files: name, size and time of the last change of each.
    """

    arrays: dict[str, StoredArray]
    n_columns: int
    kind: str
    classes: list[Label]
    recipe: Recipe
    inputs: list[Input]


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest, which makes the directory a corpus."""
    header = manifest._asdict()
    header["recipe"] = manifest.recipe._asdict()
    header["arrays"] = {name: array._asdict() for name, array in manifest.arrays.items()}
    text = {"kind": _KIND, "version": _VERSION, "sha256": _digest_of(header), "header": header}
    write_atomically(directory / NAME, json.dumps(text, indent=1).encode())


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a directory; raise `FileError` if it has none that is whole."""
    path = directory / NAME
    if not path.is_file():
        got = "an encoding that was interrupted: encode again to go on" if directory.is_dir() else "none"
        fail(directory, f"a directory with {NAME}, as maxmargin.encode_files makes it", got)
    if path.stat().st_size > _LONGEST:
        fail(path, f"at most {_LONGEST} bytes", f"{path.stat().st_size}")
    try:
        found = loads(path, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        fail(path, "text in UTF-8", str(error))
    return _parsed(path, found)


def _parsed(path: Path, found: object) -> Manifest:
    if not isinstance(found, dict) or found.get("kind") != _KIND:
        fail(path, "the manifest of a corpus", quoted(found))
    version, header = found.get("version"), found.get("header")
    if version != _VERSION:
        fail(path, f"version {_VERSION} of the format", f"{quoted(version)}: encode again, or install that")
    if not isinstance(header, dict) or found.get("sha256") != _digest_of(header):
        fail(path, "a header with its digest", "another: the file is damaged")
    try:
        # The digest vouches for what is in the header; this is what a later version may have changed.
        arrays = {name: StoredArray(**array) for name, array in header.pop("arrays").items()}
        manifest = Manifest(arrays=arrays, recipe=Recipe(**header.pop("recipe")), **header)
    except (AttributeError, KeyError, TypeError) as error:
        fail(path, "the parts of a manifest", str(error))
    if not DTYPES.keys() - OPTIONAL <= arrays.keys() <= DTYPES.keys():
        fail(path, f"the arrays {', '.join(DTYPES)}", ", ".join(arrays))
    return manifest


def _digest_of(header: object) -> str:
    text = json.dumps(header, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digest(array: NDArray[np.generic]) -> str:
    """Return the digest of the bytes of an array, read in pieces."""
    found, content = hashlib.sha256(), array.view(np.uint8)
    for first in range(0, len(content), _PIECE):
        found.update(content[first : first + _PIECE].data)
    return found.hexdigest()


def map_array(directory: Path, name: str, file: str | None = None) -> NDArray[np.number]:
    """Return the array of a file, mapped for reading."""
    path, dtype = directory / (file or name), DTYPES[name]
    if not path.stat().st_size:
        return np.zeros(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
