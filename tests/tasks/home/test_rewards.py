"""Dense rewards beside the published formulas, written out for one row in plain Python."""

from __future__ import annotations

import math
from math import tanh

import numpy as np
import pytest
import torch

from manikin.tasks.home import rewards
from manikin.tasks.home.predicates import Goal, Joint, Seen, rest_place
from manikin.tasks.home.rules import RULES

REST = np.array([0.386, 0.0, -0.370, 0.562, -1.032, 0.695, 0.955, -0.1, 2.077, 0.0])
TORSO = (0.0386, 0.3861)
ROWS = range(40)


def draw(k: int) -> dict[str, np.ndarray]:
    """A row: half of them near rest and near the goal, where more terms count."""
    rng = np.random.default_rng(k)
    near = 0.02 if k % 2 else 1.0
    base = np.array([*rng.normal(size=2), rng.uniform(-3, 3)])
    c, s = math.cos(base[2]), math.sin(base[2])
    rest = np.array([base[0] + 0.5 * c, base[1] + 0.5 * s, 1.25])
    tcp = rest + near * rng.normal(size=3)
    goal = rest + 0.05 * near * rng.normal(size=3) + np.array([0.02, 0.0, 0.0])
    return {
        "base": base,
        "rest": rest,
        "tcp": tcp,
        "joints": REST + near * 0.2 * rng.normal(size=10),
        "joint_speeds": near * rng.normal(size=10),
        "base_speeds": near * rng.normal(size=3),
        "obj": goal + 0.08 * rng.normal(size=3),
        "goal": goal,
        "force": rng.uniform(0, 900),
        "pressed": rng.uniform(0, 12000),
        "grasped": np.array(k % 3 > 0),
        "q": rng.uniform(0.0, 0.5) if k % 4 else 0.001 + 0.001 * k / 40,
        "speed": rng.normal(),
        "handle": tcp + 0.3 * rng.normal(size=3),
        "tcp_speed": rng.uniform(0, 2),
        "obj_speeds": rng.uniform(0, 2, size=2),
        "success": np.array(k % 5 == 0),
        "pushed": np.array(k % 4 < 2),
        "way": rng.uniform(0, 8),
        "forth": rng.normal(),
    }


R = [draw(k) for k in ROWS]


def all_of(name: str) -> torch.Tensor:
    value = np.stack([np.asarray(row[name]) for row in R])
    return torch.from_numpy(value if value.dtype == bool else value.astype(np.float32))


def seen() -> Seen:
    flags = {
        "still": torch.ones(len(R), dtype=torch.bool),
        "tool_rests": torch.tensor([d(r["tcp"], r["rest"]) <= 0.05 for r in R]),
        "loose": torch.tensor([bool(np.abs(r["joints"] - REST).max() < 0.6) for r in R]),
        "tight": torch.tensor([near(r["joints"] - REST) for r in R]),
    }
    numbers = {name: all_of(name) for name in Seen.__annotations__ if name not in flags}
    return Seen(**{**numbers, "joints": numbers["joints"] - torch.tensor(REST).float()}, **flags)


def near(away: np.ndarray) -> bool:
    return bool(np.abs(away)[1:].max() < 0.2 and abs(away[0]) < 0.01)


def joint(kind: str) -> Joint:
    n = len(R)
    return Joint(
        kind=kind,
        q=all_of("q"),
        speed=all_of("speed"),
        limits=torch.tensor([[0.0, 0.5]]).expand(n, 2),
        start=torch.full((n,), 0.5),
        frame=torch.cat([all_of("base")[:, :2], torch.zeros(n, 1)], 1) - torch.tensor([1.0, 0.0, 0.0]),
        handle=all_of("handle"),
    )


def d(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b))


def resting(r: dict, tight: bool) -> bool:
    away = np.abs(r["joints"] - REST)
    arm = away.max() < 0.6 if not tight else away[1:].max() < 0.2 and away[0] < 0.01
    return bool(d(r["tcp"], r["rest"]) <= 0.05 and arm)


