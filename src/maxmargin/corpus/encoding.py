"""Encode files of sequences into a corpus."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral

from maxmargin.corpus.hashing import MOST_BITS
from maxmargin.corpus.manifest import Input, Recipe
from maxmargin.corpus.opening import Corpus, open_corpus
from maxmargin.corpus.reading import FORMATS, Reader, reader_of
from maxmargin.corpus.writing import CorpusWriter, Place
from maxmargin.display import WorkLine
from maxmargin.formats.sources import STANDARD, Source
from maxmargin.wording import described, shown

PathLike = str | os.PathLike[str]


def encode_files(
    files: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    format: str = "auto",
    template: PathLike | None = None,
    min_count: int = 1,
    hash_bits: int | None = None,
    verbose: int = 1,
) -> Corpus:
    """Turn files of labelled sequences into a directory of arrays, which `fit` uses without reading them all.

    Memory does not grow with the files, but with the number of distinct names, unless these are hashed. The
    files are read once. After an interruption, even ``kill -9``, call it again: it continues from where it
    was a few seconds before. A directory can be opened only when it is complete.

    Parameters
    ----------
    files : path or list of paths
        All of one format; they may be compressed by gzip.
    output : path
        The directory: a new or empty one, or one to continue. If it already holds a corpus of the same
        files, nothing is done.
    format : {"auto", "columns", "attributes", "json"}, default="auto"
        The format of the files; by default it is recognised by the first lines. Column files have a token per
        line, with its label in the last column. Attribute files are those of crfsuite. JSON lines have a
        sequence per line, ``{"tokens": [["w=the"], ["w=dog"]], "labels": ["DET", "NOUN"]}``; a token is a
        list of names or an object ``{name: value}``.
    template : path, optional
        Template of features in the syntax of CRF++, for column files, without features of pairs of labels
        such as ``B01:%x[0,0]``; without a template, words get the default features of ``maxmargin train``.
    min_count : int, default=1
        Leave out named features that occur in fewer tokens.
    hash_bits : int, optional
        Number the features by hashes of their names, from 0 to ``2**hash_bits - 1``, for data with more names
        than memory can hold. Names that share a number share their weights, and weights can be inspected by
        number only. From 1 to 30; 22 keeps most of a million names apart.
    verbose : {0, 1, 2}, default=1
        Progress: none, on terminals and in notebooks, also in logs.

    Returns
    -------
    Corpus
        As `open_corpus` returns it.

    Raises
    ------
    ValueError
        If a file is malformed; the message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from maxmargin import ChainSVC, encode_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.json")
    ...     line = '{"tokens": [["the"], ["dog"]], "labels": ["DET", "NOUN"]}'
    ...     _ = path.write_text(line)
    ...     corpus = encode_files([path], Path(folder, "corpus"))
    ...     model = ChainSVC(C=10, random_state=0).fit(corpus)
    >>> model.predict([[["the"], ["dog"], ["dog"]]])
    [['DET', 'NOUN', 'NOUN']]
    """
    paths = _checked_files(files)
    _check_numbers(min_count, hash_bits)
    if format not in ("auto", *FORMATS):
        raise ValueError(f"encode: format must be one of {('auto', *FORMATS)}, got {shown(format)}.")
    reader = reader_of(paths[0], format, None if template is None else os.fspath(template))
    bits = None if hash_bits is None else int(hash_bits)
    recipe = Recipe(reader.format, reader.settings, int(min_count), bits)
    with CorpusWriter(output, recipe, list(map(_identity, paths))) as writer:
        if not writer.is_complete:
            _read_all(paths, reader, writer, verbose)
            writer.finish(verbose)
    return open_corpus(output)


def _read_all(paths: list[str], reader: Reader, writer: CorpusWriter, verbose: int) -> None:
    """Append the rest of the files."""
    sizes = [int(size) for _, size, _ in writer.inputs]
    begin = writer.place
    with _few_collections() as collect, WorkLine("encode", sum(sizes), verbose) as line:
        for k in range(begin.files, len(paths)):
            with Source(paths[k]) as source:
                source.skip(begin.lines if k == begin.files else 0)
                for block in reader.blocks(source):
                    writer.append(block.X, block.y)
                    writer.note(Place(k, block.stop))
                    line.update(sum(sizes[:k]) + source.position)
                    collect()
            if _identity(paths[k]) != writer.inputs[k]:
                raise ValueError(f"encode: {paths[k]} has changed while it was read; encode again.")
            writer.place = Place(k + 1)


@contextmanager
def _few_collections() -> Iterator[Callable[[], object]]:
    """Collect garbage only when asked: the lists of a block have no cycles, and the search takes long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield (lambda: gc.collect(1)) if was_enabled else (lambda: None)
    finally:
        if was_enabled:
            gc.enable()


def _identity(path: str) -> Input:
    """Return name, size and time of the last change of a file: they show whether it has changed."""
    status = os.stat(path)
    return [path, status.st_size, status.st_mtime_ns]


def _checked_files(files: PathLike | Sequence[PathLike]) -> list[str]:
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ValueError(f"encode: files must be one or more paths, got {described(files)}.")
    found = [os.fspath(path) for path in paths]
    if STANDARD in found:
        raise ValueError(
            "encode: files must be files, which can be read again after an interruption, got '-', standard "
            "input; write it to a file first."
        )
    return found


def _check_numbers(min_count: object, hash_bits: object) -> None:
    if not _is_between(min_count, 1, 2**62):
        raise ValueError(f"encode: min_count must be an int >= 1, got {shown(min_count)}.")
    if hash_bits is not None and not _is_between(hash_bits, 1, MOST_BITS):
        raise ValueError(f"encode: hash_bits must be an int from 1 to {MOST_BITS}, got {shown(hash_bits)}.")
    if hash_bits is not None and min_count != 1:
        raise ValueError(f"encode: min_count must be 1 where names are hashed, got {shown(min_count)}.")


def _is_between(value: object, least: int, most: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most
