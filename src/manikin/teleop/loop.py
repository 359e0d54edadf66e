"""Driving an environment by hand at true time, and keeping the episodes that are worth it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from manikin.data.collect import outcome_of
from manikin.data.recorder import Recorder
from manikin.errors import ConfigError
from manikin.moved import old_names
from manikin.teleop.device import Device, Motion
from manikin.teleop.headset.pilot import HandPilot
from manikin.teleop.pilot import Pilot

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["Begun", "Latency", "TeleopLoop", "Stepped"]

BEHIND = 0.25  # a loop that is later than this lets the time go [s]
STIR = 0.05  # [rad] a leader arm that rests in a hand moves less
ROW = np.zeros(1, np.int64)


class Begun(NamedTuple):
    """An episode has begun: what ``Env.reset`` gave."""

    observation: Any
    info: dict[str, Any]


class Stepped(NamedTuple):
    """A control step was made: what ``Env.step`` gave."""

    observation: Any
    reward: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor
    info: dict[str, Any]


class Latency:
    """How long inputs waited before an action made of them was handed to the environment.

    It begins when the input arrives in this process and ends at the call of ``Env.step``, so it has the wait for the
    next control step in it (half a step on average), but neither the way to this process nor what the arm needs.
    """

    def __init__(self) -> None:
        self.seconds: deque[float] = deque(maxlen=10_000)
        self._last = -np.inf

    def __len__(self) -> int:
        return len(self.seconds)

    def add(self, arrived: float | None, acted: float) -> None:
        """An input that arrived then was acted on now; one that was counted before is not counted again."""
        if arrived is not None and arrived > self._last:
            self._last = arrived
            self.seconds.append(acted - arrived)

    @property
    def mean(self) -> float | None:
        """[s]; None before the first input."""
        return float(np.mean(self.seconds)) if self.seconds else None

    @property
    def p95(self) -> float | None:
        """[s] 95 of 100 inputs waited no longer."""
        return float(np.quantile(np.array(self.seconds), 0.95)) if self.seconds else None

    def summary(self) -> str:
        """One line for people."""
        mean, p95 = self.mean, self.p95
        if mean is None or p95 is None:
            return "no input was timed"
        return f"input to action: {1000 * mean:.1f} ms on average, 95 % within {1000 * p95:.1f} ms ({len(self)} inputs)"


class TeleopLoop:
    """An environment, a device, and the episodes that are kept.

    An episode waits in phase ``ready`` until the device asks for something, so that a recording begins with the first
    movement. It is ``running`` until the task ends it (``ended``), and at any time it may be kept (:meth:`keep`) or
    begun again (:meth:`discard`). Episode k has the seed ``seed + k``: discarding begins the same one again.

    Args:
        env: one row, ``autoreset="disabled"``.
        device: already started.
        out: the recording; None keeps nothing.
        resume: continue a recording that exists.
        seed: of the first episode.
        speed: share of full speed.

    Attributes:
        pilot: makes the actions.
        phase: ``ready``, ``running`` or ``ended``.
        saved, discarded: how many episodes.
        said: the last thing that happened, in words.
        latency: from input to action.

    Raises:
        ConfigError: the environment has several rows, resets itself, or cannot be steered by hand.
        DataError: the recording exists and ``resume`` is off, or it was made by another environment.
    """

    def __init__(
        self,
        env: BatchEnv,
        device: Device,
        *,
        out: str | Path | None = None,
        resume: bool = False,
        seed: int = 0,
        speed: float = 0.5,
    ) -> None:
        if env.num_envs != 1 or env.autoreset != "disabled":
            raise ConfigError(
                f"teleoperation needs one environment with autoreset='disabled', not {env.num_envs} with "
                f"{env.autoreset!r}: make(task, 1, autoreset='disabled')"
            )
        self.env, self.device, self.seed = env, device, seed
        self.pilot: Pilot | HandPilot
        if device.hands is not None:
            self.pilot = HandPilot(env, device.hands)
        else:
            self.pilot = Pilot(env, speed=speed, joints=device.joints)
        self.latency = Latency()
        self.recorder = None if out is None else Recorder(env, out, policy="teleop", first_seed=seed, resume=resume)
        self.number = max(self.recorder.finished, default=-1) + 1 if self.recorder is not None else 0
        self.phase, self.said = "ready", ""
        self.saved, self.discarded, self.steps = 0, 0, 0
        self.motion = Motion()
        self._posture: tuple[float, ...] | None = None  # of a leader arm, while an episode waits
        self._down: frozenset[str] = frozenset()
        self._health = np.zeros(1, np.int64)

    # ---- episodes --------------------------------------------------------------------------------------------------

    def begin(self) -> Begun:
        """Start episode ``number``, or start it again."""
        options = {"episode_index": torch.zeros(1, dtype=torch.int64)}
        observation, info = self.env.reset(seed=[self.seed + self.number], options=options)
        self.phase, self.steps, self._health = "ready", 0, np.zeros(1, np.int64)
        self.pilot.reset()
        self._posture = None
        if self.recorder is not None:
            self.recorder.start(ROW, np.array([self.number]), observation, {})
        return Begun(observation, info)

    def keep(self) -> Begun | None:
        """Write the episode and begin the next; None if there is nothing worth keeping, and ``said`` says why."""
        if not self.steps:
            self.said = "nothing to keep: nothing has moved yet"
            return None
        if self._health.any():
            self.said = "not kept: the simulation diverged; discard it"
            return None
        if self.recorder is not None:
            self.recorder.finish(ROW, self._health)
        self.saved += 1
        self.said = f"kept episode {self.number} ({self.steps} steps)"
        if self.recorder is None:
            self.said += ", in no file: there is no recording"
        self.number += 1
        return self.begin()

    def discard(self) -> Begun:
        """Begin the episode again; what was done is forgotten."""
        if self.steps:
            self.discarded += 1
            self.said = f"discarded {self.steps} steps"
        return self.begin()

    # ---- time ------------------------------------------------------------------------------------------------------

    def tick(self) -> Begun | Stepped | None:
        """What is due once per control step: read the device and do what it asks for."""
        motion = self.motion = self.device.read()
        pressed = frozenset(motion.buttons) - self._down
        self._down = frozenset(motion.buttons)
        for button in sorted(pressed):
            self.pilot.press(button, motion)
        if "save" in pressed:
            return self.keep()
        if "reset" in pressed:
            return self.discard()
        if self.phase == "ended":
            return None
        if self.phase == "ready" and ("clutch" in motion.buttons or not (self._moves(motion) or "gripper" in pressed)):
            return None
        return self._step(motion)

    def _moves(self, motion: Motion) -> bool:
        """Whether an episode that waits begins: a leader arm begins it where it leaves the place it waits in."""
        if motion.joints is None:
            return self.pilot.begins(motion)
        self._posture = self._posture or motion.joints
        return any(abs(a - b) > STIR for a, b in zip(motion.joints, self._posture, strict=True))

    def run(
        self,
        stop: Callable[[], bool] = lambda: False,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Drive at true time, without pictures, until ``stop()`` or until the device is over."""
        self.begin()
        due = clock()
        while not stop() and not self.device.over:
            now = clock()
            if now < due:
                sleep(due - now)
                continue
            self.tick()
            due = max(due + 1 / self.env.control_hz, now - BEHIND)

    def close(self) -> None:
        """Complete the recording. An episode that was not kept is not in it. Idempotent."""
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None

    def _step(self, motion: Motion) -> Stepped:
        action = self.pilot.action(motion)
        self.latency.add(motion.at, time.monotonic())
        made = Stepped(*self.env.step(action))
        self.steps += 1
        self._health = made.info["health"].cpu().numpy()
        if self.recorder is not None:
            outcome = outcome_of(made.reward, made.terminated, made.truncated, made.info)
            self.recorder.step(ROW, action, made.observation, outcome)
        self.phase = "ended" if bool((made.terminated | made.truncated)[0]) else "running"
        return made


__getattr__ = old_names(__name__)
