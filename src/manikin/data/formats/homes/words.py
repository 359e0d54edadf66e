"""Generated episodes of rearrangement in Habitat's words, and the subtasks of which they consist in MS-HAB's.

Links of furniture with joints are counted from its root, which is 0, as ReplicaCAD's files have them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mujoco
import numpy as np

from manikin.data.formats.homes.check import check_episode
from manikin.data.formats.homes.names import furniture, in_file, link_of
from manikin.data.formats.rearrange import (
    HandleFrame,
    PlannedSubtask,
    RearrangeEpisode,
    TaskPlan,
    parse_rearrange,
    pose_in_file,
)
from manikin.errors import DataError, UnknownNameError
from manikin.homes import Apartment, Fixture, Mechanism
from manikin.homes.episodes import HomeEpisode
from manikin.tasks.home.rules import SEQUENCES

__all__ = ["habitat_episode", "subtask_plans"]

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
            params = {"offset": list(frame.offset), "link": link, "object": in_file(one.name)}
            markers.append({"name": f"{joint}_push_point", "type": "articulated_object", "params": params})
    states: dict[str, dict[str, float]] = {}
    for mechanism, positions in episode.joints.items():
        links = {joint: link_of(furniture(home, in_file(mechanism)), joint) for joint in positions}
        states[in_file(mechanism)] = {str(links[joint]): value for joint, value in positions.items()}
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
        UnknownNameError: no such task.
        DataError: an episode has another number of targets than the task, or does not say in which receptacles they
            and their goals are.
        See also :func:`check_episode`.
    """
    if task not in SEQUENCES:
        raise UnknownNameError("long task", task, SEQUENCES)
    order = SEQUENCES[task]
    out: dict[str, list[TaskPlan]] = {"sequential": []}
    for n, (episode, of_target) in enumerate(zip(episodes, _of_targets(task, episodes, home_of), strict=True)):
        names = (f"{episode.scene}{_SUFFIX}", f"{split}/{task}/episode_{episode.number}.json")
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


def _of_targets(
    task: str, episodes: Sequence[RearrangeEpisode], home_of: Callable[[str], Apartment]
) -> list[list[dict[str, PlannedSubtask]]]:
    """The subtasks of each target of each episode, worked out apartment by apartment: its map takes longest."""
    count, home_of = SEQUENCES[task].count("pick"), functools.lru_cache(maxsize=1)(home_of)
    found: dict[int, list[dict[str, PlannedSubtask]]] = {}
    for n in sorted(range(len(episodes)), key=lambda n: (episodes[n].scene, n)):
        episode = episodes[n]
        if len(episode.goals) != count:
            raise DataError(f"episode {episode.number} has {len(episode.goals)} targets; {task} has {count}")
        sides = {"target_receptacles": episode.start_receptacles, "goal_receptacles": episode.goal_receptacles}
        for key, side in sides.items():
            if not side:
                raise DataError(f"episode {episode.number} lacks {key}, of which plans are made")
        home = home_of(episode.scene)
        check_episode(episode, home)
        found[n] = [_of_target(episode, home, k) for k in range(count)]
        for name, subtasks in zip(episode.goals, found[n], strict=True):
            if "open" in SEQUENCES[task] and "open" not in subtasks:
                raise DataError(f"episode {episode.number}: {name} lies in nothing that opens, and {task} opens it")
    return [found[n] for n in range(len(episodes))]


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
    thing = furniture(home, handle)
    if not isinstance(thing, Mechanism) or link is None:
        return None
    if thing.kind == "fridge":
        return _handle_frame(thing, next(joint for joint in thing.joints if joint.startswith("top_door")))
    joints = thing.model.bodies[1 + link].joints
    return _handle_frame(thing, joints[0].name) if joints else None


def _corners(home: Apartment, of: tuple[str, int | None], goal: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """(4, 3) [m] the lower face of that receptacle of a thing's link in or over which a goal is."""
    thing = furniture(home, of[0])
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
        return [in_file(thing.name), None]
    return [in_file(thing.name), [body.name for body in thing.model.bodies[1:]].index(box.link)]


def _handle_frame(thing: Mechanism, joint: str) -> HandleFrame:
    stem, _, count = thing.name.partition(":")
    link, site = link_of(thing, joint), thing.model.site(f"handle/{joint}")
    if site is None or (count and thing.kind not in _MARKERS):
        raise DataError(f"{joint} of {thing.name} has no handle, of which plans are made")
    x, y, z = _MARKERS[thing.kind] if count else map(float, site.pos)
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
