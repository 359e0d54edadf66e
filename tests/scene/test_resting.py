"""Things that rest until something touches them: who sleeps and wakes, and that a save keeps it to the bit."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin import Episode, Handles, Part, Robot, SceneBuilder, Task
from manikin.errors import ConfigError, SceneError
from manikin.homes import apartment, furnish
from manikin.homes.furnish import Home
from manikin.scene.handles.articulation import Articulation
from manikin.scene.resting import Resting, let_rest
from manikin.sim.cpu import CpuWorld
from manikin.spec.physics import Physics

HALF = 0.03  # [m] of the boxes


@dataclass
class CrowdHandles(Handles):
    robot: Robot
    boxes: list[Part]
    ball: Part
    resting: Resting


class Crowd(Task):
    """Six boxes rest in a row on the floor; a ball rolls towards them, faster in some rows.

    Randomization: the ball's speed.
    Success: never.
    """

    id = "Crowd-v0"
    horizon_s = 3.0
    instruction = "watch"
    robots = ("panda",)

    def scene(self, b: SceneBuilder) -> CrowdHandles:
        b.fixture("floor", manikin.Shape(type="box", size=(2, 2, 0.05), pos=(0, 0, -0.05)))
        robot = b.robot(pos=(-1.0, 0, 0))
        boxes = [b.box(f"box{k}", half_size=(HALF,) * 3, density=300.0) for k in range(6)]
        return CrowdHandles(robot, boxes, b.sphere("ball", radius=0.03), let_rest(b, boxes))

    def start(self, h: CrowdHandles, ep: Episode) -> None:
        h.robot.set_qpos(h.robot.keyframe())
        for k, box in enumerate(h.boxes):
            box.set_pose((0.3 + 0.1 * k, 0.4, HALF))
        h.ball.set_pose((0.0, 0.4, 0.03))
        speed = ep.rng.uniform("speed", 0.5, 1.5)
        h.ball.set_velocity(torch.stack([speed, 0 * speed, 0 * speed], 1))
        h.resting.begin()

    def evaluate(self, h: CrowdHandles) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: CrowdHandles) -> dict[str, dict[str, torch.Tensor]]:
        return {"policy": {"boxes": torch.cat([box.pos for box in h.boxes], 1)}, "privileged": {}}

    observations = {"boxes": manikin.Quantity("m")}


def asleep(world: CpuWorld) -> np.ndarray:
    """(N,) how many trees sleep, as MuJoCo has it."""
    return (world.batch.bind("tree_asleep") >= 0).sum(1)


def crowd(rows: int) -> manikin.Env:
    return manikin.make(Crowd, num_envs=rows, reward="none", autoreset="disabled")


def stepped(env: manikin.Env, steps: int) -> list[torch.Tensor]:
    action = torch.zeros(env.num_envs, env.single_action_space.shape[0])
    return [env.step(action)[0].clone() for _ in range(steps)]


def test_what_nothing_touches_sleeps_and_what_is_hit_wakes() -> None:
    env = crowd(2)
    env.reset(seed=[3, 4])
    assert asleep(env.world).tolist() == [6, 6]
    before = env.world.flat("qpos").copy()
    stepped(env, 4)
    boxes = [int(env.world.scene.model.joint(f"box{k}").qposadr[0]) for k in range(6)]
    assert (env.world.flat("qpos")[:, boxes[0] : boxes[5] + 7] == before[:, boxes[0] : boxes[5] + 7]).all()
    stepped(env, 30)
    moved = env.world.flat("qpos")[:, boxes] - before[:, boxes]
    assert (moved[:, 0] > 0.005).all() and (asleep(env.world) < 6).all()
    far = asleep(env.world)
    assert (moved[:, 5][far > 0] == 0).all()  # who still sleeps has not moved by a bit
    env.close()


@pytest.mark.parametrize("after", [2, 12, 30])
def test_a_row_goes_on_from_a_save_to_the_bit(after: int) -> None:
    """Before the ball hits, while boxes wake, and later; in another row of another environment."""
    env, other = crowd(2), crowd(3)
    env.reset(seed=[3, 4])
    other.reset(seed=[7, 8, 9])
    stepped(env, after)
    stepped(other, 20)
    other.load(env.save(np.array([1])), np.array([2]))
    assert asleep(other.world)[2] == asleep(env.world)[1]
    for mine, theirs in zip(stepped(env, 25), stepped(other, 25), strict=True):
        assert torch.equal(mine[1], theirs[2])
    assert (env.world.states(np.array([1])) == other.world.states(np.array([2]))).all()
    assert env.world.state_hash()[1] == other.world.state_hash()[2]
    env.close()
    other.close()


def test_rows_are_those_of_single_environments_also_in_a_second_episode() -> None:
    env = crowd(3)
    env.reset(seed=[1, 2, 3])
    stepped(env, 15)
    env.reset(seed=[4, 5, 6])  # all boxes sleep again, whoever was awake
    assert asleep(env.world).tolist() == [6, 6, 6]
    together = torch.stack(stepped(env, 30), 1)
    for row, seed in enumerate((4, 5, 6)):
        one = crowd(1)
        one.reset(seed=[seed])
        assert torch.equal(torch.stack(stepped(one, 30), 1)[0], together[row])
        one.close()
    env.close()


def test_asleep_or_awake_the_ball_does_the_same() -> None:
    """In a plain MuJoCo scene in which nothing sleeps the first box moves as far, to a millimetre."""
    env = crowd(1)
    env.reset(seed=[3])
    model, data = env.world.data(0)
    plain = mujoco.MjData(model)
    assert not model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    plain.qpos[:], plain.qvel[:], plain.ctrl[:] = data.qpos, data.qvel, data.ctrl
    steps = 20
    stepped(env, steps)
    for _ in range(round(steps / env.control_hz / model.opt.timestep)):
        mujoco.mj_step(model, plain)
    at = int(model.joint("box0").qposadr[0])
    assert env.world.flat("qpos")[0, at] == pytest.approx(plain.qpos[at], abs=1e-3)
    assert plain.qpos[at] > 0.31
    env.close()


def doors(share: float) -> tuple[CpuWorld, Home, Resting]:
    """The built-in apartment with its doors and drawers, the counter's open by a share, and a box in mid-air."""
    b = SceneBuilder([], Physics())
    home = furnish(b, apartment(0))
    box = b.box("box", half_size=(HALF,) * 3, pos=(-1.0, 2.5, 1.0))
    resting = let_rest(b, [*home.mechanisms.values(), box])
    world = CpuWorld(b.compile(), 1)
    b.bind(world)
    counter: Articulation = home.mechanism("counter")
    counter.set_qpos(counter.limits[:, 1] * share)
    resting.begin()
    world.forward()
    return world, home, resting


