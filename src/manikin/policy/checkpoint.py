"""A network in a file as a policy: programs that ``torch.export.save`` wrote (``.pt2``)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from manikin.data.format import flatten
from manikin.errors import AssetError, ConfigError, DataError
from manikin.policy.network import NetworkPolicy

__all__ = ["load_policy"]


class _Program(torch.nn.Module):
    """An exported program, which knows no evaluation mode of its own: it was exported in one.

    Args:
        program: what ``torch.export.load`` gave.
        name: for errors.

    Attributes:
        takes: the observation that it was exported with, by name.
    """

    def __init__(self, program: Any, name: str) -> None:
        super().__init__()
        (example,), _ = program.example_inputs
        self.takes, self._name = flatten(example), name
        self._run = (program.module(),)  # in a tuple, so that eval() does not reach it

    def forward(self, observation: Any) -> Any:
        """Actions. Raises :class:`ConfigError` for another observation than that of the export."""
        shown = flatten(observation)
        if _kinds(shown) != _kinds(self.takes):
            raise ConfigError(
                f"{self._name} was exported for another observation: it takes {_said(self.takes)}, and is shown "
                f"{_said(shown)}"
            )
        return self._run[0](observation)


def _kinds(leaves: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """What must be equal of two observations; not how many rows they have."""
    return {name: (tuple(leaf.shape[1:]), leaf.dtype) for name, leaf in leaves.items()}


def _said(leaves: Mapping[str, torch.Tensor]) -> str:
    """``qpos (B, 9) float32, ...``; a flat observation has no name."""
    one = (
        f"{name} ({', '.join(('B', *map(str, shape)))}) {str(dtype).removeprefix('torch.')}".removeprefix("value ")
        for name, (shape, dtype) in _kinds(leaves).items()
    )
    return ", ".join(one)


def load_policy(path: str | Path) -> NetworkPolicy:
    """The network of a file, which maps an observation of B rows to actions (B, A) or (B, horizon, A).

    ``torch.export.save(torch.export.export(module.eval(), (observation,)), "policy.pt2")`` writes such a file. It is
    run on batches of as many rows as ``observation`` had. Unlike a pickled module it needs none of the code that made
    it, and running it runs none but torch's.

    Raises:
        AssetError: no such file.
        DataError: not an exported program of one input. (Used with another observation it raises ConfigError.)
    """
    path = Path(path)
    if not path.is_file():
        raise AssetError(f"no file {path}")
    try:
        program = torch.export.load(path)
        module = _Program(program, path.name)
        width = len(next(iter(module.takes.values())))
    except Exception as error:  # a broken file may raise anything; that it did is the finding
        kind = type(error).__name__
        raise DataError(
            f"{path} was not written by torch.export.save ({kind}): see manikin.policy.checkpoint"
        ) from None
    return NetworkPolicy(module, width=width, fixed=True, name=path.stem)
