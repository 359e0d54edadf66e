"""What a robot says as the observation that a policy was trained with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from manikin.deploy.interface import RobotInterface
from manikin.deploy.units import JointUnits
from manikin.env.env import Env
from manikin.errors import ConfigError, RobotError, UnknownNameError

__all__ = ["RobotView"]


class RobotView:
    """Makes observations of a twin's kind of what a robot says.

    Joint positions come from the motors; what the task's ``measured`` makes of them comes from there; pictures come
    from the robot's cameras. A picture of another size is cut to the twin's proportions about its middle and averaged
    to its size. ``K`` and ``T`` of a camera are the twin's.

    Args:
        twin: says what is observed.
        robot: has the cameras.
        units: of its motors.
        cameras: name of a camera of the twin -> that of the robot.

    Attributes:
        known: whether the robot has said where it is.
        repeated: whether the last pictures were those before, bit for bit.

    Raises:
        ConfigError: the policy observes what a robot cannot know, the robot lacks a motor, or frames are stacked.
        UnknownNameError: the robot has no such camera.
    """

    def __init__(self, twin: Env, robot: RobotInterface, units: JointUnits, cameras: Mapping[str, str]) -> None:
        self._task, self._units, self.known, self.repeated = twin.task, units, False, False
        for name in units.names:
            for kind, features in (("tells", robot.observation_features), ("takes", robot.action_features)):
                if name not in features:
                    raise ConfigError(f"the robot {kind} no {name}; it {kind} {', '.join(sorted(features))}")
        if twin.observation.stacks:
            raise ConfigError("a policy that observes a Stack cannot be run on a robot yet; train without one")
        nominal, _ = twin.reset(seed=0)
        seen = nominal if isinstance(nominal, Mapping) else {}
        if not seen and any(not name.startswith("policy/") for name in twin.observation_names):
            raise ConfigError(
                f"observe={twin.observe!r} has privileged values, which no robot knows; use a policy that observes "
                "'policy' or pictures, for example one by distillation"
            )
        if extra := set(seen) - {"policy", "cameras"}:
            raise ConfigError(f"a robot cannot observe {', '.join(sorted(extra))}; a policy may observe rgb alone")
        joints = len(units.names)
        known = {"qpos", *self._task.measured(torch.zeros(1, joints), torch.zeros(1, joints))}
        self._names = list(dict.fromkeys(n.split("/")[1].split("[")[0] for n in twin.observation_names))
        self._flat = not seen
        if seen:
            self._names = list(seen["policy"])
        if unknown := [name for name in self._names if name not in known]:
            raise ConfigError(
                f"{twin.task.id} observes {unknown[0]}, which does not follow from joint positions; the task's "
                f"'measured' gives {', '.join(sorted(known))}"
            )
        self._cameras = {name: dict(pictures) for name, pictures in seen.get("cameras", {}).items()}
        has = [name for name, kind in robot.observation_features.items() if isinstance(kind, tuple)]
        for name in cameras:
            if name not in self._cameras:
                raise UnknownNameError("camera of the policy", name, self._cameras)
        self._source = {name: cameras.get(name, name) for name in self._cameras}
        for name, source in self._source.items():
            if source not in has:
                raise UnknownNameError(
                    f"camera of the robot for {name!r}", source, has, "Name it, as in cameras={'base_camera': 'front'}."
                )
            if wrong := set(self._cameras[name]) - {"rgb", "K", "T"}:
                raise ConfigError(f"the policy observes {', '.join(sorted(wrong))} of {name}; a robot has rgb alone")
        self._frames: dict[str, np.ndarray] = {}
        self.qpos = torch.zeros(1, joints)

    def take(self, said: Mapping[str, Any]) -> None:
        """Read what the robot said.

        Raises:
            RobotError: a motor or a picture is missing or is no such thing.
        """
        self.qpos = torch.from_numpy(self._units.to_joints(said)).float()[None]
        self.known = True
        frames = {source: _picture(said, source) for source in self._source.values()}
        old = self._frames
        self.repeated = bool(frames) and all(
            name in old and np.array_equal(old[name], frame) for name, frame in frames.items()
        )
        self._frames = frames

    def observation(self, qpos: Tensor, target: Tensor) -> Any:
        """What the policy is shown, one row."""
        told = {"qpos": qpos, **self._task.measured(qpos, target)}
        if self._flat:
            return torch.cat([told[name].float().reshape(1, -1) for name in self._names], 1)
        group = {name: told[name].float().clone() for name in self._names}
        pictures = {}
        for name, nominal in self._cameras.items():
            frame = torch.from_numpy(np.ascontiguousarray(self._frames[self._source[name]]))[None]
            pictures[name] = {**nominal, "rgb": _fitted(frame, *nominal["rgb"].shape[1:3])}
        return {"policy": group, "cameras": pictures} if pictures else {"policy": group}


def _picture(said: Mapping[str, Any], name: str) -> np.ndarray:
    frame = said.get(name)
    if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        got = f"{frame.dtype} {frame.shape}" if isinstance(frame, np.ndarray) else f"{frame!r:.40}"
        raise RobotError(f"the robot's camera {name} gave {got}; a picture is uint8 (height, width, 3)")
    return frame


def _fitted(frame: Tensor, height: int, width: int) -> Tensor:
    """(1, height, width, 3) of a picture (1, h, w, 3): cut about its middle, then averaged."""
    h, w = frame.shape[1:3]
    if (h, w) == (height, width):
        return frame.clone()
    keep_h, keep_w = (h, round(h * width / height)) if w * height > h * width else (round(w * height / width), w)
    top, left = (h - keep_h) // 2, (w - keep_w) // 2
    cut = frame[:, top : top + keep_h, left : left + keep_w].permute(0, 3, 1, 2).float()
    small = interpolate(cut, (height, width), mode="bilinear", antialias=True, align_corners=False)
    return small.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8)
