"""`manikin multiply`: many episodes from few demonstrations."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.options import On
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console

__all__ = ["MultiplyOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class MultiplyOptions:
    """Options of `manikin multiply`."""

    file: tyro.conf.Positional[Path]
    """The recording of demonstrations, with states."""
    out: Path | None = None
    """The new recording; by default the name of the old one with -multiplied."""
    episodes: int = 100
    """How many new episodes to try. Those that succeed are kept."""
    seed: int | None = None
    """Episode k has the seed SEED + k; by default after the demonstrations' last. Evaluation protocols use seeds from
    1,000,000."""
    demonstrations: int = 10
    """Use so many successful demonstrations at most."""
    num_envs: int = 16
    """How many run in parallel; does not change the result."""
    observations: bool = False
    """Also record flat observations, to train on."""
    states: On = True
    """Leave out the physics state of every step."""
    observe: str | None = None
    """Another observation than the recorded one: state, policy, state_dict."""
    reward: str | None = None
    """Another reward than the recorded one: normalized_dense, dense, sparse, none."""
    resume: bool = False
    """Continue a recording that was interrupted."""
    task: str | None = None
    """File of your own task: file.py, file.py:Class or module:Class. Loading it runs its code."""
    trust: bool = False
    """Allow the recording to run its task's file, which must be in this folder or below."""


def main(options: Annotated[MultiplyOptions, tyro.conf.arg(name="")]) -> int:
    """Carry the segments of a few demonstrations over to new episodes, and keep those that succeed."""
    return run(options)


def run(options: MultiplyOptions) -> int:
    """Multiply; 0 done, 1 with unhealthy episodes or without a success, 130 interrupted."""
    from manikin.data.multiply.multiply import multiply
    from manikin.eval.runner import interruptible

    out = console()
    path = options.out or options.file.with_name(f"{options.file.stem}-multiplied.h5")
    chosen = {
        "observe": options.observe,
        "reward": options.reward,
        "task": options.task,
        "trust": options.trust or None,
    }
    with interruptible() as stop, bar(out, f"multiplying {options.file.name}", options.episodes) as advance:
        report = multiply(
            options.file,
            path,
            episodes=options.episodes,
            first_seed=options.seed,
            demonstrations=options.demonstrations,
            num_envs=options.num_envs,
            observations=options.observations,
            states=options.states,
            resume=options.resume,
            on_episode=advance,
            stop=stop,
            **{name: value for name, value in chosen.items() if value},
        )
    out.print(f"{report.summary()}\n{path}", soft_wrap=True, markup=False, highlight=False)
    if report.interrupted:
        out.print("interrupted; repeat the command with --resume")
        return INTERRUPTED
    if report.unhealthy or not report.kept:
        return NOT_GOOD
    more = f" --task {shlex.quote(options.task)}" if options.task else ""
    out.print(f"verify: manikin replay {shlex.quote(str(path))} --check{more}", soft_wrap=True)
    return OK
