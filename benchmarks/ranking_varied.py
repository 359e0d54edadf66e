"""How far does the ranking of ranking.py depend on what nobody knows exactly? The paper's cells, on the same realities.

    python benchmarks/ranking.py --folder runs/ranking            # first: policies, realities, matched simulators
    python benchmarks/ranking_varied.py --folder runs/ranking

The same eight policies play the matched simulators again with one thing changed in each cell:

physics       mass of the cube x friction of everything it touches, as factors (SIMPLER: can mass x gripper friction)
identified    stiffness of the identified servos, all by one factor
pictures      photograph behind the scene x brightness of the cube x brightness of the arm, each matched or not
colours       photograph x cube, the arm in SIMPLER's four colours about the matched brightness; episodes share them
world         the same on MuJoCo Warp, where it is installed
checkpoints   networks along their training, in simulation and in reality
offline       no simulator: the same policies ranked by the error of their actions on demonstrations in each reality
cabinet       other policies at SIMPLER's cabinet, whose reality is its declared joint friction, beside six frictions

MMRV and Pearson are means over the realities. What the folder has already is not made again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, write
from ranking import GRADED, Players, agreement, both, kept, sees, students
from realities import Simulator, drawn, real

import manikin
from manikin import SceneBuilder
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.env.state.provenance import versions
from manikin.eval.agreement.metrics import METRICS
from manikin.eval.offline import action_errors
from manikin.eval.runner import run_episodes
from manikin.machine import machine
from manikin.policy.choices import policy_maker
from manikin.props.station import JOINT_FRICTION
from manikin.robots.google_robot_rt1 import COLOURS
from manikin.spec.looks import Looks, Surface
from manikin.spec.vary import Choice
from manikin.tasks.tabletop.push_cube import PushCube, PushCubeHandles

OUT = Path(__file__).parent / "results" / "ranking_varied.json"
RANKING = Path(__file__).parent / "results" / "ranking.json"
MASSES, FRICTIONS = (0.5, 1.0, 2.0), (0.5, 1.0, 1.5)
STIFFNESS = (0.5, 0.8, 1.0, 1.25, 2.0)
ARMS = tuple(
    tuple((a - b) / 255 for a, b in zip(arm, COLOURS["default"][0], strict=True)) for arm, _ in COLOURS.values()
)
"""What each of SIMPLER's colours of the arm adds to the first."""
DEMONSTRATIONS = 24  # of each reality, successes alone
RESAMPLES = 2_000
JOINT_FRICTIONS = (0.0125, 0.025, 0.05, 0.1, 0.15, 0.2)  # SIMPLER's Table X
DRAWERS = ("GoogleOpenDrawer-v1", "GoogleCloseDrawer-v1")
AT_DRAWERS = {
    "expert": "graded:",
    "noise-0.02": "graded:noise=0.02",
    "noise-0.035": "graded:noise=0.035",
    "noise-0.05": "graded:noise=0.05",
    "noise-0.1": "graded:noise=0.1",
    "late-1": "graded:delay=1",
    "late-2": "graded:delay=2",
    "dropping": "graded:drop=0.2",
}
"""Policies at the cabinet; noise [m] and [rad] in every step, late by steps of a third of a second."""
Cell = Callable[[Simulator, Path], Simulator]


class VariedPush(PushCube):
    """PushCube with another cube."""

    @dataclass(frozen=True)
    class Config(PushCube.Config):
        mass_factor: float = 1.0
        friction: float = 1.0

    def scene(self, b: SceneBuilder) -> PushCubeHandles:
        h = super().scene(b)
        for geom in map(b.spec.geom, h.cube.geom_names):
            geom.density *= self.config.mass_factor
            geom.friction[0] = self.config.friction
        return h


def physics(mass: float, friction: float) -> Cell:
    config = {"mass_factor": mass, "friction": friction}
    return lambda twin, _: dataclasses.replace(twin, task=VariedPush, config=config)


