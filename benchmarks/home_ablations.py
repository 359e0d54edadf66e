"""MS-HAB's ablations of policies, with clones that see numbers: which object, how many demonstrations, and which.

    python benchmarks/home_ablations.py                     # an hour and a half on one core
    python benchmarks/home_ablations.py --only objects      # or demonstrations, or modes
    python docs/homes_tables.py                             # then: the tables and curves of docs/homes-tables.md

All are ``bc`` with the recipe of HomePick-v1, or of HomePlace-v1 the same one, and one seed. Every policy is tested on
the same episodes of its object, which nothing else has seen. The parts:

    objects         Pick: one policy for nine objects, 2,000 demonstrations, or one for each of three objects with as
                    many of that object as the first has on average
    demonstrations  Pick of one object, from the first 10 to 1,000 of the same recording
    modes           Place: imitating demonstrations that were placed at the goal, or dropped to it from above, as many
                    of each; with ``--keep`` they are recorded once

The file is written after every policy; what it has already is not trained again, unless ``--again``.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from common import arguments, parsed
from learning import once, train

from manikin import make
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.env.interface import BatchEnv
from manikin.env.state.provenance import versions
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import load_protocol
from manikin.eval.runner import run_episodes
from manikin.learn.run.demos import DEMOS
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.learn.run.train import PROTOCOL
from manikin.machine import machine
from manikin.policy.expert import ExpertPolicy
from manikin.policy.pushes import PushedPolicy, Pushes
from manikin.policy.trained import trained_policy

OUT = Path(__file__).parent / "results" / "home_ablations.json"
PARTS = ("objects", "demonstrations", "modes")
SEED = 9351
PLACES = "005_tomato_soup_can"
ONES = ("024_bowl", "004_sugar_box", "005_tomato_soup_can")
NINE, EACH = 2_000, 222  # demonstrations
COUNTS = (10, 30, 100, 300, 1_000)
STEPS, LONG = 10_000, 20_000  # gradient steps of one object, and of nine
MODES = ("placed_in_goal_success", "dropped_to_goal_success")
PLACED, OF = 5_400, 1_000  # episodes, and demonstrations of each mode at most
PUSHES = Pushes(0.04)  # as the recipe of HomePick-v1 has
ROWS = 128
NEAR, OUTSIDE = 0.1, 0.155  # [m] aside of the goal, and from it, where an object is dropped


class Drops:
    """The expert of Place; in episodes with an odd seed it drops the object from above its goal.

    Args:
        env: whose episodes are played.
    """

    name = "expert that drops"

    def __init__(self, env: BatchEnv) -> None:
        self.env, self._expert = env, ExpertPolicy(env)
        card = env.controller.card
        self._columns = list(card.grippers)
        self._opens = torch.tensor([math.copysign(1.0, card.dims[k].scale) for k in self._columns])
        self._odd, self._open = torch.zeros(2, env.num_envs, dtype=torch.bool)

    def reset(self, rows: torch.Tensor) -> None:
        self._expert.reset(rows)
        seeds = torch.from_numpy(self.env.save(rows.cpu().numpy()).extra["seed"])
        self._odd[rows], self._open[rows] = seeds % 2 == 1, False

    def act(self, observation: Any, instruction: Sequence[str]) -> torch.Tensor:
        action = self._expert.act(observation, instruction)
        for part in self.env.parts():
            off = part.env.h.thing.pos - part.env.h.goal.value
            over = (off[:, :2].norm(dim=1) < NEAR) & (off.norm(dim=1) > OUTSIDE)
            self._open[part.places] |= over[part.rows] & self._odd[part.places]
        fingers = torch.where(self._open[:, None], self._opens, action[:, 0, self._columns])
        action[:, 0, self._columns] = fingers.to(action)
        return action


def recipe(task: str, objects: tuple[str, ...], demonstrations: int, steps: int, **settings: Any) -> Recipe:
    """Of a clone: that of HomePick-v1, validated twice. No objects are all nine."""
    found = recipe_for("bc", "HomePick-v1")[0]
    return found.replace(
        task=task,
        env={"config.objects": list(objects)} if objects else {},
        settings={"demonstrations": demonstrations, **settings},
        steps=steps,
        validate_every=steps // found.config.updates // 2,
    )


def brief(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("tested", "cpu_seconds", "steps", "recipe_hash")}


class Ablations:
    """Trains what is asked for, and writes it down."""

    def __init__(self, out: Path, folder: Path, *, again: bool, quick: bool) -> None:
        self.out, self.folder, self.again, self.quick = out, folder, again, quick

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.read_text()) if self.out.exists() else {"runs": {}}
        return found

    def missing(self, name: str) -> bool:
        return self.again or name not in self.read()["runs"]

    def keep(self, name: str, found: dict[str, Any]) -> None:
        done = self.read() | {"command": "python benchmarks/home_ablations.py", "versions": versions()}
        done["machine"] = {**machine(), "cores": os.cpu_count()}
        done["runs"][name] = found
        self.out.write_text(json.dumps(done, indent=1) + "\n")
        print(name, json.dumps(found), flush=True)

    def trained(self, name: str, one: Recipe) -> tuple[Path, dict[str, Any]]:
        """The folder of a run, and what is kept of it."""
        if self.quick:
            one = one.replace(steps=4, settings={"updates": 2, "hidden": [16]})
        place = self.folder / name.replace("/", "-").replace(" ", "-")
        found = train(f"bc:{one.task}", SEED, ["--threads", "1"], loaded=True, keep=place, quick=self.quick, recipe=one)
        return place / f"bc-{one.task}-{SEED}", brief(found)

    def objects(self) -> None:
        """One policy for nine objects against one for each."""
        folders = {}
        for thing in ONES:
            if self.missing(f"objects/{thing}/one"):
                folders[thing], found = self.trained(f"one {thing}", recipe("HomePick-v1", (thing,), EACH, STEPS))
                self.keep(f"objects/{thing}/one", {**found, "demonstrations": EACH})
        if not folders and not self.missing("objects/all/nine"):
            return
        folder, found = self.trained("nine", recipe("HomePick-v1", (), NINE, LONG))
        self.keep("objects/all/nine", {**found, "demonstrations": NINE})
        for thing, its in folders.items():
            result = evaluate(load_protocol(its / PROTOCOL), trained_policy(folder), num_envs=128)
            self.keep(f"objects/{thing}/nine", {"tested": once(result), "demonstrations": NINE})

    def demonstrations(self) -> None:
        """One object, from few demonstrations to many."""
        recording = ""
        for count in reversed(COUNTS):
            name = f"demonstrations/{count}"
            if not self.missing(name):
                continue
            given = {"demos": recording, "pushes": 0.0} if recording else {}
            one = recipe("HomePick-v1", ONES[:1], count, STEPS, **given)
            folder, found = self.trained(name, one)
            recording = recording or str(folder / DEMOS)
            self.keep(name, {**found, "demonstrations": count, "object": ONES[0]})

    def modes(self) -> None:
        """Demonstrations that were placed, or dropped."""
        if not any(self.missing(f"modes/{mode}") for mode in MODES):
            return
        recording, episodes = self.folder / "place.h5", 3 if self.quick else PLACED
        if not recording.exists():
            self._place(recording, episodes)
        with read_episodes(recording) as file:
            there = {mode: sum(file.attributes(n)["mode"] == mode for n in file.numbers) for mode in MODES}
        of = 1 if self.quick else min(OF, *there.values())
        for mode in MODES[:1] if self.quick else MODES:
            labels = [] if self.quick else [mode]
            given = {"demos": str(recording), "pushes": 0.0, "labels": labels}
            folder, found = self.trained(mode, recipe("HomePlace-v1", (PLACES,), of, STEPS, **given))
            ways = json.loads((folder / "report.json").read_text())["per_task"][0]["modes"]
            self.keep(f"modes/{mode}", {**found, "there": there[mode], "demonstrations": of, "ways": ways})

    def _place(self, recording: Path, episodes: int) -> None:
        """Record both kinds, pushed on their way."""
        kept = "success" if self.quick else f"label:{','.join(MODES)}"
        config = {"size_seen": True, "objects": (PLACES,)}
        env = make("HomePlace-v1", num_envs=min(ROWS, episodes), config=config, autoreset="disabled", threads=1)
        shown, about = PushedPolicy(Drops(env), env, PUSHES), {"pushes": PUSHES.plain}
        with Recorder(
            env, recording, observations=True, states=False, keep=kept, first_seed=0, about=about
        ) as recorder:
            run_episodes(env, shown, range(episodes), observers=[recorder])
        env.close()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    with tempfile.TemporaryDirectory() as temporary:
        ablations = Ablations(args.out, args.keep or Path(temporary), again=args.again, quick=args.quick)
        for part in ["modes"] if args.quick else args.only:
            getattr(ablations, part)()


if __name__ == "__main__":
    main()
