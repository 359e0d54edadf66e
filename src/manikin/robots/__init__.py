"""Robot arms by name, one file each, and the words that name a whole robot.

A robot word is ``arm``, ``arm+gripper``, ``arm+none``, or one of these with ``:menagerie`` for the maker's meshes:
``panda``, ``panda:menagerie``, ``ur5e``, ``panda+robotiq_2f85``, ``ur5e+panda_hand:menagerie``. Several robots are
such words joined by commas (``panda,sawyer``), or one word for robots that belong together, at their own places
(``aloha``); :func:`team` reads those too. A machine that is no arm (``cart``) has a word too, for the tasks it is made
for; :func:`arms` does not name it.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from manikin.errors import ConfigError, UnknownNameError
from manikin.grippers import gripper
from manikin.grippers import register as _register_gripper
from manikin.robots.own import from_file, gripper_from_file
from manikin.spec.robot import ArmSpec, GripperSpec

__all__ = [
    "Robot",
    "arm",
    "arms",
    "from_file",
    "gripper_from_file",
    "machines",
    "members",
    "module_of",
    "register",
    "robot",
    "stand_together",
    "team",
    "teams",
]

_MODULES = {  # arm: the file it is in
    "aloha_left": "aloha",
    "aloha_right": "aloha",
    "baxter_left": "baxter",
    "baxter_right": "baxter",
    "fetch": "fetch",
    "floating": "floating",
    "google_robot": "google_robot",
    "iiwa14": "iiwa14",
    "jaco": "jaco",
    "kinova_gen3": "kinova_gen3",
    "koch": "koch",
    "panda": "panda",
    "sawyer": "sawyer",
    "so101": "so101",
    "ur5e": "ur5e",
    "viperx": "aloha",
    "widowx": "widowx",
    "xarm7": "xarm7",
}
_NAMES = tuple(_MODULES)
_MACHINES = {"cart": "cart"}  # moved by motors, without a tool: machine: the file it is in
_TEAMS = {
    "aloha": ("aloha_left", "aloha_right"),
    "baxter": ("baxter_right", "baxter_left"),
}  # one word for robots that belong together
_MODELS = ("builtin", "menagerie")
_own: dict[str, ArmSpec] = {}  # registered from outside


class Robot(NamedTuple):
    """What a robot word means; the arguments of :func:`manikin.scene.robot.assemble`."""

    arm: ArmSpec
    gripper: GripperSpec | None
    menagerie: bool


def arms() -> tuple[str, ...]:
    """Names of all arms, the registered ones last."""
    return (*_NAMES, *_own)


def machines() -> tuple[str, ...]:
    """Names of robots that are no arms: they have no tool and no gripper, and stand in the tasks made for them."""
    return tuple(_MACHINES)


def register(spec: ArmSpec, *, gripper: GripperSpec | None = None) -> ArmSpec:
    """Make a robot of your own known by its name; ``gripper`` is one of your own that comes with it.

    The name may be registered again, which replaces it. Raises :class:`ConfigError` for a name that is built in or
    cannot stand in a robot word.
    """
    if spec.name in (*_NAMES, *_MACHINES) or not spec.name.replace("_", "").isalnum():
        raise ConfigError(f"a robot of your own cannot be called {spec.name!r}: letters, digits and _, not {_NAMES}")
    if gripper is not None:
        _register_gripper(gripper)
    _own[spec.name] = spec
    return spec


def arm(name: str) -> ArmSpec:
    """The arm or machine called ``name``. Raises :class:`UnknownNameError`, which lists the names."""
    if name in _own:
        return _own[name]
    if name not in (*_NAMES, *_MACHINES):
        raise UnknownNameError("robot", name, (*arms(), *_MACHINES))
    module = importlib.import_module(module_of(name))
    return module.ARM if hasattr(module, "ARM") else module.ARMS[name]


def module_of(name: str) -> str:
    """The module in which the built-in robot called ``name`` is declared, or "" for one of your own."""
    file = _MODULES.get(name) or _MACHINES.get(name)
    return f"manikin.robots.{file}" if file else ""


def teams() -> tuple[str, ...]:
    """Words for several robots that belong together, sorted."""
    return tuple(_TEAMS)


def members(word: str | Sequence[str]) -> tuple[str, ...]:
    """The words of single robots that a word, or several, stand for: two for ``aloha`` and for ``panda,sawyer``.

    Gripper and model of a team's word are those of every member.
    """
    out: list[str] = []
    for one in word.split(",") if isinstance(word, str) else word:
        one = one.strip()
        name = re.split("[+:]", one, maxsplit=1)[0]
        out += [member + one.removeprefix(name) for member in _TEAMS.get(name, (name,))]
    return tuple(out)


def team(word: str | Sequence[str]) -> tuple[Robot, ...]:
    """All robots of a word, see :func:`members`. Raises :class:`UnknownNameError` as :func:`robot` does."""
    return tuple(robot(member) for member in members(word))


def stand_together(robots: Sequence[tuple[ArmSpec, GripperSpec | None, bool]]) -> bool:
    """Whether they are one machine with several arms, whose places are given."""
    return tuple(arm.name for arm, *_ in robots) in _TEAMS.values()


def robot(word: str) -> Robot:
    """Read a robot word. Without ``+gripper`` an arm has its default gripper; without ``:model`` it is built in.

    Raises :class:`UnknownNameError` for an unknown arm, gripper or model.
    """
    names, _, model = word.partition(":")
    if ":" in word and model not in _MODELS:
        raise UnknownNameError("robot model", model, _MODELS, hint=f"(in {word!r})")
    arm_name, plus, gripper_name = names.partition("+")
    spec = arm(arm_name)
    chosen = gripper_name if plus else spec.gripper
    return Robot(spec, None if chosen in (None, "none") else gripper(chosen), model == "menagerie")
