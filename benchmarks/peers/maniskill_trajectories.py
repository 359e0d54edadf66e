"""ManiSkill's side of the comparison of trajectories; run with ManiSkill 3.0.1's own Python (see docs/exchange.md).

record FOLDER   records episodes with its RecordEpisode wrapper: random actions, driven ones that mostly succeed, and
                small random moves by each controller
load FILE       loads an exported file with its own tools, sets every state in its environment, compares
"""

# ruff: noqa: RUF005  (a sum of vectors is no list)

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium as gym
import h5py
import mani_skill.envs  # noqa: F401  registers
import numpy as np
import sapien
import torch
from mani_skill.trajectory.dataset import ManiSkillTrajectoryDataset
from mani_skill.trajectory.utils import dict_to_list_of_dicts
from mani_skill.utils.wrappers.record import RecordEpisode
from scipy.spatial.transform import Rotation

TASKS = "PickCube PushCube PullCube StackCube PlaceSphere LiftPegUpright PegInsertionSide".split()
MODES = "joint_pos joint_target_delta_pos joint_delta_pos joint_vel ee_pose ee_delta_pos ee_delta_pose".split()
MODES = [f"pd_{mode}" for mode in MODES]


def record(folder: Path) -> None:
    """Three random episodes and three driven ones of each task."""
    for task in TASKS:
        for how, mode in (("random", "pd_joint_delta_pos"), ("driven", "pd_ee_delta_pos")):
            env = gym.make(
                f"{task}-v1", obs_mode="state_dict", control_mode=mode, sim_backend="physx_cpu", reward_mode="dense"
            )
            env = RecordEpisode(env, str(folder), trajectory_name=f"{how}.{task}", save_video=False, source_type=how)
            for seed in range(3):
                env.reset(seed=seed)
                if how == "random":
                    env.action_space.seed(seed)
                    for _ in range(30):
                        env.step(env.action_space.sample())
                else:
                    drive(env, task)
            env.close()
    record_modes(folder)


def record_modes(folder: Path) -> None:
    """Three episodes of small random moves of PickCube by each controller."""
    for mode in MODES:
        options = {"obs_mode": "state_dict", "sim_backend": "physx_cpu", "reward_mode": "dense"}
        env = gym.make("PickCube-v1", control_mode=mode, **options)
        env = RecordEpisode(env, str(folder), trajectory_name=f"modes.{mode}", save_video=False, source_type="random")
        agent = env.unwrapped.agent
        for seed in range(3):
            env.reset(seed=seed)
            draw = np.random.Generator(np.random.Philox(seed))
            drift = draw.uniform(-1, 1, 8)
            joints = agent.robot.get_qpos()[0].numpy()[:7]
            tool = agent.robot.pose.inv() * agent.tcp.pose
            place, turn = tool.p[0].numpy(), Rotation.from_quat(tool.q[0].numpy()[[1, 2, 3, 0]])
            for t in range(30):
                move = np.clip(0.5 * drift + 0.5 * draw.uniform(-1, 1, 8), -1, 1)
                if mode == "pd_joint_pos":
                    joints = joints + 0.05 * move[:7]
                    action = joints
                elif mode == "pd_ee_pose":
                    place, turn = place + 0.02 * move[:3], Rotation.from_rotvec(0.03 * move[3:6]) * turn
                    action = [*place, *turn.as_euler("XYZ")]
                else:
                    action = 0.5 * move[: env.action_space.shape[0] - 1]
                env.step(np.float32([*action, 1 if t < 15 else -1]))
        env.close()


def drive(env: gym.Env, task: str) -> None:
    """A few straight moves of the tool; where these do not do, the thing is put in its place and physics goes on."""
    u = env.unwrapped
    tcp = lambda: u.agent.tcp.pose.p[0].numpy()  # noqa: E731
    at = lambda actor: actor.pose.p[0].numpy()  # noqa: E731

    def go(to, grip: float, steps: int) -> None:
        for _ in range(steps):
            aim = to() if callable(to) else to
            env.step(np.float32([*np.clip((aim - tcp()) * 8, -1, 1), grip]))

    if task in ("PickCube", "StackCube", "PlaceSphere"):
        thing = {"PickCube": "cube", "StackCube": "cubeA", "PlaceSphere": "obj"}[task]
        thing = getattr(u, thing)
        start = at(thing)
        go(start + [0, 0, 0.08], 1, 14)
        go(start, 1, 12)
        go(start, -1, 5)
        if task == "PickCube":
            go(lambda: u.goal_site.pose.p[0].numpy() + tcp() - at(thing), -1, 25)
        else:
            below, height = (u.cubeB, 0.04) if task == "StackCube" else (u.bin, 0.0225)
            go(start + [0, 0, 0.1], -1, 10)
            top = lambda: at(below) + [0, 0, height] + tcp() - at(thing)  # noqa: E731
            go(lambda: top() + [0, 0, 0.05], -1, 22)
            go(lambda: top() + [0, 0, 0.001], -1, 15)
            go(tcp(), 1, 5)
            go(tcp() + [0, 0, 0.08], 1, 10)
    elif task in ("PushCube", "PullCube"):
        side = -1 if task == "PushCube" else 1
        start = at(u.obj)
        go(start + [0.07 * side, 0, 0.1], -1, 14)
        go(start + [0.07 * side, 0, 0.0], -1, 14)
        go(start + [-0.14 * side, 0, 0.0], -1, 25)
    else:
        for _ in range(5):
            env.step(env.action_space.sample() * 0.3)
        if task == "LiftPegUpright":
            u.peg.set_pose(sapien.Pose([0.05, 0.0, 0.12], [0.5, 0.5, -0.5, 0.5]))
        else:
            u.peg.set_pose((u.goal_pose * sapien.Pose([-0.005, 0.0, 0.001])).sp)
        for _ in range(5):
            env.step(np.zeros(4, np.float32))


