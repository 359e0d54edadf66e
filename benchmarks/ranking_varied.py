"""How far does the ranking of ranking.py depend on what nobody knows exactly? The paper's cells, on the same realities.

    python benchmarks/ranking.py --folder runs/ranking            # first: policies, realities, matched simulators
    python benchmarks/ranking_varied.py --folder runs/ranking

The same eight policies play the matched simulators again with one thing changed in each cell:

physics       mass of the cube x friction of everything it touches, as factors (SIMPLER: can mass x gripper friction)
identified    stiffness of the identified servos, all by one factor
pictures      photograph behind the scene x brightness of the cube x brightness of the arm, each matched or not
world         the same on MuJoCo Warp, where it is installed
checkpoints   networks along their training, in simulation and in reality

MMRV and Pearson are means over the realities. What the folder has already is not made again.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import arguments, write
from ranking import GRADED, STUDENTS, Players, agreement, both, students
from realities import Simulator, drawn, real

from manikin import SceneBuilder
from manikin.env.state.provenance import machine, versions
from manikin.spec.looks import Looks
from manikin.tasks.tabletop.push_cube import PushCube, PushCubeHandles

OUT = Path(__file__).parent / "results" / "ranking_varied.json"
RANKING = Path(__file__).parent / "results" / "ranking.json"
MASSES, FRICTIONS = (0.5, 1.0, 2.0), (0.5, 1.0, 1.5)
STIFFNESS = (0.5, 0.8, 1.0, 1.25, 2.0)
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
    if find_spec("mujoco_warp"):
        found["world"] = {"warp:cpu": lambda twin, _: dataclasses.replace(twin, device="warp:cpu")}
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/ranking"))
    parser.add_argument("--episodes", type=int, default=32, help="of each policy in each cell and reality")
    parser.add_argument("--group", nargs="+", choices=("physics", "identified", "pictures", "world"))
    args = parser.parse_args()
    out = args.out or (None if args.quick else OUT)
    realities, names, horizon, wanted = drawn(), json.loads(RANKING.read_text())["policies"], 50, cells()
    words = GRADED | students(args.folder, quick=args.quick)
    if args.quick:
        realities, args.episodes, horizon, names = realities[:1], 1, 8, list(words)[-2:]
        wanted = {group: dict(list(one.items())[-1:]) for group, one in wanted.items() if group != "world"}
    wanted = {group: one for group, one in wanted.items() if not args.group or group in args.group}
    played = Players(words, args.folder, episodes=args.episodes, horizon=horizon)
    done: dict[str, Any] = json.loads(out.read_text()) if out is not None and out.exists() else {}
    done |= {"command": "python benchmarks/ranking_varied.py", "versions": versions(), "machine": machine()}
    done |= {"episodes": args.episodes, "policies": names}
    groups = done.setdefault("cells", {})
    twins, there = [], []
    for k, one in enumerate(realities):
        place = args.folder / f"reality-{k}"
        twins.append(both(one, place, quick=args.quick)[0])
        there.append(played(f"varied/reality-{k}", real(one, place), names, 1_000 * (k + 1)).mean(1))
    for group, one in wanted.items():
        for words_of, cell in one.items():
            simulated = []
            for k, twin in enumerate(twins):
                changed = cell(twin, args.folder / f"reality-{k}")
                where = f"varied/{group}-{words_of}/reality-{k}".replace(" ", "_")
                simulated.append(played(where, changed, names, 200_000 + 1_000 * k).mean(1))
            found = np.mean([agreement(a, b) for a, b in zip(there, simulated, strict=True)], 0)
            rates = {n: round(float(rate), 4) for n, rate in zip(names, np.mean(simulated, 0), strict=True)}
            values = {"mmrv": round(float(found[0]), 4), "pearson": round(float(found[1]), 4), "rates": rates}
            groups.setdefault(group, {})[words_of] = values
            write(done, out)
    along = [name for name in words if name.partition("-")[0] in STUDENTS]
    done["checkpoints"] = {
        name: [
            [
                round(float(played(f"varied/{where}-{k}", simulator, [name], 300_000 + 1_000 * k).mean()), 4)
                for k, simulator in enumerate(simulators)
            ]
            for where, simulators in (
                ("real", [real(one, args.folder / f"reality-{k}") for k, one in enumerate(realities)]),
                ("sim", twins),
            )
        ]
        for name in along
    }
    write(done, out)


if __name__ == "__main__":
    main()