def speed(r: dict) -> float:
    return float(np.linalg.norm([*r["joint_speeds"], *r["base_speeds"]]))


def gentle(r: dict, limit: float) -> float:
    c = max(0.001 * r["force"], 0.2) - 0.2
    return 3 * (1 - tanh(3 * c)) + 2 * (r["pressed"] < limit)


def raised(r: dict) -> float:
    return (r["joints"][0] - TORSO[0]) / (TORSO[1] - TORSO[0])


def matches(terms: dict[str, torch.Tensor], formula) -> None:
    total = sum(terms.values())
    expected = [formula(r) for r in R]
    assert total.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_rest_is_half_a_metre_ahead_and_high_up() -> None:
    assert torch.allclose(rest_place(all_of("base")), all_of("rest"), atol=1e-5)


def test_pick() -> None:
    def formula(r: dict) -> float:
        reach, held = d(r["obj"], r["tcp"]), bool(r["grasped"])
        arm = 1 - tanh(d(r["joints"], REST) / 5)
        total = 5 * (1 - tanh(3 * reach)) + (1 - tanh(r["tcp_speed"] / 5)) + 2 * held + 3 * bool(r["success"]) + arm
        total += gentle(r, 5000)
        if not held:
            total += 1 if reach < 0.3 else 1 - tanh(5 * abs(r["joint_speeds"][0]))
            return total + 1 - tanh(5 * d(r["obj"][:2], r["tcp"][:2]))
        total += 2 + 5 * (1 - tanh(3 * d(r["tcp"], r["rest"]))) + arm + 1 - tanh(np.linalg.norm(r["base_speeds"]))
        return total + (2 + 1 - tanh(speed(r)) if resting(r, tight=False) else 0)

    terms = rewards.pick_terms(seen(), all_of("tcp_speed"), all_of("success"))
    matches(terms, formula)
    assert sum(bool(r["grasped"]) and resting(r, False) for r in R) > 3


def test_place() -> None:
    def formula(r: dict) -> float:
        held, away = bool(r["grasped"]), d(r["obj"], r["goal"])
        total = 1 - tanh(r["tcp_speed"] / 5) + 3 * (1 - tanh(sum(r["obj_speeds"]) * (not held) / 5))
        total += 6 * bool(r["success"]) + gentle(r, 7500)
        if away > 0.15:
            total += 2 * held + 1 - tanh(5 * abs(min(r["joint_speeds"][0], 0)))
            total += 6 * (1 - (tanh(away) + tanh(d(r["tcp"], r["goal"]))) / 2)
            high = abs(r["obj"][2] - r["goal"][2] - 0.05) + abs(r["tcp"][2] - r["goal"][2] - 0.05)
            return total + 4 * (1 - tanh(high / 2))
        base = 1 - tanh(np.linalg.norm(r["base_speeds"]))
        total += 13 + 5 * (1 - tanh(3 * d(r["tcp"], r["rest"]))) + 4 * (1 - tanh(d(r["joints"], REST)))
        total += 2 * raised(r) + base
        return total + (2 + 1 - tanh(speed(r)) + base if resting(r, tight=True) else 0)

    goal = Goal(all_of("goal"))
    terms = rewards.place_terms(seen(), goal, all_of("tcp_speed"), all_of("obj_speeds"), all_of("success"), TORSO)
    matches(terms, formula)
    assert 5 < sum(d(r["obj"], r["goal"]) > 0.15 for r in R) < 35


@pytest.mark.parametrize("kind, share, fast", [("drawer", 0.9, 1.0), ("fridge", 0.75, 2.0)])
def test_open(kind: str, share: float, fast: float) -> None:
    def formula(r: dict) -> float:
        goal, is_open = share * 0.5, r["q"] > share * 0.5
        reach = 6 if is_open else 5 if r["grasped"] else 3 * (1 - tanh(d(r["tcp"], r["handle"])))
        total = reach + 6 * (1 - max(0, (goal - r["q"]) / goal)) + 3 * (r["q"] > 0.01) + 3 * (r["speed"] <= fast)
        total += 3 * bool(r["success"])
        if is_open:
            total += 2 * (1 - tanh(d(r["joints"], REST))) + raised(r) + 2 * (1 - tanh(d(r["tcp"], r["rest"])))
            total += 1 - tanh(speed(r)) if resting(r, tight=True) else 0
        return total

    matches(rewards.open_terms(seen(), joint(kind), all_of("success"), TORSO), formula)


