"""Several evaluations together: who is better, and does reality agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin.cli.common.options import file_name, load_task
from manikin.cli.common.terminal import NOT_GOOD, OK, console, show_table
from manikin.cli.evaluation.one import EvalOptions, Job, chosen_protocol, evaluate_one

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

__all__ = ["evaluate_several", "names_of", "write_ranking"]


def write_ranking(
    out: Console,
    places: Sequence[Path],
    folder: Path,
    real: Path | None,
    names: Sequence[str],
    offline: Path | None = None,
) -> int:
    """Read reports, print and write what they say together.

    Raises:
        ConfigError, DataError: as :func:`manikin.eval.ranking.runs.read_runs` and
            :func:`manikin.eval.ranking.summary.summary`; or the files cannot be written.
    """
    from manikin.data.recording.outside import read_json
    from manikin.errors import DataError
    from manikin.eval.ranking.page import write_page
    from manikin.eval.ranking.runs import read_runs
    from manikin.eval.ranking.summary import summary
    from manikin.eval.report import write_report

    runs = read_runs(places)
    found = summary(runs, real=real, names=names_of(names))
    if offline is not None:
        found["offline"] = read_json(offline, f"{offline} cannot be read, or is no offline.json")
        if found["offline"].get("schema") != "manikin-offline":
            raise DataError(f"{offline} is no offline.json of manikin eval --offline")
    links = {policy: [at for one in folders for at in _links(one, folder)] for policy, folders in runs.folders.items()}
    try:
        write_report(found, folder / "ranking.json")
        write_page(found, folder / "ranking.html", links)
    except OSError as error:
        raise DataError(f"cannot write the ranking in {folder}: {error.strerror}") from None
    _show(out, found)
    out.print(f"ranking: {folder / 'ranking.html'}", soft_wrap=True)
    if not found["healthy"]:
        out.print("[red]unhealthy episodes: these rates are not valid[/] (see the reports of the policies)")
        return NOT_GOOD
    return OK


def evaluate_several(options: EvalOptions, jobs: Sequence[Job]) -> int:
    """Evaluate each policy with each seed into a folder of its own, then rank them. With ``--resume`` what is complete
    is not run again.

    Raises:
        ConfigError: an option that is for one policy alone; real results with other policies, before anything runs.
    """
    from manikin.errors import ConfigError

    for name in ("against", "until"):
        if getattr(options, name) is not None:
            raise ConfigError(f"--{name} is for one policy: give --policy once")
    protocol, out = chosen_protocol(options), console()
    on = "" if options.device == "cpu" else f"-{options.device}"
    place = options.out or Path("runs") / file_name(f"eval-{protocol.name}{on}")
    folders = [place / _folder(job) for job in jobs]
    if len(set(folders)) < len(folders):
        raise ConfigError("two policies would share a folder; give them names: --policy NAME=POLICY")
    if options.real is not None:
        _check_real(options, protocol.tasks, jobs)
    for job, folder in zip(jobs, folders, strict=True):
        status = evaluate_one(replace(options, out=None), job, folder)
        if status != OK:
            return status
    return write_ranking(out, folders, place, options.real, options.map)


def _folder(job: Job) -> str:
    seed = "" if job.seed is None else f"-seed-{job.seed}"
    return file_name((job.label or job.word.rpartition("/")[2]) + seed)


def _check_real(options: EvalOptions, tasks: Sequence[str], jobs: Sequence[Job]) -> None:
    """Refuse real results of other policies before an hour of simulation, where all policies have names."""
    from manikin.eval.agreement.real import chosen, read_real
    from manikin.eval.protocol import task_of

    assert options.real is not None
    real = read_real(options.real, names_of(options.map))
    if all(job.label for job in jobs):
        chosen(real, {load_task(task_of(task)).id: {job.label: {} for job in jobs} for task in tasks})


def names_of(words: Sequence[str]) -> dict[str, str]:
    """What the words of ``--map`` say. Raises ConfigError for one that is not NAME=NAME."""
    from manikin.errors import ConfigError

    found = {}
    for word in words:
        name, equals, here = word.partition("=")
        if not equals or not name:
            raise ConfigError(f"--map takes NAME=NAME, of the real results and of the simulation; got {word!r}")
        found[name] = here
    return found


def _links(run: Path, folder: Path) -> list[str]:
    """Addresses of a run's page and films, seen from a folder."""
    import os

    files = [*run.glob("report.html"), *sorted(run.glob("videos/*.mp4"))]
    return [Path(os.path.relpath(file, folder)).as_posix() for file in files]


def _show(out: Console, found: Mapping[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    tasks = [task["setting"] for task in found["per_task"]]
    for heading in ("", "policy", "success", "interval", "rank", "best", *(tasks if len(tasks) > 1 else ())):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "policy" else "right")
    for place, one in enumerate(found["ranking"], 1):
        rate = one["rate"]
        ranks = str(one["first"]) if one["first"] == one["last"] else f"{one['first']}-{one['last']}"
        each = [f"{task['rates'][one['policy']]['rate']:.1%}" for task in found["per_task"]]
        between = f"{100 * rate['low']:.1f} to {100 * rate['high']:.1f}"
        cells = [str(place), one["policy"], f"{rate['estimate']:.1%}", between, ranks, f"{one['best']:.0%}"]
        table.add_row(*cells, *(each if len(each) > 1 else ()))
    show_table(out, table)
    for one in found["shifts"]:
        change = one["change"]
        said = f"{100 * change['estimate']:+.1f} points [{100 * change['low']:+.1f}, {100 * change['high']:+.1f}]"
        what = f"{one['policy']}, {one['setting']['title']}"
        out.print(f"{one['shift']} ({one['variant']}): {what} {said}", soft_wrap=True)
    for task, compared in (found["reality"] or {"tasks": {}})["tasks"].items():
        said = ", ".join(f"{name} {_metric(metric)}" for name, metric in compared["metrics"].items())
        out.print(f"against reality, {task}: {said}", soft_wrap=True)
    if left := (found["reality"] or {}).get("left_out"):
        out.print(f"real results of tasks that were not simulated count for nothing: {', '.join(left)}", soft_wrap=True)


def _metric(metric: Mapping[str, Any]) -> str:
    if metric["value"] is None:
        return f"undefined ({metric['why']})"
    return f"{metric['value']:.3f} [{metric['low']:.3f}, {metric['high']:.3f}]"
