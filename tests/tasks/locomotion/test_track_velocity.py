"""TrackVelocity: its reward beside the formulas on plain MuJoCo, commands, falls, pushes, variation, both devices."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, SceneError

ROBOTS = ("go2", "anymal_c", "h1", "g1")
ALIKE = (
    *("TrackVelocity-v1", "QuadrupedReach-v1", "QuadrupedSpin-v1", "LeggedStand-v1", "TrackMotion-v1"),
    pytest.param("TrackVelocityRough-v1", marks=pytest.mark.slow),  # minutes to compile the kernels of a height field
)
WARP = find_spec("mujoco_warp") is not None
DT = 0.02


def walker(num_envs: int = 2, task: str = "TrackVelocity-v1", **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    env = manikin.make(task, num_envs, **options)
    env.reset(seed=0)
    return env


def actions(env: manikin.Env, steps: int, scale: float = 1.0) -> torch.Tensor:
    size = env.single_action_space.shape[0]
    random = torch.rand(steps, env.num_envs, size, generator=torch.Generator().manual_seed(1))
    return (random * 2 - 1) * scale


def pressed(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, float]:
    """[N] net contact force on each body, of the last physics step."""
    total: dict[str, np.ndarray] = {}
    for k, contact in enumerate(data.contact):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, k, force)
        world = contact.frame.reshape(3, 3).T @ force[:3]
        for geom, sign in ((contact.geom1, -1), (contact.geom2, 1)):
            name = model.body(model.geom_bodyid[geom]).name
            total[name] = total.get(name, np.zeros(3)) + sign * world
    return {name: float(np.linalg.norm(force)) for name, force in total.items() if name != "world"}


class Plain:
    """The same robot in plain MuJoCo, and what the task should make of it."""

    def __init__(self, env: manikin.Env) -> None:
        self.model, self.data = env.model_data(0)
        arm = env.robot.arm
        self.feet = [env.robot.prefix + foot for foot in arm.feet]
        self.trunk = env.robot.prefix + arm.links[0].name
        self.rest = np.array(arm.keyframes["rest"])
        self.gains = np.array(arm.gains.kp), np.array(arm.gains.force)
        self.commands = env.h.commands.value[0].double().numpy()
        self.before = self.data.ctrl - self.rest
        self.air, self.step_number, self.fell, self.error = np.zeros(len(self.feet)), 0, False, 0.0

    def step(self, action: np.ndarray) -> dict[str, float]:
        model, data = self.model, self.data
        target = np.clip(self.rest + 0.5 * action, *model.jnt_range[1:].T)
        data.ctrl[:] = target.astype(np.float32)
        for _ in range(4):
            mujoco.mj_step(model, data)
        command = self.commands[self.step_number // 250]  # of 5 s
        self.step_number += 1
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        base = turn.reshape(3, 3).T
        v, w, g = base @ data.qvel[:3], data.qvel[3:6], base @ (0, 0, -1)
        forces = pressed(model, data)
        feet = np.array([forces.get(foot, 0.0) for foot in self.feet])
        bumps = any(force > 1 for name, force in forces.items() if name not in self.feet)
        self.fell |= bool(g[2] > -0.5 or data.qpos[2] < 0.287 / 2 or forces.get(self.trunk, 0) > 1)
        asked, stands = target - self.rest, feet > 1
        landed = sum(min(air + DT, 0.5) - 0.2 for air, down in zip(self.air, stands, strict=True) if down and air > 0)
        self.air = np.where(stands, 0.0, self.air + DT)
        q, (kp, most) = data.qpos[7:], self.gains
        off = math.dist(v[:2], command[:2])
        self.error += off
        terms = {
            "speed": math.exp(-4 * off**2),
            "turn": 0.5 * math.exp(-4 * (w[2] - command[2]) ** 2),
            "bounce": -min(v[2] ** 2, 5),
            "sway": -min(0.02 * (w[0] ** 2 + w[1] ** 2), 4),
            "lean": -(g[0] ** 2 + g[1] ** 2),
            "effort": -0.2 * np.mean(np.clip(kp * (target - q) / most, -1, 1) ** 2),
            "change": -0.02 * np.sum((asked - self.before) ** 2),
            "pose": -0.2 * np.mean((q - self.rest) ** 2),
            "steps": landed * (np.linalg.norm(command) >= 0.1),
            "bumps": -float(bumps),
            "fall": -float(self.fell) / DT,
        }
        self.before = asked
        return {name: DT * value for name, value in terms.items()}


@pytest.mark.parametrize("scale", [0.4, 1.0])
def test_the_reward_is_what_the_formulas_say(scale: float) -> None:
    env = walker()
    plain, met = Plain(env), dict.fromkeys(env.task.reward_terms, 0.0)
    for action in actions(env, 80, scale):
        _, reward, *_, info = env.step(action)
        wanted = plain.step(action[0].double().numpy())
        for name, value in wanted.items():
            assert info["reward_terms"][name][0].item() == pytest.approx(value, abs=3e-5), name
            met[name] = max(met[name], abs(value))
        assert reward[0].item() == pytest.approx(sum(wanted.values()), abs=1e-4)
        assert info["fail"][0].item() is plain.fell
        assert info["velocity_error"][0].item() == pytest.approx(plain.error / plain.step_number, abs=1e-4)
    absent = {name for name, value in met.items() if value == 0}
    assert absent <= {"fall", "bumps"}  # the others were compared


def test_a_fall_and_a_knee_on_the_ground_cost_what_is_said() -> None:
    env = walker(1)
    env.h.robot.set_root(torch.tensor([0, 0, 0.16, 0.7071, 0.7071, 0, 0]))  # on its side
    env.world.forward()
    *_, info = env.step(torch.zeros(1, 12))
    assert info["fail"].all() and info["reward_terms"]["fall"].item() == -1
    for _ in range(20):
        *_, info = env.step(torch.zeros(1, 12))
    assert info["reward_terms"]["bumps"].item() == pytest.approx(-DT)


@pytest.mark.parametrize(
    ("pose", "fell"),
    [
        ((0, 0, 0.287, 1, 0, 0, 0), False),
        ((0, 0, 0.13, 1, 0, 0, 0), True),  # lower than half of 0.287 m
        ((0, 0, 0.287, math.cos(0.5), math.sin(0.5), 0, 0), False),  # rolled by 57 degrees
        ((0, 0, 0.4, math.cos(0.55), math.sin(0.55), 0, 0), True),  # by 63
        ((0, 0, 0.4, 0, 1, 0, 0), True),  # on its back
    ],
)
def test_what_is_a_fall(pose: tuple[float, ...], fell: bool) -> None:
    env = walker(1, config={"start_noise": 0.0})
    assert not env.task.evaluate(env.h)["fail"].any()
    env.h.robot.set_root(torch.tensor(pose, dtype=torch.float32))
    env.world.forward()
    assert env.task.evaluate(env.h)["fail"].item() is fell


def test_who_has_fallen_has_failed_even_if_it_gets_up() -> None:
    env = walker(1, config={"velocity_tol": 100.0, "start_noise": 0.0})
    env.h.robot.set_root(torch.tensor([0, 0, 0.4, 0, 1, 0, 0.0]))
    env.world.forward()
    assert env.step(torch.zeros(1, 12))[-1]["fail"].item()
    env.h.robot.set_qpos(env.robot.keyframe())
    env.world.forward()
    info = env.step(torch.zeros(1, 12))[-1]
    assert not env.task.fallen(env.h).item() and info["fail"].item()


def test_success_is_a_small_mean_error_at_the_end() -> None:
    """Of robots that stand still, whose error is the length of the command."""
    env = walker(2, config={"command_s": 20.0, "start_noise": 0.0})
    env.h.commands.set(torch.tensor([[[0.2, -0.1, 0.5]], [[0.2, 0.2, 0.0]]]))
    said = []
    for _ in range(1000):
        *_, over, info = env.step(torch.zeros(2, 12))
        said.append(info["success"].tolist())
    assert said[:-1] == [[False, False]] * 999 and said[-1] == [True, False] and over.all()
    assert info["velocity_error"].tolist() == pytest.approx([math.hypot(0.2, 0.1), math.hypot(0.2, 0.2)], abs=0.02)


def test_a_command_holds_for_its_time_and_the_one_that_was_seen_counts() -> None:
    env = walker(3, config={"command_s": 0.1})
    commands = env.h.commands.value.clone()
    assert commands.shape == (3, 200, 3) and commands.abs().max() <= 1
    assert commands.flatten(0, 1).abs().amax(0).min() > 0.9 and commands.mean(1).abs().max() < 0.3
    seen = env.step(torch.zeros(3, 12))[0]
    for k in range(1, 23):
        shown = seen["policy"]["command"].clone()
        assert torch.equal(shown, commands[:, k // 5])
        seen, *_, info = env.step(torch.zeros(3, 12))
        off = seen["privileged"]["velocity"][:, :2] - shown[:, :2]
        assert torch.allclose(info["reward_terms"]["speed"], DT * torch.exp(-4 * off.square().sum(1)), atol=1e-6)


def test_commands_keep_within_the_options() -> None:
    env = walker(64, config={"most_speed": 0.5, "most_turn": 2.0})
    most = env.h.commands.value.flatten(0, 1).abs().amax(0)
    assert (most <= torch.tensor([0.5, 0.5, 2.0])).all() and (most > torch.tensor([0.45, 0.45, 1.8])).all()


def in_flight(config: dict[str, float]) -> manikin.Env:
    env = walker(2, config={"start_noise": 0.0, **config})
    env.h.robot.set_root(torch.tensor([0, 0, 5.0, 1, 0, 0, 0]))
    env.world.forward()
    return env


def drift(env: manikin.Env) -> np.ndarray:
    """(2, 2) [m/s] horizontal velocity of the centres of mass."""
    found = []
    for row in range(2):
        model, data = env.world.data(row)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_subtreeVel(model, data)
        found.append(data.subtree_linvel[model.body(f"{env.robot.prefix}base").id][:2].copy())
    return np.array(found)


def test_a_push_changes_the_velocity_of_the_whole_robot_by_what_was_drawn() -> None:
    """In the air, where nothing else pushes it aside."""
    env = in_flight({"push_speed": 0.8, "push_every_s": 0.2})
    impulses = env.h.impulses.value.double().numpy()
    assert 0.1 < np.abs(impulses).max() <= 0.8
    for step in range(1, 32):
        env.step(torch.zeros(2, 12))
        pushed = impulses[:, 1 : 1 + (step - 1) // 10].sum(1)  # the first push is in the step after 0.2 s
        assert drift(env) == pytest.approx(pushed, abs=2e-3), step


def test_without_the_option_nothing_pushes() -> None:
    env = in_flight({})
    for _ in range(30):
        env.step(torch.zeros(2, 12))
    assert np.abs(drift(env)).max() < 1e-6


def test_a_row_that_is_left_out_of_a_step_is_pushed_as_any_other() -> None:
    whole, other = (walker(2, config={"push_speed": 1.0, "push_every_s": 0.1}) for _ in range(2))
    move, first = actions(whole, 1, 0.2)[0], torch.tensor([True, False])
    for _ in range(14):
        whole.step(move)
    for k in range(14):
        other.step(move, active=first if k in (4, 5, 6) else None)  # where a push begins, lasts and ends
    for _ in range(3):
        other.step(move, active=~first)
    rows = np.arange(2)
    assert np.array_equal(whole.world.states(rows), other.world.states(rows))
    assert torch.equal(whole.h.error.value, other.h.error.value)


def test_feet_and_trunk_differ_as_asked() -> None:
    own = walker(1).world.scene.model
    env = walker(3, config={"friction": (0.4, 0.4), "trunk_mass": (1.5, 1.5)})
    for row in range(3):
        model = env.world.data(row)[0]
        for foot in env.robot.arm.feet:
            for geom in np.flatnonzero(own.geom_bodyid == own.body(f"robot/{foot}").id):
                times = 0.4 if own.geom_contype[geom] else 1.0
                assert model.geom_friction[geom, 0] == pytest.approx(times * own.geom_friction[geom, 0])
        base = own.body("robot/base").id
        assert model.body_mass[base] == pytest.approx(1.5 * own.body_mass[base])
        assert model.body_inertia[base] == pytest.approx(1.5 * own.body_inertia[base])
        assert model.body_mass.sum() == pytest.approx(own.body_mass.sum() + 0.5 * own.body_mass[base])


def test_friction_is_drawn_anew_in_every_row() -> None:
    env = walker(64, config={"friction": (0.5, 1.5)})
    model = env.world.scene.model
    body = model.body("robot/FL_calf").id
    geom = int(np.flatnonzero((model.geom_bodyid == body) & (model.geom_contype > 0))[-1])
    times = np.array([env.world.data(row)[0].geom_friction[geom, 0] for row in range(64)])
    times /= model.geom_friction[geom, 0]
    assert times.min() < 0.6 and times.max() > 1.4 and abs(times.mean() - 1) < 0.15


def test_late_servos_follow_a_control_step_later() -> None:
    prompt, late = (walker(1, config={"start_noise": 0.0, "latency_s": s}) for s in (0.0, 0.02))
    still, move = torch.zeros(1, 12), torch.full((1, 12), 0.5)
    for env in (prompt, late):
        env.step(still)
    before = prompt.robot.qpos.clone()
    assert torch.allclose(before, late.robot.qpos, atol=1e-3)
    for env in (prompt, late):
        env.step(move)
    far = (prompt.robot.qpos - before).abs().mean()
    assert far > 0.02 and (late.robot.qpos - before).abs().mean() < 0.3 * far
    late.step(move)
    assert (late.robot.qpos - before).abs().mean() > 0.7 * far


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_robot_stands_for_a_while_and_nothing_of_it_collides_with_itself(robot: str) -> None:
    env = walker(2, robot=robot, config={"start_noise": 0.0})
    size = env.single_action_space.shape[0]
    assert size == {"h1": 10}.get(robot, 12)
    for _ in range(15):
        seen, reward, *_, info = env.step(torch.zeros(2, size))
        assert not info["fail"].any() and torch.isfinite(reward).all()
    assert (env.robot.foot_forces > 1).all()
    assert {name for group in seen.values() for name in group} - {"qpos", "qvel"} == set(env.task.observations)
    model, data = env.world.data(0)
    mujoco.mj_forward(model, data)
    assert data.ncon and all({0} & set(model.geom_bodyid[[c.geom1, c.geom2]].tolist()) for c in data.contact)


@pytest.mark.skipif(not WARP, reason="needs pip install 'manikin[gpu]'")
@pytest.mark.parametrize("task", ALIKE)
def test_both_devices_agree(task: str) -> None:
    """For five steps; on a height field for three, until the first foot meets an edge, where one device finds a contact
    with the prism beside that of the other."""
    envs = [walker(2, task, device=device) for device in ("cpu", "warp:cpu")]
    rough = task == "TrackVelocityRough-v1"
    for action in actions(envs[0], 3 if rough else 5, 0.5):
        (one, here, *_), (other, there, *_) = (env.step(action) for env in envs)
        assert torch.allclose(here, there.cpu(), atol=2e-3)
        for group in one:
            for name, value in one[group].items():
                near = 0.1 if name == "foot_forces" else 5e-3  # a tenth of a force, where a foot has just landed
                assert torch.allclose(value, other[group][name].cpu(), atol=near, rtol=2e-3), name


def test_what_a_robot_on_legs_needs_is_said() -> None:
    with pytest.raises(ConfigError, match="TrackVelocity-v1 needs a robot with feet and legs"):
        manikin.make("TrackVelocity-v1", robot="panda")
    with pytest.raises(ConfigError, match=r"option 'friction' .* not negative"):
        manikin.make("TrackVelocity-v1", config={"friction": (-0.5, 1.0)})
    for option, given in (("friction", (2.0, 0.5)), ("friction", (0.0, 1.0)), ("trunk_mass", (1.2, 0.9))):
        with pytest.raises(
            ConfigError, match=rf"{option!r} of TrackVelocity-v1 must be two positive factors.*{given[0]}"
        ):
            manikin.make("TrackVelocity-v1", config={option: given})
    for option, least in (("latency_s", -0.01), ("command_s", 0.0), ("push_every_s", -1.0)):
        with pytest.raises(ConfigError, match=f"option {option!r} of TrackVelocity-v1 must"):
            manikin.make("TrackVelocity-v1", config={option: least})
    env = manikin.make("PickCube-v2", reward="none")
    env.reset(seed=0)
    with pytest.raises(SceneError, match="no free base that could be pushed"):
        env.robot.push(torch.zeros(1, 3))
    with pytest.raises(SceneError, match="no free base; only robots with one keep time"):
        _ = env.robot.time
