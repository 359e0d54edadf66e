"""Reading demonstrations of robosuite, robomimic and ManiSkill.

robosuite's and robomimic's are HDF5 with a group ``data`` of ``demo_1``, ``demo_2``, ... Both layouts are read:
robosuite's (attributes ``env`` and ``env_info``) and robomimic's (``env_args``, observations, masks). A state is what
MuJoCo's ``MjSimState.flatten`` gave: time, qpos, qvel; the demonstration's own model says which joint is where.
``states[t]`` is before ``actions[t]``. ManiSkill's files are read in ``trajectories.py``.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from manikin.data.formats.demos import Demos, plain
from manikin.data.formats.trajectories import read_trajectories
from manikin.data.recording.outside import open_hdf5, reading
from manikin.errors import ConfigError, DataError, ManikinError
from manikin.spec.control import Control

__all__ = ["Model", "control_of", "holds_demos", "read_demos"]

_WIDTH = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}  # positions, velocities


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a demonstration's MJCF says of its joints and of where things stand.

    Attributes:
        joints: name -> (first position, first velocity) in qpos and qvel, in MuJoCo's order.
        nq, nv: how many there are.
        places: name of a body or site -> position [m] in the world with all joints at zero and no rotations above it.
        sizes: name of a geom -> its size [m].
    """

    joints: Mapping[str, tuple[int, int]]
    nq: int
    nv: int
    places: Mapping[str, np.ndarray]
    sizes: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, text: str, where: str) -> Model:
        """Read MJCF; meshes are not needed.

        Raises:
            DataError: there is none, or it is not MJCF.
        """
        if not text.lstrip().startswith("<"):
            raise DataError(
                f"{where}: the file has no model (model_file is {text!r}), so the meaning of its states is unknown; "
                "this demonstration can be listed but not played"
            )
        with reading(f"{where}: its model cannot be read"):
            world = ElementTree.fromstring(text).find("worldbody")
            if world is None:
                raise ValueError("no worldbody")
            joints: dict[str, tuple[int, int]] = {}
            places: dict[str, np.ndarray] = {}
            at = [0, 0]

            def visit(element: ElementTree.Element, origin: np.ndarray) -> None:
                for child in element:
                    if child.tag in ("joint", "freejoint"):
                        kind = "free" if child.tag == "freejoint" else child.get("type", "hinge")
                        joints[child.get("name", f"joint {len(joints)}")] = (at[0], at[1])
                        at[0], at[1] = at[0] + _WIDTH[kind][0], at[1] + _WIDTH[kind][1]
                    elif child.tag in ("body", "frame", "site"):
                        place = origin + _numbers(child.get("pos", "0 0 0"))
                        places[child.get("name", "")] = place
                        if child.tag != "site":
                            visit(child, place)

            visit(world, np.zeros(3))
            sizes = {g.get("name", ""): _numbers(g.get("size", "")) for g in world.iter("geom")}
        return cls(joints=joints, nq=at[0], nv=at[1], places=places, sizes=sizes)


def _numbers(text: str) -> np.ndarray:
    return np.array([float(word) for word in text.split()])


def holds_demos(path: str | Path) -> bool:
    """Whether a file is one that :func:`read_demos` reads, and not a recording of manikin's.

    Raises:
        DataError: it is not HDF5.
    """
    if not Path(path).is_file():
        return False
    with open_hdf5(Path(path)) as file:
        return "format" not in file.attrs and any(name == "data" or name.startswith("traj_") for name in file)


