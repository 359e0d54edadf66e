"""What a search may change of a robot, within which range.

A parameter is written ``kp=600:1400`` (each joint its own), ``kp/waist=600:1400`` (of one joint),
``friction=0:2:tied`` (one number for all joints), ``armature=0.001:1:log`` (searched on a logarithmic scale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.robot import RobotSpec

__all__ = ["KINDS", "Parameter", "Space", "parse_parameter"]

KINDS = {
    "kp": "N m/rad or N/m",  # stiffness of the position servo
    "kd": "N m s/rad or N s/m",  # its damping, which is the joint's in the model
    "force": "N m or N",  # most that the servo gives
    "damping": "N m s/rad or N s/m",  # of the joint beside kd; MuJoCo adds the two
    "friction": "N m or N",  # dry friction of the joint
    "armature": "kg m^2 or kg",  # inertia of the rotor as the joint feels it
    "delay": "s",  # from a command to where the servo follows it; one for the robot
}
"""What can be searched for, with its unit."""

_FIELDS = {"friction": "dof_frictionloss", "armature": "dof_armature"}
_SERVO = ("kp", "kd", "force", "delay")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One of :data:`KINDS` with its range.

    Attributes:
        kind: what it is.
        low, high: ends of its range, in SI units.
        joint: of this joint alone; None is all joints.
        tied: all joints have one number; else each has its own.
        log: whether the search is uniform in the logarithm.

    Raises:
        UnknownNameError: no such kind.
        ConfigError: ends that are reversed, not finite, negative, or 0 on a logarithmic scale.
    """

    kind: str
    low: float
    high: float
    joint: str | None = None
    tied: bool = False
    log: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("parameter", self.kind, KINDS)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ConfigError(f"the range of {self.word} must be finite")
        if self.low >= self.high:
            order = f"{self.kind}={self.high:g}:{self.low:g}"
            raise ConfigError(f"the range of {self.word} is reversed or empty; write the lower end first: {order}")
        if self.low < 0 or (self.log and self.low == 0):
            raise ConfigError(f"{self.word}: must be {'above 0' if self.log else 'at least 0'}")
        if self.kind == "delay" and (self.joint is not None or self.tied):
            raise ConfigError("delay is one number for the robot: write delay=LOW:HIGH")

    @property
    def word(self) -> str:
        """What :func:`parse_parameter` reads back."""
        joint = "" if self.joint is None else f"/{self.joint}"
        more = ",".join(word for word in ("tied", "log") if getattr(self, word))
        return f"{self.kind}{joint}={self.low:g}:{self.high:g}{':' + more if more else ''}"


def parse_parameter(word: str) -> Parameter:
    """Read ``kp/waist=600:1400:log``; see the module.

    Raises:
        ConfigError: it cannot be read. And as :class:`Parameter`.
    """
    name, equals, rest = word.partition("=")
    low, _, more = rest.partition(":")
    high, _, flags = more.partition(":")
    kind, _, joint = name.strip().partition("/")
    words = [flag.strip() for flag in flags.split(",") if flag.strip()]
    try:
        ends = float(low), float(high)
    except ValueError:
        raise ConfigError(f"a parameter reads NAME=LOW:HIGH, like kp=600:1400, not {word!r}") from None
    if not equals or set(words) - {"tied", "log"}:
        raise ConfigError(f"a parameter reads NAME=LOW:HIGH, or NAME=LOW:HIGH:tied,log, not {word!r}")
    return Parameter(
        kind=kind, low=ends[0], high=ends[1], joint=joint or None, tied="tied" in words, log="log" in words
    )


