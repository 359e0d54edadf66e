"""`manikin collect`: run a policy and record its episodes."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import ROBOT_FILES, On, PictureOptions, TaskOptions, WarpOptions, file_name, load_task
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, counted

if TYPE_CHECKING:
    from manikin.data.recorder import Recorder

__all__ = ["CollectOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class CollectOptions(TaskOptions, WarpOptions, PictureOptions):
    """Options of `manikin collect`."""

    task: tyro.conf.Positional[str]
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    episodes: int = 100
    """How many episodes."""
    num_envs: int = 16
    """How many run in parallel; does not change what is collected."""
    policy: str = "expert"
    """expert, planner, random, policy.pt2 (a network by torch.export), ws://host:port (openpi's protocol), or your own
    as module:function or file.py:function."""
    out: Path | None = None
    """The recording; by default runs/TASK-POLICY.h5."""
    seed: int = 0
    """Episode k has the seed SEED + k. Evaluation protocols use seeds from 1,000,000."""
    keep: str = "all"
    """all, success (at any time), failure, or label:MODE,MODE with modes of the task (see manikin info)."""
    pushes: float = 0.0
    """Chance per step that the arm is pushed off its way for 3 steps. Such recordings teach a policy to come back."""
    observations: bool = False
    """Also record flat observations. Observations with names are recorded without this."""
    pictures: On = True
    """Leave out camera pictures. `manikin replay --observe` can render them again."""
    states: On = True
    """Leave out the physics state of every step. The file is smaller, but a failed replay cannot say how far it
    deviates."""
    resume: bool = False
    """Continue a recording that was interrupted."""
    shard: str | None = None
    """I/K: run every K-th episode from the I-th (0/4, 1/4, ...), one process each, into one recording."""
    control: Annotated[str | None, documented("control")] = None
    observe: Annotated[
        str | None, documented("observe", "By default what a trained policy was trained with, else state.")
    ] = None
    reward: Annotated[str | None, documented("reward")] = None
    control_hz: Annotated[float | None, documented("control_hz")] = None
    check_disk: On = True
    """Begin even where the disk has no room for episodes that all last to the horizon."""
    device: Annotated[str | None, documented("device")] = None
    physics_hz: Annotated[float | None, documented("physics_hz")] = None
    horizon: Annotated[int | None, documented("horizon")] = None


def main(options: Annotated[CollectOptions, tyro.conf.arg(name="")]) -> int:
    """Run a policy on a task and keep its episodes, each on disk as soon as it ends."""
    return run(options)


def run(options: CollectOptions) -> int:
    """Collect; 0 done, 1 with unhealthy or lost episodes, 130 interrupted (what is finished is kept)."""
    from rich.markup import escape

    from manikin.assets.python_file import class_place
    from manikin.data.recorder import Recorder, largest_episode
    from manikin.data.recording.write import check_room
    from manikin.env.make import make
    from manikin.env.observe import Observation
    from manikin.env.task import Task
    from manikin.errors import ConfigError
    from manikin.eval.runner import interruptible, run_episodes
    from manikin.policy.choices import observation_options, policy_maker
    from manikin.policy.pushes import PushedPolicy, Pushes

    if not 1 <= options.episodes < 2**31:
        raise ConfigError(f"--episodes must be at least 1 and less than 2^31, got {options.episodes}")
    shard, shards = _shard(options.shard)
    out, maker = console(), policy_maker(options.policy)
    task, told = load_task(options.task), {} if options.observe else observation_options(options.policy)
    observation = Observation.of(told.get("observe") or (options.observe or "state").replace(",", "+"))
    if (vision := options.vision()) is not None and not observation.needs:
        raise ConfigError(
            f"--camera, --size and --renderer need pictures, but --observe is {observation.plain!r}; write for example "
            "--observe rgb"
        )
    if "vision" in told:
        vision = told["vision"] if vision is None else vision.over(told["vision"])
    named = options.pictures if observation.needs else not observation.flat
    shown = options.observations or named
    settings = options.env_options(
        task,
        num_envs=min(options.num_envs, options.episodes),
        observe=observation,
        reward=options.reward or ("sparse" if task.reward is Task.reward else "normalized_dense"),
        vision=vision,
        autoreset="disabled",
    )
    env = make(task, options=settings)
    try:
        policy, about = maker(env), {}
        if options.pushes:
            pushes = Pushes(options.pushes)
            policy, about = PushedPolicy(policy, env, pushes), {"pushes": pushes.plain}
        name = str(getattr(policy, "name", options.policy))
        path = options.out or Path("runs") / f"{file_name(f'{env.task.id}-{name}')}.h5"
        if options.check_disk:
            # the parts, and beside them for a moment the file they are merged into
            most = largest_episode(env, observations=shown, states=options.states)
            check_room(path, 2 * most * len(range(shard, options.episodes, shards)))
        recorder = Recorder(
            env,
            path,
            policy=name,
            observations=shown,
            states=options.states,
            keep=options.keep,
            first_seed=options.seed,
            resume=options.resume or shards > 1,
            about=about,
        )
        seeds = range(options.seed, options.seed + options.episodes)
        missing = [n for n in range(shard, options.episodes, shards) if n not in recorder.finished]
        with interruptible() as stop, bar(out, f"collecting {env.task.id}", len(missing)) as advance, recorder:
            done = run_episodes(
                env,
                policy,
                seeds,
                numbers=missing,
                observers=[recorder],
                on_result=lambda result: advance(),
                stop=stop,
            )
            lost = _closed(recorder)
    finally:
        env.close()
    wins = sum(r.success_once for r in done.results)
    rate = done.env_steps / max(done.seconds, 1e-9)
    least = "at least " if shards > 1 else ""  # the other shards may have written more meanwhile
    size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else "nothing"
    out.print(
        f"{counted(len(done.results), 'episode')}, {wins} successful, {rate:,.0f} control steps/s; "
        f"{path} contains {least}{counted(len(recorder.kept), 'episode')} ({size})",
        soft_wrap=True,
    )
    if lost:
        out.print(f"[red]{escape(lost)}[/]", soft_wrap=True)
        return NOT_GOOD
    if done.interrupted:
        out.print("interrupted; repeat the command with --resume")
        return INTERRUPTED
    if done.unhealthy:
        out.print(f"[red]{escape(done.unhealthy_words())}[/]", soft_wrap=True)
        return NOT_GOOD
    if recorder.kept:
        more = f" --task {shlex.quote(options.task)}" if class_place(task) else ""
        file = (options.robot or "").partition("+")[0]
        more += f" --robot {shlex.quote(file)}" if file.lower().endswith(ROBOT_FILES) else ""
        out.print(f"verify: manikin replay {shlex.quote(str(path))} --check{more}", soft_wrap=True)
    return OK


def _closed(recorder: Recorder) -> str:
    """Complete the recording. Return a sentence about files that something has removed, or an empty string."""
    from manikin.errors import DataError

    try:
        recorder.close()
    except DataError as error:
        if not recorder.lost:
            raise
        return str(error)
    return ""


def _shard(word: str | None) -> tuple[int, int]:
    """(0, 4) for ``0/4``."""
    from manikin.errors import ConfigError

    if word is None:
        return 0, 1
    first, _, count = word.partition("/")
    if not (first.isdigit() and count.isdigit() and int(first) < int(count)):
        raise ConfigError(f"--shard {word!r} is not I/K with I from 0 to K-1, for example 0/4")
    return int(first), int(count)