def read_demos(path: str | Path) -> Demos:
    """Look into a file of robosuite's, robomimic's or ManiSkill's demonstrations.

    Raises:
        DataError: no such file, not HDF5, another layout, no environment named, or no demonstration in it.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"no file {path}")
    with open_hdf5(path) as file, reading(f"{path} is damaged"):
        if any(name.startswith("traj_") for name in file):
            return read_trajectories(path, file)
        if not isinstance(file.get("data"), h5py.Group):
            hint = "; it is a manikin recording: see manikin replay" if "format" in file.attrs else ""
            inside = ", ".join(sorted(file)[:4]) or "nothing"
            raise DataError(
                f"{path} has no group 'data' of demonstrations and no group 'traj_0': it holds {inside}{hint}"
            )
        data = file["data"]
        about = {key: plain(value) for key, value in data.attrs.items()}
        names = sorted((n for n in data if n.startswith("demo_")), key=lambda n: (len(n), n))
        lengths: dict[str, int] = {}
        for name in names:
            if "actions" not in data[name] or data[name]["actions"].ndim != 2:
                raise DataError(f"{path} is damaged: {name} has no actions (steps, size)")
            lengths[name] = len(data[name]["actions"])
        masks = {
            key: tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values[()])
            for key, values in file.get("mask", {}).items()
        }
    env, kwargs, version = _environment(about, path)
    if not lengths:
        raise DataError(f"{path} holds no demonstration: no group data/demo_...")
    named = kwargs.get("robots", kwargs.get("robot", "unknown"))
    config: Any = kwargs.get("controller_configs")
    config = config[0] if isinstance(config, list) and config else config
    return Demos(
        path=path,
        env=env,
        env_kwargs=kwargs,
        version=version,
        lengths=lengths,
        masks=masks,
        robots=tuple(map(str, named)) if isinstance(named, list) else (str(named),),
        controller=str(config.get("type", "unknown") if isinstance(config, dict) else kwargs.get("control", "unknown")),
    )


def _environment(about: Mapping[str, Any], path: Path) -> tuple[str, dict[str, Any], str]:
    """Name, options and version of the environment, from either layout's attributes."""
    needs = "attribute env_args (robomimic) or env and env_info (robosuite) of 'data', JSON"
    with reading(
        f"{path} does not say which environment it is from: needs {needs}; it has {', '.join(about) or 'none'}"
    ):
        if "env_args" in about:  # robomimic
            args = json.loads(about["env_args"])
            return str(args["env_name"]), dict(args.get("env_kwargs", {})), str(args.get("env_version", ""))
        info = json.loads(about.get("env_info", "{}"))
        env = str(about.get("env") or info["env_name"])
        kwargs = {k: v for k, v in info.items() if k != "env_name"}
        return env, kwargs, str(about.get("repository_version", ""))


def control_of(env_kwargs: Mapping[str, Any]) -> Control:
    """The controller that understands a recording's actions, from robosuite's ``controller_configs``.

    Raises:
        DataError: none is given, or it does something that manikin's controllers do not.
    """
    config: Any = env_kwargs.get("controller_configs")
    config = config[0] if isinstance(config, list) and len(config) == 1 else config
    if isinstance(config, dict) and "body_parts" in config:  # since 1.5; the only arm is the right one
        parts = config["body_parts"]
        config = parts.get("right", parts.get("arms", {}).get("right"))
    if not isinstance(config, dict) or "type" not in config:
        raise DataError(
            f"cannot read the recording's controller: controller_configs is {config!r}, expected a dictionary with "
            "'type'"
        )
    try:
        with reading("it"):
            return _osc(config)
    except ManikinError as error:
        raise DataError(f"the recording's controller {config['type']} cannot be matched: {error}") from None


def _osc(config: Mapping[str, Any]) -> Control:
    if config["type"] != "OSC_POSE":
        raise ConfigError(f"its type is {config['type']!r}; only 'OSC_POSE' can be played")
    for key, usual in (("impedance_mode", "fixed"), ("position_limits", None), ("orientation_limits", None)):
        if config.get(key, usual) != usual:
            raise ConfigError(f"{key} is {config[key]!r}; only {usual!r} can be played")
    low, high = (np.broadcast_to(np.asarray(config[k], float), (6,)) for k in ("output_min", "output_max"))
    if (low != -high).any() or len(set(high[:3])) > 1 or len(set(high[3:])) > 1 or (_input(config) != (-1, 1)):
        raise ConfigError("the ranges of its input and output must be symmetric, the same in x, y and z")
    stiffness, damping = np.unique(config["kp"]), np.unique(config.get("damping_ratio", config.get("damping", 1)))
    if len(stiffness) > 1 or len(damping) > 1:
        raise ConfigError("kp and damping_ratio must be the same in all directions")
    delta = config.get("control_delta", config.get("input_type", "delta") == "delta")
    return Control.of(
        "OSC_POSE",
        frame="base" if config.get("input_ref_frame") == "base" else "world",
        goal="measured" if delta else "absolute",
        kp=float(stiffness[0]),
        damping_ratio=float(damping[0]),
        pos=float(high[0]),
        rot=float(high[3]),
        uncouple=bool(config.get("uncouple_pos_ori", True)),
        ramp=float(config.get("ramp_ratio", 0.2)) if config.get("interpolation") == "linear" else 0.0,
    )


def _input(config: Mapping[str, Any]) -> tuple[float, float]:
    return float(config.get("input_min", -1)), float(config.get("input_max", 1))
