"""Policies by word, for the command line: ``expert``, ``planner``, ``random``, ``graded:noise=0.3``, a file, a server,
or a function of one's own."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.assets import packages
from manikin.assets.python_file import run_file
from manikin.env.interface import BatchEnv
from manikin.env.task import Task
from manikin.errors import AssetError, ConfigError, UnknownNameError
from manikin.policy.api import Policy
from manikin.policy.expert import ExpertPolicy
from manikin.policy.shipped import shipped_for, shipped_policies, shipped_policy
from manikin.policy.trained import FILE, observed_by, trained_policy, trained_skill

__all__ = [
    "POLICIES",
    "find_trained",
    "named_callable",
    "observation_options",
    "policy_file",
    "policy_maker",
    "trained_file",
    "unknown_policy",
]

GRADED = "graded:"
POLICIES = {
    "expert": "manikin.policy.expert:ExpertPolicy",
    "random": "manikin.policy.random_policy:RandomPolicy",
    "planner": "manikin.policy.expert:PlannerPolicy",
}


def policy_maker(
    word: str, *, also: Sequence[str] = (), seed: int | None = None, convention: str | None = None
) -> Callable[[Any], Policy]:
    """A function from an environment to a policy for it.

    Args:
        word: ``expert`` (of a task without a scripted one the policy that comes with manikin), ``planner``, ``random``,
            ``graded:noise=0.3,delay=2`` (:mod:`manikin.policy.graded`), one that
            comes with manikin (``manikin policies``), the folder of a training run or its ``policy.safetensors``
            (:mod:`manikin.policy.trained`), ``policy.pt2`` (:mod:`manikin.policy.files.checkpoint`), ``skills.toml``
            (:mod:`manikin.policy.skills`), ``ws://host:port`` (:mod:`manikin.policy.remote.client`), one that an
            installed package offers (``manikin.policies``),
            ``module:function`` or ``file.py:function``; the function takes the environment.
        also: words that the caller knows besides, for the error.
        seed: of a policy that draws random numbers: ``random``, ``graded``, a server or a function that takes a
            ``seed``. None for the policy's own choice.
        convention: what the policy is shown and answers, where it is not manikin's own: a word of
            :data:`manikin.policy.conventions.conventional.CONVENTIONS`.

    Raises:
        UnknownNameError: neither a known word nor ``something:function``, or the module has no such function.
        AssetError: no such file or folder.
        ConfigError: the module cannot be imported, nobody answers, or the policy takes no seed; says why.
    """
    if convention is not None:
        return _conventional(word, also, seed, convention)
    if word.startswith(("ws://", "wss://")):
        from manikin.policy.remote.client import RemotePolicy

        return lambda env: RemotePolicy(word, seed=seed)
    if word.startswith(GRADED):
        return _graded(word, seed)
    if word.endswith(".toml"):
        return _skills(word, seed)
    if seed is not None and (word.endswith(".pt2") or trained_file(word) is not None):
        raise _no_seed(word)
    if word.endswith(".pt2"):
        from manikin.policy.files.checkpoint import program_policy

        return program_policy(word)
    if (trained := trained_file(word)) is not None:
        return trained_policy(trained)
    if word == "expert" and seed is None:
        return _expert
    place, offered = POLICIES.get(word, word), packages.offered("policy")
    maker: Callable[..., Policy]
    if place in offered:
        maker = packages.load("policy", place)
        if not callable(maker):
            raise ConfigError(
                f"a package offers the policy {place!r}, but what it has there is no function: {maker!r:.80}"
            )
    elif ":" not in place.strip(":"):
        raise unknown_policy(
            word,
            (*POLICIES, *offered, *also),
            "Or graded:noise=0.3, a run's folder, policy.pt2, skills.toml, ws://host:port, module:function, "
            "file.py:function.",
        )
    else:
        maker = named_callable(place, "policy")
    if seed is None:
        return maker
    if "seed" not in inspect.signature(maker).parameters:
        raise _no_seed(word)
    return lambda env: maker(env, seed=seed)


def unknown_policy(word: str, valid: Iterable[str], hint: str) -> AssetError | UnknownNameError:
    """The error for a word that names no policy: a folder that is not there or holds none, or an unknown name. Those
    that come with manikin are valid, too."""
    place = Path(word)
    if place.is_dir():
        return AssetError(f"no trained policy in {word}: a run's folder holds one as {FILE} once it was validated")
    if len(place.parts) > 1:
        return AssetError(f"no run's folder and no file at {word}")
    hint = f"{hint} `manikin policies` lists the trained ones that come with manikin."
    return UnknownNameError("policy", word, (*valid, *shipped_policies()), hint)


def _expert(env: BatchEnv) -> Policy:
    """The task's scripted expert; where it has none, the policy of this task that comes with manikin."""
    name = shipped_for(env.task.id) if type(env.task).expert is Task.expert else None
    if name is None:
        return ExpertPolicy(env)
    file = shipped_policy(name)
    assert file is not None
    return trained_policy(file)(env)


