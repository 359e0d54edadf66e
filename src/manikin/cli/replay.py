"""`manikin replay`: play recorded episodes again, verify them, observe them anew, convert their actions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.markup import escape

from manikin.cli.collecting.spread import FILE, merge_recordings, run_folder
from manikin.cli.common.options import PictureOptions, WarpOptions, register_robot_file
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, counted
from manikin.cli.spread.options import SpreadOptions, plain_options, same_options
from manikin.cli.spread.run import PER_ROW, spread

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.data.replay.verify import ReplayReport

__all__ = ["ReplayOptions", "main", "overrides", "run"]


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(WarpOptions, PictureOptions, SpreadOptions):
    """Options of `manikin replay`."""

    file: tyro.conf.Positional[Path]
    """The recording; one that was interrupted works as well."""
    check: bool = False
    """Compute everything again that is recorded and compare it, bit for bit; says what was not compared."""
    observe: str | None = None
    """Write a new recording with other observations: state_dict, rgb, rgb+depth, ..."""
    reward: str | None = None
    """Write a new recording with other rewards: normalized_dense, dense, sparse, none."""
    control: str | None = None
    """Write a new recording with the actions of another controller, which follows in simulation."""
    device: str | None = None
    """Play on another device (cpu, cuda, warp:cpu) and say how far it parts from the recording."""
    way: Annotated[Literal["actions", "states"], tyro.conf.arg(name="from")] = "actions"
    """actions: simulate. states: set the recorded states one by one, and observe."""
    out: Path | None = None
    """The new recording; by default beside the old one, named after what is new."""
    resume: bool = False
    """Go on with a new recording that was interrupted."""
    report: Path | None = None
    """Write per episode and step how far it parts, or the residual, as JSON; not with --from states."""
    num_envs: int = 16
    """How many episodes are played side by side; does not change the result."""
    episodes: tuple[int, ...] = ()
    """Numbers of the episodes to play; by default all."""
    physics_hz: float | None = None
    """With --control: physics rate of the new recording [Hz], by default the old one's."""
    stretch: float | None = None
    """With --control: how many times the horizon the new episodes may take, by default 4."""
    video: Path | None = None
    """Write a video of the first episodes (at most 6, side by side)."""
    robot: str | None = None
    """The file of a robot of your own that was recorded: my_arm.py, my_arm.urdf."""
    task: str | None = None
    """Where a task of your own is: file.py, file.py:Class or module:Class. It is run."""
    trust: bool = False
    """Run the file that the recording names for a task of your own, which lies in this folder or below."""


def main(options: Annotated[ReplayOptions, tyro.conf.arg(name="")]) -> int:
    """Play recorded episodes again: verify them, observe them anew, convert them to another controller or device."""
    return run(options)


def run(options: ReplayOptions) -> int:
    """Replay; 0 done (a check: exact, or not promised to be), 1 different or unhealthy, 130 interrupted."""
    from manikin.data.recording.read import read_episodes
    from manikin.eval.runner import interruptible
    from manikin.sim import torch_device

    options.check_spread()
    out = console()
    register_robot_file(options.robot)
    options.warp()  # a budget that is none is said before anything else
    with read_episodes(options.file) as file:
        header = file.needed_header()
        fingerprint, numbers = dict(header.fingerprint), list(dict.fromkeys(options.episodes or file.numbers))
        torch_device(options.device or str(fingerprint.get("device", "cpu")))
        wins = sum(bool(file.attributes(n)["success_once"]) for n in numbers)
        out.print(
            f"{header.task}, {counted(len(numbers), 'episode')} by {header.policy or 'unknown'}, {wins} successful"
        )
    _refuse(options)
    if options.on is not None:
        return _on_workers(options, numbers, out)
    words = "verifying" if options.check else "converting" if options.control else "playing"
    with interruptible() as stop, bar(out, words, len(numbers)) as advance:
        if options.control is not None:
            finish = _convert(options, numbers, advance, stop)
        elif _writes(options):
            finish = _observe(options, numbers, advance, stop)
        else:
            finish = _play(options, fingerprint, numbers, advance, stop)
    status = finish(out)
    if stop.requested:
        out.print("interrupted" + ("; go on with the same command and --resume" if _writes(options) else ""))
        return INTERRUPTED
    return status


