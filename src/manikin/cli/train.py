"""`manikin train`: from a task to a trained policy with a number."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.compare import compare_runs
from manikin.cli.common.documented import documented
from manikin.cli.common.options import (
    ROBOT_FILES,
    On,
    RendererWord,
    TaskOptions,
    load_robot,
    load_task,
    register_robot_file,
)
from manikin.cli.common.remember import remember
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, rates_table, show_table
from manikin.cli.spread.options import SpreadOptions, plain_options, same_options
from manikin.cli.spread.run import members, merged, servants, spread

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.learn.run.recipe import Recipe
    from manikin.learn.run.spread_rows import Workers
    from manikin.learn.run.train import State

__all__ = ["PartOfComparison", "TrainOptions", "main", "run", "runs_of_comparison", "train_as_part"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TaskOptions, SpreadOptions):
    """Options of `manikin train`."""

    algorithm: tyro.conf.Positional[str] = ""
    """ppo, sac, tdmpc2: reinforcement learning from the task's reward. bc, diffusion, act: imitation. voxel: imitation
    of keyframes seen in voxels. distill: a policy by state teaches one that sees."""
    task: tyro.conf.Positional[str] = ""
    """Task id (PickCube-v2)."""
    minutes: float | None = None
    """End after so many minutes; by default as the recipe says. 0 for no limit."""
    steps: int | None = None
    """End after so many control steps of all rows (imitation: gradient steps); 0 for no limit."""
    demos: Path | None = None
    """A recording of demonstrations (manikin collect ... --observations); imitation without it records the expert, or
    who the setting demonstrations_of names. sac also takes a file of robosuite, robomimic or ManiSkill."""
    begin_from: Annotated[str, tyro.conf.arg(name="from")] = ""
    """ppo begins from this policy, also where the task shows more than it observes: a run's folder, its
    policy.safetensors, or the name of a policy that comes with manikin. The same as --set begin_from=POLICY."""
    seed: int = 0
    """Of weights, actions and episodes. The same seed gives the same run on the same kind of machine."""
    out: Path | None = None
    """Folder of the run; by default runs/train-ALGORITHM-TASK-SEED."""
    recipe: Path | None = None
    """A recipe file in place of the one that comes with manikin."""
    set: tuple[str, ...] = ()
    """Settings in place of the recipe's: --set learning_rate=1e-3 hidden=[128,128] env.num_envs=512. --robot and
    --config are those of the environment, too: --set env.robot=ROBOT env.config.KEY=VALUE."""
    device: Annotated[str, documented("device")] = "cpu"
    threads: Annotated[int, documented("threads")] = 0
    resume: Path | None = None
    """Go on with the run in this folder; algorithm, task and seed are the run's."""
    tensorboard: bool = False
    """Write TensorBoard's events too (pip install 'manikin[learn]')."""
    save_every: float = 60.0
    """Seconds between two checkpoints, at least: how much a run loses that is killed."""
    test: On = True
    """Do not evaluate the best checkpoint on the test episodes at the end."""
    pictures: int = 4
    """Of how many test episodes the page shows pictures."""
    renderer: Annotated[RendererWord, documented("renderer", "Of the report.")] = "auto"
    vary: tuple[str, ...] = ()
    """Train once with each value and compare: --vary env.num_envs=[64,256] gamma=[0.8,0.95] is four runs."""
    seeds: tuple[int, ...] = ()
    """Train once with each seed and compare."""
    compare: tuple[Path, ...] = ()
    """Folders of runs, or one with the runs of --vary: print them side by side and write one page with their curves;
    nothing is trained."""


def main(options: Annotated[TrainOptions, tyro.conf.arg(name="")]) -> int:
    """Train a policy for a task, choose its best checkpoint, and evaluate that on episodes it never saw."""
    return run(options)


