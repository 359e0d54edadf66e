"""How good a network is: episodes that training never saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from manikin.env.make import make
from manikin.eval.protocol import Protocol
from manikin.eval.runner import run_episodes
from manikin.learn.common.seeds import TEST, VALIDATION
from manikin.learn.run.recipe import Recipe
from manikin.policy.chunk import Execution
from manikin.policy.network import WIDTH, NetworkPolicy

__all__ = ["Validation", "test_protocol"]

_PROTOCOL = ("robot", "control", "physics_hz", "control_hz", "horizon")


class Validation:
    """Plays the same held-out episodes again and again, with the network as it is.

    Args:
        recipe: names the task and how many episodes.
        device: where to simulate.
        threads: of the physics.
        whole: episodes end as the task says, so that the return is the task's own: of robosuite's tasks over all steps.
            False: they end at success at the latest, which takes less time where only success counts.
    """

    def __init__(self, recipe: Recipe, *, device: str = "cpu", threads: int = 0, whole: bool = True) -> None:
        count = recipe.validation_episodes
        self.seeds = range(VALIDATION, VALIDATION + count)
        terminate = None if whole else True
        held_out = recipe.env_options(num_envs=min(count, 128), autoreset="disabled", terminate=terminate)
        self.env = make(recipe.task, options=held_out, device=device, threads=threads)

    def __call__(
        self, module: torch.nn.Module, execution: Execution | None = None, *, width: int = WIDTH
    ) -> dict[str, float]:
        """Share that succeeded, mean return and length. The network is asked for ``width`` rows at a time."""
        training = module.training
        try:
            run = run_episodes(self.env, NetworkPolicy(module, width=width, execution=execution), self.seeds)
        finally:
            module.train(training)
        count = len(run.results)
        return {
            "success": sum(r.success_once for r in run.results) / count,
            "return": sum(r.return_ for r in run.results) / count,
            "length": sum(r.length for r in run.results) / count,
        }

    def close(self) -> None:
        self.env.close()


def test_protocol(recipe: Recipe) -> Protocol:
    """The protocol of the final number: success at least once, on seeds that neither train nor validate."""
    given: dict[str, Any] = {k: v for k, v in recipe.env.items() if k in _PROTOCOL}
    config: Mapping[str, Any] = recipe.env.get("config") or {}
    shown = vars(recipe.pictures).copy()
    del shown["name"]
    return Protocol(
        name=f"trained-{recipe.task}",
        tasks=(recipe.task,),
        seeds=tuple(range(TEST, TEST + recipe.test_episodes)),
        description="Held-out episodes of a training run: no other run trains or validates on them.",
        config={recipe.task: config} if config else {},
        **shown,
        **given,
    )
