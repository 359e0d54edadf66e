"""The loop of a run: iterations, validation, checkpoints, and the final number."""

from __future__ import annotations

import dataclasses
import resource
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manikin._version import __version__
from manikin.data.recording.durable import write_file
from manikin.env.interface import BatchEnv
from manikin.env.make import make
from manikin.env.state.packed import pack, unpack
from manikin.env.state.provenance import versions
from manikin.errors import ConfigError, DivergedError
from manikin.learn.common.imitation import Imitation
from manikin.learn.common.parallel.ranks import Ranks
from manikin.learn.run import store
from manikin.learn.run.contents import with_contents
from manikin.learn.run.demos import demonstrations_of
from manikin.learn.run.recipe import Recipe, load_recipe, trainer_class
from manikin.learn.run.record import Progress
from manikin.learn.run.spread_rows import SpreadRows, Workers, spread_rows, training_options
from manikin.learn.run.validate import Validation, test_protocol
from manikin.machine import machine
from manikin.policy.chunk import Execution
from manikin.policy.network import WIDTH
from manikin.policy.trained import FILE, LAST, PROGRAM, about_env, export_program, load_trained, save_trained

__all__ = ["CHECKPOINT", "LOG", "PROTOCOL", "RECIPE", "Outcome", "State", "begun_as", "recipe_of", "train"]

RECIPE, CHECKPOINT, PROTOCOL, LOG = "recipe.toml", "checkpoint.safetensors", "protocol.toml", "progress.csv"
_SAVE_SHARE = 20  # a checkpoint comes after so many times as long as the last one took: those with pictures are large


