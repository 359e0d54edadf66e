"""Conventions of RT-1 and Octo against formulas of SciPy and NumPy, and pixels of Pillow."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import manikin
from manikin.env.observe import Vision
from manikin.errors import ActionError, ConfigError, UnknownNameError
from manikin.policy.choices import policy_maker
from manikin.policy.conventions.actions import (
    StickyGripper,
    octo_bridge,
    octo_google,
    rt1_bridge,
    rt1_google,
    unnormalized,
)
from manikin.policy.conventions.conventional import CONVENTIONS, ConventionalPolicy, read_convention
from manikin.policy.conventions.images import lanczos, resized_with_pad

ANSWERS = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (200, 7)).astype(np.float32))


def axis_angle(rpy: np.ndarray) -> np.ndarray:
    """By SciPy: fixed axes x, y, z."""
    return Rotation.from_euler("xyz", rpy).as_rotvec()


# ---- actions ---------------------------------------------------------------------------------------------------------


def test_rt1_on_a_widowx_is_scaled_clipped_and_turned() -> None:
    found, given = rt1_bridge(ANSWERS).numpy(), ANSWERS.numpy().astype(np.float64)
    np.testing.assert_allclose(found[:, :3], np.clip(given[:, :3] / 1.75 * 0.05, -0.05, 0.05), atol=1e-7)
    rpy = np.clip(given[:, 3:6] / 1.4 * 0.25, -0.25, 0.25)
    np.testing.assert_allclose(found[:, 3:6], axis_angle(rpy), atol=1e-6)
    assert (np.abs(given[:, :3]) > 1.75).any() and (np.abs(given[:, 3:6]) > 1.4).any()  # something was clipped
    assert np.array_equal(found[:, 6], np.where(given[:, 6] < 0, 1.0, -1.0))  # its number is of closing


def test_rt1_on_the_google_robot_is_taken_as_it_is() -> None:
    given = ANSWERS.clone()
    given[:5, 3:6] = 1e-7
    given[5:9, 6] = torch.tensor([0.0099, -0.0099, 0.0101, -0.0101])
    found = rt1_google(given)
    assert torch.equal(found[:, :3], given[:, :3]) and torch.equal(found[5:, 3:6], given[5:, 3:6])
    assert (found[:5, 3:6] == 0).all()
    assert torch.allclose(found[5:9, 6], torch.tensor([0, 0, 0.0101, -0.0101]))


def test_octo_turns_roll_pitch_and_yaw_for_both_robots() -> None:
    given = ANSWERS.numpy().astype(np.float64)
    for convert in (octo_bridge, octo_google):
        found = convert(ANSWERS).numpy()
        np.testing.assert_allclose(found[:, 3:6], axis_angle(given[:, 3:6]), atol=1e-5)
        assert np.array_equal(found[:, :3], ANSWERS[:, :3].numpy())
    assert np.array_equal(octo_bridge(ANSWERS)[:, 6].numpy(), np.where(given[:, 6] > 0.5, 1.0, -1.0))
    assert torch.equal(octo_google(ANSWERS)[:, 6], ANSWERS[:, 6])


def by_hand(openings: list[float], repeats: int = 15) -> list[float]:
    """The gripper of one Google robot, a number at a time."""
    out, before, command, count = [], None, 0.0, 0
    for opening in openings:
        change = 0.0 if before is None else before - opening
        before = opening
        if abs(change) > 0.5 and count == 0:
            command, count = change, 1
        elif count:
            count += 1
        out.append(command if count else change)
        if count == repeats:
            count = 0
    return out


def test_a_gripper_sticks_for_fifteen_steps() -> None:
    closing = [1.0] * 3 + [0.0] * 20
    gripper = StickyGripper(1)
    found = [float(gripper(torch.tensor([opening]))) for opening in closing]
    assert found == [0.0] * 3 + [1.0] * 15 + [0.0] * 5
    rng = np.random.default_rng(1)
    rows = [np.round(rng.random(80), 2).tolist() for _ in range(6)]
    gripper = StickyGripper(6)
    found = torch.stack([gripper(torch.tensor(step)) for step in zip(*rows, strict=True)], 1)
    for row, openings in enumerate(rows):
        np.testing.assert_allclose(found[row], by_hand(openings), atol=1e-6)
    gripper.reset(torch.tensor([2]))
    again = gripper(torch.full((6,), 0.0))
    assert again[2] == 0  # its first step


def test_statistics_undo_a_normalization() -> None:
    statistics = {"mean": list(np.linspace(-1, 1, 7)), "std": list(np.linspace(0.1, 2, 7))}
    found = unnormalized(ANSWERS, statistics).numpy()
    np.testing.assert_allclose(
        found, ANSWERS.numpy() * np.array(statistics["std"]) + np.array(statistics["mean"]), atol=1e-5
    )
    for wrong in ({"mean": [0] * 7}, {"mean": [0] * 6, "std": [1] * 6}, {"mean": "x", "std": [1]}, [1]):
        with pytest.raises(ConfigError, match="statistics of"):
            unnormalized(ANSWERS, wrong)  # type: ignore[arg-type]


# ---- pictures --------------------------------------------------------------------------------------------------------

# Pillow 13.0.0, Image.resize(size, Image.LANCZOS) in floats: green of a picture made smaller, red of one made larger
SMALLER = [
    [163.80, 125.51, 92.03, 73.76, 109.52],
    [151.70, 90.02, 86.52, 156.35, 169.53],
    [112.02, 137.20, 164.29, 119.90, 130.72],
    [135.17, 161.03, 166.16, 167.93, 133.46],
]
LARGER = [
    [279.30, 142.51, 7.65, 146.27, 284.52],
    [225.84, 197.03, 149.39, 135.07, 139.77],
    [117.28, 198.93, 258.27, 127.60, 18.18],
    [39.27, 68.68, 118.48, 135.72, 132.40],
    [8.07, 10.04, 42.72, 110.29, 147.35],
    [10.16, 21.06, 51.86, 86.19, 100.64],
]


def test_lanczos_gives_pillow_s_pixels() -> None:
    rng = np.random.default_rng(3)
    wide = torch.from_numpy(rng.integers(0, 256, (1, 11, 14, 3), dtype=np.uint8))
    tiny = torch.from_numpy(rng.integers(0, 256, (1, 4, 3, 3), dtype=np.uint8))
    for found, expected in ((lanczos(wide, 4, 5)[0, ..., 1], SMALLER), (lanczos(tiny, 6, 5)[0, ..., 0], LARGER)):
        assert np.abs(found.numpy() - np.clip(expected, 0, 255)).max() <= 0.51  # rounded
    assert lanczos(torch.full((2, 48, 64, 3), 77, dtype=torch.uint8)).unique().tolist() == [77]


def test_pictures_are_halved_and_padded_as_rt1_saw_them() -> None:
    rng = np.random.default_rng(4)
    google = rng.integers(0, 256, (2, 512, 640, 3), dtype=np.uint8)
    halves = google.reshape(2, 256, 2, 320, 2, 3).astype(np.float64).mean((2, 4))
    found = resized_with_pad(torch.from_numpy(google)).numpy()
    assert found.shape == (2, 256, 320, 3) and np.array_equal(found, np.floor(halves + 1e-6))
    bridge = rng.integers(1, 256, (1, 480, 640, 3), dtype=np.uint8)
    found = resized_with_pad(torch.from_numpy(bridge)).numpy()
    halves = bridge.reshape(1, 240, 2, 320, 2, 3).astype(np.float64).mean((2, 4))
    assert (found[:, :8] == 0).all() and (found[:, 248:] == 0).all()
    assert np.array_equal(found[:, 8:248], np.floor(halves + 1e-6))
    tall = torch.full((1, 100, 50, 3), 200, dtype=torch.uint8)
    found = resized_with_pad(tall, 20, 40)
    assert found[0, :, 15:25].unique().tolist() == [200] and found[0, :, :15].sum() == found[0, :, 25:].sum() == 0


# ---- the whole policy ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def env() -> Any:
    vision = Vision(cameras=("base_camera",), size=(40, 30), renderer="rays")
    made = manikin.make(
        "PickCube-v2", 2, autoreset="disabled", observe="rgb", vision=vision, control="ee_delta_pose", horizon=9
    )
    made.reset(seed=[1, 2])
    return made


class Says:
    """Chunks of four, and what it was shown."""

    name = "says"

    def __init__(self) -> None:
        self.shown: list[dict[str, torch.Tensor]] = []
        self.answers = torch.from_numpy(np.random.default_rng(5).normal(0, 0.02, (9, 2, 4, 9)).astype(np.float32))

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: Any, instruction: list[str]) -> torch.Tensor:
        self.shown.append({name: value.clone() for name, value in observation.items()})
        return self.answers[len(self.shown) - 1]


def pictures(number: int) -> dict[str, Any]:
    grey = torch.full((2, 30, 40, 3), number, dtype=torch.uint8)
    return {"cameras": {"base_camera": {"rgb": grey}}}


def test_octo_sees_two_frames_and_its_last_four_chunks_are_averaged(env: Any) -> None:
    inner = Says()
    policy = ConventionalPolicy(inner, env, CONVENTIONS["octo-bridge"])
    policy.reset(torch.arange(2))
    scale = np.array([dim.scale for dim in env.controller.card.dims[:6]])
    kept: deque[np.ndarray] = deque(maxlen=4)
    for t in range(7):
        if t == 5:
            policy.reset(torch.tensor([1]))
        found = policy.act(pictures(10 + t), ["a", "b"])[:, 0].numpy()
        shown = inner.shown[t]
        assert shown["image_primary"].shape == (2, 2, 256, 256, 3)
        assert shown["pad_mask"].tolist() == [[t > 0, True], [t not in (0, 5), True]]
        newest = shown["image_primary"][:, 1].unique().tolist()
        assert newest == [10 + t] and (t == 0 or shown["image_primary"][0, 0].unique().tolist() == [9 + t])
        kept.append(inner.answers[t].numpy())
        for row in range(2):
            since = 5 if row == 1 and t >= 5 else 0
            over = [
                chunk[row, k] for k, chunk in zip(range(len(kept) - 1, -1, -1), kept, strict=True) if t - k >= since
            ]
            mean = np.mean(over, 0)[:7].astype(np.float64)
            expected = np.concatenate([mean[:3], axis_angle(mean[3:6])]) / scale
            np.testing.assert_allclose(found[row, :6], np.clip(expected, -1, 1), atol=2e-5)
            assert found[row, 6] == (1.0 if mean[6] > 0.5 else -1.0)
    adapted = CONVENTIONS["octo-bridge"].adapt(
        {"image_primary": np.arange(6).reshape(2, 3), "pad_mask": np.array([False, True]), "prompt": "a"}
    )
    assert adapted["image_primary"].tolist() == [[3, 4, 5]] and adapted["pad_mask"].tolist() == [True]


def test_rt1_is_behind_a_server_by_a_word(env: Any) -> None:
    pytest.importorskip("msgpack")
    pytest.importorskip("websockets")
    from policy_server import Server

    said = np.random.default_rng(6).normal(0, 1, (1, 10))
    there = Server(lambda request: {"actions": said})
    policy = policy_maker(there.url, convention="rt1-bridge")(env)
    policy.reset(torch.arange(2))
    action = policy.act(pictures(99), ["pick", "place"])
    assert [(r["image"].shape, r["prompt"]) for r in there.seen] == [((256, 320, 3), "pick"), ((256, 320, 3), "place")]
    expected = rt1_bridge(torch.from_numpy(said[:, :7]).float())
    scale = torch.tensor([dim.scale for dim in env.controller.card.dims[:6]])
    expected[:, :6] /= scale
    assert torch.allclose(action[0], expected.clamp(-1, 1), atol=1e-6) and torch.equal(action[0], action[1])
    there.close()


CLOSES = {"rt1-google": 1.0, "octo-google": 0.0, "rt1-bridge": 1.0, "octo-bridge": 0.0}
"""The gripper number by which each policy asks to close; -1 or 1 opens. RT-1's is of closing, Octo's of the opening."""


@pytest.mark.parametrize("word", CLOSES)
def test_a_robot_closes_where_the_policy_says_close(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    task = "GooglePickCokeCan-v1" if word.endswith("google") else "WidowXStackCube-v2"
    env = manikin.make(task, 2, autoreset="disabled")
    env.reset(seed=[0, 1])
    policy = ConventionalPolicy(said := Grips(), env, CONVENTIONS[word])
    policy.reset(torch.arange(2))
    closes, opens = CLOSES[word], (-1.0 if word.startswith("rt1") else 1.0)
    for number, expected in ((opens, 1.0), (closes, 0.0), (opens, 1.0)):
        said.number = torch.tensor([number, opens])  # the second row stays open
        for _ in range(20):
            env.step(policy.act(pictures(1), ["", ""])[:, 0])
        # the fingertips of the Google robot meet before its joints are all the way closed
        assert env.robot.opening.tolist() == pytest.approx([expected, 1.0], abs=0.21 if expected == 0 else 0.05)


class Grips:
    """An arm that stands still, and a gripper number per row."""

    number = torch.zeros(2)

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: Any, instruction: list[str]) -> torch.Tensor:
        return torch.cat([torch.zeros(2, 6), self.number[:, None]], 1)[:, None]


def test_what_does_not_fit_a_convention_is_named(env: Any, tmp_path: Path) -> None:
    joints = manikin.make("PickCube-v2", 1, autoreset="disabled")
    with pytest.raises(ConfigError, match=r"joint_delta_pos takes 8 numbers in rad.*such as ee_delta_pose"):
        ConventionalPolicy(Says(), joints, CONVENTIONS["rt1-bridge"])
    policy = ConventionalPolicy(Says(), env, CONVENTIONS["rt1-bridge"])
    with pytest.raises(ConfigError, match="needs the pictures of one camera; observed are those of none"):
        policy.act(torch.zeros(2, 3), ["", ""])
    two = {"cameras": {"a": {"rgb": torch.zeros(2, 3, 3, 3)}, "b": {"rgb": torch.zeros(2, 3, 3, 3)}}}
    with pytest.raises(ConfigError, match="observed are those of a, b"):
        policy.act(two, ["", ""])
    short = Says()
    short.answers = short.answers[..., :6]
    with pytest.raises(ActionError, match=r"answers with \(N, H, 7 or more\), not \(2, 4, 6\)"):
        ConventionalPolicy(short, env, CONVENTIONS["rt1-bridge"]).act(pictures(1), ["", ""])
    with pytest.raises(ConfigError, match=r"rt1-google says by how much.*ee_delta_pose is absolute.*such as ee_"):
        ConventionalPolicy(Says(), env, CONVENTIONS["rt1-google"])
    planned = manikin.make("GooglePickCokeCan-v1", 1, autoreset="disabled")
    with pytest.raises(ConfigError, match=r"octo-bridge says whether.*ee_delta_pose_planned is commanded, in opening"):
        ConventionalPolicy(Says(), planned, CONVENTIONS["octo-bridge"])
    with pytest.raises(UnknownNameError, match="octo-bridge"):
        read_convention("octo-brige")
    file = tmp_path / "statistics.json"
    with pytest.raises(ConfigError, match=r"statistics\.json cannot be read"):
        read_convention(f"octo-bridge:{file}")
    file.write_text(json.dumps({"action": {"mean": [0.0] * 7, "std": [2.0] * 7}}))
    assert read_convention(f"octo-bridge:{file}").statistics == {"mean": [0.0] * 7, "std": [2.0] * 7}