Finish = Callable[["Console"], int]
"""Says what came out, when the progress bar is gone; gives the exit status."""


def _on_workers(options: ReplayOptions, numbers: list[int], out: Console) -> int:
    """Write a new recording with workers."""
    from manikin.data.recording.read import EpisodeFile
    from manikin.errors import ConfigError, DataError

    if options.control is not None or options.report is not None or not _writes(options):
        raise ConfigError(
            "--on writes a new recording of the same actions: --observe, --reward, --camera, --size or --out. Leave it "
            "out with --control and --report, and to verify or film"
        )
    target = _target(options).absolute()
    folder = run_folder(target)
    if target.exists() and not folder.exists():
        if not options.resume and options.on != "slurm-array":
            raise DataError(f"{target} exists; choose another name, or resume it")
        with EpisodeFile(target) as file:
            numbers = [n for n in numbers if n not in file.numbers]
    asked = dataclasses.replace(options, file=options.file.absolute(), out=None, resume=False)
    ledger, complete = spread(
        out,
        options,
        folder=folder,
        work="manikin.cli.workers.replaying:ReplayWork",
        settings=plain_options(asked),
        same=same_options(asked, "report", "video"),
        numbers=sorted(numbers),
        size=PER_ROW * options.num_envs,
        resume=options.resume,
        words="playing",
        device=options.device or "cpu",
        files=[options.task, options.robot],
    )
    if not complete:
        return OK if options.on == "slurm-array" else INTERRUPTED
    with ledger.merging() as mine:
        if not mine:
            return OK
        manifests, failed = ledger.manifests(), ledger.failed
        merge_recordings(target, [place / FILE for _, place in ledger.results()])
    exact = [came for manifest in manifests for came in manifest.facts["exact"].values()]
    if exact:
        out.print(f"{sum(exact)} of {len(exact)} episodes reproduced bit for bit")
    out.print(f"written: {target}", soft_wrap=True)
    unhealthy = any(manifest.facts["unhealthy"] for manifest in manifests)
    return NOT_GOOD if failed or unhealthy or (options.check and not all(exact)) else OK


def _writes(options: ReplayOptions) -> bool:
    """Whether a new recording is asked for."""
    return any(
        x is not None for x in (options.observe, options.reward, options.control, options.out, options.size)
    ) or (bool(options.camera))


def _refuse(options: ReplayOptions) -> None:
    """Raise ConfigError for options that do not go together."""
    from manikin.errors import ConfigError

    if options.way == "states" and (options.check or options.control is not None):
        raise ConfigError(
            "--from states sets recorded states and simulates nothing. Leave out --check and --control, or write "
            "--from actions"
        )
    if options.way == "states" and not _writes(options):
        raise ConfigError("--from states writes a new recording; add --observe WORD, --reward KIND or --out FILE")
    if options.video is not None and _writes(options):
        raise ConfigError(
            "--video films the recorded episodes and cannot be combined with a new recording; afterwards run: "
            "manikin replay NEW.h5 --video FILE"
        )
    if options.check and options.control is not None:
        raise ConfigError(
            "--check compares with the recording, whose actions --control replaces. Leave out --check; afterwards "
            "run: manikin replay NEW.h5 --check"
        )
    compared = options.check or options.device is not None or (_writes(options) and options.way == "actions")
    for word, given, fits, what in (
        ("--report", options.report, compared, "--check, --device, or a new recording from actions"),
        ("--budget", options.budget, options.way == "actions", "--from actions"),
        ("--deterministic", options.deterministic or None, options.way == "actions", "--from actions"),
        ("--stretch", options.stretch, options.control is not None, "--control"),
        ("--physics-hz", options.physics_hz, options.control is not None, "--control"),
        (
            "--resume",
            options.resume or None,
            _writes(options),
            "a new recording: --observe, --reward, --control or --out",
        ),
    ):
        if given is not None and not fits:
            raise ConfigError(f"{word} is only valid with {what}")
    if options.report is not None:  # said now, not after hours
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.open("a").close()


