"""From a task and its options to what an environment runs: the scene, the world, the robots and their controllers."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch

from manikin.control import Chain, Controller, IkSolver, controller, side_by_side, torque_joints
from manikin.env import arguments
from manikin.env.observe import Observation, Vision
from manikin.env.options import EnvOptions
from manikin.env.task import Task, checked_task
from manikin.errors import ConfigError
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.scene.handles.combined import CombinedRobot
from manikin.scene.handles.named import Handles
from manikin.scene.looks import Dresser
from manikin.sense.imperfect import SensorSuite
from manikin.sim import make_world, on_device, torch_device
from manikin.sim.world import World
from manikin.spec.budget import Budget, largest
from manikin.spec.control import Control, Whole, controls_word, parse_controls
from manikin.spec.scene import CompiledScene

__all__ = ["Assembly", "Composition", "FindBudget", "assemble", "compose"]

FindBudget = Callable[..., Budget]
"""Given a task, its scene and options, the room that it needs on a Warp device."""

HEAVY = 2**25  # [bytes] of a compiled scene: scanned objects, robots with many meshes


@dataclass(frozen=True, kw_only=True)
class Composition:
    """A task's compiled scene; nothing simulates it yet.

    Attributes:
        task: the task, with its configuration.
        options: as they were given.
        robot_word, control_hz, physics_hz, horizon, terminates, vision: the options as they apply to this task.
        controls: of each robot.
        observation: what rows are shown; declared: what its further sources gave for the scene, by name.
        substeps: physics steps per control step.
        h: the handles that the task's methods are given.
        sensors: their imperfections; None for none.
        on: the torch mode that makes tensors on the device.
    """

    task: Task
    options: EnvOptions
    robot_word: str
    controls: Sequence[Control | Whole]
    control_hz: float
    physics_hz: float
    substeps: int
    horizon: int
    terminates: bool
    vision: Vision
    observation: Observation
    declared: Mapping[str, Any]
    builder: SceneBuilder
    h: Any
    dresser: Dresser
    scene: CompiledScene
    sensors: SensorSuite | None
    on: AbstractContextManager[Any]


@dataclass(frozen=True, kw_only=True)
class Assembly(Composition):
    """A scene in a world, with its robots under control.

    Attributes:
        budget: room on a Warp device; None on the CPU.
        robots: in the order of the scene.
        driven: what actions move: the robot, or several as one.
        controllers: of each robot.
    """

    budget: Budget | None
    world: World
    robots: tuple[Robot, ...]
    driven: Robot | CombinedRobot
    controller: Controller
    controllers: tuple[Controller, ...]


def compose(task: type[Task] | Task, options: EnvOptions) -> Composition:
    """Build a task's scene and compile it.

    Raises:
        ConfigError: an option does not fit the task; says which and what fits.
        UnknownNameError: no such robot, controller or camera.
        SceneError: the scene cannot be compiled.
    """
    word, chosen = arguments.robots(checked_task(task), options.robot)
    arm = ",".join(one.arm.name for one in chosen)
    if isinstance(task, type):
        task = task(options.config, arm=arm)
    control_hz = task.control_hz if options.control_hz is None else options.control_hz
    control_hz = arguments.positive("control_hz", control_hz)
    control = task.robot_control.get(arm, task.control) if options.control is None else options.control
    controls = parse_controls(control, len(chosen))
    torque = [torque_joints(one, robot.arm) for one, robot in zip(controls, chosen, strict=True)]
    held_by = [one.gripper for one in chosen if one.gripper]
    physics = arguments.physics_at(task.physics, options.physics_hz, held_by, torques=any(torque))
    substeps = arguments.substeps(float(physics.hz), control_hz)
    horizon = round(task.horizon_s * control_hz) if options.horizon is None else options.horizon
    horizon = arguments.positive_int("horizon (control steps)", horizon)
    suite = None if options.sensors is None else SensorSuite(options.sensors, control_hz=control_hz)
    observation = Observation.of(options.observe)
    vision = Vision.of(options.vision)
    if observation.needs:
        vision = task.pictures(vision)

    on, builder = on_device(torch_device(options.device)), SceneBuilder(chosen, physics, torque)
    with on, arguments.naming_robots(task, word):
        declared = task.scene(builder)
    vision.declare(builder)
    sources = {source.name: source.declare(builder) for source in observation.sources}
    dresser = Dresser(options.looks or (task.looks() if observation.needs else None), builder)
    with arguments.naming_robots(task, word):
        scene = builder.compile()
    if scene.model.nbuffer > HEAVY:
        gc.collect()  # a task may refer to itself; environments with meshes hold hundreds of megabytes
    count = len(builder.robot_handles)
    if count != task.robot_count:
        raise ConfigError(
            f"{task.id}: scene() declares {count or 'no'} robots instead of {task.robot_count}; call b.robot() for "
            "each, or change robot_count"
        )
    return Composition(
        task=task,
        options=options,
        robot_word=word,
        controls=controls,
        control_hz=control_hz,
        physics_hz=float(physics.hz),
        substeps=substeps,
        horizon=horizon,
        terminates=task.terminate if options.terminate is None else options.terminate,
        vision=vision,
        observation=observation,
        declared=sources,
        builder=builder,
        h=Handles.of(declared, builder.scope),
        dresser=dresser,
        scene=scene,
        sensors=suite if suite is not None and suite.models else None,
        on=on,
    )


def assemble(task: type[Task] | Task, options: EnvOptions, *, find_budget: FindBudget) -> Assembly:
    """Compose a task's scene, put it into a world at the robots' home pose, and its robots under control.

    Args:
        task: a class or an instance.
        options: how it is played.
        find_budget: asked for the room on a Warp device where the options leave it open.

    Raises as :func:`compose`.
    """
    made = compose(task, options)
    options, scene, builder = made.options, made.scene, made.builder
    budget = _room(made, find_budget)
    warp: dict[str, Any] = {"budget": budget, "deterministic": options.deterministic}
    world = make_world(
        scene, options.num_envs, device=options.device, threads=options.threads, poison=options.poison, **warp
    )
    with torch.no_grad(), made.on:
        builder.bind(world)
        robots = tuple(builder.robot_handles)
        chains = [Chain(one.arm, one.gripper, world.device) for one in robots]
        for one, chain in zip(robots, chains, strict=True):
            one.solver = IkSolver(chain)
        driven: Robot | CombinedRobot = robots[0]
        with arguments.naming_robots(made.task, made.robot_word):
            if len(robots) == 1:
                whole: Controller = controller(made.controls[0], robots[0], chains[0], made.control_hz)
                each: tuple[Controller, ...] = (whole,)
            else:
                driven = CombinedRobot(robots)
                whole = both = side_by_side(made.controls, robots, chains, made.control_hz)
                each = tuple(part.controller for part in both.parts)
        for one in robots:
            one.set_qpos(one.keyframe())
        world.set_home()
        world.forward()
    parts = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    return Assembly(
        **parts, budget=budget, world=world, robots=robots, driven=driven, controller=whole, controllers=each
    )


def _room(made: Composition, find_budget: FindBudget) -> Budget | None:
    """The room that a Warp world gets; None for the CPU."""
    options = made.options
    if options.device == "cpu" or options.budget is not None:
        return None if options.device == "cpu" else options.budget
    rates = {"control_hz": made.control_hz, "physics_hz": made.physics_hz}
    found = find_budget(made.task, made.scene, robot=made.robot_word, control=controls_word(made.controls), **rates)
    least = options.least_budget
    if least is None or (room := largest([found, least])) == largest([found]):
        return found
    return room
