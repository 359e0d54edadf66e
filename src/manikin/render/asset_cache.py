"""What a renderer has prepared from a model's assets, kept for every model that shares them."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

__all__ = ["AssetCache", "assets_key"]

T = TypeVar("T")

_BULKY = ("mesh_vert", "mesh_face", "mesh_normal", "mesh_texcoord", "hfield_data", "tex_data", "skin_vert")
_FEW = ("geom_type", "geom_group", "tex_height", "tex_width", "mesh_vertadr", "mesh_faceadr", "hfield_size")


def assets_key(model: mujoco.MjModel) -> tuple[int, ...]:
    """Equal for models with the same meshes, textures, height fields and geoms drawn; rows of a World share them."""
    key = [int(model.signature), model.ngeom, model.nsite, model.nlight, model.nmat]
    for name in _BULKY:
        whole = np.ascontiguousarray(getattr(model, name))
        key += [whole.size, zlib.crc32(whole.view(np.uint8).reshape(-1).data)]
    return tuple(key)


class AssetCache(Generic[T]):
    """The last few things made of models' assets.

    Bulky arrays (vertices, pixels) are looked at once per model object; the few that cost nothing at each call.
    """

    def __init__(self, make: Callable[[mujoco.MjModel], T], *, most: int = 4) -> None:
        self._make, self._most = make, most
        self._made: OrderedDict[tuple[object, ...], T] = OrderedDict()
        self._keys: WeakKeyDictionary[mujoco.MjModel, tuple[int, ...]] = WeakKeyDictionary()

    def of(self, model: mujoco.MjModel) -> T:
        """What was made of this model's assets, now or before."""
        assets = self._keys.get(model)
        if assets is None:
            assets = self._keys[model] = assets_key(model)
        key = (*assets, *(getattr(model, name).tobytes() for name in _FEW))
        if key not in self._made:
            while len(self._made) >= self._most:
                self._made.popitem(last=False)
            self._made[key] = self._make(model)
        self._made.move_to_end(key)
        return self._made[key]

    def clear(self) -> None:
        """Drop everything."""
        self._made.clear()
        self._keys.clear()
