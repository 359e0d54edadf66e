"""Playing demonstrations of robosuite and ManiSkill on manikin's task of the same name: state after state, or their
actions.

States are exact: positions and velocities are set, nothing is simulated. Actions are simulated by another model of the
same robot: its inertia, its gripper's gains and its contacts are not those of the recording, so what they do parts from
what was recorded. How far is what :func:`play_actions` reports.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.data.collect import initial_state
from manikin.data.formats.convert import Export
from manikin.data.formats.demos import Demo, Demos
from manikin.data.formats.importers import StateImporter, importer_for
from manikin.data.formats.lerobot import LeRobotExport
from manikin.data.formats.maniskill import ManiSkillExport
from manikin.data.formats.robomimic import RobomimicWriter
from manikin.data.recording.format import Header, RecordedEpisode, flatten, parted
from manikin.env.arrays import to_numpy
from manikin.errors import DataError, UnknownNameError
from manikin.moved import old_names

__all__ = ["Divergence", "PlaybackResult", "play_actions", "play_states", "played_episodes", "write_seen"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PlaybackResult:
    """What manikin's task sees in the T states of a demonstration.

    Attributes:
        name: of the demonstration.
        tcp, thing: (T, 3) [m] places of the tool centre point and of the main object in manikin's world.
        success: (T,) bool by manikin's rule.
        rewards: (T,) by manikin's rule, for an action that asks for nothing.
        observations: name -> (T, ...).
        columns: what the numbers of a flat observation are.
        base_offset: [m] by how much manikin's robot stands elsewhere.
        states: (T, D) float64, MuJoCo's, of manikin's scene.
        initial: what manikin's scene is made of besides, as in a recording.
    """

    name: str
    tcp: np.ndarray
    thing: np.ndarray
    success: np.ndarray
    rewards: np.ndarray
    observations: Mapping[str, np.ndarray]
    columns: list[str]
    base_offset: np.ndarray
    states: np.ndarray
    initial: Mapping[str, np.ndarray]

    @property
    def success_at_end(self) -> bool:
        return bool(self.success[-1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Divergence:
    """How the recorded actions come out here.

    Attributes:
        name: of the demonstration.
        tcp, thing: (T,) [m] distance of the tool centre point and of the main object from where they were recorded,
            after t actions.
        success: (T,) bool by manikin's rule, after t actions.
    """

    name: str
    tcp: np.ndarray
    thing: np.ndarray
    success: np.ndarray


def play_states(
    demos: Demos,
    *,
    names: Iterable[str] | None = None,
    observe: str = "state_dict",
    num_envs: int = 16,
    **options: Any,
) -> Iterator[PlaybackResult]:
    """Set the recorded states one by one on manikin's task, observe it, and ask whether it succeeded.

    Args:
        demos: the file.
        names: of the demonstrations; None for all.
        observe: what to observe: ``state_dict``, ``rgb``, ``rgb+state``, ...
        num_envs: states side by side; never changes the result.
        **options: of ``manikin.make`` (cameras, looks).

    Raises:
        DataError: manikin has no such task, or the states cannot be understood; says why.
    """
    stage = importer_for(demos, num_envs, observe=observe, **options)
    still = torch.zeros(num_envs, stage.env.controller.card.size)
    try:
        for name in demos.lengths if names is None else names:
            demo = demos[name]
            states = stage.mapped(demo)
            stage.prepare([demo])
            pieces: list[dict[str, np.ndarray]] = []
            length, every = len(states.q), np.arange(num_envs)
            initial: dict[str, np.ndarray] = {}
            for start in range(0, length, num_envs):
                rows = np.minimum(np.arange(start, start + num_envs), length - 1)
                observation, info = stage.put([states.rows(int(row)) for row in rows])
                tcp, thing = stage.places()
                leaves = {"tcp": tcp, "thing": thing, "success": info["success"], "rewards": stage.env.reward_of(still)}
                leaves["states"] = np.stack(stage.env.physics_states(every))
                initial = initial or initial_state(stage.env.save(every[:1]))[0]
                leaves |= {f"seen/{key}": value for key, value in flatten(observation).items()}
                pieces.append({key: to_numpy(value)[: length - start].copy() for key, value in leaves.items()})
            whole = {key: np.concatenate([piece[key] for piece in pieces]) for key in pieces[0]}
            seen = {key.removeprefix("seen/"): value for key, value in whole.items() if key.startswith("seen/")}
            yield PlaybackResult(
                name=name,
                tcp=whole["tcp"],
                thing=whole["thing"],
                success=whole["success"].astype(bool),
                rewards=whole["rewards"],
                observations=seen,
                columns=list(stage.env.observation_names),
                base_offset=states.base,
                states=whole["states"],
                initial=initial,
            )
    finally:
        stage.env.close()


def played_episodes(
    demos: Demos, *, observe: str = "state", **options: Any
) -> tuple[dict[str, Any], list[RecordedEpisode]]:
    """The demonstrations as if manikin had recorded them, state by state, with the controller of their actions: the
    fingerprint of the environment, and an episode each.

    A file without a state after the last action (robosuite's) has its last observation twice.

    Args:
        demos: the file.
        observe: what to observe.
        **options: of ``manikin.make``.

    Raises:
        DataError: as :func:`play_states`, or the controller of the actions is unknown.
    """
    stage = importer_for(demos, 1, acting=True, observe=observe, **options)
    try:
        acting = {**options, "control": stage.env.options.control}
        seen = play_states(demos, observe=observe, **acting)
        episodes = [_episode(number, demos[one.name], one, stage) for number, one in enumerate(seen)]
        return stage.env.fingerprint(), episodes
    finally:
        stage.env.close()


def play_actions(
    demos: Demos, seen: Sequence[PlaybackResult], *, on_step: Callable[[], None] | None = None, **options: Any
) -> list[Divergence]:
    """Start from each demonstration's first state, take its actions, and compare with its states.

    Args:
        demos: the file.
        seen: the states of the demonstrations to play, of :func:`play_states`.
        on_step: called after each control step of all of them.
        **options: of ``manikin.make``; the controller is the recording's unless ``control`` is given.

    Raises:
        DataError: as :func:`play_states`, or the recording's controller or size of action is none of manikin's.
    """
    if not seen:
        return []
    played = [demos[one.name] for one in seen]
    steps = [len(one.tcp) - 1 for one in seen]  # robosuite's last action has no state after it
    stage = importer_for(demos, len(played), acting=True, terminate=False, horizon=max(1, *steps), **options)
    env = stage.env
    try:
        size = env.controller.card.size
        for demo in played:
            if demo.actions.shape[1] != size:
                raise DataError(f"{demos.path}, {demo.name}: {demo.actions.shape[1]} numbers per action, not {size}")
        taken = [stage.actions(demo).astype(np.float32) for demo in played]
        stage.prepare(played)
        starts = [stage.mapped(demo).rows(0) for demo in played]
        _, info = stage.put(starts)
        places, success = [stage.places()], [to_numpy(info["success"]).copy()]
        for t in range(max(steps)):
            actions = np.stack([one[min(t, len(one) - 1)] for one in taken])
            active = np.array([t < count for count in steps])
            _, _, _, _, info = env.step(torch.from_numpy(actions), active=torch.from_numpy(active))
            places.append(stage.places())
            success.append(to_numpy(info["success"]).copy())
            if on_step is not None:
                on_step()
    finally:
        env.close()

    def distance(which: int, row: int, there: np.ndarray) -> np.ndarray:
        here = np.stack([place[which][row] for place in places[: len(there)]])
        return np.linalg.norm(here.astype(np.float64) - there, axis=1)

    return [
        Divergence(
            name=one.name,
            tcp=distance(0, row, one.tcp),
            thing=distance(1, row, one.thing),
            success=np.array([value[row] for value in success[: len(one.tcp)]], bool),
        )
        for row, one in enumerate(seen)
    ]


def write_seen(
    demos: Demos, seen: Iterable[PlaybackResult], path: str | Path, *, to: str = "robomimic", **options: Any
) -> Path:
    """Write a file with what manikin observes in the states of demonstrations.

    robosuite's last action has no state after it, so the last observation and its success stand for it.

    Args:
        demos: the file.
        seen: its states, of :func:`play_states`.
        path: the new file or folder.
        to: ``robomimic``: states, model and actions are the demonstrations', rewards are 1 where manikin's task
            succeeds in the state after the action. ``maniskill``: states are manikin's, rewards manikin's for an action
            that asks for nothing; actions are in the numbers of ManiSkill's controller where there is one. ``lerobot``:
            a LeRobotDataset, a folder, with the numbers of manikin's controller and the same rewards.
        **options: of ``manikin.make``.

    Raises:
        DataError: the file exists, nothing is to be written, or the controller of the actions is unknown.
        UnknownNameError: another ``to``.
    """
    if to not in _WRITERS:
        raise UnknownNameError("layout", to, _WRITERS)
    _WRITERS[to](demos, seen, Path(path), options)
    return Path(path)


def _write_robomimic(demos: Demos, seen: Iterable[PlaybackResult], path: Path, options: Mapping[str, Any]) -> None:
    kwargs = dict(demos.env_kwargs)
    writer = RobomimicWriter(
        path, {"env_name": demos.env, "env_version": demos.version, "type": 1, "env_kwargs": kwargs}
    )
    try:
        for place, one in enumerate(_by_name(demos, seen)):
            demo = demos[one.name]
            last = np.minimum(np.arange(len(demo) + 1), len(one.success) - 1)
            writer.write(
                place,
                actions=demo.actions,
                states=demo.states,
                rewards=one.success[last[1:]],
                dones=np.arange(len(demo)) == len(demo) - 1,
                observations={key: value[last] for key, value in one.observations.items()},
                model_file=demo.model_file,
                attributes={"source": one.name},
            )
    except BaseException:
        writer.abandon()
        raise
    writer.close()


def _write_maniskill(demos: Demos, seen: Iterable[PlaybackResult], path: Path, options: Mapping[str, Any]) -> None:
    _write_episodes(demos, seen, lambda header, env: ManiSkillExport(path, header, env), options)


def _write_lerobot(demos: Demos, seen: Iterable[PlaybackResult], path: Path, options: Mapping[str, Any]) -> None:
    source, new = {"file": demos.path.name, "how": "states"}, not path.exists()
    try:
        _write_episodes(
            demos,
            _by_name(demos, seen),
            lambda header, env: LeRobotExport(path, header, source=source, columns=tuple),
            options,
        )
    except BaseException:  # nothing goes on with it
        if new:
            shutil.rmtree(path, ignore_errors=True)
        raise


def _by_name(demos: Demos, seen: Iterable[PlaybackResult]) -> Iterator[PlaybackResult]:
    """The same with flat observations taken apart."""
    return (replace(one, observations=parted(one.observations, one.columns.copy, demos.env)) for one in seen)


def _write_episodes(
    demos: Demos, seen: Iterable[PlaybackResult], export: Callable[[Header, Any], Export], options: Mapping[str, Any]
) -> None:
    stage = importer_for(demos, 1, acting=True, **options)
    try:
        header = Header(fingerprint=stage.env.fingerprint(), policy=f"demonstrations of {demos.env}")
        writer = export(header, stage.env)
        try:
            for number, one in enumerate(seen):
                writer.write(_episode(number, demos[one.name], one, stage), number)
        except BaseException:
            writer.abandon()
            raise
        writer.close()
    finally:
        stage.env.close()


def _episode(number: int, demo: Demo, one: PlaybackResult, stage: StateImporter[Any]) -> RecordedEpisode:
    """A demonstration as if manikin had recorded it."""
    length = len(demo)
    last = np.minimum(np.arange(length + 1), len(one.success) - 1)
    success, end = one.success[last[1:]], np.arange(length) == length - 1
    return RecordedEpisode(
        number=number,
        seed=stage.seed(demo),
        actions=stage.actions(demo).astype(np.float32).clip(-1.0, 1.0),  # as the controller takes them
        rewards=one.rewards[last[1:]],
        terminated=end & success,
        truncated=end & ~success,
        success=success,
        fail=np.zeros(length, bool),
        state_hash=np.zeros(length + 1, np.int64),
        states=one.states[last],
        observations={key: value[last] for key, value in one.observations.items()},
        initial=one.initial,
        instruction=stage.env.env_for(stage.seed(demo)).task.instruction,
    )


_WRITERS = {"robomimic": _write_robomimic, "maniskill": _write_maniskill, "lerobot": _write_lerobot}


__getattr__ = old_names(__name__)
