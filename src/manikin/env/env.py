"""The batched environment: a Task and a controller on N rows of a World, spoken to through Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from torch import Tensor

from manikin.control import Chain, Controller, IkSolver, Reading, controller
from manikin.env import arguments, state
from manikin.env.observe import Observer, Vision, merge, parse, space_of
from manikin.env.provenance import fingerprint
from manikin.env.task import Episode, Task
from manikin.errors import ClosedError, ConfigError, UnknownNameError
from manikin.render.segmentation import SegmentationTable
from manikin.rng import EpisodeRng, episode_seed_from_entropy
from manikin.robots import robot as robot_choice
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot, View
from manikin.scene.looks import Dresser, Looks
from manikin.sense.imperfect import Imperfection, SensorSuite
from manikin.sim import Budget, make_world, on_device, torch_device
from manikin.sim.snapshot import Snapshot

__all__ = ["AUTORESET", "REWARD", "Env"]

AUTORESET = {
    "same_step": AutoresetMode.SAME_STEP,
    "next_step": AutoresetMode.NEXT_STEP,
    "disabled": AutoresetMode.DISABLED,
}
REWARD = ("normalized_dense", "dense", "sparse", "none")


class Env(gymnasium.vector.VectorEnv):
    """N rows of a task. Tensors in, tensors out: torch, leading dimension ``num_envs``, on ``device``.

    Args:
        task: a Task class or instance.
        num_envs: rows.
        robot: a robot word (``panda``, ``panda:menagerie``, ``ur5e+panda_hand``); default the task's first.
        control: controller name; default the task's.
        observe: ``state`` (one flat tensor), ``policy`` (flat, without privileged state), ``state_dict``, or what
            cameras give: ``rgb``, ``depth``, ``segmentation``, ``normals``, ``pointcloud``, ``voxel`` joined by ``+``.
        sensors: noise, delay, dropout and rate by path in the observation: ``{"policy/qpos": [Noise(0.01)]}``.
        vision: which cameras, renderer, cloud and grid; see :class:`Vision`.
        reward: ``normalized_dense`` (dense / its declared maximum), ``dense``, ``sparse`` (success - fail) or ``none``.
        autoreset: ``same_step`` (with ``final_obs`` and ``final_info``), ``next_step`` or ``disabled``.
        device: ``cpu``; ``cuda`` or ``cuda:1`` for a GPU; ``warp:cpu`` for the GPU path's kernels on the processor,
            slow, for tests.
        budget: room for contacts and constraints on a Warp device; None finds it by playing the task for a few
            seconds on the CPU, once, and keeps it on disk. The CPU needs none.
        deterministic: on a Warp device, the same bits in every run, at a price; the CPU always gives them.
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
        robot: str | None = None,
        control: str | None = None,
        observe: str = "state",
        reward: str = "normalized_dense",
        autoreset: str | AutoresetMode = "same_step",
        device: str = "cpu",
        budget: Budget | None = None,
        deterministic: bool = False,
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
        self.robot_word = task.robots[0] if robot is None else robot
        chosen = robot_choice(self.robot_word)
        if isinstance(task, type):
            task = task(config, arm=chosen.arm.name)
        self.task = task
        self.num_envs = arguments.positive_int("num_envs", num_envs)
        parse(observe)
        arguments.one_of("reward mode", reward, REWARD)
        arguments.one_of("out_of_range", out_of_range, ("clip", "refuse"))
        self._on = on_device(torch_device(device))
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
        self.terminates = task.terminate if terminate is None else bool(terminate)

        builder = SceneBuilder([chosen], physics)
        with self._on:
            declared = task.scene(builder)
        self.h: Any = declared if not isinstance(declared, Mapping) else SimpleNamespace(**declared)
        self.vision = vision or Vision()
        self.vision.declare(builder)
        self.looks, self._dresser = looks, Dresser(looks, builder)
        self.scene = builder.compile()
        self._builder, self._scope = builder, builder.scope
        if not builder.robot_handles:
            raise ConfigError(f"{task.id}: scene() declares no robot; add b.robot()")
        self.robot: Robot = builder.robot_handles[0]
        if not hasattr(self.h, "n"):
            self.h = View(self.h, self._scope)
        if budget is None and device != "cpu":
            from manikin.env.budget import task_budget  # which plays an environment

            rates = {"control_hz": self.control_hz, "physics_hz": self.physics_hz}
            budget = task_budget(task, self.scene, robot=self.robot_word, control=control or task.control, **rates)
        self.budget = budget
        warp: dict[str, Any] = {"budget": budget, "deterministic": deterministic}
        self.world = make_world(self.scene, self.num_envs, device=device, threads=threads, poison=poison, **warp)
        self.device_word = device
        self.device = self.world.device
        with self._on:
            builder.bind(self.world)
            chain = Chain(self.robot.arm, self.robot.gripper)
            self.robot.solver = IkSolver(chain)
            self.controller: Controller = controller(control or task.control, self.robot, chain, self.control_hz)
        self._chain = chain

        self._per_reward = torch.tensor(1.0 / task.reward_max)
        n = self.num_envs
        self._seed = np.zeros(n, np.int64)
        self._index = np.full(n, -1, np.int64)  # -1: never started
        self._elapsed = np.zeros(n, np.int64)
        self._done = np.zeros(n, bool)  # ended and not restarted
        self._clipped = np.zeros(n, np.int64)
        self._started, self._closed = False, False
        self._entropy: int | None = None
        self._options: dict[str, Any] = {}
        with torch.no_grad(), self._on:
            for handle in builder.robot_handles:
                handle.set_qpos(handle.keyframe())
            self.world.set_home()
            self.world.forward()
            self._carry = self.controller.start(self._reading())
            rig = self.vision.rig(parse(observe), self.world, builder.cameras)
            suite = SensorSuite(sensors, control_hz=self.control_hz) if sensors else None
            self._observer = Observer(
                observe, task, self.h, self.robot, vision=self.vision, rig=rig, rng=self._rng, sensors=suite
            )
            self.observation_names = self._observer.names
            self.single_observation_space = space_of(self._observer())
        size = (self.controller.card.size,)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, size, np.float32)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, n)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, n)

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

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
        rows = np.flatnonzero(mask).astype(np.int32)
        self._options = options
        self._assign(rows, seed, index)
        with torch.no_grad(), self._on:
            if len(rows):
                self._start(rows)
            self._started = bool((self._index >= 0).all())
            observation = self._observer()
            return observation, self._info(self.task.evaluate(self.h))

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
        with torch.no_grad(), self._on:
            return self._step(actions, active)

    def _step(self, actions: Any, active: Any) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        self._check_open()
        action = self._action(actions)
        going, begun = self._who_moves(active)
        before = None if going is None else [v.data.clone() for v in self._builder.variables]
        reading = self._reading()
        ctrl, carry = self.controller(self._carry, reading, action)
        self._write_ctrl(ctrl, going)
        old_carry, self._carry = (
            self._carry,
            carry if going is None else torch.where(_column(going), carry, self._carry),
        )
        self._dresser.step(going, self._seed, self._index, self._elapsed)
        diverged = self.world.step(self.substeps, going)
        still = None if going is None else ~going  # rows that did not move
        if diverged is not None:
            still = diverged if still is None else diverged | still
            before = before or [v.data.clone() for v in self._builder.variables]
        self.task.advance(self.h)
        if still is not None and before is not None:  # they keep their memory
            at = torch.from_numpy(still)
            for variable, value in zip(self._builder.variables, before, strict=True):
                variable.data[at] = value[at]
            if diverged is not None:
                self._carry = torch.where(_column(diverged), old_carry, self._carry)
        self._elapsed += 1 if going is None else going

        ev = self.task.evaluate(self.h)
        reward, terms = self._reward(ev, action)
        success, fail = ev["success"], ev.get("fail")
        ended = (success if fail is None else success | fail).numpy() if self.terminates else np.zeros_like(self._done)
        over = self._elapsed >= self.horizon
        if still is not None:
            reward[torch.from_numpy(still)] = 0.0
            ended, over = ended & ~still, over & ~still
            over = over if diverged is None else over | diverged
        over = over & ~ended
        info = self._info(ev, terms)
        if begun is not None:
            self._start(begun)
            info = self._info(self.task.evaluate(self.h), terms)
        observation = self._observer(still=still)
        terminated, truncated = torch.from_numpy(ended.copy()), torch.from_numpy(over)
        done = ended | over
        if np.count_nonzero(done):
            self._done |= done
            if self.autoreset == "same_step":
                observation, info = self._restart(np.flatnonzero(done).astype(np.int32), done, observation, info, terms)
        return observation, reward, terminated, truncated, info

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

        self._check_open()
        cameras = self._builder.cameras
        name = camera or ("human_camera" if "human_camera" in cameras else next(iter(cameras), None))
        if name not in cameras:
            raise UnknownNameError("camera", name, cameras)
        if not hasattr(self, "_renderer"):
            self._renderer = make_renderer()
        model, data = self.world.data(row)
        return self._renderer.rgb(model, data, name, width=width, height=height)

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations and the renderer."""
        self._closed = True
        for renderer in (getattr(self, "_renderer", None), self._observer.rig, self.world):
            if renderer is not None:
                renderer.close()

    # ---- state -----------------------------------------------------------------------------------------------------

    def save(self, rows: Any = None) -> Snapshot:
        """Everything that later steps of the rows depend on; see :class:`Snapshot`."""
        return state.save(self, arguments.row_numbers(rows, self.num_envs))

    def load(self, snapshot: Snapshot, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows where the snapshot was (as many rows, or one for all); returns observations and info of all rows."""
        self._check_open()
        state.load(self, snapshot, arguments.row_numbers(rows, self.num_envs))
        self._started = bool((self._index >= 0).all())
        with torch.no_grad(), self._on:
            return self._observer(), self._info(self.task.evaluate(self.h))

    def state_hash(self, rows: Any = None) -> Tensor:
        """(n,) int64: a 64-bit hash of each row's physics state, exact to the bit."""
        return torch.from_numpy(self.world.state_hash(arguments.row_numbers(rows, self.num_envs)).view(np.int64))

    def fingerprint(self) -> dict[str, Any]:
        """What an episode depends on besides its seed, for JSON: task, config, robot, rates, versions, machine."""
        return fingerprint(self)

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _start(self, rows: np.ndarray) -> None:
        """Begin an episode in these rows; others are not touched."""
        world, at = self.world, torch.from_numpy(rows)
        world.reset(rows)
        for variable in self._builder.variables:
            if not variable.persist:
                variable.data[at] = variable.initial
        seed, index = torch.from_numpy(self._seed[rows]), torch.from_numpy(self._index[rows])
        episode = Episode(rows, index, EpisodeRng(seed, index), self._options)
        self._scope.rows = rows
        try:
            for variation in self._builder.variations:
                value = episode.draw(f"vary/{variation.part.name}/{variation.what}", variation.how)
                variation.part.set_property(variation.what, value)
            self.task.start(self.h, episode)
            self._dresser.start(rows, episode.rng)
            if self.task.settle_s > 0:
                active = np.zeros(self.num_envs, bool)
                active[rows] = True
                world.step(round(self.task.settle_s * self.physics_hz), active)
            world.forward(rows)
            carry = self.controller.start(self._reading())
        finally:
            self._scope.rows = None
        if len(rows) == self.num_envs:
            self._carry = carry
        else:
            self._carry = self._carry.clone()
            self._carry[at] = carry
        self._elapsed[rows], self._done[rows], self._clipped[rows] = 0, False, 0
        self._observer.begin(rows)

    def _restart(
        self, rows: np.ndarray, done: np.ndarray, observation: Any, info: dict[str, Any], terms: dict[str, Tensor]
    ) -> tuple[Any, dict[str, Any]]:
        """SAME_STEP: keep what ended in ``final_obs`` and ``final_info``, start the next episode in those rows."""
        mask = torch.from_numpy(done.copy())
        self._index[rows] += 1
        self._start(rows)
        if len(rows) == self.num_envs:
            fresh = self._observer()
            new_info = self._info(self.task.evaluate(self.h), terms)
        else:
            at = torch.from_numpy(rows)
            self._scope.rows = rows
            try:
                part, ev = self._observer(rows), self.task.evaluate(self.h)
            finally:
                self._scope.rows = None
            fresh = merge(observation, part, at)
            new_info = self._info({k: merge(info[k], ev[k], at) for k in ev}, terms)
        new_info |= {"final_obs": observation, "_final_obs": mask, "final_info": info, "_final_info": mask}
        return fresh, new_info

    def _assign(self, rows: np.ndarray, seed: Any, index: Any) -> None:
        """Episode seeds and indices of the rows about to start."""
        given = arguments.seeds(seed, rows, self.num_envs)
        numbers = None if index is None else arguments.indices(index, rows, self.num_envs)
        for row, value in zip(rows, given, strict=True):
            if value is not None:
                self._seed[row], self._index[row] = value, 0
            elif self._index[row] < 0:
                if self._entropy is None:
                    self._entropy = episode_seed_from_entropy()
                self._seed[row], self._index[row] = self._entropy + int(row), 0
            else:
                self._index[row] += 1
        if numbers is not None:
            self._index[rows] = numbers

    def _who_moves(self, active: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """(N,) rows that step, None for all; and rows that begin instead (NEXT_STEP)."""
        if not self._started:
            raise ClosedError("call reset() before the first step")
        going = None if active is None else arguments.mask(active, self.num_envs, "active")
        begun = None
        if np.count_nonzero(self._done):
            if self.autoreset == "next_step":
                begun = np.flatnonzero(self._done if going is None else self._done & going).astype(np.int32)
                going = ~self._done if going is None else going & ~self._done
                self._index[begun] += 1
                begun = begun if len(begun) else None
            elif (self._done if going is None else self._done & going).any():
                rows = np.flatnonzero(self._done).tolist()
                raise ClosedError(
                    f"rows {rows[:10]} have ended; with autoreset='disabled' restart them with "
                    "reset(options={'reset_mask': mask}) or leave them out with step(..., active=mask)"
                )
        return going, begun

    def _action(self, given: Any) -> Tensor:
        """Checked float32 (N, A) in [-1, 1]."""
        action, clipped = arguments.actions(given, self.num_envs, self.controller.card, self.out_of_range == "refuse")
        if clipped is not None:
            self._clipped += clipped
        return action

    def _reading(self) -> Reading:
        return self.robot

    def _write_ctrl(self, ctrl: Tensor, going: np.ndarray | None) -> None:
        channel = self.robot._ctrl
        if going is None:
            channel.write(ctrl)
        else:
            rows = np.flatnonzero(going)
            channel.write(ctrl[torch.from_numpy(rows)], rows)

    def _reward(self, ev: dict[str, Tensor], action: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        mode = self.reward_mode
        if mode in ("normalized_dense", "dense"):
            terms = self.task.reward(self.h, ev, action)
            if not terms:
                raise ConfigError(f"{self.task.id} has no dense reward; use reward='sparse' or 'none'")
            total = torch.stack(list(terms.values()), -1).sum(-1)
            return (total.mul_(self._per_reward) if mode == "normalized_dense" else total), terms
        if mode == "sparse":
            sparse = ev["success"].float()
            return (sparse - ev["fail"].float() if "fail" in ev else sparse), {}
        return torch.zeros(self.num_envs), {}

    def _info(self, ev: dict[str, Tensor], terms: dict[str, Tensor] | None = None) -> dict[str, Any]:
        info: dict[str, Any] = {
            **ev,
            "elapsed": torch.from_numpy(self._elapsed.copy()),
            "episode_seed": torch.from_numpy(self._seed.copy()),
            "episode_index": torch.from_numpy(self._index.copy()),
            "health": torch.from_numpy(self.world.health().copy()),
            "clipped": torch.from_numpy(self._clipped.copy()),
        }
        if terms:
            info["reward_terms"] = terms
        if self._entropy is not None:
            info["entropy"] = self._entropy
        return info

    def _rng(self, rows: np.ndarray | None, present: bool) -> EpisodeRng:
        """The random streams of rows' episodes; with ``present`` those of their present step."""
        index = slice(None) if rows is None else rows
        seed, number, step = (torch.from_numpy(a[index].copy()) for a in (self._seed, self._index, self._elapsed))
        rng = EpisodeRng(seed, number)
        return rng.derive(step) if present else rng

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this environment is closed")


def _column(mask: np.ndarray) -> Tensor:
    return torch.from_numpy(mask)[:, None]
