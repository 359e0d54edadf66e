"""Playing robosuite's demonstrations on manikin's task of the same name: state after state, or their actions.

States are exact: positions and velocities are set, nothing is simulated. Actions are simulated by another model of the
same robot: its inertia, its gripper's gains and its contacts are not those of the recording, so what they do parts from
what was recorded. How far is what :func:`play_actions` reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.data.demonstrations import Demo, Demos, Model, control_of
from manikin.data.format import flatten, to_numpy
from manikin.data.robomimic import RobomimicWriter
from manikin.errors import DataError

__all__ = ["TWINS", "Divergence", "Seen", "Twin", "play_actions", "play_states", "write_seen"]


@dataclass(frozen=True, kw_only=True)
class Twin:
    """manikin's task of an environment of robosuite's.

    Attributes:
        task: its id.
        origin: body or site of the recording's model that is manikin's origin.
        joints: free joint of the recording -> manikin's object.
        sizes: geom of the recording -> manikin's object of that size.
        main: the object whose divergence is reported.
        robots: names of the recording's robot -> manikin's.
    """

    task: str
    origin: str
    joints: Mapping[str, str]
    sizes: Mapping[str, str]
    main: str
    robots: Mapping[str, str]


TWINS = {
    "Lift": Twin(
        task="Lift-v1",
        origin="table_top",
        joints={"cube_joint0": "cube"},
        sizes={"cube_g0": "cube"},
        main="cube",
        robots={"Panda": "panda"},
    )
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What manikin's task sees in the states of a demonstration of T steps.

    Attributes:
        name: of the demonstration.
        tcp, thing: (T, 3) [m] places of the tool centre point and of the main object in manikin's world.
        success: (T,) bool by manikin's rule.
        observations: name -> (T, ...).
        base_offset: [m] by how much manikin's robot stands elsewhere.
    """

    name: str
    tcp: np.ndarray
    thing: np.ndarray
    success: np.ndarray
    observations: Mapping[str, np.ndarray]
    base_offset: np.ndarray

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


def twin_of(demos: Demos) -> tuple[Twin, str]:
    """Manikin's task for a file, and its robot.

    Raises:
        DataError: manikin plays no demonstrations of this environment or robot.
    """
    if demos.env not in TWINS:
        raise DataError(f"demonstrations of {demos.env} can be listed, not played; played are: {', '.join(TWINS)}")
    twin, robots = TWINS[demos.env], demos.env_kwargs.get("robots", "Panda")
    robot = robots[0] if isinstance(robots, list) and len(robots) == 1 else robots
    if robot not in twin.robots:
        raise DataError(f"demonstrations by {robots} cannot be played on {twin.task}; only by {', '.join(twin.robots)}")
    return twin, twin.robots[robot]


