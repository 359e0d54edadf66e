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
    """The inverse of :func:`pack`. Arrays are read-only."""
    return _msgpack().unpackb(message, object_hook=_decode, strict_map_key=False)


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
        return np.frombuffer(value[b"data"], np.dtype(value[b"dtype"])).reshape(value[b"shape"])
    if b"__npgeneric__" in value:
        return np.dtype(value[b"dtype"]).type(value[b"data"])
    return value
