"""Pictures of chosen episodes while they run or are replayed."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manikin.errors import ConfigError
from manikin.render.files.video import tile, write_video
from manikin.render.renderer import Renderer
from manikin.render.view import View, view_of
from manikin.spec.camera import CameraSpec

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["Film", "Reel", "camera_of", "stride_for", "together", "write_film", "zoomed"]

HUMAN_CAMERA = "human_camera"


@dataclass
class Reel:
    """Pictures of one episode: ``steps`` (control steps since the start) and as many (H, W, 3) uint8 ``images``."""

    number: int
    steps: list[int] = field(default_factory=list)
    images: list[np.ndarray] = field(default_factory=list)

    def pick(self, count: int) -> list[tuple[int, np.ndarray]]:
        """``count`` pictures evenly over the episode, first and last included (all of them if there are fewer)."""
        if len(self.steps) <= count:
            return list(zip(self.steps, self.images, strict=True))
        wanted = np.linspace(self.steps[0], self.steps[-1], count)
        chosen = sorted({int(np.abs(np.array(self.steps) - w).argmin()) for w in wanted})
        return [(self.steps[i], self.images[i]) for i in chosen]


def camera_of(env: BatchEnv) -> str | CameraSpec:
    """The scene's camera for people, or a view of the robot's workspace where it has none."""
    if HUMAN_CAMERA in env.cameras:
        return HUMAN_CAMERA
    return CameraSpec(name="default", pos=(0.75, 0.75, 0.75), target=(-0.05, 0.0, 0.15), fovy=1.0)


def zoomed(view: View, factor: float) -> View:
    """The middle of a view, ``factor`` times as large, at the same number of pixels."""
    middle = np.array([(view.width - 1) / 2, (view.height - 1) / 2])
    K = view.K.copy()
    K[:2, :2] *= factor
    K[:2, 2] = middle + factor * (view.K[:2, 2] - middle)
    return View(view.pos, view.rotation, K, view.width, view.height)


def stride_for(seconds_per_picture: float, steps: int, budget_s: float) -> int:
    """Every how many control steps to take a picture so that ``steps`` of them cost at most ``budget_s``."""
    affordable = max(2.0, budget_s / max(seconds_per_picture, 1e-6))
    return max(1, int(np.ceil(steps / affordable)))


class Film:
    """Takes pictures of some episodes. An observer of the runner and of replay.

    Args:
        env: whose rows are filmed.
        renderer: makes the pictures.
        numbers: which episodes; None for all.
        every: control steps between pictures. The start and the end are always taken.
        width: [pixels].
        height: [pixels].
        camera: a camera of the scene, or a view of one's own; None for :func:`camera_of`.
        zoom: enlarges the middle: cameras for people show much of the surroundings, which small pictures cannot afford.

    Attributes:
        reels: number of the episode -> its :class:`Reel`.
        seconds: spent on pictures.
    """

    def __init__(
        self,
        env: BatchEnv,
        renderer: Renderer,
        *,
        numbers: Collection[int] | None = None,
        every: int = 1,
        width: int = 288,
        height: int = 288,
        camera: str | CameraSpec | None = None,
        zoom: float = 1.25,
    ) -> None:
        self.env, self.renderer, self.every = env, renderer, every
        self.numbers = None if numbers is None else set(numbers)
        self.size, self.camera = (width, height), camera_of(env) if camera is None else camera
        self.zoom = zoom
        self.reels: dict[int, Reel] = {}
        self.seconds = 0.0
        self._reel_of: dict[int, Reel] = {}
        self._step: dict[int, int] = {}

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        """Episodes begin."""
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            if self.numbers is None or number in self.numbers:
                self._reel_of[row] = self.reels[number] = Reel(number)
                self._step[row] = 0
                self._take(row)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, np.ndarray]) -> None:
        """One control step."""
        for row in self._reel_of.keys() & set(rows.tolist()):
            self._step[row] += 1
            if self._step[row] % self.every == 0:
                self._take(row)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        """Episodes end."""
        for row in self._reel_of.keys() & set(rows.tolist()):
            if self._reel_of[row].steps[-1] != self._step[row]:
                self._take(row)
            del self._reel_of[row]

    def cost(self, row: int = 0) -> float:
        """Seconds that one picture takes here (the second of two: the first prepares the model)."""
        before = self.seconds
        self._picture(row)
        middle = self.seconds
        self._picture(row)
        cost = self.seconds - middle
        self.seconds = before + cost
        return cost

    def _take(self, row: int) -> None:
        self._reel_of[row].images.append(self._picture(row))
        self._reel_of[row].steps.append(self._step[row])

    def _picture(self, row: int) -> np.ndarray:
        began = time.perf_counter()
        model, data = self.env.model_data(row)
        view = zoomed(view_of(model, data, self.camera, *self.size), self.zoom)
        image = self.renderer.rgb(model, data, view)
        self.seconds += time.perf_counter() - began
        return image


def together(reels: Sequence[Reel]) -> list[list[np.ndarray]]:
    """Frames of several reels side by side in time: one list of pictures per frame; short reels hold their last."""
    length = max(len(r.images) for r in reels)
    return [[r.images[min(t, len(r.images) - 1)] for r in reels] for t in range(length)]


def write_film(path: str | Path, reels: Sequence[Reel], fps: float) -> Path:
    """Write reels side by side as one video; a short one holds its last picture. Half a second of the end is added.

    Raises:
        ConfigError: no reel, or PyAV is missing.
    """
    if not reels:
        raise ConfigError("no episode was filmed, so there is no video to write")
    frames = [tile(pictures, columns=min(3, len(reels))) for pictures in together(reels)]
    return write_video(path, frames + frames[-1:] * round(fps / 2), fps)