class _Stage:
    """An environment into which states of demonstrations are put."""

    def __init__(self, demos: Demos, num_envs: int, **options: Any) -> None:
        from manikin.env.registry import make

        self.twin, robot = twin_of(demos)
        self.where = str(demos.path)
        self.env = make(self.twin.task, num_envs, **{"robot": robot, "autoreset": "disabled", **options})
        self.env.reset(seed=0)
        model, one = self.env.world.scene.model, self.env.robot
        names = [one.prefix + name for name in one.model.joints]
        self._robot = [(int(model.joint(n).qposadr[0]), int(model.joint(n).dofadr[0])) for n in names]
        self._arm = len(one.arm.joints)
        self._things = {}
        for name in self.twin.joints.values():
            joint = int(model.body(name).jntadr[0])
            self._things[name] = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        self._nq = model.nq

    def model(self, demo: Demo) -> Model:
        """The recording's model, checked against its states."""
        where = f"{self.where}, {demo.name}"
        if demo.states is None:
            raise DataError(f"{where}: no states were recorded")
        model = Model.of(demo.model_file, where)
        if demo.states.ndim != 2 or demo.states.shape[1] != 1 + model.nq + model.nv:
            raise DataError(
                f"{where}: states have shape {demo.states.shape}; its model needs (T, {1 + model.nq + model.nv}): "
                f"time, {model.nq} positions, {model.nv} velocities"
            )
        return model

    def mapped(self, demo: Demo) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(T, nq), (T, nv) of this environment, and by how much its robot stands elsewhere (3,)."""
        theirs, env, where = self.model(demo), self.env, f"{self.where}, {demo.name}"
        assert demo.states is not None
        q_then, v_then = np.split(demo.states[:, 1:], [theirs.nq], axis=1)
        length, model = len(demo.states), env.world.scene.model
        q, v = np.zeros((length, model.nq)), np.zeros((length, model.nv))
        arm = [at for name, at in theirs.joints.items() if name.startswith("robot0_")]
        fingers = [at for name, at in theirs.joints.items() if name.startswith("gripper0_")]
        if len(arm) != self._arm or len(arm) + len(fingers) != len(self._robot):
            raise DataError(
                f"{where}: {len(arm)} arm joints and {len(fingers)} of the gripper; {env.robot.arm.name} has "
                f"{self._arm} and {len(self._robot) - self._arm}"
            )
        for (q_to, v_to), (q_from, v_from) in zip(self._robot, arm + fingers, strict=True):
            # robosuite's fingers open in opposite directions of one axis, manikin's each in its own
            sign = np.where(q_then[:, q_from] < 0, -1.0, 1.0) if (q_from, v_from) in fingers else 1.0
            q[:, q_to], v[:, v_to] = sign * q_then[:, q_from], sign * v_then[:, v_from]
        for place in (self.twin.origin, "robot0_base"):
            if place not in theirs.places:
                raise DataError(f"{where}: its model has no {place!r}, so it is not known where things stand")
        origin = theirs.places[self.twin.origin]
        for joint, thing in self.twin.joints.items():
            if joint not in theirs.joints:
                raise DataError(f"{where}: its model has no joint {joint!r}; it has {', '.join(theirs.joints)}")
            (q_from, v_from), (q_to, v_to) = theirs.joints[joint], self._things[thing]
            q[:, q_to : q_to + 7], v[:, v_to : v_to + 6] = (
                q_then[:, q_from : q_from + 7],
                v_then[:, v_from : v_from + 6],
            )
            q[:, q_to : q_to + 3] -= origin
        base = env.robot.base_pose[:3].cpu().numpy() - (theirs.places["robot0_base"] - origin)
        return q, v, base

    def resize(self, demos: Sequence[Demo]) -> None:
        """Give the rows' objects the sizes of these demonstrations, one each or one for all."""
        models = [self.model(demo) for demo in demos]
        for geom, thing in self.twin.sizes.items():
            if any(geom not in model.sizes for model in models):
                raise DataError(f"{self.where}: a model has no geom {geom!r}")
            sizes = torch.tensor(np.array([model.sizes[geom] for model in models]), dtype=torch.float32)
            getattr(self.env.h, thing).set_size(sizes.expand(self.env.num_envs, -1))

    def put(self, q: np.ndarray, v: np.ndarray) -> tuple[Any, Mapping[str, Any]]:
        """Put every row into a state, controllers at rest there; observation and info."""
        snapshot = self.env.save()
        snapshot.state[:, 1 : 1 + self._nq] = q
        snapshot.state[:, 1 + self._nq : 1 + self._nq + v.shape[1]] = v
        self.env.load(snapshot)
        snapshot = self.env.save()
        snapshot.extra["carry"] = to_numpy(self.env.controller.start(self.env.driven))
        observation, info = self.env.load(snapshot)
        return observation, info

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, 3) of the tool centre point and of the main object, copies."""
        thing = getattr(self.env.h, self.twin.main)
        return to_numpy(self.env.robot.tcp_pos).copy(), to_numpy(thing.pos).copy()


def play_states(
    demos: Demos,
    *,
    names: Iterable[str] | None = None,
    observe: str = "state_dict",
    num_envs: int = 16,
    **options: Any,
) -> Iterator[Seen]:
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
    stage = _Stage(demos, num_envs, observe=observe, **options)
    try:
        for name in demos.lengths if names is None else names:
            demo = demos[name]
            q, v, base = stage.mapped(demo)
            stage.resize([demo])
            pieces: list[dict[str, np.ndarray]] = []
            for start in range(0, len(q), num_envs):
                rows = np.minimum(np.arange(start, start + num_envs), len(q) - 1)
                observation, info = stage.put(q[rows], v[rows])
                tcp, thing = stage.places()
                leaves = {"tcp": tcp, "thing": thing, "success": info["success"]}
                leaves |= {f"seen/{key}": value for key, value in flatten(observation).items()}
                pieces.append({key: to_numpy(value)[: len(q) - start].copy() for key, value in leaves.items()})
            whole = {key: np.concatenate([piece[key] for piece in pieces]) for key in pieces[0]}
            seen = {key.removeprefix("seen/"): value for key, value in whole.items() if key.startswith("seen/")}
            yield Seen(
                name=name,
                tcp=whole["tcp"],
                thing=whole["thing"],
                success=whole["success"].astype(bool),
                observations=seen,
                base_offset=base,
            )
    finally:
        stage.env.close()


def play_actions(
    demos: Demos, seen: Sequence[Seen], *, on_step: Callable[[], None] | None = None, **options: Any
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
    control = options.pop("control", None) or control_of(demos.env_kwargs)
    longest = max(len(demo) for demo in played)
    stage = _Stage(demos, len(played), control=control, terminate=False, horizon=longest, **options)
    env = stage.env
    try:
        size = env.controller.card.size
        for demo in played:
            if demo.actions.shape[1] != size:
                raise DataError(f"{demos.path}, {demo.name}: {demo.actions.shape[1]} numbers per action, not {size}")
        stage.resize(played)
        starts = [stage.mapped(demo) for demo in played]
        _, info = stage.put(np.stack([q[0] for q, _, _ in starts]), np.stack([v[0] for _, v, _ in starts]))
        places, success = [stage.places()], [to_numpy(info["success"]).copy()]
        for t in range(longest - 1):
            actions = np.stack([demo.actions[min(t, len(demo) - 1)] for demo in played]).astype(np.float32)
            actions[:, -1] *= -1  # robosuite closes with +1, manikin opens
            active = np.array([t < len(demo) - 1 for demo in played])
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


def write_seen(demos: Demos, seen: Iterable[Seen], path: str | Path) -> Path:
    """Write a robomimic file with what manikin observes in the states of demonstrations.

    Rewards are 1 where manikin's task succeeds in the state after the action. The last action has no state after it, so
    the last observation and its success stand for it.

    Raises:
        DataError: the file exists, or nothing is to be written.
    """
    kwargs = dict(demos.env_kwargs)
    writer = RobomimicWriter(
        path, {"env_name": demos.env, "env_version": demos.version, "type": 1, "env_kwargs": kwargs}
    )
    try:
        for one in seen:
            demo = demos[one.name]
            last = np.minimum(np.arange(len(demo) + 1), len(demo) - 1)
            writer.write(
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
    return Path(path)
