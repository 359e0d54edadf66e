"""`manikin teleop`: drive a robot by hand in the browser and keep the episodes."""

from __future__ import annotations

import contextlib
import math
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
    from manikin.teleop.loop import TeleopLoop
    from manikin.view.hand import HandSession
    from manikin.view.stream import StreamViewer

__all__ = ["TeleopOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class TeleopOptions(TaskOptions):
    """Options of `manikin teleop`."""

    otherwise = OTHERWISE | {"device"}

    task: tyro.conf.Positional[str] = "PickCube-v2"
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    device: str = "keyboard"
    """keyboard (keys and mouse in the browser), headset (WebXR; with options as in
    headset:scale=0.5,turn=90,hand=left,smooth=off,mask=torso/0.5), spacemouse, gamepad, scripted (shows what happens,
    without hands), a leader arm as leader:so101_leader,port=/dev/ttyACM0,id=NAME,python=PATH (the Python that has
    LeRobot), or a Device of your own as module:function or file.py:Class."""
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
    """Address to listen on. Others than this machine's own can be reached by others, who need the key in the
    address that is printed. A page for a headset is encrypted there."""
    certificate: Path | None = None
    """PEM file with a key and a certificate of your own; by default a headset's page has one that is made once and
    signed by itself."""
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
    from manikin.teleop.loop import TeleopLoop

    if not options.seconds > 0:
        raise ConfigError(f"--seconds must be positive; got {options.seconds}")
    device = _device(options.device)
    env = _env(options, device)
    loop = None
    try:
        with device:
            path = options.out or Path("runs") / f"{env.task.id}-teleop.h5"
            loop = TeleopLoop(env, device, out=path, resume=options.resume, seed=options.seed, speed=options.speed)
            session, viewer, notes = _served(loop, options)
            out = console()
            try:
                what = f"{env.task.id}, {env.controller.name}, {device.name}"
                out.print(f"[bold]{viewer.link}[/]  {what}; Ctrl+C to quit", soft_wrap=True)
                for note in notes:
                    out.print(note, soft_wrap=True)
                ready(viewer)
                if options.open and (sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY")):
                    webbrowser.open(viewer.link)
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


def _served(loop: TeleopLoop, options: TeleopOptions) -> tuple[HandSession, StreamViewer, list[str]]:
    """What shows the loop and who serves it, and what else there is to say of that."""
    from manikin.render import make_renderer
    from manikin.view.hand import HandSession
    from manikin.view.headset.certificate import encrypted, fingerprint, tls_context
    from manikin.view.headset.session import HeadsetSession
    from manikin.view.headset.viewer import HeadsetViewer
    from manikin.view.picture import Painter
    from manikin.view.stream import StreamViewer

    wears = loop.device.hands is not None
    pem = encrypted(options.host, options.certificate) if wears or options.certificate else None
    tls = None if pem is None else tls_context(pem)
    session = HeadsetSession(loop) if wears else HandSession(loop)
    painter = Painter(session, make_renderer(options.renderer), width=options.size[0], height=options.size[1])
    where: dict[str, Any] = {"host": options.host, "port": options.port, "tls": tls}
    if not isinstance(session, HeadsetSession):
        return session, StreamViewer(session, painter, **where), []
    viewer = HeadsetViewer(session, painter, **where)
    notes = [f"in the headset: [bold]{viewer.headset_url}[/]"]
    if pem is not None:
        notes.append(f"its certificate has the SHA-256 fingerprint {fingerprint(pem)}; the browser asks once")
    return session, viewer, notes


def _env(options: TeleopOptions, device: Device) -> BatchEnv:
    """The task, with time enough and a controller that the device can steer."""
    from manikin.env.make import make
    from manikin.teleop.pilot import CONTROLS

    task = load_task(options.task)
    chosen = options.env_options(task, autoreset="disabled")
    first = make(task, options=replace(chosen, control=None))
    rate, has = first.control_hz, first.robot.arm.controllers
    first.close()
    # without any that can, the task's own is refused with an error that names the robot's
    wanted = () if device.joints else ("joint_pos",) if device.hands is not None else CONTROLS
    control = options.control or next((c for c in wanted if c in has), None)
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
    if word.partition(":")[0] == "headset":
        return _headset(word)
    if ":" not in word:
        raise UnknownNameError(
            "device",
            word,
            [*known, "headset", "leader:KIND,port=PORT"],
            "Or give your own as module:function or file.py:Class.",
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


def _headset(word: str) -> Device:
    """``headset:scale=0.5,turn=90,hand=left,smooth=off,mask=torso/0.5+base/0.1``; ``turn`` is in degrees."""
    from manikin.errors import ConfigError, UnknownNameError
    from manikin.teleop.device import HandOptions
    from manikin.teleop.headset.headset import Headset

    pairs = [pair.partition("=") for pair in word.partition(":")[2].split(",") if pair]
    valid = ("scale", "turn", "hand", "smooth", "mask")
    given: dict[str, Any] = {}
    smooth = True
    for name, equals, value in pairs:
        if name not in valid:
            raise UnknownNameError("option of a headset", name, valid)
        try:
            if name == "smooth":
                smooth = {"on": True, "off": False}[value]
            elif name == "mask":
                parts = [part.partition("/") for part in value.split("+")]
                given["masks"] = {group: float(weight) for group, _, weight in parts}
            elif name == "hand":
                given[name] = value
            else:
                given[name] = math.radians(float(value)) if name == "turn" else float(value)
        except (ValueError, KeyError):
            raise ConfigError(
                f"{name}{equals}{value} of a headset cannot be read; write it as in "
                "headset:scale=0.5,turn=90,hand=left,smooth=off,mask=torso/0.5+base/0.1"
            ) from None
    return Headset(HandOptions(**given), smooth=smooth)
