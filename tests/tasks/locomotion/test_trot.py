"""Trotting: feet and torques beside plain MuJoCo, and the experts of the quadrupeds' tasks."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError
from manikin.plan.executor import WaypointExecutor
from manikin.robots import arm
from manikin.scene.robot import assemble
from manikin.tasks.locomotion.quadruped import GAITS
from manikin.tasks.locomotion.trot import Trot

ROBOTS = ("anymal_c", "go2")


def places(robot: str, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(4, 3) [m] of the middles of the feet in the base's frame, and their Jacobians (4, 3, 12), by MuJoCo."""
    spec = arm(robot)
    made = assemble(spec, None)
    model = made.spec.compile()
    data = mujoco.MjData(model)
    hinges = [model.joint(name) for name in made.arm_joints]
    data.qpos[[int(hinge.qposadr[0]) for hinge in hinges]] = joints
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    base = int(model.body(spec.links[0].name).id)
    where, moves = [], []
    for name in spec.feet:
        body = int(model.body(name).id)
        geom = next(g for g in np.flatnonzero(model.geom_bodyid == body) if model.geom_type[g] == 2)
        jacobian = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, jacobian, None, data.geom_xpos[geom], body)
        where.append(data.geom_xpos[geom] - data.xpos[base])
        moves.append(jacobian[:, [int(hinge.dofadr[0]) for hinge in hinges]])
    return np.array(where), np.array(moves)


@pytest.mark.parametrize("robot", ROBOTS)
def test_feet_get_where_the_closed_form_says(robot: str) -> None:
    trot, rng = Trot(arm(robot), GAITS[robot]), np.random.default_rng(0)
    rest, _ = places(robot, np.array(arm(robot).keyframes["rest"]))
    for _ in range(10):
        wanted = rest + rng.uniform(-0.06, 0.06, (4, 3)) + np.array([0, 0, 0.03])
        joints = trot.joints(torch.tensor(wanted[None], dtype=torch.float32))[0].numpy()
        assert places(robot, joints)[0] == pytest.approx(wanted, abs=1e-5)
    limits = np.array([joint.range for link in arm(robot).links for joint in link.joints])
    assert (joints >= limits[:, 0]).all() and (joints <= limits[:, 1]).all()


@pytest.mark.parametrize("robot", ROBOTS)
def test_torques_are_those_of_the_forces_on_the_feet(robot: str) -> None:
    """Of the hip's axis all of them, of thigh and shank where the leg is in its plane: it leans by 0.2 rad at most."""
    trot, rng = Trot(arm(robot), GAITS[robot]), np.random.default_rng(1)
    weight = 9.81 * sum(link.mass for link in arm(robot).links)
    for stands in ([1, 0, 0, 1], [1, 1, 1, 1]):
        joints = np.array(arm(robot).keyframes["rest"]) + rng.uniform(-0.1, 0.1, 12)
        push = rng.uniform(-40, 40, (4, 2))
        _, moves = places(robot, joints)
        force = np.concatenate([push, np.full((4, 1), weight)], 1) * np.array(stands)[:, None] / sum(stands)
        wanted = -np.einsum("fik,fi->k", moves, force)
        given = [torch.tensor(np.array(value)[None], dtype=torch.float32) for value in (joints, stands, push)]
        nothing = trot.torques(given[0], torch.zeros(1, 4), given[2])  # what carries the legs alone
        found = (trot.torques(*given) - nothing)[0].numpy()
        assert found == pytest.approx(wanted, abs=0.06 * weight * 0.3 / sum(stands) + 0.5)
        assert np.abs(wanted).max() > 5


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("task", ["QuadrupedReach-v1", "QuadrupedSpin-v1"])
def test_the_expert_trots(task: str, robot: str) -> None:
    env = manikin.make(task, 4, robot=robot, autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=100)
    expert, once = WaypointExecutor(env), torch.zeros(4, dtype=torch.bool)
    swung = torch.zeros(4, 4, dtype=torch.bool)
    for _ in range(env.horizon):
        info = env.step(expert.act())[-1]
        once |= info["success"]
        swung |= env.robot.foot_forces == 0
    assert once.all() and not info["fail"].any() and swung.all()
    env.close()


def test_a_robot_without_a_gait_is_named() -> None:
    env = manikin.make("QuadrupedSpin-v1", robot="spot", reward="none")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="gaits of anymal_c, go2, not of spot"):
        env.task.expert(env.h)
    env.close()
