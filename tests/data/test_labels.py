"""Labels: the language, the proof by enumeration, MS-HAB's definitions, live and offline."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import manikin
from manikin.data.recorder import Recorder
from manikin.data.recording.labels import Tracker, story_of
from manikin.data.recording.read import read_episodes
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.policy.random_policy import RandomPolicy
from manikin.spec.labels import PLAIN, Event, Labels, Mode, Story
from manikin.tasks.tabletop.pick_cube import PickCube
from manikin.toolkit import CLOSE, GRASP, OPEN, PICK, PLACE, transport
from toy_env import Chase, ToyEnv

EVERY = {"plain": PLAIN, "grasp": GRASP, "transport": transport()} | {
    f"{name} {reading}": labels
    for name, both in (("pick", PICK), ("place", PLACE), ("open", OPEN), ("close", CLOSE))
    for reading, labels in both.items()
}
TWO = (Event("grasped", "g"), Event("success", "success"))


@pytest.mark.parametrize("name", EVERY)
def test_exactly_one_mode_holds_for_every_story(name: str) -> None:
    assert EVERY[name].check() > 3
    draw = np.random.Generator(np.random.Philox(11))
    for length in draw.integers(0, 30, 300):  # and for stories much longer than any that the proof looks at
        story: list[str] = []
        up: set[object] = set()
        for event in draw.choice(np.array(EVERY[name].events, object), length):
            if story[-1:] != [event.name] and (event.edge == "fall") == (event.signal in up):
                story.append(event.name)
                up ^= {event.signal}
        assert EVERY[name].label(Story(tuple(story))) in EVERY[name].modes


def test_gaps_overlaps_and_dead_modes_are_found_with_their_story(monkeypatch: pytest.MonkeyPatch) -> None:
    done = (Mode("done", "success"),)
    with pytest.raises(ConfigError, match=r"no mode holds for the events \(grasped\)"):
        Labels(events=TWO, success=done, failure=(Mode("nothing", "length == 0"),)).check()
    failure = (Mode("some", "length >= 0"), Mode("held", "grasped"))
    with pytest.raises(ConfigError, match=r"some and held hold together for the events \(grasped\)"):
        Labels(events=TWO, success=done, failure=failure, ordered=False).check()
    with pytest.raises(ConfigError, match="reaches the mode 'held'"):
        Labels(events=TWO, success=done, failure=failure).check()
    strict = (Mode("held", "grasped"), Mode("nothing", "not grasped"))
    assert Labels(events=TWO, success=done, failure=strict, ordered=False).check() == 5
    count = " and ".join(f"count({name}) < 9" for name in "abcdefhi")
    failure = (Mode("few", count), Mode("many", "otherwise"))
    monkeypatch.setattr("manikin.spec.labels.MOST", 1_000)
    with pytest.raises(ConfigError, match="more than 1,000 kinds of stories"):
        Labels(events=(*TWO, *(Event(name, name) for name in "abcdefhi")), success=done, failure=failure).check()


FALLS = (Event("grasped", "g"), Event("dropped", "g", "fall"), Event("success", "success"))


def grow(story: tuple[str, ...], most: int) -> Iterator[tuple[str, ...]]:
    """Every story of FALLS of up to so many events."""
    yield story
    held = story.count("grasped") > story.count("dropped")
    for name in ("dropped" if held else "grasped", "success") if len(story) < most else ():
        if story[-1:] != (name,):
            yield from grow((*story, name), most)


@pytest.mark.parametrize(
    "when",
    [
        *("grasped", "length == 5", "length > 9", "count(grasped) < 4", "1 < count(dropped) < 4", "last(grasped) > 4"),
        *("last(dropped) > last(grasped)", "first(success) > last(dropped) > 2", "first(dropped) == 3"),
        *("count(success) >= 3 and last(grasped) > first(success)", "starts(grasped, dropped) and length > 4"),
        *("ends(success, grasped)", "last(grasped) == length", "count(dropped) > count(grasped)", "length < 0"),
        *("count(grasped) == count(dropped)", "last(grasped) != -1 and not grasped", "first(grasped) > last(grasped)"),
        *(
            "first(success) == 7",
            "length == 8 and ends(success)",
            "count(dropped) == 5",
            "starts(dropped) or not dropped",
        ),
    ],
)
def test_the_proof_says_of_a_condition_what_all_short_stories_say(when: str) -> None:
    """Whether it ever holds, and ever does not: against all stories of up to 12 events."""
    holds = Labels(events=FALLS, success=(Mode("s", when),), failure=(Mode("f", when),), ordered=False)
    found = {}
    for story in grow((), 12):
        try:
            found[holds.label(Story(story))] = True
        except ConfigError:
            found[f"{'s' if 'success' in story else 'f'} fails"] = True
    for kind, events in (("s", "success"), ("f", "not success")):
        both = (Mode("yes", f"{when}"), Mode("no", f"not ({when})"))
        rest = (Mode("rest", "otherwise"),)
        labels = Labels(
            events=FALLS, success=both if kind == "s" else rest, failure=both if kind == "f" else rest, ordered=False
        )
        for mode, said in (("yes", kind), ("no", f"{kind} fails")):
            if said not in found:
                with pytest.raises(ConfigError, match=f"no story reaches the mode '{mode}'"):
                    labels.check()
                break
        else:
            assert labels.check() > 2, events


def test_flags_of_the_first_step_are_those_of_its_events() -> None:
    def labels(when: str) -> Labels:
        return Labels(
            events=FALLS,
            success=(Mode("s", "otherwise"),),
            failure=(Mode("yes", when), Mode("no", "otherwise")),
        )

    assert labels("began(g) and length == 4").check() > 4
    assert labels("began(elsewhere) and length == 2").check() > 4
    with pytest.raises(ConfigError, match="no story reaches the mode 'yes'"):
        labels("began(g) and not grasped").check()
    with pytest.raises(ConfigError, match="no story reaches the mode 'yes'"):
        labels("began(g) and first(grasped) > 0").check()


def test_a_task_whose_labels_have_a_gap_is_not_made() -> None:
    class Gap(PickCube):
        labels = Labels(
            events=FALLS,
            success=(Mode("done", "otherwise"),),
            failure=(Mode("few", "count(grasped) < 8"),),  # eight grasps are fifteen events
        )

    with pytest.raises(ConfigError, match=r"labels of PickCube-v2 .* no mode holds for .*dropped, grasped\)"):
        manikin.make(Gap, 2)


@pytest.mark.parametrize(
    ("when", "error", "said"),
    [
        ("droped", UnknownNameError, "droped"),
        ("last(1) > 0", ConfigError, "not the name of an event"),
        ("grasped +", ConfigError, "cannot be read"),
        ("__import__('os')", ConfigError, "is not a condition"),
        ("length > 2.5", ConfigError, "is not a number"),
        ("grasped > 1", ConfigError, "is not a number"),
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
    with pytest.raises(ConfigError, match="both the rise of 'g'"):
        Labels(events=(*TWO, Event("again", "g")), success=(), failure=())
    for success in (
        Event("success", "success", "fall"),
        Event("success", "g"),
        Event("success", "success", at_least=1),
    ):
        with pytest.raises(ConfigError, match="the event 'success' is the rise of the task's own flag"):
            Labels(events=(success,), success=(), failure=())


def by_hand(labels: Labels, flags: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Events of one row straight from the definition: edges in time, then in declared order, neighbours merged."""
    found: list[str] = []
    for t in range(len(flags["success"])):
        for event in labels.events:
            values = [False, *(bool(v) if event.at_least is None else v >= event.at_least for v in flags[event.flag])]
            before, now = values[t], values[t + 1]
            if (now and not before) if event.edge == "rise" else (before and not now):
                found.append(event.name)
    return tuple(b for a, b in pairwise([None, *found]) if a != b and b is not None)


