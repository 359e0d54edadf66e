"""Frame stacks: against stacks made by hand, across restarts, in snapshots, recordings and fingerprints."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import manikin
from manikin.author.under_test import calls_of_a_step
from manikin.data.recorder import Recorder
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.rerecord import rerecord
from manikin.data.replay.verify import replay
from manikin.env.observe import Observation, Vision
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy
from manikin.sense.imperfect import Noise
from manikin.sense.stack import Stack
from manikin.spec.camera import CameraSpec

TASK = "PickCube-v2"
TINY = Vision(
    cameras=(CameraSpec(name="tiny", pos=(0.4, 0.1, 0.5), target=(0, 0, 0.05), width=12, height=8),), renderer="rays"
)
DEVICES = ["cpu", "warp:cpu"]


def actions(steps: int, n: int, size: int = 8) -> torch.Tensor:
    return torch.rand(steps, n, size, generator=torch.Generator().manual_seed(0)) * 2 - 1


class ByHand:
    """The last values of each row, oldest first; a row that starts is full of its first value."""

    def __init__(self, frames: int) -> None:
        self.frames, self.rows = frames, dict[int, list[np.ndarray]]()

    def add(self, value: np.ndarray, rows: list[int], starting: bool = False) -> None:
        for row in rows:
            past = [] if starting else self.rows[row]
            self.rows[row] = [*past, value[row]] if past else [value[row]] * self.frames
            self.rows[row] = self.rows[row][-self.frames :]

    @property
    def value(self) -> np.ndarray:
        return np.stack([np.stack(self.rows[row]) for row in sorted(self.rows)])


@pytest.mark.parametrize("device", DEVICES)
def test_a_stack_is_the_last_values_across_restarts_frozen_rows_and_autoreset(device: str) -> None:
    options = {"device": device, "horizon": 6, "autoreset": "same_step"}
    plain = manikin.make(TASK, 3, observe="state", **options)
    env = manikin.make(TASK, 3, observe=["state", Stack(3)], **options)
    width = plain.single_observation_space.shape[0]
    assert env.single_observation_space.shape == (3, width) and env.observation_names == plain.observation_names
    assert isinstance(env.single_observation_space, gymnasium.spaces.Box)
    hand = ByHand(3)
    a, b = plain.reset(seed=0)[0], env.reset(seed=0)[0]
    hand.add(a.numpy(), [0, 1, 2], starting=True)
    assert np.array_equal(b, hand.value)
    for k, action in enumerate(actions(10, 3)):
        active = None if k % 3 else torch.tensor([True, False, True])
        (a, _, _, _, _), (b, _, ended, over, info) = (e.step(action, active=active) for e in (plain, env))
        moved = [0, 1, 2] if active is None else [0, 2]
        done = torch.nonzero(ended | over)[:, 0].tolist()
        hand.add(a.numpy(), [row for row in moved if row not in done])
        if done:
            assert not np.array_equal(info["final_obs"][done].numpy(), b[done].numpy())
        hand.add(a.numpy(), done, starting=True)
        assert np.array_equal(b, hand.value), k
        if k == 3:
            mask = np.array([False, True, False])
            a, b = (e.reset(seed=[None, 5, None], options={"reset_mask": mask})[0] for e in (plain, env))
            hand.add(a.numpy(), [1], starting=True)
            assert np.array_equal(b, hand.value)


@pytest.mark.parametrize("device", DEVICES)
def test_a_snapshot_keeps_stacks_and_noise_to_the_bit_also_in_another_environment(device: str) -> None:
    options = {
        "observe": ["state", Stack(4)],
        "sensors": {"policy/qpos": [Noise(0.02)]},
        "autoreset": "disabled",
        "device": device,
    }
    env, other = manikin.make(TASK, 2, **options), manikin.make(TASK, 3, **options)
    env.reset(seed=0), other.reset(seed=50)
    given = actions(8, 2)
    for action in given[:4]:
        seen = env.step(action)[0]
    kept = env.save()
    after = [env.step(action)[0] for action in given[4:]]
    assert torch.equal(env.load(kept)[0], seen)
    assert all(torch.equal(env.step(action)[0], then) for action, then in zip(given[4:], after, strict=True))
    moved = other.load(kept, rows=[2, 0])[0]
    assert torch.equal(moved[[2, 0]], seen)
    assert torch.equal(other.step(given[4][[1, 0, 0]])[0][[2, 0]], after[0])
    plain = manikin.make(TASK, 2, **{**options, "observe": "state"})
    plain.reset(seed=0)
    with pytest.raises(DataError, match="other sensors or stacks; load it into an environment with the same"):
        env.load(plain.save())


def test_pictures_and_single_paths_are_stacked_and_what_is_not_named_is_not() -> None:
    env = manikin.make(TASK, 2, observe=["rgb+depth", Stack(3, "cameras"), Stack(2, ("policy/qpos",))], vision=TINY)
    last, _ = env.reset(seed=0)
    for action in actions(4, 2):
        before, last = last, env.step(action)[0]
    seen = last["cameras"]["tiny"]
    assert seen["rgb"].shape == (2, 3, 8, 12, 3) and seen["rgb"].dtype == torch.uint8
    assert seen["depth"].shape == (2, 3, 8, 12) and seen["K"].shape == (2, 3, 3, 3)
    assert last["policy"]["qpos"].shape == (2, 2, 9) and last["policy"]["qvel"].shape == (2, 9)
    assert torch.equal(seen["rgb"][:, :2], before["cameras"]["tiny"]["rgb"][:, 1:])
    assert torch.equal(last["policy"]["qpos"][:, 0], before["policy"]["qpos"][:, 1])
    assert torch.equal(seen["rgb"][:, -1], env.rig.render()["tiny"]["rgb"])


def test_rows_of_several_layouts_are_stacked_with_their_masks() -> None:
    flat = manikin.make("OpenCabinetDrawer-v2", 3, observe=["state", Stack(2)])
    plain = manikin.make("OpenCabinetDrawer-v2", 3, observe="state")
    size = flat.single_action_space.shape[0]
    a, b = plain.reset(seed=0)[0], flat.reset(seed=0)[0]
    assert flat.observation_names == plain.observation_names
    assert torch.equal(b, torch.stack([a, a], 1))
    for action in actions(3, 3, size):
        before, (a, *_), (b, *_) = a, plain.step(action), flat.step(action)
        assert torch.equal(b, torch.stack([before, a], 1))


def test_what_is_asked_for_is_said_and_can_be_asked_for_again() -> None:
    env = manikin.make(TASK, 1, observe=["state", Stack(3)])
    said = json.loads(json.dumps(env.fingerprint()["observe"]))
    assert said == ["state", {"kind": "Stack", "frames": 3}]
    again = manikin.make(TASK, 1, observe=said)
    assert again.fingerprint()["observe"] == said and again.single_observation_space == env.single_observation_space
    # words alone are what they were, as a list too
    assert Observation.of(["rgb", "depth"]).plain == "rgb+depth" and Observation.of(["state"]).plain == "state"
    assert Observation.of(["policy", "rgb"]).plain == "rgb"


@pytest.mark.parametrize(
    ("observe", "error", "said"),
    [
        (["state_dict", Stack(2, "policy/qposs")], UnknownNameError, "Did you mean 'policy/qpos'"),
        (["rgbb", Stack(2)], UnknownNameError, "Did you mean 'rgb'"),
        (["state", 3], ConfigError, "takes words, sources and stacks, not 3"),
        (["state", "imu"], UnknownNameError, r"import Imu, then observe=\['state', Imu\(on='robot'\)\]"),
        ("state+rangefinder", UnknownNameError, r"from manikin\.sense\.rangefinder import RangeFinder"),
        (["state", "Stack"], UnknownNameError, r"observe=\['state', Stack\(4\)\]"),
        ([Stack(2)], ConfigError, "observe is empty; give a word such as 'state'"),
        (["policy", Stack(2, "policy/qpos")], ConfigError, "state_dict"),
        ([], ConfigError, "observe is empty; give a word such as 'state'"),
        (["state", {"kind": "Stak", "frames": 2}], UnknownNameError, "Did you mean 'Stack'"),
        (["state", {"kind": "Stack", "frame": 2}], ConfigError, "does not describe a Stack"),
        (["state", {"kind": "Noise", "std": 2.0}], ConfigError, "takes words, sources and stacks, not Noise"),
    ],
)
def test_a_list_that_cannot_be_observed_is_refused_in_words(observe: list, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        manikin.make(TASK, 1, observe=observe)


@pytest.mark.parametrize("frames", [0, -1, 2.0, True, 2000])
def test_frames_are_a_whole_number(frames: object) -> None:
    with pytest.raises(ConfigError, match="1 to 1024 frames"):
        Stack(frames)  # type: ignore[arg-type]


def test_states_set_one_by_one_reach_stacks_as_steps_do() -> None:
    """``put`` is a step for what remembers, so that a recording's states are observed anew as its actions were."""
    options = {"observe": ["state", Stack(3)], "autoreset": "disabled"}
    env, shown = manikin.make(TASK, 2, **options), manikin.make(TASK, 2, **options)
    env.reset(seed=0), shown.reset(seed=0)
    for action in actions(4, 2):
        seen = env.step(action)[0]
        put = shown.put(env.physics_states())[0]
        assert torch.equal(put[..., :9], seen[..., :9])
    only_one = shown.put(env.physics_states([1]), rows=[1])[0]
    assert torch.equal(only_one[0], put[0]) and not torch.equal(only_one[1], put[1])


