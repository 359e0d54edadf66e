"""Ways to succeed and fail that many tasks share.

``PICK``, ``PLACE``, ``OPEN`` and ``CLOSE`` are those of MS-HAB (Shukla et al. 2024), each in two readings:
``released``, what its code does, where the first mode that fits is taken, and ``paper``, what its appendix prints. The
paper's formulas leave gaps, called ``unlabelled`` here, and print mode iii of Open and Close with the wrong sign.

Flags: ``contact`` (the robot presses on the object), ``grasped``, ``at_goal``, ``released_at_goal``,
``released_outside_goal``, ``opened``, ``slightly_opened``, ``closed``, ``slightly_closed``, ``success``, and
``robot_force``, the robot's contact force added up over the episode [N].
"""

from __future__ import annotations

from manikin.spec.labels import Event, Labels, Mode

__all__ = ["CLOSE", "GRASP", "OPEN", "PICK", "PLACE", "transport"]

_SUCCESS = Event("success", "success")
_GRASPED = (Event("grasped", "is_grasped"), Event("dropped", "is_grasped", "fall"))

GRASP = Labels(
    events=(*_GRASPED, _SUCCESS, Event("lost", "success", "fall")),
    success=(
        Mode("straightforward_success", "count(grasped) <= 1 and not lost", "grasped once, or not at all, and done"),
        Mode("success_then_lost", "last(lost) > last(success)", "it did not stay so"),
        Mode("winding_success", "otherwise", "it took several grasps, or successes"),
    ),
    failure=(
        Mode("never_grasped", "not grasped", "the fingers never held it"),
        Mode("dropped", "last(dropped) > last(grasped)", "held it and lost it"),
        Mode("held_too_slow", "otherwise", "still held it when time ran out"),
    ),
    source="tasks whose object is grasped; flag is_grasped",
)


def transport(placed: str = "is_placed", *, grasps: int = 1) -> Labels:
    """Labels of a task that brings an object to a goal. Its flags are ``is_grasped`` and, at the goal, ``placed``;
    the straight way takes so many ``grasps``."""
    return Labels(
        events=(
            *_GRASPED,
            Event("at_goal", placed),
            Event("left_goal", placed, "fall"),
            _SUCCESS,
            Event("lost", "success", "fall"),
        ),
        success=(
            Mode(
                "straightforward_success",
                f"count(grasped) <= {grasps} and count(at_goal) <= 1 and not lost",
                "no grasp more than needed, one arrival",
            ),
            Mode("success_then_lost", "last(lost) > last(success)", "it did not stay so"),
            Mode("winding_success", "otherwise", "it took several grasps, arrivals or successes"),
        ),
        failure=(
            Mode("never_grasped", "not grasped and not at_goal", "the fingers never held it"),
            Mode("dropped", "last(dropped) > last(grasped) and not at_goal", "held it and lost it on the way"),
            Mode("held_too_slow", "not at_goal", "still held it when time ran out"),
            Mode("left_goal", "last(left_goal) > last(at_goal)", "it was at the goal and left it"),
            Mode("not_settled", "otherwise", "at the goal, and the rest of the rule did not hold"),
        ),
        source="tasks that bring an object to a goal",
    )


def _force(limit: float) -> Event:
    return Event("excessive_collisions", "robot_force", at_least=limit)


_PICK = (
    Event("contact", "contact"),
    Event("grasped", "grasped"),
    Event("dropped", "grasped", "fall"),
    _SUCCESS,
    _force(5000.0),
)

PICK = {
    "released": Labels(
        events=_PICK,
        success=(
            Mode("straightforward_success", "length == 3", "reached, grasped, held"),
            Mode("winding_success", "length > 3 and ends(success)", "succeeded after a detour"),
            Mode("success_then_drop", "length > 3 and not excessive_collisions", "let go after success"),
            Mode("success_then_excessive_collisions", "otherwise", "and what the code does not expect"),
        ),
        failure=(
            Mode("excessive_collisions", "excessive_collisions", "pressed too much on things"),
            Mode("mobility_failure", "length == 0", "never touched the object"),
            Mode("cant_grasp", "length == 1", "touched it and never grasped"),
            Mode("drop_failure", "dropped and not ends(grasped)", "grasped and lost it"),
            Mode("too_slow", "otherwise", "held it, and time ran out"),
        ),
        source="MS-HAB, released code",
    ),
    "paper": Labels(
        events=_PICK,
        success=(
            Mode("straightforward_success", "starts(contact, grasped, success) and length == 3"),
            Mode(
                "winding_success",
                "starts(contact, grasped) and ends(success) and length > 3 and not excessive_collisions",
            ),
            Mode("success_then_drop", "dropped and last(dropped) > last(grasped) and not excessive_collisions"),
            Mode("success_then_excessive_collisions", "excessive_collisions"),
            Mode("unlabelled_success", "otherwise", "the paper's formulas do not cover it"),
        ),
        failure=(
            Mode("excessive_collisions", "excessive_collisions"),
            Mode("mobility_failure", "length == 0"),
            Mode("cant_grasp", "starts(contact) and length == 1"),
            Mode("drop_failure", "dropped and last(dropped) > last(grasped)"),
            Mode("too_slow", "last(grasped) > last(dropped)"),
        ),
        source="MS-HAB, appendix",
    ),
}