def test_close() -> None:
    def formula(r: dict) -> float:
        goal, pushed = 0.005, bool(r["pushed"])
        reach = 8 if pushed else 7.5 if r["grasped"] else 7 * (1 - tanh(d(r["tcp"], r["handle"])))
        away, rest = d(r["joints"], REST), d(r["tcp"], r["rest"])
        arm = 1 - (tanh(away) + tanh(away / 5)) / 2
        total = reach + 5 * (1 - max(0, (r["q"] - goal) / (0.5 - goal))) + 5 * (abs(r["speed"]) <= 1)
        total += arm * (10 if pushed else 1)
        if pushed:
            total += raised(r) + 2 - (tanh(rest) + tanh(3 * rest)) + 3 * bool(r["success"])
            total += 2 * (1 - tanh(speed(r))) if resting(r, tight=True) else 0
        return total

    matches(rewards.close_terms(seen(), joint("drawer"), all_of("pushed"), all_of("success"), TORSO), formula)


@pytest.mark.parametrize("carrying", [False, True])
def test_navigate(carrying: bool) -> None:
    def formula(r: dict) -> float:
        ready = bool(r["grasped"]) or not carrying
        to = r["goal"][:2] - r["base"][:2]
        error = abs((math.atan2(to[1], to[0]) - r["base"][2] + math.pi) % (2 * math.pi) - math.pi)
        near = np.linalg.norm(to) <= 2
        total = 2 * ready
        if ready:
            total += 12 if near else 8 * (1 - tanh(r["way"] / 10)) + 2 * tanh(2 * max(r["forth"], 0))
        if near and error > 0.5:
            total += 2 * (1 - tanh(error / 2))
        elif near:
            total += 2 + 2 * (1 - tanh(np.linalg.norm(r["base_speeds"]) / 3))
            total += 1 - tanh(speed(r)) if d(r["tcp"], r["rest"]) <= 0.05 else 0
        total += 5 * (1 - tanh(3 * (max(0.005 * r["force"], 0.2) - 0.2)))
        return total + 2 * (1 - tanh(d(r["joints"], REST) / 5)) + 2 * (1 - tanh(3 * d(r["tcp"], r["rest"])))

    terms = rewards.navigate_terms(seen(), all_of("goal"), all_of("way"), all_of("forth"), carrying=carrying)
    matches(terms, formula)


def test_terms_stay_within_what_the_published_code_divides_by() -> None:
    """Of Place and Navigate; Pick's add up to 29, where that divides by 28."""
    n, still, yes = len(R), torch.zeros(len(R)), torch.ones(len(R), dtype=torch.bool)
    base = torch.zeros(n, 3)
    best = Seen(
        base=base,
        tcp=rest_place(base),
        joints=torch.zeros(n, 10),
        joint_speeds=torch.zeros(n, 10),
        base_speeds=torch.zeros(n, 3),
        grasped=torch.ones(n, dtype=torch.bool),
        force=still,
        pressed=still,
        obj=rest_place(base),
        still=yes,
        tool_rests=yes,
        loose=yes,
        tight=yes,
    )
    assert sum(rewards.pick_terms(best, still, yes).values()).max() == pytest.approx(29, abs=1e-4)
    goal = Goal(best.obj)
    placed = rewards.place_terms(best, goal, still, torch.zeros(n, 2), yes, TORSO)
    assert sum(placed.values()).max() == pytest.approx(RULES["place"].reward_max, abs=2e-3)
    ahead = torch.tensor([[1.0, 0.0, 0.0]]).expand(n, 3)
    driven = rewards.navigate_terms(best, ahead, still, still)
    assert sum(driven.values()).max() == pytest.approx(RULES["navigate"].reward_max, abs=1e-4)
