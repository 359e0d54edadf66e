"""`manikin demo`: the main job from one end to the other."""

from __future__ import annotations

import importlib.util
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import RendererWord, TaskOptions, load_task
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, counted, rates_table, show_table

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.env.interface import BatchEnv
    from manikin.eval.evaluation import Evaluation
    from manikin.render.renderer import Renderer

__all__ = ["DemoOptions", "main", "run"]

HELD_OUT = 1_000_000  # evaluation seeds start here, collection counts from 0


@dataclass(frozen=True, kw_only=True)
class DemoOptions(TaskOptions):
    """Options of `manikin demo`."""

    task: str = "PickCube-v2"
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    out: Path = Path("demo")
    """Folder for everything that is written."""
    episodes: int = 32
    """Expert episodes to collect."""
    held_out: int = 64
    """Episodes to evaluate on."""
    num_envs: int = 16
    """How many run side by side."""
    render_s: float = 40.0
    """Most time to spend on the video's pictures [s]."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"


def main(options: Annotated[DemoOptions, tyro.conf.arg(name="")]) -> int:
    """Collect expert episodes, verify them, evaluate the expert, and write a video and a page of report."""
    return run(options)


def run(options: DemoOptions) -> int:
    """The demo; 0 when every episode replays bit for bit and the evaluation is healthy, else 1; 130 interrupted."""
    from manikin.data.replay.verify import replay
    from manikin.env.make import make
    from manikin.eval.runner import interruptible
    from manikin.render.api import make_renderer

    began, out = time.perf_counter(), console()
    out.print(f"[bold]manikin demo[/] {options.task}" + (f" with {options.robot}" if options.robot else ""))
    task = load_task(options.task)
    env = make(task, options=options.env_options(task, num_envs=options.num_envs, autoreset="disabled"))
    options.out.mkdir(parents=True, exist_ok=True)
    recording = options.out / "episodes.h5"
    with interruptible() as stop:
        try:
            finished = _collect(env, options, recording, out, stop)
        finally:
            env.close()
        if stop():
            out.print(f"interrupted; {counted(finished, 'finished episode')} in {recording}")
            return INTERRUPTED
        with bar(out, "2/4 replaying bit for bit", options.episodes) as advance:
            checked = replay(recording, num_envs=options.num_envs, on_episode=lambda e: advance(), stop=stop)
        renderer = make_renderer(options.renderer, samples=2)
        evaluation = None if stop() else _evaluate(options, options.chosen(task), renderer, out, stop)
        if evaluation is None or stop():
            out.print(f"interrupted; the recording {recording} is complete")
            return INTERRUPTED
        video, spent = _film(options, recording, renderer, out, stop)
        renderer.close()
    wins = sum(r.success_once for t in evaluation.tasks for r in t.results)
    out.print()
    show_table(out, rates_table(evaluation))
    out.print(f"\nreplay      {checked.summary()}", soft_wrap=True)
    out.print(f"protocol    {options.out / 'protocol.toml'}  sha256 {evaluation.protocol.hash[:16]}")
    out.print(f"recording   {recording}  {recording.stat().st_size / 1e6:.1f} MB")
    if video is None:
        out.print("video       not written, PyAV is missing: pip install manikin\\[video]")
    else:
        out.print(f"video       {video}  ({renderer.name}, {spent:.0f} s)")
    out.print(f"report      {options.out / 'report.html'}")
    out.print(f"\n{wins} of {options.held_out} held-out episodes succeeded; {time.perf_counter() - began:.0f} s in all")
    if stop():
        out.print("interrupted while filming: the video is not complete")
        return INTERRUPTED
    return OK if checked.ok and evaluation.healthy else NOT_GOOD


def _collect(env: BatchEnv, options: DemoOptions, recording: Path, out: Console, stop: Any) -> int:
    from manikin.data.recorder import Recorder
    from manikin.data.recording.format import parts_folder
    from manikin.eval.runner import run_episodes
    from manikin.policy.expert import ExpertPolicy

    recording.unlink(missing_ok=True)  # of an earlier demo
    for part in parts_folder(recording).glob("*"):
        part.unlink()
    recorder = Recorder(env, recording, policy="expert", resume=True)
    with bar(out, "1/4 collecting", options.episodes) as advance, recorder:
        run_episodes(
            env,
            ExpertPolicy(env),
            range(options.episodes),
            observers=[recorder],
            on_result=lambda result: advance(),
            stop=stop,
        )
    return len(recorder.finished)


def _evaluate(
    options: DemoOptions, chosen: dict[str, Any], renderer: Renderer, out: Console, stop: Any
) -> Evaluation | None:
    from manikin.eval.evaluation import evaluate
    from manikin.eval.pages.report import write_html
    from manikin.eval.protocol import Protocol, load_protocol
    from manikin.eval.report import as_dict, write_report
    from manikin.policy.expert import ExpertPolicy

    file = options.out / "protocol.toml"
    protocol = Protocol(
        name=options.task.rpartition("-v")[0] or options.task,
        description=f"{options.task} on {options.held_out} starts that collection has not seen",
        tasks=(options.task,),
        seeds=tuple(range(HELD_OUT, HELD_OUT + options.held_out)),
        robot=chosen.get("robot"),
        config={options.task: chosen["config"]} if "config" in chosen else {},
    )
    file.write_text(protocol.to_toml(), encoding="utf-8")
    with bar(out, "3/4 evaluating", options.held_out) as advance:
        evaluation = evaluate(
            load_protocol(file),
            ExpertPolicy,
            num_envs=options.num_envs,
            film=4,
            renderer=renderer,
            on_result=lambda task, result: advance(),
            stop=stop,
        )
    if evaluation.interrupted:
        return None
    command = shlex.join(["manikin", "eval", str(file), "--policy", "expert"])
    report = as_dict(evaluation, command=command)
    write_report(report, options.out / "report.json")
    write_html(report, options.out / "report.html", evaluation.reels)
    return evaluation


def _film(
    options: DemoOptions, recording: Path, renderer: Renderer, out: Console, stop: Any
) -> tuple[Path | None, float]:
    """A video of the first collected episodes, side by side; as many pictures as the time allows."""
    from manikin.data.recording.read import read_episodes
    from manikin.data.replay.environment import make_env
    from manikin.data.replay.verify import replay
    from manikin.eval.film import Film, stride_for, write_film

    if importlib.util.find_spec("av") is None:
        return None, 0.0
    with read_episodes(recording) as file:
        assert file.header is not None
        numbers = file.numbers[:6]
        steps = sum(int(file.attributes(n)["length"]) + 1 for n in numbers)
        fingerprint = file.header.fingerprint
    env = make_env(fingerprint, len(numbers))
    try:
        env.reset(seed=0)
        film = Film(env, renderer, width=320, height=320)
        film.every = every = stride_for(film.cost(), steps, options.render_s)
        with bar(out, "4/4 filming", len(numbers)) as advance:
            replay(
                recording,
                env,
                check=False,
                numbers=numbers,
                observers=[film],
                on_episode=lambda e: advance(),
                stop=stop,
            )
        fps = env.control_hz / every
        path = write_film(options.out / "video.mp4", [film.reels[n] for n in numbers], fps)
    finally:
        env.close()
    return path, film.seconds