def load(path: Path) -> None:
    """Its dataset, then every state into its environment: where things are, whether it succeeds, its reward."""
    dataset = ManiSkillTrajectoryDataset(str(path))
    about = json.loads(path.with_suffix(".json").read_text())
    env = gym.make(dataset.env_id, sim_backend="physx_cpu", **{**dataset.env_kwargs, "obs_mode": "state_dict"})
    u = env.unwrapped
    apart, turn, agree, count, gaps, tool, paths = 0.0, 0.0, 0, 0, [], 0.0, []
    with h5py.File(path) as file:
        for one in about["episodes"]:
            env.reset(seed=one["episode_seed"])
            group = file[f"traj_{one['episode_id']}"]
            states = dict_to_list_of_dicts(group["env_states"])
            for t, state in enumerate(states):
                batch = {k: {n: torch.tensor(v)[None] for n, v in d.items()} for k, d in state.items()}
                u.set_state_dict(batch)
                for name, wanted in state["actors"].items():
                    got = u.scene.state_dict_registry.actors[name].get_state()[0].numpy()
                    apart = max(apart, float(np.abs(got[:3] - wanted[:3]).max()))
                    turn = max(turn, 1 - abs(float(got[3:7] @ wanted[3:7])))
                if "obs" in group and "extra" in group["obs"]:
                    tool = max(
                        tool, float(np.abs(u.agent.tcp.pose.p[0].numpy() - group["obs/extra/tcp_pose"][t][:3]).max())
                    )
                info = u.evaluate()
                if t:
                    count += 1
                    agree += bool(info["success"][0]) == bool(group["success"][t - 1])
                    if "rewards" in group and u.reward_mode in ("dense", "normalized_dense"):
                        reward = u.get_reward(obs=None, action=torch.tensor(group["actions"][t - 1])[None], info=info)
                        held = [bool(value[0]) for key, value in info.items() if key.endswith("grasped")]
                        recorded = "obs/extra/is_grasped" in group and bool(group["obs/extra/is_grasped"][t])
                        lost = bool(held) and held[0] != recorded
                        gaps.append((lost, abs(float(reward) - float(group["rewards"][t - 1]))))
            if "extra" in group["obs"]:  # its actions from its first state: how far the tool parts from the recording
                env.reset(seed=one["episode_seed"])
                first = {k: {n: torch.tensor(v)[None] for n, v in d.items()} for k, d in states[0].items()}
                u.set_state_dict(first)
                u.agent.controller.reset()
                paths.append([])
                for action, wanted in zip(group["actions"][:25], group["obs/extra/tcp_pose"][1:26], strict=False):
                    u.step(action)
                    got = u.agent.tcp.pose.raw_pose[0].numpy()
                    angle = 2 * np.arccos(min(1.0, abs(float(got[3:] @ wanted[3:]))))
                    paths[-1].append((1e3 * float(np.linalg.norm(got[:3] - wanted[:3])), angle))
    print(
        f"{path.name}: {len(dataset)} steps, actions {dataset.actions.shape}, {dataset.env_id} {u.control_mode}; "
        f"positions {1e3 * apart:.2g} mm, 1 - |q.q'| {turn:.1g}, tool {1e3 * tool:.2g} mm, "
        f"success as recorded {agree} of {count}; reward within 0.01 in {np.mean([g < 0.01 for _, g in gaps]):.0%}, "
        f"not seen as held in {sum(lost for lost, _ in gaps)}, reward in the others at most "
        f"{max((gap for lost, gap in gaps if not lost), default=0.0):.2g} apart"
    )
    for t in (5, 15, 25):
        there = np.array([path[t - 1] for path in paths if len(path) >= t])
        if len(there):
            print(f"   actions, after {t} steps: tool {there[:, 0].max():.1f} mm and {there[:, 1].max():.3f} rad apart")
    env.close()


if __name__ == "__main__":
    command, target = sys.argv[1:3]
    {"record": record, "load": load}[command](Path(target))
