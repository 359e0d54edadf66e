"""A robot with parameters that ``manikin sysid`` found: the TOML file that it writes is a robot word.

    format = 1
    robot = "widowx_bridge"       # whose parameters these are

    [joints.waist]                # what is not named stays as the robot has it
    kp = 1170.0
    kd = 330.0
    friction = 0.1

What else is in the file says where the numbers come from; it changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace

from manikin.assets.paths import absolute
from manikin.errors import AssetError, ConfigError, UnknownNameError
from manikin.spec.robot import JointGroup, RobotSpec

__all__ = ["ENDING", "FORMAT", "apply", "base", "hashed", "read", "split"]

ENDING = ".toml"
FORMAT = 1
_PASSIVE = ("friction", "armature")
_KINDS = ("kp", "kd", "force", "damping", *_PASSIVE)


def read(path: str) -> tuple[str, dict[str, dict[str, float]], float]:
    """The robot's word, joint -> kind -> value, and the delay [s].

    Raises:
        AssetError: there is no such file. ConfigError: it is no such file, or holds what cannot be.
    """
    file = absolute(path)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError:
        raise AssetError(f"there is no robot file {path}; manikin sysid writes one") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    joints, robot, delay = table.get("joints", {}), table.get("robot"), table.get("delay", 0.0)
    if table.get("format") != FORMAT or not isinstance(robot, str) or not isinstance(joints, dict):
        raise ConfigError(
            f"{path} does not read like a result of manikin sysid: format = {FORMAT}, robot, [joints.NAME]"
        )
    for name, kinds in joints.items():
        for kind, value in kinds.items() if isinstance(kinds, dict) else [("", kinds)]:
            if kind not in _KINDS:
                raise UnknownNameError(f"parameter of joint {name!r} in {path}", kind, _KINDS)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ConfigError(f"{path}: {kind} of {name} must be a number of at least 0, not {value!r}")
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay < math.inf:
        raise ConfigError(f"{path}: delay must be a time in seconds, not {delay!r}")
    return robot, joints, float(delay)


def apply(spec: RobotSpec, joints: Mapping[str, Mapping[str, float]], source: str, *, delay: float = 0.0) -> RobotSpec:
    """A robot with other parameters; ``damping`` is added to the servo's kd, as MuJoCo adds them.

    Raises:
        UnknownNameError: a joint that it does not have.
        ConfigError: a robot that is put together from others.
    """
    if spec.parts:
        raise ConfigError(f"{spec.name} is put together from several robots; identified parameters are of a single one")
    for name in joints:
        if name not in spec.joints:
            raise UnknownNameError(f"joint of {spec.name}", name, spec.joints)
    groups = {name: _group(group, joints, source) for name, group in spec.groups.items()}
    links = []
    for link in spec.links:
        for joint in link.joints:
            own = joints.get(joint.name, {})
            if not own.keys().isdisjoint(_PASSIVE):
                friction, armature = own.get("friction", joint.frictionloss), own.get("armature", joint.armature)
                link = replace(link, joint=replace(joint, frictionloss=friction, armature=armature))
        links.append(link)
    return replace(spec, groups=groups, links=tuple(links), delay=delay or spec.delay)


def _group(group: JointGroup, joints: Mapping[str, Mapping[str, float]], source: str) -> JointGroup:
    own: dict[str, list[float]] = {key: list(getattr(group.gains, key)) for key in ("kp", "kd", "force")}
    for k, name in enumerate(group.joints):
        given = joints.get(name, {})
        for key in own:
            own[key][k] = given.get(key, own[key][k])
        own["kd"][k] += given.get("damping", 0.0)
    return replace(group, gains=replace(group.gains, **{key: tuple(v) for key, v in own.items()}, source=source))


def split(word: str) -> tuple[str, str]:
    """The file that a robot word names, or "", and the rest of the word."""
    file, found, rest = word.partition(ENDING)
    return (file + found, rest) if found else ("", word)


def base(word: str) -> str:
    """Robot words with, in place of a file, the robot whose parameters are in it. Raises as :func:`read`."""
    if "," in word:
        return ",".join(map(base, word.split(",")))
    file, rest = split(word.strip())
    if not file:
        return word
    robot, model = read(file)[0].partition(":")[::2]
    return robot + rest + (f":{model}" if model and ":" not in rest else "")


def hashed(word: str) -> str:
    """A robot word with what a file says in place of the file, so that protocols tell files of one name apart. Raises
    as :func:`read`."""
    file, rest = split(word.strip())
    content = json.dumps(read(file), sort_keys=True) if file else ""
    return rest if not file else f"{hashlib.sha256(content.encode()).hexdigest()}{rest}"
