"""Robots by name, one file each, and the words that name a whole robot.

A robot word is ``robot``, ``robot+gripper`` or ``robot+none``, ``arm@planar`` or ``arm@differential`` for an arm on a
base that drives, or one of these with ``:menagerie`` for the maker's meshes: ``panda``, ``panda:menagerie``, ``go2``,
``panda+robotiq_2f85``, ``ur5e@planar+panda_hand:menagerie``. A file that ``manikin sysid`` wrote
stands for the robot with the parameters in it: ``found/identified.toml``, ``found/identified.toml:menagerie``. Several
robots are such words joined by commas (``panda,sawyer``), or one word for robots that belong together, at their own
places (``aloha``); :func:`parse_robots` reads those too.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, overload

from manikin.assets import packages
from manikin.errors import ConfigError, UnknownNameError
from manikin.grippers import gripper
from manikin.grippers import register as _register_gripper
from manikin.moved import old_names
from manikin.robots import identified
from manikin.robots.compose import on_base, team_on_base, with_hand
from manikin.robots.from_files import from_file, gripper_from_file
from manikin.spec.robot import GripperSpec, RobotSpec, Tool

__all__ = [
    "RobotSelection",
    "arm",
    "arms",
    "from_file",
    "gripper_from_file",
    "machines",
    "members",
    "module_of",
    "register",
    "robot",
    "robots",
    "stand_together",
    "parse_robots",
    "teams",
    "with_grippers",
]

_MODULES = {  # arm: the file it is in
    "aloha_left": "aloha",
    "aloha_right": "aloha",
    "baxter_left": "baxter",
    "baxter_right": "baxter",
    "bi_so101_left": "so101",
    "bi_so101_right": "so101",
    "fetch": "fetch",
    "floating": "floating",
    "google_robot": "google_robot",
    "iiwa14": "iiwa14",
    "jaco": "jaco",
    "kinova_gen3": "kinova_gen3",
    "kinova_mico": "kinova_mico",
    "koch": "koch",
    "panda": "panda",
    "sawyer": "sawyer",
    "so100": "so100",
    "so101": "so101",
    "ur10e": "ur10e",
    "ur5e": "ur5e",
    "viperx": "aloha",
    "widowx": "widowx",
    "widowx_bridge": "widowx_bridge",
    "xarm6": "xarm6",
    "xarm7": "xarm7",
}
_NAMES = tuple(_MODULES)
_OTHERS = {  # that are more, or less, than an arm with a gripper: robot: the file it is in
    "allegro": "allegro",
    "allegro_left": "allegro",
    "ant": "ant",
    "anymal_c": "anymal_c",
    "cart": "cart",
    "dclaw": "dclaw",
    "fetch_mshab": "fetch_mshab",
    "g1": "g1",
    "g1_simplified_legs": "g1_dex3",
    "g1_upper_body": "g1_dex3",
    "go2": "go2",
    "google_robot_rt1": "google_robot_rt1",
    "h1": "h1",
    "h1_upper_body": "h1_upper_body",
    "hopper": "hopper",
    "humanoid": "humanoid",
    "inspire": "inspire",
    "shadow": "shadow",
    "spot": "spot",
    "spot_arm": "spot",
    "stretch3": "stretch3",
    "tiago": "tiago",
    "trifinger": "trifinger",
}
# of several joints, which an arm's flange carries as it does a gripper
_HANDS = ("allegro", "allegro_left", "dclaw", "inspire", "shadow")
_TEAMS = {
    "aloha": ("aloha_left", "aloha_right"),
    "baxter": ("baxter_right", "baxter_left"),
    "bi_so101": ("bi_so101_left", "bi_so101_right"),
}  # one word for robots that belong together
_MODELS = ("builtin", "menagerie")
_own: dict[str, RobotSpec] = {}  # registered from outside


class RobotSelection(NamedTuple):
    """What a robot word means; the arguments of :func:`manikin.scene.robot.assemble`."""

    arm: RobotSpec
    gripper: GripperSpec | None
    menagerie: bool


def arms() -> tuple[str, ...]:
    """Names of all arms; those of installed packages and the registered ones last."""
    return tuple(dict.fromkeys((*_NAMES, *packages.offered("robot"), *_own)))


def machines() -> tuple[str, ...]:
    """Names of robots that are no arm with a gripper: legs, hands, bases that drive, a cart."""
    return tuple(_OTHERS)


def robots() -> tuple[str, ...]:
    """Names of all robots; each of the arms also goes on a base that drives: ``panda@planar``."""
    return (*arms(), *machines())


@overload
def register(spec: RobotSpec, *, gripper: GripperSpec | None = None) -> RobotSpec: ...
@overload
def register(spec: GripperSpec) -> GripperSpec: ...
def register(spec: RobotSpec | GripperSpec, *, gripper: GripperSpec | None = None) -> RobotSpec | GripperSpec:
    """Make a robot, or a gripper, of your own known by its name; ``gripper`` is one of your own that comes with an arm.

    The name may be registered again, which replaces it.

    Raises:
        ConfigError: for a name that is built in or cannot stand in a robot word.
        TypeError: for what is neither an arm nor a gripper.
    """
    if isinstance(spec, GripperSpec) and gripper is None:
        return _register_gripper(spec)
    if not isinstance(spec, RobotSpec):
        raise TypeError(
            f"register takes an ArmSpec or RobotSpec (from_file gives one) or a GripperSpec, not {spec!r:.80}"
        )
    if spec.name in (*_NAMES, *_OTHERS) or not spec.name.replace("_", "").isalnum():
        raise ConfigError(f"a robot of your own cannot be called {spec.name!r}: letters, digits and _, not {_NAMES}")
    if gripper is not None:
        _register_gripper(gripper)
    _own[spec.name] = spec
    return spec


def forget() -> None:
    """Forget the robots that :func:`register` took, as in a new process."""
    _own.clear()


def arm(name: str) -> RobotSpec:
    """The arm or machine called ``name``. Raises :class:`UnknownNameError`, which lists the names, and
    :class:`ConfigError` where the package that offers it cannot be loaded."""
    if name in _own:
        return _own[name]
    if name not in (*_NAMES, *_OTHERS) and name in packages.offered("robot"):
        return _of_package(name)
    if name not in (*_NAMES, *_OTHERS):
        raise UnknownNameError("robot", name, (*arms(), *_OTHERS), "Or your own: register it, or --robot my_arm.py.")
    module = importlib.import_module(module_of(name))
    for one in ("ROBOT", "ARM"):
        if hasattr(module, one):
            declared: RobotSpec = getattr(module, one)
            return declared
    several: dict[str, RobotSpec] = getattr(module, "ROBOTS", None) or module.ARMS
    return several[name]


def _of_package(name: str) -> RobotSpec:
    spec = packages.load("robot", name)
    if not isinstance(spec, RobotSpec) or spec.name != name:
        raise ConfigError(f"a package offers the robot {name!r}, but what it has there is {spec!r:.80}")
    return register(spec)


def module_of(name: str) -> str:
    """The module in which the built-in robot called ``name`` is declared, or "" for one of your own."""
    file = _MODULES.get(name) or _OTHERS.get(name)
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
        name = (
            one if identified.split(one)[0] else re.split("[+:]", one, maxsplit=1)[0]
        )  # on a base, arms that belong together are one robot
        out += [member + one.removeprefix(name) for member in _TEAMS.get(name, (name,))]
    return tuple(out)


def parse_robots(word: str | Sequence[str]) -> tuple[RobotSelection, ...]:
    """All robots of a word, see :func:`members`. Raises :class:`UnknownNameError` as :func:`robot` does."""
    return tuple(robot(member) for member in members(word))


def stand_together(robots: Sequence[tuple[RobotSpec, GripperSpec | None, bool]]) -> bool:
    """Whether they are one machine with several arms, whose places are given."""
    return tuple(arm.name for arm, *_ in robots) in _TEAMS.values()


def robot(word: str) -> RobotSelection:
    """Read a robot word. Without ``+gripper`` a robot has its default gripper; without ``@base`` it stands where it
    stands; without ``:model`` it is built in.

    Raises :class:`UnknownNameError` for an unknown robot, base, gripper or model, :class:`ConfigError` for a robot that
    takes no other base or gripper.
    """
    file, rest = identified.split(word)
    names, colon, model = rest.partition(":")
    if colon and model not in _MODELS:
        raise UnknownNameError("robot model", model, _MODELS, hint=f"(in {word!r})")
    if file:
        return _from_identified(file, names, colon + model)
    name, gripper_name, base = _pieces(names)
    if base and name in _TEAMS:
        spec, base = team_on_base(name, [arm(member) for member in _TEAMS[name]], base), ""
    else:
        spec = arm(name)
    hand = None if gripper_name in _HANDS else _carried(spec.tool or Tool(body=""), gripper_name)
    if gripper_name in _HANDS:
        spec, gripper_name = with_hand(spec, arm(gripper_name)), None
    if base:
        spec = on_base(spec, base)
    return RobotSelection(with_grippers(spec, gripper_name), hand, model == "menagerie")


def _from_identified(file: str, more: str, model: str) -> RobotSelection:
    """What a file of ``manikin sysid`` is about, with its parameters; ``more`` is ``+gripper`` and ``@base``."""
    word, joints, delay = identified.read(file)
    chosen = robot(word.partition(":")[0] + more + model if model or more else word)
    return chosen._replace(arm=identified.apply(chosen.arm, joints, f"manikin sysid, {file}", delay=delay))


def with_grippers(spec: RobotSpec, named: str | None = None) -> RobotSpec:
    """A robot of several tools with the grippers that its tools name looked up; all are ``named`` where that is given.

    Raises :class:`UnknownNameError` for an unknown gripper.
    """
    if len(spec.tools) < 2:
        return spec
    return replace(spec, tools={key: replace(tool, gripper=_carried(tool, named)) for key, tool in spec.tools.items()})


def _pieces(names: str) -> tuple[str, str | None, str]:
    """Robot, gripper (None where none is named) and base of ``robot@base+gripper``, base and gripper in any order."""
    name, *rest = re.split("([+@])", names)
    gripper_name, base = None, ""
    for sign, one in zip(rest[::2], rest[1::2], strict=True):
        if sign == "+":
            gripper_name = one
        else:
            base = one
    return name, gripper_name, base


def _carried(tool: Tool, named: str | None) -> GripperSpec | None:
    """What a tool carries, when a robot word names a gripper for all of them, or none."""
    if named is None and not isinstance(tool.gripper, str):
        return tool.gripper
    name = tool.gripper if named is None else named
    return None if name in (None, "none") else gripper(str(name))


__getattr__ = old_names(__name__)
