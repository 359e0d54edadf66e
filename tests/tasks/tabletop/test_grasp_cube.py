"""GraspCube: the published reward and success, written here a second time from MuJoCo's own numbers; what is declared
to vary does, and the policy knows nothing that a real arm does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.plan.executor import WaypointExecutor
from manikin.scene.handles import Robot


@pytest.fixture(scope="module")
def run() -> dict[str, list]:
    """Six expert episodes: what the environment said at each step, and of one row the published reward."""
    env = manikin.make("GraspCube-v1", num_envs=6, autoreset="disabled", terminate=False, reward="dense")
    env.reset(seed=50)
    expert, out = (
        WaypointExecutor(env),
        {"expected": [], "reward": [], "success": [], "done": [], "flags": [], "felt": []},
    )
    for k in range(env.horizon):
        _, reward, *_, info = env.step(expert.act())
        out["expected"].append(_published(env, k % 6))
        out["reward"].append(reward[k % 6].item())
        out["success"].append(bool(info["success"][k % 6]))
        out["done"].append(info["success"].clone())
        out["flags"].append(info["is_grasped"].clone())
        out["felt"].append(env.task.measured(env.h.robot.qpos, env.h.robot.ctrl)["is_grasped"].clone())
    out["most"] = [env.task.reward_max]
    env.close()
    return out


def _published(env: manikin.Env, row: int) -> tuple[float, bool]:
    """Reward and success of a row after the paper, section VIII."""
    model, data = env.world.data(row)
    robot: Robot = env.h.robot
    cube, side = data.body("cube").xpos, 2 * model.geom("cube/0").size[0]
    place, turn = robot.tcp_pose[row, :3].double().numpy(), robot.tcp_pose[row, 3:].double().numpy()
    w, x, y, z = turn
    up_of_opening = 2 * (y * z + w * x)  # the z component of the y axis
    q = np.array([data.joint(robot.prefix + name).qpos[0] for name in robot.arm.joints])
    jaw = data.joint("robot/gripper").qpos[0]
    rest = np.array(robot.arm.keyframes["rest"])
    gap = 0.07 * (jaw + 0.174533) / (0.8 + 0.174533)
    d, near = np.linalg.norm(cube - place), np.linalg.norm(q - rest)
    held = bool(robot.grasps["cube"].value[row])
    fingers = {model.body(name).id for name in ("robot/gripper", "robot/camera_mount", "robot/moving_jaw_so101_v1")}
    pairs = [{int(model.geom_bodyid[c.geom1]), int(model.geom_bodyid[c.geom2])} for c in data.contact]
    touches = any(0 in pair and pair & fingers for pair in pairs)  # of the table
    value = (1 - np.tanh(15 * d)) + (1 - abs(up_of_opening))
    value += 2 * (d <= side / 2) * (1 - np.tanh(40 * abs(gap - side)))
    value += held * (1 + 3 * (1 - np.tanh(4 / np.pi * near)))
    commanded = np.array([data.ctrl[k] for k in range(5)])
    success = held and cube[2] >= side / 2 + 1e-3 and np.linalg.norm(commanded - rest) < 0.2
    return (np.nan if touches else value), bool(success)


def test_the_expert_solves_it(run: dict[str, list]) -> None:
    assert torch.stack(run["done"]).any(0).all()


def test_reward_and_success_are_the_published_ones(run: dict[str, list]) -> None:
    paid, (wanted, done) = np.array(run["reward"]), zip(*run["expected"], strict=True)
    free = ~np.isnan(wanted)  # no finger on the table
    assert free.mean() > 0.8
    np.testing.assert_allclose(paid[free], np.array(wanted)[free], atol=2e-3)
    assert run["success"] == list(done) and any(done)
    assert paid.max() <= run["most"][0]


def test_what_the_jaw_feels_follows_the_contact(run: dict[str, list]) -> None:
    """By the commanded and the measured jaw alone. While it closes in the air it is behind its command, too."""
    true, felt = torch.stack(run["flags"]), torch.stack(run["felt"])
    assert (felt == true).float().mean() > 0.85
    assert felt[true].float().mean() > 0.95
    assert not felt[:10].any()


def test_the_policy_is_told_what_a_real_arm_knows() -> None:
    env = manikin.make("GraspCube-v1", num_envs=2, observe="state_dict")
    seen, _ = env.reset(seed=0)
    assert set(seen["policy"]) == {"qpos", "target_qpos", "is_grasped"}
    assert {"qvel", "cube_pose"} <= set(seen["privileged"])
    assert torch.equal(seen["policy"]["qpos"], seen["policy"]["target_qpos"])  # q*_0 = q_0
    before = seen["policy"]["target_qpos"]
    action = torch.tensor([[1.0, -1, 0.5, 0, 2, -1], [0, 0, 0, 0, 0, 1]])
    after = env.step(action)[0]["policy"]["target_qpos"]
    moved = torch.tensor([[0.05, -0.05, 0.025, 0, 0.05, -0.2], [0, 0, 0, 0, 0, 0]])  # open already
    torch.testing.assert_close(after - before, moved, atol=1e-6, rtol=0)
    assert env.control_hz == 30.0


def test_what_is_declared_to_vary_does() -> None:
    n = 200
    env = manikin.make("GraspCube-v1", num_envs=n)
    env.reset(seed=0)
    side, place = 2 * env.h.cube.size, env.h.cube.pos
    assert torch.equal(side[:, 0], side[:, 1]) and torch.equal(side[:, 0], side[:, 2])
    assert 0.015 <= side.min() < 0.016 and 0.0215 < side.max() <= 0.0225
    assert 0.045 < place[:, :2].abs().max() <= 0.05
    geom, body = env.h.cube.geom_ids[0], env.h.cube.body_id
    drawn, pads = [], []
    for row in range(n):  # the model is borrowed
        model, _ = env.world.data(row)
        drawn.append((model.geom_friction[geom, 0], model.body_mass[body], *model.geom_rgba[geom]))
        pads.append([model.geom(f"robot/{name}").friction[0] for name in env.h.robot.model.pad_geoms])
    friction, mass, *channels = np.array(drawn).T
    pads = np.array(pads)
    assert (pads[:, 0] == pads[:, 1]).all()
    assert abs(pads.mean() - 1.15) < 0.004 and 0.009 < pads[:, 0].std() < 0.016
    colour = np.array(channels[:3])
    assert abs(friction.mean() - 0.3) < 0.006 and 0.02 < friction.std() < 0.03
    assert 0.003 <= mass.min() < 0.006 and 0.017 < mass.max() <= 0.02
    assert colour.min() < 0.05 and colour.max() > 0.95 and (channels[3] == 1).all()
    assert abs((env.h.robot.arm_qpos - env.h.robot.keyframe()).std() - 0.02) < 0.002


def test_the_friction_of_the_fingers_decides_the_grasp() -> None:
    """The pads of the jaw enclose 20 degrees at a cube: it stays where friction is above tan 10 degrees = 0.18."""
    fingers = {}
    for pads in (1.15, 0.25, 0.08):  # the pads' own is 2
        config = {"finger_friction": (pads / 2, 0.0), "friction": (0.1, 0.0), "rest_std": 0.0}
        env = manikin.make("GraspCube-v1", num_envs=8, autoreset="disabled", terminate=False, config=config)
        env.reset(seed=50)
        expert, once, pressed = WaypointExecutor(env), torch.zeros(8, dtype=torch.bool), []
        for _ in range(env.horizon // 2):
            once |= env.step(expert.act())[-1]["success"]
            model, data = env.world.data(0)
            cube, bodies = env.h.cube.geom_ids[0], [model.body(f"robot/{f.body}").id for f in env.robot.gripper.fingers]
            on_cube = [c for c in data.contact if cube in c.geom]
            pressed += [c.friction[0] for c in on_cube if {*model.geom_bodyid[c.geom].tolist()} & set(bodies)]
        assert pressed and min(pressed) >= min(pads, 0.1) - 1e-6 and max(pressed) <= max(pads, 0.1) + 1e-6
        fingers[pads] = int(once.sum())
        env.close()
    assert fingers[1.15] == fingers[0.25] == 8 and fingers[0.08] <= 4, fingers


def test_the_camera_shifts_by_up_to_25_mm_at_every_step() -> None:
    env = manikin.make("GraspCube-v1", num_envs=4, observe="rgb", vision=Vision(size=(16, 12)), renderer="rays")
    seen, _ = env.reset(seed=0)
    places = []
    for _ in range(8):
        places.append(seen["cameras"]["base_camera"]["T"][:, :3, 3].clone())
        seen = env.step(torch.zeros(4, 6))[0]
    off = torch.stack(places) - torch.tensor([0.175, 0.26, 0.2])
    assert 0.018 < off.abs().max() <= 0.025 + 1e-5
    assert ((off[1:] - off[:-1]).abs().amax(2) > 1e-4).all()
    lens = 2 * torch.atan(12 / 2 / seen["cameras"]["base_camera"]["K"][:, 1, 1])
    assert ((lens - 0.9076).abs() <= 0.0351).all() and lens.std() > 0.005


def test_the_gripper_option_is_refused_where_nothing_opens() -> None:
    with pytest.raises(ConfigError, match="no gripper here that opens"):
        manikin.make("Wipe-v2", control="joint_target_delta_pos:gripper=0.1")
    with pytest.raises(ConfigError, match="must not be negative"):
        manikin.make("GraspCube-v1", control="joint_target_delta_pos:step=-1")


def test_a_finger_on_the_table_costs_two_and_a_cube_in_the_hand_nothing() -> None:
    """Reference: MuJoCo's list of contacts."""
    env = manikin.make("GraspCube-v1", config={"spawn_half_size": 0.0}, terminate=False, reward="dense")
    env.reset(seed=0)
    seen = []
    for _ in range(45):  # down, on the cube and on the table
        info = env.step(torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]))[-1]
        model, data = env.world.data(0)
        fingers = {model.body(name).id for name in ("robot/gripper", "robot/camera_mount", "robot/moving_jaw_so101_v1")}
        pairs = [{int(model.geom_bodyid[c.geom1]), int(model.geom_bodyid[c.geom2])} for c in data.contact]
        on_table = any(0 in pair and pair & fingers for pair in pairs)
        touching = bool(info["is_touching"][0])
        assert info["reward_terms"]["touch"].item() == -2.0 * touching
        seen.append((on_table, touching))
    assert seen[0] == (False, False) and seen[-1] == (True, True)
    assert sum(one != other for one, other in seen) <= 2  # contact without force, for a moment


