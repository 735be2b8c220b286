"""Files of models taken apart by the specification of safetensors, and put together again."""

import json
import struct
from pathlib import Path
from typing import Any

from maxmargin import load
from maxmargin.files.sealed import sealed
from support.model_files import FOLDER, samples

SAMPLES = samples()
FILES = {file.stem: file.read_bytes() for file in sorted(FOLDER.glob("*/*.safetensors"))}


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the header of safetensors, that of the model in it, and the rest of a file."""
    (length,) = struct.unpack("<Q", content[:8])
    outer = json.loads(content[8 : 8 + length])
    return outer, json.loads(outer.pop("__metadata__")["maxmargin"]), content[8 + length :]


def whole(outer: dict[str, Any], inner: dict[str, Any], body: bytes) -> bytes:
    """Return the file that has these parts."""
    text = json.dumps({"__metadata__": {"maxmargin": json.dumps(inner)}} | outer).encode()
    return struct.pack("<Q", len(text)) + text + body


def resealed(content: bytes) -> bytes:
    """Return a file with the seal that its other bytes need; the same bytes if it has no header of JSON."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        outer = json.loads(content[8 : 8 + length])
        outer["__metadata__"].pop("crc32", None)
        outer = {"__metadata__": outer.pop("__metadata__")} | outer
        text = json.dumps(outer, separators=(",", ":")).encode()
        return b"".join(sealed(struct.pack("<Q", len(text)) + text + content[8 + length :]))
    except (struct.error, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return content


def refusal(path: Path, name: str) -> str:
    """Return what is said about a file, or nothing if it gives a model that predicts."""
    sample = SAMPLES[name]
    try:
        load(path, **sample.functions).predict(sample.X)
    except ValueError as error:
        return str(error)
    return ""