def run(options: TrainOptions) -> int:
    """Train; 0 done, 1 stopped by an error, 130 interrupted. ``--resume FOLDER`` goes on."""
    from manikin.errors import ConfigError
    from manikin.learn.run.train import recipe_of
    from manikin.sim import torch_device

    out = console()
    out.quiet = os.environ.get("RANK", "0") != "0"  # of the processes of torchrun the first one speaks
    if options.compare:
        return compare_runs(out, options.compare, options.out)
    options.check_spread()
    if options.on == "slurm-array" and not (options.vary or options.seeds):
        raise ConfigError("--on slurm-array spreads the runs of a comparison: give --vary or --seeds")
    torch_device(options.device)
    if options.resume is not None:
        _check_resumed(options)
        register_robot_file(options.robot)  # that the recipe names
        recipe, seed, device = recipe_of(options.resume)
        begun = {"seed": (options.seed, 0, seed), "device": (options.device, "cpu", device)}
        if options.out or options.seeds or any(one not in (default, was) for one, default, was in begun.values()):
            raise ConfigError(
                f"--resume goes on in {options.resume}, with its seed {seed} and its device {device}: leave out --out, "
                "--seed, --seeds and --device"
            )
        folder = options.resume
        recipe = _limited(recipe, options)
        return train_one(
            out, options, recipe, seed, device, folder, resume=True, workers=_workers(options, folder, recipe)
        )
    recipe, own = chosen_recipe(options)
    recipe = _limited(recipe, options)
    if not own:
        used = recipe.description or "the algorithm's defaults"
        out.print(f"{recipe.task} has no recipe of its own for this; what is used: {used}", soft_wrap=True)
    if options.vary or options.seeds:
        return _vary(out, options)
    folder = options.out or Path("runs") / f"train-{recipe.algorithm}-{recipe.task}-{options.seed}"
    workers = _workers(options, folder, recipe)
    return train_one(out, options, recipe, options.seed, options.device, folder, resume=False, workers=workers)


def _check_resumed(options: TrainOptions) -> None:
    """Refuse what would make another run of the one that goes on."""
    from manikin.errors import ConfigError

    words = {"ALGORITHM": "algorithm", "TASK": "task", "--from": "begin_from"}
    words |= {f"--{name}": name for name in ("recipe", "set", "demos", "vary", "config")}
    given = [word for word, name in words.items() if getattr(options, name)]
    if options.robot is not None and not options.robot.lower().endswith(ROBOT_FILES):
        given.append("--robot (but for the file of a robot of your own)")
    if given:
        raise ConfigError(
            f"--resume goes on with the run in {options.resume} as it is: leave out {', '.join(given)}, and give only "
            "--minutes, --steps, --save-every, --tensorboard, --pictures, --no-test"
        )


def _workers(options: TrainOptions, folder: Path, recipe: Recipe) -> Workers | None:
    """Who has the environments of a single run."""
    from manikin.errors import ConfigError
    from manikin.learn.run.spread_rows import Workers

    if options.on is None:
        return None
    if options.per_shard is not None or options.threads:
        raise ConfigError(
            "with --on the environments of one run are not cut into shards, and a worker has as many physics threads "
            "as --worker-cpus says: leave --per-shard and --threads out"
        )
    files = [options.task]
    return Workers(
        lambda word, settings: servants(options, word, settings, log=folder / "workers.txt", files=files),
        members(options),
        options.task or recipe.task,
    )


@dataclass(frozen=True)
class PartOfComparison:
    """A run of a comparison: what is trained, with which seed, where."""

    recipe: Recipe
    seed: int
    folder: Path


def runs_of_comparison(options: TrainOptions) -> list[PartOfComparison]:
    """A run for each value of ``--vary`` and each seed.

    Raises:
        ConfigError: the recipe, a name or a value is none.
    """
    from manikin.learn.run.sweep import variants

    recipe = _limited(chosen_recipe(options)[0], options)
    place = options.out or Path("runs") / f"vary-{recipe.algorithm}-{recipe.task}"
    return [
        PartOfComparison(variant.recipe, seed, place / f"{variant.folder}-{seed}")
        for variant in variants(recipe, *_settings(options.vary))
        for seed in options.seeds or (options.seed,)
    ]