def test_the_expert_solves_most_with_a_koch() -> None:
    env = manikin.make("GraspCube-v1", robot="koch", num_envs=8, autoreset="disabled", terminate=False)
    env.reset(seed=0)
    expert, once = WaypointExecutor(env), torch.zeros(8, dtype=torch.bool)
    for _ in range(env.horizon):
        once |= env.step(expert.act())[-1]["success"]
    assert once.sum() >= 6


def test_the_robots_colours_stay_within_their_range_and_fill_it() -> None:
    """Of the declared yellow: added in 0.35 to either side, cut to what a colour can be; at the base alone."""
    vision = Vision(size=(8, 8), renderer="rays")
    config = {"robot_range": 0.35}
    env = manikin.make("GraspCube-v1", num_envs=64, observe="rgb", vision=vision, config=config)
    env.reset(seed=list(range(64)))
    shown = env.world.model_field("geom_rgba")
    model = env.model_data(0)[0]
    (first, *_) = [g for g in range(model.ngeom) if model.geom(g).name.startswith("robot/") and model.geom_group[g] < 3]
    yellow = np.array([1.0, 0.82, 0.12])
    drawn = np.asarray(shown)[:, first, :3]
    low, high = np.clip(yellow - 0.35, 0, 1), np.clip(yellow + 0.35, 0, 1)
    assert (drawn >= low - 1e-6).all() and (drawn <= high + 1e-6).all()
    assert (drawn.min(0) < low + 0.05).all() and (drawn.max(0) > high - 0.05).all()
    env.close()


def test_a_share_of_the_episodes_begins_with_the_jaw_closed() -> None:
    env = manikin.make("GraspCube-v1", num_envs=200, config={"closed": 0.3}, autoreset="disabled")
    env.reset(seed=0)
    jaw, command = env.h.robot.qpos[:, -1], env.h.robot.ctrl[:, -1]
    spec = env.h.robot.gripper
    closed = (jaw - spec.closed_q[0]).abs() < 1e-5
    assert torch.equal(~closed, (jaw - spec.open_q[0]).abs() < 1e-5)
    assert abs(closed.float().mean().item() - 0.3) < 4 * (0.3 * 0.7 / 200) ** 0.5  # four standard deviations
    assert torch.equal(jaw, command)  # it holds there
    env.close()
