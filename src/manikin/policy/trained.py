"""Trained policies: a checkpoint's network, with what it was trained for."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from manikin.data.recording.durable import write_file
from manikin.data.recording.format import flatten
from manikin.env.interface import BatchEnv
from manikin.env.observe import Vision
from manikin.errors import AssetError, ConfigError, DataError
from manikin.policy.api import Policy
from manikin.policy.chunk import Execution
from manikin.policy.network import WIDTH, NetworkPolicy
from manikin.policy.networks import build
from manikin.robots.identified import base

__all__ = [
    "ABOUT",
    "FILE",
    "LAST",
    "PROGRAM",
    "SEEN",
    "about_env",
    "check_trained_for",
    "export_program",
    "load_trained",
    "observed_by",
    "policy_hash",
    "read_about",
    "save_trained",
    "trained_name",
    "trained_policy",
    "trained_skill",
    "weights_hash",
]

FILE = "policy.safetensors"
"""The name of a policy's file in the folder of a run."""
LAST = "last.safetensors"
"""The name of the network that was validated last."""
PROGRAM = "policy.pt2"
"""The name of the same network as a program."""
ABOUT = "manikin.json"
"""The name of the extra file in a program that says what it was trained for; those of others have none."""
_FORMAT = 1
_ASKED = ("task", "robot", "control", "observe", "control_hz")
_ACTS = ("network", "execution", "width")
SEEN = ("cameras", "size", "stages")
"""What of a vision a policy depends on; any renderer may draw it."""


def about_env(env: BatchEnv) -> dict[str, Any]:
    """What a policy depends on of the environment it was trained in, for JSON."""
    found = env.fingerprint()
    about = {**{name: found.get(name) for name in _ASKED}, "observation": list(env.observation_names)}
    if env.observation_names:
        return about
    shapes = {path: list(space.shape) for path, space in flatten(env.single_observation_space).items()}
    shown = {name: env.vision.describe().get(name) for name in SEEN} if env.observation.needs else None
    return {**about, "shapes": shapes, "pictures": shown}


