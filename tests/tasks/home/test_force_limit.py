"""The limit of force as an option; what is worked out afterwards beside episodes that were played with it; the push."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import manikin
from manikin.data.recording.labels import Tracker
from manikin.env.env import Env
from manikin.env.registry import task_class
from manikin.spec.labels import Event
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.rules import RULES
from script import script

pytest.importorskip("scipy", reason="maps of apartments need pip install 'manikin[meshes]'")

ROOT = Path(__file__).resolve().parents[3]
TASKS = {"pick": "HomePick-v1", "place": "HomePlace-v1", "open": "HomeOpen-v1", "close": "HomeClose-v1"}
objects, push = script("home_objects"), script("home_push")


@pytest.mark.parametrize("kind", TASKS)
def test_the_limit_is_an_option_and_labels_follow_it(kind: str) -> None:
    task = task_class(TASKS[kind])
    published, other = task(), task({"force_limit": 300.0})
    assert published.config.force_limit == RULES[kind].force_limit
    assert published.labels == task.labels == subtask_labels(kind)
    over = Event("excessive_collisions", "robot_force", at_least=300.0)
    assert over in other.labels.events and over not in published.labels.events
    assert [e.name for e in other.labels.events] == [e.name for e in published.labels.events]
    assert (other.labels.success, other.labels.failure) == (published.labels.success, published.labels.failure)


def played(kind: str, config: dict[str, Any], seeds: list[int], policy: str) -> dict[str, np.ndarray]:
    """Flags (steps, N) of episodes under the task's own limit, played in another way than the benchmark does."""
    env = manikin.make(TASKS[kind], len(seeds), config=config, autoreset="disabled", terminate=False, observe="state")
    seen, _ = env.reset(seed=seeds)
    actor = objects.policy_maker(policy)(env)
    actor.reset(objects.torch.arange(len(seeds)))
    told = []
    for _ in range(env.horizon):
        seen, *_, info = env.step(actor.act(seen, env.instruction)[:, 0])
        told.append({name: value.clone().numpy() for name, value in info.items() if hasattr(value, "numpy")})
    env.close()
    return {name: np.stack([one[name] for one in told]) for name in told[0] if told[0][name].shape == (len(seeds),)}


SEEDS = [0, 8, 16, 24]  # all in one apartment


def test_a_limit_says_afterwards_what_it_says_while_it_is_played_under() -> None:
    """Drawers that a noisy expert closes: with the limit in the task the physics has the same bits, and events, modes,
    first successes and ends are those that :func:`judged` finds in the run without one."""
    policy = "graded:noise=0.4"
    free = objects.play("HomeClose-v1", "close", policy, {}, SEEDS)
    sums = free["robot_force"][-1]
    limit = float(np.sort(sums)[len(sums) // 2])  # some reach it, some do not
    assert (sums >= limit).any() and (sums < limit).any()
    bound = played("close", {"force_limit": limit}, SEEDS, policy)
    for name in ("robot_force", "contact", "is_closed", "is_grasped", "is_resting"):
        assert np.array_equal(free[name], bound[name]), name
    assert not free["fail"].any() and bound["fail"].any()
    tracker = Tracker(task_class(TASKS["close"])({"force_limit": limit}).labels, len(SEEDS))
    for step in range(len(bound["success"])):
        tracker.step(np.arange(len(SEEDS)), {name: value[step] for name, value in bound.items()})
    for row, found in enumerate(objects.judged("close", free, limit)):
        assert found["mode"] == tracker.labels.label(tracker.story(row))
        won = np.flatnonzero(bound["success"][:, row])
        assert found["first"] == (won[0] + 1 if len(won) else None)
        assert found["at_end"] == bool(bound["success"][-1, row])


def test_a_zone_says_afterwards_what_it_says_as_the_goal() -> None:
    """Of Place with a noisy expert: the physics is the same, and success in the whole surface, too."""
    policy = "graded:noise=0.2"
    free = objects.play("HomePlace-v1", "place", policy, {"objects": ("005_tomato_soup_can",)}, SEEDS)
    config = {"objects": ("005_tomato_soup_can",), "force_limit": 1e9, "goal_shape": "zone"}
    zone = played("place", config, SEEDS, policy)
    assert np.array_equal(free["robot_force"], zone["robot_force"])
    assert np.array_equal(free["in_zone"], zone["success"])
    assert (free["success"] <= free["in_zone"]).all() and free["in_zone"].any()


def flags(force: list[float], success: list[bool], grasped: list[bool]) -> dict[str, np.ndarray]:
    column = {"robot_force": np.array(force, np.float32), "success": np.array(success), "is_grasped": np.array(grasped)}
    column["contact"] = np.ones(len(force), bool)
    return {name: value[:, None] for name, value in column.items()}


def test_an_episode_is_judged_by_the_step_in_which_it_reaches_the_limit() -> None:
    told = flags([0, 50, 99, 100], [False, False, True, True], [False, True, True, True])
    cases = {
        101.0: ("straightforward_success", 3, True),
        100.0: ("success_then_excessive_collisions", 3, False),  # reached is failed
        99.0: ("excessive_collision_failure", None, False),
    }
    for limit, expected in cases.items():
        (found,) = objects.judged("pick", told, limit)
        assert (found["mode"], found["first"], found["at_end"]) == expected, limit


def test_what_is_kept_of_an_episode() -> None:
    told = flags([0, 60, 99, 5200], [False, False, True, True], [False, True, True, True])
    found = objects.told("pick", told, [7])["7"]
    calibrated = json.loads((ROOT / "benchmarks" / "results" / "home_push.json").read_text())["limits"]["pick"]
    assert 5000 < calibrated["calibrated"] < 5200
    assert found["published"] == found["calibrated"] == ["success_then_excessive_collisions", 3, False]
    assert found["none"] == ["straightforward_success", 3, True]
    assert (found["force_at_success"], found["force"], found["largest"]) == (99.0, 5200.0, 5101.0)


def test_a_push_gives_the_momentum_and_what_its_servo_presses() -> None:
    """The base at 1 m/s against a wall. The servo presses with up to 2500 N: so much at the end, and what went through
    the wall in 1 s is between the momentum of 112 kg and that and 2500 N s."""
    found = push.push("base", 1.0, rows=2)
    assert found["held"] == pytest.approx(2500, rel=1e-3) and found["speed"] == pytest.approx(0.97, abs=0.02)
    momentum = 112.2 * found["speed"]
    assert momentum < found["impulse"] / 20 < momentum + 2500
    assert found["ratio"] == pytest.approx(found["sum"] / found["impulse"], abs=1e-3)
    assert found["published"] == pytest.approx(20 * momentum + 20 * 500, rel=1e-3)


def test_a_push_that_is_done_again_in_between_must_end_where_it_did() -> None:
    env = Env(push.Push(arm="fetch_mshab"), num_envs=1, robot="fetch_mshab", autoreset="disabled", reward="none")
    env.reset(seed=0)
    action = env.hold()
    action[:, 0] = 1.0
    before = mujoco.MjData(env.scene.model)
    mujoco.mj_copyData(before, env.scene.model, env.world.data(0)[1])
    env.step(action)
    assert push.between(env, before, 0) == 0.0  # nothing is touched yet
    with pytest.raises(RuntimeError, match="otherwise"):
        push.between(env, before, 0)  # from a later state
    env.close()
