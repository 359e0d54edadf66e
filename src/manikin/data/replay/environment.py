"""The environment and the task of a recording, built again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin.data.recording.format import Header, checked_fingerprint
from manikin.data.recording.labels import Keep
from manikin.data.recording.outside import reading
from manikin.errors import DataError, ManikinError, UnknownNameError
from manikin.spec.budget import Budget

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv
    from manikin.env.task import Task

__all__ = ["OF_TASK", "keep_recorded", "make_env", "played_fingerprint", "recorded_task"]

OF_TASK = ("task", "trust")
"""Options of :func:`make_env` that say where the task is, and not how it is played."""
_NEEDS_ROOM = {"robot", "control", "physics_hz", "control_hz", "config"}  # what a budget is found for


def make_env(
    fingerprint: Mapping[str, Any],
    num_envs: int,
    *,
    task: str | type[Task] | None = None,
    trust: bool = False,
    **overrides: Any,
) -> BatchEnv:
    """Build the environment of a recording again, with autoreset "disabled".

    A task of one's own is loaded from where ``task`` says, or if the recording is trusted from the file that it names,
    as seen from the current folder; from no other place. To load it is to run it, so a recording alone never does.

    Args:
        fingerprint: as ``Env.fingerprint()`` gave it.
        num_envs: rows.
        task: where the task is: ``file.py``, ``file.py:Class``, ``module:Class``, or the class.
        trust: run the file or module that the recording names.
        **overrides: options of ``manikin.make`` that win over the recorded ones. What a ``vision`` leaves at its
            default stays as recorded, and so do the recorded sensors of what is still observed. There is room for
            what is found for the task and for what the recording had room for, unless robot, controller, rates or
            config are overridden, each of which needs another. (``nconmax`` is of all rows together, so what was enough
            for many may be too little for fewer.)

    Raises:
        DataError: the fingerprint names no task, or one to be run that is not trusted, or the task cannot be loaded or
            is another one, or the fingerprint does not describe an environment.
        ManikinError: the task, robot or controller does not exist here.
    """
    from manikin.env.make import make
    from manikin.env.observe import Vision, holds
    from manikin.env.options import RECORDED

    with reading("the recording does not say what environment it was made in"):
        checked_fingerprint(fingerprint)
    found = recorded_task(fingerprint, task, trust=trust)
    own = not found.__module__.startswith("manikin.")  # whose errors are for its author
    with nullcontext() if own else reading("the recording's environment cannot be built here"):
        recorded = {k: fingerprint[k] for k in RECORDED if fingerprint.get(k) is not None}
        options = {**recorded, "autoreset": "disabled", **overrides}
        if "budget" in recorded and "budget" not in overrides:
            del options["budget"]
            options["least_budget"] = None if overrides.keys() & _NEEDS_ROOM else Budget(**recorded["budget"])
        _refuse_untrusted({k: recorded.get(k) for k in ("observe", "vision") if k not in overrides}, trust=trust)
        vision = Vision.of(recorded.get("vision"))
        options["vision"] = Vision.of(overrides.get("vision")).over(vision)
        if "sensors" in recorded and "sensors" not in overrides:
            word = options.get("observe", "state")
            options["sensors"] = {k: v for k, v in recorded["sensors"].items() if holds(word, k, options["vision"])}
        return make(found, num_envs, **options)


def recorded_task(
    fingerprint: Mapping[str, Any], given: str | type[Task] | None = None, *, trust: bool = False
) -> type[Task]:
    """The task of a recording; see :func:`make_env`.

    Raises:
        DataError: it cannot be loaded, is not trusted, or is another one; says how to name its file.
    """
    from manikin.env.registry import is_own, task_class

    name, place = str(fingerprint.get("task", "")), fingerprint.get("task_class")
    if not name:
        raise DataError(
            "the recording does not name its task, so its environment cannot be made; give it: --task FILE.py (task= "
            "in Python)"
        )
    if given is None and place and not is_own(name):  # also of a class that has a built-in task's id: in_apartments
        file = Path(place.rpartition(":")[0] or place)
        if file.suffix == ".py" and not (file.is_file() and file.resolve().is_relative_to(Path.cwd().resolve())):
            raise DataError(
                f"the task {name} is defined in {place}, which is not below the current folder. Change to its folder, "
                "or give the file: manikin replay --task FILE.py (task= in Python)"
            )
        if not trust and not _has_run(file):
            raise DataError(
                f"playing {name} runs the file {place}. Read it first; then add --trust (trust=True in Python), or "
                f"give the task yourself: --task {place}"
            )
        given = str(place)
    try:
        found = task_class(given or name)
    except ManikinError:
        raise
    except Exception as error:  # importing a user's file may raise anything
        raise DataError(f"{given} of task {name} cannot be imported: {type(error).__name__}: {error}") from error
    if found.id != name:
        raise DataError(f"the recording is of {name!r}, but {given} contains {found.id!r}; give the file of {name!r}")
    return found


def _refuse_untrusted(described: Mapping[str, Any], *, trust: bool) -> None:
    """Sources and stages of one's own run a file, which a recording alone must not do.

    Raises:
        DataError: such a file has not been run in this process, and is not trusted.
    """
    from manikin.sense.kinds import own_places

    for place in own_places(described):
        if not trust and not _has_run(Path(place.rpartition(":")[0])):
            raise DataError(
                f"playing the recording runs {place}, where its observations are defined. Read it first; then add "
                "--trust (trust=True in Python), or observe something else: --observe state"
            )


def _has_run(place: Path) -> bool:
    """Whether a file, or the module of that name, was run in this process already."""
    files = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    return str(place) in sys.modules or str(place.resolve()) in files


def played_fingerprint(env: BatchEnv, then: Mapping[str, Any], way: str) -> dict[str, Any]:
    """What is said of episodes that were played again.

    Args:
        env: where they were played.
        then: the fingerprint of the recording.
        way: "actions", or "states": those are the recording's, so where they are from is said of it.
    """
    if way == "actions":
        return env.fingerprint()
    from_there = ("device", "budget", "deterministic", "versions", "machine", "model_hash")
    kept = {key: then[key] for key in from_there if key in then}
    return {**env.fingerprint(), "budget": None, "deterministic": None, **kept}


def keep_recorded(words: str, modes: Iterable[str], headers: Iterable[Header | None]) -> Keep:
    """:class:`Keep` for episodes of recordings, whose ``modes`` these are. A mode that their task has is valid, also
    where no episode went so; if the task is not here, only the episodes' own are known.

    Raises:
        UnknownNameError: as :class:`Keep`.
    """
    known = set(modes)
    try:
        return Keep(words, known)
    except UnknownNameError:
        for header in headers:
            with suppress(ManikinError):
                known.update(recorded_task(header.fingerprint if header else {}).labels.modes)
        return Keep(words, known)
