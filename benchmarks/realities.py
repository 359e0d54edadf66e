"""Five "realities" for the proof that matching makes simulation rank policies right, and simulators matched to them.

A reality is the task PushCube with servos, delay, camera, light, table and arm colour of its own, drawn with a seed
that was written down before any policy was run. Who matches a simulator to it knows what people know of a real table:
motions of the arm that they asked for and measured, the joint positions, and photographs.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

import manikin
from manikin.env.observe import Vision
from manikin.render import SegmentationTable, make_renderer, write_png
from manikin.render.align import align_camera, silhouette
from manikin.rng import EpisodeRng
from manikin.sense.pixels import Photograph
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import LightLook, Looks, Surface
from manikin.spec.vary import Choice
from manikin.sysid import Trajectories, Trajectory, identify
from manikin.sysid.result import save

__all__ = ["CAMERA", "Reality", "Simulator", "drawn", "identified", "matched", "nominal", "real"]

TASK, ROBOT, CONTROL = "PushCube-v2", "panda", "joint_delta_pos"
SEED, COUNT = 20_261_123, 5
KP, KD = 1000.0, 100.0  # of the panda's servos
CAMERA = CameraSpec(name="near", pos=(0.6, 0.0, 0.4), target=(0.08, 0.0, 0.0), fovy=0.8, width=64, height=64)
"""Where it was meant to be."""
PHOTO = 256  # [pixels] each way
ENCODERS = 5e-4  # [rad] spread of what a joint's measured position is off
THINGS = ("robot", "cube")
TEXTURES = ("plain", "wood", "tiles", "noise")


@dataclass(frozen=True, kw_only=True)
class Reality:
    """What a policy meets, and nobody who simulates it knows.

    Attributes:
        kp, kd: (7,) of the servos [N m/rad], [N m s/rad]. delay: of the servos [s]. friction: of the joints [N m].
        shift, aim: (3,) by how much the camera and what it looks at are off [m].
        light: factor of the lights' strength. light_turn: (3,) rotation of their direction [rad].
        table: (3,) its colour. texture: a word of it. arm: factor of the arm's brightness.
    """

    kp: tuple[float, ...]
    kd: tuple[float, ...]
    delay: float
    friction: float
    shift: tuple[float, ...]
    aim: tuple[float, ...]
    light: float
    light_turn: tuple[float, ...]
    table: tuple[float, ...]
    texture: str
    arm: float

    @property
    def camera(self) -> CameraSpec:
        pos, target = np.add(CAMERA.pos, self.shift), np.add(CAMERA.target, self.aim)
        return dataclasses.replace(CAMERA, pos=tuple(map(float, pos)), target=tuple(map(float, target)))

    @property
    def looks(self) -> Looks:
        return Looks(
            lights=LightLook(intensity=_always(self.light), turn=_always(*self.light_turn)),
            surfaces={
                "table": Surface(colour=_always(*self.table), textures=(self.texture,), repeat=(4.0,)),
                "robot": Surface(brightness=_always(self.arm)),
            },
        )

    def robot(self, folder: Path) -> str:
        """A robot word for it."""
        lines = ["format = 1", f'robot = "{ROBOT}"', f"delay = {self.delay!r}"]
        for k, (kp, kd) in enumerate(zip(self.kp, self.kd, strict=True)):
            lines += [f"[joints.joint{k + 1}]", f"kp = {kp!r}", f"kd = {kd!r}", f"friction = {self.friction!r}"]
        file = folder / "robot.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
        return str(file)


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """What an evaluation simulates."""

    robot: str = ROBOT
    camera: CameraSpec = CAMERA
    looks: Looks | None = None
    photograph: Path | None = None
    task: Any = TASK
    config: Mapping[str, float] = field(default_factory=dict)
    device: str = "cpu"

    def make(self, rows: int, *, sees: bool, **more: Any) -> Any:
        """Environments for a policy that sees, or one that is told the state."""
        options: dict[str, Any] = {"control": CONTROL, "robot": self.robot, "autoreset": "disabled", **more}
        options |= {"config": dict(self.config), "device": self.device, "looks": self.looks}
        if sees:
            stages = [Photograph(str(self.photograph), keep=THINGS)] if self.photograph is not None else []
            options |= {"observe": "rgb", "vision": Vision(cameras=[self.camera], stages=stages)}
        return manikin.make(self.task, num_envs=rows, **options)


def _always(*values: float) -> Choice:
    return Choice((values if len(values) > 1 else values[0],))


def drawn(seed: int = SEED) -> list[Reality]:
    """The realities, from the seed alone."""
    rng = EpisodeRng(torch.full((COUNT,), seed), torch.arange(COUNT))

    def of(name: str, low: float, high: float, *shape: int) -> list[Any]:
        return rng.uniform(name, low, high, shape).double().round(decimals=4).tolist()

    soft, own = of("soft", math.log(0.3), math.log(0.8)), of("own", -0.2, 0.2, 7)
    damp, delay, friction = of("damp", 0.5, 1.2, 7), of("delay", 0.0, 0.04), of("friction", 0.0, 0.6)
    shift, aim = of("shift", -0.04, 0.04, 3), of("aim", -0.03, 0.03, 3)
    light, turn = of("light", 0.6, 1.3), of("turn", -0.5, 0.5, 3)
    table, arm = of("table", 0.15, 0.85, 3), of("arm", 0.6, 1.0)
    which = [min(len(TEXTURES) - 1, int(x)) for x in of("texture", 0.0, len(TEXTURES))]
    found = []
    for k in range(COUNT):
        kp = tuple(round(KP * math.exp(soft[k] + x), 1) for x in own[k])
        kd = tuple(round(KD * x * math.exp(soft[k] / 2), 1) for x in damp[k])
        found.append(
            Reality(
                kp=kp,
                kd=kd,
                delay=delay[k],
                friction=friction[k],
                shift=tuple(shift[k]),
                aim=tuple(aim[k]),
                light=light[k],
                light_turn=tuple(turn[k]),
                table=tuple(table[k]),
                texture=TEXTURES[which[k]],
                arm=arm[k],
            )
        )
    return found


def nominal() -> Simulator:
    """The simulator as it is before anything is matched."""
    return Simulator()


def real(reality: Reality, folder: Path) -> Simulator:
    """The reality itself, as something to make environments of."""
    return Simulator(robot=reality.robot(folder), camera=reality.camera, looks=reality.looks)


# ---- system identification -------------------------------------------------------------------------------------------


def recorded(reality: Reality, folder: Path, *, motions: int = 6, steps: int = 40) -> Trajectories:
    """Motions of the real arm: slow waves of all joints, as asked and as measured by the joints."""
    env = real(reality, folder).make(motions, sees=False, horizon=steps + 1, terminate=False)
    env.reset(seed=list(range(motions)))
    rng = np.random.default_rng(SEED)  # house: random, the motions that a person chooses
    waves = rng.uniform(0.5, 2.0, (motions, 7)), rng.uniform(0, 2 * np.pi, (motions, 7))
    size = rng.uniform(0.2, 0.6, (motions, 7))
    asked, reached = [], []
    for step in range(steps):
        joints = env.h.robot.arm_qpos.double().numpy()
        reached.append(joints + rng.normal(0.0, ENCODERS, joints.shape))
        action = np.zeros((motions, env.single_action_space.shape[0]), np.float32)
        action[:, :7] = size * np.cos(waves[0] * 2 * np.pi * step / 20 + waves[1])
        asked.append(action.astype(float))
        env.step(torch.from_numpy(action))
    control_hz = env.control_hz
    env.close()
    items = [
        Trajectory(name=f"motion {k}", actions=np.array(asked)[:, k, :7], qpos=np.array(reached)[:, k])
        for k in range(motions)
    ]
    return Trajectories(
        robot=ROBOT, control=CONTROL, control_hz=control_hz, units="normalized", source="a reality", items=items
    )


def identified(reality: Reality, folder: Path, *, quick: bool = False) -> str:
    """The robot word that system identification finds from recorded motions."""
    motions = recorded(reality, folder, **({"motions": 2, "steps": 8} if quick else {}))
    vary = ["kp=60:1500:log", "kd=10:300:log", "delay=0:0.15", "friction=0:3:tied"]
    found = identify(motions, vary[2:3] if quick else vary, physics_hz=100, methods=["squares"])
    print(found.summary())
    return str(save(found, folder / "sysid"))


# ---- visual matching -------------------------------------------------------------------------------------------------


def matched(reality: Reality, folder: Path) -> tuple[CameraSpec, Path, Looks, dict[str, float]]:
    """Camera, photograph of the empty table, brightness of arm and cube, from two photographs of a reality.

    One shows arm and cube, and a person has marked both; the other is taken without them. The last value says how well
    it went: how well the outlines agree, and how far the camera that was found is from the true one [m].
    """
    renderer = make_renderer("auto", outputs=("rgb", "depth", "segmentation"))
    there = real(reality, folder).make(1, sees=False)
    there.reset(seed=0)
    model, data = there.model_data(0)
    camera, names = reality.camera.resized(PHOTO, PHOTO), SegmentationTable.of(model)
    whole = renderer.images(model, data, camera)["rgb"]
    marked = {thing: silhouette(model, data, camera, names.ids(thing=thing), renderer) for thing in THINGS}
    table = folder / "table.png"
    write_png(table, renderer.images(_without(model, THINGS), data, camera)["rgb"])
    here = nominal().make(1, sees=False)
    here.reset(seed=0)
    own, state = here.model_data(0)
    state.qpos[:7] = data.qpos[:7]  # joints are measured
    mujoco.mj_forward(own, state)
    found = align_camera(own, state, CAMERA.resized(PHOTO, PHOTO), marked["robot"], renderer=renderer)
    ours, surfaces = renderer.images(own, state, found.camera)["rgb"], {}
    for thing, mask in marked.items():
        shape = silhouette(own, state, found.camera, SegmentationTable.of(own).ids(thing=thing), renderer)
        if mask.any() and shape.any():
            ratio = float(whole[mask].mean() / max(1.0, ours[shape].mean()))
            surfaces[thing] = Surface(brightness=_always(round(min(2.0, max(0.3, ratio)), 3)))
    renderer.close()
    there.close()
    here.close()
    error = float(np.linalg.norm(np.subtract(found.camera.pos, reality.camera.pos)))
    twin = dataclasses.replace(found.camera.resized(CAMERA.width, CAMERA.height), name=CAMERA.name)
    return twin, table, Looks(surfaces=surfaces), {"agreement": found.agreement, "error_m": error}


def _without(model: Any, things: Sequence[str]) -> Any:
    hidden = copy.deepcopy(model)
    for name in things:
        geoms = SegmentationTable.of(model).ids(thing=name) - 1  # row 0 is the background
        hidden.geom_rgba[geoms, 3], hidden.geom_matid[geoms] = 0, -1
    return hidden


if __name__ == "__main__":
    print(json.dumps([dataclasses.asdict(one) for one in drawn()], indent=1))
