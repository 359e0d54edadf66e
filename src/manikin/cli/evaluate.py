"""`manikin eval`: a success rate under a protocol, with a report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manikin.cli.chosen import WarpOptions
from manikin.cli.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, rates_table

__all__ = ["EvalOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class EvalOptions(WarpOptions):
    """Options of `manikin eval`."""

    protocol: tyro.conf.Positional[str]
    """A protocol file (.toml), or the name of one that comes with manikin: core, pick-cube."""
    policy: str = "expert"
    """expert, random, policy.pt2 (a network by torch.export), ws://host:port (openpi's protocol), or your own as
    module:function or file.py:function (called with the environment)."""
    num_envs: int = 64
    """How many episodes run side by side; does not change the result."""
    device: str = "cpu"
    """Where to simulate: cpu, cuda, cuda:1 or warp:cpu. The report names it."""
    out: Path | None = None
    """Folder for report.json and report.html; by default runs/eval-PROTOCOL-POLICY[-DEVICE]."""
    execute: int | None = None
    """Actions of each chunk to execute before the policy is asked again; by default all of them."""
    pictures: int = 4
    """Of how many episodes per task the page shows pictures."""
    renderer: Literal["auto", "gl", "rays"] = "auto"
    """Makes the pictures: OpenGL where it works, casting rays with MuJoCo anywhere."""
    against: Path | None = None
    """A report.json of another policy under the same protocol: adds a paired comparison."""


def main(options: Annotated[EvalOptions, tyro.conf.arg(name="")]) -> int:
    """Evaluate a policy under a frozen protocol: every episode once, intervals, health, one page of report."""
    return run(options)


def run(options: EvalOptions) -> int:
    """Evaluate; 0 done, 1 unhealthy, 130 interrupted (the report then holds what is finished and says so)."""
    from rich.markup import escape

    from manikin.eval.evaluation import evaluate
    from manikin.eval.html import write_html
    from manikin.eval.protocol import load_protocol
    from manikin.eval.report import as_dict, compare, read_report, write_report
    from manikin.eval.runner import interruptible
    from manikin.policy.choices import policy_maker
    from manikin.render.api import make_renderer
    from manikin.sim import torch_device

    out, protocol, maker = console(), load_protocol(options.protocol), policy_maker(options.policy)
    torch_device(options.device)
    other = read_report(options.against) if options.against else None
    size = f"{len(protocol.tasks)} tasks, {len(protocol.seeds)} episodes each"
    out.print(f"protocol {protocol.name} {protocol.hash[:12]}: {size}")
    with interruptible() as stop, bar(out, "evaluating", len(protocol.tasks) * len(protocol.seeds)) as advance:
        evaluation = evaluate(
            protocol,
            maker,
            num_envs=options.num_envs,
            execute=options.execute,
            device=options.device,
            **options.warp(),
            film=options.pictures,
            renderer=make_renderer(options.renderer, samples=2) if options.pictures else None,
            on_result=lambda task, result: advance(),
            stop=stop,
        )
    if not evaluation.tasks:
        out.print("interrupted before the first episode ended")
        return INTERRUPTED
    words = ["manikin", "eval", options.protocol, "--policy", options.policy]
    words += ["--execute", str(options.execute)] if options.execute else []
    words += ["--device", options.device] if options.device != "cpu" else []
    words += ["--budget", options.budget] if options.budget is not None else []
    words += ["--deterministic"] if options.deterministic else []
    report = as_dict(evaluation, command=shlex.join(words))
    if other is not None:
        report["comparison"] = compare(report, other)
    on = "" if options.device == "cpu" else f"-{options.device.replace(':', '')}"
    folder = options.out or Path("runs") / f"eval-{protocol.name}-{evaluation.policy}{on}"
    write_report(report, folder / "report.json")
    write_html(report, folder / "report.html", evaluation.reels)
    out.print(rates_table(evaluation))
    for row in report["comparison"] or []:
        out.print(
            f"{row['task']}: {row['policies'][0]} - {row['policies'][1]} = {100 * row['difference']:+.1f} points "
            f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}], McNemar p = {row['p_value']:.2g}"
        )
        if len(set(row["devices"])) > 1:
            out.print(f"{row['task']}: simulated on {' and '.join(row['devices'])}, whose physics rounds differently")
    out.print(f"report: {folder / 'report.html'}")
    if evaluation.interrupted:
        out.print("interrupted: only finished episodes are counted")
        return INTERRUPTED
    if not evaluation.healthy:
        out.print("[red]unhealthy episodes: these rates are not valid[/] (see Health in the report)")
        for task in evaluation.tasks:
            if task.advice:
                out.print(f"{task.task}: {escape(task.advice)}", soft_wrap=True)
        return NOT_GOOD
    return OK