@dataclass
class State:
    """Where a run is.

    Attributes:
        iteration: finished so far. steps: control steps of all rows, or gradient steps, as the trainer's ``counts``.
        seconds, cpu_seconds: wall-clock, and processor time of the process, over all resumptions.
        validated: of the last validation, share that succeeded; -1 before the first.
        best: of the best one; best_return: its mean return; best_iteration: when.
    """

    iteration: int = 0
    steps: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    validated: float = -1.0
    best: float = -1.0
    best_return: float = -1e300
    best_iteration: int = -1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: its state, and ``why``: time, steps, target or interrupted; followed, where another process of
    ``torchrun`` leads."""

    state: State
    why: str


def train(
    recipe: Recipe,
    *,
    folder: str | Path,
    seed: int = 0,
    device: str = "cpu",
    threads: int = 0,
    workers: Workers | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    save_every: float = 60.0,
    stop: Callable[[], bool] = lambda: False,
    on_iteration: Callable[[State, Mapping[str, float]], None] = lambda state, numbers: None,
    say: Callable[[str], None] = lambda words: None,
    ready: Callable[[], None] = lambda: None,
) -> Outcome:
    """Train a policy, up to the best validated network; the final number is the caller's to ask for.

    Into ``folder`` go ``recipe.toml``, ``progress.csv``, ``policy.safetensors`` (the network that validated best),
    ``last.safetensors`` (the one that was validated last), ``policy.pt2`` (the best one as a program, once the run has
    ended), ``checkpoint.safetensors`` (all that a resumed run needs), and ``protocol.toml`` of the final number. Every
    file appears whole or not at all, so that a killed run goes on from its last checkpoint. On the CPU it goes on to
    the same bits.

    Args:
        recipe: what to train, and how.
        folder: of the run.
        seed: of weights, actions and episodes.
        device: where to simulate and learn: ``cpu``, ``cuda``, ``warp:cpu``.
        threads: of the physics, 0 for all cores; never changes the run.
        workers: that have the environments, for ``ppo`` and ``sac``; by default they are in this process. They never
            change the run.
        resume: go on with the run in the folder.
        tensorboard: write TensorBoard's events too.
        save_every: seconds between two checkpoints, at least; more where one takes long.
        stop: asked after each iteration; True ends the run with a checkpoint.
        on_iteration: called after each iteration with where the run is and its numbers.
        say: called with a sentence where something is done first: demonstrations are collected.
        ready: called once before the first iteration, when nothing of the recipe can be refused any more.

    Raises:
        ConfigError: the folder holds a run and ``resume`` is False, or another run than this; demonstrations, a
            teacher or a policy to begin from that do not fit the environment, or are not those that the recipe names.
        DataError: nothing to resume, no demonstrations, or the folder cannot be written.
        DivergedError: a loss is not finite; the last checkpoint stays, if there is one yet.
        InterruptedCollectionError: ``stop`` said so while demonstrations were collected.
    """
    folder = Path(folder)
    file = folder / CHECKPOINT
    if file.exists() and not resume:
        raise ConfigError(
            f"{folder} holds a run already: go on with it by --resume {folder}, or choose another folder by --out"
        )
    saved, state = (None, State())
    recipe = with_contents(recipe)
    if resume:
        saved, about = store.read(file)
        state = State(**saved["state"])
        _check_same(recipe, seed, device, about, folder)
    trained = trainer_class(recipe.algorithm)
    imitates = issubclass(trained, Imitation)
    given: dict[str, Any] = {}
    with ExitStack() as stack:
        ranks = Ranks.here(device)
        stack.callback(ranks.close)
        _check_together(recipe, workers, ranks, saved)
        if ranks.size > 1:
            given["ranks"] = ranks
        where = f"cuda:{ranks.local}" if device == "cuda" and ranks.size > 1 else device
        options = training_options(recipe, getattr(trained, "also_observes", ""), device=where, threads=threads)
        env = make(recipe.task, options=options) if workers is None else spread_rows(recipe, workers, device=where)
        stack.callback(env.close)
        if imitates:
            given["demos"] = demonstrations_of(recipe, folder, device=device, threads=threads, say=say, stop=stop)
        trainer = trained(env, recipe.config, seed, **given)
        if saved is None and (taken := getattr(trainer, "taken", "")):
            say(taken)
        if getattr(recipe.config, "anneal", False) and not recipe.steps:
            say("the learning rate falls with time, so another run of this seed differs: give --steps for the same one")
        if hasattr(trainer, "close"):  # of those that step the environment in a thread of their own
            stack.callback(trainer.close)
        if saved is not None:
            mine = saved["trainer"] if ranks.rank == 0 else unpack(saved["others"][ranks.rank - 1].numpy().tobytes())
            trainer.load_state_dict(mine)
        if ranks.rank:
            _follow(trainer, ranks)
            return Outcome(state=state, why="followed")
        validation = Validation(recipe, device=where, threads=threads, whole=not imitates)
        stack.callback(validation.close)
        write_file(folder / RECIPE, recipe.to_toml().encode())  # of a run that goes on, its time or steps may be new
        if saved is None:
            write_file(folder / PROTOCOL, test_protocol(recipe).to_toml().encode())
        about = {**_about(recipe, seed, device, validation.env), **trainer.about}
        log = Progress(
            folder / LOG,
            keep=state.iteration if saved else -1,
            tensorboard=folder / "tensorboard" if tensorboard else None,
        )
        stack.callback(log.close)
        ready()
        loop = _Loop(recipe, trainer, validation, folder, about, state, log, on_iteration, save_every, ranks)
        why = loop.run(stop)
        if why != "interrupted":
            module, about = load_trained(folder)
            sample, _ = validation.env.reset(seed=0)  # nothing is there to look at where no validation was left to do
            export_program(module, folder / PROGRAM, sample, about=about)
        return Outcome(state=state, why=why)


def _check_together(recipe: Recipe, workers: Workers | None, ranks: Ranks, saved: Any) -> None:
    """Refuse what several processes of ``torchrun`` cannot train together."""
    if ranks.size > 1 and (recipe.algorithm != "ppo" or workers is not None):
        raise ConfigError("torchrun trains ppo, without --on: every process has its own environments")
    there = ranks.size if saved is None else 1 + len(saved.get("others", ()))
    if there != ranks.size:
        raise ConfigError(f"this run was begun by {there} of torchrun's processes, and there are {ranks.size} now")


def _follow(trainer: Any, ranks: Ranks) -> None:
    """Train along with the first process, as it says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first one decides
    while (word := ranks.hear()) != "end":
        if word == "save":
            ranks.gathered(pack(trainer.state_dict()))
        else:
            trainer.progress = float(word)
            trainer.iterate()


