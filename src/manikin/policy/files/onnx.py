"""A trained network as an ONNX file, for programs without Python and torch. Needs ``pip install 'manikin[onnx]'``."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError

__all__ = ["INPUT", "METADATA", "OUTPUT", "example_observations", "export_onnx", "run_onnx"]

INPUT, OUTPUT, METADATA = "observation", "actions", "manikin"
"""Names in the file: of what goes in, of what comes out, and of what is said about the policy, as JSON."""
_INSTALL = "pip install 'manikin[onnx]'"


def export_onnx(module: nn.Module, path: str | Path, shape: Sequence[int], *, about: Mapping[str, Any]) -> None:
    """Write a network as an ONNX file: ``observation`` (B, *shape) float32 to ``actions`` (B, A) or (B, horizon, A).

    Scaling of observations and actions is part of the network, and so of the file. Any number of rows B goes in.

    Args:
        module: as it acts.
        path: of the file.
        shape: of one row's observation.
        about: what the file says of the policy, for JSON.

    Raises:
        ConfigError: what writes ONNX is not installed, or the network's code fixes the number of rows.
        DataError: the file cannot be written.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"writing ONNX needs onnx and onnxscript ({error}): {_INSTALL}") from None
    rows = torch.export.Dim("rows", min=1)
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            module.eval(),
            (torch.zeros(2, *shape),),
            dynamo=True,
            dynamic_shapes=({0: rows},),
            input_names=[INPUT],
            output_names=[OUTPUT],
            verbose=False,
        )
    assert program is not None
    if isinstance(program.model.graph.inputs[0].shape[0], int):
        raise ConfigError(
            f"{type(module).__name__} fixes how many rows go in: it uses len() of a tensor, not .shape[0]"
        )
    program.model.metadata_props[METADATA] = json.dumps(dict(about))
    write_file(Path(path), program.model_proto.SerializeToString())


@contextmanager
def _quiet() -> Iterator[None]:
    """Within this block torch's exporter does not warn of libraries that it would also know."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def run_onnx(path: str | Path, observation: Tensor) -> Tensor:
    """Actions that the file gives for observations (B, ...), by onnxruntime on one thread.

    Their last bits may depend on how many rows there are.

    Raises:
        ConfigError: onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError(f"running ONNX needs onnxruntime ({error}): {_INSTALL}") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (actions,) = session.run([OUTPUT], {INPUT: observation.numpy().astype(np.float32)})
    return torch.from_numpy(actions)


def example_observations(module: Any, shape: Sequence[int], count: int, *, seed: int = 0) -> Tensor:
    """Observations (count, *shape) as far from the mean that the network was trained with as its limit and beyond:
    normal numbers with three times its spread, and one in ten with thirty times."""
    generator = torch.Generator().manual_seed(seed)
    far = torch.where(torch.rand(count, generator=generator) < 0.1, 30.0, 3.0)
    drawn = torch.randn((count, *shape), generator=generator) * far.view(-1, *[1] * len(shape))
    spread = module.scaling.std
    spread = torch.where(spread.isfinite(), spread, torch.ones_like(spread))  # hidden columns
    return module.scaling.mean + spread * drawn
