"""`manikin deploy`: a trained policy on a robot, simulated or real."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manikin.cli.common.terminal import NOT_GOOD, OK, console, counted

if TYPE_CHECKING:
    from manikin.deploy import RobotInterface
    from manikin.env.env import Env

__all__ = ["DeployOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class DeployOptions:
    """Options of `manikin deploy`."""

    checkpoint: tyro.conf.Positional[Path]
    """Folder of a training run, or its policy.safetensors."""
    robot: str = "sim"
    """sim, a simulated robot; or lerobot:so101_follower, lerobot:so100_follower, lerobot:koch_follower."""
    seconds: float | None = None
    """How long an episode is; by default as long as the task's."""
    episodes: int = 1
    """Of a simulated robot."""
    seed: int = 0
    """Of the first episode of a simulated robot."""
    latency_ms: float = 0.0
    """A simulated robot has each action so much later."""
    jitter_ms: float = 0.0
    """And by up to so much more, at random."""
    picture_latency_ms: float = 0.0
    """Its pictures are so old."""
    dropped: float = 0.0
    """Share of its pictures that never arrive, 0 to 1."""
    wall_clock: bool = False
    """The simulated world goes on while the policy thinks. Without it time stands still meanwhile."""
    port: str | None = None
    """Serial port of a real robot: /dev/ttyACM0."""
    id: str | None = None
    """The name under which LeRobot has its calibration."""
    camera: tuple[str, ...] = ()
    """Cameras of a real robot as NAME=INDEX: base_camera=0. NAME is what the policy calls it."""
    flip: tuple[str, ...] = ()
    """Motors that turn the other way than the simulated joint: elbow_flex."""
    approach: float = 3.0
    """A real robot first moves to its rest pose in this time [s]."""
    lead: float = 0.5
    """A joint of the arm is sent at most so far from where it is [rad]."""
    watchdog: float = 0.5
    """The run stops if an observation or the policy takes longer [s]."""


def main(options: Annotated[DeployOptions, tyro.conf.arg(name="")]) -> int:
    """Run a trained policy on a robot: simulated with delays and lost pictures, or a real one through LeRobot."""
    return run(options)


def run(options: DeployOptions) -> int:
    """Run; 0 done, 1 where a simulated robot did not succeed once."""
    from manikin.deploy import Faults, JointUnits, Safety, SimulatedRobot, WallClock, run_on_robot
    from manikin.env.env import Env
    from manikin.env.make import make
    from manikin.errors import ConfigError
    from manikin.policy.trained import observed_by, read_about, trained_policy

    kind, _, follower = options.robot.partition(":")
    if kind not in ("sim", "lerobot") or bool(follower) != (kind == "lerobot"):
        raise ConfigError(f"--robot is sim or lerobot:so101_follower, not {options.robot!r}")
    if options.episodes < 1 or (options.seconds is not None and not options.seconds > 0):
        raise ConfigError("--episodes must be 1 or more, and --seconds positive")
    about = read_about(options.checkpoint)
    told = {name: about[name] for name in ("robot", "control", "control_hz") if about.get(name)}
    twin = make(about["task"], 1, autoreset="disabled", terminate=False, **told, **observed_by(options.checkpoint))
    if not isinstance(twin, Env):
        raise ConfigError(f"{about['task']} has rows with different joints; it cannot be run on a robot")
    steps = twin.horizon if options.seconds is None else max(1, round(options.seconds * twin.control_hz))
    policy, out = trained_policy(options.checkpoint)(twin), console()
    if kind == "lerobot":
        safety = Safety(lead=options.lead, watchdog=options.watchdog, approach=options.approach)
        units = JointUnits(twin.robots[0], flip=options.flip)
        result = run_on_robot(policy, _follower(follower, options, twin), twin, steps=steps, safety=safety, units=units)
        out.print(result.summary(), soft_wrap=True)
        return OK
    faults = Faults(
        latency=options.latency_ms / 1e3,
        jitter=options.jitter_ms / 1e3,
        picture_latency=options.picture_latency_ms / 1e3,
        dropped=options.dropped,
        seed=options.seed,
    )
    safety, solved = Safety(lead=options.lead, watchdog=options.watchdog), 0
    for seed in range(options.seed, options.seed + options.episodes):
        clock = WallClock() if options.wall_clock else None
        robot = SimulatedRobot(twin, seed=seed, faults=faults, clock=clock)
        result = run_on_robot(policy, robot, twin, steps=steps, safety=safety)
        solved += bool(result.success)
        faulty = f"{counted(robot.late_actions, 'late action')}, {counted(robot.dropped, 'dropped picture')}"
        out.print(f"seed {seed}: {result.summary()}; {faulty}", soft_wrap=True)
    out.print(f"{solved} of {counted(options.episodes, 'episode')} succeeded at the end")
    return OK if solved else NOT_GOOD


def _follower(kind: str, options: DeployOptions, twin: Env) -> RobotInterface:
    """The real robot, not connected."""
    from manikin.deploy import lerobot_robot
    from manikin.errors import ConfigError

    if options.port is None:
        raise ConfigError("a real robot needs --port, for example --port /dev/ttyACM0")
    cameras = {}
    for word in options.camera:
        name, _, index = word.partition("=")
        if not (name and index):
            raise ConfigError(f"--camera {word!r} must read NAME=INDEX, for example base_camera=0")
        place = int(index) if index.isdigit() else index
        cameras[name] = {"index_or_path": place, "fps": round(twin.control_hz), "width": 640, "height": 480}
    return lerobot_robot(kind, port=options.port, id=options.id, cameras=cameras)
