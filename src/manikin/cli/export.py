"""`manikin export`: a trained policy as an ONNX file."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from manikin.cli.common.terminal import NOT_GOOD, OK, console

__all__ = ["ExportOptions", "main", "run"]

_ROWS, _TOGETHER, _TOLERANCE = 1000, 100, 1e-4


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of `manikin export`."""

    checkpoint: tyro.conf.Positional[str]
    """Folder of a training run, its policy.safetensors, or a policy that comes with manikin (manikin policies)."""
    out: Path = Path("policy.onnx")
    """The ONNX file."""


def main(options: Annotated[ExportOptions, tyro.conf.arg(name="")]) -> int:
    """Write a trained policy as an ONNX file, and compare its answers with those of the network."""
    return run(options)


def run(options: ExportOptions) -> int:
    """Export; 1 where the file's answers differ from the network's."""
    import torch

    from manikin.errors import ConfigError
    from manikin.policy.choices import find_trained
    from manikin.policy.files.onnx import INPUT, example_observations, export_onnx, input_shapes, run_onnx
    from manikin.policy.network import NetworkPolicy
    from manikin.policy.trained import load_trained

    out = console()
    module, about = load_trained(find_trained(options.checkpoint))
    shape = input_shapes(about["network"]["options"])
    if shape is None:
        raise ConfigError(
            f"{options.checkpoint} is a network of the kind {about['network']['kind']!r}, which ONNX files are not "
            "made for: use its policy.pt2. Those that see numbers or pictures of a fixed size can be exported"
        )
    kept = ("algorithm", "task", "robot", "control", "control_hz", "observe", "observation", "recipe_hash")
    said_of = {name: about.get(name) for name in kept}
    if isinstance(shape, Mapping):  # the columns of its input of numbers, in their order
        said_of["numbers"] = about["network"]["options"]["observations"]["numbers"]
    export_onnx(module, options.out, shape, about=said_of)
    size = options.out.stat().st_size / 1000
    inputs = shape if isinstance(shape, Mapping) else {INPUT: shape}
    said = ", ".join(f"{name} (B, {', '.join(map(str, one))})" for name, one in inputs.items())
    out.print(f"{options.out}: {about['task']}, {said}, {size:.0f} kB", soft_wrap=True)
    if importlib.util.find_spec("onnxruntime") is None:
        out.print("not compared with the network: onnxruntime is not installed (pip install 'manikin\\[onnx]')")
        return OK
    seen = example_observations(module, shape, _ROWS)
    ours = NetworkPolicy(module).act(seen, [""] * _ROWS)
    theirs = torch.cat([run_onnx(options.out, some) for some in _parts(seen)])
    far = float((ours - theirs.reshape(ours.shape)).abs().max())
    good = far <= _TOLERANCE
    said = f"on {_ROWS} random observations its actions differ from the network's by at most {far:.1e}"
    out.print(said if good else f"[red]{said}, more than {_TOLERANCE:.0e}[/]", soft_wrap=True)
    return OK if good else NOT_GOOD


def _parts(seen: Any) -> list[Any]:
    """Some rows at a time: a planner tries many sequences for each, and pictures are large."""
    if isinstance(seen, Mapping):
        return [dict(zip(seen, rows, strict=True)) for rows in zip(*map(_parts, seen.values()), strict=True)]
    return list(seen.split(_TOGETHER))
