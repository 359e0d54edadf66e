"""What every renderer offers beside ``images``."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from manikin.render.view import View
from manikin.spec.camera import CameraSpec

__all__ = ["RgbOfImages"]


class RgbOfImages:
    """Gives a renderer with ``images`` the method ``rgb``."""

    images: Any

    def rgb(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: str | int | CameraSpec | View,
        *,
        width: int | None = None,
        height: int | None = None,
        sites: bool = True,
    ) -> np.ndarray:
        """See :meth:`manikin.render.Renderer.rgb`."""
        image: np.ndarray = self.images(model, data, camera, ("rgb",), width=width, height=height, sites=sites)["rgb"]
        return image
