"""Draw pictures of the docs that show moments of episodes, or what a policy sees there.

    python docs/moments.py             # all
    python docs/moments.py turning

Run it when an expert, a policy that comes along or a robot has changed, and look at what comes out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.env.make import make
from manikin.env.observe import Vision
from manikin.env.registry import task_class
from manikin.errors import UnknownNameError
from manikin.eval.protocol import load_protocol
from manikin.fidelity.simulation.film import FidelityFilm
from manikin.fidelity.simulation.rollout import TaskSimulation
from manikin.fidelity.simulation.settings import Settings
from manikin.plan.executor import WaypointExecutor
from manikin.policy.choices import policy_maker
from manikin.render import make_renderer, tile, write_png
from manikin.render.files.caption import caption
from manikin.spec.camera import CameraSpec

IMAGES = Path(__file__).parent / "images"
PLAYED: dict[str, Any] = {"autoreset": "disabled", "terminate": False}
SHOWN = ("pour", "fidelity", "sim-to-real", "touch", "walking", "turning", "carrying")


def pouring(quick: bool) -> np.ndarray:
    """The example of pouring: before the grasp, lifted, while it pours and at the end."""
    env = make(str(Path(__file__).parents[1] / "examples" / "pour.py"), autoreset="disabled", terminate=False)
    view = CameraSpec(name="docs", pos=(0.2, 0.62, 0.42), target=(-0.08, 0.0, 0.08), fovy=0.62)
    env.reset(seed=0)
    expert, pictures, renderer = WaypointExecutor(env), [], make_renderer(samples=3, shadows=True)
    for step in range(1 if quick else 141):
        env.step(expert.act())
        if quick or step in (20, 55, 112, 140):
            model, data = env.model_data(0)
            pictures.append(renderer.rgb(model, data, view, width=320, height=240))
    renderer.close()
    return tile(pictures, columns=4)


def touched(quick: bool) -> np.ndarray:
    """TactilePeg while the peg stands on the rim, 3 mm off along the gripper's opening, and both prints."""
    config = {"search": "none", "resolution": (48, 45)}
    env = make("TactilePeg-v1", config=config, **PLAYED)
    env.reset(seed=0)
    off = torch.cat([env.h.said.value + torch.tensor([0.0, 0.003]), torch.zeros(1, 1)], 1)
    env.h.block.set_pose(off, torch.tensor([1.0, 0.0, 0.0, 0.0]))
    expert = WaypointExecutor(env)
    for _ in range(1 if quick else 80):
        env.step(expert.act())
    model, data = env.model_data(0)
    renderer = make_renderer(samples=3, shadows=True)
    view = CameraSpec(name="docs", pos=(0.14, 0.16, 0.1), target=(*off[0, :2].tolist(), 0.03), fovy=0.7)
    shown = [renderer.rgb(model, data, view, width=320, height=240)]
    renderer.close()
    depth = env.task.prints(env.h)[0][0].numpy()  # (2, H, W) [m]
    for share in depth / max(float(depth.max()), 1e-9):
        colour = np.stack([255 * share, 190 * share**2, 40 + 60 * (1 - share)], -1).astype(np.uint8)
        shown += [np.full((240, 12, 3), 255, np.uint8), np.kron(colour, np.ones((5, 5, 1), np.uint8))]
    env.close()
    return np.concatenate(shown, 1)


def moments(
    task: str, who: str, camera: str, *, first: int, every: int, quick: bool, seed: int = 5, **config: Any
) -> np.ndarray:
    """Eight moments of an episode, ``every`` so many steps from the ``first`` on, of a policy."""
    env = make(task, config=config, **PLAYED)
    seen, _ = env.reset(seed=[seed])
    policy = policy_maker(who)(env)
    policy.reset(torch.arange(1))
    shown, renderer = [], make_renderer(samples=3, shadows=True)
    for step in range(1 if quick else first + 8 * every):
        if quick or (step >= first and (step - first) % every == 0):
            model, data = env.model_data(0)
            shown.append(renderer.rgb(model, data, camera, width=320, height=240))
        seen = env.step(policy.act(seen, env.instruction)[:, 0])[0]
    renderer.close()
    env.close()
    return tile(shown, columns=4)


