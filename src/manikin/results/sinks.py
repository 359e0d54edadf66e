"""Other places that a result can go to besides the store: TensorBoard, MLflow, Weights & Biases. All are optional."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.stats import wilson
from manikin.results.schema import Result

__all__ = ["SINKS", "Sink", "open_sink", "send"]


class Sink(Protocol):
    """A place for results. One run is begun, gets its numbers, and is closed."""

    def begin(self, name: str, about: Mapping[str, Any]) -> None:
        """A run of this name; ``about`` are its columns."""

    def number(self, name: str, value: float, step: int) -> None:
        """A number of the run."""

    def close(self) -> None:
        """The run is whole."""


class _TensorBoard:
    """Events in a folder, one below it per run."""

    def __init__(self, where: str) -> None:
        self._folder, self._module = Path(where), _needed("torch.utils.tensorboard", "tensorboard")

    def begin(self, name: str, about: Mapping[str, Any]) -> None:
        self._writer = self._module.SummaryWriter(str(self._folder / name.replace("/", "-")))
        self._writer.add_text("run", "\n".join(f"    {key}: {value}" for key, value in about.items()))

    def number(self, name: str, value: float, step: int) -> None:
        self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _MLflow:
    """Runs in an experiment ``manikin`` at a tracking address."""

    def __init__(self, where: str) -> None:
        self._module = _needed("mlflow", "mlflow")
        self._module.set_tracking_uri(where)
        self._module.set_experiment("manikin")

    def begin(self, name: str, about: Mapping[str, Any]) -> None:
        self._module.start_run(run_name=name)
        self._module.set_tags({key: str(value)[:5000] for key, value in about.items()})

    def number(self, name: str, value: float, step: int) -> None:
        self._module.log_metric(name, value, step=step)

    def close(self) -> None:
        self._module.end_run()


class _WandB:
    """Runs in a project of Weights & Biases."""

    def __init__(self, where: str) -> None:
        self._project, self._module = where, _needed("wandb", "wandb")

    def begin(self, name: str, about: Mapping[str, Any]) -> None:
        self._run = self._module.init(project=self._project, name=name, config=dict(about))

    def number(self, name: str, value: float, step: int) -> None:
        self._run.log({name: value, "step": step})

    def close(self) -> None:
        self._run.finish()


SINKS: dict[str, Callable[[str], Sink]] = {"tensorboard": _TensorBoard, "mlflow": _MLflow, "wandb": _WandB}
"""Word -> kind of sink."""


def open_sink(word: str) -> Sink:
    """A sink by a word: ``tensorboard:FOLDER``, ``mlflow:ADDRESS`` or ``wandb:PROJECT``.

    Raises:
        UnknownNameError: another kind.
        ConfigError: no place is given, or the package is not installed.
    """
    kind, _, where = word.partition(":")
    if kind not in SINKS:
        raise UnknownNameError("sink", kind, tuple(SINKS))
    if not where:
        raise ConfigError(f"say where: {kind}:{'FOLDER' if kind == 'tensorboard' else 'PLACE'}")
    return SINKS[kind](where)


def send(result: Result, sink: Sink) -> None:
    """A result's numbers: all metrics, and of each task the success rate with its interval."""
    run = {key: value for key, value in result.run.items() if value not in (None, "")}
    sink.begin(f"{run.get('name', '')}/{run.get('policy', run.get('kind', ''))}/{result.id[:8]}", run)
    for row in result.metrics:
        sink.number(row["name"], float(row["value"]), int(row["step"] or 0))
    tasks = dict.fromkeys(row["named"] for row in result.episodes)
    for task in tasks:
        won = [bool(row["success"]) for row in result.episodes if row["named"] == task]
        rate = wilson(sum(won), len(won))
        for name, value in (("success", rate.estimate), ("success_low", rate.low), ("success_high", rate.high)):
            sink.number(f"{task}/{name}", value, 0)
    sink.close()


def _needed(module: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigError(f"{package} is not installed: pip install {package}") from None