def overrides(options: ReplayOptions) -> dict[str, Any]:
    """Options of ``manikin.make`` that win over the recorded ones."""
    chosen = {k: getattr(options, k) for k in ("observe", "reward", "device", "physics_hz", "task")}
    chosen["vision"] = options.vision()
    chosen["trust"] = options.trust or None
    return {k: v for k, v in chosen.items() if v is not None} | options.warp()


def _target(options: ReplayOptions) -> Path:
    """Where the new recording goes."""
    if options.out is not None:
        return options.out
    new = [options.control, options.observe, options.reward, options.device]
    words = "-".join(w.replace("/", "_").replace(":", "-") for w in new if w) or "again"
    return options.file.with_name(f"{options.file.stem}.{words}.h5")


def _play(
    options: ReplayOptions, fingerprint: dict[str, Any], numbers: list[int], advance: Callable[[], None], stop: Any
) -> Finish:
    """As recorded, or on another device."""
    from manikin.data.replay.environment import make_env
    from manikin.data.replay.verify import replay
    from manikin.eval.film import Film, write_film
    from manikin.render.api import make_renderer

    check = options.check or options.device is not None
    env = make_env(fingerprint, min(options.num_envs, len(numbers)), **overrides(options))
    video = None
    try:
        films = []
        if options.video is not None:
            renderer = make_renderer(options.renderer or "auto", samples=2)
            films = [Film(env, renderer, numbers=numbers[:6], width=320, height=320)]
        report = replay(
            options.file,
            env,
            check=check,
            numbers=numbers,
            observers=films,
            on_episode=lambda episode: advance(),
            stop=stop,
        )
        for film in films:
            reels = [film.reels[n] for n in numbers[:6] if n in film.reels]
            assert options.video is not None
            video = write_film(options.video, reels, env.control_hz)
            film.renderer.close()
    finally:
        env.close()

    def finish(out: Console) -> int:
        if video is not None:
            out.print(f"video: {video}", soft_wrap=True)
        return _tell(options, report, out, check=check)

    return finish


def _observe(options: ReplayOptions, numbers: list[int], advance: Callable[[], None], stop: Any) -> Finish:
    """Into a new recording."""
    from manikin.data.replay.rerecord import rerecord

    target = _target(options)
    report = rerecord(
        options.file,
        target,
        way=options.way,
        numbers=numbers,
        num_envs=options.num_envs,
        resume=options.resume,
        on_episode=advance,
        stop=stop,
        **overrides(options),
    )

    def finish(out: Console) -> int:
        status = OK if report is None else _tell(options, report, out, check=True)
        out.print(f"written: {target}", soft_wrap=True)
        return status if options.check or (report is not None and report.unhealthy) else OK

    return finish


def _convert(options: ReplayOptions, numbers: list[int], advance: Callable[[], None], stop: Any) -> Finish:
    """To another controller."""
    from manikin.data.retarget.conversion import retarget

    assert options.control is not None
    target = _target(options)
    report = retarget(
        options.file,
        target,
        control=options.control,
        numbers=numbers,
        num_envs=options.num_envs,
        stretch=4.0 if options.stretch is None else options.stretch,
        resume=options.resume,
        on_episode=lambda episode: advance(),
        stop=stop,
        **overrides(options),
    )

    def finish(out: Console) -> int:
        out.print(escape(report.summary()), soft_wrap=True)
        _write(options, [dataclasses.asdict(e) for e in report.episodes], out)
        out.print(f"written: {target}", soft_wrap=True)
        return NOT_GOOD if report.unhealthy else OK

    return finish


def _tell(options: ReplayOptions, report: ReplayReport, out: Console, *, check: bool) -> int:
    """Say how a replay compares, or if it was not to, whether it was healthy; its exit status."""
    if not check:
        if report.unhealthy:
            out.print(escape(report.unhealthy_words()), soft_wrap=True)
        return NOT_GOOD if report.unhealthy else OK
    out.print(escape(report.summary()), soft_wrap=True)
    _write(options, [dataclasses.asdict(e) for e in report.episodes], out)
    return OK if report.ok else NOT_GOOD


def _write(options: ReplayOptions, episodes: list[dict[str, Any]], out: Console) -> None:
    if options.report is not None:
        options.report.write_text(json.dumps(episodes, default=lambda array: array.tolist()) + "\n")
        out.print(f"per step: {options.report}", soft_wrap=True)