def test_live_labels_agree_with_the_definition_at_any_batch_and_with_restarts() -> None:
    labels, steps, n = PICK["released"], 40, 16
    draw = np.random.Generator(np.random.Philox(3))
    flags = {name: draw.uniform(size=(steps, n)) < 0.3 for name in ("contact", "grasped", "success")}
    flags |= {"robot_force": np.cumsum(draw.uniform(0, 400, (steps, n)), 0), "fail": np.zeros((steps, n), bool)}
    flags["robot_force"][20, 0] = 5000.0  # the limit itself counts
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


def test_success_after_failure_is_no_event_and_does_not_count() -> None:
    tracker, at = Tracker(PLAIN, 2), np.arange(2)
    flags = {
        "success": np.array([[0, 0, 1, 1], [0, 1, 1, 1]], bool),  # after the failure; before it, and it stays so
        "fail": np.array([[0, 1, 0, 0], [0, 0, 1, 0]], bool),
    }
    for t in range(4):
        tracker.step(at, {k: v[:, t] for k, v in flags.items()})
    assert tracker.failed.tolist() == [True, True]
    assert [PLAIN.label(tracker.story(row)) for row in (0, 1)] == ["no_success", "success_then_lost"]
    tracker.reset([0])
    tracker.step(at[:1], {k: v[:, 3] for k, v in flags.items()})
    assert tracker.story(0).events == ("success",) and tracker.failed.tolist() == [False, True]


class Late(PickCube):
    """Fails at the third step and succeeds at the sixth."""

    def evaluate(self, h):
        flags = super().evaluate(h)
        steps = h.steps.value
        return flags | {"success": steps >= 6, "fail": steps == 3, "steps": steps.long()}

    def scene(self, b):
        handles = super().scene(b)
        handles["steps"] = b.variable("steps")
        return handles

    def advance(self, h):
        super().advance(h)
        h.steps.set(h.steps.value + 1)


def test_rates_labels_and_recordings_agree_on_success_after_failure(tmp_path: Path) -> None:
    env = manikin.make(Late, 2, horizon=8, autoreset="disabled", terminate=False)
    recorder = Recorder(env, tmp_path / "late.h5")
    kept = Recorder(env, tmp_path / "none.h5", keep="success")
    run = run_episodes(env, RandomPolicy(env), range(2), observers=[recorder, kept])
    for one in (recorder, kept):
        one.close()
    env.close()
    assert not any(r.success_once or r.success_at_end or "success" in r.events for r in run.results)
    assert {r.mode for r in run.results} == {"never_grasped"} and not kept.kept
    with read_episodes(tmp_path / "late.h5") as episodes:
        for episode in episodes:
            assert episode.success.tolist() == [False] * 5 + [True] * 3  # as the task said
            assert not episode.succeeded.any() and not episode.success_once and not episode.success_at_end
            assert not episodes.attributes(episode.number)["success_once"] and episode.mode == "never_grasped"
            assert episode.flags["steps"].dtype == np.int64 and episode.flags["steps"].tolist() == list(range(1, 9))


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
    env = manikin.make("PickCube-v2", 3, horizon=30, autoreset="disabled")
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
