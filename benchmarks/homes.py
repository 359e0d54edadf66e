"""What thirty objects that lie still cost in an apartment, awake and asleep, and whether a row keeps its bits.

    python benchmarks/homes.py

Prints the time of a physics step of 16 rows: Fetch on a bare floor, in the built-in apartment, in the same with thirty
boxes on its tables that are awake, and with boxes, doors and drawers that rest until something touches them. Then it
saves a row and goes on, and another world goes on from the save: the two have the same bits, or not. Scenes are
measured in turn, so that they share what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import time

import mujoco
import numpy as np

from manikin.arenas.ground import ground
from manikin.homes import apartment, furnish
from manikin.robots import robot
from manikin.scene.builder import SceneBuilder
from manikin.scene.resting import let_rest
from manikin.sim.cpu import CpuWorld
from manikin.spec.physics import Physics
from manikin.spec.scene import CompiledScene

HALF = (0.03, 0.03, 0.05)  # [m]
PLACES = ("table/top", "low_table/top", "counter/left", "counter/right", "tv_stand/top", "sofa/seat")


def scene(count: int, *, rest: bool) -> tuple[CompiledScene, np.ndarray, list[int]]:
    """The apartment with ``count`` boxes, positions in which they have come to rest, and the bodies that may sleep."""
    chosen = robot("fetch")
    b = SceneBuilder([(chosen.arm, chosen.gripper, False)], Physics())
    home = furnish(b, apartment(0))
    b.robot(pos=(1.5, 3.0, 0.0))
    boxes = [b.box(f"box{k}", half_size=HALF) for k in range(count)]
    if rest:
        let_rest(b, [*boxes, *home.mechanisms.values()])
    compiled = b.compile()
    model = compiled.model
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    spots = []
    for name in PLACES:
        middle, half = home.apartment.middle(name), home.apartment.receptacle(name)[1].half
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, middle[3:])
        axes = [np.arange(-h + 0.05, h - 0.04, 0.14) for h in half[:2]]
        for x, y in np.stack(np.meshgrid(*axes), -1).reshape(-1, 2):
            spots.append(middle[:3] + turn.reshape(3, 3) @ np.array([x, y, HALF[2] - half[2] + 0.001]))
    chosen_spots = np.linspace(0, len(spots) - 1, count).astype(int)
    for k, spot in enumerate(chosen_spots):
        data.joint(f"box{k}").qpos[:] = [*spots[spot], 1, 0, 0, 0]
    for _ in range(300):
        mujoco.mj_step(model, data)
    sleepers = np.flatnonzero(model.tree_sleep_policy == int(mujoco.mjtSleepPolicy.mjSLEEP_ALLOWED))
    return compiled, data.qpos.copy(), [int(model.tree_bodyadr[tree]) for tree in sleepers]


def begun(compiled: CompiledScene, qpos: np.ndarray, sleepers: list[int], rows: int) -> CpuWorld:
    """Rows that have come to rest again."""
    world = CpuWorld(compiled, rows, threads=1, persistent=True)
    world.write("qpos", np.tile(qpos, (rows, 1)))
    for body in sleepers:
        world.rest(body)
    world.forward()
    world.step(50)
    return world


def step_us(world: CpuWorld, steps: int) -> float:
    """Time of a step of all rows on one thread [us]."""
    began = time.process_time()
    world.step(steps)
    return (time.process_time() - began) / steps * 1e6


def off_after_save(world: CpuWorld, steps: int) -> float:
    """Largest difference between a row and another world that goes on from its save; 0 where all bits are equal."""
    other, row = CpuWorld(world.scene, 1, threads=1, persistent=True), np.array([0])
    other.load(world.save(row))
    for one in (world, other):
        one.step(steps)
    off = float(np.abs(world.states(row) - other.states(row)).max())
    other.close()
    return off


def bare_floor() -> tuple[CompiledScene, np.ndarray, list[int]]:
    """Fetch and nothing else."""
    chosen = robot("fetch")
    b = SceneBuilder([(chosen.arm, chosen.gripper, False)], Physics())
    ground(b, height=0.0, base_camera=((1, 1, 1), (0, 0, 0)), human_camera=((1, 1, 1), (0, 0, 0)))
    b.robot(pos=(0, 0, 0))
    compiled = b.compile()
    return compiled, mujoco.MjData(compiled.model).qpos.copy(), []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few steps")
    options = parser.parse_args()
    rows, steps, rounds = (2, 5, 1) if options.quick else (16, 60, 15)
    print(f"{rows} rows, one thread, {os.cpu_count()} cores, MuJoCo {mujoco.__version__}")
    scenes = {
        "no apartment": bare_floor(),
        "apartment": scene(0, rest=False),
        "apartment, doors rest": scene(0, rest=True),
        "30 boxes awake": scene(30, rest=False),
        "30 boxes and doors rest": scene(30, rest=True),
    }
    worlds = {name: begun(*made, rows) for name, made in scenes.items()}
    took = {name: [] for name in worlds}
    for _ in range(rounds):
        for name, world in worlds.items():
            took[name].append(step_us(world, steps))
    bare = float(np.median(took["apartment"]))
    for name, world in worlds.items():
        middle = float(np.median(took[name]))
        off = off_after_save(world, 20 if options.quick else 150)
        print(f"{name:24s} {middle:8.0f} us  {middle / bare:5.2f} x  after a save off by {off:g}")
        world.close()


if __name__ == "__main__":
    main()
