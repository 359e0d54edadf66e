"""Putting recorded states into manikin's environments: robosuite's, ManiSkill's, and exports of manikin's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import mujoco
import numpy as np
import torch

from manikin.arenas.two_bins import FROM
from manikin.data.formats.demonstrations import Model, control_of
from manikin.data.formats.demos import Demo, Demos
from manikin.data.formats.maniskill import COUNTERPARTS, ROBOTS, columns, from_actor
from manikin.data.formats.maniskill_actions import MODES, mode_named
from manikin.data.formats.trajectories import ManiSkillDemos, peg_sizes
from manikin.data.replay.environment import OF_TASK, make_env
from manikin.env.arrays import to_numpy
from manikin.errors import ConfigError, DataError
from manikin.moved import old_names
from manikin.tasks.tabletop.peg_insertion_side import PegInsertionSide

if TYPE_CHECKING:
    from manikin.env.env import Env
    from manikin.env.interface import BatchEnv

__all__ = [
    "TASK_MAPPINGS",
    "ManiSkillImporter",
    "Mapped",
    "RecordingImporter",
    "RobosuiteImporter",
    "StateImporter",
    "TaskMapping",
    "importer_for",
]

EnvT = TypeVar("EnvT", bound="BatchEnv")


@dataclass(frozen=True, kw_only=True)
class TaskMapping:
    """manikin's task of an environment of robosuite's.

    Attributes:
        task: its id.
        things: free joint of the recording -> manikin's object, which has its origin at the same spot; divergence is
            reported of the first.
        origin: body or site of the recording's model, and where that stands in manikin's world [m].
        sizes: geom of the recording -> manikin's object that takes its size.
        robots: names of the recording's robot -> manikin's.
    """

    task: str
    things: Mapping[str, str]
    origin: tuple[str, tuple[float, float, float]] = ("table_top", (0.0, 0.0, 0.0))
    sizes: Mapping[str, str] = field(default_factory=dict)
    robots: Mapping[str, str] = field(default_factory=lambda: {"Panda": "panda"})


def _mappings(task: str, version: str, kinds: Mapping[str, str], suffix: str, **more: Any) -> dict[str, TaskMapping]:
    """Of a task with all of its things, and of its forms with one: the others then lie far away."""
    things = {f"{name}{suffix}_joint0": ours for name, ours in kinds.items()}
    alone = {f"{task}{name}": {joint: things[joint]} for name, joint in zip(kinds, things, strict=True)}
    return {
        name: TaskMapping(task=f"{name}{version}", things=those, **more)
        for name, those in {task: things, **alone}.items()
    }


TASK_MAPPINGS = {
    "Lift": TaskMapping(task="Lift-v2", things={"cube_joint0": "cube"}, sizes={"cube_g0": "cube"}),
    "Stack": TaskMapping(task="Stack-v2", things={"cubeA_joint0": "red", "cubeB_joint0": "green"}),
    **_mappings("NutAssembly", "-v3", {"Square": "square", "Round": "round"}, "Nut"),
    **_mappings(
        "PickPlace",
        "-v2",
        {"Milk": "milk", "Bread": "bread", "Cereal": "cereal", "Can": "can"},
        "",
        origin=("bin1", (*FROM, 0.0)),
    ),
}


def mapping_of(demos: Demos) -> tuple[TaskMapping, str]:
    """Manikin's task for a file, and its robot.

    Raises:
        DataError: manikin plays no demonstrations of this environment or robot.
    """
    if demos.env not in TASK_MAPPINGS:
        raise DataError(
            f"cannot play demonstrations of {demos.env!r}, only list them; playable: {', '.join(TASK_MAPPINGS)}"
        )
    mapping, robots = TASK_MAPPINGS[demos.env], demos.env_kwargs.get("robots", "Panda")
    robot = robots[0] if isinstance(robots, list) and len(robots) == 1 else robots
    if robot not in mapping.robots:
        raise DataError(
            f"cannot play demonstrations of robot {robots!r} on {mapping.task}; playable: {', '.join(mapping.robots)}"
        )
    return mapping, mapping.robots[robot]


class Mapped(NamedTuple):
    """States (T, nq), (T, nv) of manikin's environment, what its actuators are told (T, nu) where that is known, and by
    how much its robot stands elsewhere (3,) [m]."""

    q: np.ndarray
    v: np.ndarray
    ctrl: np.ndarray | None
    base: np.ndarray

    def rows(self, index: Any) -> Mapped:
        """Some of the states."""
        return Mapped(self.q[index], self.v[index], None if self.ctrl is None else self.ctrl[index], self.base)


class StateImporter(Generic[EnvT]):
    """An environment into which states of demonstrations are put. What they mean is what those below know.

    Args:
        demos: the file.
        env: the environment; it has been reset.
    """

    def __init__(self, demos: Demos, env: EnvT) -> None:
        self.where, self.env = str(demos.path), env

    def prepare(self, demos: Sequence[Demo]) -> None:
        """Give the rows' scenes what is fixed in these demonstrations, one each or one for all."""
        raise NotImplementedError

    def mapped(self, demo: Demo) -> Mapped:
        """The demonstration's states here."""
        raise NotImplementedError

    def actions(self, demo: Demo) -> np.ndarray:
        """The demonstration's actions (T, A) in the numbers of the environment's controller."""
        raise NotImplementedError

    def seed(self, demo: Demo) -> int:
        """The episode's seed, 0 where there is none."""
        return int(demo.attributes.get("episode_seed", 0))

    @classmethod
    def control(cls, demos: Demos) -> Any:
        """The controller that understands a file's actions. Raises :class:`DataError` when there is none."""
        raise NotImplementedError

    def main(self, one: Env) -> str:
        """The body whose place is told, in the scene of an environment of one layout."""
        raise NotImplementedError

    def put(self, to: Sequence[Mapped]) -> tuple[Any, Mapping[str, Any]]:
        """Put each row into a state of its own, controllers at rest there; observation and info."""
        snapshot = self.env.save()
        for part, (_, piece) in zip(self.env.parts(), snapshot.pieces, strict=True):
            given = [to[place] for place in part.places.tolist()]
            for column, values in (("QPOS", [one.q for one in given]), ("QVEL", [one.v for one in given])):
                piece.state[:, columns(part.env.scene.model, column)] = np.stack(values)
            if told := [one.ctrl for one in given if one.ctrl is not None]:
                piece.state[:, columns(part.env.scene.model, "CTRL")] = np.stack(told)
            piece.state[:, columns(part.env.scene.model, "WARMSTART")] = 0.0  # nothing of the row's state before
        self.env.load(snapshot)
        for part in self.env.parts():
            part.env.world.forward()  # the forces that load has served again are those of the state before
        snapshot = self.env.save()
        for part, (_, piece) in zip(self.env.parts(), snapshot.pieces, strict=True):
            piece.extra["carry"] = to_numpy(part.env.controller.start(part.env.driven))[part.rows]
        observation, info = self.env.load(snapshot)
        return observation, info

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, 3) of the first robot's tool centre point and of the main object, copies."""

        def thing(one: Env) -> torch.Tensor:
            return one.world.read("xpos")[:, one.scene.model.body(self.main(one)).id]

        tools = self.env.gather(lambda one: one.robot.tcp_pos)
        return to_numpy(tools).copy(), to_numpy(self.env.gather(thing)).copy()


