"""A policy on a robot behind LeRobot's interface: the simulated one gives the bits of ``env.step``; faults are counted;
every error has its name and leaves the arm at rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.deploy import MOTORS, Faults, JointUnits, RobotInterface, Safety, SimulatedRobot, run_on_robot
from manikin.env.observe import Vision
from manikin.errors import ActionError, ConfigError, RobotError, UnknownNameError

STEPS = 12


class Wave:
    """Actions that depend on what is seen and on the step."""

    def __init__(self, spoil: Any = None) -> None:
        self.k, self.spoil, self.seen = 0, spoil, []

    def reset(self, rows: torch.Tensor) -> None:
        self.k = 0

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        told = observation["policy"]["qpos"].sum() if isinstance(observation, Mapping) else observation.sum()
        bright = (
            observation["cameras"]["base_camera"]["rgb"].float().mean() if isinstance(observation, Mapping) else 0.0
        )
        self.seen.append(observation)
        action = torch.sin(torch.arange(6.0) + 0.7 * self.k + told + 0.1 * bright)[None, None]
        action[..., -1] = -1.0 if self.k > 3 else 1.0
        self.k += 1
        return action if self.spoil is None else self.spoil(action, self.k)


def env(observe: str = "policy", **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "horizon": 400, "observe": observe, **options}
    if observe != "policy":
        options["vision"] = Vision(size=(32, 24))
        options["renderer"] = "rays"
    return manikin.make("GraspCube-v1", **options)


@pytest.fixture(scope="module")
def plain() -> manikin.Env:
    return env()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return all(same(one[k], other[k]) for k in one if k not in ("K", "T"))
    return torch.equal(one, other)


@pytest.mark.parametrize("observe", ["policy", "rgb"])
def test_without_faults_it_is_env_step_to_the_bit(observe: str) -> None:
    steps = STEPS if observe == "policy" else 5
    one, policy, truth = env(observe), Wave(), []
    seen, _ = one.reset(seed=3)
    for _ in range(steps):
        truth.append(seen)
        seen, *_, info = one.step(policy.act(seen, [""])[:, 0])
    ends = one.h.robot.qpos.clone(), one.h.cube.pose.clone()

    other, again = env(observe), Wave()
    result = run_on_robot(again, SimulatedRobot(other, seed=3), other, steps=steps)
    assert (result.steps, result.late, result.limited, result.ended) == (steps, 0, 0, "steps")
    assert all(same(a, b) for a, b in zip(truth, again.seen, strict=True))
    assert torch.equal(ends[0], other.h.robot.qpos)
    assert torch.equal(ends[1], other.h.cube.pose)
    assert result.success == bool(info["success"][0])


def test_latency_delays_commands_by_whole_steps_and_counts_them(plain: manikin.Env) -> None:
    """Reference: the same actions, each executed two steps later, before that the posture of the start."""
    sent: list[torch.Tensor] = []
    robot = SimulatedRobot(plain, seed=1, faults=Faults(latency=1.5 / 30))
    inner = robot.send_action
    robot.send_action = lambda action: sent.append(action) or inner(action)  # type: ignore[method-assign]
    result = run_on_robot(Wave(), robot, plain, steps=STEPS)
    assert robot.late_actions == STEPS + 1  # the last one tells it to stay
    assert result.steps == robot.steps == STEPS
    late = plain.h.robot.qpos.clone()

    robot = SimulatedRobot(plain, seed=1)
    robot.connect()
    start = robot.get_observation()
    for k in range(STEPS):
        robot.send_action(sent[k - 2] if k >= 2 else start)
        robot.clock.wait_until((k + 1) / 30)
        robot.get_observation()
    assert torch.equal(late, plain.h.robot.qpos)


def test_dropped_pictures_are_delivered_again_and_counted() -> None:
    one = env("rgb")
    robot = SimulatedRobot(one, faults=Faults(dropped=0.5, seed=2))
    result = run_on_robot(Wave(), robot, one, steps=8)
    assert 0 < robot.dropped < 8
    assert result.repeated >= robot.dropped - 1  # the last may come after the last step
    stale = SimulatedRobot(one, faults=Faults(picture_latency=2 / 30))
    policy = Wave()
    run_on_robot(policy, stale, one, steps=5)
    shown = [seen["cameras"]["base_camera"]["rgb"] for seen in policy.seen]
    assert torch.equal(shown[0], shown[1]) and torch.equal(shown[0], shown[2]) and not torch.equal(shown[2], shown[3])


def test_the_world_goes_on_while_a_policy_thinks(plain: manikin.Env) -> None:
    robot = SimulatedRobot(plain)

    def slow(action: torch.Tensor, k: int) -> torch.Tensor:
        robot.clock.spend(0.08)
        return action

    result = run_on_robot(Wave(slow), robot, plain, steps=5)
    assert result.late == 4 and robot.steps == 12  # five answers of 80 ms at 30 Hz
    with pytest.raises(RobotError, match=r"the policy took 0\.080 s, longer than the watchdog allows"):
        run_on_robot(Wave(slow), robot, plain, steps=5, safety=Safety(watchdog=0.05))


def test_limits_hold_and_are_counted(plain: manikin.Env) -> None:
    robot = SimulatedRobot(plain)
    sent: list[Any] = []
    inner = robot.send_action
    robot.send_action = lambda action: sent.append(robot.units.to_joints(action)) or inner(action)  # type: ignore
    result = run_on_robot(Wave(), robot, plain, steps=STEPS, safety=Safety(step=0.01, margin=0.02))
    moves = np.abs(np.diff(np.array(sent[:-1]), axis=0))
    assert moves.max() <= 0.01 + 1e-6 and result.limited == STEPS
    assert (np.array(sent) >= robot.units.low + 0.02 - 1e-6).all() or sent[-1][-1] < robot.units.low[-1] + 0.02


@pytest.mark.parametrize("degrees", [True, False])
@pytest.mark.parametrize("name", ["so101", "koch"])
def test_units_go_round_to_the_bit(name: str, degrees: bool) -> None:
    one = manikin.make("GraspCube-v1", robot=name)
    units = JointUnits(one.h.robot, degrees=degrees, flip=("elbow_flex",))
    rng = np.random.default_rng(0)
    for q in rng.uniform(units.low, units.high, (50, 6)).astype(np.float32):
        assert np.array_equal(units.to_joints(units.to_motors(q)).astype(np.float32), q)
    q = np.zeros(6)
    q[2] = 0.5
    said = units.to_motors(q)
    assert set(said) == {f"{motor}.pos" for motor in (*MOTORS, "gripper")}
    assert not degrees or said["elbow_flex.pos"] == pytest.approx(-np.rad2deg(0.5))
    shut = one.h.robot.gripper.closed_q[0]
    q[-1] = np.clip(shut, units.low[-1], units.high[-1])
    assert units.to_motors(q)["gripper.pos"] == pytest.approx(0.0, abs=1e-4)


class Broken(SimulatedRobot):
    """Fails as told."""

    fault, said, let_go = "", 0, 0

    def get_observation(self) -> dict[str, Any]:
        seen = super().get_observation()
        self.said += 1
        if self.fault == "nan" and self.said > 2:
            seen["gripper.pos"] = float("nan")
        if self.fault == "lost" and self.said > 2:
            raise ConnectionError("no status packet")
        if self.fault == "gone":
            del seen["wrist_flex.pos"]
        return seen

    def disconnect(self) -> None:
        self.let_go += 1
        super().disconnect()


@pytest.mark.parametrize(
    ("fault", "error", "match"),
    [
        ("nan", RobotError, "gripper.pos is nan, not a finite number"),
        ("lost", ConnectionError, "no status packet"),
        ("gone", RobotError, "the robot says nothing of wrist_flex.pos"),
    ],
)
def test_an_error_stops_the_run_and_lets_go(plain: manikin.Env, fault: str, error: type, match: str) -> None:
    robot = Broken(plain)
    robot.fault = fault
    with pytest.raises(error, match=match):
        run_on_robot(Wave(), robot, plain, steps=STEPS)
    assert robot.let_go == 1 and not robot.is_connected


def test_a_policy_that_answers_wrongly_is_named(plain: manikin.Env) -> None:
    robot = Broken(plain)
    with pytest.raises(RobotError, match="not finite"):
        run_on_robot(Wave(lambda a, k: a * float("nan") if k > 2 else a), robot, plain, steps=STEPS)
    with pytest.raises(ActionError, match=r"must be \(1, horizon, 6\)"):
        run_on_robot(Wave(lambda a, k: a[..., :5]), robot, plain, steps=STEPS)
    assert robot.let_go == 2


def test_what_does_not_fit_is_refused_before_anything_moves(plain: manikin.Env) -> None:
    robot = SimulatedRobot(plain)
    assert isinstance(robot, RobotInterface)
    with pytest.raises(ConfigError, match="privileged values, which no robot knows"):
        run_on_robot(Wave(), robot, env("state"), steps=1)
    with pytest.raises(UnknownNameError, match="camera of the robot for 'base_camera'"):
        run_on_robot(Wave(), robot, env("rgb"), steps=1)
    with pytest.raises(ConfigError, match="cannot drive a robot that takes joint positions"):
        run_on_robot(Wave(), robot, env(control="ee_delta_pos"), steps=1)
    with pytest.raises(ConfigError, match="steps must be 1 or more"):
        run_on_robot(Wave(), robot, plain, steps=0)
    pick = manikin.make("PickCube-v2", robot="so101", observe="policy", control="joint_target_delta_pos")
    with pytest.raises(ConfigError, match="PickCube-v2 observes qvel, which does not follow from joint positions"):
        run_on_robot(Wave(), robot, pick, steps=1)
    with pytest.raises(ConfigError, match="LeRobot's arms have 5 joints and a jaw; panda has 7"):
        JointUnits(manikin.make("PickCube-v2").h.robot)
    with pytest.raises(UnknownNameError, match="unknown motor 'elbow'"):
        JointUnits(plain.h.robot, flip=("elbow",))
    with pytest.raises(ConfigError, match="dropped is a share"):
        Faults(dropped=1.5)
    with pytest.raises(ConfigError, match="watchdog of Safety must be positive"):
        Safety(watchdog=0)
    assert not robot.is_connected
