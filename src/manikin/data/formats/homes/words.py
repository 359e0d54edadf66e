"""Generated episodes of rearrangement in Habitat's words, and the subtasks of which they consist in MS-HAB's.

Links of furniture with joints are counted from its root, which is 0, as ReplicaCAD's files have them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mujoco
import numpy as np

from manikin.data.formats.rearrange import (
    HandleFrame,
    PlannedSubtask,
    RearrangeEpisode,
    TaskPlan,
    parse_rearrange,
    pose_in_file,
)
from manikin.errors import DataError, SceneError, UnknownNameError
from manikin.homes import Apartment, Fixture, Mechanism
from manikin.homes.episodes import HomeEpisode
from manikin.homes.objects import home_objects
from manikin.tasks.home.rules import SEQUENCES

__all__ = ["check_episode", "habitat_episode", "subtask_plans"]

# Handles of ReplicaCAD's drawers and of its fridge as Habitat has them, in the frame of the link [m].
_MARKERS = {"kitchen_counter": (0.3, 0.0, 0.0), "fridge": (0.1, -0.62, 0.2)}
_FOLDER = "data/replica_cad"
_SUFFIX = ".scene_instance.json"


def habitat_episode(episode: HomeEpisode, home: Apartment) -> RearrangeEpisode:
    """An episode in Habitat's words.

    Args:
        episode: what lies where.
        home: its apartment.

    Raises:
        UnknownNameError: it names a receptacle that the apartment does not have.
    """
    handles, foreign = episode.handles, not episode.scene.startswith("apartment")
    markers = []
    for one in home.mechanisms:
        for joint in one.joints if one.kind in ("counter", *_MARKERS) else ():
            if one.model.site(f"handle/{joint}") is None:
                continue
            frame = _handle_frame(one, joint)
            link = one.model.bodies[1 + frame.link].name
            params = {"offset": list(frame.offset), "link": link, "object": _in_file(one.name)}
            markers.append({"name": f"{joint}_push_point", "type": "articulated_object", "params": params})
    states: dict[str, dict[str, float]] = {}
    for mechanism, positions in episode.joints.items():
        links = {joint: _link_of(_thing(home, _in_file(mechanism)), joint) for joint in positions}
        states[_in_file(mechanism)] = {str(links[joint]): value for joint, value in positions.items()}
    raw = {
        "episode_id": str(episode.number),
        "scene_id": f"{_FOLDER}/configs/scenes/{episode.scene}{_SUFFIX}" if foreign else f"{episode.scene}{_SUFFIX}",
        "scene_dataset_config": f"{_FOLDER}/replicaCAD.scene_dataset_config.json" if foreign else "default",
        "additional_obj_config_paths": ["data/objects/ycb/configs/"],
        "start_position": [0, 0, 0],
        "start_rotation": [0, 0, 0, 1],
        "info": {"object_labels": {handles[one.object]: f"any_targets|{k}" for k, one in enumerate(episode.targets)}},
        "ao_states": states,
        "rigid_objs": [[f"{one.name}.object_config.json", pose_in_file(_matrix(one.pose))] for one in episode.objects],
        "targets": {handles[one.object]: pose_in_file(_matrix(one.goal)) for one in episode.targets},
        "markers": markers,
        "target_receptacles": [_owner(home, episode.objects[one.object].receptacle) for one in episode.targets],
        "goal_receptacles": [_owner(home, one.receptacle) for one in episode.targets],
        "name_to_receptacle": {
            name: f"{_owner(home, one.receptacle)[0]}|{one.receptacle.rpartition('/')[2]}"
            for name, one in zip(handles, episode.objects, strict=True)
        },
    }
    return parse_rearrange(raw, f"episode {episode.number} of {episode.task}")


def check_episode(episode: RearrangeEpisode, home: Apartment) -> None:
    """Refuse an episode that does not fit an apartment.

    Raises:
        UnknownNameError: it names an object or a piece of furniture that is not there; lists what is.
        SceneError: a goal is outside of the apartment.
    """
    home_objects(tuple(episode.copies))
    for handle, link in (*episode.start_receptacles, *episode.goal_receptacles):
        thing = _thing(home, handle)
        if isinstance(thing, Mechanism) and (link is None or not 0 <= link < len(thing.model.bodies) - 1):
            names = [f"{k} ({body.name})" for k, body in enumerate(thing.model.bodies[1:])]
            raise UnknownNameError(f"link of {handle}", str(link), names)
    for handle, positions in episode.joints.items():
        thing = _thing(home, handle)
        for number in positions:
            _joint_at(thing, number)
    for name, pose in episode.goals.items():
        if not (np.array(home.low) < pose[:2, 3]).all() or not (pose[:2, 3] < np.array(home.high)).all():
            x, y, z = pose[:3, 3]
            raise SceneError(
                f"the goal of {name} at ({x:.2f}, {y:.2f}, {z:.2f}) m is outside of {home.name}, which goes from "
                f"{home.low} to {home.high} m"
            )


def subtask_plans(
    task: str,
    split: str,
    episodes: Sequence[RearrangeEpisode],
    home_of: Callable[[str], Apartment],
) -> dict[str, list[TaskPlan]]:
    """The plans of a long task: by subtask one for every time it occurs, and under ``sequential`` the whole task.

    As in MS-HAB, Navigate of a whole task has no goal of its own: it is that of the subtask after it.

    Args:
        task: name of a long task.
        split: ``train`` or ``val``.
        episodes: in order.
        home_of: the apartment of a scene's name.

    Raises:
        UnknownNameError: an episode names what its apartment does not have.
        DataError: an episode has another number of targets than the task.
    """
    home_of, order = functools.lru_cache(maxsize=4)(home_of), SEQUENCES[task]
    out: dict[str, list[TaskPlan]] = {"sequential": []}
    for n, episode in enumerate(episodes):
        if len(episode.goals) != order.count("pick"):
            raise DataError(
                f"episode {episode.number} has {len(episode.goals)} targets; {task} has {order.count('pick')}"
            )
        home = home_of(episode.scene)
        check_episode(episode, home)
        names = (f"{episode.scene}{_SUFFIX}", f"{split}/{task}/episode_{episode.number}.json")
        of_target = [_of_target(episode, home, k) for k in range(len(episode.goals))]
        previous = None
        for found in of_target:
            start, goal = found["pick"].goal, found["place"].goal
            found["navigate"] = PlannedSubtask(kind="navigate", uid="", goal=start, previous_goal=previous)
            back = PlannedSubtask(kind="navigate", uid="", obj=found["pick"].obj, goal=goal, previous_goal=start)
            previous = goal
            for kind, one in (*found.items(), ("navigate", back)):
                if kind in order:
                    plans = out.setdefault(kind, [])
                    plans.append(TaskPlan(*names, (_named(one, f"{task}-{kind}-{split}-{len(plans)}-0"),)))
        sequence, counts = [], dict.fromkeys(order, 0)
        for k, kind in enumerate(order):
            one = PlannedSubtask(kind="navigate", uid="") if kind == "navigate" else of_target[counts[kind]][kind]
            counts[kind] += 1
            sequence.append(_named(one, f"{task}-sequential-{split}-{n}-{k}", keep=False))
        out["sequential"].append(TaskPlan(*names, tuple(sequence)))
    return out


def _named(subtask: PlannedSubtask, uid: str, *, keep: bool = True) -> PlannedSubtask:
    """With its uid; in a whole task nothing is put away."""
    changes: dict[str, Any] = {"uid": uid, "uids": (uid,)}
    if subtask.kind == "pick":
        changes["goal"] = None
    return PlannedSubtask(**{**vars(subtask), **changes, **({} if keep else {"remove": None})})


def _of_target(episode: RearrangeEpisode, home: Apartment, k: int) -> dict[str, PlannedSubtask]:
    """The subtasks of one target but Navigate. Pick has as goal where the object lies."""
    name = list(episode.goals)[k]
    stem, _, count = name.partition("_:")
    obj, goal = f"{stem}-{int(count)}", _place(episode.goals[name])
    starts, ends = (_opened_by(home, *of[k]) for of in (episode.start_receptacles, episode.goal_receptacles))
    found = {
        "pick": PlannedSubtask(kind="pick", uid="", obj=obj, goal=_place(episode.placed(name)), handle=starts),
        "place": PlannedSubtask(
            kind="place",
            uid="",
            obj=obj,
            goal=goal,
            corners=_corners(home, episode.goal_receptacles[k], np.array(goal)),
            handle=ends,
        ),
    }
    if starts is not None:
        found["open"] = PlannedSubtask(kind="open", uid="", obj=obj, handle=starts)
        remove = obj if starts.kind == "kitchen_counter" else None
        found["close"] = PlannedSubtask(kind="close", uid="", handle=starts, remove=remove)
    return found


def _opened_by(home: Apartment, handle: str, link: int | None) -> HandleFrame | None:
    """The drawer or door that gives way to a receptacle; None where there is none."""
    thing = _thing(home, handle)
    if not isinstance(thing, Mechanism) or link is None:
        return None
    if thing.kind == "fridge":
        return _handle_frame(thing, next(joint for joint in thing.joints if joint.startswith("top_door")))
    joints = thing.model.bodies[1 + link].joints
    return _handle_frame(thing, joints[0].name) if joints else None


def _corners(home: Apartment, of: tuple[str, int | None], goal: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """(4, 3) [m] the lower face of that receptacle of a thing's link in or over which a goal is."""
    thing = _thing(home, of[0])
    link = thing.model.bodies[1 + (of[1] or 0)].name if isinstance(thing, Mechanism) else ""
    best: tuple[float, np.ndarray] = (np.inf, np.zeros((4, 3)))
    for one in thing.receptacles:
        if one.link != link:
            continue
        middle, turn = home.middle(one.name), np.empty(9)
        mujoco.mju_quat2Mat(turn, middle[3:])
        frame, half = turn.reshape(3, 3), np.array(one.half)
        beyond = np.maximum(np.abs(frame.T @ (goal - middle[:3])) - half, 0.0)
        signs = np.array([(1, 1, -1), (-1, 1, -1), (-1, -1, -1), (1, -1, -1)], float)
        if np.linalg.norm(beyond) < best[0]:
            best = float(np.linalg.norm(beyond)), middle[:3] + (signs * half) @ frame.T
    return tuple(tuple(round(float(v), 6) for v in corner) for corner in best[1])


