"""Rows that nobody looks at show again what they showed; all else stays as it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from manikin import make
from manikin.env.interface import BatchEnv
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.eval.runner import run_episodes
from manikin.policy.chunk import Execution
from manikin.render.rig import CameraRig
from manikin.sense.imperfect import Delay
from manikin.sense.pixels import Jitter, Resize

SMALL = Vision(size=(16, 12), renderer="rays")


def pictured(observe: Any = "rgb+depth", vision: Vision | None = SMALL, **options: Any) -> BatchEnv:
    return make("PushCube-v2", num_envs=3, observe=observe, vision=vision, autoreset="disabled", **options)


def rgb(observation: Any) -> torch.Tensor:
    return observation["cameras"]["base_camera"]["rgb"]


@pytest.mark.parametrize("stages", [(), (Jitter(brightness=0.5, per="step"), Resize(8, 6))], ids=["", "stages"])
def test_watched_rows_are_seen_and_others_show_what_they_showed(stages: Any) -> None:
    vision = dataclasses.replace(SMALL, stages=stages)
    whole, some = pictured(vision=vision), pictured(vision=vision)
    whole.reset(seed=5)
    some.reset(seed=5)
    actions, before = torch.full((3, 8), 0.8), None
    for step, rows in enumerate(([1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 0, 1], [1, 1, 1])):
        mask = torch.tensor(rows, dtype=torch.bool)
        some.watch(mask)
        truth, *ends, told = whole.step(actions)
        seen, *others, says = some.step(actions)
        for a, b in zip(
            [*ends, told["elapsed"], told["health"]], [*others, says["elapsed"], says["health"]], strict=True
        ):
            assert torch.equal(a, b)
        assert torch.equal(rgb(seen)[mask], rgb(truth)[mask]), step
        assert torch.equal(seen["policy"]["qpos"][mask], truth["policy"]["qpos"][mask])
        if before is not None:
            assert torch.equal(rgb(seen)[~mask], before[~mask]), step
            assert mask.all() or not torch.equal(rgb(seen)[~mask], rgb(truth)[~mask]), "nothing moved"
        before = rgb(seen).clone()
    assert whole.state_hash().tolist() == some.state_hash().tolist()
    some.watch(None)
    assert torch.equal(rgb(some.step(actions)[0]), rgb(whole.step(actions)[0]))


@pytest.mark.parametrize(
    ("observe", "vision", "skips"),
    [
        ("rgb", SMALL, True),
        (["rgb", {"kind": "Stack", "frames": 2}], SMALL, False),
        ("rgb", dataclasses.replace(SMALL, stages=(Jitter(brightness=0.5, per="step"),)), True),
        ("rgb", dataclasses.replace(SMALL, stages=(Delay(1),)), False),
        ("state", None, False),
    ],
    ids=["pictures", "stack", "jitter", "delay", "state"],
)
def test_what_remembers_or_costs_little_is_always_observed(observe: Any, vision: Vision | None, skips: bool) -> None:
    env = pictured(observe, vision)
    env.reset(seed=1)
    env.watch(torch.zeros(3, dtype=torch.bool))
    env.step(torch.ones(3, 8))
    one, two = (env.step(torch.ones(3, 8))[0] for _ in range(2))
    same = torch.equal(one, two) if isinstance(one, torch.Tensor) else torch.equal(rgb(one), rgb(two))
    assert same == skips


def test_a_mask_of_another_size_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rows must be bool of shape \(3,\)"):
        pictured().watch(torch.ones(2, dtype=torch.bool))


class Bright:
    """Six actions that depend on the picture of the row; asked again after so many of them."""

    stateless = True

    def __init__(self, execute: int) -> None:
        self.execution = Execution(execute)

    def reset(self, rows: torch.Tensor) -> None: ...

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        shade = rgb(observation).float().mean((1, 2, 3)) / 255.0
        steps = torch.linspace(-1.0, 1.0, 6).view(1, 6, 1)
        return (steps * shade.view(-1, 1, 1)).expand(-1, 6, 8)


class Watcher:
    """Looks at everything, so that everything is drawn."""

    def start(self, *_: Any) -> None: ...
    def step(self, *_: Any) -> None: ...
    def finish(self, *_: Any) -> None: ...


def test_an_evaluation_draws_only_what_the_policy_looks_at_and_comes_out_the_same(monkeypatch: Any) -> None:
    drawn: list[int] = []
    render = CameraRig.render

    def counted(self: CameraRig, rows: np.ndarray | None = None, *args: Any, **options: Any) -> Any:
        drawn.append(3 if rows is None else len(rows))
        return render(self, rows, *args, **options)

    monkeypatch.setattr(CameraRig, "render", counted)
    outcomes, pictures = [], []
    for observers in ([], [Watcher()]):
        env = pictured(horizon=20)
        drawn.clear()
        run = run_episodes(env, Bright(4), range(7), observers=observers)
        outcomes.append([(r.seed, r.return_, r.length, r.success_once) for r in run.results])
        pictures.append(sum(drawn))
    assert outcomes[0] == outcomes[1] and len(outcomes[0]) == 7
    assert pictures[0] < 0.45 * pictures[1], pictures  # 5 of 20 steps, and a whole batch where episodes begin
