"""A task's version stands for one scene, configuration, start distribution, reward, observation and success rule.

``golden.json`` keeps what each version gives: the hash of the compiled model, the configuration, and for a few seeds
positions, variables, observations and reward terms at the start (to 1e-6); and the random streams (exactly).
Trajectories are not in it: they differ between kinds of processors.

    python tests/tasks/test_golden.py --write     # before a release, for a change that is meant
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manikin.env.env import Env
from manikin.env.registry import task_class, task_ids
from manikin.env.task import Task
from manikin.rng import EpisodeRng
from manikin.tasks.former import FORMER

FILE = Path(__file__).with_name("golden.json")
SEEDS = (0, 1, 2**40)
TASKS = [*task_ids(), *FORMER]
DECIMALS = 6


def golden(task_id: str) -> dict[str, Any]:
    """What the task's version stands for, ready for JSON."""
    kind = task_class(task_id)
    data = os.environ.pop("MANIKIN_DATA", None)  # everywhere the same: primitives in place of scanned objects
    try:
        found = _golden(kind)
    finally:
        if data is not None:
            os.environ["MANIKIN_DATA"] = data
    return json.loads(json.dumps(found))


def _golden(kind: type[Task]) -> dict[str, Any]:
    found = {"declared": declared(kind), "robots": {word: of_robot(kind, word) for word in kind.robots}}
    if kind.layouts:
        found["layouts"] = {name: of_robot(kind, kind.robots[0], name) for name in kind.layouts[1:]}
    return found


def declared(kind: type[Task]) -> dict[str, Any]:
    return {
        "horizon_s": kind.horizon_s,
        "control": kind.control,
        "control_hz": kind.control_hz,
        "physics": dataclasses.asdict(kind.physics),
        "settle_s": kind.settle_s,
        "terminate": kind.terminate,
        "observations": {k: [q.unit, q.frame] for k, q in kind.observations.items()},
        "reward_terms": dict(kind.reward_terms),
        "reward_max": kind.reward_max,
    }


def of_robot(kind: type[Task], robot: str, layout: str | None = None) -> dict[str, Any]:
    task = kind if layout is None else kind(arm=robot, layout=layout)
    env = Env(task, num_envs=len(SEEDS), robot=robot, observe="state_dict", reward="dense", autoreset="disabled")
    seen, info = env.reset(seed=list(SEEDS))
    action = torch.zeros(len(SEEDS), env.controller.card.size)
    snapshot = env.save()
    with torch.no_grad():
        terms = env.task.reward(env.h, env.task.evaluate(env.h), action)
    found = {
        "model": env.scene.hash,
        "config": dataclasses.asdict(env.task.config),
        "qpos": _rounded(snapshot.state[:, 1 : 1 + env.scene.model.nq]),
        "variables": {k: _rounded(v) for k, v in snapshot.extra["variables"].items()},
        "observation": {f"{g}/{k}": _rounded(v) for g, named in seen.items() for k, v in named.items()},
        "reward": {k: _rounded(v) for k, v in terms.items()},
        "flags": {k: v.tolist() for k, v in info.items() if isinstance(v, torch.Tensor) and v.dtype == torch.bool},
        "action_card": [dataclasses.astuple(d) for d in env.controller.card.dims],
    }
    env.close()
    return found


def _rounded(values: Any) -> Any:
    # + 0.0 turns -0.0 into 0.0
    return (np.round(np.asarray(values, np.float64), DECIMALS) + 0.0).tolist()


def draws() -> dict[str, Any]:
    """The random streams themselves, exactly: integers and the bits of floats."""
    seeds = torch.tensor(SEEDS, dtype=torch.int64)
    rng = EpisodeRng(seeds, torch.arange(len(SEEDS)))
    uniform = rng.uniform("golden/uniform", -1.0, 1.0, (3,))
    return {
        "integers": rng.integers("golden/integers", 0, 10**9, (4,)).tolist(),
        "permutation": rng.permutation("golden/permutation", 6).tolist(),
        "uniform_bits": uniform.view(torch.int32).tolist(),
    }


