"""Rewards, successes and starts against the originals' own numbers, made by running the originals.

``published/*.json`` says with which version and by which script. The rules that the tests of tasks compare with
(``maniskill_rules.py``, ``robosuite_rules.py``) are held to them here, so that no rule is only our reading of a paper.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.math import quat_to_matrix
from maniskill_rules import REFERENCE as MANISKILL_RULES
from robosuite_rules import REFERENCE as ROBOSUITE_RULES

PUBLISHED = Path(__file__).parents[1] / "published"
MANISKILL = json.loads((PUBLISHED / "maniskill.json").read_text())
ROBOSUITE = json.loads((PUBLISHED / "robosuite.json").read_text())
RULES = {task.rpartition("-v")[0]: rule for task, rule in ROBOSUITE_RULES.items()}


def _robosuite_state(row: dict[str, Any]) -> SimpleNamespace:
    poses = {k: np.array(v) for k, v in row.items() if isinstance(v, list) and len(v) == 7}
    joints = {"door/hinge": row.get("hinge"), "door/latch": row.get("latch")}
    tcp = [np.array(p) for p in row["tcp"]]
    rot = {k: quat_to_matrix(torch.tensor(p[3:])).numpy() for k, p in poses.items()}
    if "pot" in rot:  # looks the same after half a turn; robosuite's starts half a turn from ours
        rot["pot"] = rot["pot"] @ np.diag([-1, -1, 1])
    return SimpleNamespace(
        pos={k: p[:3] for k, p in poses.items()},
        rot=rot,
        tcp=tcp[0] if len(tcp) == 1 else tcp,
        held=lambda what: what in row["held"],
        fingered=lambda thing: row["fingered"],
        touching={("red", "green")} if row.get("touching") else set(),
        joint=joints.__getitem__,
        handle=np.array(row.get("handle")),
        size=row.get("size"),
    )


@pytest.mark.parametrize("name", ROBOSUITE["tasks"])
def test_the_rules_give_what_robosuite_gives(name: str) -> None:
    rows = ROBOSUITE["tasks"][name]
    for k, row in enumerate(rows):
        reward, success = RULES[name](_robosuite_state(row))
        assert (float(reward), bool(success)) == (pytest.approx(row["reward"], abs=2e-5), row["success"]), k
    assert {row["success"] for row in rows} == {True, False} or name == "NutAssembly"
    assert len({round(row["reward"], 1) for row in rows}) >= 4


def _maniskill_state(row: dict[str, Any]) -> SimpleNamespace:
    things = {}
    for name, numbers in row["things"].items():
        pose, v, w = np.split(np.array(numbers), [7, 10])
        rot = quat_to_matrix(torch.tensor(pose[3:])).numpy()
        things[name] = SimpleNamespace(pos=pose[:3], rot=rot, v=v, w=w)
    plain = {name: row[name] for name in ("gap", "grasped")}
    variables = {"goal": np.array(row["goal"])}
    return SimpleNamespace(
        tcp=np.array(row["tcp"]), speed=np.array(row["speed"]), variables=variables, **plain, **things
    )


@pytest.mark.parametrize("name", MANISKILL["tasks"])
def test_the_rules_give_what_maniskill_gives(name: str) -> None:
    rows = MANISKILL["tasks"][name]
    for k, row in enumerate(rows):
        reward, success = MANISKILL_RULES[f"{name}-v2"](_maniskill_state(row))
        assert (float(reward), bool(success)) == (pytest.approx(row["reward"], abs=1e-4), row["success"]), k
    assert {row["success"] for row in rows} == {True, False}
    assert len({round(row["reward"], 1) for row in rows}) >= 6


# ---- starts: where each thing is, over many resets -------------------------------------------------------------------

STARTS = {"Lift-v2": ["cube"], "Stack-v2": ["red", "green"], "TwoArmLift-v3": ["pot"], "TwoArmHandover-v2": ["hammer"]}
STARTS |= {"NutAssembly-v4": ["square", "round"], "PickPlace-v2": ["milk", "bread", "cereal", "can"]}


@pytest.mark.parametrize("task", STARTS)
def test_things_start_where_robosuite_puts_them(task: str) -> None:
    """Sideways as far and no farther, with room for a few hundred draws; in height to the tenth of a millimetre."""
    env = manikin.make(task, num_envs=256)
    env.reset(seed=0)
    parts = getattr(env.h, "parts", None) or [getattr(env.h, name) for name in STARTS[task]]
    for name, part in zip(STARTS[task], parts, strict=True):
        published = ROBOSUITE["starts"][task.rpartition("-v")[0]][name]
        low, high = np.array(published["low"]), np.array(published["high"])
        pos = part.pos.numpy().astype(float)
        room = 0.06 * (high - low)[:2] + 1e-4
        assert (np.abs(pos.min(0)[:2] - low[:2]) < room).all() and (np.abs(pos.max(0)[:2] - high[:2]) < room).all()
        if task == "PickPlace-v2":  # they stand, as the page says; robosuite's fall by up to 5 mm
            continue
        assert low[2] == high[2]
        height = pos[:, 2] - (part.size[:, 2].numpy() if name == "cube" else 0.0)
        if name == "hammer":  # on its head's side, as the page says; robosuite's on its handle's, the head in the table
            sizes = env.task.hammer_sizes[part.choice].numpy()
            assert (height - sizes[:, 0] >= -1e-6).all() and (height - sizes[:, 0] < 4.1e-3).all()
            up = quat_to_matrix(part.quat).numpy()[:, 2]
            assert np.abs(up[:, [0, 2]]).max() < 1e-6 and np.abs(low[[3, 5]]).max() < 1e-6
            assert (up[:, 1] > 0).any() and (up[:, 1] < 0).any() and (low[4], high[4]) == (-1, 1)
        else:
            assert height == pytest.approx(low[2], abs=1e-4)
