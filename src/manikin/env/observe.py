"""What a row sees, by words: ``state``, ``policy``, ``state_dict``, or what cameras give, joined by ``+``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from manikin.env.task import Task
from manikin.errors import ConfigError, UnknownNameError
from manikin.render.rig import CameraRig
from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.sense.imperfect import SensorSuite
from manikin.sense.pointcloud import PointCloudSpec, from_cameras
from manikin.sense.voxel import VoxelSpec, voxelize
from manikin.sim.world import World
from manikin.spec.camera import CameraSpec

__all__ = [
    "CAMERA_WORDS",
    "CLOUD_WORDS",
    "STATE_WORDS",
    "Observer",
    "Vision",
    "holds",
    "merge",
    "own_names",
    "parse",
    "space_of",
]

STATE_WORDS = {"state": ("policy", "privileged"), "policy": ("policy",), "state_dict": ("policy", "privileged")}
CAMERA_WORDS = ("rgb", "depth", "segmentation", "normals")
_EVERY = np.zeros(0, bool)  # stands for all rows
CLOUD_WORDS = ("pointcloud", "voxel")


def parse(word: str) -> tuple[str, ...]:
    """The parts of an observation word. Raises :class:`UnknownNameError` listing what there is."""
    parts = tuple(word.split("+"))
    if len(parts) == 1 and word in STATE_WORDS:
        return parts
    joined = (*CAMERA_WORDS, *CLOUD_WORDS, "state")
    for part in parts:
        if part not in joined:
            hint = "Join camera outputs, and state for privileged values beside them, with '+'."
            valid = joined if len(parts) > 1 else (*STATE_WORDS, *joined)
            raise UnknownNameError("observation", part, dict.fromkeys(valid), hint=hint)
    return parts


def holds(word: str, path: str, vision: Vision) -> bool:
    """Whether an observation of these words has a place, named as for sensors: ``policy/qpos``, ``cameras/X/rgb``."""
    parts, (group, *inside) = parse(word), path.split("/")
    if group == "privileged":
        return word in STATE_WORDS or "state" in parts
    if group == "cameras":
        seen = {*parts} & {*CAMERA_WORDS}
        return bool(seen) and inside[0] in vision.names and inside[-1] in {*seen, "K", "T"}
    return group in ("policy", *parts)


def own_names(robot: Robot, robots: Sequence[Robot]) -> tuple[str, str]:
    """Names of a robot's joint positions and velocities: ``qpos``, or ``robot0_qpos`` where there are several."""
    before = f"{robot.name}_" if len(robots) > 1 else ""
    return f"{before}qpos", f"{before}qvel"


