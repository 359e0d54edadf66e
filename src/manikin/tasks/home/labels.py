"""MS-HAB's labels of the five subtasks, by the rules of its code and by those of its paper.

Both read the same flags. They differ in the order of events within a step, in when a drawer counts as closed again, and
in what the formulas leave out: where no formula of the paper holds, the label begins with ``unlabelled``. Two formulas
of the paper are corrected: success then excessive collisions, of Open and Close, asks for excessive collisions; the
paper prints that there are none. Source: Shukla et al., ManiSkill-HAB, 2024, A.6, and the code of August 2025.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.labels import Event, Labels, Mode
from manikin.tasks.home.rules import RULES

__all__ = ["VARIANTS", "subtask_labels"]

VARIANTS = ("code", "paper")

_SUCCESS = Event("success", "success")
_OVER = "excessive_collisions"
_SOURCE = "MS-HAB's event lists, by the rules of its {}"


@functools.cache
def subtask_labels(subtask: str, variant: str = "code", force_limit: float | None = None) -> Labels:
    """Labels of a subtask.

    Args:
        subtask: ``pick``, ``place``, ``open``, ``close`` or ``navigate``.
        variant: ``code``, which made the published tables, or ``paper``. Of Navigate there is the code alone.
        force_limit: [N, added up over control steps] from which on collisions are excessive; by default the published
            one.

    Raises:
        UnknownNameError: no such subtask or variant.
    """
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    if subtask not in _LABELS:
        raise UnknownNameError("subtask", subtask, tuple(_LABELS))
    found = _LABELS[subtask](variant == "code")
    if force_limit is not None and not force_limit > 0:
        raise ConfigError(f"force_limit of {subtask} must be a force above 0 N, or inf, but it is {force_limit}")
    if force_limit is None:
        return found
    events = [replace(one, at_least=force_limit) if one.name == _OVER else one for one in found.events]
    return replace(found, events=tuple(events))


def _excess(subtask: str) -> Event:
    return Event(_OVER, "robot_force", at_least=RULES[subtask].force_limit)


def _pick(code: bool) -> Labels:
    straight, winding = ("length == 3", "length > 3 and ends(success)")
    dropped = "length > 3 and not excessive_collisions"
    if not code:
        straight = "length == 3 and starts(contact, grasped, success)"
        winding = "length > 3 and starts(contact, grasped) and ends(success) and not excessive_collisions"
        dropped = "dropped and last(dropped) > last(grasped) and not excessive_collisions"
    success = (
        Mode("straightforward_success", straight, "touched, grasped, done"),
        Mode("winding_success", winding, "it took several tries"),
        Mode("success_then_drop", dropped, "it did not stay so"),
        Mode("success_then_excessive_collisions", "otherwise" if code else "excessive_collisions"),
    )
    failure = (
        Mode("excessive_collision_failure", "excessive_collisions"),
        Mode("mobility_failure", "length == 0", "never touched the object"),
        Mode("cant_grasp_failure", "length == 1" if code else "length == 1 and contact", "touched it, never held it"),
        Mode("drop_failure", "dropped and " + ("not ends(grasped)" if code else "last(dropped) > last(grasped)")),
        Mode("too_slow_failure", "otherwise", "held it to the end"),
    )
    events = (
        Event("contact", "contact"),
        Event("grasped", "is_grasped"),
        Event("dropped", "is_grasped", "fall"),
        _SUCCESS,
        _excess("pick"),
    )
    return _made(events, success, failure, code)


def _place(code: bool) -> Labels:
    still = "" if code else " and last(obj_left_goal) <= last(obj_at_goal) and not excessive_collisions"
    over = "excessive_collisions"
    left, came = "last(obj_left_goal)", "last(obj_at_goal)"
    inside, outside, held = "last(released_at_goal)", "last(released_outside_goal)", "last(grasped)"
    by_hand = f"(length <= 2 and began(at_goal) or {inside} > {outside} and {inside} > {held})"
    by_drop = f"(length <= 2 and not began(at_goal) or {outside} > {inside} and {outside} > {held})"
    success = (
        Mode("success_then_excessive_collisions", over),
        Mode("dubious_success", f"{came} < {left}", "the object was at the goal and left it"),
        Mode("placed_in_goal_success", f"length <= 4 and (released_at_goal or began(at_goal)){still}"),
        Mode("dropped_to_goal_success", f"length <= 4 and (released_outside_goal or not began(at_goal)){still}"),
        Mode("winding_success", "otherwise" if code else f"length > 4 and {came} > {left} and not {over}"),
    )
    failure = (
        Mode("excessive_collision_failure", over),
        Mode("didnt_grasp_failure", "length == 0", "began without the object in hand, and never took it"),
        Mode("didnt_reach_goal_failure", "not obj_at_goal"),
        Mode("place_in_goal_failure", f"{by_hand} and {left} > {came}", "let go at the goal, and it left that"),
        Mode("drop_to_goal_failure", f"{by_drop} and {left} > {came}", "dropped to the goal, and it left that"),
        Mode("wont_let_go_failure", f"{held} > {inside} and {held} > {outside}", "held at the goal to the end"),
        Mode("too_slow_failure", "otherwise"),
    )
    events = (
        Event("grasped", "is_grasped"),
        Event("obj_at_goal", "at_goal"),
        Event("released_at_goal", "released_at_goal"),
        Event("released_outside_goal", "released_outside_goal"),
        Event("obj_left_goal", "at_goal", "fall"),
        _SUCCESS,
        _excess("place"),
    )
    return _made(events, success, failure, code)


def _open(code: bool) -> Labels:
    contact, opened, slightly = (
        Event("contact", "contact"),
        Event("opened", "is_open"),
        Event("slightly_opened", "is_slightly_open"),
    )
    closed, excess = Event("closed", "is_slightly_open" if code else "is_open", "fall"), _excess("open")
    success = (
        Mode("success_then_excessive_collisions", "excessive_collisions"),
        Mode("dubious_success", "last(closed) > last(opened)", "open, and closed again"),
        Mode("open_success", "otherwise" if code else "last(opened) > last(closed)"),
    )
    further = "" if code else " and last(slightly_opened) > last(closed)"
    failure = (
        Mode("excessive_collision_failure", "excessive_collisions"),
        Mode("cant_reach_articulation_failure", "not contact"),
        Mode(
            "closed_after_open_failure",
            "closed and last(closed) > last(opened) and last(closed) > last(slightly_opened)",
        ),
        Mode("slightly_open_failure", "last(slightly_opened) > last(opened)" + further, "opened too little"),
        Mode("too_slow_failure", "opened", "open, and never at rest"),
        Mode("cant_open_failure", "otherwise", "touched it, and it stayed shut"),
    )
    if code:
        return _made((contact, opened, _SUCCESS, excess, slightly, closed), success, failure, code)
    return _made((contact, opened, slightly, closed, _SUCCESS, excess), success, failure, code)


def _close(code: bool) -> Labels:
    contact, closed, slightly = (
        Event("contact", "contact"),
        Event("closed", "is_closed"),
        Event("slightly_closed", "is_slightly_closed"),
    )
    opened, excess = Event("opened", "is_slightly_closed" if code else "is_closed", "fall"), _excess("close")
    success = (
        Mode("success_then_excessive_collisions", "excessive_collisions"),
        Mode("dubious_success", "last(opened) > last(closed)", "closed, and open again"),
        Mode("closed_success", "otherwise" if code else "last(closed) > last(opened)"),
    )
    failure = (
        Mode("excessive_collision_failure", "excessive_collisions"),
        Mode("cant_reach_articulation_failure", "not contact"),
        Mode(
            "open_after_closing_failure",
            "opened and last(opened) > last(closed) and last(opened) > last(slightly_closed)",
        ),
        Mode(
            "slightly_closed_failure",
            "last(slightly_closed) > last(closed) and last(slightly_closed) > last(opened)",
            "closed too little",
        ),
        Mode("too_slow_failure", "closed", "closed, and never at rest"),
        Mode("cant_close_failure", "otherwise", "touched it, and it stayed open"),
    )
    if code:
        return _made((contact, closed, _SUCCESS, excess, slightly, opened), success, failure, code)
    return _made((contact, closed, slightly, opened, _SUCCESS, excess), success, failure, code)


def _navigate(code: bool) -> Labels:
    del code  # the paper has no labels of Navigate
    success = (
        Mode("success_then_excessive_collisions", "excessive_collisions"),
        Mode("success_then_dropped", "last(dropped) > last(success)", "arrived, and lost what it carried"),
        Mode("navigation_success", "otherwise"),
    )
    failure = (
        Mode("excessive_collision_failure", "excessive_collisions"),
        Mode("dropped_failure", "dropped", "lost what it carried"),
        Mode("navigation_failure", "otherwise", "never arrived, or never came to rest there"),
    )
    events = (Event("dropped", "is_grasped", "fall"), _SUCCESS, _excess("navigate"))
    return _made(events, success, failure, True)


def _made(events: tuple[Event, ...], success: tuple[Mode, ...], failure: tuple[Mode, ...], code: bool) -> Labels:
    """Labels, with what is left over by the paper's formulas."""
    if not code:
        left = "no formula of the paper holds"
        success = (*success, Mode("unlabelled_success", "otherwise", left))
        if failure[-1].when != "otherwise":
            failure = (*failure, Mode("unlabelled_failure", "otherwise", left))
    return Labels(events=events, success=success, failure=failure, source=_SOURCE.format("code" if code else "paper"))


_LABELS = {"pick": _pick, "place": _place, "open": _open, "close": _close, "navigate": _navigate}
