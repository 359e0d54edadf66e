"""`manikin eval --offline`: policies by the error of their actions on demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from manikin.cli.common.options import file_name
from manikin.cli.common.terminal import OK, bar, show_table
from manikin.cli.evaluation.one import EvalOptions, Job
from manikin.cli.evaluation.several import names_of

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["run_offline"]


def run_offline(out: Console, options: EvalOptions, jobs: Sequence[Job]) -> int:
    """Rank by action error, and write ``offline.json``.

    Raises:
        ConfigError: two policies of one name, or real results of other policies or of another task.
    """
    from rich.table import Table

    from manikin.data.recording.read import read_episodes
    from manikin.errors import ConfigError
    from manikin.eval.agreement.real import chosen, read_real
    from manikin.eval.offline import action_errors, agreement_of_errors
    from manikin.eval.report import write_report
    from manikin.policy.choices import policy_maker

    assert options.offline is not None
    makers = {}
    for job in jobs:
        name = (job.label or job.word) + ("" if job.seed is None else f", seed {job.seed}")
        makers[name] = policy_maker(job.word, seed=job.seed, convention=options.convention)
    if len(makers) < len(jobs):
        raise ConfigError("two policies have one name; give them others: --policy NAME=POLICY")
    with read_episodes(options.offline) as file:
        count = len(file.numbers)
    with bar(out, "comparing actions", count) as advance:
        task, found = action_errors(
            options.offline,
            makers,
            num_envs=options.num_envs,
            on_episode=advance,
        )
    metrics = {}
    if options.real is not None:
        real = chosen(read_real(options.real, names_of(options.map)), {task: {one.policy: {} for one in found}})
        metrics = agreement_of_errors(found, real[task])
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "policy", "mean squared error", "interval"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "policy" else "right")
    policies = []
    for place, one in enumerate(found, 1):
        e = one.error
        table.add_row(str(place), one.policy, f"{e.estimate:.4g}", f"{e.low:.4g} to {e.high:.4g}")
        policies.append({"policy": one.policy, "error": e.estimate, "low": e.low, "high": e.high})
    show_table(out, table)
    for name, metric in metrics.items():
        out.print(f"against reality, {task}: {name} {metric}", soft_wrap=True)
    folder = options.out or Path("runs") / file_name(f"offline-{options.offline.stem}")
    content = {"schema": "manikin-offline", "schema_version": 1, "file": options.offline.name, "task": task}
    measured = {name: asdict(metric) for name, metric in metrics.items()}
    write_report({**content, "policies": policies, "metrics": measured}, folder / "offline.json")
    out.print(f"errors: {folder / 'offline.json'}", soft_wrap=True)
    return OK
