"""Kill encodings (-9) at random moments, let them go on, and compare the directories byte for byte.

    python tests/kill_encodings.py FOLDER --kills 100 --seed 0

encodes small files of every format, with and without hashing and rare names, in processes of their own, until
so many have been killed. The exit code is 1 if a directory differs from that of an encoding which was not
killed, or if one that is not whole opens.
"""

import argparse
import gzip
import random
import sys
import threading
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from maxmargin import FileError, encode_files, open_corpus
from maxmargin.files.corpus import reading, writing

_SENTENCES = 80
# How long an encoding takes at most, in seconds, and how often one is killed before it may end.
_LONGEST, _MOST = 60.0, 4


class Case(NamedTuple):
    """The files to encode, and how."""

    files: list[Path]
    options: dict[str, Any]


def cases(folder: Path) -> list[Case]:
    """Write files of every format; return what to encode."""
    words = [[f"w{(i * k) % 97}" for k in range(3, 9)] for i in range(_SENTENCES)]
    names = {"attributes": _attributes, "columns": _columns, "json": _json}
    for name, written in names.items():
        text = "".join(map(written, words))
        (folder / name).write_text(text)
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "template").write_text("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%x[1,1]\n")
    both = {name: [folder / name, folder / f"{name}.gz"] for name in names}
    return [
        *(Case(both["attributes"], options) for options in ({}, {"min_count": 3}, {"hash_bits": 8})),
        Case(both["columns"], {"template": folder / "template"}),
        Case(both["columns"], {"hash_bits": 12}),
        Case(both["json"], {"min_count": 2}),
    ]


def _attributes(words: list[str]) -> str:
    lines = (f"L{len(word)}\tw={word}\tv={word[-1]}:0.5\n" for word in words)
    return "".join(lines) + "\n"


def _columns(words: list[str]) -> str:
    return "".join(f"{word} {word[:2]} L{len(word)}\n" for word in words) + "\n"


def _json(words: list[str]) -> str:
    tokens = ", ".join(f'["w={word}"]' for word in words)
    labels = ", ".join(f'"L{len(word)}"' for word in words)
    return f'{{"tokens": [{tokens}], "labels": [{labels}]}}\n'


def encode(case: Case, output: Path, patience: float) -> None:
    """Encode in small blocks, with a note in the journal after each, or every so many seconds."""
    reading._TOKENS, reading._BYTES, writing._PATIENCE = 50, 1000, patience
    encode_files(case.files, output, verbose=0, **case.options)


def encode_in_a_fork(case: Case, output: Path, patience: float) -> None:
    """Encode in a forked process, with a lock of its own: a shared one would stay locked if it is killed."""
    tqdm.set_lock(threading.RLock())
    encode(case, output, patience)


def killed(case: Case, output: Path, random_: random.Random, seconds: float) -> bool:
    """Encode in another process, and kill it at a random moment; return whether it was not faster."""
    patience = random_.choice((0.0, seconds / 10))
    process = get_context("fork").Process(target=encode_in_a_fork, args=(case, output, patience))
    process.start()
    process.join(random_.uniform(0.0, seconds))
    process.kill()
    process.join(_LONGEST)
    return process.exitcode != 0


def contents(directory: Path) -> dict[str, bytes]:
    """Return all files of a directory."""
    return {file.name: file.read_bytes() for file in sorted(directory.iterdir())}


def faults(folder: Path, kills: int, seed: int) -> tuple[int, list[str]]:
    """Kill encodings; return how many were killed, and what was wrong."""
    random_, found, done = random.Random(seed), [], 0
    known = cases(folder)
    expected, seconds = [], []
    for k, case in enumerate(known):
        encode(case, folder / f"first {k}", 0.0)
        begin = time.perf_counter()
        encode(case, folder / f"whole {k}", 0.0)
        seconds.append(time.perf_counter() - begin)
        expected.append(contents(folder / f"whole {k}"))
    run = 0
    while done < kills:
        k, output = run % len(known), folder / f"run {seed} {run}"
        for _ in range(random_.randint(1, _MOST)):
            done += killed(known[k], output, random_, seconds[k])
            found += _opened_too_early(output)
        encode(known[k], output, 0.0)
        if contents(output) != expected[k]:
            found.append(f"{output}: differs from an encoding that was not killed")
        run += 1
    return done, found


def _opened_too_early(output: Path) -> list[str]:
    """Return what is wrong with a directory whose encoding may have been killed."""
    is_whole = (output / "manifest.json").exists()
    try:
        open_corpus(output, verify=True)
    except FileError as error:
        return [f"{output}: {error}"] if is_whole else []
    return [] if is_whole else [f"{output}: opens without a manifest"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a new or empty one")
    parser.add_argument("--kills", type=int, default=100, help="(default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    done, found = faults(options.folder, options.kills, options.seed)
    print(*found, f"{done} encodings killed, {len(found)} faults", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
