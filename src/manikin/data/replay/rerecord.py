"""A new recording of recorded episodes: other observations, cameras, rewards, another device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from manikin.data.recorder import Recorder
from manikin.data.recording.format import Header, RecordedEpisode
from manikin.data.recording.read import EpisodeFile
from manikin.data.recording.write import EpisodeWriter
from manikin.data.replay.compare import EpisodeReplay
from manikin.data.replay.environment import make_env, played_fingerprint
from manikin.data.replay.play import Completed, Show, batches, play
from manikin.data.replay.verify import ReplayReport, replay, source_of
from manikin.errors import ConfigError, UnknownNameError

__all__ = ["check_way", "rerecord"]

WAYS = ("actions", "states")


def check_way(way: str) -> None:
    """Raise :class:`UnknownNameError` for a way to play a recording that is not there."""
    if way not in WAYS:
        raise UnknownNameError("way to play a recording", way, WAYS)


def rerecord(
    path: str | Path,
    out: str | Path,
    *,
    way: str = "actions",
    numbers: Iterable[int] | None = None,
    num_envs: int = 16,
    observations: bool | None = None,
    exact: bool = False,
    resume: bool = False,
    on_episode: Callable[[], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> ReplayReport | None:
    """Write the episodes of a recording again, observed anew; numbers and seeds stay.

    Args:
        path: the recording.
        out: the new recording.
        way: ``actions`` simulates the recorded actions; what comes out is recorded, and compared with what was
            recorded then. ``states`` sets the recorded states one by one: all but observations, and rewards where
            ``reward`` is given, is copied.
        numbers: which episodes; None for all.
        num_envs: rows side by side. Never changes the result.
        observations: keep observations; None: where ``observe`` or ``vision`` is given, or the recording has some.
        exact: from actions, take all but observations and new rewards from the recording, too, and refuse episodes
            that part from it.
        resume: go on with an interrupted one.
        on_episode: called after each episode.
        stop: asked once per control step; True leaves what is finished, to be resumed.
        **overrides: options of ``manikin.make`` that win over the recorded ones: observe, vision, reward, device, ...

    Returns:
        From actions, how they compare; from states, or where they must be exact, None.

    Raises:
        DataError: nothing to play, ``out`` exists, or the episodes cannot be played; from states, there are none; an
            episode parts from the recording and must be ``exact``.
        ConfigError: another controller, which takes other actions; see
            :func:`manikin.data.retarget.conversion.retarget`.
        UnknownNameError: no such way, observation, camera, reward or device.
    """
    check_way(way)
    if "control" in overrides:
        raise ConfigError(
            "control cannot be changed here: recorded actions belong to the recorded controller; convert them with "
            "retarget() (manikin replay FILE --control WORD)"
        )
    with EpisodeFile(path) as file:
        played = file.needed_header()
        then = played.fingerprint
        wanted = list(file.numbers if numbers is None else numbers)
        keep = observations
        if keep is None:
            keep = bool({"observe", "vision"} & overrides.keys()) or _observed(file, wanted)
        env = make_env(then, max(1, min(num_envs, len(wanted))), **overrides)
        try:
            copied = exact or way == "states"
            new = {"observations": keep, "rewards": "reward" in overrides} if copied else {}
            anew = [part for part, made in new.items() if made]
            about = source_of(path, played, how=way, **({"anew": anew} if anew else {}))
            if not copied:
                policy = played.policy
                recorder = Recorder(env, out, policy=policy, observations=keep, resume=resume, source=about)
                with recorder:
                    return replay(
                        path,
                        env,
                        numbers=[n for n in wanted if n not in recorder.finished],
                        observers=[recorder],
                        on_episode=_tell(on_episode),
                        stop=stop,
                    )
            header = Header(fingerprint=played_fingerprint(env, then, way), policy=played.policy, source=about)
            with EpisodeWriter(out, header, resume=resume) as writer:

                def write(episode: RecordedEpisode) -> None:
                    writer.write(episode)
                    if on_episode is not None:
                        on_episode()

                simulated = env if way == "actions" else None
                watch = Completed(file, write, env=simulated, rewards="rewards" in anew)
                left = [n for n in wanted if n not in writer.finished]
                if simulated is not None:
                    replay(path, env, check=False, numbers=left, observers=[watch], stop=stop)
                    return None
                for batch in batches(file, left, env.num_envs):
                    play(env, batch, Show(rewards="rewards" in anew), [watch], stop)
                    if stop():
                        break
        finally:
            env.close()
    return None


def _observed(file: EpisodeFile, numbers: list[int]) -> bool:
    return bool(numbers) and file[numbers[0]].observations is not None


def _tell(on_episode: Callable[[], None] | None) -> Callable[[EpisodeReplay], None] | None:
    return None if on_episode is None else lambda episode: on_episode()
