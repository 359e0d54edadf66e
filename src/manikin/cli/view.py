"""`manikin view`: watch and steer a task in the browser, or look at a recording."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import RendererWord, TaskOptions, load_task
from manikin.cli.common.terminal import OK, console, counted

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv
    from manikin.view.session import Session

__all__ = ["ViewOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class ViewOptions(TaskOptions):
    """Options of `manikin view`."""

    task: tyro.conf.Positional[str] = "PickCube-v2"
    """Task id (PickCube-v2), module:Class or file.py:Class. Or a recording to look at: run.h5, or a LeRobot dataset's
    folder; then only port, host and open count."""
    control: Annotated[str | None, documented("control")] = None
    policy: str = "expert"
    """expert, planner, random, hold, one that comes with manikin, a training run's folder, a file (policy.safetensors,
    policy.pt2), ws://host:port, or your own as module:function or file.py:function."""
    observe: Annotated[
        str | None, documented("observe", "By default what a trained policy was trained with, else state.")
    ] = None
    num_envs: int = 4
    """How many environments run side by side."""
    seed: int = 0
    """Environment i begins with the seed SEED + i."""
    viewer: Literal["stream", "studio"] = "stream"
    """stream: pictures made here, for any browser. studio: MuJoCo Studio draws in the browser, which needs WebGL 2."""
    port: int = 0
    """Port of the page; 0 is the first free one from 8080 on."""
    host: str = "127.0.0.1"
    """Address to listen on. Others than this machine's own can be reached by others, who need the key in the
    address that is printed."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"
    camera: str | None = None
    """Camera of the scene to look through in stream and film (see manikin info); by default the one for people."""
    size: tuple[int, int] = (640, 480)
    """Width and height of one environment's picture in stream and film [pixels]."""
    paused: bool = False
    """Begin paused."""
    open: bool = False
    """Open the page in this machine's browser."""
    film: Path | None = None
    """Instead of a page: film one episode of every environment into this file (.mp4)."""


def main(options: Annotated[ViewOptions, tyro.conf.arg(name="")]) -> int:
    """Watch and steer a task in the browser, or look at a recording's episodes."""
    return run(options)


def run(options: ViewOptions, *, ready: Callable[[Any], None] = lambda viewer: None) -> int:
    """Serve until interrupted, or film. ``ready`` is told the viewer (which has ``url``) once it serves."""
    from manikin.view.sources import is_recording

    if is_recording(options.task):
        return _recording(options, ready)
    from manikin.env.make import make
    from manikin.policy.choices import observation_options, policy_maker
    from manikin.view.hold import HoldPolicy
    from manikin.view.session import Session

    maker = HoldPolicy if options.policy == "hold" else policy_maker(options.policy, also=("hold",))
    task = load_task(options.task)
    told = {} if options.observe else observation_options(options.policy)
    settings = options.env_options(task, **{"num_envs": options.num_envs, "autoreset": "disabled", **told})
    env = make(task, options=settings)
    try:
        if options.camera is not None:
            env.camera(options.camera)  # raises if there is none of that name
        if options.film is not None:
            return _film(options, env, maker(env))
        session = Session(env, maker, seed=options.seed, playing=not options.paused)
        viewer = _viewer(options, session)
        try:
            hint = "Blank or slow in your browser? It needs WebGL 2; --viewer stream works in any."
            hint = hint if options.viewer == "studio" else ""
            _serve(options, viewer, f"{env.task.id}, {counted(env.num_envs, 'environment')}", ready, hint=hint)
        finally:
            viewer.close()
    finally:
        env.close()
    return OK


def _serve(options: ViewOptions, viewer: Any, what: str, ready: Callable[[Any], None], *, hint: str = "") -> None:
    """Say where, and serve until interrupted."""
    out = console()
    out.print(f"[bold]{viewer.link}[/]  {what}; Ctrl+C to quit", soft_wrap=True)
    if hint:
        out.print(hint)
    ready(viewer)
    if options.open and (sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY")):
        webbrowser.open(viewer.link)
    try:
        viewer.run()
    except KeyboardInterrupt:
        out.print("closed")


def _recording(options: ViewOptions, ready: Callable[[Any], None]) -> int:
    from manikin.errors import ConfigError
    from manikin.view.recording import RecordingViewer
    from manikin.view.sources import open_source

    if options.film is not None:
        raise ConfigError("--film is for tasks; manikin replay FILE --video films a recording")
    source = open_source(options.task)
    viewer = RecordingViewer(source, host=options.host, port=options.port)
    try:
        about = source.about()
        _serve(options, viewer, f"{options.task}, {counted(len(about['episodes']), 'episode')}", ready)
    finally:
        viewer.close()
    return OK


def _viewer(options: ViewOptions, session: Session) -> Any:
    from manikin.errors import ConfigError

    if options.viewer == "studio":
        if options.camera is not None:
            raise ConfigError("--camera is for --viewer stream and --film; Studio has its own menu of cameras")
        try:
            from manikin.view.studio import StudioViewer
        except ImportError as error:
            raise ConfigError(
                f"MuJoCo Studio is not installed ({error}); use --viewer stream, which does not need it"
            ) from error
        return StudioViewer(session, host=options.host, port=options.port)
    from manikin.render import make_renderer
    from manikin.view.picture import Painter
    from manikin.view.stream import StreamViewer

    painter = Painter(session, make_renderer(options.renderer), width=options.size[0], height=options.size[1])
    if options.camera is not None:
        painter.ask("camera", value=options.camera)
    return StreamViewer(session, painter, host=options.host, port=options.port)


def _film(options: ViewOptions, env: BatchEnv, policy: Any) -> int:
    from manikin.cli.common.terminal import bar
    from manikin.render import make_renderer
    from manikin.view.recorder import FilmRecorder

    assert options.film is not None
    out, renderer = console(), make_renderer(options.renderer, samples=2)
    width, height = options.size
    recorder = FilmRecorder(env, options.film, renderer, width=width, height=height, camera=options.camera)
    with bar(out, f"filming {env.task.id}", env.horizon) as advance, recorder as film:
        wins = film.play(policy, seeds=range(options.seed, options.seed + env.num_envs), on_step=advance)
    renderer.close()
    out.print(f"{options.film}: {counted(film.frames, 'frame')}, {wins} of {env.num_envs} succeeded")
    return OK