def _owner(home: Apartment, receptacle: str) -> list[Any]:
    """Name in a file of what a receptacle belongs to, and the number of its link; None of what has no joints."""
    thing, box = home.receptacle(receptacle)
    if isinstance(thing, Fixture):
        return [_in_file(thing.name), None]
    return [_in_file(thing.name), [body.name for body in thing.model.bodies[1:]].index(box.link)]


def _in_file(name: str) -> str:
    """``fridge_:0000``: ReplicaCAD's things have numbers, built-in ones are alone of their name."""
    stem, _, count = name.partition(":")
    return f"{stem}_:{count or '0000'}"


def _thing(home: Apartment, handle: str) -> Fixture | Mechanism:
    """The furniture of a name in a file."""
    all_things: tuple[Fixture | Mechanism, ...] = (*home.fixtures, *home.mechanisms)
    things = {_in_file(one.name): one for one in all_things}
    if handle not in things:
        raise UnknownNameError(f"furniture of {home.name}", handle, things)
    return things[handle]


def _link_of(thing: Fixture | Mechanism, joint: str) -> int:
    """The number of the link that a joint moves."""
    bodies = thing.model.bodies[1:] if isinstance(thing, Mechanism) else []
    return next(k for k, body in enumerate(bodies) if any(one.name == joint for one in body.joints))


