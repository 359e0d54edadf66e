"""TFRecord files of ``tf.train.Example``, read without TensorFlow.

A record is its length (uint64, little endian), a checksum of that, its bytes, and a checksum of them: CRC-32C, rotated
and offset. An Example is a protobuf message: feature name -> a list of bytes, float32 or int64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from manikin.errors import DataError

__all__ = ["Feature", "examples"]

Feature = np.ndarray | list[bytes]


def _table() -> list[int]:
    """Of CRC-32C, the Castagnoli polynomial reflected."""
    out = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        out.append(value)
    return out


_TABLE = _table()


def masked_crc(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def examples(path: str | Path) -> Iterator[dict[str, Feature]]:
    """Each record's features by name: numbers as arrays, texts and pictures as lists of bytes.

    Lengths are checked by their checksum; that of the content, which takes seconds in Python, is left to the reader of
    protobuf, which notices what does not fit.

    Raises:
        DataError: there is no such file, or it is cut off, damaged or of another kind.
    """
    path = Path(path)
    try:
        content = memoryview(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    at = 0
    while at < len(content):
        head = bytes(content[at : at + 12])
        if len(head) < 12 or masked_crc(head[:8]) != struct.unpack("<I", head[8:])[0]:
            raise DataError(f"{path} is no TFRecord file, or it is damaged at byte {at}")
        (length,) = struct.unpack("<Q", head[:8])
        record = content[at + 12 : at + 12 + length]
        if len(record) < length or at + 16 + length > len(content):
            raise DataError(f"{path} is cut off: the record at byte {at} has {length} bytes")
        try:
            yield _example(record)
        except (IndexError, ValueError, struct.error, UnicodeError):
            raise DataError(f"{path} is damaged: the record at byte {at} is no tf.train.Example") from None
        at += 16 + length


def _example(message: memoryview) -> dict[str, Feature]:
    found: dict[str, Feature] = {}
    for features in _children(message, 1):
        for entry in _children(features, 1):
            (name,), (value,) = _children(entry, 1), _children(entry, 2) or [memoryview(b"")]
            found[bytes(name).decode()] = _feature(value)
    return found


def _feature(message: memoryview) -> Feature:
    for number, value in _fields(message):
        if not isinstance(value, memoryview):
            raise ValueError("a feature holds a list")
        if number == 1:
            return [bytes(one) for one in _children(value, 1)]
        if number == 2:
            each = [v.to_bytes(4, "little") if isinstance(v, int) else bytes(v) for _, v in _fields(value)]
            return np.frombuffer(b"".join(each), "<f4")
        if number == 3:
            numbers: list[int] = []
            for _, one in _fields(value):
                numbers += [one] if isinstance(one, int) else _varints(one)
            return np.array([n - (1 << 64) if n >> 63 else n for n in numbers], np.int64)
    return np.zeros(0, np.float32)


def _children(message: memoryview, wanted: int) -> list[memoryview]:
    return [v for number, v in _fields(message) if number == wanted and isinstance(v, memoryview)]


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at + length > len(message):
            raise ValueError("cut off")
        part = message[at : at + length]
        at += length
        yield key >> 3, part if kind == 2 else int.from_bytes(part, "little")


def _varints(message: memoryview) -> list[int]:
    at, out = 0, []
    while at < len(message):
        value, at = _varint(message, at)
        out.append(value)
    return out


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")
