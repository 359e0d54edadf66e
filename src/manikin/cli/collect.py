"""`manikin collect`: run a policy and keep its episodes."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from manikin.cli.chosen import On, PictureOptions, WarpOptions, chosen_task
from manikin.cli.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console

__all__ = ["CollectOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class CollectOptions(WarpOptions, PictureOptions):
    """Options of `manikin collect`."""

    task: tyro.conf.Positional[str]
    """Task id (PickCube-v1), module:Class or file.py:Class."""
    episodes: int = 100
    """How many episodes."""
    num_envs: int = 16
    """How many run side by side; does not change what is collected."""
    policy: str = "expert"
    """expert, random, policy.pt2 (a network by torch.export), ws://host:port (openpi's protocol), or your own as
    module:function or file.py:function."""
    out: Path | None = None
    """The recording; by default runs/TASK-POLICY.h5."""
    first_seed: int = 0
    """Episode k has the seed FIRST_SEED + k. Evaluation protocols use seeds from 1,000,000."""
    keep: str = "all"
    """all, success (at any time), failure, or label:MODE,MODE with modes of the task (see manikin info)."""
    observations: bool = False
    """Also keep what the policy was shown where that is one row of numbers; what has names is kept without this."""
    pictures: On = True
    """Do not keep what cameras showed the policy; it can be had again by manikin replay --observe."""
    states: On = True
    """Leave out the physics state of every step, by which a failed replay says how far it is off: a smaller file."""
    resume: bool = False
    """Continue a recording that was interrupted."""
    shard: str | None = None
    """I/K: run every K-th episode from the I-th (0/4, 1/4, ...), one process each, into one recording."""
    robot: str | None = None
    """Robot word, by default the task's first."""
    control: str | None = None
    """Controller, by default the task's."""
    observe: str = "state"
    """What the policy is shown: state, or outputs of cameras and state joined by + or a comma: rgb, rgb+depth+state."""
    reward: str | None = None
    """normalized_dense, dense, sparse, none; by default normalized_dense, or sparse where the task has no dense one."""
    control_hz: float | None = None
    """Control rate [Hz], by default the task's."""
    check_disk: On = True
    """Begin even where the disk has no room for episodes that all last to the horizon."""
    device: str | None = None
    """cpu, cuda, cuda:1 or warp:cpu."""
    physics_hz: float | None = None
    """Physics rate [Hz], by default the task's."""
    horizon: int | None = None
    """Longest episode [control steps], by default the task's."""


def main(options: Annotated[CollectOptions, tyro.conf.arg(name="")]) -> int:
    """Run a policy on a task and keep its episodes, each on disk as soon as it ends."""
    return run(options)


def run(options: CollectOptions) -> int:
    """Collect; 0 done, 1 with unhealthy episodes, 130 interrupted (what is finished is kept)."""
    from rich.markup import escape

    from manikin.data.record import Recorder, check_room, largest_episode
    from manikin.env.observe import CAMERA_WORDS, CLOUD_WORDS
    from manikin.env.registry import make
    from manikin.env.task import Task
    from manikin.errors import ConfigError
    from manikin.eval.runner import interruptible, run_episodes
    from manikin.policy.choices import policy_maker

    if options.episodes < 1:
        raise ConfigError(f"--episodes must be at least 1, got {options.episodes}")
    shard, shards = _shard(options.shard)
    out, maker = console(), policy_maker(options.policy)
    settings: dict[str, Any] = {
        k: getattr(options, k)
        for k in ("robot", "control", "observe", "device", "control_hz", "physics_hz", "horizon")
        if getattr(options, k) is not None
    }
    settings |= options.warp()
    settings["observe"] = options.observe.replace(",", "+")
    task = chosen_task(options.task)
    settings["reward"] = options.reward or ("sparse" if task.reward is Task.reward else "normalized_dense")
    seeing = bool({*settings["observe"].split("+")} & {*CAMERA_WORDS, *CLOUD_WORDS})
    if (vision := options.vision()) is not None:
        if not seeing:
            raise ConfigError("--camera, --size and --renderer are for pictures: --observe rgb, for example")
        settings["vision"] = vision
    named = options.pictures if seeing else settings["observe"] not in ("state", "policy")
    shown = options.observations or named
    env = make(task, min(options.num_envs, options.episodes), autoreset="disabled", **settings)
    try:
        policy = maker(env)
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
            first_seed=options.first_seed,
            resume=options.resume or shards > 1,
        )
        seeds = range(options.first_seed, options.first_seed + options.episodes)
        missing = [n for n in range(shard, options.episodes, shards) if n not in recorder.finished]
        with interruptible() as stop, bar(out, f"collecting {env.task.id}", len(missing)) as advance:
            try:
                done = run_episodes(
                    env,
                    policy,
                    seeds,
                    numbers=missing,
                    observers=[recorder],
                    on_result=lambda result: advance(),
                    stop=stop,
                )
            finally:
                recorder.close()
    finally:
        env.close()
    wins = sum(r.success_once for r in done.results)
    rate = done.env_steps / max(done.seconds, 1e-9)
    least = "at least " if shards > 1 else ""  # the other shards may have written more meanwhile
    size = f"{path.stat().st_size / 1e6:.1f} MB" if path.exists() else "nothing"
    out.print(
        f"{len(done.results)} episodes, {wins} successful, {rate:,.0f} control steps/s; "
        f"{path} holds {least}{len(recorder.kept)} ({size})",
        soft_wrap=True,
    )
    if done.interrupted:
        out.print("interrupted; go on with the same command and --resume")
        return INTERRUPTED
    if done.unhealthy:
        out.print(f"[red]{escape(done.unhealthy_words())}[/]", soft_wrap=True)
        return NOT_GOOD
    if recorder.kept:
        out.print(f"verify: manikin replay {shlex.quote(str(path))} --check", soft_wrap=True)
    return OK


def file_name(words: str) -> str:
    """Words as part of the name of a file on any system: ``PickCube-v1-remote-127.0.0.1-18101``."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", words).strip("-.")


def _shard(word: str | None) -> tuple[int, int]:
    """(0, 4) for ``0/4``."""
    from manikin.errors import ConfigError

    if word is None:
        return 0, 1
    first, _, count = word.partition("/")
    if not (first.isdigit() and count.isdigit() and int(first) < int(count)):
        raise ConfigError(f"--shard {word!r} is not I/K with I from 0 to K-1, for example 0/4")
    return int(first), int(count)
