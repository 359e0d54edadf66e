"""What a worker of `manikin eval --on` does: episodes of a protocol, one task at a time."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin.cli.common.options import load_task, register_robot_file
from manikin.cli.evaluation.one import EvalOptions, Job, chosen_execution, chosen_protocol, job_settings
from manikin.cli.spread.options import restored
from manikin.errors import ConfigError

if TYPE_CHECKING:
    from manikin.eval.evaluation import OpenedTask
    from manikin.eval.journal import Journal

__all__ = ["EvalWork"]


class EvalWork:
    """Evaluates episodes. A :class:`~manikin.spread.work.Work` whose items are those of all tasks, one task after the
    other; a shard is of one task, whose environment stays open. ``settings``: the command's options, and which policy.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        from manikin.env.registry import is_own
        from manikin.eval.protocol import task_of
        from manikin.policy.choices import policy_maker

        self._options, self._job = restored(EvalOptions, settings["options"]), Job(**settings["job"])
        register_robot_file(self._options.robot)
        self._protocol = chosen_protocol(self._options)
        for word in self._protocol.tasks:
            if is_own(task_of(word)):
                load_task(task_of(word))
        if self._protocol.hash != settings["protocol"]:
            raise ConfigError(f"the protocol {self._protocol.name} is another one on this machine")
        job = self._job
        self._maker = policy_maker(job.word, seed=job.seed, convention=self._options.convention)
        self._items = [(task, n) for task in self._protocol.tasks for n in range(len(self._protocol.seeds_of(task)))]
        self._place = {item: number for number, item in enumerate(self._items)}
        self._task = ""
        self._opened: OpenedTask | None = None

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        (task,) = {self._items[number][0] for number in numbers}
        opened = self._open(task)
        with self._journal(folder) as journal:
            there = journal.begin(task, opened.env.fingerprint()).results
            missing = [n for _, n in map(self._items.__getitem__, numbers) if n not in there]

            began = time.perf_counter()

            def keep(result: Any) -> None:
                journal.add(result, time.perf_counter() - began)
                advance()

            opened.run(missing, keep)

    def finished(self, folder: Path) -> set[int]:
        with self._journal(folder) as journal:
            return {self._place[task, n] for task in self._protocol.tasks for n in journal.results(task)}

    def facts(self, folder: Path) -> dict[str, Any]:
        with self._journal(folder) as journal:
            results = [
                dataclasses.asdict(r) for t in self._protocol.tasks for _, r in sorted(journal.results(t).items())
            ]
        content = hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()
        return {"content": content, "episodes": len(results), "steps": sum(r["length"] for r in results)}

    def called(self, number: int) -> str:
        task, place = self._items[number]
        return f"episode {place} of {task} (seed {self._protocol.seeds_of(task)[place]})"

    def close(self) -> None:
        if self._opened is not None:
            self._opened.env.close()
            self._opened = None

    def _open(self, task: str) -> OpenedTask:
        from manikin.eval.evaluation import OpenedTask

        if self._opened is None or task != self._task:
            self.close()
            rows = min(self._options.num_envs, len(self._protocol.seeds_of(task)))
            chosen = {"device": self._options.device, **self._options.warp()}
            made = self._protocol.make_options(task, num_envs=rows, **chosen)
            execution, late = chosen_execution(self._options), self._options.inference_ms
            self._opened = OpenedTask(self._protocol, task, made, self._maker, execution=execution, inference_ms=late)
            self._task = task
        return self._opened

    def _journal(self, folder: Path) -> Journal:
        from manikin.eval.journal import Journal

        settings = job_settings(self._options, self._job, self._protocol.hash)
        return Journal(folder / "episodes.jsonl", settings, resume=True)
