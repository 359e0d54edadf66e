"""A window in which MuJoCo's viewer shows an environment: ``render_mode="human"``."""

from __future__ import annotations

import copy
import os
import sys
from typing import Any

import mujoco
import numpy as np

from manikin.errors import ConfigError

__all__ = ["Window"]

_SEEN = ("geom_", "site_", "mat_", "light_", "cam_", "tex_data", "body_pos", "body_quat")  # what may differ by episode


class Window:
    """Shows states one after another; the person may look around, and changes nothing.

    Raises:
        ConfigError: there is no screen.
    """

    def __init__(self) -> None:
        if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise ConfigError(
                "render_mode='human' opens a window, and there is no screen here (DISPLAY is not set); in a browser, "
                "also of another machine: manikin view TASK. For pictures: render_mode='rgb_array'"
            )
        self._handle: Any = None
        self._model: mujoco.MjModel
        self._data: mujoco.MjData

    def show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Show a state; the window opens with the first. One that the person has closed stays closed."""
        import mujoco.viewer

        if self._handle is None or model.signature != self._model.signature:  # another layout
            self.close()
            self._model, self._data = copy.copy(model), copy.copy(data)
            self._handle = mujoco.viewer.launch_passive(
                self._model, self._data, show_left_ui=False, show_right_ui=False
            )
        elif self._handle.is_running():
            with self._handle.lock():
                for name in dir(model):
                    value = getattr(model, name) if name.startswith(_SEEN) else None
                    if isinstance(value, np.ndarray):
                        getattr(self._model, name)[...] = value
                mujoco.mj_copyData(self._data, self._model, data)
        if self._handle.is_running():
            self._handle.sync()

    def close(self) -> None:
        """Close it. Idempotent."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None
