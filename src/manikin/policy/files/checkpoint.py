"""A network in a file as a policy: programs that ``torch.export.save`` wrote (``.pt2``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from manikin.data.recording.format import flatten
from manikin.errors import AssetError, ConfigError, DataError
from manikin.policy.files.archive import read_archive
from manikin.policy.files.program import Program
from manikin.policy.network import NetworkPolicy

__all__ = ["load_policy"]


class _Module(torch.nn.Module):
    """A program as a module that looks at what it is shown.

    Args:
        program: of the file.
        name: for errors.

    Attributes:
        takes: the observation that it was exported with, by name.
    """

    def __init__(self, program: Program, name: str) -> None:
        super().__init__()
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
        module = _Module(Program(*read_archive(path), path.name), path.name)
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