def test_closed_doors_sleep_and_open_ones_do_not() -> None:
    world, home, _ = doors(0.0)
    trees = world.scene.model.ntree
    assert asleep(world).tolist() == [trees]
    world.step(50)
    assert asleep(world).tolist() == [trees]
    assert world.flat("qpos")[0, int(world.scene.model.joint("box").qposadr[0]) + 2] == 1.0  # it did not fall
    half, _, _ = doors(0.5)
    assert asleep(half).tolist() == [trees - len(home.mechanism("counter").joints)]
    home.mechanism("counter").set_qpos(home.mechanism("counter").limits[:, 1] * 0.1)  # moved by the task: awake
    world.step(1)
    assert asleep(world).tolist() == [trees - len(home.mechanism("counter").joints)]


def test_on_a_warp_device_nothing_sleeps() -> None:
    pytest.importorskip("mujoco_warp")
    env = manikin.make(Crowd, num_envs=2, reward="none", autoreset="disabled", device="warp:cpu")
    first = env.reset(seed=[3, 4])[0].clone()
    last = stepped(env, 3)[-1]
    assert (last - first).abs().max() < 1e-3
    env.close()


def test_what_may_not_sleep_is_named() -> None:
    b = SceneBuilder([], Physics())
    still = b.box("shelf", half_size=(HALF,) * 3, kind="fixed")
    box = b.box("box", half_size=(HALF,) * 3)
    with pytest.raises(SceneError, match="shelf is fixed; only dynamic parts and articulations may sleep"):
        let_rest(b, [still])
    world = CpuWorld(b.compile(), 1)
    b.bind(world)
    with pytest.raises(ConfigError, match="box may not sleep: declare it with let_rest"):
        world.rest(box.body_id)
