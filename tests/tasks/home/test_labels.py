"""Labels of the subtasks, beside the published rules written out as programs, over every story up to a length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.labels import Labels, Story
from manikin.tasks.home.labels import VARIANTS, subtask_labels

SUBTASKS = ("pick", "place", "open", "close")


def last(events: Sequence[str], name: str) -> int:
    return max((k for k, event in enumerate(events) if event == name), default=-1)


def pick(e: Sequence[str], began: bool) -> str:
    if "success" in e:
        if len(e) == 3:
            return "straightforward_success"
        if len(e) > 3 and e[-1] == "success":
            return "winding_success"
        if len(e) > 3 and "excessive_collisions" not in e:
            return "success_then_drop"
        return "success_then_excessive_collisions"
    if "excessive_collisions" in e:
        return "excessive_collision_failure"
    if len(e) < 2:
        return ("mobility_failure", "cant_grasp_failure")[len(e)]
    return "drop_failure" if "dropped" in e and e[-1] != "grasped" else "too_slow_failure"


def place(e: Sequence[str], began: bool) -> str:
    came, left, held = last(e, "obj_at_goal"), last(e, "obj_left_goal"), last(e, "grasped")
    inside, outside = last(e, "released_at_goal"), last(e, "released_outside_goal")
    if "success" in e:
        if "excessive_collisions" in e:
            return "success_then_excessive_collisions"
        if came < left:
            return "dubious_success"
        if len(e) <= 4:
            return "placed_in_goal_success" if inside >= 0 or began else "dropped_to_goal_success"
        return "winding_success"
    if "excessive_collisions" in e:
        return "excessive_collision_failure"
    if not e:
        return "didnt_grasp_failure"
    if came < 0:
        return "didnt_reach_goal_failure"
    if left > came and ((len(e) <= 2 and began) or (inside > outside and inside > held)):
        return "place_in_goal_failure"
    if left > came and ((len(e) <= 2 and not began) or (outside > inside and outside > held)):
        return "drop_to_goal_failure"
    return "wont_let_go_failure" if held > inside and held > outside else "too_slow_failure"


def open_(e: Sequence[str], began: bool) -> str:
    done, again, little = last(e, "opened"), last(e, "closed"), last(e, "slightly_opened")
    if "success" in e:
        if "excessive_collisions" in e:
            return "success_then_excessive_collisions"
        return "dubious_success" if again > done else "open_success"
    if "excessive_collisions" in e:
        return "excessive_collision_failure"
    if "contact" not in e:
        return "cant_reach_articulation_failure"
    if again > done and again > little:
        return "closed_after_open_failure"
    if little > done:
        return "slightly_open_failure"
    return "too_slow_failure" if done >= 0 else "cant_open_failure"


def close(e: Sequence[str], began: bool) -> str:
    done, again, little = last(e, "closed"), last(e, "opened"), last(e, "slightly_closed")
    if "success" in e:
        if "excessive_collisions" in e:
            return "success_then_excessive_collisions"
        return "dubious_success" if again > done else "closed_success"
    if "excessive_collisions" in e:
        return "excessive_collision_failure"
    if "contact" not in e:
        return "cant_reach_articulation_failure"
    if again > done and again > little:
        return "open_after_closing_failure"
    if little > done and little > again:
        return "slightly_closed_failure"
    return "too_slow_failure" if done >= 0 else "cant_close_failure"


CODE: dict[str, Callable[[Sequence[str], bool], str]] = {"pick": pick, "place": place, "open": open_, "close": close}


def stories(labels: Labels, longest: int) -> Iterator[tuple[str, ...]]:
    """Every story so long: rises and falls of a flag take turns, neighbours differ."""
    falls = {event.signal: event.name for event in labels.events if event.edge == "fall"}
    rises = {event.signal: event.name for event in labels.events if event.edge == "rise"}
    grown: list[tuple[str, ...]] = [()]
    while grown:
        yield from grown
        longer = []
        for story in grown if len(grown[0]) < longest else ():
            for event in labels.events:
                other = (falls if event.edge == "rise" else rises).get(event.signal)
                up = last(story, event.name) > last(story, other) if other else False
                down = event.edge == "fall" and last(story, event.name) >= last(story, rises[event.signal])
                if story[-1:] != (event.name,) and not up and not down:
                    longer.append((*story, event.name))
        grown = longer


@pytest.mark.parametrize("subtask", SUBTASKS)
def test_every_story_has_the_label_of_the_published_code(subtask: str) -> None:
    labels, seen = subtask_labels(subtask), set()
    for events in stories(labels, 5):
        for began in (False, True) if subtask == "place" and "obj_at_goal" in events[:2] else (False,):
            story = Story(events, frozenset({"at_goal"} if began else ()))
            assert labels.label(story) == CODE[subtask](events, began), story
            seen.add(labels.label(story))
    assert seen == set(labels.modes)


@pytest.mark.parametrize("subtask", [*SUBTASKS, "navigate"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_one_mode_holds_for_every_story(subtask: str, variant: str) -> None:
    assert subtask_labels(subtask, variant).check() > 10


@pytest.mark.parametrize(
    "subtask, events, paper, code",
    [
        # the paper asks for the order, the code only for how many events there are
        ("pick", "contact grasped success", "straightforward_success", "straightforward_success"),
        ("pick", "contact grasped dropped grasped success", "winding_success", "winding_success"),
        ("pick", "contact grasped success dropped grasped", "unlabelled_success", "success_then_drop"),
        ("pick", "contact grasped success dropped", "success_then_drop", "success_then_drop"),
        ("pick", "contact grasped success excessive_collisions", *["success_then_excessive_collisions"] * 2),
        ("pick", "grasped", "too_slow_failure", "cant_grasp_failure"),
        ("pick", "contact grasped contact", "too_slow_failure", "too_slow_failure"),
        ("pick", "contact grasped dropped", "drop_failure", "drop_failure"),
        ("pick", "contact grasped dropped contact", "drop_failure", "drop_failure"),
        # the paper's body says: closed is what falls below open; the code's: what is nearly shut
        ("open", "contact slightly_opened opened closed", "closed_after_open_failure", "closed_after_open_failure"),
        ("open", "contact closed slightly_opened", "slightly_open_failure", "slightly_open_failure"),
        ("open", "contact opened success excessive_collisions", *["success_then_excessive_collisions"] * 2),
        ("open", "contact success", "unlabelled_success", "open_success"),
        ("close", "contact success", "unlabelled_success", "closed_success"),
        ("close", "contact closed opened", "open_after_closing_failure", "open_after_closing_failure"),
        ("place", "grasped obj_at_goal released_at_goal success", *["placed_in_goal_success"] * 2),
        ("place", "grasped released_outside_goal obj_at_goal success", *["dropped_to_goal_success"] * 2),
        ("place", "grasped obj_at_goal obj_left_goal", *["wont_let_go_failure"] * 2),
        ("place", "grasped obj_at_goal", "wont_let_go_failure", "wont_let_go_failure"),
    ],
)
def test_what_paper_and_code_say(subtask: str, events: str, paper: str, code: str) -> None:
    story = Story(tuple(events.split()))
    assert subtask_labels(subtask, "paper").label(story) == paper
    assert subtask_labels(subtask, "code").label(story) == code


def test_modes_are_those_of_the_published_tables() -> None:
    """Columns i, ii, ... of tables 6 to 13."""
    columns = {
        "pick": "straightforward_success winding_success success_then_drop success_then_excessive_collisions "
        "excessive_collision_failure mobility_failure cant_grasp_failure drop_failure too_slow_failure",
        "place": "placed_in_goal_success dropped_to_goal_success dubious_success winding_success "
        "success_then_excessive_collisions excessive_collision_failure didnt_grasp_failure didnt_reach_goal_failure "
        "place_in_goal_failure drop_to_goal_failure wont_let_go_failure too_slow_failure",
        "open": "open_success dubious_success success_then_excessive_collisions excessive_collision_failure "
        "cant_reach_articulation_failure closed_after_open_failure slightly_open_failure too_slow_failure "
        "cant_open_failure",
        "close": "closed_success dubious_success success_then_excessive_collisions excessive_collision_failure "
        "cant_reach_articulation_failure open_after_closing_failure slightly_closed_failure too_slow_failure "
        "cant_close_failure",
    }
    for subtask, names in columns.items():
        assert set(subtask_labels(subtask).modes) == set(names.split())


def test_unknown_words_name_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="force_limit of pick must be a force above 0 N, or inf, but it is -1"):
        subtask_labels("pick", force_limit=-1)
    with pytest.raises(UnknownNameError, match="pick, place"):
        subtask_labels("wash")
    with pytest.raises(UnknownNameError, match="code"):
        subtask_labels("pick", "thesis")