class _NamedStage(StateImporter["Env"]):
    """Of recordings whose states are found by the names of joints and bodies; one scene for all rows.

    Args:
        main: the object whose place is told.
    """

    def __init__(self, demos: Demos, env: Env, main: str) -> None:
        env.reset(seed=0)
        super().__init__(demos, env)
        self._main = main
        model, one = env.scene.model, env.robot
        names = [one.prefix + name for name in one.model.joints]
        self._robot = [(int(model.joint(n).qposadr[0]), int(model.joint(n).dofadr[0])) for n in names]
        self._arm = len(one.arm.joints)

    def main(self, one: Env) -> str:
        return self._main

    def free(self, name: str) -> tuple[int, int] | None:
        """Where a free body's pose and velocity begin in qpos and qvel; None where it has none."""
        model = self.env.scene.model
        joint = int(model.body(name).jntadr[0])
        return None if joint < 0 else (int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]))


class RobosuiteImporter(_NamedStage):
    """States of robosuite, by the names in the demonstration's own model."""

    def __init__(self, demos: Demos, num_envs: int, **options: Any) -> None:
        self.mapping, robot = mapping_of(demos)
        main = next(iter(self.mapping.things.values()))
        super().__init__(demos, _made(self.mapping.task, robot, num_envs, options), main)

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

    def mapped(self, demo: Demo) -> Mapped:
        theirs, env, where = self.model(demo), self.env, f"{self.where}, {demo.name}"
        assert demo.states is not None
        q_then, v_then = np.split(demo.states[:, 1:], [theirs.nq], axis=1)
        length, model = len(demo.states), env.world.scene.model
        q, v = np.zeros((length, model.nq)), np.zeros((length, model.nv))
        arm = [at for name, at in theirs.joints.items() if name.startswith("robot0_")]
        fingers = [at for name, at in theirs.joints.items() if name.startswith("gripper0_")]
        if len(arm) != self._arm or len(arm) + len(fingers) != len(self._robot):
            raise DataError(
                f"{where}: the recording has {len(arm)} arm joints and {len(fingers)} gripper joints, but "
                f"{env.robot.arm.name} has {self._arm} and {len(self._robot) - self._arm}; choose the recorded robot"
            )
        for (q_to, v_to), (q_from, v_from) in zip(self._robot, arm + fingers, strict=True):
            # robosuite's fingers open in opposite directions of one axis, manikin's each in its own
            sign = np.where(q_then[:, q_from] < 0, -1.0, 1.0) if (q_from, v_from) in fingers else 1.0
            q[:, q_to], v[:, v_to] = sign * q_then[:, q_from], sign * v_then[:, v_from]
        spot, there = self.mapping.origin
        for place in (spot, "robot0_base"):
            if place not in theirs.places:
                raise DataError(f"{where}: its model has no body or site {place!r}, from which positions are measured")
        origin = theirs.places[spot] - there
        for joint, thing in self.mapping.things.items():
            if joint not in theirs.joints:
                raise DataError(f"{where}: its model has no joint {joint!r}; it has {', '.join(theirs.joints)}")
            to = self.free(thing)
            assert to is not None
            (q_from, v_from), (q_to, v_to) = theirs.joints[joint], to
            q[:, q_to : q_to + 7], v[:, v_to : v_to + 6] = (
                q_then[:, q_from : q_from + 7],
                v_then[:, v_from : v_from + 6],
            )
            q[:, q_to : q_to + 3] -= origin
        base = env.robot.base_pose[:3].cpu().numpy() - (theirs.places["robot0_base"] - origin)
        return Mapped(q, v, None, base)

    @classmethod
    def control(cls, demos: Demos) -> Any:
        return control_of(demos.env_kwargs)

    def actions(self, demo: Demo) -> np.ndarray:
        actions = demo.actions.copy()
        actions[:, -1:] *= -1  # robosuite closes with +1, manikin opens
        return actions

    def prepare(self, demos: Sequence[Demo]) -> None:
        models = [self.model(demo) for demo in demos]
        for geom, thing in self.mapping.sizes.items():
            if any(geom not in model.sizes for model in models):
                raise DataError(f"{self.where}: a model has no geom {geom!r}")
            sizes = torch.tensor(np.array([model.sizes[geom] for model in models]), dtype=torch.float32)
            getattr(self.env.h, thing).set_size(sizes.expand(self.env.num_envs, -1))


