"""A controller and its options as data; reads from and writes to a word: ``osc_pose:impedance=variable,frame=tcp``."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manikin.errors import ConfigError, UnknownNameError

__all__ = [
    "ALIASES",
    "CONTROLLERS",
    "GRIPPER",
    "IMPEDANCES",
    "JOINT_CONTROLLERS",
    "OPENING",
    "Control",
    "Whole",
    "controls_word",
    "parse_control",
    "parse_controls",
]

FRAMES = ("base", "world", "tcp")
GOALS = ("measured", "commanded", "absolute")
IMPEDANCES = ("fixed", "variable_kp", "variable")
PIVOTS = ("measured", "target")
STARTS = ("plan", "measured")

ALIASES = {
    "OSC_POSE": "osc_pose",
    "OSC_POSITION": "osc_position",
    "IK_POSE": "ik_pose",
    "JOINT_POSITION": "joint_impedance",
    "JOINT_VELOCITY": "joint_vel_pid",
    "JOINT_TORQUE": "joint_torque",
}
"""Names of robosuite's controllers."""

GRIPPER, OPENING = "gripper", "opening"
"""Where in the action of several groups the grippers' numbers stand: ``gripper: opening``; without it they are last."""

_GAINS = {"impedance": "fixed", "kp": 150.0, "damping_ratio": 1.0, "refresh": 1, "ramp": 0.0}
_OSC = {**_GAINS, "frame": "base", "goal": "measured", "pos": 0.05, "uncouple": True, "posture": 10.0}
CONTROLLERS: dict[str, dict[str, Any]] = {
    "joint_pos": {"about": "", "step": 0.0},
    "joint_delta_pos": {},
    "joint_target_delta_pos": {"step": 0.0, "gripper": 0.0},
    "joint_vel": {},
    "ee_delta_pos": {"frame": "base"},
    "ee_delta_pose": {"frame": "base"},
    "ee_delta_pose_planned": {"start": "plan"},
    "ee_pose": {"frame": "base"},
    "ee_target_delta_pose": {"pivot": "measured", "pos": 1.0, "rot": 1.0},
    "ik_pose": {"frame": "tcp", "pos": 0.02, "rot": 0.05},
    "osc_position": _OSC,
    "osc_pose": {**_OSC, "rot": 0.5},
    "joint_impedance": {**_GAINS, "kp": 50.0, "goal": "measured", "step": 0.05},
    "joint_vel_pid": {"step": 0.5, "kp": 0.03},
    "joint_torque": {"step": 0.1, "compensate": True},
    "base_vel": {},
    OPENING: {},
}
"""The options each controller has, with what they are unless given."""

