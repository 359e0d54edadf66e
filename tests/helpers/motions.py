"""Recorded motions of a simulated arm whose parameters are known."""

from __future__ import annotations

import numpy as np

from manikin.robots import robot
from manikin.sysid import Trajectories, Trajectory, parse_parameter
from manikin.sysid.rollout import Rollout


def moved(
    vary: list[str],
    truth: list[float],
    *,
    word: str = "widowx_bridge",
    control: str = "ee_target_delta_pose",
    episodes: int = 3,
    steps: int = 12,
    noise: float = 0.0,
    physics_hz: float = 100.0,
    seed: int = 0,
) -> Trajectories:
    """What the arm does with the parameters ``truth`` of ``vary``, [m] and [rad] of noise added; at 5 Hz it goes to and
    fro in all six directions of the tool, or with all joints."""
    rng = np.random.default_rng(seed)
    rest = np.array(robot(word).arm.keyframes["rest"], float)
    joints = control.startswith("joint")
    sizes, middle = (np.full(6, 0.4), rest) if joints else (np.array([0.03] * 3 + [0.1] * 3), np.zeros(6))
    asked = [middle + np.repeat(rng.uniform(-1, 1, (-(-steps // 3), 6)), 3, 0)[:steps] * sizes for _ in range(episodes)]
    still = [
        Trajectory(name=f"motion {k}", actions=actions, qpos=np.tile(rest, (steps, 1)))
        for k, actions in enumerate(asked)
    ]
    blank = Trajectories(robot=word, control=control, control_hz=5.0, items=tuple(still))
    rollout = Rollout(blank, [parse_parameter(one) for one in vary], physics_hz=physics_hz, batch=1)
    tracks = rollout(np.array([truth], float))
    rollout.close()
    items = []
    for k, actions in enumerate(asked):
        pos, quat, qpos = (getattr(tracks, key)[0, k].numpy() for key in ("pos", "quat", "qpos"))
        quat = quat + rng.normal(0, noise / 2, quat.shape)
        items.append(
            Trajectory(
                name=f"motion {k}",
                actions=actions,
                pos=pos + rng.normal(0, noise, pos.shape),
                quat=quat / np.linalg.norm(quat, axis=1, keepdims=True),
                qpos=np.concatenate([qpos[:1], qpos[1:] + rng.normal(0, noise, qpos[1:].shape)]),
            )
        )
    return Trajectories(robot=word, control=control, control_hz=5.0, items=tuple(items), source="simulated")