def different(was: Any, now: Any, path: str = "") -> list[str]:
    """Paths of what differs; numbers may differ by one in the last rounded place."""
    if isinstance(was, dict) and isinstance(now, dict):
        gone = [f"{path}/{k}" for k in was.keys() ^ now.keys()]
        return gone + [d for k in was.keys() & now.keys() for d in different(was[k], now[k], f"{path}/{k}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [d for k, (a, b) in enumerate(zip(was, now, strict=True)) for d in different(a, b, f"{path}[{k}]")]
    if isinstance(was, float) and isinstance(now, float | int):
        return [] if abs(was - now) <= 1.5 * 10.0**-DECIMALS * max(1.0, abs(was)) else [f"{path}: {was} -> {now}"]
    return [] if was == now else [f"{path}: {was} -> {now}"]


def stored() -> dict[str, Any]:
    return json.loads(FILE.read_text())


@pytest.mark.parametrize("task_id", TASKS)
def test_a_version_means_what_it_meant(task_id: str) -> None:
    known = stored()["tasks"]
    assert task_id in known, f"{task_id} is new: python tests/tasks/test_golden.py --write"
    changed = different(known[task_id], golden(task_id))
    assert not changed, (
        f"{task_id} is not what it was; physics, start, reward, observation or success rule changed:\n  "
        + "\n  ".join(sorted(changed)[:12])
        + f"\nMake a new version, {_next(task_id)}, so that results stay comparable; or, if this was never released, "
        "python tests/tasks/test_golden.py --write"
    )


def _next(task_id: str) -> str:
    name, _, version = task_id.rpartition("-v")
    return f"{name}-v{int(version) + 1}"


def test_random_streams_give_the_same_draws() -> None:
    """To the bit, on every machine: every recorded episode and every protocol depends on them."""
    assert stored()["draws"] == draws()


def test_no_version_disappears() -> None:
    gone = set(stored()["tasks"]) - set(TASKS)
    assert not gone, f"results exist for {sorted(gone)}: keep the old version beside the new one"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"declared": {"reward_max": 6.0}}, "/declared/reward_max"),
        ({"robots": {"panda": {"model": "0" * 16}}}, "/robots/panda/model"),
    ],
)
def test_a_change_is_noticed_and_named(change: dict[str, Any], path: str) -> None:
    was = stored()["tasks"]["PickCube-v2"]

    def put(into: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        return {**into, **{k: put(into[k], v) if isinstance(v, dict) else v for k, v in values.items()}}

    found = different(was, put(was, change))
    assert len(found) == 1 and found[0].startswith(path)


def test_another_config_is_another_start() -> None:
    class Changed(task_class("PickCube-v2")):  # type: ignore[misc]
        robots = ("panda",)

        @dataclasses.dataclass(frozen=True)
        class Config(task_class("PickCube-v2").Config):  # type: ignore[name-defined]
            spawn_half_size: float = 0.11

    found = different(
        stored()["tasks"]["PickCube-v2"]["robots"]["panda"], json.loads(json.dumps(of_robot(Changed, "panda")))
    )
    assert any("config/spawn_half_size" in f for f in found)
    assert any(f.startswith("/qpos") for f in found)
    assert not any(f.startswith("/model") for f in found)


def write() -> None:
    known = stored() if FILE.exists() else {"tasks": {}}
    made = {"seeds": list(SEEDS), "draws": draws(), "tasks": {}}
    for task_id in TASKS:
        made["tasks"][task_id] = golden(task_id)
        for line in different(known["tasks"].get(task_id, {}), made["tasks"][task_id])[:20]:
            sys.stdout.write(f"{task_id}{line}\n")
    text = json.dumps(made, indent=1, sort_keys=True)
    FILE.write_text(_compact(text) + "\n")


def _compact(text: str) -> str:
    """Lists of numbers on one line."""
    return re.sub(r"\[[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/tasks/test_golden.py --write")
    write()