class _Loop:
    def __init__(
        self,
        recipe: Recipe,
        trainer: Any,
        validation: Validation,
        folder: Path,
        about: Mapping[str, Any],
        state: State,
        log: Progress,
        on_iteration: Callable[[State, Mapping[str, float]], None],
        save_every: float,
        ranks: Ranks,
    ) -> None:
        self.ranks = ranks
        self.recipe, self.trainer, self.validation, self.folder = recipe, trainer, validation, folder
        self.about, self.state, self.log, self.on_iteration = about, state, log, on_iteration
        self._seconds, self._cpu = state.seconds, state.cpu_seconds
        self._began, self._cpu_began, self._saved = time.perf_counter(), _cpu_seconds(), time.perf_counter()
        self._save_every, self._save_took = save_every, 0.0

    def run(self, stop: Callable[[], bool]) -> str:
        recipe, state = self.recipe, self.state
        why = self._over()
        if why and state.iteration % recipe.validate_every:  # it was interrupted, and has nothing left to do
            self._validate()
            self._clock()
        while not why and not stop():
            self.trainer.progress = self._share()
            self.ranks.say(repr(self.trainer.progress))
            numbers = self._iterate()
            state.iteration += 1
            state.steps = self.trainer.steps
            self._clock()
            why = self._over()
            if why or state.iteration % recipe.validate_every == 0:
                numbers = {**numbers, **self._validate()}
                self._clock()
                why = why or self._over()
            timing = {"seconds": state.seconds, "cpu_seconds": state.cpu_seconds, **self.trainer.spent.taken()}
            self.log.add({"iteration": state.iteration, "steps": state.steps, **timing, **numbers})
            self.on_iteration(state, numbers)
            if time.perf_counter() - self._saved > max(self._save_every, _SAVE_SHARE * self._save_took):
                self.save()
        self.save()
        self.ranks.say("end")
        return why or "interrupted"

    def _iterate(self) -> dict[str, float]:
        try:
            numbers: dict[str, float] = self.trainer.iterate()
        except DivergedError as error:
            kept = (self.folder / CHECKPOINT).exists()  # the first one comes after a while
            said = "The last good checkpoint is kept" if kept else "There is no checkpoint yet"
            raise DivergedError(f"{error}. {said}") from error
        return numbers

    def _over(self) -> str:
        recipe, state = self.recipe, self.state
        if recipe.minutes and state.seconds >= 60 * recipe.minutes:
            return "time"
        if recipe.steps and state.steps >= recipe.steps:
            return "steps"
        if state.best >= recipe.stop_at:
            return "target"
        return ""

    def _share(self) -> float:
        """Of the planned run, how much is done. In steps where they are planned, so that it is the same at each run."""
        if self.recipe.steps:
            return self.state.steps / self.recipe.steps
        return self.state.seconds / (60 * self.recipe.minutes)

    def _validate(self) -> dict[str, float]:
        state, module = self.state, self.trainer.actor
        with self.trainer.spent.on("validation"):
            found = self.validation(module, Execution.of(self.about), width=self.about.get("width", WIDTH))
        state.validated = found["success"]
        network = {"kind": self.trainer.network, "options": self.trainer.network_options}
        about = {**self.about, "steps": state.steps, "iteration": state.iteration, "validated": found}
        save_trained(self.folder / LAST, module, network=network, about=about)
        if (found["success"], found["return"]) > (state.best, state.best_return):
            state.best, state.best_return, state.best_iteration = found["success"], found["return"], state.iteration
            save_trained(self.folder / FILE, module, network=network, about=about)
            (self.folder / PROGRAM).unlink(missing_ok=True)  # of a run that goes on: it was another network
        return {f"validated_{name}": value for name, value in found.items()}

    def _clock(self) -> None:
        self.state.seconds = self._seconds + time.perf_counter() - self._began
        self.state.cpu_seconds = self._cpu + _cpu_seconds() - self._cpu_began
        rows = getattr(self.trainer, "env", None)
        if isinstance(rows, SpreadRows):
            self.state.cpu_seconds += rows.seconds

    def save(self) -> None:
        """A checkpoint of everything."""
        tree = {"state": vars(self.state).copy(), "trainer": self.trainer.state_dict()}
        self.ranks.say("save")
        others = self.ranks.gathered(b"")[1:]
        tree["others"] = [torch.frombuffer(bytearray(one), dtype=torch.uint8) for one in others]
        began = time.perf_counter()
        store.write(self.folder / CHECKPOINT, tree, self.about)
        self._saved = time.perf_counter()
        self._save_took = self._saved - began


