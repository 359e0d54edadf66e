"""Labels: the language, the proof by enumeration, MS-HAB's definitions, live and offline."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import manikin
from manikin.data.labels import Tracker, story_of
from manikin.data.read import read_episodes
from manikin.data.record import Recorder
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.policy.random import RandomPolicy
from manikin.spec.labels import PLAIN, Event, Labels, Mode, Story
from manikin.tasks.labels import CLOSE, GRASP, OPEN, PICK, PLACE, transport
from toy_env import Chase, ToyEnv

EVERY = {"plain": PLAIN, "grasp": GRASP, "transport": transport()} | {
    f"{name} {reading}": labels
    for name, both in (("pick", PICK), ("place", PLACE), ("open", OPEN), ("close", CLOSE))
    for reading, labels in both.items()
}
TWO = (Event("grasped", "g"), Event("success", "success"))


@pytest.mark.parametrize("name", EVERY)
def test_exactly_one_mode_holds_for_every_story(name: str) -> None:
    assert EVERY[name].check(5) > 5


def test_gaps_overlaps_and_dead_modes_are_found_with_their_story() -> None:
    done = (Mode("done", "success"),)
    with pytest.raises(ConfigError, match=r"no mode holds for the events \(grasped\)"):
        Labels(events=TWO, success=done, failure=(Mode("nothing", "length == 0"),)).check(3)
    failure = (Mode("some", "length >= 0"), Mode("held", "grasped"))
    with pytest.raises(ConfigError, match=r"some and held hold together for the events \(grasped\)"):
        Labels(events=TWO, success=done, failure=failure, ordered=False).check(3)
    with pytest.raises(ConfigError, match="reaches the mode 'held'"):
        Labels(events=TWO, success=done, failure=failure).check(3)
    strict = (Mode("held", "grasped"), Mode("nothing", "not grasped"))
    assert Labels(events=TWO, success=done, failure=strict, ordered=False).check(4) > 4


@pytest.mark.parametrize(
    ("when", "error", "said"),
    [
        ("droped", UnknownNameError, "droped"),
        ("last(1) > 0", ConfigError, "not the name of an event"),
        ("grasped +", ConfigError, "cannot be read"),
        ("__import__('os')", ConfigError, "no condition"),
        ("length > 2.5", ConfigError, "no number"),
        ("grasped > 1", ConfigError, "no number"),
    ],
)
def test_conditions_that_cannot_be_read_say_so(when: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        Labels(events=TWO, success=(Mode("a", when),), failure=(Mode("b", "otherwise"),))


def test_declarations_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="need an event named 'success'"):
        Labels(events=TWO[:1], success=(), failure=())
    with pytest.raises(ConfigError, match="two modes are named 'a'"):
        Labels(events=TWO, success=(Mode("a", "otherwise"),), failure=(Mode("a", "otherwise"),))
    with pytest.raises(UnknownNameError, match="edge"):
        Labels(events=(*TWO, Event("x", "g", "drop")), success=(), failure=())


def by_hand(labels: Labels, flags: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Events of one row straight from the definition: edges in time, then in declared order, neighbours merged."""
    found: list[str] = []
    for t in range(len(flags["success"])):
        for event in labels.events:
            values = [False, *(v > event.above if event.above is not None else bool(v) for v in flags[event.flag])]
            before, now = values[t], values[t + 1]
            if (now and not before) if event.edge == "rise" else (before and not now):
                found.append(event.name)
    return tuple(b for a, b in pairwise([None, *found]) if a != b and b is not None)


def test_live_labels_agree_with_the_definition_at_any_batch_and_with_restarts() -> None:
    labels, steps, n = PICK["released"], 40, 16
    draw = np.random.Generator(np.random.Philox(3))
    flags = {name: draw.uniform(size=(steps, n)) < 0.3 for name in ("contact", "grasped", "success")}
    flags |= {"robot_force": np.cumsum(draw.uniform(0, 400, (steps, n)), 0)}
    tracker, alone = Tracker(labels, n), Tracker(labels, 1)
    tracker.step(np.arange(n), {k: v[0] for k, v in flags.items()})
    tracker.reset(range(n))  # what came before is forgotten
    for t in range(steps):
        rows = np.arange(n) if t < 20 else np.arange(0, n, 2)  # odd rows have ended
        tracker.step(rows, {k: v[t] for k, v in flags.items()})
    for row in range(n):
        own = {k: v[: 20 if row % 2 else steps, row] for k, v in flags.items()}
        assert tracker.story(row).events == by_hand(labels, own)
        assert labels.label(tracker.story(row)) in labels.modes
        alone.reset([0])
        for t in range(len(own["success"])):
            alone.step(np.zeros(1, int), {k: v[t : t + 1] for k, v in own.items()})
        assert alone.story(0) == tracker.story(row)
    with pytest.raises(UnknownNameError, match="robot_force"):
        tracker.step(np.arange(n), {k: v[0] for k, v in flags.items() if k != "robot_force"})