_PLACE = (
    Event("grasped", "grasped"),
    Event("obj_at_goal", "at_goal"),
    Event("released_at_goal", "released_at_goal"),
    Event("released_outside_goal", "released_outside_goal"),
    Event("obj_left_goal", "at_goal", "fall"),
    _SUCCESS,
    _force(7500.0),
)
_IN_GOAL = (
    "(length <= 2 and began(at_goal)) or (last(released_at_goal) > last(released_outside_goal) "
    "and last(released_at_goal) > last(grasped))"
)
_DROPPED = (
    "(length <= 2 and not began(at_goal)) or (last(released_outside_goal) > last(released_at_goal) "
    "and last(released_outside_goal) > last(grasped))"
)
_PLACE_FAILURE = (
    Mode("excessive_collisions", "excessive_collisions"),
    Mode("didnt_grasp", "length == 0"),
    Mode("didnt_reach_goal", "not obj_at_goal"),
    Mode("place_in_goal_failure", f"({_IN_GOAL}) and last(obj_left_goal) > last(obj_at_goal)"),
    Mode("dropped_to_goal_failure", f"({_DROPPED}) and last(obj_left_goal) > last(obj_at_goal)"),
    Mode(
        "wont_let_go",
        "obj_at_goal and last(grasped) > last(released_at_goal) and last(grasped) > last(released_outside_goal)",
    ),
    Mode("too_slow", "otherwise"),
)

PLACE = {
    "released": Labels(
        events=_PLACE,
        success=(
            Mode("success_then_excessive_collisions", "excessive_collisions"),
            Mode("dubious_success", "last(obj_at_goal) < last(obj_left_goal)", "at success it was leaving"),
            Mode("placed_in_goal", "length <= 4 and (released_at_goal or began(at_goal))"),
            Mode("dropped_to_goal", "length <= 4 and (released_outside_goal or not began(at_goal))"),
            Mode("winding_success", "otherwise"),
        ),
        failure=_PLACE_FAILURE,
        source="MS-HAB, released code",
    ),
    "paper": Labels(
        events=_PLACE,
        success=(
            Mode("success_then_excessive_collisions", "excessive_collisions"),
            Mode("dubious_success", "last(obj_at_goal) < last(obj_left_goal)"),
            Mode("placed_in_goal", "length <= 4 and (released_at_goal or began(at_goal))"),
            Mode("dropped_to_goal", "length <= 4 and (released_outside_goal or not began(at_goal))"),
            Mode("winding_success", "length > 4 and last(obj_at_goal) > last(obj_left_goal)"),
            Mode("unlabelled_success", "otherwise", "the paper's formulas do not cover it"),
        ),
        failure=_PLACE_FAILURE,
        source="MS-HAB, appendix",
    ),
}


def _move(done: str, slightly: str, undone: str, *, limit: float, paper: bool, words: tuple[str, ...]) -> Labels:
    """Open and Close, which mirror each other. ``undone`` is the fall of ``done`` in the paper, of ``slightly`` in the
    code, and events of one step are listed in another order."""
    first = (Event("contact", "contact"), Event(done, done))
    more = (Event(slightly, slightly), Event(undone, done if paper else slightly, "fall"))
    end = (_SUCCESS, _force(limit))
    good, back, partly, never = words
    return Labels(
        events=(*first, *more, *end) if paper else (*first, *end, *more),
        success=(
            Mode("success_then_excessive_collisions", "excessive_collisions"),
            Mode("dubious_success", f"last({undone}) > last({done})", "it moved back after success"),
            *(
                (
                    Mode(good, f"last({done}) > last({undone})"),
                    Mode("unlabelled_success", "otherwise", "the paper's formulas do not cover it"),
                )
                if paper
                else (Mode(good, "otherwise"),)
            ),
        ),
        failure=(
            Mode("excessive_collisions", "excessive_collisions"),
            Mode("cant_reach", "not contact"),
            Mode(back, f"{undone} and last({undone}) > last({done}) and last({undone}) > last({slightly})"),
            Mode(
                partly,
                f"last({slightly}) > last({done})" + (f" and last({slightly}) > last({undone})" if paper else ""),
            ),
            Mode("too_slow", done),
            Mode(never, "otherwise"),
        ),
        source="MS-HAB, appendix" if paper else "MS-HAB, released code",
    )


_OPEN = ("open_success", "closed_after_open", "slightly_opened", "cant_open")
_CLOSE = ("closed_success", "opened_after_closing", "slightly_closed", "cant_close")
OPEN = {
    reading: _move("opened", "slightly_opened", "closed", limit=10_000.0, paper=reading == "paper", words=_OPEN)
    for reading in ("released", "paper")
}
CLOSE = {
    reading: _move("closed", "slightly_closed", "opened", limit=10_000.0, paper=reading == "paper", words=_CLOSE)
    for reading in ("released", "paper")
}