def _about(recipe: Recipe, seed: int, device: str, env: BatchEnv) -> dict[str, Any]:
    return {
        "algorithm": recipe.algorithm,
        "recipe": recipe.to_toml(),
        "recipe_hash": recipe.hash,
        "protocol_hash": test_protocol(recipe).hash,
        "seed": seed,
        "device": device,
        "manikin": __version__,
        "versions": versions(),
        "machine": machine(device),
        **about_env(env),
    }


def _check_same(recipe: Recipe, seed: int, device: str, about: Mapping[str, Any], folder: Path) -> Recipe:
    """The recipe as it was. Time, steps and target may be others; all else must be as it was."""
    free: dict[str, Any] = {"minutes": recipe.minutes, "steps": recipe.steps, "stop_at": recipe.stop_at}
    begun = Recipe.from_toml(about["recipe"], source=str(folder / CHECKPOINT))
    before = begun.replace(**free)
    if not before.sha256:
        recipe = dataclasses.replace(recipe, sha256={})  # begun when files counted by their paths
    contents = [
        (f"content of {name}", before.sha256.get(name, "")[:12], recipe.sha256[name][:12]) for name in recipe.sha256
    ]
    other = [
        f"{name} {was!r}, now {now!r}"
        for name, was, now in (
            *contents,
            *_differences(before, recipe),
            ("seed", about["seed"], seed),
            ("device", about["device"], device),
        )
        if was != now
    ]
    if other:
        raise ConfigError(f"the run in {folder} was begun with other settings: {'; '.join(other)}")
    return begun


def _differences(before: Recipe, now: Recipe) -> list[tuple[str, Any, Any]]:
    """(name, then, now) of all that counts in two recipes."""
    found: list[tuple[str, Any, Any]] = []
    for name, was in vars(before).items():
        this = getattr(now, name)
        if name in ("env", "settings"):
            keys = [key for key in {**was, **this} if name == "env" or key not in now.sha256]
            found += [(f"{name}.{key}", was.get(key), this.get(key)) for key in keys]
        elif name not in ("sha256", "description"):
            found.append((name, was, this))
    return found


def begun_as(folder: str | Path, recipe: Recipe, seed: int, device: str) -> Recipe:
    """The recipe of the run in a folder, which must be this one; time, steps and target may be others.

    Raises:
        AssetError: there is no run.
        DataError: its checkpoint is damaged.
        ConfigError: it is another run than this.
    """
    folder = Path(folder)
    _, about = store.read(folder / CHECKPOINT, tree=False)
    return _check_same(with_contents(recipe), seed, device, about, folder)


def recipe_of(folder: str | Path) -> tuple[Recipe, int, str]:
    """Recipe, seed and device of the run in a folder.

    Raises:
        AssetError: there is no run.
        DataError: its checkpoint is damaged.
    """
    folder = Path(folder)
    _, about = store.read(folder / CHECKPOINT, tree=False)
    return load_recipe(folder / RECIPE), int(about["seed"]), str(about["device"])


def _cpu_seconds() -> float:
    """Processor time of this process, its threads, and the processes it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
