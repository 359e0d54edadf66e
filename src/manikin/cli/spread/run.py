"""Spreads a command's work over workers, waits for them, and says what happened."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, counted
from manikin.cli.spread.options import SpreadOptions
from manikin.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.spread.cluster import Cluster
    from manikin.spread.crew import Crew
    from manikin.spread.ledger import Ledger
    from manikin.spread.servants import Servants

__all__ = ["PER_ROW", "array_place", "made_before", "members", "merged", "servants", "spread"]

DEADLINE = 3600.0
"""[s] for a shard of episodes."""
SHARDS = 2
"""That each worker gets at least, where there are items enough."""
PER_ROW = 4
"""Episodes of a shard for each row of the environment: rows that wait at the end of a shard for its last episode are
then a small part."""


def spread(
    out: Console,
    options: SpreadOptions,
    *,
    folder: Path,
    work: str,
    settings: Mapping[str, Any],
    same: Mapping[str, Any],
    numbers: Sequence[int],
    size: int,
    resume: bool,
    words: str,
    edges: Sequence[int] = (),
    device: str = "cpu",
    items: str = "episode",
    deadline: float = DEADLINE,
    files: Sequence[str | Path | None] = (),
) -> tuple[Ledger, bool]:
    """Do a command's items on workers.

    Args:
        out: where to say how it goes.
        options: how to spread.
        folder: of the run, on storage that all workers see.
        work: as :class:`manikin.spread.ledger.Intent` has it.
        settings: likewise.
        same: likewise.
        numbers: of the items.
        size: items of a shard at most, where the options do not say.
        resume: go on with a run that is there.
        words: what is being done.
        edges: numbers at which a new shard begins.
        device: that simulates.
        items: what they are.
        deadline: seconds for a shard, where the options do not say.
        files: that the command names (a task, a policy), for machines that do not have them.

    Returns:
        the run, and whether all of it is finished; what failed is said by then.

    Raises:
        ConfigError, DataError: the options cannot work, the folder is of another run, or no worker can go on.
    """
    from manikin.eval.runner import interruptible
    from manikin.machine import exact_machine
    from manikin.spread.drive import drive
    from manikin.spread.ledger import Intent, Ledger
    from manikin.spread.shards import split

    in_array = options.on == "slurm-array"
    with ExitStack() as undo:  # where the plan is refused
        cluster = None
        if options.workers is None and _address(options) is not None:
            cluster = _cluster(options, files)
            undo.callback(cluster.close)
        workers = array_place(os.environ)[1] if in_array else options.workers or _fitting(options, cluster)
        each = -(-len(numbers) // (SHARDS * workers))  # few items are not left to one worker
        shards = tuple(split(numbers, options.per_shard or max(1, min(size, each)), edges))
        intent = Intent(work=work, settings=settings, same=same, shards=shards, machine=exact_machine(device))
        ledger = Ledger.begin(folder, intent, resume=resume or in_array)
        undo.pop_all()
    if resume and not in_array:
        ledger.retry()
    left = ledger.left()
    if in_array:  # this task's share, for one worker
        share, shares = array_place(os.environ)
        left, workers = [shard for shard in left if shard.index % shares == share], 1
    total = sum(len(shard.numbers) for shard in left)
    out.print(
        f"{counted(total, items)} in {counted(len(left), 'shard')} on {options.on}; run {ledger.folder}",
        soft_wrap=True,
    )
    with interruptible() as stop, bar(out, words, total) as advance:
        done = drive(
            ledger,
            _crew(options, ledger, files, cluster),
            workers=min(workers, max(1, len(left))),
            deadline=options.deadline or deadline,
            shards=left,
            advance=advance,
            stop=stop,
        )
    if done.words:
        out.print(escape(done.words), soft_wrap=True)
    if done.interrupted and in_array:
        raise KeyboardInterrupt  # the same job, submitted again, goes on
    if done.interrupted:
        out.print("interrupted; what is finished is kept, repeat the command with --resume")
        return ledger, False
    if in_array and (waiting := len(ledger.left())):
        out.print(f"{counted(waiting, 'shard')} of other tasks of the array are not finished; the last one merges")
    for item in ledger.failed:
        out.print(f"[red]{escape(item['what'])} failed: {escape(item['error'])}[/]", soft_wrap=True)
    return ledger, not ledger.left()


def merged(options: SpreadOptions, ledger: Ledger, complete: bool, finish: Callable[[], int]) -> int:
    """What a command does once its work is spread, where it needs all of it; its exit status.

    Args:
        options: of the command.
        ledger: the run.
        complete: whether all of it is finished, as :func:`spread` says.
        finish: puts the results together, by one process at a time; its status is the command's.
    """
    if not complete:
        return OK if options.on == "slurm-array" else INTERRUPTED
    try:
        with ledger.merging() as mine:
            if not mine:
                return OK
            if ledger.failed:
                return NOT_GOOD
            if (status := finish()) == INTERRUPTED:
                raise KeyboardInterrupt  # so that the run stays for --resume
            return status
    except KeyboardInterrupt:
        return INTERRUPTED


def made_before(out: Console, options: SpreadOptions, result: Path, folder: Path) -> bool:
    """Whether a task of an array job comes after another one has put everything together; it is said then."""
    if options.on != "slurm-array" or folder.exists() or not result.exists():
        return False
    out.print(f"{result}: merged by another process", soft_wrap=True)
    return True


def members(options: SpreadOptions) -> int:
    """How many workers share one thing that is not cut into shards: a search, a training run.

    Raises:
        ConfigError: of a cluster that is there nobody knows how many fit.
    """
    if options.on == "slurm-array":
        return array_place(os.environ)[1]
    if options.workers is None and _address(options) is not None:
        raise ConfigError("say with --workers how many actors of the cluster shall work")
    return options.workers or _fitting(options, None)


def _fitting(options: SpreadOptions, cluster: Cluster | None) -> int:
    """Workers where the options do not say how many: as many as fit into a cluster that is there, or one for each core
    of this machine."""
    from manikin.sim.device import processors

    return processors() if cluster is None else max(1, cluster.room(options.worker_cpus, options.worker_gpus))


def _address(options: SpreadOptions) -> str | None:
    """Of a Ray cluster that is there."""
    if options.on == "ray":
        return os.environ.get("RAY_ADDRESS") or None
    return options.on if (options.on or "").startswith("ray") else None


def _crew(options: SpreadOptions, ledger: Ledger, files: Sequence[str | Path | None], cluster: Cluster | None) -> Crew:
    if options.on in ("local", "slurm-array"):
        from manikin.sim.device import processors
        from manikin.spread.processes import Processes

        return Processes(ledger.folder, cpus=options.worker_cpus if options.on == "local" else processors())
    from manikin.spread.actors import Actors

    cluster = cluster or _cluster(options, files)
    return Actors(ledger.folder, cluster, cpus=options.worker_cpus, gpus=options.worker_gpus)


def _cluster(options: SpreadOptions, files: Sequence[str | Path | None]) -> Cluster:
    from manikin.spread.cluster import Cluster

    address = _address(options)
    cluster = Cluster(
        address=address,
        most=options.workers or _fitting(options, None),
        cpus=options.worker_cpus,
        files=[str(file).partition(":")[0] for file in files if file is not None],
    )
    if address is None and not cluster.room(options.worker_cpus, options.worker_gpus):
        cluster.close()
        raise ConfigError(
            f"a worker takes {options.worker_gpus:g} of a GPU, and Ray finds too few on this machine: leave "
            "--worker-gpus out, or give the address of a cluster that has them"
        )
    return cluster


def servants(
    options: SpreadOptions,
    word: str,
    settings: Mapping[str, Any],
    *,
    log: Path,
    files: Sequence[str | Path | None] = (),
) -> Servants:
    """Workers that hold something and are asked, as the options say.

    Args:
        options: how to spread.
        word: as :class:`~manikin.spread.servants.ServantProcesses` has it.
        settings: likewise.
        log: what they print, as processes.
        files: as :func:`spread` has them.
    """
    from manikin.spread.servants import ServantActors, ServantProcesses

    deadline = options.deadline or DEADLINE
    if options.on == "local":
        log.parent.mkdir(parents=True, exist_ok=True)
        return ServantProcesses(word, settings, log=log, cpus=options.worker_cpus, deadline=deadline)
    cluster, gpus = _cluster(options, files), options.worker_gpus
    return ServantActors(cluster, word, settings, cpus=options.worker_cpus, gpus=gpus, deadline=deadline)


def array_place(environment: Mapping[str, str]) -> tuple[int, int]:
    """Which of how many tasks of an array job this process is: of SLURM_ARRAY_TASK_ID, _COUNT, _MIN and _STEP.

    Raises:
        ConfigError: they are not there, or are no whole numbers.
    """
    names = [f"SLURM_ARRAY_TASK_{name}" for name in ("ID", "COUNT", "MIN", "STEP")]
    given = [environment.get(name, default) for name, default in zip(names, ("", "", "0", "1"), strict=True)]
    if not all(word.isdecimal() for word in given):
        said = shlex.join(f"{name}={environment.get(name, '')}" for name in names[:2])
        raise ConfigError(
            f"--on slurm-array needs the variables of an array job, SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT, as "
            f"whole numbers; here is {said}"
        )
    number, count, least, step = map(int, given)
    place = (number - least) // max(1, step)
    if not 0 <= place < count:
        raise ConfigError(f"SLURM_ARRAY_TASK_ID={number} is not one of {count} tasks from {least}")
    return place, count
