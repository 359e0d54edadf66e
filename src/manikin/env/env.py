"""The batched environment: a Task and a controller on N rows of a World, spoken to through Gymnasium."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from manikin.control import Chain, Controller, IkSolver, Reading, controller, side_by_side, torque_joints
from manikin.env import arguments, state
from manikin.env.loop import Loop
from manikin.env.loop_device import DeviceLoop
from manikin.env.loop_rows import RowLoop
from manikin.env.observe import Observer, Vision, parse, space_of
from manikin.env.provenance import fingerprint
from manikin.env.task import Task
from manikin.errors import ClosedError, ConfigError, DivergedError, UnknownNameError
from manikin.render.segmentation import SegmentationTable
from manikin.scene.builder import SceneBuilder
from manikin.scene.forces import force_names, forces_of
from manikin.scene.handles import Robot, View
from manikin.scene.looks import Dresser, Looks
from manikin.scene.team import Team
from manikin.sense.imperfect import Imperfection, SensorSuite
from manikin.sim import make_world, on_device, torch_device
from manikin.sim.cpu import CpuWorld
from manikin.sim.snapshot import Snapshot
from manikin.sim.world import row_numbers
from manikin.spec.budget import Budget, advice
from manikin.spec.camera import CameraSpec
from manikin.spec.control import Control, Whole, controls_word, parse_controls

__all__ = ["AUTORESET", "REWARD", "Env"]

AUTORESET = {
    "same_step": AutoresetMode.SAME_STEP,
    "next_step": AutoresetMode.NEXT_STEP,
    "disabled": AutoresetMode.DISABLED,
}
REWARD = ("normalized_dense", "dense", "sparse", "none")
_HEAVY = 2**25  # [bytes] of a compiled scene: scanned objects, robots with many meshes


class Env(gymnasium.vector.VectorEnv):
    """N rows of a task. Tensors in, tensors out: torch, leading dimension ``num_envs``, on ``device``.

    Args:
        task: a Task class or instance.
        num_envs: rows.
        robot: a robot word (``panda``, ``panda:menagerie``, ``ur5e+panda_hand``); default the task's first. A task for
            several robots takes a word for each, as a tuple or joined by commas, or the word of a team: ``baxter``.
        control: controller, a word like ``osc_pose`` or ``osc_pose:frame=tcp``; default the task's. For several robots
            one for all, or one each: ``("osc_pose", "joint_pos")``, ``"osc_pose & joint_pos"``.
        observe: ``state`` (one flat tensor), ``policy`` (flat, without privileged state), ``state_dict``, or what
            cameras give: ``rgb``, ``depth``, ``segmentation``, ``normals``, ``pointcloud``, ``voxel`` joined by ``+``.
        sensors: noise, delay, dropout and rate by path in the observation: ``{"policy/qpos": [Noise(0.01)]}``.
        vision: which cameras, renderer, cloud and grid; see :class:`Vision`. ``sensors``, ``vision`` and ``looks`` may
            also be as a fingerprint describes them.
        reward: ``normalized_dense`` (dense / its declared maximum), ``dense``, ``sparse`` (success - fail) or ``none``.
        autoreset: ``same_step`` (with ``final_obs`` and ``final_info``), ``next_step`` or ``disabled``.
        device: ``cpu``; ``cuda`` or ``cuda:1`` for a GPU; ``warp:cpu`` for the GPU path's kernels on the processor,
            slow, for tests.
        budget: room for contacts and constraints on a Warp device; None finds it by playing the task for a few
            seconds on the CPU, once, and keeps it on disk. The CPU needs none.
        deterministic: on a Warp device, the same bits in every run, at a price; the CPU always gives them.
        graphs: on a GPU, record the control step as CUDA graphs; False runs it call by call, to debug.
        physics_hz, control_hz: default the task's; control_hz must divide physics_hz.
        horizon: control steps until truncation; default the task's time.
        terminate: whether success or fail ends an episode; default the task's.
        config: overrides of the task's Config, a mapping or an instance.
        looks: how rows differ in looks, and in looks alone; see :class:`manikin.spec.looks.Looks`.
        out_of_range: what to do with actions beyond [-1, 1]: ``clip`` (counted in ``info["clipped"]``) or ``refuse``.
        threads: physics threads, 0 for all cores; never changes results.
        render_mode: ``rgb_array`` or None.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        task: type[Task] | Task,
        *,
        num_envs: int = 1,
        robot: str | Sequence[str] | None = None,
        control: str | Control | Whole | Sequence[str | Control | Whole] | None = None,
        observe: str = "state",
        reward: str = "normalized_dense",
        autoreset: str | AutoresetMode = "same_step",
        device: str = "cpu",
        budget: Budget | None = None,
        deterministic: bool = False,
        graphs: bool = True,
        physics_hz: float | None = None,
        control_hz: float | None = None,
        horizon: int | None = None,
        max_episode_steps: int | None = None,
        terminate: bool | None = None,
        config: Any = None,
        looks: Looks | None = None,
        vision: Vision | None = None,
        sensors: Mapping[str, Sequence[Imperfection]] | None = None,
        out_of_range: str = "clip",
        threads: int = 0,
        render_mode: str | None = None,
        poison: bool = False,
    ) -> None:
        self.robot_word, chosen = arguments.robots(task, robot)
        if isinstance(task, type):
            task = task(config, arm=",".join(one.arm.name for one in chosen))
        self.task = task
        self.num_envs = arguments.positive_int("num_envs", num_envs)
        parse(observe)
        arguments.one_of("reward mode", reward, REWARD)
        arguments.one_of("out_of_range", out_of_range, ("clip", "refuse"))
        self._on = on_device(torch_device(device))
        room = arguments.room(budget)
        self.budget = room if device != "cpu" else None
        self._deterministic, graphs = arguments.flag("deterministic", deterministic), arguments.flag("graphs", graphs)
        arguments.one_of("render mode", str(render_mode), ("None", "rgb_array"))
        if isinstance(autoreset, AutoresetMode):
            autoreset = next(word for word, mode in AUTORESET.items() if mode is autoreset)
        arguments.one_of("autoreset mode", autoreset, AUTORESET)
        self.observe, self.reward_mode, self.autoreset = observe, reward, autoreset
        self.out_of_range, self.render_mode = out_of_range, render_mode
        self.metadata = {**self.metadata, "autoreset_mode": AUTORESET[autoreset]}
        self.control_hz = float(task.control_hz if control_hz is None else control_hz)
        physics = arguments.physics_at(task.physics, physics_hz)
        self.physics_hz = float(physics.hz)
        self.substeps = arguments.substeps(self.physics_hz, self.control_hz)
        self.metadata["render_fps"] = self.control_hz
        horizon = max_episode_steps if horizon is None else horizon
        horizon = round(task.horizon_s * self.control_hz) if horizon is None else horizon
        self.horizon = arguments.positive_int("horizon (control steps)", horizon)
        self.terminates = task.terminate if terminate is None else arguments.flag("terminate", terminate)

        controls = parse_controls(task.control if control is None else control, len(chosen))
        torque = [torque_joints(word, one.arm) for word, one in zip(controls, chosen, strict=True)]
        builder = SceneBuilder(chosen, physics, torque)
        with self._on:
            declared = task.scene(builder)
        self.h: Any = declared if not isinstance(declared, Mapping) else SimpleNamespace(**declared)
        self.vision = Vision.of(vision)
        self.vision.declare(builder)
        self.looks, self._dresser = looks, Dresser(looks, builder)
        self.scene = builder.compile()
        if self.scene.model.nbuffer > _HEAVY:
            gc.collect()  # environments that are gone are in cycles; those with meshes hold hundreds of megabytes
        self._builder, self._scope = builder, builder.scope
        if len(builder.robot_handles) != task.robot_count:
            declared = len(builder.robot_handles) or "no"
            raise ConfigError(
                f"{task.id}: scene() declares {declared} robots instead of {task.robot_count}; call b.robot() for "
                "each, or change robot_count"
            )
        self.robots: tuple[Robot, ...] = tuple(builder.robot_handles)
        self.robot: Robot = self.robots[0]
        if not hasattr(self.h, "n"):
            self.h = View(self.h, self._scope)
        if self.budget is None and device != "cpu":
            from manikin.env.budget import task_budget  # which plays an environment

            rates = {"control_hz": self.control_hz, "physics_hz": self.physics_hz}
            self.budget = task_budget(task, self.scene, robot=self.robot_word, control=controls_word(controls), **rates)
        warp: dict[str, Any] = {"budget": self.budget, "deterministic": self._deterministic}
        self.world = make_world(self.scene, self.num_envs, device=device, threads=threads, poison=poison, **warp)
        self.device_word = device
        self.device = self.world.device
        with self._on:
            builder.bind(self.world)
            chains = [Chain(one.arm, one.gripper, self.device) for one in self.robots]
            for one, chain in zip(self.robots, chains, strict=True):
                one.solver = IkSolver(chain)
            self.driven: Robot | Team = self.robot  # what actions move
            self.controller: Controller
            if len(self.robots) == 1:
                self.controller = controller(controls[0], self.robot, chains[0], self.control_hz)
                self.controllers: tuple[Controller, ...] = (self.controller,)  # of each robot
            else:
                self.driven = Team(self.robots)
                self.controller = both = side_by_side(controls, self.robots, chains, self.control_hz)
                self.controllers = tuple(part.controller for part in both.parts)
        self._chain = chains[0]

        self._closed = False
        with torch.no_grad(), self._on:
            for handle in builder.robot_handles:
                handle.set_qpos(handle.keyframe())
            self.world.set_home()
            self.world.forward()
            self._loop: Loop = RowLoop(self) if isinstance(self.world, CpuWorld) else DeviceLoop(self, graphs=graphs)
            rig = self.vision.rig(parse(observe), self.world, builder.cameras)
            self.sensors = SensorSuite(sensors, control_hz=self.control_hz) if sensors else None
            self._observer = Observer(
                observe,
                task,
                self.h,
                self.robots,
                vision=self.vision,
                rig=rig,
                rng=self._loop.rng,
                sensors=self.sensors,
                masks=isinstance(self._loop, DeviceLoop),
            )
            self._loop.begin(self._observer)
            self.observation_names = self._observer.names
            self.single_observation_space = space_of(self._observer())
        size = (self.controller.card.size,)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, size, np.float32)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]
        """Of all rows. Made when it is asked for: its bounds are several times as large as the observations."""
        return gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)

    @property
    def instruction(self) -> list[str]:
        """What each row is asked to do, in words."""
        return [self.task.instruction] * self.num_envs

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
        self._check_open()
        options = dict(options or {})
        mask = arguments.mask(options.pop("reset_mask", None), self.num_envs)
        index = options.pop("episode_index", None)
        with torch.no_grad(), self._on:
            return self._loop.reset(mask, seed, index, options)

    def step(
        self, actions: Tensor | np.ndarray, *, active: Tensor | np.ndarray | None = None
    ) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Advance by one control step.

        Args:
            actions: (N, A) in [-1, 1].
            active: (N,) bool; rows outside stay exactly as they are and report reward 0. None means all.

        Returns:
            observation, reward (N,) float32, terminated (N,) bool, truncated (N,) bool, info; all owned by the caller.
        """
        self._check_open()
        with torch.no_grad(), self._on:
            return self._loop.step(actions, active)

    @property
    def segmentation_table(self) -> SegmentationTable:
        """What the numbers in segmentation images stand for."""
        return SegmentationTable.of(self.scene.model)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One (H, W, 3) uint8 image of each row from the task's human camera; None without ``render_mode``."""
        if self.render_mode is None:
            return None
        return tuple(self.image(row) for row in range(self.num_envs))

    def image(self, row: int = 0, *, camera: str | None = None, width: int = 512, height: int = 512) -> np.ndarray:
        """One picture (height, width, 3) uint8 of a row, from a camera of the scene (default ``human_camera``)."""
        from manikin.render import make_renderer

        model, data = self.model_data(row)
        if not all(np.isfinite(values).all() for values in self.world.places(np.array([row])).values()):
            raise DivergedError(f"rows [{row}] cannot be drawn: their state is not finite")
        cameras = self.cameras
        name = camera or ("human_camera" if "human_camera" in cameras else next(iter(cameras), ""))
        self.camera(name)  # there is one
        if not hasattr(self, "_renderer"):
            self._renderer = make_renderer()
        return self._renderer.rgb(model, data, name, width=width, height=height)

    @property
    def buckets(self) -> tuple[Env, ...]:
        """The environments of one layout each that this one is made of: itself; see ``BucketEnv``."""
        return (self,)

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the scene's cameras."""
        return tuple(self._builder.cameras)

    def camera(self, name: str) -> CameraSpec:
        """A camera of the scene as it was declared. Raises :class:`UnknownNameError`."""
        if name not in self._builder.cameras:
            raise UnknownNameError("camera", name, self._builder.cameras)
        return self._builder.cameras[name]

    def model_data(self, row: int = 0) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """A row's model, with what varies in it, and its state, for pictures; see :meth:`World.data`."""
        self._check_open()
        return self.world.data(arguments.row_number(row, self.num_envs))

    @property
    def arm_qpos(self) -> Tensor:
        """(N, joints) of the arm [rad or m]; borrowed until the next step."""
        return self.driven.arm_qpos

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the columns of ``joints``; of several robots ``ROBOT/JOINT``."""
        several = len(self.robots) > 1
        return tuple(f"{r.name}/{joint}" if several else joint for r in self.robots for joint in r.joints)

    @property
    def joints(self) -> Tensor:
        """(N, joints) of the robots, arms and what grippers drive [rad or m]; borrowed until the next step."""
        return self.driven.qpos

    @property
    def force_names(self) -> tuple[str, ...]:
        """Names of the columns of ``forces``: ``total``, then links, ``fingers/NAME`` for those left out of it."""
        return force_names(self.robots)

    @property
    def forces(self) -> Tensor:
        """(N, 1 + links) [N] net contact force on each link of the robots in the last substep; see
        :mod:`manikin.scene.forces`."""
        return forces_of(self.robots)

    def towards(self, joints: Tensor, *, within: float | None = None) -> Tensor:
        """(N, A) actions that ask for the arm's ``joints`` (N, joints) [rad or m], as far as one step can; with
        ``within`` [s] such that it is there after so long. See :meth:`Controller.towards`."""
        with torch.no_grad(), self._on:
            return self.controller.towards(self._carry, self._reading(), joints, within=within)

    @property
    def arm_command(self) -> Tensor:
        """(N, joints) what the arm was commanded last: positions [rad or m], of joints driven by torque that torque."""
        return torch.cat([robot.ctrl[:, : robot.arm_joints] for robot in self.robots], 1)

    @property
    def tcp_poses(self) -> Tensor:
        """(N, robots, 7) of the tool centre points in the world; borrowed until the next step."""
        return torch.stack([robot.tcp_pose for robot in self.robots], 1)

    def reward_of(self, actions: Tensor) -> Tensor:
        """(N,) reward of the states that rows are in, as if these actions (N, A) had led there."""
        self._check_open()
        with torch.no_grad(), self._on:
            return self._loop.reward(self.task.evaluate(self.h), actions.to(self.device).clamp(-1.0, 1.0))[0]

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations and the renderer."""
        self._closed = True
        for part in (getattr(self, "_renderer", None), self._observer.rig, self._loop, self.world):
            if part is not None:
                part.close()

    # ---- state -----------------------------------------------------------------------------------------------------

    def save(self, rows: Any = None) -> Snapshot:
        """Everything that later steps of the rows depend on; see :class:`Snapshot`."""
        return state.save(self, row_numbers(rows, self.num_envs))

    def load(self, snapshot: Snapshot, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows where the snapshot was (as many rows, or one for all); returns observations and info of all rows."""
        self._check_open()
        state.load(self, snapshot, row_numbers(rows, self.num_envs))
        with torch.no_grad(), self._on:
            return self._loop.look()

    def put(self, states: Sequence[np.ndarray], rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows into physics states, one of :meth:`physics_states` each, as if a control step had led there: the
        task's memory and the count of steps go on, the controller's memory does not. Returns as :meth:`load`."""
        self._check_open()
        with torch.no_grad(), self._on:
            state.put(self, states, row_numbers(rows, self.num_envs))
            return self._loop.look()

    def state_hash(self, rows: Any = None) -> Tensor:
        """(n,) int64: a 64-bit hash of each row's physics state, exact to the bit."""
        return torch.from_numpy(self.world.state_hash(row_numbers(rows, self.num_envs)).view(np.int64))

    def physics_states(self, rows: Any = None) -> list[np.ndarray]:
        """Of each row the full physics state, float64, exact to the bit."""
        return list(self.world.states(row_numbers(rows, self.num_envs)))

    def fingerprint(self) -> dict[str, Any]:
        """What an episode depends on besides its seed, for JSON: task, config, robot, rates, versions, machine."""
        return fingerprint(self)

    def scene_xml(self) -> str:
        """The scene as MJCF. Meshes and pictures are named, not contained; what rows vary is as compiled.

        Raises:
            SceneError: MuJoCo cannot write this scene as text.
        """
        return self._builder.xml()

    def budget_advice(self) -> str:
        """Which budget to raise to what where rows overflowed (``Health.OVERFLOW``); "" where none was too small, and
        on the CPU, which has none."""
        return "" if self.budget is None else advice([(self.budget, self.world.shortages(), range(self.num_envs))])

    # ---- inside ----------------------------------------------------------------------------------------------------

    @property
    def _carry(self) -> Tensor:
        """(N, k) the controller's memory."""
        return self._loop.carry

    @property
    def _elapsed(self) -> np.ndarray:
        """(N,) int64 control steps since each row's start."""
        elapsed = self._loop.elapsed
        return elapsed.cpu().numpy() if isinstance(elapsed, Tensor) else elapsed

    def _reading(self) -> Reading:
        return self.driven

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this environment is closed")
