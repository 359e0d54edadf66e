"""A network in a file as a policy: programs that ``torch.export.save`` wrote (``.pt2``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from manikin.errors import AssetError, DataError
from manikin.policy.network import NetworkPolicy

__all__ = ["load_policy"]


class _Program(torch.nn.Module):
    """An exported program, which knows no evaluation mode of its own: it was exported in one."""

    def __init__(self, program: Any) -> None:
        super().__init__()
        self._run = (program.module(),)  # in a tuple, so that eval() does not reach it

    def forward(self, observation: Any) -> Any:
        return self._run[0](observation)


def load_policy(path: str | Path) -> NetworkPolicy:
    """The network of a file, which maps an observation of B rows to actions (B, A) or (B, horizon, A).

    ``torch.export.save(torch.export.export(module.eval(), (observation,)), "policy.pt2")`` writes such a file. It is
    run on batches of as many rows as ``observation`` had. Unlike a pickled module it needs none of the code that made
    it, and running it runs none but torch's.

    Raises:
        AssetError: no such file.
        DataError: not an exported program.
    """
    path = Path(path)
    if not path.is_file():
        raise AssetError(f"no file {path}")
    try:
        program = torch.export.load(path)
        example = torch.utils._pytree.tree_leaves(program.example_inputs)
        width = int(example[0].shape[0])
    except Exception as error:  # a broken file may raise anything; that it did is the finding
        kind = type(error).__name__
        raise DataError(
            f"{path} was not written by torch.export.save ({kind}): see manikin.policy.checkpoint"
        ) from None
    return NetworkPolicy(_Program(program), width=width, fixed=True, name=path.stem)
