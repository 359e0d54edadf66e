"""Task: what a user writes. One class, one file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from manikin.env import placement
from manikin.env.config import check_options
from manikin.env.placement import Place
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.looks import Looks
from manikin.spec.labels import PLAIN, Labels
from manikin.spec.physics import Physics
from manikin.spec.plan import Segment, Waypoint
from manikin.spec.vary import Normal, Uniform, Vary

__all__ = ["Episode", "Quantity", "Task", "checked_task"]


@dataclass(frozen=True)
class Quantity:
    """Unit and frame of a named observation: ``Quantity("m", "world")``.

    Attributes:
        unit, frame: units and frame in words.
        note: what else there is to say.
        padded_to: where layouts differ in the observation's shape, the largest of all; see ``Task.layouts``.
    """

    unit: str
    frame: str = ""
    note: str = ""
    padded_to: tuple[int, ...] = ()


@dataclass
class Episode:
    """What ``Task.start`` knows about the n rows that begin.

    Attributes:
        rows: (n,) which rows of the environment.
        index: (n,) int64, how many episodes of this seed came before.
        options: what the caller passed to ``reset(options=...)``; recorded with the episode.
        rng: every random number of the episode, the same in any row and batch.
        seed: (n,) int64, the seeds of the episodes.
        troubles: on a GPU, where errors that depend on data cannot be raised at once: what went wrong -> (n,) bool.
    """

    rows: np.ndarray
    index: Tensor
    rng: EpisodeRng
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: Tensor | None = None
    troubles: dict[str, Tensor] | None = None

    def trial(self, count: int, how: str = "grid") -> Tensor:
        """(n,) int64 number of each episode's trial, 0 to ``count`` - 1: under ``grid`` the episode's seed is that
        number, under ``random`` it is drawn.

        Raises:
            UnknownNameError: ``how`` is something else.
            SceneError: under ``grid``, a seed is not the number of a trial.
        """
        if how == "random":
            return self.rng.integers("trial", 0, count).long()
        if how != "grid":
            raise UnknownNameError("way to choose trials", how, ("random", "grid"))
        assert self.seed is not None
        self.refuse(
            (self.seed < 0) | (self.seed >= count),
            f"with trials='grid' the seed is the number of a trial, 0 to {count - 1}; it is another",
        )
        return self.seed.clamp(0, count - 1)

    def draw(self, name: str, how: Vary) -> Tensor:
        """(n, ...) float32 drawn as declared: ``Uniform``, ``Normal`` or ``Choice``, from the stream ``name``."""

        def made(value: Any) -> Tensor:
            return torch.tensor(value, device=self.rng.device)

        if isinstance(how, Uniform):
            shape = np.shape(how.low) or np.shape(how.high)
            return self.rng.uniform(name, made(how.low), made(how.high), tuple(shape))
        if isinstance(how, Normal):
            value = self.rng.normal(name, made(how.mean), made(how.std), tuple(np.shape(how.mean)))
            return torch.clamp(value, made(how.low), made(how.high))
        return made(how.options)[self.rng.integers(name, 0, len(how.options)).long()]

    def place(
        self,
        count: int,
        *,
        low: Sequence[float],
        high: Sequence[float],
        gap: float,
        name: str = "place",
        candidates: int = 100,
    ) -> Tensor:
        """(n, count, 2) positions in a rectangle [m], every two at least ``gap`` [m] apart.

        Each row draws ``candidates`` whole placements and takes its first valid one, so a row never depends on others.

        Raises:
            SceneError: some row has no valid placement; names the rows.
        """
        device = self.rng.device
        lows, highs = (torch.tensor(v, dtype=torch.float32, device=device) for v in (low, high))
        points = self.rng.uniform(name, lows, highs, (candidates, count, 2))
        valid = placement.apart(points, torch.zeros(len(self.rows), count, device=device), gap)
        self.refuse(~valid.any(1), f"no room for {count} things {gap} m apart in {candidates} tries")
        return placement.first_valid(points, valid)

    def scatter(self, places: Sequence[Place], *, name: str = "scatter", **options: Any) -> Tensor:
        """(n, len(places), 7) poses of things of different sizes, each in its own :class:`Place`, never overlapping;
        ``options`` (gap, around, taken, candidates) as for :func:`manikin.env.placement.scatter`.

        Raises:
            SceneError: a rectangle is too small for its thing, or some row has no valid placement; names both.
        """
        poses, failed = placement.scatter(self.rng, places, name=name, **options)
        self.refuse(failed, f"{name}: no room for {len(places)} things that may not overlap")
        return poses

    def refuse(self, failed: Tensor, message: str) -> None:
        """Refuse to start the rows where ``failed`` (n,) is True.

        Raises:
            SceneError: there is one; on a GPU it is raised at the end of the step.
        """
        if self.troubles is not None:
            self.troubles[message] = failed | self.troubles.get(message, False)
        elif bool(failed.any()):
            raise SceneError(f"{message}, rows {self.rows[failed.numpy()].tolist()}")


class Task:
    """Base class of tasks: declare the scene, how an episode starts, what is observed and rewarded, what success is.

    All methods are batched: every tensor has a leading dimension ``h.n``.

    Class attributes:
        id: ``Name-v1``; changing physics, reward, observation or success means a new version.
        family: which tasks it is listed with, such as "drawing"; :mod:`manikin.tasks.families` has the built-in ones,
            and a word of your own makes another. By default that of its folder, or ``own``.
        horizon_s: episode length [s].
        robots: robot words that the task is tested with; the first is the default.
        robot_count: how many robots it takes; ``scene`` calls ``b.robot`` that often. With several, name them
            ``robot0``, ``robot1``, and what each of them observes ``robot0_tcp_pose`` and so on.
        robot_needs: what a robot must have for the task: "feet", "gripper", "tool", "flange", "measures_centre" or
            "servos that hold it up"; so many of something ("2 feet", "7 joints"); a kind of base ("free base",
            "vertical base", or "held base" for one that is fixed or drives); a link or keyframe ("link foot",
            "keyframe forward"); or a group, tool or gripper of that name ("fingers", "left", "stick"). A robot without
            it is refused with the names of those that have it.
        robots_named: the robot words that such an error names; () is all built-in ones that have what is needed. For a
            task that also needs to know its robot.
        robot_config: arm name -> Config fields that differ for it (a smaller robot gets smaller things).
        control, control_hz, physics: defaults that ``make`` can override.
        robot_control: arm name -> control, where it is another one for it (a mobile robot's base by velocity).
        observations: unit and frame of every tensor that ``observe`` returns.
        reward_max: the largest dense reward; ``normalized_dense`` divides by it, or by ``reward_norm`` where a task
            has one because the largest reward is a rare one.
        terminate: whether success or failure ends an episode.
        labels: events and the ways to succeed and fail; an event's flag is what ``evaluate`` calls it.
        layouts: names of scenes with different joints, for rows that differ in them; ``scene`` reads ``self.layout``.
            An episode's layout follows from its seed: seed modulo their number. An observation whose shape differs
            between them says ``Quantity(..., padded_to=...)``.
        segments: what demonstrations are relative to, one stretch after the other, for ``manikin multiply``.
        measures_velocity: whether the robot measures its joints' velocities. Where it does not, as hobby servos do not,
            they are among the privileged values.
        settle_s: simulated time after placing, before the episode begins [s]; costs that much physics per reset.
        trial_count: how many numbered trials it has, see :meth:`Episode.trial`; 0 for none.
        beside_photograph: fields of Config with which real photographs are behind the pictures. The files may be
            missing; ``manikin info --page`` uses them where they are there.
    """

    id: ClassVar[str]
    family: ClassVar[str] = ""
    horizon_s: ClassVar[float]
    instruction: ClassVar[str] = ""
    robots: ClassVar[tuple[str, ...]] = ("panda",)
    robot_count: ClassVar[int] = 1
    robot_needs: ClassVar[tuple[str, ...]] = ()
    robots_named: ClassVar[tuple[str, ...]] = ()
    robot_config: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    control: ClassVar[str] = "joint_delta_pos"
    robot_control: ClassVar[Mapping[str, str]] = {}
    control_hz: ClassVar[float] = 20.0
    physics: ClassVar[Physics] = Physics()
    observations: ClassVar[Mapping[str, Quantity]] = {}
    reward_terms: ClassVar[Mapping[str, str]] = {}
    reward_max: ClassVar[float] = 1.0
    reward_norm: ClassVar[float | None] = None
    terminate: ClassVar[bool] = True
    labels: Labels = PLAIN
    segments: ClassVar[tuple[Segment, ...]] = ()
    measures_velocity: ClassVar[bool] = True
    settle_s: ClassVar[float] = 0.0
    layouts: ClassVar[tuple[str, ...]] = ()
    trial_count: ClassVar[int] = 0
    beside_photograph: ClassVar[Mapping[str, Any]] = {}

    @dataclass(frozen=True)
    class Config:
        """Numbers of the task that ``make(config=...)`` may override, with values like their defaults.

        Those called ``half_size``, ``radius``, ``tol``, ``gap``, ``margin``, ``speed`` or ``distance``, also at the end
        of a longer name, are lengths or speeds and cannot be negative.
        """

    def __init__(self, config: Any = None, *, arm: str = "", layout: str | None = None) -> None:
        for name, example in (("id", f"{type(self).__name__}-v1"), ("horizon_s", 5.0)):
            if not hasattr(self, name):
                raise ConfigError(f"task {type(self).__name__} has no {name}; for example {name} = {example!r}")
        if layout is not None and layout not in self.layouts:
            raise UnknownNameError(f"layout of {self.id}", layout, self.layouts)
        self.layout = layout or next(iter(self.layouts), "")
        if config is None or isinstance(config, Mapping):
            config = {**self.robot_config.get(arm, {}), **(config or {})}
            defaults = {f.name: f.default for f in dataclasses.fields(self.Config)}
            for name in config:
                if name not in defaults:
                    raise UnknownNameError(f"option of {self.id}", name, defaults)
            tuples = {name: _tuples(v) for name, v in config.items() if isinstance(defaults[name], tuple)}
            config = self.Config(**{**config, **tuples})
        elif not isinstance(config, self.Config):
            raise ConfigError(f"config must be a mapping or {self.id}'s Config, not {type(config).__name__}")
        check_options(config, self.id)
        self.config: Any = config
        try:
            self.labels.check()  # once for each set of labels
        except ConfigError as error:
            raise ConfigError(f"the labels of {self.id} are incomplete: {error}") from None

    def scene(self, b: SceneBuilder) -> Any:
        """Declare robots, parts, variables, cameras and contact questions; return an object with their handles.

        A dict becomes attributes: ``return {"robot": robot, "cube": cube}`` is read as ``h.cube``.
        """
        raise NotImplementedError

    def start(self, h: Any, ep: Episode) -> None:
        """Put the starting rows in place. Handles read and write only those rows; randomness comes from ``ep.rng``."""
        raise NotImplementedError

    def settled(self, h: Any) -> None:
        """Remember how the starting rows lie once ``settle_s`` is over, in variables. Optional."""

    def pictures(self, vision: Any) -> Any:
        """What observations with cameras are made of (:class:`manikin.env.observe.Vision`), with what the caller left
        open as the task has it: its cameras, its stages. Optional."""
        return vision

    def advance(self, h: Any) -> None:
        """Per-step memory (latches, progress), once per control step. Optional."""

    def looks(self) -> Looks | None:
        """How episodes differ in looks where pictures are observed and the caller names no looks. Optional."""
        return None

    def measured(self, qpos: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What of the group ``policy`` follows from the joints' positions and the positions commanded last alone, each
        (n, joints), so that a real arm knows it: ``observe`` returns it, and so does what runs a policy on a robot.
        Optional."""
        return {}

    def finished(self, h: Any, said: Tensor) -> Tensor:
        """In which rows (n,) bool the episode ends because the policy said, in the rows ``said`` (n,) bool, that it has
        finished: by default in all of them. Asked before the step with the policy's last action. May change variables,
        for a task with a second part to begin. Optional."""
        return said

    def evaluate(self, h: Any) -> dict[str, Tensor]:
        """``{"success": (n,) bool}``, optionally ``"fail"`` and stage flags. Pure."""
        raise NotImplementedError

    def observe(self, h: Any) -> dict[str, dict[str, Tensor]]:
        """``{"policy": {...}, "privileged": {...}}`` of (n, ...) tensors; the environment adds joint positions and
        velocities. Pure."""
        raise NotImplementedError

    def reward(self, h: Any, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        """Named (n,) terms whose sum is the dense reward. Pure."""
        return {}

    def instructions(self, h: Any) -> Sequence[str]:
        """What each of the n rows is asked to do now, in words: the task's ``instruction``. Pure. Optional."""
        return [self.instruction] * int(h.n)

    def frames(self, h: Any) -> dict[str, Tensor]:
        """Poses (n, 7) in the world by name, which ``segments`` may use besides the scene's parts. Pure. Optional."""
        return {}

    def landmarks(self, h: Any) -> dict[str, Tensor]:
        """Places (n, 3) [m] in the world by name that a viewer marks on a home's map. The first is where the robot is
        to go now. Pure. Optional."""
        return {}

    def expert_part(self, h: Any) -> Tensor:
        """(n, 2) int64 for experts of tasks with several parts: the number of the part that each row is in, as they
        follow one another in the expert's list, and how often it has begun one. Where that changes, the row begins with
        the part's first waypoint, which says ``begins``; the last of each should hold. Pure. Optional."""
        return torch.zeros(int(h.n), 2, dtype=torch.int64)

    def expert(self, h: Any) -> Sequence[Waypoint | tuple[Waypoint, ...]] | Tensor:
        """Waypoints for the rows' present state; ``plan/`` executes them. With several robots a stage is one waypoint
        for each. Or, where feedback solves the task and no path does, actions (n, A) of the task's own controller,
        asked for at every step. Optional."""
        raise NotImplementedError(f"{self.id} has no scripted expert")


def _tuples(value: Any) -> Any:
    """Lists, which are all that JSON and TOML know, as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def checked_task(task: Any) -> type[Task] | Task:
    """``task`` if it is a Task class or an instance of one.

    Raises:
        ConfigError: it is something else.
    """
    if not issubclass(task if isinstance(task, type) else type(task), Task):
        raise ConfigError(f"a task is a subclass of manikin.Task, or the id of one (manikin.make), not {task!r:.80}")
    checked: type[Task] | Task = task
    return checked