@dataclass(frozen=True, kw_only=True)
class Vision:
    """What observations with cameras are made of.

    Attributes:
        cameras: names of declared ones, and :class:`CameraSpec` of further ones (one of a declared name replaces it);
            None for the task's ``base_camera``.
        size: width and height [pixels] of all of them; None for each camera's own.
        renderer: see :func:`manikin.render.make_renderer`.
        pointcloud: of which cameras, cropped to what (by default what is above and around the middle of the table) and
            sampled how; ``voxel`` counts every point of the same cameras.
        voxel: the grid of ``voxel``.
    """

    cameras: Sequence[CameraSpec | str] | None = None
    size: tuple[int, int] | None = None
    renderer: str = "auto"
    # Without a crop, evenly spread points would nearly all lie on the floor, which goes on for metres.
    pointcloud: PointCloudSpec = field(
        default_factory=lambda: PointCloudSpec(low=(-0.5, -0.6, -0.02), high=(0.5, 0.6, 0.8))
    )
    voxel: VoxelSpec = field(default_factory=lambda: VoxelSpec(low=(-0.3, -0.4, -0.02), high=(0.3, 0.4, 0.5)))

    @classmethod
    def of(cls, given: Any) -> Vision:
        """What was given, by default a plain one; or what :meth:`describe` gave, also after a way through JSON.

        Raises:
            ConfigError: it is something else.
        """
        if isinstance(given, Mapping):
            return cls._described(given)
        if given is not None and not isinstance(given, cls):
            raise ConfigError(f"vision must be a Vision, not {given!r}")
        return given or cls()

    @classmethod
    def _described(cls, plain: Mapping[str, Any]) -> Vision:
        try:
            fields = {name: _tuples(value) for name, value in plain.items()}
            if fields["cameras"] is not None:
                cameras = (c if isinstance(c, str) else CameraSpec(**c) for c in fields["cameras"])
                fields["cameras"] = tuple(cameras)
            clouds = {"pointcloud": PointCloudSpec(**fields["pointcloud"]), "voxel": VoxelSpec(**fields["voxel"])}
            return cls(**{**fields, **clouds})
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"vision must be a Vision, not {plain!r}, which does not describe one: {error!r}"
            ) from error

    def describe(self) -> dict[str, Any]:
        """All of it as plain values for JSON; :meth:`of` reads them."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self), default=lambda number: number.tolist()))
        return plain

    def over(self, other: Vision) -> Vision:
        """This one, and what it leaves at its default as in the other: a size alone leaves the other's cameras. A name
        of a camera that the other brings as a :class:`CameraSpec` means that."""
        brought = {c.name: c for c in other.cameras or () if isinstance(c, CameraSpec)}
        plain, changed = Vision(), dict[str, Any]()
        for one in dataclasses.fields(self):
            mine = getattr(self, one.name)
            changed[one.name] = getattr(other, one.name) if mine == getattr(plain, one.name) else mine
        if self.cameras is not None:
            changed["cameras"] = tuple(brought.get(c, c) if isinstance(c, str) else c for c in self.cameras)
        return Vision(**changed)

    def declare(self, b: SceneBuilder) -> None:
        """Add the cameras that robots bring and those given as specs to a scene being built."""
        for robot in b.robot_handles:
            b.robot_cameras(robot)
        for camera in self.cameras or ():
            if isinstance(camera, CameraSpec):
                b.camera(camera, replace=True)
        if self.size is not None:
            for name in self.names:
                b.camera(_declared(name, b.cameras).resized(*self.size), replace=True)

    @property
    def names(self) -> list[str]:
        """Of the cameras that are looked through."""
        return [c if isinstance(c, str) else c.name for c in self.cameras or ("base_camera",)]

    def rig(self, parts: tuple[str, ...], world: World, declared: Mapping[str, CameraSpec]) -> CameraRig | None:
        """The cameras for an observation of these parts; None when none are needed."""
        if not set(parts) & {*CAMERA_WORDS, *CLOUD_WORDS}:
            return None
        chosen = [_declared(name, declared) for name in self.names]
        outputs = [w for w in CAMERA_WORDS if w in parts]
        if set(parts) & set(CLOUD_WORDS):
            outputs = [w for w in CAMERA_WORDS if w in (*outputs, "rgb", "depth", "segmentation")]
        return CameraRig(world, chosen, outputs, backend=self.renderer)


def _tuples(plain: Any) -> Any:
    """Lists as tuples, inside as well."""
    if isinstance(plain, Mapping):
        return {name: _tuples(value) for name, value in plain.items()}
    return tuple(_tuples(value) for value in plain) if isinstance(plain, list | tuple) else plain


def _declared(name: str, cameras: Mapping[str, CameraSpec]) -> CameraSpec:
    if name not in cameras:
        raise UnknownNameError("camera", name, cameras)
    return cameras[name]


class Observer:
    """Makes observations of the rows in view; what it returns is owned by the receiver.

    ``state`` and ``policy`` are one flat float32 tensor; ``state_dict`` keeps the names. With cameras the observation
    is a dict: ``policy`` (named; joint positions, velocities and what a real robot knows), ``cameras`` (per camera the
    outputs asked for, with K and T), ``pointcloud``, ``voxel``, and ``privileged`` only with ``state``.

    Args:
        rng: the random streams of rows (None for all), at their present step when asked.
        sensors: what each sensor does to the truth, one call of the suite per control step.
        masks: rows are chosen by masks, as on a device.
    """

    def __init__(
        self,
        word: str,
        task: Task,
        h: Any,
        robots: Sequence[Robot],
        *,
        vision: Vision,
        rig: CameraRig | None,
        rng: Callable[[np.ndarray | None, bool], EpisodeRng],
        sensors: SensorSuite | None = None,
        masks: bool = False,
    ) -> None:
        self.word, self.parts, self.rig = word, parse(word), rig
        self._suite, self.carry = sensors, dict[str, Tensor]()
        n, device = robots[0].scope.world.num_worlds, robots[0].scope.device
        self._fresh = np.ones(n, bool)  # rows whose sensors have seen nothing yet
        self._masks = masks
        self._masked_fresh = torch.ones(n, dtype=torch.bool, device=device)  # the same, where rows are chosen by masks
        self._before: dict[str, Tensor] = {}
        self._task, self._h, self._vision, self._rng = task, h, vision, rng
        self._own = [(own_names(robot, robots), robot) for robot in robots]
        self.flat = word in ("state", "policy")

    @property
    def names(self) -> list[str]:
        """The name of every column of a flat observation, ``group/name[i]``; empty for the others."""
        if not self.flat:
            return []
        out, groups = [], self.groups()
        for group in STATE_WORDS[self.word]:
            for name, value in groups[group].items():
                width = value[0].numel()
                out += [f"{group}/{name}"] if width == 1 else [f"{group}/{name}[{i}]" for i in range(width)]
        return out

    def groups(self) -> dict[str, Mapping[str, Tensor]]:
        """Named tensors of the rows in view, borrowed: ``policy`` and ``privileged``."""
        seen = self._task.observe(self._h)
        policy: dict[str, Tensor] = {}
        for (qpos, qvel), robot in self._own:
            policy[qpos], policy[qvel] = robot.qpos, robot.qvel
        policy |= seen.get("policy", {})
        return {"policy": policy, "privileged": seen.get("privileged", {})}

    def begin(self, rows: np.ndarray | Tensor) -> None:
        """An episode starts in these rows, numbers or a mask: their sensors forget."""
        if isinstance(rows, Tensor):
            self._masked_fresh |= rows
        else:
            self._fresh[rows] = True

    def rewind(self) -> None:
        """Take back what the last call with a mask did to the sensors' memory."""
        for name, value in self._before.items():
            (self._masked_fresh if name == "" else self.carry[name]).copy_(value)

    def __call__(self, rows: np.ndarray | None = None, *, still: np.ndarray | Tensor | None = _EVERY) -> Any:
        """Observe the rows in view, which are ``rows`` (None for all).

        ``still`` (N,) bool are those that made no step since the last call, None for none of them; their sensors say
        again what they said. By default nothing moved. As a tensor it is a mask on the device, and nothing is waited
        for.
        """
        groups = self.groups()
        if self.flat and self._suite is None:
            return _flatten([v for group in STATE_WORDS[self.word] for v in groups[group].values()])
        named: dict[str, Any] = {g: {k: v.float().clone() for k, v in values.items()} for g, values in groups.items()}
        if self.rig is not None:
            if "state" not in self.parts:
                del named["privileged"]
            named |= self._see(rows)
        if self._suite is not None:
            if isinstance(still, Tensor):
                named = self._sense_masked(named, still)
            elif self._masks:
                named = self._sense_masked(named, torch.ones_like(self._masked_fresh))
            else:
                named = self._sense(named, rows, still)
        if self.flat:
            return _flatten([v for group in STATE_WORDS[self.word] for v in named[group].values()])
        return named

    def _sense(self, truth: dict[str, Any], rows: np.ndarray | None, still: np.ndarray | None) -> dict[str, Any]:
        """The truth as the sensors give it."""
        assert self._suite is not None
        n = len(self._fresh)
        index = np.arange(n) if rows is None else rows
        fresh, at = self._fresh[index], torch.from_numpy(index)
        active = fresh if still is _EVERY else fresh | (True if still is None else ~still[index])
        if not self.carry:
            made = self._suite.start(truth, self._rng(rows, False))
            self.carry = {k: v.new_zeros(n, *v.shape[1:]) for k, v in made.items()}
        carry = {k: v[at] for k, v in self.carry.items()}
        if fresh.any():
            made, new = self._suite.start(truth, self._rng(rows, False)), torch.from_numpy(fresh)
            carry = {k: torch.where(new.view(-1, *[1] * (v.ndim - 1)), made[k], v) for k, v in carry.items()}
        if not active.any():
            return self._suite.read(carry, truth)
        seen, carry = self._suite(carry, truth, self._rng(rows, True), torch.from_numpy(active))
        for k, v in carry.items():
            self.carry[k][at] = v
        self._fresh[index] = False
        return seen

    def _sense_masked(self, truth: dict[str, Any], still: Tensor) -> dict[str, Any]:
        """The truth as the sensors give it, for all rows; the same results as row by row."""
        assert self._suite is not None
        fresh, episode = self._masked_fresh, self._rng(None, False)
        made = self._suite.start(truth, episode)
        if not self.carry:
            self.carry = {k: torch.zeros_like(v) for k, v in made.items()}
        if not self._before:
            self._before = {name: torch.zeros_like(value) for name, value in {"": fresh, **self.carry}.items()}
        for name, value in {"": fresh, **self.carry}.items():
            self._before[name].copy_(value)
        carry = {k: torch.where(fresh.view(-1, *[1] * (v.ndim - 1)), made[k], v) for k, v in self.carry.items()}
        seen, carry = self._suite(carry, truth, self._rng(None, True), fresh | ~still)
        for k, v in carry.items():
            self.carry[k].copy_(v)
        fresh.zero_()
        return seen

    def _see(self, rows: np.ndarray | None) -> dict[str, Any]:
        assert self.rig is not None
        images, parts = self.rig.render(rows), self.parts
        out: dict[str, Any] = {}
        if set(parts) & set(CLOUD_WORDS):
            spec = self._vision.pointcloud
            if "pointcloud" in parts:
                out["pointcloud"] = from_cameras(images, spec, self._rng(rows, True)).as_dict()
            if "voxel" in parts:  # from every point: a fixed count or a crop would leave cells of what is seen empty
                every = from_cameras(images, PointCloudSpec(count=None, cameras=spec.cameras))
                out["voxel"] = voxelize(every, self._vision.voxel).as_dict()
        if set(parts) & set(CAMERA_WORDS):
            wanted = {*parts, "K", "T"}
            out["cameras"] = {n: {k: v for k, v in seen.items() if k in wanted} for n, seen in images.items()}
        return out