def stiffness(factor: float) -> Cell:
    def changed(twin: Simulator, folder: Path) -> Simulator:
        lines = []
        for line in Path(twin.robot).read_text().splitlines():
            name, equals, value = line.partition(" = ")
            lines.append(f"kp = {factor * float(value)!r}" if equals and name == "kp" else line)
        file = folder / f"stiffness-{factor:g}.toml"
        file.write_text("\n".join(lines) + "\n")
        return dataclasses.replace(twin, robot=str(file))

    return changed


def pictures(photograph: bool, cube: bool, arm: bool) -> Cell:
    def changed(twin: Simulator, _: Path) -> Simulator:
        kept = {"cube": cube, "robot": arm}
        surfaces = {name: one for name, one in (twin.looks or Looks()).surfaces.items() if kept.get(name, True)}
        behind = twin.photograph if photograph else None
        return dataclasses.replace(twin, photograph=behind, looks=Looks(surfaces=surfaces))

    return changed


def colours(photograph: bool, cube: bool) -> Cell:
    def changed(twin: Simulator, folder: Path) -> Simulator:
        one = pictures(photograph, cube, True)(twin, folder)
        surfaces = dict(one.looks.surfaces) if one.looks is not None else {}
        surfaces["robot"] = dataclasses.replace(surfaces.get("robot", Surface()), offset=Choice(ARMS))
        return dataclasses.replace(one, looks=Looks(surfaces=surfaces))

    return changed


def cells() -> dict[str, dict[str, Cell]]:
    """Group -> words of a cell -> what it changes."""
    found: dict[str, dict[str, Cell]] = {
        "physics": {f"mass x {m:g}, friction {f:g}": physics(m, f) for m, f in itertools.product(MASSES, FRICTIONS)},
        "identified": {f"stiffness x {factor:g}": stiffness(factor) for factor in STIFFNESS},
        "pictures": {
            ", ".join(word for word, on in zip(("photograph", "cube", "arm"), which, strict=True) if on) or "none": (
                pictures(*which)
            )
            for which in itertools.product((True, False), repeat=3)
        },
    }
    found["colours"] = {
        ", ".join(
            [word for word, on in zip(("photograph", "cube"), which, strict=True) if on] + ["arm in four colours"]
        ): (colours(*which))
        for which in itertools.product((True, False), repeat=2)
    }
    if find_spec("mujoco_warp"):
        found["world"] = {"warp:cpu": lambda twin, _: dataclasses.replace(twin, device="warp:cpu")}
    return found


class Again:
    """Acts as it was recorded, by the seed of an episode."""

    name = "as recorded"

    def __init__(self, env: Any, actions: Mapping[int, np.ndarray]) -> None:
        self.env, self.actions = env, actions
        self._left = [[env.hold()[row].numpy()] for row in range(env.num_envs)]  # the last one stays

    def reset(self, rows: torch.Tensor) -> None:
        seeds = self.env.save(rows.numpy()).extra["seed"]
        for row, seed in zip(rows.tolist(), seeds.tolist(), strict=True):
            self._left[row] = list(self.actions[seed])

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        taken = [left.pop(0) if len(left) > 1 else left[0] for left in self._left]
        return torch.from_numpy(np.array(taken, np.float32))[:, None]


def demonstrations(reality: Simulator, folder: Path, first: int, horizon: int, *, quick: bool) -> tuple[Path, Path]:
    """Recordings of the shipped policy in a reality, the same episodes as the state has them and as the camera does.
    The networks that see were taught by that policy."""
    told, seen = folder / "demonstrations.h5", folder / "demonstrations-seen.h5"
    if not told.exists():
        env = reality.make(16, sees=False, horizon=horizon, terminate=True)
        recorder = Recorder(env, told, keep="all" if quick else "success", first_seed=first)
        count = 2 if quick else 3 * DEMONSTRATIONS
        run_episodes(env, policy_maker("ppo-PushCube-v2")(env), range(first, first + count), observers=[recorder])
        recorder.close()
        env.close()
    if not seen.exists():
        with read_episodes(told) as file:
            actions = {one.seed: np.asarray(one.actions) for one in file}
        env = reality.make(16, sees=True, horizon=horizon, terminate=True)
        recorder = Recorder(env, seen, keep="all")
        run_episodes(env, Again(env, actions), list(actions)[:DEMONSTRATIONS], observers=[recorder])
        recorder.close()
        env.close()
    return told, seen