class Space:
    """The numbers that a search looks for, each on a scale from 0 to 1 between its ends.

    Args:
        parameters: what is searched for; a later one wins over an earlier one of the same joint and kind.
        robot: whose.
        torque: whether its joints are driven by torque: then there is no servo to change.

    Attributes:
        names: of the P numbers, ``kp/waist``, or ``friction`` where it is one for all.
        low, high: (P,) ends. present: (P,) what the robot has, within the ends.

    Raises:
        UnknownNameError: a joint that the robot does not have.
        ConfigError: nothing to search for, or a servo's parameter where there is none.
    """

    def __init__(self, parameters: Sequence[Parameter], robot: RobotSpec, *, torque: bool = False) -> None:
        if not parameters:
            raise ConfigError(
                f"name at least one parameter with its range, like kp=600:1400; there are {', '.join(KINDS)}"
            )
        self.joints = robot.joints
        own = _present(robot)
        numbers: dict[str, tuple[Parameter, tuple[int, ...]]] = {}
        for one in parameters:
            if one.joint is not None and one.joint not in self.joints:
                raise UnknownNameError(f"joint of {robot.name}", one.joint, self.joints)
            if torque and one.kind in _SERVO:
                raise ConfigError(f"{one.word}: the controller drives the joints by torque, so there is no servo")
            every = range(len(self.joints)) if one.joint is None else [self.joints.index(one.joint)]
            if one.kind == "delay":
                numbers["delay"] = one, ()
            elif one.tied:
                for j in every:
                    numbers.pop(f"{one.kind}/{self.joints[j]}", None)
                numbers[one.kind] = one, tuple(every)
            else:
                for j in every:
                    numbers[f"{one.kind}/{self.joints[j]}"] = one, (j,)
        for name, (one, at) in list(numbers.items()):  # what has a number of its own is not among the tied ones
            if one.tied:
                numbers[name] = one, tuple(j for j in at if f"{one.kind}/{self.joints[j]}" not in numbers)
        self.names = tuple(numbers)
        self._at = list(numbers.values())
        self.kinds = tuple(one.kind for one, _ in self._at)
        self.low, self.high = (np.array([getattr(one, end) for one, _ in self._at]) for end in ("low", "high"))
        self._log = np.array([one.log for one, _ in self._at])
        self._least, self._most = np.where(self._log, self.low, 1.0), np.where(self._log, self.high, np.e)
        values = [0.0 if one.kind == "delay" else float(np.median(own[one.kind][list(at)])) for one, at in self._at]
        self.present = np.clip(values, self.low, self.high)
        self.outside = tuple(
            name for name, value, kept in zip(self.names, values, self.present, strict=True) if value != kept
        )

    def __len__(self) -> int:
        return len(self.names)

    def values(self, unit: np.ndarray) -> np.ndarray:
        """(..., P) in SI units of points (..., P) in [0, 1]."""
        unit = np.clip(unit, 0.0, 1.0)
        log = self._least * (self._most / self._least) ** unit
        return np.where(self._log, log, self.low + (self.high - self.low) * unit)

    def unit(self, values: np.ndarray) -> np.ndarray:
        """The inverse of :meth:`values`."""
        values = np.clip(values, self.low, self.high)
        log = np.log(np.where(self._log, values, 1.0) / self._least) / np.log(self._most / self._least)
        return np.where(self._log, log, (values - self.low) / (self.high - self.low))

    def of_joints(self, values: np.ndarray) -> dict[str, tuple[tuple[int, ...], np.ndarray]]:
        """Kind -> joints that have a number, and (..., joints) what it is, of ``values`` (..., P); without delay."""
        found: dict[str, dict[int, np.ndarray]] = {}
        for k, (one, at) in enumerate(self._at):
            for j in at:
                found.setdefault(one.kind, {})[j] = values[..., k]
        return {
            kind: (tuple(sorted(each)), np.stack([each[j] for j in sorted(each)], -1)) for kind, each in found.items()
        }

    def delay(self, values: np.ndarray) -> np.ndarray | None:
        """(...,) [s] of ``values`` (..., P); None where it is not searched for."""
        return values[..., self.names.index("delay")] if "delay" in self.names else None

    def model_fields(
        self, values: np.ndarray, model: mujoco.MjModel, dofs: Sequence[int], actuators: Sequence[int]
    ) -> dict[Any, np.ndarray]:
        """What ``World.set_model`` takes, for rows with ``values`` (n, P); ``dofs`` and ``actuators`` of the joints."""
        fields: dict[Any, np.ndarray] = {}
        n, given = len(values), self.of_joints(values)
        for kind, (joints, each) in given.items():
            dof, servo = tuple(dofs[j] for j in joints), tuple(actuators[j] for j in joints)
            if kind in _FIELDS:
                fields[_FIELDS[kind], dof] = each
            elif kind == "kp":
                for field, column, sign in (("actuator_gainprm", 0, 1.0), ("actuator_biasprm", 1, -1.0)):
                    whole = np.repeat(getattr(model, field)[None, list(servo)], n, 0)
                    whole[:, :, column] = sign * each
                    fields[field, servo] = whole
            elif kind == "force":
                fields["actuator_forcerange", servo] = np.stack([-each, each], -1)
        damped = sorted({j for kind in ("kd", "damping") if kind in given for j in given[kind][0]})
        if damped:
            whole = np.repeat(model.dof_damping[None, [dofs[j] for j in damped]], n, 0)
            for kind in ("kd", "damping"):
                for k, j in enumerate(given.get(kind, ((), None))[0]):
                    each = given[kind][1][:, k]
                    at = damped.index(j)
                    whole[:, at] = each if kind == "kd" else whole[:, at] + each
            fields["dof_damping", tuple(dofs[j] for j in damped)] = whole
        return fields


def _present(robot: RobotSpec) -> dict[str, np.ndarray]:
    """Kind -> (joints,) what a robot has."""
    joints = {joint.name: joint for link in robot.links for joint in link.joints}
    passive = [joints.get(name) for name in robot.joints]
    gains = robot.gains
    return {
        "kp": np.array(gains.kp, float),
        "kd": np.array(gains.kd, float),
        "force": np.array(gains.force, float),
        "damping": np.zeros(len(passive)),
        "friction": np.array([0.0 if joint is None else joint.frictionloss for joint in passive]),
        "armature": np.array([0.0 if joint is None else joint.armature for joint in passive]),
    }