def train_as_part(out: Console, options: TrainOptions, part: PartOfComparison) -> int:
    """Train a run of a comparison; one that is finished is left as it is, and one that has begun goes on."""
    from manikin.learn.run.contents import with_contents
    from manikin.learn.run.train import CHECKPOINT, begun_as
    from manikin.policy.trained import PROGRAM

    begun = (part.folder / CHECKPOINT).exists()
    if begun:
        named = with_contents(part.recipe)
        same = begun_as(part.folder, named, part.seed, options.device).hash == named.hash
        report = part.folder / "report.json"
        if same and (report if options.test else part.folder / PROGRAM).exists():
            out.print(f"{part.folder}: finished before")
            return OK
        report.unlink(missing_ok=True)  # of fewer steps or less time than now
    return train_one(out, options, part.recipe, part.seed, options.device, part.folder, resume=begun)


def _vary(out: Console, options: TrainOptions) -> int:
    """All runs of a comparison, in turn or on workers; then all of them side by side."""
    parts = runs_of_comparison(options)
    place = parts[0].folder.parent

    def compare() -> int:
        return compare_runs(out, [part.folder for part in parts], place / "compared.html")

    if options.on is None:
        for part in parts:
            ended = train_as_part(out, options, part)
            if ended != OK:
                return ended
    else:
        asked = replace(options, out=place.absolute())
        ledger, complete = spread(
            out,
            options,
            folder=place / "spread",
            work="manikin.cli.workers.training:TrainWork",
            settings=plain_options(asked),
            same=same_options(asked, "save_every", "tensorboard", "threads"),
            numbers=range(len(parts)),
            size=1,
            resume=(place / "spread").exists(),
            words="training",
            device=options.device,
            items="run",
            deadline=math.inf,
            files=[options.recipe, options.demos, options.begin_from or None],
        )
        return merged(options, ledger, complete, compare)
    return compare()


def train_one(
    out: Console,
    options: TrainOptions,
    recipe: Recipe,
    seed: int,
    device: str,
    folder: Path,
    *,
    resume: bool,
    workers: Workers | None = None,
) -> int:
    """One run, and its test."""
    from rich.markup import escape

    from manikin.errors import DataError, ManikinError
    from manikin.eval.runner import interruptible
    from manikin.learn.run.contents import with_contents
    from manikin.learn.run.demos import InterruptedCollectionError
    from manikin.learn.run.page import shares, summary_of, write_page
    from manikin.learn.run.recipe import trainer_class
    from manikin.learn.run.train import CHECKPOINT, train

    recipe = with_contents(recipe)
    out.print(f"{recipe.algorithm} on {recipe.task}, seed {seed}: recipe {recipe.hash[:12]}")
    line, go_on = _Line(out, recipe), shlex.join(["manikin", "train", "--resume", str(folder)])
    try:
        with interruptible() as stop:
            outcome = train(
                recipe,
                folder=folder,
                seed=seed,
                device=device,
                threads=options.threads,
                workers=workers,
                resume=resume,
                tensorboard=options.tensorboard,
                save_every=options.save_every,
                stop=stop,
                on_iteration=line,
                say=lambda words: out.print(escape(words), soft_wrap=True),
                ready=lambda: out.print(escape(recipe.to_toml().rstrip()), style="dim", soft_wrap=True),
            )
    except InterruptedCollectionError as error:
        out.print(escape(str(error)), soft_wrap=True)
        return INTERRUPTED
    except ManikinError as error:
        if not (folder / CHECKPOINT).exists() or line.state is None:
            raise
        out.print(f"[red]stopped: {escape(str(error))}[/]", soft_wrap=True)
        out.print(f"the last checkpoint is kept: {go_on}", soft_wrap=True)
        if not isinstance(error, DataError):  # such as a full disk
            out.print(f"run: {write_page(folder)}", soft_wrap=True)
        return NOT_GOOD
    if outcome.why == "followed":
        return OK
    page = write_page(folder)
    if outcome.why == "interrupted":
        out.print(f"interrupted; go on with: {go_on}", soft_wrap=True)
        out.print(f"run: {page}", soft_wrap=True)
        return INTERRUPTED
    state = outcome.state
    ended = {"time": "its time is over", "steps": "its steps are done", "target": "validation reached the target"}
    counts = trainer_class(recipe.algorithm).counts
    out.print(
        f"{ended[outcome.why]}: {state.steps:,} {counts} in {state.seconds:.0f} s; best "
        f"validation {state.best:.1%} in iteration {state.best_iteration}, last {state.validated:.1%}"
    )
    summary = summary_of(folder)
    out.print(f"where its time went: {shares(summary['spent'], summary['seconds'])}")
    status = _test(out, options, recipe, folder, device) if options.test else OK
    out.print(f"run: {page}", soft_wrap=True)
    out.print(f"use it: manikin eval, view or collect with --policy {folder}", soft_wrap=True)
    return status


