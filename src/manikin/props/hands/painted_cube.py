"""The six faces of a cube in six colours, so that one sees how it is turned."""

from __future__ import annotations

from manikin.spec.prop import Shape

__all__ = ["painted_faces"]

_THIN = 0.001  # [m]
_FACES = ((0.8, 0.15, 0.1), (0.1, 0.55, 0.2), (0.15, 0.25, 0.75), (0.9, 0.8, 0.1), (0.85, 0.45, 0.1), (0.9, 0.9, 0.9))


def painted_faces(half: float) -> list[Shape]:
    """A plate for each face of a cube of half side ``half`` [m], inside it: +x, -x, +y, -y, +z, -z."""
    plates = []
    for k, rgb in enumerate(_FACES):
        size, at = [half] * 3, [0.0] * 3
        size[k // 2], at[k // 2] = _THIN / 2, (1 - 2 * (k % 2)) * (half - _THIN / 2)
        plates.append(Shape(type="box", size=tuple(size), pos=(at[0], at[1], at[2]), rgba=(*rgb, 1)))
    return plates
