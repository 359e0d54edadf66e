"""Films of an environment's rows side by side, at true time, with captions; written while they are made."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin.errors import ClosedError, ConfigError, ManikinError
from manikin.eval.film import camera_of
from manikin.moved import old_names
from manikin.policy.api import Policy
from manikin.policy.chunk import ChunkPolicy
from manikin.render.files.caption import caption
from manikin.render.files.video import tile, write_video
from manikin.render.renderer import Renderer
from manikin.render.view import view_of
from manikin.spec.camera import CameraSpec
from manikin.view.picture import word_colour

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["FilmRecorder", "episode_caption"]


def episode_caption(task: str, row: int, info: dict[str, Any], reward: float | None = None) -> tuple[list[str], str]:
    """What is written on a row's pictures, and in a word how its episode stands.

    Args:
        task: its id.
        row: which.
        info: of ``Env.reset`` or ``Env.step``.
        reward: of the step.

    Returns:
        Two lines (task, seed, step; reward and its terms), and ``success``, ``fail`` or ``running``.
    """
    word = "success" if bool(info["success"][row]) else "running"
    if "fail" in info and bool(info["fail"][row]):
        word = "fail"
    number = int(info["episode_index"][row])
    seed = f"seed {int(info['episode_seed'][row])}" + (f".{number}" if number else "")
    first = f"{task}  {seed}  step {int(info['elapsed'][row])}" + ("" if word == "running" else f"  {word.upper()}")
    if reward is None:
        return [first, ""], word
    terms = "  ".join(f"{name} {float(value[row]):.2f}" for name, value in info.get("reward_terms", {}).items())
    return [first, f"reward {reward:.2f}  {terms}".rstrip()], word


class FilmRecorder:
    """Writes a film of an environment while somebody steps it. A context manager.

    Time in the film is time in the simulation: one control step lasts 1 / control_hz. With another ``fps`` pictures are
    left out or shown again so that this stays so.

    Args:
        env: whose rows are filmed.
        path: the file; see :func:`manikin.render.write_video`.
        renderer: makes the pictures; the caller closes it.
        rows: which, side by side; default the first nine at most.
        fps: pictures per second; default one per control step.
        width: of one row's picture [pixels].
        height: of one row's picture [pixels].
        camera: a camera of the scene or a view of one's own; default the one for people.
        captions: write task, seed, step, reward and success on the pictures.

    Attributes:
        frames: how many have been made.

    Raises:
        ConfigError: PyAV is missing, a row does not exist, fps is not positive, or the file cannot be written.
    """

    def __init__(
        self,
        env: BatchEnv,
        path: str | os.PathLike[str],
        renderer: Renderer,
        *,
        rows: Sequence[int] | None = None,
        fps: float | None = None,
        width: int = 480,
        height: int = 384,
        camera: str | CameraSpec | None = None,
        captions: bool = True,
    ) -> None:
        self.env, self.path, self.renderer, self.captions = env, Path(path), renderer, captions
        self.rows = list(range(min(9, env.num_envs))) if rows is None else list(rows)
        if not self.rows or not all(0 <= row < env.num_envs for row in self.rows):
            raise ConfigError(f"there are rows 0 to {env.num_envs - 1} to film; got {self.rows}")
        self.fps = float(env.control_hz if fps is None else fps)
        if not (self.fps > 0 and math.isfinite(self.fps)):
            raise ConfigError(f"fps must be positive; got {fps}")
        self.size, self.camera = (width, height), camera_of(env) if camera is None else camera
        self.frames, self._steps = 0, 0
        self._queue: queue.Queue[np.ndarray | None] = queue.Queue(maxsize=8)
        self._error: BaseException | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def add(self, info: dict[str, Any], reward: torch.Tensor | None = None) -> None:
        """Film the present state; once after ``reset`` and after every ``step``.

        Args:
            info: what the environment returned.
            reward: (N,), of the step.

        Raises:
            ClosedError: the film is complete.
            ConfigError: the film cannot be written.
        """
        if self._closed:
            raise ClosedError("this film is complete")
        # The state after step k is in view from k / control_hz until the next.
        due = math.ceil((self._steps + 1) * self.fps / self.env.control_hz - 1e-9) - self.frames
        self._steps += 1
        if due <= 0:
            return
        frame = self._picture(info, reward)
        for _ in range(due):
            self._put(frame)

    def play(
        self, policy: Policy, *, seeds: Sequence[int], on_step: Callable[[], None] = lambda: None, tail_s: float = 0.5
    ) -> int:
        """Film one episode per row, of an environment with ``autoreset="disabled"``; how many succeeded.

        Args:
            policy: what acts.
            seeds: one per row.
            on_step: called after every step.
            tail_s: how long the end stays in view [s].
        """
        env = self.env
        chunks = ChunkPolicy(policy, env.num_envs, env.controller.card.size)
        observation, info = env.reset(seed=list(seeds))
        chunks.reset(torch.arange(env.num_envs))
        active = np.ones(env.num_envs, bool)
        shown = torch.zeros(env.num_envs)
        self.add(info, None)
        for _ in range(env.horizon):
            with torch.no_grad():
                action = chunks.act(observation, env.instruction)[:, 0]
            observation, reward, terminated, truncated, info = env.step(action, active=active)
            shown = torch.where(torch.from_numpy(active), reward, shown)
            self.add(info, shown)
            on_step()
            active = active & ~(terminated | truncated).numpy()
            if not active.any():
                break
        for _ in range(round(tail_s * env.control_hz)):
            self.add(info, shown)
        return int(info["success"].sum())

    def close(self) -> Path:
        """Complete the file; returns its path. Idempotent."""
        if not self._closed:
            self._closed = True
            self._put(None)
            self._thread.join()
        self._raise()
        return self.path

    def __enter__(self) -> FilmRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif not self._closed:  # what was going on matters more than the film, which ends here
            self._closed = True
            self._put(None)
            self._thread.join()

    def _picture(self, info: dict[str, Any], reward: torch.Tensor | None) -> np.ndarray:
        pictures = []
        for row in self.rows:
            model, data = self.env.model_data(row)
            image = self.renderer.rgb(model, data, view_of(model, data, self.camera, *self.size))
            if self.captions:
                lines, word = episode_caption(
                    self.env.task.id, row, info, None if reward is None else float(reward[row])
                )
                image = caption(image, lines, colours=[word_colour(word)])
            pictures.append(image)
        return tile(pictures)

    def _put(self, frame: np.ndarray | None) -> None:
        """Hand a frame to the writer, which may have given up."""
        while self._thread.is_alive():
            try:
                self._queue.put(frame, timeout=0.2)
            except queue.Full:
                continue
            self.frames += frame is not None
            return
        if frame is not None:
            self._raise()

    def _write(self) -> None:
        try:
            write_video(self.path, self._arriving(), self.fps)
        except BaseException as error:
            self._error = error

    def _arriving(self) -> Iterator[np.ndarray]:
        while (frame := self._queue.get()) is not None:
            yield frame

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            if isinstance(error, ManikinError):
                raise error
            raise ConfigError(f"{self.path} cannot be written: {error}") from error


__getattr__ = old_names(__name__)
