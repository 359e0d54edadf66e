"""What a single run of a policy does not say: other seeds of the policy, a slow answer, other words of an instruction.

    python benchmarks/policy_conditions.py --folder runs/policy-conditions    # 15 minutes of one core; trains a network
    python docs/ranking.py                                                    # then fills docs/rank-policies.md

seeds         policies that draw random numbers play the same episodes with several seeds. ``clustered`` draws all runs
              of an episode together; ``apart`` takes runs for independent, as Wilson's interval does
slow          a network that answers with chunks needs a time for an answer, and the world goes on meanwhile
instructions  who reads the words: the expert at SIMPLER's cabinet, told which drawer by the instruction alone, and a
              policy that reads nothing
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, command, write

import manikin
from manikin.env.state.provenance import versions
from manikin.eval.runner import run_episodes
from manikin.eval.stats import bootstrap, wilson
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.train import train
from manikin.machine import machine
from manikin.policy.choices import policy_maker
from manikin.policy.chunk import Execution
from manikin.policy.expert import ExpertPolicy
from manikin.policy.trained import PROGRAM, observed_by, trained_policy
from manikin.props.station import DRAWERS

OUT = Path(__file__).parent / "results" / "policy_conditions.json"
FIRST = 1_000_000  # seed of the first episode
RANDOM = ("graded:noise=0.4", "graded:noise=0.1,delay=2", "graded:bias=0.1,noise=0.2", "graded:bias=0.12,noise=0.02")
INFERENCE_MS = (0, 50, 100, 200, 400)
EXECUTED = (8, 1)  # actions of each chunk
SENTENCES = {
    "as declared": {},
    "the word kept": {f"open {name} drawer": [f"pull the {name} one towards you"] for name in DRAWERS},
    "the word replaced": {
        "open top drawer": ["pull the highest one towards you"],
        "open middle drawer": ["pull the central one towards you"],
        "open bottom drawer": ["pull the lowest one towards you"],
    },
}
Rate = dict[str, float]


def played(env: Any, policy: Any, episodes: int, **options: Any) -> list[bool]:
    """Success of each episode, at its end where the task goes on after success."""
    try:
        run = run_episodes(env, policy, range(FIRST, FIRST + episodes), **options)
    finally:
        env.close()
    if run.interrupted:
        raise KeyboardInterrupt
    return [one.success_at_end for one in run.results]


def rate(won: Sequence[bool]) -> Rate:
    """Share of successes with Wilson's 95 % interval."""
    found = wilson(sum(won), len(won))
    return {"rate": round(found.estimate, 4), "low": round(found.low, 4), "high": round(found.high, 4)}


def seeds(episodes: int, count: int) -> dict[str, Any]:
    """Policies by word: the rate of each seed, both intervals of all runs, and how alike runs of an episode are."""
    found = {}
    for word in RANDOM:
        runs = []
        for seed in range(count):
            env = manikin.make(
                "PushCube-v2", num_envs=min(episodes, 64), control="joint_delta_pos", autoreset="disabled"
            )
            runs.append(played(env, policy_maker(word, seed=seed)(env), episodes))
        table = np.array(runs, float)  # (seeds, episodes)
        together = bootstrap(table.ravel().tolist(), clusters=np.tile(np.arange(episodes), count).tolist())
        between, total = table.mean(0).var(ddof=1), table.var()
        alike = (count * between / total - 1) / (count - 1) if total else 1.0
        found[word] = {
            "seeds": [round(float(one), 4) for one in table.mean(1)],
            "clustered": {"low": round(together.low, 4), "high": round(together.high, 4)},
            "apart": rate([bool(one) for one in table.ravel()]),
            "correlation": round(float(alike), 3),
        }
    return found


def slow(folder: Path, episodes: int, *, quick: bool) -> dict[str, Any]:
    """Success of a network for PickCube by the time of an answer and by how much of each chunk is executed."""
    recipe = recipe_for("diffusion", "PickCube-v2")[0].replace(steps=2 if quick else 2_000, test_episodes=2)
    if quick:
        recipe = recipe.replace(settings={"demonstrations": 3}, validate_every=1, validation_episodes=2)
    if not (folder / PROGRAM).exists():  # the last file of a run
        train(recipe, folder=folder, seed=1, threads=1, resume=False, say=print)
    found: dict[str, Any] = {}
    for executed in EXECUTED:
        for late in INFERENCE_MS[: 2 if quick else None]:
            env = manikin.make(
                "PickCube-v2",
                num_envs=min(episodes, 64),
                control="ee_delta_pos",
                horizon=4 if quick else 100,
                autoreset="disabled",
                terminate=True,
                **observed_by(folder),
            )
            policy, execution = trained_policy(folder)(env), Execution(execute=executed)
            won = played(env, policy, episodes, execution=execution, inference_ms=late)
            found.setdefault(str(executed), {})[str(late)] = rate(won)
    return found


class Reader:
    """The cabinet's expert, which takes the drawer from the words of the instruction: the first where none is named."""

    def __init__(self, env: Any) -> None:
        self.env, self._expert = env, ExpertPolicy(env)

    def reset(self, rows: torch.Tensor) -> None:
        self._expert.reset(rows)

    def act(self, observation: Any, instruction: Sequence[str]) -> torch.Tensor:
        names, meant = list(DRAWERS), self.env.h.drawer
        read = [next((k for k, name in enumerate(names) if name in words.split()), 0) for words in instruction]
        asked = meant.value.clone()
        meant.set(torch.tensor(read, dtype=asked.dtype))
        action = self._expert.act(observation, instruction)
        meant.set(asked)  # success is judged by what was asked
        return action


def instructions(episodes: int, *, quick: bool) -> dict[str, Any]:
    """Success at opening drawers, by how the instruction is put."""
    found: dict[str, Any] = {}
    makers: Mapping[str, Any] = {"reads": Reader, "does not read": policy_maker("expert")}
    for name, maker in makers.items():
        for words, sentences in SENTENCES.items():
            short = {"horizon": 3} if quick else {}
            env = manikin.make("GoogleOpenDrawer-v1", num_envs=episodes, autoreset="disabled", **short)
            won = played(env, maker(env), episodes, paraphrases=sentences)
            found.setdefault(name, {})[words] = rate(won)
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/policy-conditions"), help="of the network")
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=5, help="of each policy that draws random numbers")
    args = parser.parse_args()
    out = args.out or (None if args.quick else OUT)
    episodes, count = (2, 2) if args.quick else (args.episodes, args.seeds)
    torch.set_num_threads(1)
    result: dict[str, Any] = {"command": command(), "versions": versions(), "machine": machine(), "episodes": episodes}
    result["seeds"] = seeds(episodes, count)
    result["instructions"] = instructions(2 if args.quick else 54, quick=args.quick)
    result["slow"] = slow(args.folder, episodes, quick=args.quick)
    write(result, out)


if __name__ == "__main__":
    main()
