"""``maxmargin encode``: from data files to a directory of arrays, which ``train`` takes, too."""

import argparse
import time

from maxmargin.cli.output import result
from maxmargin.files.corpus.opening import Corpus
from maxmargin.files.corpus.reading import encode_files


def run(arguments: argparse.Namespace) -> int:
    """Encode files."""
    begin = time.perf_counter()
    corpus = encode_files(
        arguments.files,
        arguments.output,
        format=arguments.format,
        template=arguments.template,
        min_count=arguments.min_count or 1,
        hash_bits=arguments.hash_bits,
        encoding=arguments.encoding,
        verbose=0 if arguments.quiet else 2,
    )
    seconds = time.perf_counter() - begin
    manifest = corpus.manifest
    text = (
        f"{corpus.path}: {len(corpus.X)} sequences, {len(corpus.y.codes)} tokens, {manifest.n_columns} "
        f"features, {len(manifest.classes)} labels; {seconds:.1f} s"
    )
    result(text, _summary(corpus) | {"seconds": seconds}, arguments.json)
    return 0


def _summary(corpus: Corpus) -> dict[str, object]:
    return {
        "corpus": corpus.path,
        "format": corpus.manifest.recipe.format,
        "sequences": len(corpus.X),
        "tokens": len(corpus.y.codes),
        "features": corpus.manifest.n_columns,
        "labels": corpus.manifest.classes,
    }
