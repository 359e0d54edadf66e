"""What every batched environment can do, whether its rows share one scene or have layouts with different joints."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import gymnasium
import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.env.observe import Observation, ObservationBuilder
from manikin.env.options import AUTORESET, EnvOptions
from manikin.env.shares import Shares
from manikin.env.state import saving
from manikin.env.state.provenance import sources
from manikin.errors import ClosedError, DivergedError
from manikin.render.segmentation import SegmentationTable
from manikin.scene.handles import Part, Robot
from manikin.scene.handles.articulation import Articulation
from manikin.scene.handles.forces import force_names, forces_of
from manikin.sim.snapshot import Snapshot
from manikin.sim.world import row_numbers
from manikin.spec.budget import Budget
from manikin.spec.camera import CameraSpec

if TYPE_CHECKING:
    from manikin.env.assemble import Assembly
    from manikin.env.loop.base import Loop
    from manikin.env.state.layouts import LayoutSnapshot
    from manikin.render.rig import CameraRig
    from manikin.scene.builder import SceneBuilder
    from manikin.scene.handles.combined import CombinedRobot
    from manikin.sim.world import World
    from manikin.spec.scene import CompiledScene

__all__ = ["BatchEnv", "LayoutRows", "SceneEnv"]


@dataclass(frozen=True)
class LayoutRows:
    """Rows that an environment of one layout holds.

    Attributes:
        env: that environment, with handles, world and scene.
        rows: (n,) the numbers of the rows in it.
        places: (n,) their places among the rows that were asked for.
    """

    env: SceneEnv
    rows: np.ndarray
    places: np.ndarray


class BatchEnv(gymnasium.vector.VectorEnv, ABC):
    """N rows of a task. Tensors in, tensors out: torch, leading dimension ``num_envs``, on ``device``.

    ``manikin.make`` returns one: a :class:`manikin.Env`, or for a task with ``layouts`` a
    :class:`manikin.env.layouts.env.LayoutEnv`. Functions that take an environment take this class.

    Attributes:
        task: the task; of several layouts the first one's.
        options: as they were given.
        robot_word: names the robots.
        robots: their handles; of several layouts the first one's, which say what the robots are. :meth:`parts` gives
            the handles that read the rows.
        controller, controllers: of all robots together, and of each.
        device, device_word: of all tensors, as torch calls it and as ``make`` does.
        horizon: control steps until truncation.
        control_hz, physics_hz: rates [Hz].
        terminates: whether success or fail ends an episode.
        budget: room on a Warp device, of several layouts the largest of each number; None on the CPU, which needs none.
        h: the handles that the task's methods are given; rows with several layouts have none in common.
        observation_names: the name of every column of a flat observation; empty for the others.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}
    h: Any
    budget: Budget | None
    observation_names: list[str]
    single_action_space: gymnasium.spaces.Box

    def __init__(self, options: EnvOptions, made: Assembly) -> None:
        self.options, self.num_envs = options, options.num_envs
        self.task, self.robot_word, self.robots, self.robot = made.task, made.robot_word, made.robots, made.robots[0]
        self.controller, self.controllers, self.terminates = made.controller, made.controllers, made.terminates
        self.control_hz, self.physics_hz, self.horizon = made.control_hz, made.physics_hz, made.horizon
        self.device, self.device_word, self.vision = made.world.device, options.device, made.vision
        self.observation = Observation.of(options.observe)
        self.observe, self.reward_mode, self.render_mode = self.observation.plain, options.reward, options.render_mode
        self.autoreset = str(options.autoreset)
        self.metadata = {**self.metadata, "autoreset_mode": AUTORESET[self.autoreset], "render_fps": self.control_hz}
        size = (self.controller.card.size,)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, size, np.float32)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)
        self._on, self._cameras = made.on, made.builder.cameras
        self._closed, self._process = False, os.getpid()

    # ---- what differs between the kinds ------------------------------------------------------------------------------

    @abstractmethod
    def parts(self, rows: Any = None) -> list[LayoutRows]:
        """The rows, by default all, grouped by the environments of one layout that hold them.

        Raises:
            ClosedError: the rows have no layout before the first reset.
        """

    @abstractmethod
    def part(self, row: int) -> tuple[SceneEnv, int]:
        """The environment of one layout that holds a row, and the row's number in it; before the first reset a row of
        the first layout."""

    @abstractmethod
    def env_for(self, seed: int) -> SceneEnv:
        """The environment of one layout that plays the episodes of a seed."""

    @abstractmethod
    def gather(self, function: Callable[..., Tensor], *values: Tensor) -> Tensor:
        """(N, ...) what ``function`` gives for the environments of one layout each that hold rows: it is called with
        the environment and the ``values`` (N, ...) of its rows. Where shapes differ, the rest is zero."""

    @abstractmethod
    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: an int s gives row i the episode seed s + i; a list is taken as it is (one per row, or one per masked
                row). None goes on with the row's seed and its next episode index; the first time, a seed is drawn from
                entropy and reported in ``info["entropy"]``.
            options: ``reset_mask`` (N,) bool, numpy or torch: only these rows start; ``episode_index``: int or one per
                started row; anything else reaches ``Task.start`` as ``ep.options``.

        Returns:
            Observations of all rows and ``info``.
        """

    @abstractmethod
    def step(
        self, actions: Tensor | np.ndarray | Mapping[str, Any], *, active: Tensor | np.ndarray | None = None
    ) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Advance by one control step.

        Args:
            actions: (N, A) in [-1, 1], or of each robot its own: ``{"robot0": (N, A0), "robot1": (N, A1)}``.
            active: (N,) bool; rows outside stay exactly as they are and report reward 0. None means all.

        Returns:
            observation, reward (N,) float32, terminated (N,) bool, truncated (N,) bool, info; all owned by the caller.

        Raises:
            ActionError: actions have the wrong shape, are not finite, or a robot has none.
        """

    @abstractmethod
    def save(self, rows: Any = None) -> Snapshot | LayoutSnapshot:
        """Everything that later steps of the rows depend on, as :meth:`load` takes it."""

    @abstractmethod
    def load(self, snapshot: Any, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows where the snapshot was (as many rows, or one for all); returns observations and info of all rows.

        Raises:
            DataError: it was not saved by such an environment.
        """

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """What an episode depends on besides its seed, for JSON: task, config, robot, rates, versions, machine."""

    @property
    @abstractmethod
    def state_size(self) -> int:
        """How many numbers a row's physics state has at most."""

    @abstractmethod
    def budget_advice(self) -> str:
        """Which budget to raise to what where rows overflowed (``Health.OVERFLOW``); "" where none was too small, and
        on the CPU, which has none."""

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]
        """Of all rows. Made when it is asked for: its bounds are several times as large as the observations."""
        return gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)

    @property
    def instruction(self) -> list[str]:
        """What each row is asked to do, in words."""
        return list(self.task.instructions(self.h))

    def look(self) -> tuple[Any, dict[str, Any]]:
        """Observations and info of all rows as they are."""
        self._check_open()
        return self._seen(None)

    def on_device(self) -> AbstractContextManager[Any]:
        """A context in which new tensors are made on the environment's device, as in the methods of a task."""
        return self._on

    # ---- pictures ----------------------------------------------------------------------------------------------------

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One (H, W, 3) uint8 image of each row from the task's human camera; None without ``render_mode``."""
        self._check_open()
        return None if self.render_mode is None else tuple(self.image(row) for row in range(self.num_envs))

    def image(self, row: int = 0, *, camera: str | None = None, width: int = 512, height: int = 512) -> np.ndarray:
        """One picture (height, width, 3) uint8 of a row, from a camera of the scene (default ``human_camera``)."""
        from manikin.render import make_renderer

        model, data = self.model_data(row)
        one, at = self.part(row)
        if not all(np.isfinite(values).all() for values in one.world.places(np.array([at])).values()):
            raise DivergedError(f"rows [{row}] cannot be drawn: their state is not finite")
        width, height = arguments.positive_int("width", width), arguments.positive_int("height", height)
        default = "human_camera" if "human_camera" in self.cameras else next(iter(self.cameras), "")
        name = default if camera is None else camera
        self.camera(name)  # there is one
        if not hasattr(self, "_renderer"):
            self._renderer = make_renderer(self.options.renderer or "auto")
        return self._renderer.rgb(model, data, name, width=width, height=height)

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the scene's cameras; every layout has them."""
        return tuple(self._cameras)

    def camera(self, name: str) -> CameraSpec:
        """A camera of the scene as it was declared. Raises :class:`UnknownNameError`."""
        return self._cameras[arguments.one_of("camera", name, self._cameras)]

    def model_data(self, row: int = 0) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """A row's model, with what varies in it, and its state, for pictures; see :meth:`World.data`."""
        one, at = self.part(row)
        return one.world.data(at)

    def segmentation_of(self, row: int = 0) -> SegmentationTable:
        """What the numbers in a row's segmentation images stand for."""
        return SegmentationTable.of(self.part(row)[0].scene.model)

    def scene_xml(self, row: int = 0) -> str:
        """The scene of a row as MJCF. Meshes and pictures are named, not contained; what rows vary is as compiled.

        Raises:
            SceneError: MuJoCo cannot write this scene as text.
        """
        return self.part(row)[0]._builder.xml()

    # ---- the robots ------------------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> Shares:
        """Which numbers of actions and flat observations belong to which robot."""
        return Shares(self.robots, self.observation_names, self.controller.card.dims, self.device)

    @property
    def sources(self) -> dict[str, str]:
        """Where the shapes of each thing in the scene come from, by its name: the maker's meshes, a stand-in, ...; of a
        part that differs between rows by ``PART: CANDIDATE``. Of several layouts those of the first row."""
        return sources(self.part(0)[0].things)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the columns of ``joints``; of several robots ``ROBOT/JOINT``."""
        several = len(self.robots) > 1
        return tuple(f"{r.name}/{joint}" if several else joint for r in self.robots for joint in r.joints)

    @property
    def force_names(self) -> tuple[str, ...]:
        """Names of the columns of ``forces``: ``total``, then links, ``fingers/NAME`` for those left out of it."""
        return force_names(self.robots)

    @property
    def arm_qpos(self) -> Tensor:
        """(N, joints) of the arm [rad or m]; borrowed until the next step."""
        return self.gather(lambda one: one.driven.arm_qpos)

    @property
    def joints(self) -> Tensor:
        """(N, joints) of the robots, arms and what grippers drive [rad or m]; borrowed until the next step."""
        return self.gather(lambda one: one.driven.qpos)

    @property
    def forces(self) -> Tensor:
        """(N, 1 + links) [N] net contact force on each link of the robots in the last substep; see
        :mod:`manikin.scene.handles.forces`."""
        return self.gather(lambda one: forces_of(one.robots))

    @property
    def arm_command(self) -> Tensor:
        """(N, joints) what the arm was commanded last: positions [rad or m], of joints driven by torque that torque."""
        return self.gather(lambda one: torch.cat([r.ctrl[:, : r.arm_joints] for r in one.robots], 1))

    @property
    def tcp_poses(self) -> Tensor:
        """(N, robots, 7) of the tool centre points in the world; borrowed until the next step."""
        return self.gather(lambda one: torch.stack([robot.tcp_pose for robot in one.robots], 1))

    @property
    def elapsed(self) -> Tensor:
        """(N,) int64 control steps since each row's episode began; owned by the caller."""
        return self.gather(lambda one: torch.as_tensor(one._loop.elapsed).clone())

    def towards(self, joints: Tensor, *, within: float | None = None) -> Tensor:
        """(N, A) actions that ask for the arm's ``joints`` (N, joints) [rad or m], as far as one step can; with
        ``within`` [s] such that it is there after so long. See :meth:`Controller.towards`."""
        self._check_open()
        shape = (self.num_envs, sum(robot.arm_joints for robot in self.robots))
        goal = arguments.numbers("joints", joints, shape, self.device)
        within = None if within is None else arguments.positive("within", within)
        with torch.no_grad(), self._on:
            return self.gather(
                lambda one, to: one.controller.towards(one._loop.carry, one.driven, to, within=within), goal
            )

    def hold(self) -> Tensor:
        """(N, A) actions that ask for nothing new; gripper dimensions are 0. See :meth:`Controller.hold`."""
        with torch.no_grad(), self._on:
            return self.gather(lambda one: one.controller.hold(one._loop.carry, one.driven).clone())

    def reward_of(self, actions: Tensor) -> Tensor:
        """(N,) reward of the states that rows are in, as if these actions (N, A) had led there."""
        self._check_open()
        shape = (self.num_envs, self.controller.card.size)
        action = arguments.numbers("actions", actions, shape, self.device).clamp(-1.0, 1.0)
        with torch.no_grad(), self._on:
            return self.gather(lambda one, given: one._loop.reward(one.task.evaluate(one.h), given)[0], action)

    def watch(self, rows: Tensor | None) -> None:
        """Of which rows (N,) bool somebody looks at what the next steps observe; None for all, as at first.

        The other rows may show again what they showed before. That saves their pictures, which take most of a step's
        time, where nothing depends on them: on the CPU, with one layout, and without sensors, stacks and stages that
        remember. Elsewhere all rows are observed. It holds until it is called again.
        """

    def finished(self, said: Tensor) -> Tensor:
        """Tell the task in which rows (N,) bool a policy says that it has finished with the action that comes next;
        returns (N,) bool, in which of them the episode ends with that step. The caller ends it. See
        :meth:`manikin.Task.finished`."""
        self._check_open()
        mask = arguments.mask_on(said, self.num_envs, "said", self.device)
        with torch.no_grad(), self._on:
            return self.gather(lambda one, mine: one.task.finished(one.h, mine), mask)

    # ---- state -----------------------------------------------------------------------------------------------------

    def put(self, states: Sequence[np.ndarray], rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows into physics states, one of :meth:`physics_states` each, as if a control step had led there: the
        task's memory and the count of steps go on, the controller's memory does not. Returns as :meth:`load`.

        Raises:
            DataError: the states are not those of the rows' scenes; then no row has moved.
        """
        self._check_open()
        index = row_numbers(rows, self.num_envs, once=True)
        given = saving.checked_states(states, len(index))
        each = [(part, [given[i] for i in part.places.tolist()]) for part in self.parts(index)]
        for part, mine in each:
            saving.check_sizes(part.env._made, mine)
        with torch.no_grad(), self._on:
            for part, mine in each:
                saving.put(part.env._made, part.env._loop, mine, part.rows)
        return self._seen(index)

    def state_hash(self, rows: Any = None) -> Tensor:
        """(n,) int64: a 64-bit hash of each row's physics state, exact to the bit."""
        index = row_numbers(rows, self.num_envs)
        found = np.zeros(len(index), np.int64)
        for part in self.parts(index):
            found[part.places] = part.env.world.state_hash(part.rows).view(np.int64)
        return torch.from_numpy(found)

    def physics_states(self, rows: Any = None) -> list[np.ndarray]:
        """Of each row the full physics state, float64, exact to the bit; as long as its layout needs."""
        index = row_numbers(rows, self.num_envs)
        found: dict[int, np.ndarray] = {}
        for part in self.parts(index):
            found |= zip(part.places.tolist(), part.env.world.states(part.rows), strict=True)
        return [found[i] for i in range(len(index))]

    # ---- inside ----------------------------------------------------------------------------------------------------

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations and the renderer."""
        self._closed = True
        if self._process != os.getpid():
            return  # the parts are its maker's
        if hasattr(self, "_renderer"):
            self._renderer.close()
        self._close_parts()

    @abstractmethod
    def _seen(self, moved: np.ndarray | None) -> tuple[Any, dict[str, Any]]:
        """As :meth:`look`; the rows ``moved`` are where a step has led them."""

    @abstractmethod
    def _close_parts(self) -> None:
        """Free the simulations."""

    def _flat(self, actions: Any) -> Any:
        """The one action of all robots, also where each robot's own is given by its name."""
        if isinstance(actions, Mapping):
            return self.shares.whole(actions, self.num_envs, self.device)
        return actions

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this environment is closed")
        if self._process != os.getpid():
            raise ClosedError(
                f"this environment belongs to process {self._process} and cannot be used after a fork; make a new one "
                "in this process"
            )


class SceneEnv(BatchEnv):
    """A batched environment whose rows share one scene, as :class:`manikin.Env`.

    Attributes:
        scene: what was compiled. world: the simulations of it.
        driven: what actions move: the robot, or several as one.
        substeps: physics steps per control step.
    """

    scene: CompiledScene
    world: World
    driven: Robot | CombinedRobot
    substeps: int
    _made: Assembly
    _loop: Loop
    _builder: SceneBuilder
    _observer: ObservationBuilder

    @abstractmethod
    def save(self, rows: Any = None) -> Snapshot: ...

    @property
    def carry(self) -> Tensor:
        """(N, k) what the controller remembers, as :class:`~manikin.control.Controller` takes it: its goals, for
        example. Borrowed until the next step."""
        return self._loop.carry

    @property
    def rig(self) -> CameraRig | None:
        """What draws the cameras that are observed, and the name of the renderer that it uses; None without any."""
        return self._observer.rig

    def thing(self, name: str) -> Part:
        """The scene's part of that name. Raises :class:`UnknownNameError`."""
        parts = {part.name: part for part in self._builder.handles if isinstance(part, Part)}
        return parts[arguments.one_of("part", name, parts)]

    @property
    def things(self) -> tuple[Robot | Part | Articulation, ...]:
        """Robots, parts and what has joints of its own, in the order in which the scene declares them."""
        return tuple(one for one in self._builder.handles if isinstance(one, Robot | Part | Articulation))

    @property
    def segmentation_table(self) -> SegmentationTable:
        """What the numbers in segmentation images stand for."""
        return self.segmentation_of()