def _limited(recipe: Recipe, options: TrainOptions) -> Recipe:
    """The recipe with the limits that were given."""
    limits: dict[str, Any] = {"minutes": options.minutes, "steps": options.steps}
    return recipe.replace(**{name: value for name, value in limits.items() if value is not None})


def chosen_recipe(options: TrainOptions) -> tuple[Recipe, bool]:
    from manikin.errors import ConfigError
    from manikin.learn.run.demos import recorded_control
    from manikin.learn.run.recipe import ALGORITHMS, load_recipe, recipe_for

    settings, env = _settings(options.set)
    if options.robot is not None:
        env["robot"] = _robot(options)
    if options.recipe is not None:
        recipe, own = load_recipe(options.recipe), True
        for given, named in ((options.algorithm, recipe.algorithm), (options.task, recipe.task)):
            if given and given != named:
                raise ConfigError(f"{options.recipe} is a recipe for {named}, not for {given}")
    else:
        if not options.algorithm or not options.task:
            known = ", ".join(ALGORITHMS)
            raise ConfigError(f"name an algorithm ({known}) and a task: manikin train ppo PickCube-v2")
        task = load_task(options.task).id
        recipe, own = recipe_for(
            options.algorithm,
            task,
            demos=options.demos is not None,
            begin_from=options.begin_from,
            observe=env.get("observe"),
        )
        if env.get("observe") == "depth" and "depth" in str(recipe.env.get("observe")):
            del env["observe"]  # the recipe says it, and may stack it
        if options.demos is not None and "control" not in env and (control := recorded_control(options.demos)):
            # a policy acts as its demonstrations do; a recipe that moves the tool may hide the joints
            hidden: tuple[str, ...] | None = getattr(recipe.config, "hide", None)
            if hidden and control != recipe.env.get("control"):
                settings.setdefault("hide", [word for word in hidden if not word.startswith("qpos")])
            env["control"] = control
    if options.demos is not None:
        settings["demos"] = str(options.demos)
    if options.begin_from:
        settings["begin_from"] = options.begin_from
    if options.config:
        numbers = replace(options, robot=None).chosen(load_task(recipe.task))["config"]
        env |= {f"config.{name}": list(one) if isinstance(one, tuple) else one for name, one in numbers.items()}
    return recipe.replace(settings=settings, env=env), own


def _robot(options: TrainOptions) -> str:
    """The name of the robot that was chosen, by which a recipe has it; a file is read."""
    from manikin.errors import ConfigError

    assert options.robot is not None
    name = load_robot(options.robot)
    if options.on is not None and name != options.robot:
        raise ConfigError(f"workers (--on) know no robot of a file, as {options.robot}: leave --on out")
    return name