JOINT_CONTROLLERS = (
    *("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "joint_impedance"),
    *("joint_vel_pid", "joint_torque"),
)
"""Those that ask for no tool: of legs, hands and wheels."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """One controller and its options. Which of them a controller has is in :data:`CONTROLLERS`.

    Attributes:
        name: of the controller.
        start: where ``ee_delta_pose_planned`` begins a motion of the arm: ``plan``, where the last one is now, as
            SIMPLER's code does; or ``measured``, where the arm is, as its paper says.
        frame: axes of the action: ``base`` (of the robot), ``world`` or ``tcp``.
        about: of joint_pos, the keyframe that an action of 0 asks for, such as ``rest``; +-1 is then ``step`` to either
            side of it. Without it [-1, 1] spans the joint's range.
        goal: what a relative action adds to, ``measured`` or ``commanded``; or ``absolute``.
        impedance: ``fixed``; ``variable_kp``: the action sets the stiffness too; ``variable``: damping ratio too.
        kp: stiffness per unit of inertia [1/s^2]; for joint_vel_pid the share of the torque range per rad/s.
        damping_ratio: 1 is critical: kd = 2 sqrt(kp) damping_ratio.
        pos, rot: displacement at +1 [m], [rad].
        step: of a joint at +1 [rad], [rad/s] or [N m]. 0 is, of joint_pos and joint_target_delta_pos, the
            robot's own ``joint_delta``, and of joint_torque each joint's own limit.
        gripper: of joint_target_delta_pos, by how much +1 opens the commanded gripper [rad or m]; with 0 the action is
            the commanded opening itself.
        compensate: gravity and Coriolis forces are added to the action's torques.
        uncouple: position and orientation have an inertia each instead of one together.
        posture: stiffness of the pull to the starting posture in the null space [1/s^2].
        ramp: share of the control step over which the goal moves linearly to where the action puts it.
        refresh: Jacobian and inertia are computed every so many physics steps.
        pivot: what ``ee_target_delta_pose`` turns its target about: the ``measured`` tool, or the ``target`` itself.
    """

    name: str
    start: str = "plan"
    about: str = ""
    frame: str = "base"
    goal: str = "measured"
    impedance: str = "fixed"
    kp: float = 0.0
    damping_ratio: float = 1.0
    pos: float = 0.0
    rot: float = 0.0
    step: float = 0.0
    gripper: float = 0.0
    compensate: bool = True
    uncouple: bool = True
    posture: float = 10.0
    ramp: float = 0.0
    refresh: int = 1
    pivot: str = "measured"

    @classmethod
    def of(cls, name: str, **options: Any) -> Control:
        """A controller by name, or robosuite's name for it, with options.

        Raises:
            UnknownNameError: no such controller, or it has no such option or no such choice.
            ConfigError: a number out of range.
        """
        name = ALIASES.get(name, name)
        if name not in CONTROLLERS:
            raise UnknownNameError("controller", name, (*CONTROLLERS, *ALIASES))
        known = CONTROLLERS[name]
        for option in options:
            if option not in known:
                raise UnknownNameError(f"option of {name}", option, known)
        control = cls(name=name, **{**known, **options})
        goals = GOALS if name != "joint_vel_pid" else ("measured",)
        for kind, value, valid in (
            ("frame", control.frame, FRAMES),
            ("goal", control.goal, goals),
            ("impedance", control.impedance, IMPEDANCES),
            ("pivot", control.pivot, PIVOTS),
            ("start", control.start, STARTS),
        ):
            if value not in valid:
                raise UnknownNameError(f"{kind} of {name}", value, valid)
        if control.goal == "absolute" and control.frame == "tcp":
            raise ConfigError(
                f"{name}: an absolute goal cannot be in the frame it moves; use frame=base or frame=world"
            )
        if control.refresh < 1 or not 0 <= control.ramp <= 1 or min(control.kp, control.posture) < 0:
            raise ConfigError(f"{name}: needs refresh >= 1, 0 <= ramp <= 1, kp and posture >= 0; got {options}")
        if not (0 <= control.step < math.inf and 0 <= control.gripper < math.inf):
            raise ConfigError(f"{name}: step and gripper must not be negative, they are what +1 means; got {options}")
        if name == "joint_pos" and control.step and not control.about:
            raise ConfigError(
                f"{name}: step is how far +-1 is from a keyframe; name it, about=rest, or leave step out, and [-1, 1] "
                "spans the joint's range"
            )
        if name == "ee_target_delta_pose" and min(control.pos, control.rot) <= 0:
            raise ConfigError(f"{name}: pos and rot must be positive, they are what +1 means; got {options}")
        return control

    @property
    def torques(self) -> bool:
        """Whether it commands torques; else positions."""
        return self.name.startswith("osc") or self.name in ("joint_impedance", "joint_vel_pid", "joint_torque")

    @property
    def every_substep(self) -> bool:
        """Whether it commands something else at every physics step; else its command stands for a control step."""
        return self.torques or self.name == "ee_delta_pose_planned"

    @property
    def word(self) -> str:
        """The word that :func:`parse_control` reads back."""
        known = CONTROLLERS[self.name]
        changed = [f"{k}={_write(getattr(self, k))}" for k, v in known.items() if getattr(self, k) != v]
        return ":".join([self.name, ",".join(changed)]) if changed else self.name


@dataclass(frozen=True, kw_only=True)
class Whole:
    """Controllers of named joint groups, one action: ``arm: osc_pose, torso: joint_delta_pos``."""

    parts: tuple[tuple[str, Control], ...]

    @property
    def word(self) -> str:
        """The word that :func:`parse_control` reads back."""
        return ", ".join(f"{name}: {control.word}" for name, control in self.parts)


def parse_control(word: str | Control | Whole | Mapping[str, str | Control]) -> Control | Whole:
    """Read ``name`` or ``name:option=value,...``; or one controller per joint group:
    ``left_arm: osc_pose, base: base_vel``, or ``{"left_arm": "osc_pose", "base": "base_vel"}``. Recordings also hold
    the former ``left_arm=osc_pose|base=base_vel``.

    Raises:
        UnknownNameError: no such controller, or it has no such option or choice; lists what there is.
        ConfigError: a number out of range, or a word that cannot be read.
    """
    if isinstance(word, Control | Whole):
        return word
    if isinstance(word, Mapping):
        pairs = list(word.items())
    elif "=" in word.split(":")[0]:
        pairs = [_pair(part, "=", word) for part in word.split("|")]
    elif _names_groups(word):
        # "arm: osc_pose:frame=tcp,kp=300, base: base_vel": a comma begins a group unless an option follows
        pairs = [_pair(part, ":", word) for part in re.split(r",(?!\s*\w+\s*=)", word)]
    else:
        return _one(word)
    return Whole(parts=tuple((group, _of_group(group, control)) for group, control in pairs))


def _names_groups(word: str) -> bool:
    """Whether a word begins with a group's name, and not with a controller's and its options."""
    head, colon, rest = word.partition(":")
    return bool(colon) and head.strip() not in (*CONTROLLERS, *ALIASES) and "=" not in re.split("[:,]", rest)[0]


def _pair(part: str, sign: str, word: str) -> tuple[str, str]:
    group, found, control = (piece.strip() for piece in part.partition(sign))
    if not (group and found and control):
        raise ConfigError(f"{part.strip()!r} in {word!r} must read GROUP: CONTROLLER, like 'left_arm: osc_pose'")
    return group, control


def _of_group(group: str, control: str | Control) -> Control:
    try:
        return _one(control) if isinstance(control, str) else control
    except UnknownNameError as error:
        if error.kind != "controller":
            raise
        raise UnknownNameError(f"controller of the group {group!r}", error.name, error.valid) from None


def parse_controls(words: Any, robots: int | None) -> tuple[Control | Whole, ...]:
    """The controller of each of so many robots: one for all, or as many as there are, as a sequence or ``a & b``. None
    is as many robots as there are words.

    Raises:
        ConfigError: neither one nor as many as robots. And as :func:`parse_control`.
    """
    if isinstance(words, str):
        words = [word.strip() for word in words.split("&")]
    one = isinstance(words, Control | Whole | Mapping)
    each = [words] if one else list(words) if isinstance(words, Sequence) else []
    if not each or not all(isinstance(word, str | Control | Whole | Mapping) for word in each):
        raise ConfigError(
            f"control must be a word like 'joint_pos', a Control or a sequence of them, not {words!r:.60}"
        )
    robots = len(each) if robots is None else robots
    if len(each) not in (1, robots):
        raise ConfigError(
            f"{len(each)} controllers for {robots} robot{'s' * (robots > 1)}: give one for all, or one each"
        )
    return tuple(parse_control(word) for word in (each if len(each) == robots else each * robots))


def controls_word(controls: Sequence[Control | Whole]) -> str:
    """The word that :func:`parse_controls` reads back."""
    words = [control.word for control in controls]
    return words[0] if len(set(words)) == 1 else " & ".join(words)


def _one(word: str) -> Control:
    name, _, rest = word.partition(":")
    options = {}
    for piece in filter(None, rest.split(",")):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            raise ConfigError(f"{piece!r} in {word!r} must read option=value")
        options[key] = _read(key, value)
    return Control.of(name, **options)


_TYPES = {f.name: f.type for f in dataclasses.fields(Control)}


def _read(key: str, value: str) -> Any:
    kind = _TYPES.get(key, "str")
    try:
        if kind == "float":
            return float(value)
        if kind == "int":
            return int(value)
    except ValueError:
        raise ConfigError(f"{key} must be a number, not {value!r}") from None
    if kind == "bool":
        if value not in ("true", "false"):
            raise ConfigError(f"{key} must be true or false, not {value!r}")
        return value == "true"
    return value


def _write(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
