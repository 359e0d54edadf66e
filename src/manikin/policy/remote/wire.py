"""openpi's wire format: msgpack with NumPy arrays as maps of ``__ndarray__``, ``data``, ``dtype`` and ``shape``."""

from __future__ import annotations

from typing import Any

import numpy as np

from manikin.errors import AssetError, DataError

__all__ = ["pack", "unpack"]

_REFUSED = "OVc"  # objects, void, complex numbers


def pack(value: Any) -> bytes:
    """Plain values and arrays as one message.

    Raises:
        AssetError: msgpack is not installed.
        DataError: an array of a kind that the format has not.
    """
    packed: bytes = _msgpack().packb(value, default=_encode)
    return packed


def unpack(message: bytes) -> Any:
    """The inverse of :func:`pack`. Arrays are read-only.

    Raises:
        AssetError: msgpack is not installed.
        DataError: no such message, or an array of a kind that the format has not.
    """
    msgpack = _msgpack()
    try:
        return msgpack.unpackb(message, object_hook=_decode, strict_map_key=False)
    except Exception as error:  # the sender chooses dtypes and shapes, and NumPy's errors for them are of many kinds
        raise DataError(f"no msgpack message of arrays: {bytes(message[:16])!r} ({error})") from None


def _msgpack() -> Any:
    try:
        import msgpack
    except ImportError as error:
        raise AssetError(f"policies behind ws:// need msgpack ({error}): pip install 'manikin[remote]'") from error
    return msgpack


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _REFUSED:
        raise DataError(f"an array of {value.dtype} cannot be sent; send numbers, flags or text")
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise DataError(f"a {type(value).__name__} cannot be sent; send numbers, text, lists, dictionaries and arrays")


def _decode(value: dict[Any, Any]) -> Any:
    if b"__ndarray__" in value:
        return np.frombuffer(value[b"data"], _dtype(value)).reshape(value[b"shape"])
    if b"__npgeneric__" in value:
        return _dtype(value).type(value[b"data"])
    return value


def _dtype(value: dict[Any, Any]) -> np.dtype[Any]:
    dtype = np.dtype(value[b"dtype"])
    if dtype.kind in _REFUSED:
        raise DataError(f"an array of {dtype}")
    return dtype
