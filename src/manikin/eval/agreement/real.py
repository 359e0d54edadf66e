"""Success of policies on real robots, as a file tells it.

    {"REAL_PERF": {"widowx_stack_cube": {"rt-1-x": 0.0, "octo-small": 0.125}}, "TRIALS": {"widowx_stack_cube": 24}}

or without the outer name: ``{task: {policy: ...}}``. What stands for a policy is a success rate, ``{"successes": 8,
"trials": 24}``, or a list of outcomes; or these by setting, ``{"horizontal": [true, false], "vertical": 0.4}``. A task
is manikin's id or SIMPLER's name. A rate needs a number of trials: from ``TRIALS``, or, of SIMPLER's tasks, as
published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manikin.errors import ConfigError, DataError
from manikin.eval.agreement.trials import Trials, trials

__all__ = ["SIMPLER_TASKS", "chosen", "read_real"]

SIMPLER_TASKS: dict[str, tuple[str, int]] = {
    "google_robot_pick_coke_can": ("GooglePickCokeCan-v1", 75),
    "google_robot_move_near": ("GoogleMoveNear-v1", 60),
    "google_robot_open_drawer": ("GoogleOpenDrawer-v1", 27),
    "google_robot_close_drawer": ("GoogleCloseDrawer-v1", 27),
    "google_robot_place_apple_in_closed_top_drawer": ("GooglePlaceAppleInDrawer-v1", 27),
    "widowx_spoon_on_towel": ("WidowXSpoonOnTowel-v2", 24),
    "widowx_carrot_on_plate": ("WidowXCarrotOnPlate-v2", 24),
    "widowx_stack_cube": ("WidowXStackCube-v2", 24),
    "widowx_put_eggplant_in_basket": ("WidowXEggplantInBasket-v2", 24),
}
"""SIMPLER's name of a task -> its id here, and the published number of real trials of each policy."""

Real = dict[str, dict[str, Trials]]


def read_real(path: str | Path, names: Mapping[str, str] | None = None) -> Real:
    """Task's id -> policy -> outcomes by setting.

    Args:
        path: the file.
        names: what the file calls a task or a policy -> what it is called here; "" leaves it out.

    Raises:
        DataError: the file cannot be read, or is of another form.
        ConfigError: a rate without a number of trials, two names of the file become one, or ``names`` has one that the
            file has not.
    """
    try:
        read = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"the real results {path} cannot be read: {error}") from None
    table = read.get("REAL_PERF", {k: v for k, v in read.items() if k != "TRIALS"}) if isinstance(read, dict) else None
    if not isinstance(table, dict) or not table or not all(isinstance(one, dict) for one in table.values()):
        raise DataError(f"{path}: real results are {{task: {{policy: success rate}}}}, or these under REAL_PERF")
    counts, names, found = read.get("TRIALS", {}), names or {}, Real()
    here = {*table, *(SIMPLER_TASKS[one][0] for one in table if one in SIMPLER_TASKS)}
    policies_of = {policy for policies in table.values() for policy in policies}
    if unknown := sorted(set(names) - here - policies_of):
        raise ConfigError(
            f"{path} has no task and no policy {unknown[0]!r} to map. Its tasks are {', '.join(sorted(table))}; its "
            f"policies {', '.join(sorted(policies_of))}"
        )
    for said, policies in table.items():
        task, published = SIMPLER_TASKS.get(said, (said, 0))
        task = names.get(said, names.get(task, task))
        if not task:
            continue
        if task in found:
            raise ConfigError(f"{path}: two tasks become {task}")
        count = counts.get(said, published) if isinstance(counts, dict) else 0
        found[task] = {}
        for policy, value in policies.items():
            name = names.get(policy, policy)
            if name in found[task]:
                raise ConfigError(f"{path}: two policies of {said} become {name}")
            if name:
                found[task][name] = _settings(value, count, f"{path}: {said}, {policy}")
    return found


def _settings(value: Any, count: Any, where: str) -> Trials:
    if isinstance(value, dict) and not {"successes", "trials"} & value.keys():
        return {str(setting): _outcomes(one, count, f"{where}, {setting}") for setting, one in value.items()}
    return {"": _outcomes(value, count, where)}


def _outcomes(value: Any, count: Any, where: str) -> list[bool]:
    if isinstance(value, list) and value and all(isinstance(one, bool) for one in value):
        return value
    if isinstance(value, dict):
        wins, of = _whole(value.get("successes")), _whole(value.get("trials"))
        if 0 <= wins <= of and of > 0:
            return [True] * wins + [False] * (of - wins)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        if _whole(count) < 1:
            raise ConfigError(
                f'{where}: how many trials is the rate {value} of? Add "TRIALS": {{task: number}}, or give '
                '{"successes": 8, "trials": 24}'
            )
        return trials(value, _whole(count))
    raise DataError(
        f"{where}: need a success rate from 0 to 1, successes and trials, or a list of true and false: {value!r:.60}"
    )


def _whole(value: Any) -> int:
    """A whole number; -1 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def chosen(real: Real, tasks: Mapping[str, Mapping[str, Trials]]) -> Real:
    """The real results of simulated tasks.

    Args:
        real: as :func:`read_real` gives it.
        tasks: simulated task's id -> policy -> outcomes by setting.

    Raises:
        ConfigError: no common task, or other policies than simulated; lists both.
    """
    common = {task: real[task] for task in tasks if task in real}
    if not common:
        raise ConfigError(
            f"the real results are of the tasks {', '.join(sorted(real))}; simulated are {', '.join(sorted(tasks))}. "
            "Name tasks alike, or map them: --map REAL=SIMULATED"
        )
    for task, policies in common.items():
        if set(policies) != set(tasks[task]):
            raise ConfigError(
                f"{task}: real results are of the policies {', '.join(sorted(policies))}; simulated are "
                f"{', '.join(sorted(tasks[task]))}. Map names with --map REAL=SIMULATED; --map REAL= leaves one out"
            )
    return common