def seen_by_policy(quick: bool) -> np.ndarray:
    """GraspCube as a policy sees it in four episodes: at the start and when the jaw has closed, with each robot."""
    shown = []
    for word in task_class("GraspCube-v1").robots:
        env = make("GraspCube-v1", num_envs=4, robot=word, observe="rgb", vision=Vision(size=(128, 128)), **PLAYED)
        seen, _ = env.reset(seed=3)
        expert = WaypointExecutor(env)
        for step in range(1 if quick else 34):
            if step in (0, 33):
                shown += list(seen["cameras"]["base_camera"]["rgb"].numpy())
            seen = env.step(expert.act())[0]
        env.close()
    return tile([np.kron(image, np.ones((2, 2, 1), np.uint8)) for image in shown], columns=4)


def settings(quick: bool) -> np.ndarray:
    """Each setting of the suite sim-to-real, as a policy sees it on the way to the cube."""
    suite, shown = load_protocol("sim-to-real"), []
    for word in suite.tasks[: 1 if quick else None]:
        env = make("GraspCube-v1", options=replace(suite.make_options(word, num_envs=1), autoreset="disabled"))
        seen, _ = env.reset(seed=[5])
        expert = WaypointExecutor(env)
        for _ in range(1 if quick else 8):
            seen = env.step(expert.act())[0]
        picture = np.kron(seen["cameras"]["base_camera"]["rgb"][0].numpy(), np.ones((3, 3, 1), np.uint8))
        shown.append(caption(picture, [word.partition("#")[2]], scale=1))
        env.close()
    return tile(shown, columns=5)


def fidelity(quick: bool) -> np.ndarray:
    """Tasks of the fidelity benchmark, a row each: at the start, when the arm is at the object, and at the end."""
    settings = Settings(
        cap="fitted",
        delay="fitted",
        times="recorded",
        base_yaw=3.31,
        base_y=0.0162,
        base_z=-0.0101,
        table_friction=0.25,
        spread=0,
    )
    pictures = []
    for task, middle in ({9: 6.6} if quick else {3: 11.0, 5: 19.0, 7: 13.0, 9: 6.6}).items():
        simulation = TaskSimulation(task, repeats=1)
        film = FidelityFilm(simulation, None, width=280, height=210)
        film.stride, rows = 1, (0, round(10 * middle), simulation.task.rows - 1)
        simulation.run([settings], on_row=lambda row, shown=rows, draw=film: draw(row) if row in shown else None)
        pictures += [caption(frame, [f"task {task}"], scale=1) for frame in film.frames]
        film.close()
        simulation.close()
    return tile(pictures, columns=3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=SHOWN, help=f"default all: {', '.join(SHOWN)}")
    parser.add_argument("--quick", action="store_true", help="one moment of each, to see that it runs")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    options = parser.parse_args()
    for name in options.names:
        if name not in SHOWN:
            raise UnknownNameError("picture", name, SHOWN)
    torch.set_num_threads(1)
    if "pour" in options.names:
        write_png(options.out / "pour.png", pouring(options.quick))
    if "fidelity" in options.names:
        write_png(options.out / "fidelity-tasks.png", fidelity(options.quick))
    if "sim-to-real" in options.names:
        write_png(options.out / "sim-to-real.png", seen_by_policy(options.quick))
        write_png(options.out / "sim-to-real-settings.png", settings(options.quick))
    if "touch" in options.names:
        write_png(options.out / "tactile-insert.png", touched(options.quick))
    if "walking" in options.names:
        picture = moments(
            "TrackVelocity-v1", "ppo-TrackVelocity-v1", "human_camera", first=200, every=6, quick=options.quick
        )
        write_png(options.out / "walking.png", picture)
    if "turning" in options.names:
        who, view = "ppo-RotateInHand-v1", "base_camera"
        picture = moments("RotateInHand-v1", who, view, first=40, every=10, quick=options.quick)
        write_png(options.out / "turning.png", picture)
    if "carrying" in options.names:
        task, view = "TriFingerRotateCube-v1", "human_camera"
        picture = moments(task, "expert", view, first=35, every=12, quick=options.quick, seed=8, level=1)
        write_png(options.out / "carrying.png", picture)


if __name__ == "__main__":
    main()