def save_trained(path: Path, module: torch.nn.Module, *, network: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write a network's weights, how it is built (``network``: kind and options) and what it is for (``about``).

    Raises:
        DataError: the file cannot be written.
    """
    metadata = {"manikin": json.dumps({"format": _FORMAT, "network": dict(network), **about})}
    weights = {name: value.detach().cpu().contiguous().clone() for name, value in module.state_dict().items()}
    write_file(path, save(weights, metadata))


def export_program(
    module: torch.nn.Module,
    path: Path,
    observation: Any,
    *,
    width: int = 1,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a network as a program that needs no code of manikin's: ``policy.pt2``.

    Args:
        module: as it acts.
        path: of the file.
        observation: an example (n, ...) of what it is shown, a tensor or nested ones; the program takes ``width`` rows
            at a time.
        width: rows. :class:`~manikin.policy.network.NetworkPolicy` asks for one at a time.
        about: what it was trained for, as :func:`read_about` gives it.

    Raises:
        DataError: the file cannot be written.
    """

    def example(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: example(one) for name, one in value.items()}
        return torch.zeros((width, *value.shape[1:]), dtype=value.dtype)

    module = module.eval()
    with torch.no_grad():
        program = torch.export.export(module, (example(observation),))
    content = io.BytesIO()
    torch.export.save(program, content, extra_files={} if about is None else {ABOUT: json.dumps(dict(about))})
    write_file(path, content.getvalue())


def read_about(path: str | Path) -> dict[str, Any]:
    """What the file says of its policy: network, task, robot, control, observation, recipe, versions.

    Raises:
        AssetError: no such file, or a folder of a run without one.
        DataError: it is no policy of manikin's.
    """
    return _opened(path)[0]


def load_trained(path: str | Path) -> tuple[torch.nn.Module, dict[str, Any]]:
    """The network, and what the file says of it.

    Raises:
        AssetError: no such file.
        DataError: it is no policy of manikin's, or its weights do not fit its network.
    """
    about, weights = _opened(path)
    network = about["network"]
    module = build(network["kind"], network["options"])
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(f"{path}: the weights do not fit the network it names: {error}") from None
    return module.eval(), about


def weights_hash(module: torch.nn.Module) -> str:
    """SHA-256 of a network's weights by name, 64 hex digits."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def policy_hash(path: str | Path) -> str:
    """SHA-256 of how a trained policy acts and where, 64 hex digits: network, weights, and what it depends on of its
    environment. How it was trained does not count.

    Raises:
        AssetError, DataError: as :func:`load_trained`.
    """
    module, about = load_trained(path)
    acts = {name: about.get(name) for name in (*_ASKED, "observation", "shapes", "pictures", *_ACTS)}
    return hashlib.sha256(f"{json.dumps(acts, sort_keys=True)} {weights_hash(module)}".encode()).hexdigest()


def trained_name(path: str | Path, about: Mapping[str, Any]) -> str:
    """What a policy is called in reports: the name of its file; in a run's folder, where all files have the same names,
    the algorithm and the folder."""
    path = Path(path)
    if path.is_dir() or path.name in (FILE, LAST):
        folder = (path if path.is_dir() else path.parent).resolve().name
        return f"{about.get('algorithm', 'network')}-{folder or path.stem}"
    return path.stem


def trained_policy(path: str | Path) -> Callable[[BatchEnv], NetworkPolicy]:
    """A function from an environment to the policy for it.

    The robot may be the same one with parameters that ``manikin sysid`` found. A camera of the same name may stand
    elsewhere, and pictures may have other stages, such as a photograph behind them; then the function warns.

    Raises:
        AssetError, DataError: as :func:`load_trained`. The function raises :class:`ConfigError` where the environment
            has another task, robot, controller or observation than the policy was trained for.
    """
    module, about = load_trained(path)

    def make(env: BatchEnv) -> NetworkPolicy:
        check_trained_for(env, about, path)
        return _acting(module, about, path, env)

    return make


def trained_skill(path: str | Path, task: str) -> Callable[[BatchEnv], Policy]:
    """As :func:`trained_policy`, of a policy that was trained on a subtask alone: a function from an environment whose
    task is a sequence of subtasks. Of a flat observation the policy is shown the columns that it knows, by their names.

    Args:
        path: as there.
        task: id of what it must have been trained on.

    Raises:
        AssetError, DataError: as :func:`load_trained`. The function raises :class:`ConfigError` where the policy was
            trained on another task, or for another robot, controller or observation, or where the environment does not
            show a column that it knows.
    """
    module, about = load_trained(path)

    def make(env: BatchEnv) -> Policy:
        if about.get("task") not in (None, task):
            raise ConfigError(f"{path} was trained for task {about['task']!r}, and this skill is that of {task!r}")
        known, shown = [_column(name) for name in about.get("observation") or ()], env.observation_names
        if not known or not shown:
            check_trained_for(env, {**about, "task": env.task.id}, path)
            return _acting(module, about, path, env)
        place = {_column(name): k for k, name in enumerate(shown)}
        if lacking := [name for name in known if name not in place]:
            some = ", ".join(lacking[:4]) + (" and more" if len(lacking) > 4 else "")
            raise ConfigError(
                f"{path} was shown {some} in training, which {env.task.id} does not show with observe={env.observe!r}"
            )
        check_trained_for(env, {**about, "task": env.task.id, "observe": None, "observation": None}, path)
        return _Columns(_acting(module, about, path, env), torch.tensor([place[name] for name in known]))

    return make


def _column(name: str) -> str:
    """A column's name without its group: what one task tells policies may be privileged in another."""
    return name.partition("/")[2] or name


class _Columns:
    """A policy that is shown some columns (k,) of the observation, in their order."""

    def __init__(self, policy: NetworkPolicy, columns: torch.Tensor) -> None:
        self._policy, self._columns = policy, columns
        self.name, self.reset = policy.name, policy.reset

    def act(self, observation: Any, instruction: Sequence[str]) -> torch.Tensor:
        return self._policy.act(observation[:, self._columns.to(observation.device)], instruction)


def _acting(module: torch.nn.Module, about: Mapping[str, Any], path: str | Path, env: BatchEnv) -> NetworkPolicy:
    """The policy of a network that fits the environment."""
    device = None if env.device.type == "cpu" else env.device
    width = 1 if device is None else int(about.get("width", WIDTH))
    name, execution = trained_name(path, about), Execution.of(about)
    return NetworkPolicy(module, width=width, device=device, name=name, execution=execution)


def check_trained_for(env: BatchEnv, about: Mapping[str, Any], path: str | Path) -> None:
    """Refuse an environment with another task, robot, controller or observation than a policy's file says; what it does
    not say may be anything. Warns as :func:`trained_policy` says.

    Raises:
        ConfigError: it was trained for another one.
    """
    here = about_env(env)
    other = [key for key in here if about.get(key) is not None and _plain(about[key]) != _plain(here[key])]
    if "robot" in other and _plain(about["robot"]) == base(here["robot"]):
        other.remove("robot")
    if "pictures" in other and "shapes" not in other and _cameras(about["pictures"]) == _cameras(here["pictures"]):
        other.remove("pictures")
        said = f"pictures {_short(about['pictures'])}, here {_short(here['pictures'])}"
        warnings.warn(f"{path} was trained for {said}. It acts on other pictures than it knows", stacklevel=3)
    for cause, follows in (("observe", "observation"), ("observe", "shapes"), ("pictures", "shapes")):
        if cause in other and follows in other:
            other.remove(follows)
    if other:
        said = "; ".join(f"{key} {_short(about[key])}, here {_short(here[key])}" for key in other)
        raise ConfigError(f"{path} was trained for {said}. Make the environment as it was trained")


def observed_by(path: str | Path) -> dict[str, Any]:
    """Options of an environment that shows a trained policy what it was trained with: ``observe``, and ``vision`` where
    it sees pictures.

    Raises:
        AssetError, DataError: as :func:`read_about`.
    """
    about = read_about(path)
    shown: dict[str, Any] = {"observe": about.get("observe") or "state"}
    if about.get("pictures"):
        seen = {name: value for name, value in about["pictures"].items() if value is not None}
        shown["vision"] = Vision.of({**Vision().describe(), **seen})
    return shown


def _cameras(pictures: Mapping[str, Any] | None) -> list[str] | None:
    """Names of the cameras."""
    cameras = (pictures or {}).get("cameras")
    return cameras and [one if isinstance(one, str) else one["name"] for one in cameras]


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _short(value: Any) -> str:
    return f"{len(value)} columns" if isinstance(value, list) else f"{value!r:.300}"


def _opened(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    file = Path(path)
    file = file / FILE if file.is_dir() else file
    if not file.is_file():
        raise AssetError(f"no trained policy at {path}: a run's folder holds one as {FILE}")
    if file.suffix == ".pt2":
        raise DataError(f"{file} is a program, without what is needed here: give the folder of its run, {file.parent}")
    try:
        with safe_open(file, "pt") as opened:
            if "manikin" not in (said := opened.metadata() or {}) and "about" in said:  # see manikin.learn.run.store
                raise DataError(
                    f"{file} is a checkpoint, which --resume goes on from, and no trained policy: give the folder of "
                    f"its run, {file.parent}"
                )
            about = json.loads((opened.metadata() or {})["manikin"])
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        if about["format"] != _FORMAT:
            raise DataError(f"{file} has format {about['format']}, this manikin reads format {_FORMAT}")
        about["network"]["kind"], about["network"]["options"]
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file} is no trained policy: {type(error).__name__}: {error}") from None
    return about, weights