def _conventional(word: str, also: Sequence[str], seed: int | None, convention: str) -> Callable[[Any], Policy]:
    from manikin.policy.conventions.conventional import ConventionalPolicy, read_convention
    from manikin.policy.remote.client import RemotePolicy

    found = read_convention(convention)
    if word.startswith(("ws://", "wss://")):
        return lambda env: ConventionalPolicy(RemotePolicy(word, adapt=found.adapt, seed=seed), env, found)
    maker = policy_maker(word, also=also, seed=seed)
    return lambda env: ConventionalPolicy(maker(env), env, found)


def _skills(word: str, seed: int | None) -> Callable[[Any], Policy]:
    from manikin.policy.skills import SkillsPolicy, read_skills

    if seed is not None:
        raise _no_seed(word)
    words = read_skills(word)
    for one in words.values():
        policy_maker(one)  # raises where there is none

    def made(env: BatchEnv) -> Policy:
        tasks: Mapping[str, str] = getattr(env.task, "skills", {})
        all_words = {**dict.fromkeys(tasks, "expert"), **words}
        found: dict[str, Policy] = {}
        for skill, one in all_words.items():
            file = trained_file(one)
            if file is not None and skill in tasks:
                found[skill] = trained_skill(file, tasks[skill])(env)
            else:  # one policy may have several skills
                found[skill] = next((p for s, p in found.items() if all_words[s] == one), None) or policy_maker(one)(
                    env
                )
        return SkillsPolicy(found, env)

    return made


def _no_seed(word: str) -> ConfigError:
    return ConfigError(f"the policy {word} takes no seed: give one that draws random numbers, as function(env, seed=0)")


def _graded(word: str, seed: int | None) -> Callable[[Any], Policy]:
    from manikin.policy.graded import Grade, GradedPolicy

    grade, of = Grade.read(word.removeprefix(GRADED))
    maker = policy_maker(of)
    return lambda env: GradedPolicy(maker(env), env, grade, seed=seed or 0)


def observation_options(word: str) -> dict[str, Any]:
    """Options of the environment for what the policy of a word observes, where its file says so; else none.

    Raises:
        AssetError, DataError: as :func:`~manikin.policy.trained.read_about`.
    """
    trained = trained_file(word)
    return {} if trained is None else observed_by(trained)


def policy_file(word: str) -> Path | None:
    """The file that holds the policy of a word: of a run's folder its network, of ``file.py:function`` the program.
    None where the word names no file.

    Raises:
        DataError: the file of a policy that comes with manikin was changed.
    """
    place = Path(trained_file(word) or word)
    places = (place, place / FILE, Path(word.rpartition(":")[0]))
    return next((one for one in places if one.is_file()), None)


def trained_file(word: str) -> str | Path | None:
    """Where the trained policy that a word names lies: a run's folder, its file, or one that comes with manikin; None
    for any other word.

    Raises:
        DataError: one that comes with manikin was changed.
    """
    if word.endswith(".safetensors") or (Path(word) / FILE).is_file():
        return word
    return shipped_policy(word)


def find_trained(word: str) -> str | Path:
    """As :func:`trained_file`, for where a trained policy has to be named.

    Raises:
        AssetError: a folder or a file that is not there, or a folder without a policy.
        UnknownNameError: another word; lists the policies that come with manikin.
        DataError: one that comes with manikin was changed.
    """
    found = word if Path(word).is_file() else trained_file(word)
    if found is None:
        raise unknown_policy(word, (), "Name a run's folder or its file, too.")
    return found


def named_callable(place: str, kind: str) -> Callable[..., Any]:
    """What ``module:name`` or ``file.py:name`` names; ``kind`` says in errors what it should be.

    Raises:
        UnknownNameError: the module has no such function or class.
        AssetError: no such file.
        ConfigError: the module cannot be imported; says why.
    """
    module, _, name = place.rpartition(":")
    loaded = run_file(module) if module.endswith(".py") else _load_module(module, kind)
    made = getattr(loaded, name, None)
    if not callable(made):
        callables = [k for k, v in vars(loaded).items() if callable(v) and not k.startswith("_")]
        raise UnknownNameError(f"{kind} in {module}", name, callables)
    found: Callable[..., Any] = made
    return found


def _load_module(name: str, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"the {kind}'s module {name!r} cannot be imported: {error}") from error
