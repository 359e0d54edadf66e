"""A trained network as an ONNX file, for programs without Python and torch. Needs ``pip install 'manikin[onnx]'``."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError
from manikin.policy.networks.pictures import NUMBERS

__all__ = ["INPUT", "METADATA", "OUTPUT", "example_observations", "export_onnx", "input_shapes", "run_onnx"]

INPUT, OUTPUT, METADATA = "observation", "actions", "manikin"
"""Names in the file: of what goes in, of what comes out, and of what is said about the policy, as JSON."""
_INSTALL = "pip install 'manikin[onnx]'"


Shape = Sequence[int] | Mapping[str, Sequence[int]]
"""Of one row's observation; of one with pictures, of the numbers and of each picture by name."""


def input_shapes(options: Mapping[str, Any]) -> Shape | None:
    """What a network of these options takes, as :func:`export_onnx` has it; None where no ONNX files are made for it.

    One that sees pictures takes ``numbers`` (the numbers of its observation joined, in the order of the option) and
    each picture (height, width, 3) uint8 by its path. One that sees a stack of ``window`` observations has that size
    first.
    """
    seen, window = options.get("observations"), int(options.get("window", 1))
    first = (window,) if window > 1 else ()
    if isinstance(seen, int):
        return (*first, seen)
    if not isinstance(seen, Mapping) or not {"numbers", "pictures"} <= set(seen):
        return None
    pictures = {path: (*first, *map(int, size), 3) for path, size in seen["pictures"].items()}
    return {NUMBERS: (*first, sum(seen["numbers"].values())), **pictures}


def export_onnx(module: nn.Module, path: str | Path, shape: Shape, *, about: Mapping[str, Any]) -> None:
    """Write a network as an ONNX file: ``observation`` (B, *shape) float32 to ``actions`` (B, A) or (B, horizon, A).

    Scaling of observations and actions is part of the network, and so of the file. Any number of rows B goes in. A
    network that sees pictures has an input for each of them and one for the numbers, see :func:`input_shapes`.

    Args:
        module: as it acts.
        path: of the file.
        shape: of one row's observation, or of each input by name.
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
    named = isinstance(shape, Mapping)
    shapes: Mapping[str, Sequence[int]] = shape if isinstance(shape, Mapping) else {INPUT: shape}
    examples = {name: torch.zeros(2, *one, dtype=_dtype(name)) for name, one in shapes.items()}
    free = {name: {0: rows} for name in shapes}
    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            module.eval(),
            (examples, {}) if named else (examples[INPUT],),  # a dictionary that comes last would be keywords
            dynamo=True,
            dynamic_shapes=(free if named else free[INPUT],),
            input_names=list(shapes),
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


def _dtype(name: str) -> torch.dtype:
    return torch.float32 if name in (INPUT, NUMBERS) else torch.uint8


def run_onnx(path: str | Path, observation: Tensor | Mapping[str, Tensor]) -> Tensor:
    """Actions that the file gives for observations (B, ...), or for each input by name, by onnxruntime on one thread.

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
    given = observation if isinstance(observation, Mapping) else {INPUT: observation}
    fed = {name: value.to(_dtype(name)).numpy() for name, value in given.items()}
    (actions,) = session.run([OUTPUT], fed)
    return torch.from_numpy(actions)


def example_observations(module: Any, shape: Shape, count: int, *, seed: int = 0) -> Any:
    """Observations (count, *shape), or those of each input by name: pictures of any colours, and numbers as far from
    the mean that the network was trained with as its limit and beyond: normal numbers with three times its spread, and
    one in ten with thirty times."""
    generator = torch.Generator().manual_seed(seed)
    if isinstance(shape, Mapping):
        size = {name: (count, *one) for name, one in shape.items() if name != NUMBERS}
        pictures = {
            name: torch.randint(0, 256, one, generator=generator, dtype=torch.uint8) for name, one in size.items()
        }
        return {NUMBERS: example_observations(module, shape[NUMBERS], count, seed=seed), **pictures}
    far = torch.where(torch.rand(count, generator=generator) < 0.1, 30.0, 3.0)
    drawn = torch.randn((count, *shape), generator=generator) * far.view(-1, *[1] * len(shape))
    spread = module.scaling.std
    spread = torch.where(spread.isfinite(), spread, torch.ones_like(spread))  # hidden columns
    return module.scaling.mean + spread * drawn
