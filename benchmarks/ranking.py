"""Does matching make simulation rank policies as reality does? Five realities, eight policies, four simulators.

    python benchmarks/ranking.py --folder runs/ranking

Candidates play each reality (``realities.py``, drawn before any of them ran). Eight are chosen by these rates alone:
the networks that see, and others between them. Each then plays the simulator before matching, after system
identification, after visual matching, and after both. MMRV and Pearson compare simulation and reality, per reality; the
interval of a change draws all episodes anew. What the folder has already is not made again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, write
from realities import SEED, TASK, Reality, Simulator, drawn, identified, matched, nominal, real

from manikin.env.state.provenance import versions
from manikin.errors import ConfigError
from manikin.eval.agreement.metrics import mmrv, pearson
from manikin.eval.runner import run_episodes
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.train import CHECKPOINT, State, train
from manikin.machine import machine
from manikin.policy.choices import policy_maker
from manikin.policy.trained import LAST, PROGRAM

OUT = Path(__file__).parent / "results" / "ranking.json"
STATE = "of=ppo-PushCube-v2"  # the shipped policy, which is told the state as the expert is
GRADED = {
    "expert": "graded:",
    "expert-noise": "graded:noise=0.35",
    "expert-bias": "graded:bias=0.1",
    "ppo-bias": f"graded:{STATE},bias=0.25",
    "ppo-noise60": f"graded:{STATE},noise=0.6",
    "ppo-noise90": f"graded:{STATE},noise=0.9",
    "ppo-noise130": f"graded:{STATE},noise=1.3",
    "ppo-late": f"graded:{STATE},delay=2",
    "ppo-noise170": f"graded:{STATE},noise=1.7",
    "ppo-late-noise": f"graded:{STATE},delay=2,noise=0.6",
    "ppo-late-noise90": f"graded:{STATE},delay=2,noise=0.9",
    "ppo-late-noise110": f"graded:{STATE},delay=2,noise=1.1",
    "ppo-later": f"graded:{STATE},delay=3",
}
"""Policies that are told the state, with faults."""
STUDENTS = {"narrow": (25_600,), "wide": (12_800, 25_600, 51_200)}
"""Networks that see, by name: after how many control steps of training each is a candidate. The narrow one has seen the
nominal simulator alone, the wide one ``LOOKS``."""


def _within(low: float, high: float) -> dict[str, Any]:
    return {"Uniform": {"low": low, "high": high}}


LOOKS: dict[str, Any] = {
    "lights": {"0": {"intensity": _within(0.5, 1.4), "turn": _within(-0.6, 0.6)}},
    "surfaces": {
        "table": {"colour": _within(0.1, 0.9), "textures": ["plain", "wood", "tiles", "noise"], "repeat": [4.0]},
        "robot": {"brightness": _within(0.5, 1.0)},
    },
    "cameras": {"near": {"shift": _within(-0.05, 0.05), "turn": _within(-0.06, 0.06)}},
}
"""What the networks have seen in training; it holds what realities are drawn from, and nothing of any one of them."""
KEPT, HIGHEST, LOWEST, APART = 8, 0.9, 0.1, 0.15
SIMULATORS = ("before", "identified", "matched", "both")
RESAMPLES = 2_000


def students(folder: Path, *, quick: bool) -> dict[str, str]:
    """Train networks that see by imitating the shipped policy; folder of the policy after each number of steps."""
    found = {}
    for name, steps in STUDENTS.items():
        place, last = folder / "policies" / name, 80 if quick else steps[-1]
        recipe: Recipe = recipe_for("distill", TASK)[0].replace(steps=last, stop_at=2.0, test_episodes=2)
        if name == "wide":
            recipe = recipe.replace(env={"looks": LOOKS})
        if quick:
            small = {"num_envs": 4, "horizon": 8, "renderer": "rays"}
            few = {"updates": 1, "batch_size": 8}
            recipe = recipe.replace(env=small, settings=few, validate_every=4, validation_episodes=2)
        kept = {80} if quick else set(steps)

        def keep(state: State, _: Mapping[str, float], place: Path = place, kept: set[int] = kept) -> None:
            if state.steps in kept:
                there = place.with_name(f"{place.name}-{state.steps}")
                there.mkdir(parents=True, exist_ok=True)
                shutil.copy(place / LAST, there / "policy.safetensors")

        if not (place / PROGRAM).exists():  # the last file of a run
            resume = (place / CHECKPOINT).exists()
            train(recipe, folder=place, seed=1, threads=1, resume=resume, on_iteration=keep, say=print)
        found |= {f"{name}-{step}": str(place.with_name(f"{name}-{step}") / "policy.safetensors") for step in kept}
    return found


def kept(file: Path, play: Callable[[], list[bool]]) -> list[bool]:
    """Success of each episode as the file has it; where there is none, they are played and kept.

    Raises:
        KeyboardInterrupt: playing was interrupted.
    """
    if not file.exists():
        won = play()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(won))
        print(f"{file.parent.name}/{file.stem}: {np.mean(won):.0%}", flush=True)
    found: list[bool] = json.loads(file.read_text())
    return found


def outcomes(
    name: str, policy: str, simulator: Simulator, file: Path, seeds: Sequence[int], horizon: int
) -> list[bool]:
    """Success of each episode, kept in a file."""

    def play() -> list[bool]:
        env = simulator.make(min(len(seeds), 50), sees=sees(name), horizon=horizon, terminate=True)
        try:
            run = run_episodes(env, policy_maker(policy)(env), seeds)
        finally:
            env.close()
        if run.interrupted:
            raise KeyboardInterrupt
        return [one.success_once for one in run.results]

    return kept(file, play)


def sees(name: str) -> bool:
    """Whether a candidate is a network that sees."""
    return name.partition("-")[0] in STUDENTS


def chosen(rates: Mapping[str, float]) -> list[str]:
    """All networks that see, and as many of the others as make eight: those that leave the smallest gaps. By the rates
    in reality alone, the best first.

    Raises:
        SystemExit: no choice leaves gaps that are small enough.
    """
    pool = [name for name, rate in rates.items() if LOWEST <= rate <= HIGHEST]
    seeing = [name for name in pool if sees(name)]
    told = [name for name in pool if name not in seeing]

    def widest(names: Sequence[str]) -> float:
        ordered = sorted((rates[name] for name in names), reverse=True)
        return max(a - b for a, b in itertools.pairwise(ordered))

    families = [(*seeing, *more) for more in itertools.combinations(told, KEPT - len(seeing))]
    best = min(families, key=widest, default=())
    if not best or widest(best) > APART:
        raise SystemExit(
            f"no {KEPT} policies from {LOWEST:.0%} to {HIGHEST:.0%}, neighbours {APART:.0%} apart: {rates}"
        )
    return sorted(best, key=lambda name: -rates[name])


def agreement(real_rates: np.ndarray, sim_rates: np.ndarray) -> tuple[float, float]:
    """MMRV and Pearson of (policies,) rates; no correlation where a list is constant."""
    try:
        r = pearson(real=real_rates, sim=sim_rates)
    except ConfigError:
        r = 0.0
    return mmrv(real=real_rates, sim=sim_rates), r


def compared(
    reality: Sequence[np.ndarray], simulated: Mapping[str, Sequence[np.ndarray]], *, resamples: int
) -> dict[str, Any]:
    """What each simulator says, and what matching changes; (policies, episodes) outcomes of each reality."""
    rng = np.random.default_rng(0)  # house: random, a stream of its own

    def means(draw: bool) -> dict[str, np.ndarray]:
        def rates(table: np.ndarray) -> np.ndarray:
            if not draw:
                return table.mean(1)
            at = rng.integers(0, table.shape[1], table.shape)
            return np.take_along_axis(table, at, 1).mean(1)

        there = [rates(table) for table in reality]
        return {
            name: np.mean([agreement(a, rates(b)) for a, b in zip(there, tables, strict=True)], 0)
            for name, tables in simulated.items()
        }

    measured, drawn_again = means(False), [means(True) for _ in range(resamples)]
    found: dict[str, Any] = {}
    for name, values in measured.items():
        found[name] = {"mmrv": round(float(values[0]), 4), "pearson": round(float(values[1]), 4)}
        if name != "before":
            for k, metric in enumerate(("mmrv", "pearson")):
                changes = [one[name][k] - one["before"][k] for one in drawn_again]
                low, high = np.quantile(changes, (0.025, 0.975))
                change = float(values[k] - measured["before"][k])
                found[name][f"{metric}_change"] = [round(float(x), 4) for x in (change, low, high)]
    return found


def both(reality: Reality, folder: Path, *, quick: bool) -> tuple[Simulator, dict[str, float]]:
    """The simulator that is matched to a reality in all, and how well that went."""
    robot = identified(reality, folder, quick=quick)
    camera, photograph, looks, how = matched(reality, folder)
    return Simulator(robot=robot, camera=camera, photograph=photograph, looks=looks), how


class Players:
    """Policies by name, each of which plays the same episodes in each simulator.

    Args:
        words: name -> policy word.
        folder: where outcomes are kept. episodes: of each policy. horizon: control steps of each.
    """

    def __init__(self, words: Mapping[str, str], folder: Path, *, episodes: int, horizon: int) -> None:
        self.words, self.folder, self.episodes, self.horizon = words, folder, episodes, horizon

    def __call__(self, where: str, simulator: Simulator, names: Sequence[str], first: int) -> np.ndarray:
        """(names, episodes) successes of the episodes with seeds from ``first`` up."""
        seeds = range(first, first + self.episodes)
        files = {name: self.folder / where / f"{name}.json" for name in names}
        return np.array([outcomes(n, self.words[n], simulator, files[n], seeds, self.horizon) for n in names])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--episodes", type=int, default=64, help="of each policy in each reality and simulator")
    parser.add_argument("--seed", type=int, default=SEED, help="of the realities; others served while this was written")
    args = parser.parse_args()
    out = args.out or (None if args.quick else OUT)
    realities, episodes, horizon, graded = drawn(args.seed), args.episodes, 50, GRADED
    if args.quick:
        realities, episodes, horizon, graded = realities[:1], 2, 8, dict(list(GRADED.items())[:2])
    words = graded | students(args.folder, quick=args.quick)
    played = Players(words, args.folder, episodes=episodes, horizon=horizon)
    there = [
        played(f"reality-{k}", real(one, args.folder / f"reality-{k}"), list(words), 1_000 * (k + 1))
        for k, one in enumerate(realities)
    ]
    rates = dict(zip(words, np.mean([table.mean(1) for table in there], 0), strict=True))
    names = list(words) if args.quick else chosen(rates)
    rows = [list(words).index(name) for name in names]
    reality = [table[rows] for table in there]
    simulated: dict[str, list[np.ndarray]] = {name: [] for name in SIMULATORS}
    matching = []
    for k, one in enumerate(realities):
        twin, how = both(one, args.folder / f"reality-{k}", quick=args.quick)
        matching.append({name: round(value, 4) for name, value in how.items()})
        simulators = {
            "before": nominal(),
            "identified": dataclasses.replace(nominal(), robot=twin.robot),
            "matched": dataclasses.replace(twin, robot=nominal().robot),
            "both": twin,
        }
        for name, simulator in simulators.items():
            simulated[name].append(played(f"reality-{k}-{name}", simulator, names, 100_000 + 1_000 * k))
    result = {
        "command": "python benchmarks/ranking.py",
        "versions": versions(),
        "machine": machine(),
        "seed": args.seed,
        "episodes": episodes,
        "realities": [dataclasses.asdict(one) for one in realities],
        "candidates": {name: round(float(rate), 4) for name, rate in rates.items()},
        "policies": names,
        "reality": [table.mean(1).round(4).tolist() for table in reality],
        "simulated": {
            name: [table.mean(1).round(4).tolist() for table in tables] for name, tables in simulated.items()
        },
        "matching": matching,
        "agreement": compared(reality, simulated, resamples=20 if args.quick else RESAMPLES),
    }
    write(result, out)


if __name__ == "__main__":
    main()