class ManiSkillImporter(_NamedStage):
    """States of ManiSkill, by the names of its actors; see ``maniskill.COUNTERPARTS``."""

    def __init__(self, demos: Demos, num_envs: int, **options: Any) -> None:
        if demos.env not in COUNTERPARTS:
            raise DataError(
                f"cannot play trajectories of {demos.env!r}, only list them; playable: {', '.join(COUNTERPARTS)}"
            )
        self._parts = COUNTERPARTS[demos.env].parts
        if len(demos.robots) != 1 or demos.robots[0] not in ROBOTS:
            raise DataError(
                f"cannot play trajectories of robot {', '.join(demos.robots)!r}; playable: {', '.join(ROBOTS)}"
            )
        self._named = demos.robots[0]
        env = _made(COUNTERPARTS[demos.env].task, ROBOTS[self._named], num_envs, options)
        super().__init__(demos, env, COUNTERPARTS[demos.env].main)
        self._centre = self.env.world.scene.model.body_ipos

    @classmethod
    def control(cls, demos: Demos) -> Any:
        return mode_named(demos.controller, str(demos.path))

    def actions(self, demo: Demo) -> np.ndarray:
        mode = MODES[mode_named(demo.attributes.get("control_mode", ""), f"{self.where}, {demo.name}")]
        return mode.ours(demo.actions, self.env)

    def _part(self, demo: Demo, kind: str, name: str, width: int) -> np.ndarray:
        """(T + 1, width) states of an actor or articulation."""
        where, key = f"{self.where}, {demo.name}", f"{kind}/{name}"
        if key not in demo.parts:
            raise DataError(
                f"{where}: the recording has no states of {key!r}; it has: {', '.join(demo.parts) or 'none'}"
            )
        if demo.parts[key].ndim != 2 or demo.parts[key].shape[1] != width:
            raise DataError(f"{where}: states of {key} have shape {demo.parts[key].shape}, not (T + 1, {width})")
        return demo.parts[key].astype(np.float64)

    def _body(self, demo: Demo, part: str) -> tuple[np.ndarray, np.ndarray]:
        """Pose (T + 1, 7) and velocity (T + 1, 6) of manikin's part."""
        at = self._parts[part]
        return from_actor(
            self._part(demo, "actors", at.name, 13), self._centre[self.env.world.scene.model.body(part).id], at
        )

    def prepare(self, demos: Sequence[Demo]) -> None:
        """Markers, and what stands fast, where they are in the first state."""
        h, n = self.env.h, self.env.num_envs
        for part in self._parts:
            if self.free(part) is None:
                pose = torch.tensor(np.array([self._body(demo, part)[0][0] for demo in demos]), dtype=torch.float32)
                pose = pose.expand(n, 7)
                if part == "goal_marker":
                    h.goal.set(pose[:, :3])
                    h.marker.set_pose(pose[:, :3])
                elif isinstance(self.env.task, PegInsertionSide):
                    centre = self._shape(self.env.task, demos)
                    self.env.task.stand(h, pose[:, :3], pose[:, 3:], centre)
                else:
                    getattr(h, part).set_pose(pose[:, :3], pose[:, 3:])

    def _shape(self, task: PegInsertionSide, demos: Sequence[Demo]) -> torch.Tensor:
        """Give peg and box their sizes; where the hole is (n, 2). They are not in the states."""
        sizes = np.array([peg_sizes(demo, f"{self.where}, {demo.name}") for demo in demos], np.float32)
        for demo, (length, width, *_) in zip(demos, sizes.tolist(), strict=True):
            rests = self._body(demo, "peg")[0][0, 2], self._body(demo, "box")[0][0, 2]
            if max(abs(rests[0] - width), abs(rests[1] - length)) > 1e-3:
                raise DataError(
                    f"{self.where}, {demo.name}: peg and box lie {rests[0]:.4f} and {rests[1]:.4f} m high, but seed "
                    f"{demo.attributes.get('episode_seed')} gives {width:.4f} and {length:.4f} m. Sizes follow from "
                    "the seed only in recordings of one environment on a CPU"
                )
        rows = torch.from_numpy(sizes).expand(self.env.num_envs, 4)
        task.shape(self.env.h, rows[:, 0], rows[:, 1], rows[:, 2:])
        return rows[:, 2:]

    def mapped(self, demo: Demo) -> Mapped:
        model, n = self.env.world.scene.model, len(self._robot)
        robot = self._part(demo, "articulations", self._named, 13 + 2 * n)
        q, v = np.zeros((len(robot), model.nq)), np.zeros((len(robot), model.nv))
        for j, (q_to, v_to) in enumerate(self._robot):
            q[:, q_to], v[:, v_to] = robot[:, 13 + j], robot[:, 13 + n + j]
        for part in self._parts:
            pose, velocity = self._body(demo, part)
            if (to := self.free(part)) is not None:
                q[:, to[0] : to[0] + 7], v[:, to[1] : to[1] + 6] = pose, velocity
            elif np.abs(pose - pose[:1]).max() > 1e-3:
                raise DataError(
                    f"{self.where}, {demo.name}: {self._parts[part].name} moves in the recording, but {part!r} is "
                    f"fixed in {self.env.task.id}"
                )
        base = self.env.robot.base_pose[:3].cpu().numpy() - robot[0, :3]
        return Mapped(q, v, self._commands(demo, q), base)

    def _commands(self, demo: Demo, q: np.ndarray) -> np.ndarray:
        """What position servos were told: the arm to stay, the fingers what the action says, or nothing would be held.

        The gripper's number is the last of every controller of ManiSkill's Panda, -1 closed and +1 open, as here.
        """
        model, robot = self.env.world.scene.model, self.env.robot
        asked = 0.5 + 0.5 * demo.actions[:, -1].clip(-1.0, 1.0)
        ends = zip(robot.gripper.drivers, robot.gripper.open_q, robot.gripper.closed_q, strict=True)
        fingers = {robot.prefix + name: shut + asked * (opened - shut) for name, opened, shut in ends}
        ctrl = np.zeros((len(q), model.nu))
        for a in range(model.nu):
            joint = model.joint(int(model.actuator_trnid[a, 0]))
            ctrl[:, a] = q[:, int(joint.qposadr[0])]
            if joint.name in fingers:
                ctrl[1:, a] = fingers[joint.name]
        return ctrl


