"""A simulated arm behind LeRobot's interface, with the faults of a real one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.control.base import OncePerStep, Reading
from manikin.deploy.clock import Clock, SteppedClock
from manikin.deploy.units import JointUnits
from manikin.env.env import Env
from manikin.errors import ConfigError, RobotError

__all__ = ["Faults", "SimulatedRobot"]


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong between a policy and its robot.

    Attributes:
        latency: of each action, from sending it until the motors have it [s].
        jitter: added to it, uniform from 0 to this [s].
        picture_latency: a picture is so old when it is delivered [s].
        dropped: share of pictures that are never delivered; the last one is delivered again.
        seed: of jitter and drops.

    Raises:
        ConfigError: a time that is negative, or a share outside 0 to 1.
    """

    latency: float = 0.0
    jitter: float = 0.0
    picture_latency: float = 0.0
    dropped: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not all(0 <= value < np.inf for value in (self.latency, self.jitter, self.picture_latency)):
            raise ConfigError(f"latency, jitter and picture_latency must be 0 s or more, got {self}")
        if not 0 <= self.dropped <= 1:
            raise ConfigError(f"dropped is a share of pictures from 0 to 1, got {self.dropped}")


class _Told(OncePerStep):
    """Commands joint positions that it was told, whatever the action."""

    def __init__(self, other: Any) -> None:
        self.name, self.card, self.rate, self.target = other.name, other.card, other.rate, torch.zeros(0)

    def start(self, reading: Reading) -> Tensor:
        self.target = reading.ctrl.clone()
        return self.target

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        return self.target.clone(), self.target


class SimulatedRobot:
    """An environment of one row as LeRobot's robot: it knows joint positions in the units of motors and pictures, and
    takes joint positions. The world goes on with the clock, also while a policy thinks.

    An action counts from the first control step that begins after it has arrived. With no faults and a
    :class:`~manikin.deploy.clock.SteppedClock` a run gives the bits of ``env.step``.

    Args:
        env: one row on the CPU, made with ``autoreset="disabled"``, ``terminate=False`` and a horizon of all steps.
        seed: of the episode that :meth:`connect` begins.
        faults: what goes wrong.
        clock: its time.
        degrees: of its body motors; else percent.

    Attributes:
        info: what the last control step said, for example ``info["success"]``; a real robot has none.
        steps: control steps since :meth:`connect`. late_actions: actions that came too late for the step that they were
            sent in. dropped: pictures that were not delivered.

    Raises:
        ConfigError: the environment does not fit.
    """

    name = "simulated"
    is_calibrated = True

    def __init__(
        self,
        env: Env,
        *,
        seed: int = 0,
        faults: Faults | None = None,
        clock: Clock | None = None,
        degrees: bool = True,
    ) -> None:
        if env.num_envs != 1 or env.device.type != "cpu" or len(env.robots) != 1:
            raise ConfigError("a SimulatedRobot is an environment of one row on the CPU, with one robot")
        self.env, self.faults, self.clock = env, faults or Faults(), clock or SteppedClock()
        self.units = JointUnits(env.robots[0], degrees=degrees)
        self.is_connected = False
        self.info: Mapping[str, Any] = {}
        self.steps = self.late_actions = self.dropped = 0
        self._seed, self._told = seed, _Told(env.controller)
        env.take_over(self._told)

    @property
    def observation_features(self) -> dict[str, Any]:
        spaces: Any = getattr(self.env.single_observation_space, "spaces", {})
        pictures = {name: one["rgb"] for name, one in spaces.get("cameras", {}).items() if "rgb" in one.spaces}
        shapes = {name: tuple(space.shape) for name, space in pictures.items()}
        return {**dict.fromkeys(self.units.names, float), **shapes}

    @property
    def action_features(self) -> dict[str, Any]:
        return dict.fromkeys(self.units.names, float)

    def connect(self, calibrate: bool = True) -> None:
        """Begin the episode."""
        if self.is_connected:
            raise RobotError("the simulated robot is connected already")
        self._seen, self.info = self.env.reset(seed=self._seed)
        self._rng = np.random.default_rng(self.faults.seed)  # house: random, a stream of its own
        self._sent: list[tuple[float, Tensor]] = []  # arrival [s], target
        self._pictures = [(0.0, self._frames())]  # when they were taken [s]
        self._shown = self._pictures[0][1]
        self.steps = self.late_actions = self.dropped = 0
        self._begun, self.is_connected = self.clock.now(), True

    def get_observation(self) -> dict[str, Any]:
        self._go_on()
        q = self.env.robots[0].qpos[0].double().numpy()
        return {**self.units.to_motors(q), **self._shown}

    def send_action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        self._go_on()
        q = self.units.to_joints(action)
        faults = self.faults
        delay = faults.latency + (faults.jitter * float(self._rng.random()) if faults.jitter else 0.0)
        self._sent.append((self._time() + delay, torch.from_numpy(q).float()[None]))
        self.late_actions += delay > 0
        return self.units.to_motors(q)

    def disconnect(self) -> None:
        if not self.is_connected:
            raise RobotError("the simulated robot is not connected")
        self.is_connected = False

    def _time(self) -> float:
        return self.clock.now() - self._begun

    def _go_on(self) -> None:
        """Simulate up to now."""
        if not self.is_connected:
            raise RobotError("the simulated robot is not connected")
        period, action = 1.0 / self.env.control_hz, torch.zeros(1, self._told.card.size)
        due = int(np.floor(self._time() / period + 1e-6))
        while self.steps < due:
            begins = self.steps * period
            while self._sent and self._sent[0][0] <= begins + 1e-9:
                self._told.target = self._sent.pop(0)[1]
            self._seen, *_, self.info = self.env.step(action)
            self.steps += 1
            self._film((self.steps) * period)

    def _film(self, now: float) -> None:
        if self.faults.dropped and self._rng.random() < self.faults.dropped:
            self.dropped += 1
        else:
            self._pictures.append((now, self._frames()))
        ready = [k for k, (taken, _) in enumerate(self._pictures) if taken + self.faults.picture_latency <= now + 1e-9]
        if ready:
            self._shown = self._pictures[ready[-1]][1]
            del self._pictures[: ready[-1]]

    def _frames(self) -> dict[str, np.ndarray]:
        cameras = self._seen.get("cameras", {}) if isinstance(self._seen, Mapping) else {}
        return {name: seen["rgb"][0].numpy() for name, seen in cameras.items() if "rgb" in seen}
