"""`manikin export`: a trained policy as an ONNX file."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.terminal import NOT_GOOD, OK, console

__all__ = ["ExportOptions", "main", "run"]

_ROWS, _TOLERANCE = 1000, 1e-4


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
    from manikin.errors import ConfigError
    from manikin.policy.files.onnx import example_observations, export_onnx, run_onnx
    from manikin.policy.network import NetworkPolicy
    from manikin.policy.shipped import shipped_policy
    from manikin.policy.trained import load_trained

    out = console()
    module, about = load_trained(shipped_policy(options.checkpoint) or Path(options.checkpoint))
    given = about["network"]["options"]
    if not isinstance(given["observations"], int):
        raise ConfigError(
            f"{options.checkpoint} sees pictures, which ONNX files are not made for here: use its policy.pt2"
        )
    window, columns = int(given.get("window", 1)), int(given["observations"])
    shape = (window, columns) if window > 1 else (columns,)
    kept = ("algorithm", "task", "robot", "control", "control_hz", "observe", "observation", "recipe_hash")
    export_onnx(module, options.out, shape, about={name: about.get(name) for name in kept})
    size = options.out.stat().st_size / 1000
    out.print(
        f"{options.out}: {about['task']}, observation (B, {', '.join(map(str, shape))}), {size:.0f} kB", soft_wrap=True
    )
    if importlib.util.find_spec("onnxruntime") is None:
        out.print("not compared with the network: onnxruntime is not installed (pip install 'manikin\\[onnx]')")
        return OK
    seen = example_observations(module, shape, _ROWS)
    ours, theirs = NetworkPolicy(module).act(seen, [""] * _ROWS), run_onnx(options.out, seen)
    far = float((ours - theirs.reshape(ours.shape)).abs().max())
    good = far <= _TOLERANCE
    said = f"on {_ROWS} random observations its actions differ from the network's by at most {far:.1e}"
    out.print(said if good else f"[red]{said}, more than {_TOLERANCE:.0e}[/]", soft_wrap=True)
    return OK if good else NOT_GOOD