def _joint_at(thing: Fixture | Mechanism, link: int) -> str:
    """The joint that moves a link."""
    moved = {_link_of(thing, joint): joint for joint in thing.joints} if isinstance(thing, Mechanism) else {}
    if link not in moved:
        raise UnknownNameError(f"link of {thing.name} that moves", str(link), [str(k) for k in moved])
    return moved[link]


def _handle_frame(thing: Mechanism, joint: str) -> HandleFrame:
    stem, _, count = thing.name.partition(":")
    link = _link_of(thing, joint)
    x, y, z = _MARKERS[thing.kind] if count else map(float, thing.model.site(f"handle/{joint}").pos)
    return HandleFrame(
        kind="kitchen_counter" if thing.kind == "counter" else thing.kind,
        name=f"{stem}-{int(count or 0)}",
        link=link,
        joint=thing.joints.index(joint),
        offset=(round(x, 6), round(y, 6), round(z, 6)),
    )


def _matrix(pose: Iterable[float]) -> np.ndarray:
    out, turn, values = np.eye(4), np.empty(9), np.array(list(pose))
    mujoco.mju_quat2Mat(turn, values[3:] / np.linalg.norm(values[3:]))
    out[:3, :3], out[:3, 3] = turn.reshape(3, 3), values[:3]
    return out


def _place(pose: np.ndarray) -> tuple[float, ...]:
    return tuple(round(float(v), 6) for v in pose[:3, 3])
