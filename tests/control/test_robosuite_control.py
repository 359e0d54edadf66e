"""OSC_POSE against robosuite's own, played with the same actions on the same arm; and what parts arms."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.grippers.panda_hand import GRIPPER
from manikin.math import quat_to_matrix
from manikin.robots import register
from manikin.robots.panda import ARM
from manikin.spec.physics import Physics
from manikin.tasks.robosuite.lift import Lift

PUBLISHED = json.loads((Path(__file__).parents[1] / "published" / "robosuite_osc.json").read_text())


class Reach(Lift):
    """Lift that starts without noise, its cube far away."""

    id = "Reach-v0"
    physics = Physics(hz=500, impratio=20)

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe("ready").expand(h.n, -1))
        h.cube.set_pose((0.3, 0.3, 0.03))


def _robosuites_panda() -> str:
    """Register a Panda with the masses and motors of robosuite's."""
    hand, links = PUBLISHED["hand"], [ARM.links[0]]
    for link, numbers, armature in zip(ARM.links[1:], PUBLISHED["links"], PUBLISHED["armature"], strict=True):
        joint = dataclasses.replace(link.joint, armature=armature, damping=0.0)
        links.append(dataclasses.replace(link, joint=joint, **{k: _tuple(v) for k, v in numbers.items()}))
    quat = np.array(hand["quat"]) / np.linalg.norm(hand["quat"])
    whole = {k: _tuple(hand[k]) for k in ("mass", "com", "inertia")}
    fingers = [dataclasses.replace(finger, mass=1e-6, inertia=(1e-9,) * 3) for finger in GRIPPER.links[1:]]
    gripper = dataclasses.replace(
        GRIPPER,
        name="robosuites_hand",
        links=(dataclasses.replace(GRIPPER.links[0], **whole), *fingers),
        tcp_pos=(0, 0, hand["tool"]),
        menagerie=None,
    )
    arm = dataclasses.replace(
        ARM,
        name="robosuites_panda",
        links=tuple(links),
        effort=_tuple(PUBLISHED["effort"]),
        flange_pos=_tuple(hand["pos"]),
        flange_quat=_tuple(quat.tolist()),
        gripper="robosuites_hand",
        menagerie=None,
    )
    return register(arm, gripper=gripper).name


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _apart(robot: str, track: dict[str, Any], kind: str = "poses") -> tuple[float, float]:
    """The most by which the tool's ways part from robosuite's [m], [rad]; each from its own start."""
    env = manikin.make(Reach, num_envs=1, robot=robot, control="OSC_POSE", autoreset="disabled", observe="state_dict")
    env.reset(seed=0)
    seen = [torch.cat([env.h.robot.tcp_pos, quat_to_matrix(env.h.robot.tcp_quat).reshape(1, 9)], 1)]
    for action in track["actions"]:
        env.step(torch.tensor([[*action, 1.0]]))
        seen.append(torch.cat([env.h.robot.tcp_pos, quat_to_matrix(env.h.robot.tcp_quat).reshape(1, 9)], 1))
    env.close()
    ways, turns = [], []
    for poses in (torch.cat(seen).double().numpy(), np.array(track[kind])):
        rotation = poses[:, 3:].reshape(-1, 3, 3)
        ways.append(poses[:, :3] - poses[0, :3])
        turns.append(rotation @ rotation[0].T)
    between = np.einsum("tij,tij->t", *turns)  # 1 + 2 cos of the angle
    return float(np.linalg.norm(ways[0] - ways[1], axis=1).max()), math.acos(min(1, (between.min() - 1) / 2))


@pytest.mark.parametrize("name", PUBLISHED["tracks"])
def test_on_the_same_arm_the_tool_goes_where_robosuites_goes(name: str) -> None:
    track = PUBLISHED["tracks"][name]
    way, turn = _apart(_robosuites_panda(), track)
    assert way < 2e-3 and turn < math.radians(0.2)
    # what parts them: robosuite's air and joint friction, and the inertia of its arm
    assert _apart(_robosuites_panda(), track, "shipped")[1] > math.radians(0.5)
    other_way, other_turn = _apart("panda", track)
    assert other_way > 3 * way and other_turn > math.radians(0.15)


def test_the_tool_centre_point_lies_between_the_fingers_where_robosuites_does() -> None:
    """6.9 mm farther from the arm, since Franka's fingers reach 6.4 mm farther than robosuite's."""
    hand = PUBLISHED["hand"]
    ours, theirs = ARM.flange_pos[2] + GRIPPER.tcp_pos[2], hand["pos"][2] + hand["tool"]
    assert ours - theirs == pytest.approx(6.9e-3, abs=1e-5)
    env = manikin.make(Reach, num_envs=1)
    model = env.scene.model
    finger = model.body("robot/left_finger")
    geoms = range(finger.geomadr[0], finger.geomadr[0] + finger.geomnum[0])
    tip = finger.pos[2] + max(model.geom_pos[g, 2] + model.geom_size[g, 2] for g in geoms)
    assert tip - GRIPPER.tcp_pos[2] == pytest.approx(PUBLISHED["fingertip"], abs=5e-4)
