"""`manikin teleop`: drive a robot by hand in the browser and keep the episodes."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import OTHERWISE, RendererWord, TaskOptions, load_task
from manikin.cli.common.terminal import OK, console, counted

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv
    from manikin.teleop.device import Device

__all__ = ["TeleopOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class TeleopOptions(TaskOptions):
    """Options of `manikin teleop`."""

    otherwise = OTHERWISE | {"device"}

    task: tyro.conf.Positional[str] = "PickCube-v2"
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    device: str = "keyboard"
    """keyboard (keys and mouse in the browser), spacemouse, gamepad, scripted (shows what happens, without hands), a
    leader arm as leader:so101_leader,port=/dev/ttyACM0,id=NAME,python=PATH (the Python that has LeRobot), or a Device
    of your own as module:function or file.py:Class."""
    out: Path | None = None
    """The recording; by default runs/TASK-teleop.h5."""
    resume: bool = False
    """Go on with a recording that exists."""
    episodes: int | None = None
    """Stop when so many are kept."""
    seed: int = 0
    """Episode k has the seed SEED + k."""
    control: str | None = None
    """Controller that moves the tool; by default the first that the robot has of ee_delta_pose, osc_pose, ..."""
    seconds: float = 60.0
    """Longest episode [s]."""
    speed: float = 0.5
    """Share of full speed to begin with; full is 0.25 m/s and 1 rad/s."""
    port: int = 0
    """Port of the page; 0 is the first free one from 8080 on."""
    host: str = "127.0.0.1"
    """Address to listen on. Others than this machine's own let anybody who can reach it move the robot."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"
    size: tuple[int, int] = (640, 480)
    """Width and height of the picture [pixels]."""
    open: bool = False
    """Open the page in this machine's browser."""


def main(options: Annotated[TeleopOptions, tyro.conf.arg(name="")]) -> int:
    """Drive a robot by hand in the browser and keep the episodes."""
    return run(options)


def run(options: TeleopOptions, *, ready: Callable[[Any], None] = lambda viewer: None) -> int:
    """Serve until interrupted. ``ready`` is told the viewer (which has ``url``) once it serves."""
    from manikin.errors import ConfigError
    from manikin.render import make_renderer
    from manikin.teleop.loop import TeleopLoop
    from manikin.view.hand import HandSession
    from manikin.view.picture import Painter
    from manikin.view.stream import StreamViewer

    if not options.seconds > 0:
        raise ConfigError(f"--seconds must be positive; got {options.seconds}")
    device = _device(options.device)
    env = _env(options, steered=not device.joints)
    loop = None
    try:
        with device:
            path = options.out or Path("runs") / f"{env.task.id}-teleop.h5"
            loop = TeleopLoop(env, device, out=path, resume=options.resume, seed=options.seed, speed=options.speed)
            session = HandSession(loop)
            painter = Painter(session, make_renderer(options.renderer), width=options.size[0], height=options.size[1])
            viewer = StreamViewer(session, painter, host=options.host, port=options.port)
            out = console()
            try:
                what = f"{env.task.id}, {env.controller.name}, {device.name}"
                out.print(f"[bold]{viewer.url}[/]  {what}; Ctrl+C to quit", soft_wrap=True)
                ready(viewer)
                if options.open and (sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY")):
                    webbrowser.open(viewer.url)
                with contextlib.suppress(KeyboardInterrupt):
                    viewer.run(lambda: device.over or (options.episodes or sys.maxsize) <= loop.saved)
            finally:
                viewer.close()
                session.close()
            out.print(
                f"{counted(loop.saved, 'episode')} kept in {path}, {loop.discarded} discarded; "
                f"{loop.latency.summary()}",
                soft_wrap=True,
            )
            if loop.saved:
                out.print(f"verify: manikin replay {path} --check", soft_wrap=True)
    finally:
        if loop is not None:
            loop.close()
        env.close()
    return OK


def _env(options: TeleopOptions, *, steered: bool) -> BatchEnv:
    """The task, with time enough and, unless joints are given, a controller that can be steered."""
    from manikin.env.make import make
    from manikin.teleop.pilot import CONTROLS

    task = load_task(options.task)
    chosen = options.env_options(task, autoreset="disabled")
    first = make(task, options=replace(chosen, control=None))
    rate, has = first.control_hz, first.robot.arm.controllers
    first.close()
    # without any that can, the task's own is refused with an error that names the robot's
    control = options.control or (next((c for c in CONTROLS if c in has), None) if steered else None)
    return make(task, options=replace(chosen, control=control, horizon=max(1, round(options.seconds * rate))))


def _device(word: str) -> Device:
    from manikin.errors import ConfigError, UnknownNameError
    from manikin.policy.choices import named_callable
    from manikin.teleop.device import Device, ScriptedDevice, square
    from manikin.teleop.gamepad import Gamepad
    from manikin.teleop.keyboard import Keyboard
    from manikin.teleop.spacemouse import SpaceMouse

    known: dict[str, Callable[[], Device]] = {
        "keyboard": Keyboard,
        "spacemouse": SpaceMouse,
        "gamepad": Gamepad,
        "scripted": lambda: ScriptedDevice(square()),
    }
    if word in known:
        return known[word]()
    if word.partition(":")[0] == "leader":
        return _leader(word)
    if ":" not in word:
        raise UnknownNameError(
            "device", word, [*known, "leader:KIND,port=PORT"], "Or give your own as module:function or file.py:Class."
        )
    made = named_callable(word, "device")()
    if not isinstance(made, Device):
        raise ConfigError(f"{word} returned a {type(made).__name__}; it must return a manikin.teleop.device.Device")
    return made


def _leader(word: str) -> Device:
    """``leader:so101_leader,port=/dev/ttyACM0,id=left,python=PATH,flip=wrist_roll+elbow_flex``."""
    from manikin.errors import ConfigError
    from manikin.teleop.leader import LeaderArm

    kind, *pairs = word.partition(":")[2].split(",")
    given = dict(pair.partition("=")[::2] for pair in pairs)
    valid = ("port", "id", "python", "flip")
    if "port" not in given or not given.keys() <= set(valid):
        raise ConfigError(
            f"a leader arm is leader:KIND,port=PORT with any of {', '.join(valid[1:])}; got {word!r}: "
            "leader:so101_leader,port=/dev/ttyACM0,id=left"
        )
    options: dict[str, Any] = {**given, "flip": given["flip"].split("+")} if "flip" in given else dict(given)
    return LeaderArm(kind, **options)
