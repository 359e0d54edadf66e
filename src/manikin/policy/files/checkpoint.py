"""A network in a file as a policy: programs that ``torch.export.save`` wrote (``.pt2``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from manikin.data.recording.format import flatten
from manikin.env.interface import BatchEnv
from manikin.errors import AssetError, ConfigError, DataError
from manikin.policy.files.archive import read_archive
from manikin.policy.files.program import Program
from manikin.policy.network import NetworkPolicy
from manikin.policy.trained import check_trained_for

__all__ = ["load_policy", "program_policy"]


class _Module(torch.nn.Module):
    """A program as a module that looks at what it is shown.

    Args:
        program: of the file.
        name: for errors.
        about: what the file says of itself.

    Attributes:
        takes: the observation that it was exported with, by name.
        about: what it was trained for, as its run's ``policy.safetensors`` says it; empty where the file does not say.
    """

    def __init__(self, program: Program, name: str, about: Mapping[str, Any]) -> None:
        super().__init__()
        self.about = dict(about)
        self.takes, self._run, self._name = flatten(program.takes), program, name

    def forward(self, observation: Any) -> Any:
        """Actions. Raises :class:`ConfigError` for another observation than that of the export."""
        shown = flatten(observation)
        if _kinds(shown) != _kinds(self.takes):
            raise ConfigError(
                f"{self._name} expects the observation {_shapes(self.takes)}, but this environment gives "
                f"{_shapes(shown)}; change observe=, or export the policy again"
            )
        return self._run(observation)


def _kinds(leaves: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """What must be equal of two observations; not how many rows they have."""
    return {name: (tuple(leaf.shape[1:]), leaf.dtype) for name, leaf in leaves.items()}


def _shapes(leaves: Mapping[str, torch.Tensor]) -> str:
    """``qpos (B, 9) float32, ...``; a flat observation has no name."""
    one = (
        f"{name} ({', '.join(('B', *map(str, shape)))}) {str(dtype).removeprefix('torch.')}".removeprefix("value ")
        for name, (shape, dtype) in _kinds(leaves).items()
    )
    return ", ".join(one)


def load_policy(path: str | Path) -> NetworkPolicy:
    """The network of a file, which maps an observation of B rows to actions (B, A) or (B, horizon, A).

    ``torch.export.save(torch.export.export(module.eval(), (observation[:1],)), "policy.pt2")`` writes such a file. It
    takes as many rows as that observation had. Each row is run alone: where it takes more than one, as copies.

    A file from a stranger is safe to load: its graph, weights and constants are read as numbers and plain values,
    nothing is unpickled, and only operators of a fixed list are run (:mod:`manikin.policy.files.operators`). What needs
    more than that is a program, and is given as ``file.py:function``.

    Raises:
        AssetError: no such file.
        DataError: not an exported program of one input, or one that holds something that is not loaded: pickled
            objects, compiled code, other operators. (Used with another observation it raises ConfigError.)
    """
    path = Path(path)
    if not path.is_file():
        raise AssetError(f"no file {path}")
    try:
        graph, tensors, about = read_archive(path)
        module = _Module(Program(graph, tensors, path.name), path.name, about)
        width = len(next(iter(module.takes.values())))
    except DataError as error:
        raise DataError(
            f"{path} is not loaded, because it holds {error}. Of a .pt2 file only graph, weights and constants are "
            "used, since anything else could run code; give a policy that needs more as file.py:function"
        ) from None
    except Exception as error:  # a broken file may raise anything; that it did is the finding
        kind = type(error).__name__
        raise DataError(
            f"{path} was not written by torch.export.save ({kind}): see manikin.policy.files.checkpoint"
        ) from None
    return NetworkPolicy(module, width=width, fixed=True, name=path.stem)


def program_policy(path: str | Path) -> Callable[[BatchEnv], NetworkPolicy]:
    """A function from an environment to the policy of a file. Where the file says what it was trained for, as those of
    ``manikin train`` do, the environment must be that one, as for :func:`~manikin.policy.trained.trained_policy`.

    Raises:
        AssetError, DataError: as :func:`load_policy`. The function raises :class:`ConfigError` where the environment is
            another one.
    """
    network = load_policy(path)

    def make(env: BatchEnv) -> NetworkPolicy:
        check_trained_for(env, network.module.about, path)  # type: ignore[arg-type]
        return network

    return make