# Worked through by hand from the published definitions.
@pytest.mark.parametrize(
    ("labels", "events", "released", "paper"),
    [
        (PICK, "contact grasped success", "straightforward_success", "straightforward_success"),
        (PICK, "contact grasped dropped contact grasped success", "winding_success", "winding_success"),
        (PICK, "contact grasped success dropped", "success_then_drop", "success_then_drop"),
        (PICK, "contact grasped success excessive_collisions", *["success_then_excessive_collisions"] * 2),
        (PICK, "", "mobility_failure", "mobility_failure"),
        (PICK, "contact", "cant_grasp", "cant_grasp"),
        (PICK, "contact grasped dropped", "drop_failure", "drop_failure"),
        (PICK, "contact grasped dropped grasped", "too_slow", "too_slow"),
        (PICK, "contact grasped dropped grasped dropped contact", "drop_failure", "drop_failure"),
        (PICK, "contact excessive_collisions", "excessive_collisions", "excessive_collisions"),
        (PLACE, "grasped obj_at_goal released_at_goal success", "dropped_to_goal", "dropped_to_goal"),
        (PLACE, "grasped obj_at_goal", "wont_let_go", "wont_let_go"),
        (PLACE, "grasped", "didnt_reach_goal", "didnt_reach_goal"),
        (OPEN, "contact opened slightly_opened success", "open_success", "open_success"),
        (OPEN, "contact slightly_opened", "slightly_opened", "slightly_opened"),
        (OPEN, "contact slightly_opened opened closed", "closed_after_open", "closed_after_open"),
        (OPEN, "contact", "cant_open", "cant_open"),
        (CLOSE, "", "cant_reach", "cant_reach"),
        (CLOSE, "contact slightly_closed closed", "too_slow", "too_slow"),
        (
            CLOSE,
            "contact closed slightly_closed success excessive_collisions",
            *["success_then_excessive_collisions"] * 2,
        ),
    ],
)
def test_modes_of_mobile_manipulation(labels: dict[str, Labels], events: str, released: str, paper: str) -> None:
    story = Story(tuple(events.split()))
    if released == "dropped_to_goal":
        at_once = Story(story.events, frozenset({"at_goal"}))
        assert {r: labels[r].label(at_once) for r in labels} == dict.fromkeys(labels, "placed_in_goal")
        story = Story(("grasped", "obj_at_goal", "released_outside_goal", "success"))
    assert (labels["released"].label(story), labels["paper"].label(story)) == (released, paper)


def test_a_gap_in_the_printed_formulas_is_called_one() -> None:
    """Contact, loss of contact and contact again are merged by the code; the paper's lists have no mode for others."""
    story = Story(("contact", "grasped", "dropped", "grasped", "dropped", "contact", "success"))
    assert PICK["released"].label(story) == "winding_success"
    assert PICK["paper"].label(Story(("grasped", "success"))) == "unlabelled_success"
    # the code asks for more than three events before it calls it a drop; what is left is its last mode
    assert PICK["released"].label(Story(("grasped", "success"))) == "success_then_excessive_collisions"
    for both in (OPEN, CLOSE):  # success without having been open, or closed
        assert both["paper"].label(Story(("contact", "success"))) == "unlabelled_success"
        assert both["released"].label(Story(("contact", "success"))) in ("open_success", "closed_success")


def test_a_run_of_a_task_is_labelled_alike_live_on_disk_and_in_the_report(tmp_path: Path) -> None:
    env = manikin.make("PickCube-v1", 3, horizon=30, autoreset="disabled")
    recorder = Recorder(env, tmp_path / "run.h5", policy="expert")
    run = run_episodes(env, ExpertPolicy(env), range(4), observers=[recorder])
    random = run_episodes(env, RandomPolicy(env), range(2))
    recorder.close()
    labels = env.task.labels
    env.close()
    assert {r.mode for r in random.results} == {"never_grasped"} and all(not r.events for r in random.results)
    assert any(r.success_once for r in run.results)
    with read_episodes(tmp_path / "run.h5") as episodes:
        for result in run.results:
            episode = episodes[result.number]
            assert story_of(episode, labels).events == result.events
            assert episode.mode == result.mode == labels.label(story_of(episode, labels))
            assert (result.mode == "straightforward_success") == result.success_once
            if result.success_once:
                assert result.events[0] == "grasped" and result.events[-1] == "success"
            assert episode.flags["is_grasped"].shape == (len(episode),)
    keep = Recorder(ToyEnv(2, horizon=6), tmp_path / "none.h5", keep="label:no_success")
    run_episodes(keep.env, Chase(), range(20), observers=[keep])
    keep.close()
    with read_episodes(tmp_path / "none.h5") as episodes:
        assert {e.mode for e in episodes} == {"no_success"} and 0 < len(episodes) < 20
        assert len(episodes) + len(episodes.dropped) == 20
    with pytest.raises(UnknownNameError, match="no_success"):
        Recorder(ToyEnv(2), tmp_path / "x.h5", keep="label:no_sucess")
