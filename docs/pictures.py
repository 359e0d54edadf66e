"""Draw the pictures of the docs: one per task into docs/images/tasks/, and the one of the README.

    python docs/pictures.py            # all
    python docs/pictures.py PickCube-v2
    python docs/pictures.py robots     # every robot, built in and with the maker's meshes where there are such
    python docs/pictures.py arenas
    python docs/pictures.py faucets
    python docs/pictures.py families   # a sheet per family, of the tasks' pictures that are there

A task is shown in the middle of its expert's episode. Run it when a task or a robot has changed its looks, and look at
what comes out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from manikin.arenas.empty import empty
from manikin.arenas.pegs import pegs
from manikin.arenas.square_table import square_table
from manikin.arenas.table import table
from manikin.arenas.two_bins import two_bins
from manikin.arenas.wall import wall
from manikin.arenas.wipe_table import wipe_table
from manikin.assets.pictures import read_picture
from manikin.env.env import Env
from manikin.env.make import make
from manikin.env.registry import task_class, task_families, task_ids
from manikin.env.task import Task
from manikin.errors import UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.props.faucet import FAUCETS
from manikin.render import make_renderer, tile, write_png
from manikin.render.files.caption import caption
from manikin.robots import arm, arms, robot
from manikin.scene.builder import SceneBuilder
from manikin.scene.robot import assemble
from manikin.spec.camera import CameraSpec

IMAGES = Path(__file__).parent / "images"
VIEW = CameraSpec(name="docs", pos=(0.64, 0.66, 0.58), target=(-0.16, 0.0, 0.24), fovy=0.8)
# tasks whose own camera for people shows the fronts, the holes, all of the rail, or the goal far ahead
SEEN_BY_PEOPLE = (
    "HomeClose-v1",
    "HomeNavigate-v1",
    "PrepareGroceries-v1",
    "SetTable-v1",
    "TidyHouse-v1",
    "HomeOpen-v1",
    "KitchenCloseDrawer-v1",
    "KitchenCloseMicrowave-v1",
    "KitchenOpenCabinet-v1",
    "KitchenTurnOnMicrowave-v1",
    "KitchenTurnOnSinkFaucet-v1",
    "KitchenTurnOnStove-v1",
    "CarryBox-v1",
    "InsertFlower-v1",
    "Excavate-v1",
    "Fill-v1",
    "Hang-v1",
    "InsertNISTPeg-v1",
    "LeggedStand-v1",
    "OpenCabinetDoor-v1",
    "OpenCabinetDrawer-v2",
    "PlaceAppleInBowl-v1",
    "PlugCharger-v1",
    "PokeCube-v1",
    "Pour-v1",
    "PullCubeTool-v1",
    "PushT-v1",
    "ReorientCube-v1",
    "RollBall-v1",
    "RotateInHand-v1",
    "RotateValve-v1",
    "TactileLock-v1",
    "TactilePeg-v1",
    "TriFingerRotateCube-v1",
    "TrackMotion-v1",
    "TransportBox-v1",
    "TurnFaucet-v1",
    "RouteCable-v1",
    "FoldCloth-v1",
    "Write-v1",
    "Pinch-v1",
)
# (task, robot, seed) of the README's picture, left to right and top to bottom
README = (
    ("PickCube-v2", "panda", 5),
    ("LiftPegUpright-v2", "panda", 1),
    ("PickCube-v2", "ur5e", 5),
    ("PickCube-v2", "xarm7", 1),
    ("PegInsertionSide-v2", "panda", 1),
    ("PickCube-v2", "so101", 1),
)

# tasks in an apartment, seen from its middle with what the robot handles
BESIDE = ("HomePick-v1", "HomePlace-v1")
LONG_S = 120.0  # episodes that last longer are shown at their start


def middle(task_id: str, robot: str | None = None, seed: int = 0, share: float = 0.75) -> Env:
    """An environment in the middle of the expert's episode: ``share`` of the way to the first success; at the start
    where there is no expert, or where an episode takes minutes."""
    kind = task_class(task_id)
    if kind.expert is Task.expert or kind.horizon_s > LONG_S:
        env = Env(kind, robot=robot, autoreset="disabled", terminate=False)
        env.reset(seed=[seed])
        return env
    reached = None
    for steps in (None, share):
        env = Env(kind, robot=robot, autoreset="disabled", terminate=False)
        env.reset(seed=[seed])
        expert = WaypointExecutor(env)
        for k in range(env.horizon if steps is None else round(steps * reached)):
            *_, info = env.step(expert.act())
            if steps is None and bool(info["success"]):
                reached = k + 1
                break
        reached = reached or env.horizon
    return env


def draw(env: Env, width: int, height: int) -> np.ndarray:
    view: CameraSpec | str = VIEW
    if env.task.id in SEEN_BY_PEOPLE or not env.robot.arm.tools:  # no tools: a robot that stands on the floor
        view = "human_camera"
    if env.task.id in BESIDE:
        view = beside(env)
    if env.robot.arm.name == "so101":  # a small robot
        view = CameraSpec(name="docs", pos=(0.26, 0.36, 0.27), target=(-0.08, 0.0, 0.09), fovy=0.76)
    if env.task.id.startswith(("WidowX", "Google")):  # in the world's frame of the original
        view = "human_camera"
    if len(env.robots) > 1:  # opposite each other
        view = "human_camera"
    model, data = env.model_data(0)
    renderer = make_renderer(samples=3, shadows=True)
    image = renderer.rgb(model, data, view, width=width, height=height)
    renderer.close()
    env.close()
    return image


def beside(env: Env) -> CameraSpec:
    """From above, from the middle of the apartment, on the robot and what it handles."""
    home = env.h.home.apartment
    seen = (env.h.robot.root_pose[0, :2] + env.h.thing.pos[0, :2]).numpy() / 2
    away = (np.array(home.low) + home.high) / 2 - seen
    place = seen + 1.8 * away / np.linalg.norm(away)
    return CameraSpec(name="docs", pos=(*place.tolist(), 2.1), target=(*seen.tolist(), 0.75), fovy=0.8)


def different(steps: int | None = None) -> np.ndarray:
    """Rows of two environments whose things differ, each at the start and at the end of the expert's episode, or after
    some steps of it."""
    views = {
        "OpenCabinetDrawer-v2": CameraSpec(name="docs", pos=(-0.25, 0.95, 0.75), target=(0, 0, 0.18), fovy=0.8),
        "PickSingleYCB-v2": CameraSpec(name="docs", pos=(0.5, 0.6, 0.5), target=(-0.1, 0, 0.15), fovy=0.8),
    }
    pictures, renderer = [], make_renderer()
    for task_id, view in views.items():
        env = make(task_id, num_envs=7, autoreset="disabled", terminate=False)
        env.reset(seed=0)
        expert = WaypointExecutor(env)
        for count in (0, steps or env.horizon):
            for _ in range(count):
                env.step(expert.act())
            for row in (1, 2, 5, 6):
                model, data = env.model_data(row)
                pictures.append(renderer.rgb(model, data, view, width=200, height=170))
    renderer.close()
    return tile(pictures, columns=4)


def portrait(word: str, size: int = 140) -> np.ndarray:
    """The robot of a word at rest, seen from ahead and its left, as large as it fits."""
    chosen = robot(word)
    built = assemble(chosen.arm, chosen.gripper, menagerie=chosen.menagerie)
    spec = mujoco.MjSpec()
    frame = spec.worldbody.add_frame(pos=chosen.arm.base_pos, quat=chosen.arm.base_quat)
    spec.attach(built.spec, frame=frame, prefix="robot/")
    spec.worldbody.add_light(pos=(1, 1, 3), dir=(-0.3, -0.3, -1))
    model = spec.compile()
    data = mujoco.MjData(model)
    for name, q in zip(built.joints, built.qpos(), strict=True):
        data.qpos[model.joint(f"robot/{name}").qposadr[0]] = q
    mujoco.mj_forward(model, data)
    seen = model.geom_group == 2
    radius = 0.7 * model.geom_rbound[seen, None]
    low, high = (data.geom_xpos[seen] - radius).min(0), (data.geom_xpos[seen] + radius).max(0)
    middle, away = (low + high) / 2, 1.3 * float(np.linalg.norm(high - low))
    eye = middle + away * np.array([0.75, 0.6, 0.28])
    view = CameraSpec(name="portrait", pos=tuple(eye), target=tuple(middle), fovy=0.74)
    renderer = make_renderer(samples=2)
    image = renderer.rgb(model, data, view, width=size, height=size)
    renderer.close()
    return image


class Bare(Task):
    """A robot in an arena.

    Success: never.
    """

    id = "Bare-v0"
    instruction = "stay"
    horizon_s = 1.0
    arena: Callable[[SceneBuilder], Any]

    def scene(self, b: SceneBuilder) -> dict[str, Any]:
        type(self).arena(b)
        return {"robot": b.robot_handles[0] if b.robot_handles else b.robot()}

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h: Any) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> dict[str, Any]:
        return {}


def named(word: str) -> np.ndarray:
    """The portrait with its robot word below it."""
    return caption(np.pad(portrait(word, 146), ((0, 16), (0, 0), (0, 0)), mode="edge"), [word], scale=1, bottom=True)


def arenas(most: int | None = None) -> np.ndarray:
    """Every arena, or the first ones, as people see it."""
    wipe = partial(wipe_table, marks=1, radius=0.02)
    makers = {"table": table, "square_table": square_table, "two_bins": two_bins, "pegs": pegs, "wipe_table": wipe}
    pictures = []
    for name, maker in list({**makers, "wall": wall, "empty": empty}.items())[:most]:
        env = Env(type("Shown", (Bare,), {"arena": staticmethod(maker)}), robot="panda")
        env.reset(seed=0)
        pictures.append(caption(env.image(width=240, height=180), [name], scale=1))
    return tile(pictures, columns=4)


def faucets(most: int | None = None) -> np.ndarray:
    """Every faucet, or the first ones, closed, from where the robot is and its left."""
    view, pictures = CameraSpec(name="docs", pos=(-0.38, 0.22, 0.34), target=(0, 0, 0.14), fovy=0.8), []
    renderer = make_renderer(samples=2, shadows=True)
    for name, faucet in list(FAUCETS.items())[:most]:
        spec = faucet.build()
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 1], rgba=(0.66, 0.55, 0.44, 1))
        spec.worldbody.add_light(pos=(-1, 1, 3), dir=(0.3, -0.3, -1))
        model = spec.compile()
        data = mujoco.MjData(model)
        data.qpos[0] = faucet.closed
        mujoco.mj_forward(model, data)
        pictures.append(caption(renderer.rgb(model, data, view, width=160, height=150), [name], scale=1))
    renderer.close()
    return tile(pictures, columns=8)


def family(tasks: list[str]) -> np.ndarray:
    """The pictures of tasks at half their size, side by side, each with the task's id."""
    shown = []
    for task_id in tasks:
        picture = read_picture(IMAGES / "tasks" / f"{task_id}.png", what="picture of a task")
        high, wide = picture.shape[0] // 2, picture.shape[1] // 2
        small = picture[: 2 * high, : 2 * wide].reshape(high, 2, wide, 2, 3).mean((1, 3)).astype(np.uint8)
        shown.append(caption(small, [task_id], scale=1))
    return tile(shown, columns=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shown = ("readme", "different", "robots", "arenas", "faucets", "families")
    valid = (*task_ids(), *shown)
    parser.add_argument("names", nargs="*", default=valid, help="default all")
    parser.add_argument("--quick", action="store_true", help="one of each kind, to see that it runs")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    options = parser.parse_args()
    for name in options.names:
        if name not in valid:
            raise UnknownNameError("picture", name, valid)
    torch.set_num_threads(1)
    most = 1 if options.quick else None
    for task_id in [name for name in options.names if name in task_ids()][:most]:
        write_png(options.out / "tasks" / f"{task_id}.png", draw(middle(task_id), 480, 360))
    if "different" in options.names:
        write_png(options.out / "different-objects.png", different(steps=most))
    if "readme" in options.names:
        pictures = [draw(middle(task, word, seed), 320, 240) for task, word, seed in README[:most]]
        write_png(options.out / "tasks.png", tile(pictures, columns=3))
    if "robots" in options.names:
        shown = [name for name in arms() if not name.startswith(("aloha_", "bi_so101_")) and name != "baxter_left"][
            :most
        ]
        pairs = [(name, f"{name}:menagerie") if arm(name).menagerie and not most else (name,) for name in shown]
        write_png(options.out / "robots.png", tile([named(word) for pair in pairs for word in pair], columns=7))
    if "arenas" in options.names:
        write_png(options.out / "arenas.png", arenas(most))
    if "faucets" in options.names:
        write_png(options.out / "faucets.png", faucets(most))
    if "families" in options.names:
        for name, tasks in list(task_families().items())[:most]:
            write_png(options.out / "families" / f"{name}.png", family(tasks))


if __name__ == "__main__":
    main()
