"""What thirty objects that lie still cost in an apartment, and whether MuJoCo's sleeping keeps a row's bits.

    python benchmarks/homes.py

Prints the time of a physics step of 16 rows: Fetch on a bare floor, in the built-in apartment, in the same with thirty
boxes on its tables, and where MuJoCo lets them sleep. Then it saves a row and goes on, and another world goes on from
the save: the two have the same bits, or not.
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
from manikin.sim.cpu import CpuWorld
from manikin.spec.physics import Physics
from manikin.spec.scene import CompiledScene

HALF = (0.03, 0.03, 0.05)  # [m]
PLACES = ("table/top", "low_table/top", "counter/left", "counter/right", "tv_stand/top", "sofa/seat")


def scene(count: int, *, sleep: bool) -> tuple[mujoco.MjModel, np.ndarray]:
    """The apartment with ``count`` boxes, and positions in which they have come to rest."""
    chosen = robot("fetch")
    b = SceneBuilder([(chosen.arm, chosen.gripper, False)], Physics())
    home = furnish(b, apartment(0)).apartment
    b.robot(pos=(1.5, 3.0, 0.0))
    for k in range(count):
        b.box(f"box{k}", half_size=HALF)
    model = b.compile().model
    if sleep:
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    spots = []
    for name in PLACES:
        owner, one = home.receptacle(name)
        body = data.body(f"{owner.name}/{one.link}" if one.link else owner.name)
        axes = [np.arange(-h + 0.05, h - 0.04, 0.14) for h in one.half[:2]]
        for x, y in np.stack(np.meshgrid(*axes), -1).reshape(-1, 2):
            local = np.array(one.pos) + np.array([x, y, HALF[2] - one.half[2] + 0.001])
            spots.append(body.xpos + body.xmat.reshape(3, 3) @ local)
    chosen_spots = np.linspace(0, len(spots) - 1, count).astype(int)
    for k, spot in enumerate(chosen_spots):
        data.joint(f"box{k}").qpos[:] = [*spots[spot], 1, 0, 0, 0]
    for _ in range(300):
        mujoco.mj_step(model, data)
    return model, data.qpos.copy()


def begun(model: mujoco.MjModel, qpos: np.ndarray, rows: int) -> CpuWorld:
    """Rows that have come to rest again, some of them asleep."""
    world = CpuWorld(CompiledScene.from_model(model), rows, threads=1, persistent=True)
    world.write("qpos", np.tile(qpos, (rows, 1)))
    world.step(50)
    return world


def step_us(world: CpuWorld, steps: int, rounds: int) -> float:
    """Median time of a step of all rows on one thread [us]."""
    took = []
    for _ in range(rounds):
        began = time.process_time()
        world.step(steps)
        took.append((time.process_time() - began) / steps * 1e6)
    return float(np.median(took))


def off_after_save(world: CpuWorld, steps: int) -> float:
    """Largest difference between a row and another world that goes on from its save; 0 where all bits are equal."""
    other, row = CpuWorld(world.scene, 1, threads=1, persistent=True), np.array([0])
    other.load(world.save(row))
    for one in (world, other):
        one.step(steps)
    off = float(np.abs(world.states(row) - other.states(row)).max())
    other.close()
    return off


def bare_floor() -> tuple[mujoco.MjModel, np.ndarray]:
    """Fetch and nothing else."""
    chosen = robot("fetch")
    b = SceneBuilder([(chosen.arm, chosen.gripper, False)], Physics())
    ground(b, height=0.0, base_camera=((1, 1, 1), (0, 0, 0)), human_camera=((1, 1, 1), (0, 0, 0)))
    b.robot(pos=(0, 0, 0))
    model = b.compile().model
    return model, mujoco.MjData(model).qpos.copy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few steps")
    options = parser.parse_args()
    rows, steps, rounds = (2, 5, 1) if options.quick else (16, 200, 5)
    print(f"{rows} rows, one thread, {os.cpu_count()} cores, MuJoCo {mujoco.__version__}")
    world = begun(*bare_floor(), rows)
    print(f" no apartment      {step_us(world, steps, rounds):8.0f} us")
    world.close()
    bare = None
    for count, sleep in ((0, False), (30, False), (30, True)):
        world = begun(*scene(count, sleep=sleep), rows)
        took = step_us(world, steps, rounds)
        bare = took if bare is None else bare
        off = off_after_save(world, 20 if options.quick else 150)
        world.close()
        words = "asleep" if sleep else "awake"
        print(f"{count:3d} boxes {words:7s} {took:8.0f} us  {took / bare:5.2f} x  after a save off by {off:g}")


if __name__ == "__main__":
    main()
