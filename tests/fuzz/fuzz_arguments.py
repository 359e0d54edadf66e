"""Arguments of wrong kinds and values, in Python and on the command line."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fuzz_values import Case, Draw, any_value, chosen, shown

import manikin
from manikin.cli import main
from manikin.data.dataset import Dataset
from manikin.data.recorder import Recorder
from manikin.env.observe import Vision
from manikin.env.registry import task_class
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy

TASKS = ["PushCube-v2", "CartpoleBalance-v1", "Lift-v2", "PlaceSphere-v2", "StackCube-v2"]
OPTIONS = """robot control observe reward autoreset device budget deterministic graphs physics_hz control_hz horizon
max_episode_steps terminate config looks vision sensors out_of_range threads render_mode num_envs no_such_option
""".split()
COMMANDS = """
info TASK
info TASK --robot X
info TASK --control X
info X
list X
new X
X
X X
check nothing-X
robot-check X
object X
view nothing-X
collect X --episodes 1
collect PushCube-v2 --episodes X --horizon 2 --policy random
collect PushCube-v2 --episodes 1 --horizon 2 --policy X
collect PushCube-v2 --episodes 1 --horizon X --policy random
collect PushCube-v2 --episodes 1 --horizon 2 --policy random --shard X
collect PushCube-v2 --episodes 1 --horizon 2 --policy random --keep X
collect PushCube-v2 --episodes 1 --horizon 2 --policy random --observe X
collect PushCube-v2 --episodes 1 --horizon 2 --policy random --control-hz X
replay X --check
replay FILE --episodes X
replay FILE --observe X
replay FILE --control X
replay FILE --report X
replay FILE --budget X
replay FILE --device X
replay FILE --task X
replay FILE --control joint_pos --stretch X
convert FILE new --to X
convert FILE new --keep X
convert FILE new --observe X
convert FILE X --to robomimic
convert FILE new.hdf5 --to robomimic --valid X
import X
import FILE
fidelity score X --reality X
fidelity score . --tasks X
fidelity pack . --about X
fidelity export X
fidelity export FILE --episodes X --out new-log
eval X --policy random
eval pick-cube --policy nothing-X
eval pick-cube --policy random --device nothing-X
eval pick-cube --policy random --against X
""".strip().splitlines()


class Arguments:
    """Few rows of one task, used again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = manikin.make("PushCube-v2", 2, autoreset="disabled", horizon=3)
        self.run = folder / "args.h5"
        recorder = Recorder(self.env, self.run, policy="random", observations=True)
        run_episodes(self.env, RandomPolicy(self.env), range(2), observers=[recorder])
        recorder.close()
        self.env.reset(seed=0)
        self.saved = self.env.save()
        self.rest = torch.zeros(2, self.env.single_action_space.shape[0])

    def case(self, draw: Draw) -> Case:
        kind = chosen(draw, ["make", "make", "config", "env", "env", "env", "env", "library", "command", "command"])
        words, trial = getattr(self, f"_{kind}")(draw)
        return f"{kind}: {words}", trial

    def _make(self, draw: Draw) -> Case:
        task, option, value = chosen(draw, TASKS), chosen(draw, OPTIONS), bounded(draw)
        return f"{task} {option}={shown(value)}", lambda: self._used(task, {option: value})

    def _config(self, draw: Draw) -> Case:
        task, value = chosen(draw, TASKS), bounded(draw)
        fields = list(task_class(task).Config.__dataclass_fields__) or ["nothing"]
        config = {chosen(draw, fields): value}
        return f"{task} {shown(config)}", lambda: self._used(task, {"config": config})

    def _used(self, task: str, options: dict[str, Any]) -> None:
        env = manikin.make(task, **{"num_envs": 1, **options})
        try:
            env.reset(seed=0)
            env.step(torch.zeros(env.num_envs, *env.single_action_space.shape))
        finally:
            env.close()

    def _env(self, draw: Draw) -> Case:
        env, value, rest = self.env, bounded(draw), self.rest
        trials: dict[str, Callable[[], object]] = {
            "reset(seed)": lambda: env.reset(seed=value),
            "reset(seeds)": lambda: env.reset(seed=[0, value]),
            "reset(options)": lambda: env.reset(seed=0, options=value),
            "reset(episode_index)": lambda: env.reset(seed=0, options={"episode_index": value}),
            "reset(reset_mask)": lambda: env.reset(seed=0, options={"reset_mask": value}),
            "reset(unknown option)": lambda: env.reset(seed=0, options={shown(value): value}),
            "step": lambda: env.step(value),
            "step(active)": lambda: env.step(rest, active=value),
            "save": lambda: env.save(value),
            "load": lambda: env.load(value),
            "load(rows)": lambda: env.load(self.saved, value),
            "put": lambda: env.put(value),
            "put(rows)": lambda: env.put(env.physics_states(), value),
            "state_hash": lambda: env.state_hash(value),
            "physics_states": lambda: env.physics_states(value),
            "towards": lambda: env.towards(value),
            "towards(within)": lambda: env.towards(env.arm_qpos, within=value),
            "reward_of": lambda: env.reward_of(value),
            "image(row)": lambda: env.image(value, width=8, height=8),
            "image(camera)": lambda: env.image(camera=value, width=8, height=8),
            "image(width)": lambda: env.image(width=value, height=8),
            "camera": lambda: env.camera(value),
            "model_data": lambda: env.model_data(value),
        }
        name = chosen(draw, list(trials))

        def trial() -> None:
            env.reset(seed=0)
            try:
                trials[name]()
            finally:  # whatever was said, the environment goes on
                env.reset(seed=0)
                env.step(rest)

        return f"{name} {shown(value)}", trial

    def _library(self, draw: Draw) -> Case:
        value = bounded(draw)
        option = chosen(draw, ["batch_size", "chunk", "stack", "observations", "keep", "seed", "memory_mb", "shuffle"])
        field, seeing = chosen(draw, list(Vision.__dataclass_fields__)), {"observe": "rgb"}
        trials: dict[str, Callable[[], object]] = {
            f"Dataset({option})": lambda: next(iter(Dataset(self.run, **{"observations": ["value"], option: value}))),
            "Dataset(path)": lambda: Dataset(value),
            f"Vision({field})": lambda: self._used("PushCube-v2", {**seeing, "vision": Vision(**{field: value})}),
            "make(task)": lambda: manikin.make(value),
            "run_episodes(seeds)": lambda: run_episodes(self.env, RandomPolicy(self.env), value),
            "make(gymnasium)": lambda: task_class(value),
        }
        name = chosen(draw, list(trials))
        return f"{name} {shown(value)}", trials[name]

    def _command(self, draw: Draw) -> Case:
        value = bounded(draw)
        word = value if isinstance(value, str) else shown(value)
        swaps = {"X": word, "TASK": chosen(draw, TASKS), "FILE": str(self.run)}
        words = [swaps.get(w, w).replace("nothing-X", f"nothing-{word}") for w in chosen(draw, COMMANDS).split()]

        def trial() -> None:
            here = Path.cwd()
            os.chdir(self.folder)
            try:
                quiet = io.StringIO()
                with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                    status = main(words)
                if status not in (0, 1, 2, 130):
                    raise AssertionError(f"status {status}")
            except SystemExit as error:  # of the parser of options
                if error.code not in (0, 1, 2):
                    raise
            finally:
                os.chdir(here)

        return shown(words), trial


def bounded(draw: Draw) -> Any:
    """Any value but a whole number that would be taken at its word and would need all memory, or all day."""
    while True:
        value = any_value(draw)
        if type(value) is not int or not 2**20 < value <= 2**40:
            return value