def offline(
    words: Mapping[str, str], names: Sequence[str], recordings: Sequence[tuple[Path, Path]], there: Sequence[np.ndarray]
) -> dict[str, Any]:
    """Agreement of the errors of actions with success in reality, means over the realities.

    Args:
        words: of policies, by name.
        names: of those that are compared.
        recordings: of each reality.
        there: (policies, episodes) outcomes in each reality.
    """
    errors = []  # (policies, demonstrations) of each reality
    for told, seen in recordings:
        found: dict[str, Sequence[float]] = {}
        for file, which in ((told, False), (seen, True)):
            makers = {name: policy_maker(words[name]) for name in names if sees(name) is which}
            if makers:
                found |= {one.policy: one.episodes for one in action_errors(file, makers)[1]}
        count = min(DEMONSTRATIONS, *map(len, found.values()))
        errors.append(np.array([found[name][:count] for name in names]))
    rng = np.random.default_rng(0)  # house: random, a stream of its own

    def again(table: np.ndarray) -> np.ndarray:
        at = rng.integers(0, table.shape[1], table.shape)
        return np.take_along_axis(table, at, 1)

    def said(draw: bool) -> list[np.ndarray]:
        pairs = [(again(a), again(b)) if draw else (a, b) for a, b in zip(there, errors, strict=True)]
        near = [(a.mean(1), -b.mean(1)) for a, b in pairs]  # the smaller the error, the better
        return [np.mean([np.nan_to_num(METRICS[metric](a, b)) for a, b in near]) for metric in ("mmrv", "pearson")]

    values, drawn_again = said(False), np.array([said(True) for _ in range(RESAMPLES)])
    told_of = {"demonstrations": [table.shape[1] for table in errors]}
    for k, metric in enumerate(("mmrv", "pearson")):
        low, high = np.quantile(drawn_again[:, k], (0.025, 0.975))
        told_of[metric] = [round(float(x), 4) for x in (values[k], low, high)]
    mean = np.mean([table.mean(1) for table in errors], 0)
    return {**told_of, "errors": {name: round(float(x), 4) for name, x in zip(names, mean, strict=True)}}


def at_drawers(policy: str, friction: float, file: Path, first: int, *, count: int, quick: bool) -> list[bool]:
    """Success of a policy at the cabinet, ``count`` episodes of opening and as many of closing a drawer."""

    def play() -> list[bool]:
        won: list[bool] = []
        for task in DRAWERS:
            short = {"horizon": 3} if quick else {}
            config = {"joint_friction": friction}
            env = manikin.make(task, num_envs=count, config=config, autoreset="disabled", **short)
            try:
                run = run_episodes(env, policy_maker(policy)(env), range(first, first + count))
            finally:
                env.close()
            if run.interrupted:
                raise KeyboardInterrupt
            won += [one.success_at_end for one in run.results]
        return won

    return kept(file, play)


