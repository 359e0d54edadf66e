"""Films of a simulated repeat with spheres where wrist and object were recorded."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from manikin.fidelity.metrics.paper import mean_arm
from manikin.fidelity.protocol import HZ
from manikin.fidelity.recordings.recording import ARM, Recording
from manikin.fidelity.simulation.rollout import TaskSimulation
from manikin.fidelity.simulation.scene import MARKERS
from manikin.render import make_renderer, write_video
from manikin.spec.camera import CameraSpec

__all__ = ["FRAMES", "FidelityFilm"]

FRAMES = 130
"""Most frames of a film; a long task is shown faster."""
_CAMERA = CameraSpec(name="film", pos=(0.95, -1.15, 0.85), target=(0.42, 0.0, 0.27), fovy=0.72)
_AWAY = (0.0, 0.0, -5.0)  # [m] where a sphere is that nothing was recorded for


class FidelityFilm:
    """The first repeat of a simulation, drawn while it runs.

    Args:
        simulation: what runs.
        real: the recordings; their mean arm and their first object are shown. None for no spheres.
        width, height: of the pictures.
    """

    def __init__(
        self, simulation: TaskSimulation, real: Recording | None, *, width: int = 320, height: int = 240
    ) -> None:
        self.stride = -(-simulation.task.rows // FRAMES)
        self._simulation, self._size = simulation, (width, height)
        self._renderer = make_renderer("auto", samples=2)
        self._tracks: list[np.ndarray] = []
        if real is not None:
            self._tracks = [mean_arm(real)[:, ARM["pos"]], *real.objects[:1, :, :3]]
        self.frames: list[np.ndarray] = []

    def __call__(self, row: int) -> None:
        """Draw a row of the recording if it is one to show."""
        if row % self.stride:
            return
        model, data = self._simulation.world.data(0)
        places = [track[min(row, len(track) - 1)] for track in self._tracks]
        for name, place in zip(MARKERS, places or [np.array(_AWAY)] * len(MARKERS), strict=False):
            if name in self._simulation.markers:
                body = int(model.body_mocapid[model.body(name).id])
                data.mocap_pos[body] = place if np.isfinite(place).all() else _AWAY
        mujoco.mj_kinematics(model, data)
        width, height = self._size
        self.frames.append(self._renderer.rgb(model, data, _CAMERA, width=width, height=height))

    def write(self, path: Path) -> Path:
        """Write what was drawn, at most four times as fast as it was.

        Raises:
            ConfigError: PyAV is not installed.
        """
        return write_video(path, self.frames, min(HZ / self.stride * 4, 20.0))

    def close(self) -> None:
        """Free the renderer."""
        self._renderer.close()
