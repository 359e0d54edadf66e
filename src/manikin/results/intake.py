"""Evaluations, training runs and benchmarks as rows of a store."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from manikin.assets.paths import file_hash
from manikin.data.recording.outside import read_json
from manikin.errors import DataError
from manikin.eval.pages.report import film_element
from manikin.eval.report import SCHEMA, read_report
from manikin.learn.run import store
from manikin.learn.run.page import summary_of
from manikin.learn.run.recipe import Recipe, load_recipe
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import CHECKPOINT, LOG, RECIPE
from manikin.policy.trained import FILE
from manikin.results.schema import Result

__all__ = ["FILMS", "results_of"]

_REPORT, _PAGE, _RUN_PAGE = "report.json", "report.html", "run.html"
FILMS = 32 * 2**20
"""Bytes that the films of a result may have together."""


def results_of(path: str | Path) -> list[Result]:
    """What a file or folder says.

    Args:
        path: a folder of an evaluation, or its ``report.json``; a folder of ``manikin train``, which is a training and,
            where it was tested, an evaluation; or the JSON file of a benchmark, which has its ``command``.

    Raises:
        DataError: it is none of them, or damaged.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"there is no {path}")
    if path.is_dir():
        tested = [_evaluation(path / _REPORT)] if (path / _REPORT).exists() else []
        if (path / RECIPE).exists():
            return [_training(path), *tested]
        if tested:
            return tested
    elif path.suffix == ".json":
        content = read_json(path, str(path))
        if content.get("schema") == SCHEMA:
            return [_evaluation(path)]
        if isinstance(content.get("command"), str):
            return [_benchmark(path, content)]
    raise DataError(f"{path} is not a report of an evaluation, a folder of a training run, or a benchmark's result")


def _evaluation(path: Path) -> Result:
    report = read_report(path)
    rule = {"once": "success_once", "at_end": "success_at_end", "held": "success_held"}
    episodes = [
        {
            "task": task["task"],
            "named": task.get("named", task["task"]),
            "seed": one["seed"],
            "episode_index": one["episode_index"],
            "success": one[rule[task["success"]["rule"]]],
            "success_once": one["success_once"],
            "success_at_end": one["success_at_end"],
            "steps": one["length"],
            "first_success": one["first_success"],
            "sum_reward": one["sum_reward"],
            "max_reward": one["max_reward"],
            "mode": one["mode"],
            "health": one["health"],
            "force_peak": one.get("force_peak", {}).get("total"),
        }
        for task in report["per_task"]
        for one in task["per_episode"]
    ]
    page, films, note = _page(path, report)
    run = {
        "kind": "evaluation",
        "name": report["protocol"]["name"],
        "created": report["created"],
        "policy": report["policy"],
        "policy_sha256": report.get("policy_sha256") or "",
        "policy_seed": report.get("policy_seed"),
        "protocol_hash": report["protocol"]["hash"],
        "recipe_hash": "",
        "device": report.get("device", ""),
        "command": report["command"],
        "healthy": report["healthy"],
        "complete": not report["interrupted"],
        "versions": _json(report["versions"]),
        "machine": _json(report["machine"]),
        "source": str(path),
    }
    return Result(run, episodes, page=page, films=films, note=note)


def _page(path: Path, report: Mapping[str, Any]) -> tuple[bytes | None, dict[str, bytes], str]:
    """The page of an evaluation, its films, those of failures first and no more than ``FILMS`` bytes, and what to say
    of those that are left out. The page then says so, too."""
    file = path.with_name(_PAGE)
    if not file.exists():
        return None, {}, ""
    shown = [one for task in report["per_task"] for one in task["per_episode"] if one.get("film")]
    page, films, left = file.read_bytes(), dict[str, bytes](), list[str]()
    for one in sorted(shown, key=lambda one: one["success"]):
        name = str(one["film"])
        film = path.parent / name
        there = re.fullmatch(r"videos/[\w.+-]+\.mp4", name) is not None and film.is_file()
        if there and sum(map(len, films.values())) + film.stat().st_size <= FILMS:
            films[name] = film.read_bytes()
        else:
            why = f"films of a result may have {FILMS >> 20} MB" if there else f"there is no {name}"
            left.append(why)
            page = page.replace(film_element(name).encode(), f"<p>Its film was left out: {escape(why)}</p>".encode())
    words = f"{len(left)} of {len(shown)} films left out: {'; '.join(dict.fromkeys(left))}" if left else ""
    return page, films, words