class RecordingImporter(StateImporter["BatchEnv"]):
    """States of manikin's own recordings, exported as robomimic's. What is no state (sizes, goals, the layout) follows
    from the episode's seed."""

    def __init__(self, demos: Demos, num_envs: int, **options: Any) -> None:
        super().__init__(demos, make_env(demos.env_kwargs, num_envs, **options))

    def main(self, one: Env) -> str:
        model, prefixes = one.scene.model, tuple(robot.prefix for robot in one.robots)
        moves = [model.body(b).name for b in range(1, model.nbody) if model.body_jntnum[b]]
        things = [name for name in moves if not name.startswith(prefixes)]
        return str((things or moves)[0])

    def actions(self, demo: Demo) -> np.ndarray:
        return demo.actions

    def seed(self, demo: Demo) -> int:
        return int(demo.attributes.get("seed", 0))

    def _states(self, demo: Demo) -> tuple[np.ndarray, mujoco.MjModel]:
        """(T, D) its states, and the model of its scene."""
        where, one = f"{self.where}, {demo.name}", self.env.env_for(self.seed(demo))
        if demo.states is None:
            raise DataError(f"{where}: no states were recorded")
        states = demo.states if demo.final_state is None else np.vstack([demo.states, demo.final_state])
        if states.ndim != 2 or states.shape[1] != one.state_size:
            raise DataError(
                f"{where}: a state has {states.shape[1:]} numbers, but {self.env.task.id} needs {one.state_size} here; "
                "was it recorded with another robot or version?"
            )
        return states, one.scene.model

    def prepare(self, demos: Sequence[Demo]) -> None:
        keys = [(self.seed(demo), int(demo.attributes.get("index", 0))) for demo in demos]
        seeds, index = zip(*(keys * self.env.num_envs)[: self.env.num_envs], strict=True)
        self.env.reset(seed=list(seeds), options={"episode_index": torch.tensor(index)})
        for demo, here in zip(demos, self.env.physics_states(np.arange(len(demos))), strict=True):
            states, model = self._states(demo)
            at = columns(model, "QPOS")
            if np.abs(states[0][at] - here[at]).max() > 1e-4:
                raise DataError(
                    f"{self.where}, {demo.name}: its first state differs from the start of seed {self.seed(demo)} "
                    "here. It was recorded with reset options or by another version, and cannot be played"
                )

    def mapped(self, demo: Demo) -> Mapped:
        states, model = self._states(demo)
        q, v, ctrl = (states[:, columns(model, name)] for name in ("QPOS", "QVEL", "CTRL"))
        return Mapped(q, v, ctrl, np.zeros(3))


def _made(task: str, robot: str, num_envs: int, options: Mapping[str, Any]) -> Env:
    from manikin.env.env import Env
    from manikin.env.registry import task_class

    return Env(task_class(task), num_envs=num_envs, **{"robot": robot, "autoreset": "disabled", **options})


def importer_for(demos: Demos, num_envs: int, *, acting: bool = False, **options: Any) -> StateImporter[Any]:
    """The stage for a file; if ``acting``, with the controller of its actions unless ``control`` is among the options.

    Raises:
        DataError: manikin plays nothing of this environment or robot, or has no such controller.
    """
    if isinstance(demos, ManiSkillDemos):
        kind: type[Any] = ManiSkillImporter
    else:
        kind = RecordingImporter if "model_hash" in demos.env_kwargs else RobosuiteImporter
    if kind is not RecordingImporter and (said := [name for name in OF_TASK if name in options]):
        raise ConfigError(
            f"{' and '.join(said)}: only valid for recordings that manikin exported, and {demos.path} is from another "
            "project; leave it out"
        )
    if acting and "control" not in options and kind is not RecordingImporter:
        options["control"] = kind.control(demos)
    return kind(demos, num_envs, **options)


__getattr__ = old_names(__name__)
