"""Pictures of a scene, and files of pictures. Nothing here needs a GPU, and nothing a display.

MuJoCo is loaded with the first name that needs it: what is recorded can be looked at without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from manikin.render.files.video import tile, write_png, write_video

if TYPE_CHECKING:
    from manikin.render.api import make_renderer
    from manikin.render.renderer import Renderer
    from manikin.render.rig import CameraRig
    from manikin.render.segmentation import SegmentationTable
    from manikin.render.view import View, extrinsics, intrinsics, view_of

__all__ = [
    "CameraRig",
    "Renderer",
    "SegmentationTable",
    "View",
    "extrinsics",
    "intrinsics",
    "make_renderer",
    "tile",
    "view_of",
    "write_png",
    "write_video",
]

# name -> the module it lives in; keep in step with the imports above, which are for type checkers
_LAZY = {
    "CameraRig": "rig",
    "Renderer": "renderer",
    "SegmentationTable": "segmentation",
    "View": "view",
    "extrinsics": "view",
    "intrinsics": "view",
    "make_renderer": "api",
    "view_of": "view",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"manikin.render.{_LAZY[name]}"), name)
        globals()[name] = value  # looked up once
        return value
    raise AttributeError(f"module 'manikin.render' has no attribute {name!r}; it has: {', '.join(__all__)}")
