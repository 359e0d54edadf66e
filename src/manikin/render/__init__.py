"""Pictures of a scene, and files of pictures. Nothing here needs a GPU, and nothing a display."""

from __future__ import annotations

from manikin.render.api import Renderer, make_renderer
from manikin.render.rig import CameraRig
from manikin.render.segmentation import SegmentationTable
from manikin.render.video import tile, write_png, write_video
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