def test_nothing_is_paid_where_nothing_is_stacked() -> None:
    listed = calls_of_a_step(manikin.make(TASK, 1, observe=["state"], autoreset="disabled"))
    assert listed.count <= calls_of_a_step(manikin.make(TASK, 1, autoreset="disabled")).count


def test_a_recording_with_stacks_is_played_again_exactly(tmp_path: Path) -> None:
    observe = ["rgb", Stack(2)]
    env = manikin.make(TASK, 2, observe=observe, vision=TINY, horizon=4, terminate=False, autoreset="disabled")
    with Recorder(env, tmp_path / "run.h5", observations=True) as recorder:
        run_episodes(env, RandomPolicy(env), [3, 4], observers=[recorder])
    report = replay(tmp_path / "run.h5")
    assert report.exact and "observations" not in report.not_compared
    with EpisodeFile(tmp_path / "run.h5") as file:
        seen = file[0].observations
        assert seen["cameras/tiny/rgb"].shape == (5, 2, 8, 12, 3)
        assert np.array_equal(seen["cameras/tiny/rgb"][1:, 0], seen["cameras/tiny/rgb"][:-1, 1])
    rerecord(tmp_path / "run.h5", tmp_path / "states.h5", way="actions", observe=["state", Stack(3)])
    with EpisodeFile(tmp_path / "states.h5") as file:
        assert file[0].observations["value"].shape[:2] == (5, 3)
