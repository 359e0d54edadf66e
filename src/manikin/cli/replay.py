"""`manikin replay`: play recorded episodes again, and verify them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manikin.cli.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console

__all__ = ["ReplayOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Options of `manikin replay`."""

    file: tyro.conf.Positional[Path]
    """The recording; one that was interrupted works as well."""
    check: bool = False
    """Compare the start and the state after every step with what was recorded, bit for bit."""
    num_envs: int = 16
    """How many episodes are played side by side; does not change the result."""
    episodes: tuple[int, ...] = ()
    """Numbers of the episodes to play; by default all."""
    video: Path | None = None
    """Write a video of the first episodes (at most 6, side by side)."""
    renderer: Literal["auto", "gl", "rays"] = "auto"
    """Makes the pictures: OpenGL where it works, casting rays with MuJoCo anywhere."""


def main(options: Annotated[ReplayOptions, tyro.conf.arg(name="")]) -> int:
    """Play recorded episodes again. With --check: verify that they come out bit for bit as recorded."""
    return run(options)


def run(options: ReplayOptions) -> int:
    """Replay; 0 exact (or another kind of processor), 1 different, 130 interrupted."""
    from manikin.data.read import read_episodes
    from manikin.data.replay import make_env, replay
    from manikin.errors import DataError
    from manikin.eval.film import Film, write_film
    from manikin.eval.runner import interruptible
    from manikin.render.api import make_renderer

    out = console()
    with read_episodes(options.file) as file:
        if file.header is None:
            raise DataError(f"{options.file} has no finished episode")
        header, numbers = file.header, list(options.episodes or file.numbers)
        wins = sum(bool(file.attributes(n)["success_once"]) for n in numbers)
    out.print(f"{header.task}, {len(numbers)} episodes by {header.policy or 'unknown'}, {wins} successful")
    env = make_env(header.fingerprint, min(options.num_envs, len(numbers)))
    try:
        films = []
        if options.video is not None:
            renderer = make_renderer(options.renderer, samples=2)
            films = [Film(env, renderer, numbers=numbers[:6], width=320, height=320)]
        words = "verifying" if options.check else "playing"
        with interruptible() as stop, bar(out, words, len(numbers)) as advance:
            report = replay(
                options.file,
                env,
                check=options.check,
                numbers=numbers,
                observers=films,
                on_episode=lambda episode: advance(),
                stop=stop,
            )
        for film in films:
            reels = [film.reels[n] for n in numbers[:6] if n in film.reels]
            assert options.video is not None
            out.print(f"video: {write_film(options.video, reels, env.control_hz)}")
            film.renderer.close()
    finally:
        env.close()
    if options.check:
        out.print(report.summary())
    if len(report.episodes) < len(numbers):
        out.print(f"interrupted after {len(report.episodes)} of {len(numbers)} episodes")
        return INTERRUPTED
    return OK if report.ok or not options.check else NOT_GOOD
