"""Pictures into files, and side by side."""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from manikin.errors import ConfigError, DataError, ManikinError, UnknownNameError

__all__ = ["encode_png", "tile", "write_png", "write_video"]

_KINDS = (".mp4", ".mkv", ".mov", ".m4v", ".avi")


def _checked(image: np.ndarray) -> np.ndarray:
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise ConfigError(f"a picture must be (height, width, 3) uint8; got {image.shape} {image.dtype}")
    return image


def encode_png(image: np.ndarray, *, level: int = 6) -> bytes:
    """A picture (height, width, 3) uint8 as the bytes of a PNG file.

    Args:
        image: the picture.
        level: 1 is fast, 9 is small.

    Raises:
        ConfigError: if it is no such picture.
    """
    image = _checked(image)
    height, width = image.shape[:2]
    # Each row begins with the number of its filter; filter 1 stores differences from the pixel to the left.
    rows = np.concatenate([image[:, :1], image[:, 1:] - image[:, :-1]], 1).reshape(height, -1)
    body = np.concatenate([np.ones((height, 1), np.uint8), rows], 1).tobytes()
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(body, level)),
        (b"IEND", b""),
    )
    parts = [
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def write_png(path: str | os.PathLike[str], image: np.ndarray) -> Path:
    """Write a picture (height, width, 3) uint8 as PNG, making the folder if need be; returns the path.

    Raises:
        ConfigError: if it is no such picture.
    """
    content = encode_png(image)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def write_video(path: str | os.PathLike[str], frames: Iterable[np.ndarray], fps: float) -> Path:
    """Write pictures (height, width, 3) uint8, all of one size, as a film; returns the path.

    The ending chooses the container (``.mp4`` plays everywhere). Frames are taken one by one, so a generator needs no
    memory; the file appears under its name when it is complete. Odd sizes grow by one row or column.

    Args:
        path: the file; its folder is made if need be.
        frames: at least one picture.
        fps: pictures per second.

    Raises:
        UnknownNameError: another ending than .mp4, .mkv, .mov, .m4v or .avi.
        ConfigError: if PyAV is not installed, there is no frame, the sizes differ or fps is not positive.
        DataError: if the file cannot be written, for example as the disk is full.
    """
    path = Path(path)
    if path.suffix.lower() not in _KINDS:
        raise UnknownNameError("kind of video", path.suffix or path.name, _KINDS)
    try:
        import av
    except ImportError as error:
        raise ConfigError("writing videos needs PyAV: pip install 'manikin[data]'") from error
    if not fps > 0:
        raise ConfigError(f"fps must be positive; got {fps}")
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(partial), "w") as container:
            _encode(av, container, frames, fps)
        partial.replace(path)
    except ManikinError:  # of whoever makes the frames; a missing asset is an OSError too
        raise
    except OSError as error:
        raise DataError(f"cannot write {path}: {error}") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return path


def _encode(av: Any, container: Any, frames: Iterable[np.ndarray], fps: float) -> None:
    stream: Any = None
    height = width = 0
    for number, frame in enumerate(frames):
        frame = _checked(frame)
        if stream is None:
            height, width = frame.shape[:2]
            codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
            stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1001))
            stream.height, stream.width, stream.pix_fmt = height + height % 2, width + width % 2, "yuv420p"
            # mbtree reads beyond small pictures, so that now and then another film comes out of the same pictures
            x264 = {"crf": "20", "preset": "medium", "mbtree": "0"}
            stream.options = x264 if codec == "libx264" else {"qscale:v": "3"}
        if frame.shape[:2] != (height, width):
            raise ConfigError(f"frame {number} is {frame.shape[1]} x {frame.shape[0]}, the first {width} x {height}")
        even = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        container.mux(stream.encode(av.VideoFrame.from_ndarray(even, format="rgb24")))
    if stream is None:
        raise ConfigError("a video needs at least one frame")
    container.mux(stream.encode())


def tile(images: Sequence[np.ndarray], columns: int | None = None, *, gap: int = 2) -> np.ndarray:
    """Pictures of one size (height, width, 3) uint8 in a grid, row by row, on white.

    Args:
        images: at least one.
        columns: pictures side by side; by default about as many as there are rows.
        gap: white between them [pixels].

    Raises:
        ConfigError: if there is none, the sizes differ, or columns is not positive.
    """
    pictures = [_checked(image) for image in images]
    if not pictures or len({p.shape for p in pictures}) > 1:
        raise ConfigError(f"tile needs pictures of one size; got {[p.shape for p in pictures]}")
    if columns is None:
        columns = math.ceil(math.sqrt(len(pictures)))
    if columns < 1:
        raise ConfigError(f"tile needs at least one column; got {columns}")
    height, width = pictures[0].shape[:2]
    rows, columns = math.ceil(len(pictures) / columns), min(columns, len(pictures))
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, np.uint8)
    for i, picture in enumerate(pictures):
        top, left = i // columns * (height + gap), i % columns * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet
