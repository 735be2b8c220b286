"""Seals: checksums by which every reader of a file sees that it is as it was written.

A seal stands at the same place of every file, as the first of the metadata that safetensors allows. It covers
all other bytes. No check of the parts of a file can be as complete: a changed weight is a weight, too. The
module imports nothing, as `maxmargin tag` reads models without NumPy.
"""

import zlib

_LENGTH_BYTES = 8
KEY = "crc32"
_METADATA = b'{"__metadata__":{'
_BEFORE, _DIGITS, _AFTER = _METADATA + f'"{KEY}":"'.encode(), 8, b'",'
_FIRST = _LENGTH_BYTES + len(_BEFORE)
_UNIT = 8  # headers are as long as a multiple of this, so that arrays are aligned

Bytes = bytes | bytearray | memoryview


def sealed(content: bytes) -> tuple[bytes, memoryview]:
    """Return a safetensors file that has metadata, in two parts, with a seal."""
    first = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    header = content[_LENGTH_BYTES:first].rstrip(b" ")
    if not header.startswith(_METADATA):
        raise ValueError("expected a file of safetensors that begins with metadata")
    header = _BEFORE + b"0" * _DIGITS + _AFTER + header.removeprefix(_METADATA)
    header += b" " * (-len(header) % _UNIT)
    head, arrays = len(header).to_bytes(_LENGTH_BYTES, "little") + header, memoryview(content)[first:]
    return head[:_FIRST] + _checksum(head, arrays) + head[_FIRST + _DIGITS :], arrays


def has_seal(content: Bytes) -> bool:
    """Return whether a file, of which at least the beginning is given, has a seal."""
    return content[_LENGTH_BYTES:_FIRST] == _BEFORE


def is_sealed(content: Bytes) -> bool:
    """Return whether a file has a seal, and is as it was written."""
    whole = memoryview(content)
    return has_seal(whole) and whole[_FIRST : _FIRST + _DIGITS] == _checksum(whole)


def _checksum(head: Bytes, *others: Bytes) -> bytes:
    """Return the digits of the seal of a file, in one or more parts; the first has the place of the seal."""
    found = 0
    for part in (head[:_FIRST], head[_FIRST + _DIGITS :], *others):
        found = zlib.crc32(part, found)
    return b"%08x" % found
