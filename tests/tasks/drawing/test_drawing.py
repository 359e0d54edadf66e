"""Drawing: where dots are left, the rules of success against plain ones over all dots, and that dots cost nothing."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.cli import main
from manikin.errors import ConfigError, DataError
from manikin.plan.executor import WaypointExecutor
from manikin.sim.dots import dot_groups

TASKS = ("DrawSVG-v1", "DrawTriangle-v1")
TOP = 0.02  # [m]


def make(task: str, n: int, **options: Any) -> manikin.Env:
    options = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state_dict", **options}
    return manikin.make(task, n, **options)


@functools.cache
def played(task: str) -> SimpleNamespace:
    """64 episodes of the expert, all of them to the end, with what MuJoCo says of the tip after every step."""
    env = make(task, 64)
    env.reset(seed=list(range(64)))
    expert = WaypointExecutor(env)
    out = SimpleNamespace(env=env, tips=[], success=[], reward=[], terms=[])
    for _ in range(env.horizon):
        _, reward, _, _, info = env.step(expert.act())
        out.tips.append(env.world.read("xpos")[:, env.scene.model.body("robot/stick").id].clone())
        out.success.append(info["success"])
        out.reward.append(reward)
        out.terms.append(info["reward_terms"])
    out.info = info
    return out


def rule(env: manikin.Env, row: int) -> tuple[bool, bool, np.ndarray]:
    """(complete, strayed, drawn points), from all dots and all points of the outline, as the published code has it."""
    threshold = env.task.config.threshold
    ink = env.h.ink.pos[row][env.h.ink.shown[row]].double().numpy()
    outline = env.h.outline.pos[row].double().numpy()
    if not len(ink):
        return False, False, np.zeros(len(outline), bool)
    away = np.linalg.norm(ink[:, None, :2] - outline[None, :, :2], axis=2)
    drawn = away.min(0) <= threshold
    return bool(drawn.all()), bool((away.min(1) > threshold).any()), drawn


@pytest.mark.parametrize("task", TASKS)
def test_the_expert_solves_it_and_chance_does_not(task: str) -> None:
    solved = torch.stack(played(task).success)
    assert solved.any(0).float().mean() >= 0.95
    assert torch.equal(solved[-1], solved.any(0))  # what is drawn stays drawn
    env = make(task, 8)
    env.reset(seed=0)
    rng = torch.Generator().manual_seed(0)
    for _ in range(100):
        *_, info = env.step(torch.rand(8, env.single_action_space.shape[0], generator=rng) * 2 - 1)
        assert not info["success"].any()


@pytest.mark.parametrize("task", TASKS)
def test_a_dot_is_left_where_the_tip_is_low_and_nowhere_else(task: str) -> None:
    run, env = played(task), played(task).env
    tip = torch.stack(run.tips).double()  # (steps, 64, 3); the stick points down, its tip 0.05 m below its middle
    for row in (0, 17, 63):
        low = tip[:, row, 2] - 0.05 < TOP + 0.008
        assert bool((env.h.robot.tcp_pos[row, 2] - (tip[-1, row, 2] - 0.05)).abs() < 2e-3)
        unsure = ((tip[:, row, 2] - 0.05) - (TOP + 0.008)).abs() < 1e-3  # it is never quite upright
        count = int(env.h.ink.shown[row].sum())
        assert int((low & ~unsure).sum()) <= count <= int((low | unsure).sum()) and count > 50
        ink = env.h.ink.pos[row, :count]
        assert env.h.used.value[row] == count and env.h.ink.shown[row, :count].all()
        assert torch.equal(ink[:, 2], torch.full((count,), TOP))
        near = torch.cdist(ink[:, :2].double(), tip[:, row, :2]).amin(1)
        assert near.max() < 2e-3


@pytest.mark.parametrize("task", TASKS)
def test_success_and_reward_are_those_of_all_dots_together(task: str) -> None:
    """While the expert draws, and while it is pushed aside."""
    env = make(task, 6)
    env.reset(seed=3)
    expert, seen = WaypointExecutor(env), set()
    for step in range(env.horizon):
        action = expert.act()
        if 60 < step < 75:  # four rows are pushed aside
            action[:4, 0] = torch.tensor([0.6, -0.6, 0.6, -0.6])
        _, reward, _, _, info = env.step(action)
        if step % 7 and step < env.horizon - 3:
            continue
        for row in range(6):
            complete, strayed, drawn = rule(env, row)
            assert bool(info["success"][row]) == (complete and not strayed)
            assert (bool(info["is_complete"][row]), bool(info["has_strayed"][row])) == (complete, strayed)
            outline = env.h.outline.pos[row].double().numpy()
            away = np.linalg.norm(outline[~drawn] - env.h.robot.tcp_pos[row].double().numpy(), axis=1)
            expected = (1 - math.tanh(5 * away.min()) if len(away) else 1.0) + drawn.mean() + (not strayed)
            assert float(reward[row]) == pytest.approx(3.0 if complete and not strayed else expected, abs=1e-4)
            seen.add((complete, strayed))
    assert seen >= {(False, False), (True, False), (True, True)}


@pytest.mark.parametrize("task", TASKS)
def test_reward_is_the_sum_of_its_terms_and_whole_only_in_success(task: str) -> None:
    run = played(task)
    done, paid = torch.stack(run.success), torch.stack(run.reward)
    for reward, terms in zip(run.reward, run.terms, strict=True):
        assert set(terms) == set(run.env.task.reward_terms)
        torch.testing.assert_close(sum(terms.values()), reward, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(paid[done], torch.full_like(paid[done], run.env.task.reward_max))
    assert paid[~done].max() < run.env.task.reward_max and paid.min() >= 0


def test_the_triangle_is_the_published_one() -> None:
    env = make("DrawTriangle-v1", 64)
    seen, _ = env.reset(seed=0)
    points = seen["privileged"]["outline_pos"].double()
    assert points.shape == (64, 153, 3) and (points[..., 2].float() == TOP).all()
    corners = points[:, [0, 51, 102], :2]
    sides = (corners - corners.roll(-1, 1)).norm(dim=2)
    torch.testing.assert_close(sides, torch.full_like(sides, 0.3), atol=1e-6, rtol=0)
    step = (points - points.roll(-1, 1)).norm(dim=2)
    torch.testing.assert_close(step, torch.full_like(step, 0.3 / 51), atol=1e-6, rtol=0)
    middle = corners.mean(1)
    assert (middle >= -0.1 - 1e-6).all() and (middle <= -0.08 + 1e-6).all()
    turn = torch.atan2(corners[:, 0, 1] - middle[:, 1], corners[:, 0, 0] - middle[:, 0])
    assert turn.min() < -2.5 and turn.max() > 2.5
    assert env.horizon == 300 and env.h.ink.shape == (300, 4)


def test_free_drawing_succeeds_with_enough_dots_and_ends_with_the_ink() -> None:
    env = make("FreeDraw-v1", 2, config={"dots": 60, "enough": 50})
    env.reset(seed=0)
    assert env.horizon == 1000 and not env.task.terminate
    expert, succeeded = WaypointExecutor(env), []
    for _ in range(130):
        _, reward, _, _, info = env.step(expert.act())
        shown = env.h.ink.shown.sum(1)
        assert info["success"].tolist() == (shown >= 50).tolist()
        torch.testing.assert_close(reward, (shown / 50).clamp_max(1))
        succeeded.append(info["success"])
    assert torch.stack(succeeded).any(0).all() and shown.tolist() == [60, 60]  # none left
    first = env.h.ink.value.clone()
    env.step(expert.act())
    assert torch.equal(env.h.ink.value, first)
    ink = env.h.ink.pos[..., :2] - torch.tensor([-0.12, 0.0])  # on the rose r = 0.16 cos(3 a)
    radius, angle = ink.norm(dim=2), torch.atan2(ink[..., 1], ink[..., 0])
    assert (radius - 0.16 * torch.cos(3 * angle).abs()).abs().max() < 0.01


def test_an_svg_file_is_laid_out_in_its_size_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cross.svg"
    file.write_text('<svg><path d="M0 0H40M20 -5V5"/></svg>')
    env = make("DrawSVG-v1", 16, config={"file": str(file), "spacing": 0.05})
    seen, _ = env.reset(seed=0)
    points = seen["privileged"]["outline_pos"].double()
    assert points.shape == (16, 6 + 3, 3) and env.horizon == 500 and env.h.ink.shape == (1000, 4)
    along, across = points[:, 5] - points[:, 0], points[:, 8] - points[:, 6]
    torch.testing.assert_close(along.norm(dim=1), torch.full((16,), 0.25).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(across.norm(dim=1), torch.full((16,), 0.0625).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close((along * across).sum(1), torch.zeros(16).double(), atol=1e-6, rtol=0)
    assert (along[:, 0] * across[:, 1] - along[:, 1] * across[:, 0] < 0).all()  # down in the file is down on the canvas
    middle = (points[:, 0] + points[:, 5])[:, :2] / 2
    assert (middle >= -0.1 - 1e-6).all() and (middle <= -0.08 + 1e-6).all()
    assert along[:, 1].std() > 0.1  # turned
    with pytest.raises(DataError, match=r"none\.svg: cannot be read"):
        make("DrawSVG-v1", 1, config={"file": str(tmp_path / "none.svg")})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"size": 0.0}, "'size' of DrawSVG-v1 must be positive, but it is 0.0"),
        ({"spacing": 0.0}, "'spacing' of DrawSVG-v1 must be positive, but it is 0.0"),
        ({"size": 5.0}, "'size' of DrawSVG-v1 is 5.0 m, .* and the canvas, 0.8 x 1.2 m, has room for 0.38 m there"),
    ],
)
def test_a_drawing_that_does_not_fit_the_canvas_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as found:
        make("DrawSVG-v1", 1, config=given)
    if "A size of" in str(found.value):
        fits = float(str(found.value).rpartition("A size of ")[2].partition(" m")[0])
        make("DrawSVG-v1", 1, config={"size": fits - 0.01}).close()


def test_a_triangle_too_large_for_the_canvas_or_its_dots_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        ConfigError, match=r"'side' of DrawTriangle-v1 is 2.0 m, .* reaches 1.15 m .* A side of 0.66 m fits"
    ):
        make("DrawTriangle-v1", 1, config={"side": 2.0})
    make("DrawTriangle-v1", 1).close()
    assert not caplog.records
    make("DrawTriangle-v1", 1, config={"dots": 5}).close()
    assert "'dots' is 5" in caplog.records[0].getMessage()


def test_lines_that_are_too_long_for_the_time_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make("DrawSVG-v1", 1).close()
    assert not caplog.records
    file = tmp_path / "circles.svg"
    circles = (f'<circle cx="{10 * (k % 20)}" cy="{10 * (k // 20)}" r="5"/>' for k in range(400))
    file.write_text(f"<svg>{''.join(circles)}</svg>")
    make("DrawSVG-v1", 1, config={"file": str(file)}).close()
    (record,) = caplog.records
    # 400 polygons about circles of 1/40 of 0.25 m
    assert "the lines are 15.2 m long" in record.getMessage() and "101 s and 2024 dots" in record.getMessage()
    assert "an episode has 25 s" in record.getMessage() and "'dots' is 1000" in record.getMessage()


def test_dots_cost_no_physics() -> None:
    """The model, its state and every trajectory are those of a scene that has one dot."""
    few, many = (make("DrawTriangle-v1", 2, config={"dots": dots}) for dots in (1, 1000))
    for size in ("nq", "nv", "nu", "na", "nbody", "ngeom", "nsite", "nmocap", "nsensordata", "nuserdata", "nM"):
        assert getattr(few.scene.model, size) == getattr(many.scene.model, size), size
    for env in (few, many):
        env.reset(seed=0)
    assert few.world.save().state.shape == many.world.save().state.shape
    rng = torch.Generator().manual_seed(0)
    for _ in range(20):
        action = torch.rand(2, 7, generator=rng) * 2 - 1
        few.step(action), many.step(action)
        assert np.array_equal(few.world.save().state, many.world.save().state)


def test_a_drawing_survives_snapshots_and_other_rows_that_start() -> None:
    env = make("DrawTriangle-v1", 3)
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    for _ in range(70):
        env.step(expert.act())
    before, image, saved = env.h.ink.value.clone(), env.image(0), env.save()
    assert (before[..., 3].sum(1) > 20).all()
    actions = [expert.act()]
    env.step(actions[0])
    for _ in range(20):
        actions.append(expert.act())
        env.step(actions[-1])
    after, later = env.h.ink.value.clone(), env.image(0)
    assert not np.array_equal(image, later)

    env.load(saved)
    assert torch.equal(env.h.ink.value, before) and np.array_equal(env.image(0), image)
    for action in actions:
        env.step(action)
    assert torch.equal(env.h.ink.value, after) and np.array_equal(env.image(0), later)

    other = make("DrawTriangle-v1", 2)  # another row of another batch
    other.reset(seed=5)
    other.load(saved.rows(np.array([0])), rows=[1])
    assert torch.equal(other.h.ink.value[1], before[0]) and not other.h.ink.shown[0].any()
    assert np.array_equal(other.image(1), image)


def test_rows_that_start_have_no_dots_and_the_others_keep_theirs() -> None:
    env = make("DrawTriangle-v1", 4, autoreset="same_step", horizon=40)
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    for _ in range(39):
        env.step(expert.act())
    assert (env.h.used.value > 3).all()
    env.step(expert.act())
    assert not env.h.ink.shown.any() and (env.h.used.value == 0).all()
    assert (env.h.nearest.value == 1.0).all() and env.h.outline.shown.all()
    for _ in range(35):
        env.step(expert.act())
    ink = env.h.ink.value.clone()
    assert ink[..., 3].any(1).all()
    env.reset(options={"reset_mask": torch.tensor([False, True, False, False])})
    assert not env.h.ink.shown[1].any() and torch.equal(env.h.ink.value[[0, 2, 3]], ink[[0, 2, 3]])


def test_warp_draws_what_the_cpu_draws() -> None:
    pytest.importorskip("mujoco_warp")
    env = make("DrawTriangle-v1", 2, control="joint_pos")  # commands that do not add up what devices differ by
    env.reset(seed=0)
    expert, actions = WaypointExecutor(env), []
    for _ in range(60):
        actions.append(expert.act())
        env.step(actions[-1])
    warp = make("DrawTriangle-v1", 2, device="warp:cpu", control="joint_pos")
    warp.reset(seed=0)
    torch.testing.assert_close(warp.h.outline.value, env.h.outline.value, atol=1e-6, rtol=0)
    for action in actions:
        *_, info = warp.step(action)
    count = env.h.used.value
    assert (count > 20).all() and torch.equal(warp.h.used.value, count)
    torch.testing.assert_close(warp.h.ink.value, env.h.ink.value, atol=1e-3, rtol=0)
    torch.testing.assert_close(warp.h.nearest.value, env.h.nearest.value, atol=1e-3, rtol=0)
    ink = next(group for group in dot_groups(warp.model_data(1)[0]) if group.name == "ink")
    assert int(ink.places[:, 3].sum()) == int(count[1])
    assert not info["health"].any()


def test_a_recorded_drawing_replays_to_the_same_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from manikin.data.recording.read import EpisodeFile

    monkeypatch.chdir(tmp_path)
    run = [
        "collect",
        "DrawTriangle-v1",
        "--episodes",
        "1",
        "--size",
        "160",
        "120",
        "--horizon",
        "80",
        "--observe",
        "rgb",
    ]
    assert main([*run, "--renderer", "rays", "--out", "drawn.h5", "--keep", "all"]) == 0
    assert main(["replay", "drawn.h5", "--renderer", "rays", "--out", "anew.h5"]) == 0
    pictures = []
    for name in ("drawn.h5", "anew.h5"):
        with EpisodeFile(tmp_path / name) as file:
            pictures.append(file[0].observations["cameras/base_camera/rgb"].astype(int))
    assert np.array_equal(*pictures)
    blue = (pictures[0][..., 2] - pictures[0][..., 0] > 60).sum((1, 2))
    assert blue[0] == 0 and blue[-1] > 20