def cabinet(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Agreement with the cabinet as declared, of cabinets with other friction of their joints."""
    count, policies, frictions = 27, AT_DRAWERS, JOINT_FRICTIONS
    if quick:
        count, policies, frictions = 1, dict(list(AT_DRAWERS.items())[:2]), JOINT_FRICTIONS[:1]

    def rates(where: str, friction: float, first: int) -> np.ndarray:
        place = folder / "varied" / "cabinet" / where
        return np.array(
            [
                np.mean(at_drawers(word, friction, place / f"{name}.json", first, count=count, quick=quick))
                for name, word in policies.items()
            ]
        )

    there, found = rates("reality", JOINT_FRICTION, 1_000), {}
    for friction in frictions:
        simulated = rates(f"friction-{friction:g}", friction, 500_000)
        mmrv, pearson = agreement(there, simulated)
        found[f"friction {friction:g}"] = {
            "mmrv": round(mmrv, 4),
            "pearson": round(pearson, 4),
            "rates": {name: round(float(rate), 4) for name, rate in zip(policies, simulated, strict=True)},
        }
    reality = {name: round(float(rate), 4) for name, rate in zip(policies, there, strict=True)}
    return {"episodes": count * len(DRAWERS), "reality": reality, "cells": found}


def main() -> None:
    wanted = cells()
    groups_known = (*wanted, "checkpoints", "offline", "cabinet")
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--episodes", type=int, default=32, help="of each policy in each cell and reality")
    parser.add_argument("--group", nargs="+", choices=groups_known, default=groups_known, help="these alone")
    args = parser.parse_args()
    out = args.out or (None if args.quick else OUT)
    realities, names, horizon = drawn(), json.loads(RANKING.read_text())["policies"], 50
    words = GRADED | students(args.folder, quick=args.quick)
    if args.quick:
        realities, args.episodes, horizon, names = realities[:1], 1, 8, list(words)[-2:]
        wanted = {group: dict(list(one.items())[-1:]) for group, one in wanted.items() if group != "world"}
    wanted = {group: one for group, one in wanted.items() if group in args.group}
    played = Players(words, args.folder, episodes=args.episodes, horizon=horizon)
    done: dict[str, Any] = json.loads(out.read_text()) if out is not None and out.exists() else {}
    done |= {"command": "python benchmarks/ranking_varied.py", "versions": versions(), "machine": machine()}
    done |= {"episodes": args.episodes, "policies": names}
    groups = done.setdefault("cells", {})
    places = [args.folder / f"reality-{k}" for k in range(len(realities))]
    real_ones = [real(one, place) for one, place in zip(realities, places, strict=True)]
    there = [played(f"varied/reality-{k}", one, names, 1_000 * (k + 1)) for k, one in enumerate(real_ones)]
    twins: list[Simulator] = []
    if wanted or "checkpoints" in args.group:
        twins = [both(one, place, quick=args.quick)[0] for one, place in zip(realities, places, strict=True)]
    for group, one in wanted.items():
        for words_of, cell in one.items():
            simulated = []
            for k, twin in enumerate(twins):
                changed = cell(twin, places[k])
                where = f"varied/{group}-{words_of}/reality-{k}".replace(" ", "_")
                simulated.append(played(where, changed, names, 200_000 + 1_000 * k).mean(1))
            found = np.mean([agreement(a.mean(1), b) for a, b in zip(there, simulated, strict=True)], 0)
            rates = {n: round(float(rate), 4) for n, rate in zip(names, np.mean(simulated, 0), strict=True)}
            values = {"mmrv": round(float(found[0]), 4), "pearson": round(float(found[1]), 4), "rates": rates}
            groups.setdefault(group, {})[words_of] = values
            write(done, out)
    if "checkpoints" in args.group:
        done["checkpoints"] = {
            name: [
                [
                    round(float(played(f"varied/{where}-{k}", simulator, [name], 300_000 + 1_000 * k).mean()), 4)
                    for k, simulator in enumerate(simulators)
                ]
                for where, simulators in (("real", real_ones), ("sim", twins))
            ]
            for name in words
            if sees(name)
        }
        write(done, out)
    if "offline" in args.group:
        recordings = [
            demonstrations(one, place, 400_000 + 1_000 * k, horizon, quick=args.quick)
            for k, (one, place) in enumerate(zip(real_ones, places, strict=True))
        ]
        whole = Players(words, args.folder, episodes=args.episodes if args.quick else 64, horizon=horizon)
        where = "varied/reality" if args.quick else "reality"  # with as many episodes as the simulators are held to
        outcomes = [whole(f"{where}-{k}", one, names, 1_000 * (k + 1)) for k, one in enumerate(real_ones)]
        done["offline"] = offline(words, names, recordings, outcomes)
        write(done, out)
    if "cabinet" in args.group:
        done["cabinet"] = cabinet(args.folder, quick=args.quick)
        write(done, out)


if __name__ == "__main__":
    main()
