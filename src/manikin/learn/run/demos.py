"""The recording that a run imitates: the one that was named, or one that is collected first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from manikin.data.formats.demonstrations import holds_demos
from manikin.data.recorder import Recorder
from manikin.data.recording.format import parts_folder
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.verify import replay
from manikin.env.make import make
from manikin.errors import ConfigError, DataError
from manikin.eval.runner import run_episodes
from manikin.learn.common.data.demonstrations import unstacked
from manikin.learn.run.recipe import Recipe
from manikin.policy.choices import policy_maker
from manikin.policy.pushes import PushedPolicy, Pushes

__all__ = ["DEMOS", "InterruptedCollectionError", "demonstrations_of", "recorded_control"]

DEMOS = "demonstrations.h5"
_ROWS, _ROWS_SEEN = 256, 64  # played at a time, without pictures and with them
_ATTEMPTS = 5  # times as many episodes as are wanted
_OF = "demonstrations_of"  # in a recording: who was asked for


class InterruptedCollectionError(DataError):
    """Somebody stopped the collection of demonstrations; the same command goes on with it."""


def recorded_control(path: str | Path) -> str | None:
    """The controller of a recording's actions; None for demonstrations of robosuite, robomimic or ManiSkill.

    Raises:
        DataError: no such recording, or it is damaged.
    """
    if holds_demos(path):
        return None
    with EpisodeFile(path) as file:
        return str(file.needed_header().fingerprint["control"])


def demonstrations_of(
    recipe: Recipe,
    folder: Path,
    *,
    device: str = "cpu",
    threads: int = 0,
    say: Callable[[str], None] = lambda words: None,
    stop: Callable[[], bool] = lambda: False,
) -> Path:
    """The recording that the recipe names, or ``demonstrations.h5`` in the run's folder, collected where it is missing.

    Episodes have the seeds 0, 1, 2 and so on; only successes are kept, until there are as many as the recipe wants. The
    recording is then played again and must come out the same, bit for bit.

    Raises:
        ConfigError: the recipe names both a recording and who is to be recorded, or neither a recording nor how many to
            collect; ``demonstrations.h5`` holds others than the recipe asks for, or fewer; the task has no expert, or
            the policy was trained for another environment.
        UnknownNameError: no such policy.
        DataError: the policy seldom succeeds, or the recording does not come out the same.
        InterruptedCollectionError: ``stop`` said so; what is collected is kept, and the same command goes on.
    """
    word = recipe.config.demonstrations_of
    if recipe.config.demos:
        if word != "expert":
            raise ConfigError(f"demos names a recording, demonstrations_of = {word!r} who is recorded: set one of them")
        return Path(recipe.config.demos)
    path, wanted = folder / DEMOS, recipe.config.demonstrations
    if not wanted:
        raise ConfigError(
            "demonstrations = 0 takes all of a recording, and none is named: give --demos FILE, or demonstrations = 1 "
            "or more to collect them"
        )
    if path.exists():
        _check_collected(path, recipe)
        return path
    say(f"collecting {wanted} demonstrations of {recipe.task} by {word} into {path}")
    shown = unstacked(recipe.env.get("observe", "state"))
    options = recipe.env_options(
        num_envs=min(_ROWS_SEEN if shown.needs else _ROWS, wanted),
        observe=shown.plain,
        reward="normalized_dense",
        autoreset="disabled",
        terminate=None,
    )
    env = make(recipe.task, options=options, device=device, threads=threads)
    try:
        policy = policy_maker(word)(env)
        if word == "expert" and (word := str(getattr(policy, "name", word))) != "expert":
            say(f"{recipe.task} has no scripted expert: {word}, which comes with manikin, is recorded")
        seeds, about = range(_ATTEMPTS * wanted), {_OF: recipe.config.demonstrations_of}
        if recipe.config.pushes:
            pushes = Pushes(recipe.config.pushes)
            policy, about = PushedPolicy(policy, env, pushes), {**about, "pushes": pushes.plain}
        resumed = parts_folder(path).exists()
        with Recorder(
            env,
            path,
            policy=word,
            observations=True,
            states=False,
            keep="success",
            first_seed=0,
            resume=resumed,
            about=about,
        ) as recorder:
            while (missing := wanted - len(recorder.kept)) > 0:
                numbers = [number for number in seeds if number not in recorder.finished][:missing]
                if not numbers:
                    raise DataError(
                        f"{word} succeeded in {len(recorder.kept)} of {len(seeds)} episodes of {recipe.task}, "
                        f"{wanted} demonstrations were asked for"
                    )
                run = run_episodes(env, policy, seeds, numbers=numbers, observers=[recorder], stop=stop)
                if run.interrupted:
                    raise InterruptedCollectionError(
                        "interrupted while demonstrations were collected; the same command goes on"
                    )
        report = replay(path, env)
    finally:
        env.close()
    if not report.ok:
        aside = path.replace(path.with_suffix(".failed.h5"))
        raise DataError(f"the demonstrations in {aside} do not replay as recorded: {report.summary()}")
    say(f"{wanted} demonstrations, verified by replay")
    return path


def _check_collected(path: Path, recipe: Recipe) -> None:
    """Refuse what was collected for another recipe, or not to the end."""
    config = recipe.config
    with EpisodeFile(path) as file:
        recorded, there = file.needed_header().recorded, len(file)
    pushes = Pushes(config.pushes).plain if config.pushes else None
    other = [
        f"{name} {was!r}, asked for {now!r}"
        for name, was, now in (
            (_OF, recorded.get(_OF, config.demonstrations_of), config.demonstrations_of),
            ("pushes", recorded.get("pushes"), pushes),
        )
        if was != now
    ]
    if there < config.demonstrations:
        other.append(f"{there} episodes, asked for {config.demonstrations}")
    if other:
        raise ConfigError(
            f"{path} was collected before, and differs from what the recipe asks for: {'; '.join(other)}. Remove it to "
            "collect anew, choose another folder by --out, or name the recording by --demos"
        )
