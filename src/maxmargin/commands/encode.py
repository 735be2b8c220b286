"""``maxmargin encode``: from data files to a directory of arrays, which ``train`` takes, too."""

import argparse
import time
from typing import Any

from maxmargin.commands.output import result
from maxmargin.corpus import Corpus, encode_files


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
        verbose=0 if arguments.quiet else 2,
    )
    data = _summary(corpus) | {"seconds": time.perf_counter() - begin}
    text = (
        f"{corpus.path}: {data['sequences']} sequences, {data['tokens']} tokens, {data['features']} "
        f"features, {len(data['labels'])} labels; {data['seconds']:.1f} s"
    )
    result(text, data, arguments.json)
    return 0


def _summary(corpus: Corpus) -> dict[str, Any]:
    return {
        "corpus": corpus.path,
        "format": corpus.manifest.recipe.format,
        "sequences": len(corpus.X),
        "tokens": len(corpus.y.codes),
        "features": corpus.manifest.n_columns,
        "labels": corpus.manifest.classes,
    }
