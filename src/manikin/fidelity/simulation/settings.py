"""Physical settings of the simulated tasks, and the TOML files that hold them.

A file has one line for each setting that differs from the default:

    cap = "fitted"            # or degrees per second
    table_friction = 0.3
    damping = [1, 2, 1, 0.5, 0.5, 0.5]
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.fidelity.protocol import HZ, benchmark_task

__all__ = ["CAPS", "HANDS", "OFFSETS", "ROLLING", "Settings", "read_settings", "settings_toml"]

ROLLING = (5, 6, 7, 8)
"""Tasks whose recordings have another cap, another delay and other times than the rest."""
CAPS: dict[str, dict[bool, tuple[float, ...]]] = {
    "released": {False: (30.0,), True: (30.0,)},
    "paper": {False: (10.0,) * 3 + (20.0,) * 3, True: (10.0,) * 3 + (20.0,) * 3},
    "fitted": {False: (57.3,), True: (30.0,)},
}
"""Most that a joint is told to turn [degrees/s], by whether the task is one of :data:`ROLLING`: as in the released
script, as the paper says, and as the recordings show."""
_DELAYS = {"released": {False: 0.0, True: 0.0}, "fitted": {False: 0.2, True: 0.5}}
_TIMES = ("released", "recorded")
OFFSETS = {"recorded": {5: 6.5e-4, 6: 3.0e-4, 7: 7.4e-4, 8: 1.4e-4}}
"""Distance of the centre of mass from the axis [m] by task, from the periods with which the recorded objects rock about
where they come to rest, in the median 3.6, 5.3, 2.4 and 5.5 s. A cylinder of radius r and a cone of height h on its
side swing as pendulums. For a small distance e = w^2 1.5 r^2 / g, and e = w^2 I cos(a) / (m g) with tan(a) = r / h and
I = m 3/20 r^2 (6 h^2 + r^2) / (h^2 + r^2) about the line on which it lies."""
HANDS = ("built_in", "released")
JOINTS = 6


def _number(about: str, *, low: float = 0.0, above: bool = False, high: float = math.inf, default: float) -> Any:
    """A field that is a number within limits."""
    return dataclasses.field(default=default, metadata={"about": about, "low": low, "high": high, "above": above})


def _numbers(about: str, default: tuple[float, ...], *, low: float = 0.0, above: bool = False) -> Any:
    """A field that is a number, or one for each of the six joints."""
    limits = {"low": low, "high": math.inf, "above": above}
    return dataclasses.field(default=default, metadata={"about": about, **limits, "count": JOINTS})


def _word(
    about: str, default: str | float, words: tuple[str, ...], *, number: bool = False, high: float = math.inf
) -> Any:
    """A field that is one of some words, or a number where ``number`` says so."""
    limits = {"low": 0.0, "high": high, "above": False}
    return dataclasses.field(default=default, metadata={"about": about, "words": words, "number": number, **limits})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the physics of the ten tasks depends on and the benchmark leaves open. SI units unless said otherwise.

    Each field says what it is in its metadata, ``about``; docs/fidelity.md has the table.

    Raises:
        ConfigError: a value of another kind or out of its limits; says which and what is valid.
    """

    cap: str | float = _word(
        "most that a joint is told to turn [degrees/s]: released, paper, fitted or a number",
        "released",
        tuple(CAPS),
        number=True,
    )
    delay: str | float = _word(
        "time until the arm moves [s]: released (0), fitted (0.2, and 0.5 in tasks 5 to 8) or a number",
        "released",
        tuple(_DELAYS),
        number=True,
    )
    cap_factor: float = _number("times the cap", above=True, default=1.0)
    delay_factor: float = _number("times the delay", default=1.0)
    times: str = _word("when targets change: released, or recorded (tasks 5 to 8: twice as late)", "released", _TIMES)
    stiffness: tuple[float, ...] = _numbers(
        "of a joint's servo, about where its commanded velocities lead [N m/rad]",
        (2000.0, 4000.0, 2000.0, 1000.0, 1000.0, 1000.0),
        above=True,
    )
    speed_gain: tuple[float, ...] = _numbers(
        "of a joint's servo: torque per velocity that the joint lacks [N m s/rad]",
        (60.0, 110.0, 60.0, 20.0, 20.0, 20.0),
    )
    force: tuple[float, ...] = _numbers(
        "most that the stiffness gives [N m]", (40.0, 80.0, 40.0, 20.0, 20.0, 20.0), above=True
    )
    damping: tuple[float, ...] = _numbers("of the joints [N m s/rad]", (0.0,))
    frictionloss: tuple[float, ...] = _numbers("dry friction of the joints [N m]", (0.0,))
    armature: tuple[float, ...] = _numbers("inertia of the rotors as the joints feel it [kg m^2]", (0.05,))
    table_friction: float = _number("sliding friction between table and object", default=0.5)
    hand_friction: float = _number("sliding friction between hand and object", default=0.5)
    torsional_friction: float = _number("of contacts, about their normal [m]", default=0.005)
    rolling_friction: float = _number("between table and object [m]", default=1e-4)
    time_constant: float = _number("of contacts: smaller is harder [s]", above=True, default=0.005)
    damping_ratio: float = _number("of contacts", above=True, default=1.0)
    object_mass: float = _number("times the published mass of the object", above=True, default=1.0)
    object_offset: str | float = _word(
        "how far the centre of mass of a cylinder or cone is off its axis, towards the table at the start [m]: a "
        "number, or recorded (0.14 to 0.74 mm, from the periods with which the real ones rock)",
        0.0,
        tuple(OFFSETS),
        number=True,
        high=0.03,
    )
    offset_factor: float = _number("times that distance", default=1.0)
    arm_mass: float = _number("times the mass of each link between base and force sensor", above=True, default=1.0)
    hand_mass: float = _number("times the mass of what the force sensor carries", above=True, default=1.0)
    base_yaw: float = _number("turn of the robot's base [degrees]", low=-180.0, high=180.0, default=0.0)
    base_x: float = _number("of the robot's base [m]", low=-1.0, high=1.0, default=0.0)
    base_y: float = _number("of the robot's base [m]", low=-1.0, high=1.0, default=0.0)
    base_z: float = _number("of the robot's base above its published height [m]", low=-1.0, high=1.0, default=0.0)
    hand: str = _word(
        "what of the hand collides: built_in, simple shapes, or released, the meshes of the released description in "
        "MANIKIN_DATA",
        "built_in",
        HANDS,
    )
    tare: bool = dataclasses.field(
        default=True, metadata={"about": "whether the force sensor is zeroed at the start, as in the recordings"}
    )
    torque_scale: float = _number(
        "times the joint torques that are written, in tasks 1 to 4, 9 and 10: calibration of the recorded sensors, "
        "changes no motion",
        above=True,
        default=1.0,
    )
    torque_scale_rolling: float = _number(
        "the same in tasks 5 to 8, which were recorded later", above=True, default=1.0
    )
    physics_hz: float = _number("physics steps per second, a multiple of 10", low=HZ, default=200.0)
    spread: float = _number(
        "times the differences between repeats: start of the object 1.5 mm and 1.5 degrees, friction 8 %, mass 1 % "
        "(deviations), delay 0.02 s",
        default=1.0,
    )

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            object.__setattr__(self, one.name, _checked(one, getattr(self, one.name)))
        steps = self.physics_hz / HZ
        if abs(steps - round(steps)) > 1e-6:
            raise ConfigError(f"physics_hz = {self.physics_hz:g} must be a multiple of {HZ:g}")

    @property
    def digest(self) -> str:
        """SHA-256 of all settings."""
        return hashlib.sha256(json.dumps(dataclasses.asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def changed(self) -> dict[str, Any]:
        """Settings that differ from the default."""
        usual = Settings.__dataclass_fields__
        return {k: v for k, v in dataclasses.asdict(self).items() if v != _checked(usual[k], usual[k].default)}

    def cap_of(self, task: int) -> tuple[float, ...]:
        """(6,) [degrees/s] of a task."""
        found = CAPS[self.cap][task in ROLLING] if isinstance(self.cap, str) else (self.cap,)
        found = tuple(one * self.cap_factor for one in found)
        return found * JOINTS if len(found) == 1 else found

    def delay_of(self, task: int) -> float:
        """[s] of a task."""
        found = _DELAYS[self.delay][task in ROLLING] if isinstance(self.delay, str) else self.delay
        return found * self.delay_factor

    def offset_of(self, task: int) -> float:
        """[m] of a task."""
        words = OFFSETS.get(self.object_offset, {}) if isinstance(self.object_offset, str) else {}
        found = words.get(task, 0.0) if isinstance(self.object_offset, str) else self.object_offset
        return found * self.offset_factor

    def torque_scale_of(self, task: int) -> float:
        """Times the joint torques of a task that are written."""
        return self.torque_scale_rolling if task in ROLLING else self.torque_scale

    @property
    def per_task(self) -> tuple[str, ...]:
        """Settings whose word stands for other numbers in other tasks or joints."""
        words: dict[str, Any] = {"cap": CAPS, "delay": _DELAYS, "object_offset": OFFSETS}
        found = {name: table.get(getattr(self, name)) for name, table in words.items()}
        return tuple(name for name, one in found.items() if one is not None and _varies(one))

    def segments_of(self, task: int) -> tuple[tuple[float, tuple[float, ...]], ...]:
        """(end [s], joint targets [degrees]) of a task."""
        late = 2.0 if self.times == "recorded" and task in ROLLING else 1.0
        return tuple((end * late, target) for end, target in benchmark_task(task).segments)


def _varies(table: dict[Any, Any]) -> bool:
    return len({x for one in table.values() for x in (one if isinstance(one, tuple) else (one,))}) > 1


def _checked(field: Any, value: Any, file: str = "") -> Any:
    """A value as its field keeps it; ``file`` is where it stands."""
    name, about, place = field.name, field.metadata, f"{file}: " if file else ""
    if "low" not in about:
        if not isinstance(value, bool):
            raise ConfigError(f"{place}{name} must be true or false, not {value!r}")
        return value
    if "words" in about and isinstance(value, str):
        if value not in about["words"]:
            kind = f"{name} in {file}" if file else name
            raise UnknownNameError(kind, value, about["words"], "Or a number." if about["number"] else "")
        return value
    if "words" in about and not about["number"]:
        raise ConfigError(f"{place}{name} must be one of {', '.join(about['words'])}, not {value!r}")
    count = about.get("count")
    each = tuple(value) if count and isinstance(value, list | tuple) else (value,)
    if count and len(each) not in (1, count):
        raise ConfigError(f"{place}{name} must be one number, or {count}, one for each joint, not {len(each)}")
    for one in each:
        if isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one):
            raise ConfigError(f"{place}{name} must be a number, not {one!r}")
        if not about["low"] <= one <= about["high"] or (about["above"] and one == about["low"]):
            least = f"{'above' if about['above'] else 'at least'} {about['low']:g}"
            most = f" and at most {about['high']:g}" if math.isfinite(about["high"]) else ""
            raise ConfigError(f"{place}{name} must be {least}{most}, not {one:g}")
    whole = tuple(map(float, each))
    return (whole * count if len(whole) == 1 else whole) if count else whole[0]


def read_settings(path: str | Path) -> Settings:
    """Settings from a TOML file; see the module.

    Raises:
        DataError: it cannot be read.
        UnknownNameError: no such setting or word. ConfigError: a value that is not valid. Both name the file.
    """
    path = Path(path)
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    for name, value in said.items():
        if name not in fields:
            raise UnknownNameError(f"setting in {path}", name, fields)
        _checked(fields[name], value, str(path))
    try:
        return Settings(**said)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def settings_toml(settings: Settings) -> str:
    """What :func:`read_settings` reads back: a line for each setting that differs from the default."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.changed.items())
