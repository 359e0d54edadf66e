"""Picture files as arrays."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from manikin.errors import AssetError, DataError

__all__ = ["read_picture"]

_PNG = b"\x89PNG\r\n\x1a\n"


def read_picture(path: str | Path, *, what: str = "picture", only_png: bool = False) -> np.ndarray:
    """(h, w, 3) uint8 of a file. MuJoCo decodes PNG; other formats need PyAV (``pip install "manikin[video]"``).

    Args:
        path: the file.
        what: what to call it in errors.
        only_png: refuse other formats.

    Raises:
        AssetError: there is no such file, or PyAV is missing.
        DataError: the file does not decode; names it.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise AssetError(f"{what} {str(path)!r}: there is no such file")
    with path.open("rb") as file:
        png = file.read(len(_PNG)) == _PNG
    return _png(path, what) if png or only_png else _other(path, what)


def _png(path: Path, what: str) -> np.ndarray:
    spec = mujoco.MjSpec()
    spec.add_texture(
        name="image", type=mujoco.mjtTexture.mjTEXTURE_2D, file=str(path.resolve()), content_type="image/png"
    )
    try:
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{what} {str(path)!r} does not decode: {reason}. Only PNG files can be read") from error
    shape = int(model.tex_height[0]), int(model.tex_width[0]), int(model.tex_nchannel[0])
    image = np.array(model.tex_data).reshape(shape)
    image = image[..., :3] if shape[2] >= 3 else np.repeat(image[..., :1], 3, 2)
    return np.ascontiguousarray(image)


def _other(path: Path, what: str) -> np.ndarray:
    try:
        import av
    except ImportError:
        raise AssetError(
            f"{what} {str(path)!r} is not a PNG file; to read other formats: pip install 'manikin[video]'"
        ) from None
    try:
        with av.open(str(path)) as container:
            frame = next(container.decode(video=0))
            image: np.ndarray = frame.to_ndarray(format="rgb24")
    except (OSError, ValueError, StopIteration, IndexError) as error:
        raise DataError(f"{what} {str(path)!r} does not decode: {error}") from error
    return image