def _settings(words: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """``name=value`` as TOML reads values; text may stand without quotes."""
    import tomllib

    from manikin.errors import ConfigError

    settings: dict[str, Any] = {}
    env: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set takes name=value, got {word!r}")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        target = env if name.startswith("env.") else settings
        target[name.removeprefix("env.")] = value
    return settings, env


class _Line:
    """Prints where the run is: every few seconds, and at each validation."""

    def __init__(self, out: Console, recipe: Recipe) -> None:
        self.out, self.recipe = out, recipe
        self.state: State | None = None
        self._printed, self._steps, self._seconds = -math.inf, -1, 0.0

    def __call__(self, state: State, numbers: Mapping[str, float]) -> None:
        validated = "validated_success" in numbers
        now = time.perf_counter()
        if self.state is None:
            self._steps, self._seconds = state.steps, state.seconds
        self.state = state
        if not validated and now - self._printed < 10.0:
            return
        rate = (state.steps - self._steps) / max(state.seconds - self._seconds, 1e-9)
        self._steps, self._seconds, self._printed = state.steps, state.seconds, now
        words = [f"{state.seconds:6.0f} s", f"{state.steps:>11,} steps"]
        words.append(f"{rate:7,.0f}/s" if math.isfinite(rate) and rate > 0 else " " * 9)
        words.append(f"return {numbers['return']:8.2f}" if "return" in numbers else " " * 15)
        words.append(f"success {numbers['success']:6.1%}" if "success" in numbers else " " * 14)
        words.append(f"validated {numbers['validated_success']:6.1%}" if validated else " " * 16)
        words.append(f"left {_clock(self._left(state, rate))}")
        self.out.print("  ".join(words), soft_wrap=True)

    def _left(self, state: State, rate: float) -> float:
        left = 60 * self.recipe.minutes - state.seconds if self.recipe.minutes else math.inf
        if self.recipe.steps and rate > 0:
            left = min(left, (self.recipe.steps - state.steps) / rate)
        return max(0.0, left)


def _clock(seconds: float) -> str:
    return "-" if math.isinf(seconds) else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _test(out: Console, options: TrainOptions, recipe: Recipe, folder: Path, device: str) -> int:
    """The final number, once, on seeds that nothing else has seen."""
    from manikin.assets.paths import file_hash
    from manikin.errors import DataError
    from manikin.eval.evaluation import evaluate
    from manikin.eval.pages.report import write_html
    from manikin.eval.report import as_dict, write_report
    from manikin.eval.runner import interruptible
    from manikin.learn.run.page import again_words, note_test, write_page
    from manikin.learn.run.train import PROTOCOL
    from manikin.learn.run.validate import test_protocol
    from manikin.policy.trained import FILE, trained_policy
    from manikin.render.api import make_renderer

    protocol = test_protocol(recipe)
    with interruptible() as stop, bar(out, "testing", len(protocol.seeds)) as advance:
        evaluation = evaluate(
            protocol,
            trained_policy(folder),
            num_envs=128,
            device=device,
            film=options.pictures,
            renderer=make_renderer(options.renderer, samples=2) if options.pictures else None,
            on_result=lambda task, result: advance(),
            stop=stop,
        )
    go_on = shlex.join(["manikin", "train", "--resume", str(folder)])
    if evaluation.interrupted:
        out.print(f"interrupted in the test; the network is kept. Test it with: {go_on}", soft_wrap=True)
        return INTERRUPTED
    looks = note_test(folder)
    again = shlex.join(["manikin", "eval", str(folder / PROTOCOL), "--policy", str(folder)])
    report = as_dict(evaluation, command=again, policy_sha256=file_hash(folder / FILE))
    try:
        write_report(report, folder / "report.json")
        write_html(report, folder / "report.html", evaluation.reels)
        write_page(folder)
    except OSError as error:
        raise DataError(
            f"cannot write the report in {folder}: {error.strerror}; the network is kept. Test it with: {go_on}"
        ) from None
    remember(out, folder)
    show_table(out, rates_table(evaluation))
    if looks > 1:
        out.print(again_words(looks), soft_wrap=True)
    out.print(f"mean return {report['overall']['avg_sum_reward']:.1f}")
    return OK if evaluation.healthy else NOT_GOOD