def _training(folder: Path) -> Result:
    summary, (_, about) = summary_of(folder), store.read(folder / CHECKPOINT, tree=False)
    file, network = folder / LOG, folder / FILE
    tested = summary["tested"] or {}
    numbers = {name: summary[name] for name in ("steps", "seconds", "cpu_seconds", "best")}
    numbers |= {f"tested/{name}": value for name, value in tested.items()}
    metrics = [{"name": name, "step": None, "value": value} for name, value in _numbers(numbers)]
    for row in read_progress(file):
        metrics += [
            {"name": name, "step": int(row["steps"]), "value": value}
            for name, value in row.items()
            if name not in ("steps", "iteration") and isinstance(value, (int, float)) and math.isfinite(value)
        ]
    page = folder / _RUN_PAGE
    run = {
        "kind": "training",
        "name": summary["name"],
        "created": read_report(folder / _REPORT)["created"] if tested else _written(file),
        "policy": f"{summary['algorithm']}-{summary['task']}",
        "policy_sha256": file_hash(network) if network.exists() else "",
        "policy_seed": summary["seed"],
        "protocol_hash": about.get("protocol_hash", ""),
        "recipe_hash": summary["recipe_hash"],
        "recipe": about["recipe"],
        "device": summary["device"],
        "command": _again(folder, summary, Recipe.from_toml(about["recipe"], source=str(folder / CHECKPOINT))),
        "complete": bool(tested),
        "versions": _json(summary["versions"]),
        "machine": _json(about.get("machine", {})),
        "source": str(folder),
    }
    return Result(run, metrics=metrics, page=page.read_bytes() if page.exists() else None)


def _again(folder: Path, summary: Mapping[str, Any], recipe: Recipe) -> str:
    """The line that trains a run again: its recipe's file and seed, and limits that it was given when it went on."""
    several, written = summary["processes"] > 1, load_recipe(folder / RECIPE)
    words = ["torchrun", "--nproc-per-node", str(summary["processes"]), "-m", "manikin.cli"] if several else ["manikin"]
    words += ["train", "--recipe", str(folder / RECIPE), "--seed", str(summary["seed"])]
    words += ["--device", summary["device"]] if summary["device"] != "cpu" else []
    words += ["--minutes", repr(recipe.minutes)] if recipe.minutes != written.minutes else []
    words += ["--steps", str(recipe.steps)] if recipe.steps != written.steps else []
    return shlex.join(words)


def _written(file: Path) -> str:
    """When a file was, as ISO time."""
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")


def _benchmark(path: Path, content: Mapping[str, Any]) -> Result:
    measured = {key: value for key, value in content.items() if key not in ("versions", "machine")}
    run = {
        "kind": "benchmark",
        "name": path.stem,
        "created": _written(path),
        "command": content["command"],
        "complete": True,
        "versions": _json(content.get("versions", {})),
        "machine": _json(content.get("machine", {})),
        "source": str(path),
    }
    return Result(run, metrics=[{"name": name, "step": None, "value": value} for name, value in _numbers(measured)])


def _numbers(content: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number in nested JSON, by the keys that lead to it."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _numbers(value, f"{name}/{key}" if name else str(key))
    elif isinstance(content, list):
        for place, value in enumerate(content):
            yield from _numbers(value, f"{name}/{place}")
    elif isinstance(content, (int, float)) and not isinstance(content, bool) and math.isfinite(content):
        yield name, float(content)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
