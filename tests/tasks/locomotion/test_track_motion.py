"""TrackMotion: the motions on plain MuJoCo, the reward beside its formulas, starts, failures, files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.robots import arm
from manikin.tasks.locomotion.motions import MOTIONS, Motion, built_in, hands, rates, read_motion, resampled

H1, HZ, DT = arm("h1"), 50.0, 0.02


def tracker(num_envs: int = 1, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    env = manikin.make("TrackMotion-v1", num_envs, **options)
    env.reset(seed=0)
    return env


@pytest.fixture(scope="module")
def plain() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The scene's model, and data of it."""
    env = tracker()
    return env.model_data(0)


def feet(model: mujoco.MjModel, data: mujoco.MjData, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(2, 3) where the left and the right foot are, and (2,) cosine of how far they lean."""
    data.qpos[: len(qpos)] = qpos
    mujoco.mj_kinematics(model, data)
    both = [model.body(f"robot/{side}_ankle_link").id for side in ("left", "right")]
    return data.xpos[both].copy(), data.xmat[both][:, 8].copy()


@pytest.mark.parametrize("name", MOTIONS)
def test_feet_that_stand_stay_flat_and_where_they_are(name: str, plain: Any) -> None:
    motion = built_in(name, H1, HZ)
    start, _ = feet(*plain, motion.qpos[0])
    lifted = np.zeros(2)
    for qpos in motion.qpos:
        now, upright = feet(*plain, qpos)
        assert upright.min() > math.cos(1e-3)
        assert np.abs(now[:, :2] - start[:, :2]).max() < 1e-5
        high = now[:, 2] - start[:, 2]
        assert high.min() == pytest.approx(0.0, abs=1e-5)  # one stands at least
        lifted = np.maximum(lifted, high)
    assert lifted == pytest.approx([0.06, 0.06] if name == "step" else [0.0, 0.0], abs=1e-3)
    down = motion.qpos[0, 2] - motion.qpos[:, 2].min()
    assert down == pytest.approx(0.14 if name == "squat" else 0.0, abs=1e-3)


def test_one_hand_is_raised_and_waves() -> None:
    places = hands(built_in("wave", H1, HZ), H1)
    left, right = places[:, 0], places[:, 1]
    assert np.abs(left - left[0]).max() == 0
    waves = right[50:150]
    assert (waves[:, 2] - right[0, 2]).min() > 0.42
    crossed = np.diff(np.sign(waves[:, 1] - waves[:, 1].mean()))
    assert np.ptp(waves[:, 1]) > 0.15 and np.count_nonzero(crossed) in (3, 4)  # there and back, twice


@pytest.mark.parametrize("name", MOTIONS)
def test_rates_lead_from_frame_to_frame_and_joints_keep_within_what_servos_and_actions_can(
    name: str, plain: Any
) -> None:
    motion = built_in(name, H1, HZ)
    speed = rates(motion)
    for k in range(len(motion.qpos)):
        middle = (speed[k] + speed[(k + 1) % len(speed)]) / 2
        there = np.zeros(len(plain[1].qpos))
        there[: motion.qpos.shape[1]] = motion.qpos[k]
        step = np.zeros(plain[0].nv)
        step[: len(middle)] = middle
        mujoco.mj_integratePos(plain[0], there, step, 1 / HZ)
        assert there[: motion.qpos.shape[1]] == pytest.approx(motion.qpos[(k + 1) % len(speed)], abs=4e-3)
    assert np.abs(motion.qpos[:, 7:] - H1.keyframes["rest"]).max() < 1.0  # what actions reach
    limits = np.array([joint.range for link in H1.links for joint in link.joints])
    assert (motion.qpos[:, 7:] >= limits[:, 0]).all() and (motion.qpos[:, 7:] <= limits[:, 1]).all()


def test_the_base_turns_at_the_rate_of_its_quaternions() -> None:
    """A base that turns about its own z with 0.8 rad/s while it leans."""
    turns = 0.8 * np.arange(60) / HZ
    lean = np.array([math.cos(0.1), math.sin(0.1), 0, 0])
    qpos = np.zeros((60, 26))
    for out, turn in zip(qpos, turns, strict=True):
        mujoco.mju_mulQuat(out[3:7], lean, np.array([math.cos(turn / 2), 0, 0, math.sin(turn / 2)]))
        out[3:7] *= (-1) ** int(turn * 10)  # either sign is the same rotation
    found = rates(resampled(Motion(qpos=qpos, hz=HZ, loops=False), HZ))
    assert found[1:-1, 3:6] == pytest.approx(np.tile([0, 0, 0.8], (58, 1)), abs=1e-6)


def test_at_the_start_the_robot_is_in_the_motion_and_gets_the_whole_reward() -> None:
    env = tracker(64, config={"motion": "wave", "start_noise": 0.0})
    first = env.h.first.value.long()
    assert first.min() < 20 and first.max() > 180  # of 200 frames
    motion, speed = built_in("wave", H1, HZ), rates(built_in("wave", H1, HZ))
    data = env.world.data(5)[1]
    assert data.qpos[:26] == pytest.approx(motion.qpos[first[5]], abs=1e-5)
    assert data.qvel[:25] == pytest.approx(speed[first[5]], abs=1e-5)
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(64, 19))
    assert torch.allclose(sum(terms.values()), torch.full((64,), DT), atol=1e-6)
    assert not env.task.evaluate(env.h)["fail"].any()
    from_the_first = tracker(8, config={"random_start": False})
    assert (from_the_first.h.first.value == 0).all()


def test_the_reward_is_what_the_formulas_say() -> None:
    env = tracker(1, config={"motion": "squat", "far": 10.0, "far_turn": 4.0})
    motion = built_in("squat", H1, HZ)
    speed, places = rates(motion), hands(motion, H1)
    model, data = env.model_data(0)
    root = model.body("robot/pelvis").id
    tools = [model.body(env.robot.prefix + tool.model.tcp_body).id for tool in env.robot.tools.values()]
    first, random = int(env.h.first.value), torch.Generator().manual_seed(0)
    met, error = dict.fromkeys(env.task.reward_terms, 0.0), 0.0
    for k in range(1, 26):
        _, _, _, _, info = env.step(torch.rand(1, 19, generator=random) * 0.6 - 0.3)
        model, data = env.model_data(0)
        mujoco.mj_kinematics(model, data)
        frame = (first + k) % len(speed)
        q, want = data.qpos[7:26], motion.qpos[frame]
        turn = data.xmat[root].reshape(3, 3)
        reach = (data.xpos[tools] - data.xpos[root]) @ turn
        between = np.zeros(3)
        mujoco.mju_subQuat(between, data.qpos[3:7], want[3:7])
        away = np.sum((data.qpos[:3] - want[:3]) ** 2) + between @ between
        wanted = {
            "joints": 0.65 * math.exp(-2 * np.sum((q - want[7:]) ** 2)),
            "speeds": 0.1 * math.exp(-0.1 * np.sum((data.qvel[6:25] - speed[frame, 6:]) ** 2)),
            "hands": 0.15 * math.exp(-40 * np.sum((reach - places[frame]) ** 2)),
            "base": 0.1 * math.exp(-10 * away),
        }
        error += np.abs(q - want[7:]).mean()
        for name, value in wanted.items():
            assert info["reward_terms"][name].item() == pytest.approx(DT * value, abs=2e-6), name
            met[name] = max(met[name], value)
        assert info["joint_error"].item() == pytest.approx(error / k, abs=1e-5)
    assert min(met.values()) > 0.01


def test_the_policy_sees_where_the_motion_goes_next() -> None:
    env = tracker(1, config={"motion": "squat", "start_noise": 0.0, "random_start": False})
    motion = built_in("squat", H1, HZ)
    for k in (1, 2, 3):
        seen = env.step(torch.zeros(1, 19))[0]
        ahead = motion.qpos[k + 1, 7:] - H1.keyframes["rest"]
        assert seen["policy"]["next_joints"][0].numpy() == pytest.approx(ahead, abs=1e-6)
        turn = 2 * math.pi * k / 150
        assert seen["policy"]["phase"][0].tolist() == pytest.approx([math.cos(turn), math.sin(turn)], abs=1e-6)
        named = {name for group in seen.values() for name in group} - {"qpos", "qvel"}
        assert named == set(env.task.observations)


@pytest.mark.parametrize(
    ("pose", "lost"),
    [
        ((0.3, 0, 0, 1, 0, 0, 0), False),
        ((0.3, 0.3, 0, 1, 0, 0, 0), True),  # farther than 0.4 m
        ((0, 0, 0, math.cos(0.45), 0, 0, math.sin(0.45)), False),  # turned by 0.9 rad
        ((0, 0, 0, math.cos(0.55), 0, 0, math.sin(0.55)), True),  # by 1.1
    ],
)
def test_who_is_too_far_from_the_motion_has_failed(pose: tuple[float, ...], lost: bool) -> None:
    env = tracker(config={"start_noise": 0.0, "random_start": False})
    env.h.robot.set_root(torch.tensor(pose) + torch.tensor([0, 0, 0.956, 0, 0, 0, 0]))
    env.world.forward()
    assert env.task.evaluate(env.h)["fail"].item() is lost


@pytest.mark.parametrize(("seconds", "success"), [(9.98, [False, False]), (10.0, [True, False])])
def test_success_is_a_small_mean_error_at_the_end(seconds: float, success: list[bool]) -> None:
    env = tracker(2, config={"start_noise": 0.0})
    snapshot = env.save()
    snapshot.state[:, 0] = seconds
    env.load(snapshot)
    env.h.error.set(torch.tensor([500 * 0.14, 500 * 0.16]))
    assert env.task.evaluate(env.h)["success"].tolist() == success


@pytest.mark.parametrize("name", MOTIONS)
def test_the_expert_follows_and_the_motion_alone_falls(name: str) -> None:
    """The reference without feedback is asked for in the second environment."""
    env, bare = (tracker(4, config={"motion": name}) for _ in range(2))
    expert = WaypointExecutor(env)
    for _ in range(env.horizon):
        info = env.step(expert.act())[-1]
    assert info["success"].all() and info["joint_error"].max() < 0.05
    for _ in range(bare.horizon):
        seen = bare.task.observe(bare.h)["policy"]["next_joints"]
        info = bare.step(seen)[-1]
    assert info["fail"].all()


# ---- files ----------------------------------------------------------------------------------------------------------


def walk(path: Path, **changed: Any) -> Path:
    """A base that goes on by 1 m in a second, at 10 frames per second, joints at rest."""
    qpos = np.tile(np.array([*H1.base_pos, 1, 0, 0, 0, *H1.keyframes["rest"]]), (11, 1))
    qpos[:, 0] = np.arange(11) / 10
    np.savez(path, **{"qpos": qpos, "hz": 10.0, **changed})
    return path


def test_a_motion_that_loops_goes_on_and_one_that_does_not_stays_at_its_end(tmp_path: Path) -> None:
    file = str(walk(tmp_path / "walk.npz"))
    for loop, ends in ((True, None), (False, 1.0)):
        env = tracker(config={"file": file, "loop": loop, "far": 10.0, "random_start": False})
        for _ in range(60):
            env.step(torch.zeros(1, 19))
        x = env.task.reference(env.h)[0, 0].item()
        # a round is 1.1 s: the step from the last frame to the first one takes as long as any other
        assert x == pytest.approx(1.2 / 1.1 if loop else ends, abs=0.1)
    motion = resampled(read_motion(file, H1, loops=False), HZ)
    assert len(motion.qpos) == 51 and motion.qpos[:, 0] == pytest.approx(np.arange(51) / 50, abs=1e-9)
    assert rates(motion)[1:-1, 0] == pytest.approx(np.ones(49), abs=1e-9)


@pytest.mark.parametrize("word", ["g1", "go2"])
def test_other_robots_on_legs_follow_a_file(word: str, tmp_path: Path) -> None:
    spec = arm(word)
    still = np.tile(np.array([*spec.base_pos, 1, 0, 0, 0, *spec.keyframes["rest"]]), (5, 1))
    np.savez(tmp_path / "still.npz", qpos=still, hz=20.0)
    env = tracker(robot=word, config={"file": str(tmp_path / "still.npz"), "start_noise": 0.0})
    terms = env.task.reward(env.h, env.task.evaluate(env.h), torch.zeros(1, env.single_action_space.shape[0]))
    assert sum(terms.values()).item() == pytest.approx(DT, abs=1e-6)
    with pytest.raises(ConfigError, match="the built-in motions are H1's"):
        manikin.make("TrackMotion-v1", robot=word)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"qpos": np.zeros((11, 20))}, r"qpos must be \(2 frames or more, 26\) for h1, but it is \(11, 20\)"),
        ({"qpos": np.zeros((1, 26))}, "2 frames or more"),
        ({"qpos": np.zeros((3, 26))}, "must have length 1"),
        ({"qpos": np.full((3, 26), np.nan)}, "not finite"),
        ({"qpos": np.tile([0, 0, 1, 1, 0, 0, 0, *[0.0] * 3, 3.0, *[0.0] * 15], (3, 1))}, "left_knee leaves its limits"),
        ({"hz": 0.0}, "hz must be one number"),
    ],
)
def test_a_file_that_does_not_fit_says_why(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_motion(walk(tmp_path / "walk.npz", **changed), H1, loops=True)


def test_a_file_or_a_motion_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_motion(tmp_path / "none.npz", H1, loops=True)
    (tmp_path / "text.npz").write_text("no numbers")
    with pytest.raises(DataError, match=r"no \.npz file of numbers"):
        read_motion(tmp_path / "text.npz", H1, loops=True)
    np.savez(tmp_path / "part.npz", qpos=np.zeros((3, 26)))
    with pytest.raises(DataError, match="needs the arrays qpos"):
        read_motion(tmp_path / "part.npz", H1, loops=True)
    with pytest.raises(UnknownNameError, match=r"motion 'jump'.*squat"):
        manikin.make("TrackMotion-v1", config={"motion": "jump"})
    with pytest.raises(ConfigError, match="needs a robot with feet and legs"):
        manikin.make("TrackMotion-v1", robot="panda")