def _flatten(values: Sequence[Tensor]) -> Tensor:
    """One float32 tensor (n, D); a new tensor the caller owns."""
    columns = []
    for value in values:
        if value.dtype != torch.float32:
            value = value.float()
        columns.append(value if value.ndim == 2 else value.reshape(len(value), -1))
    return torch.cat(columns, 1)


def merge(whole: Any, part: Any, at: Tensor) -> Any:
    """``whole`` with the rows ``at`` replaced by ``part``, as new tensors; nested dicts alike."""
    if isinstance(whole, Mapping):
        return {k: merge(whole[k], part[k], at) for k in whole}
    out = whole.clone()
    out[at] = part
    return out


def space_of(observation: Any) -> gymnasium.Space:
    """Space of one row of a tensor (n, ...) or a nested dict of them."""
    if isinstance(observation, Mapping):
        return gymnasium.spaces.Dict({k: space_of(v) for k, v in observation.items()})
    shape, kind = tuple(observation.shape[1:]), torch.empty(0, dtype=observation.dtype, device="cpu").numpy().dtype
    if kind == np.uint8:
        return gymnasium.spaces.Box(0, 255, shape, np.uint8)
    if kind.kind == "b":
        return gymnasium.spaces.MultiBinary(shape)
    if kind.kind in "iu":
        return gymnasium.spaces.Box(0, np.iinfo(kind).max, shape, kind.type)
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)
