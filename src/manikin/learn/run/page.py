"""The page of a run, and of several side by side. No script, no font, no file beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from manikin.assets.paths import file_hash
from manikin.data.recording.durable import write_file
from manikin.errors import DataError
from manikin.learn.run import store
from manikin.learn.run.chart import chart
from manikin.learn.run.recipe import Recipe, trainer_class
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import CHECKPOINT, LOG, recipe_of
from manikin.policy.trained import FILE

__all__ = ["again_words", "note_test", "rate_words", "shares", "summary_of", "write_comparison", "write_page"]

TESTS = "tested.txt"  # hashes of the networks that played the test episodes
_CURVES = (
    ("success", "success in training", 1.0),
    ("validated_success", "success in validation", 1.0),
    ("return", "return", None),
)


def summary_of(folder: str | Path) -> dict[str, Any]:
    """What a run came to, for JSON: recipe, seed, steps, times, best validation, and the tested rate if there is one.

    Raises:
        AssetError: the folder holds no run.
        DataError: a file of it is damaged.
    """
    folder = Path(folder)
    recipe, seed, device = recipe_of(folder)
    saved, about = store.read(folder / CHECKPOINT)
    state = saved["state"]
    return {
        "name": folder.resolve().name,
        "algorithm": recipe.algorithm,
        "task": recipe.task,
        "recipe_hash": about["recipe_hash"],
        # by which runs of older versions compare, whose hash depended on how a number was spelled
        "same_recipe": Recipe.from_toml(about["recipe"], source=str(folder / CHECKPOINT)).hash,
        "settings": {**recipe.settings, **{f"env.{k}": v for k, v in recipe.env.items()}},
        "sha256": dict(recipe.sha256),
        "seed": seed,
        "device": device,
        "steps": state["steps"],
        "iterations": state["iteration"],
        "seconds": state["seconds"],
        "cpu_seconds": state["cpu_seconds"],
        "spent": _spent(read_progress(folder / LOG)),
        "best": state["best"],
        "best_iteration": state["best_iteration"],
        "last": state["validated"],
        "processes": 1 + len(saved.get("others", ())),
        "counts": trainer_class(recipe.algorithm).counts,
        "tested": _tested(folder),
        "versions": about["versions"],
    }


def _spent(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Seconds of the whole run by what they were spent on."""
    names = {name for row in rows for name in row if name.endswith("_seconds") and name != "cpu_seconds"}
    return {name.removesuffix("_seconds"): sum(row.get(name, 0.0) for row in rows) for name in sorted(names)}


def shares(spent: Mapping[str, float], seconds: float) -> str:
    """``environment 61 %, update 27 %, other 12 %`` of the ``seconds`` that a run took, the largest first. Where two
    things went on at a time, their shares are of the sum."""
    named = sum(spent.values())
    whole = max(named, seconds)
    rest = {"other": whole - named} if whole - named > whole / 200 else {}
    order = sorted({**spent, **rest}.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100 * took / whole:.0f} %" for name, took in order)


def rate_words(rate: float) -> str:
    """A validated rate; a run that was not validated yet has none."""
    return f"{rate:.1%}" if rate >= 0 else "none yet"


def write_page(folder: str | Path) -> Path:
    """``run.html`` in a run's folder: what was trained, curves, the tested rate, the recipe.

    Raises:
        AssetError, DataError: as :func:`summary_of`, and where the page cannot be written.
    """
    folder = Path(folder)
    return _write([folder], folder / "run.html")


def write_comparison(folders: Sequence[str | Path], target: str | Path) -> Path:
    """A page of several runs: runs of one recipe are one curve with its spread over seeds.

    Raises:
        AssetError, DataError: as :func:`summary_of`, and where the page cannot be written.
    """
    return _write([Path(folder) for folder in folders], Path(target))


def _write(folders: Sequence[Path], target: Path) -> Path:
    runs = [summary_of(folder) for folder in folders]
    logs = [read_progress(folder / LOG) for folder in folders]
    names = _names(runs)
    style = (resources.files("manikin.eval.pages") / "report.css").read_text(encoding="utf-8")
    title = names[0] if len(set(names)) == 1 else "Training runs"
    counts = " or ".join(sorted({run["counts"] for run in runs}))
    body = "".join(_charts(names, logs, counts)) + _table(names, runs)
    if len(folders) == 1:
        body += f"<p>Where its time went: {escape(shares(runs[0]['spent'], runs[0]['seconds']))}</p>"
        body += _report(folders[0]) + _recipe(folders[0])
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
        f'initial-scale=1"><title>{escape(title)}</title><style>{style} .chart {{width: 100%; max-width: 680px; '
        f"display: block; margin: 1rem 0; font-size: 11px}} .chart text {{fill: currentColor}}</style></head>"
        f'<body><main><div class="top"><h1>{escape(title)}</h1></div>{body}</main></body></html>\n'
    )
    write_file(target, page.encode())
    return target


def _names(runs: Sequence[dict[str, Any]]) -> list[str]:
    """One name for the runs of one recipe, which differ in their seed alone: it says which settings are its own."""
    plain = [f"{run['algorithm']} on {run['task']}" for run in runs]
    found = []
    for name, run in zip(plain, runs, strict=True):
        alike = [other for other, of in zip(runs, plain, strict=True) if of == name]
        if len({other["same_recipe"] for other in alike}) == 1:
            found.append(name)
            continue
        first = next(other for other in alike if other["same_recipe"] == run["same_recipe"])
        own = {
            key: first["settings"].get(key)
            for key in sorted({key for other in alike for key in other["settings"]})
            if any(_set(other, key) != _set(first, key) for other in alike)
        }
        words = ", ".join(f"{key}={value}" for key, value in own.items()) or f"recipe {run['recipe_hash'][:8]}"
        found.append(f"{name}: {words}")
    return found


def _set(run: dict[str, Any], key: str) -> Any:
    """A setting, or the content of the file that it names: two places may hold the same."""
    return run["sha256"].get(key, run["settings"].get(key))


def _charts(names: Sequence[str], logs: Sequence[list[dict[str, float]]], counts: str) -> list[str]:
    found = []
    for column, words, top in _CURVES:
        for across, scale, unit in (("steps", 1.0, counts), ("seconds", 60.0, "minutes")):
            curves: dict[str, list[list[tuple[float, float]]]] = {}
            for name, rows in zip(names, logs, strict=True):
                points = [(row[across] / scale, row[column]) for row in rows if column in row]
                curves.setdefault(name, []).append(points)
            if across == "seconds" and column != "validated_success":
                continue
            found.append(chart(curves, across=unit, up=words, top=top))
    return found


def _table(names: Sequence[str], runs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for name, run in zip(names, runs, strict=True):
        tested = run["tested"]
        said = "not tested"
        if tested is not None:
            said = f"<b>{tested['rate']:.1%}</b> [{tested['low']:.1%}, {tested['high']:.1%}] of {tested['episodes']}"
            said += f", return {tested['return']:.1f}"
        cells = (
            *(escape(name), str(run["seed"]), f"{run['steps']:,} {run['counts']}", f"{run['seconds'] / 60:.1f}"),
            *(f"{run['cpu_seconds'] / 60:.1f}", rate_words(run["best"]), rate_words(run["last"]), said),
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    heads = (
        *("run", "seed", "steps", "minutes", "CPU minutes", "best validation", "last validation"),
        "best tested, with 95 % interval",
    )
    head = "".join(f"<th>{escape(word)}</th>" for word in heads)
    return f'<section><table class="wide"><tr>{head}</tr>{"".join(rows)}</table></section>'


def _tested(folder: Path) -> dict[str, Any] | None:
    """What the test of the run's network gave. A report of another one, of before the run went on, counts for nothing.

    Raises:
        DataError: the report is damaged.
    """
    file = folder / "report.json"
    if not file.is_file():
        return None
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
        if report.get("policy_sha256") not in (None, file_hash(folder / FILE)):
            return None
        task = report["per_task"][0]
        success = task["success"][task["success"]["rule"]]
        tested = {key: success[key] for key in ("rate", "low", "high", "episodes", "successes")}
        tested["at_end"] = task["success"]["at_end"]["rate"]
        tested["return"] = task["aggregated"]["avg_sum_reward"]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(f"{file} is damaged: {error}") from None
    return tested


def note_test(folder: Path) -> int:
    """Write down that the test episodes were played with the network of a run; returns with how many networks of it
    they were.

    Raises:
        DataError: it cannot be written.
    """
    tested = dict.fromkeys([*_networks_tested(folder), file_hash(folder / FILE)])
    write_file(folder / TESTS, "".join(f"{one}\n" for one in tested).encode())
    return len(tested)


def _networks_tested(folder: Path) -> list[str]:
    file = folder / TESTS
    return file.read_text(encoding="utf-8").split() if file.is_file() else []


def again_words(count: int) -> str:
    """What to think of a rate on test episodes that ``count`` networks of a run have played."""
    return (
        f"The test episodes were played with {count} networks of this run. Who trains on until the rate is good enough "
        "chooses by these episodes: test such a policy on others (manikin eval)"
    )


def _report(folder: Path) -> str:
    if not (folder / "report.html").is_file() or _tested(folder) is None:
        return ""
    link = '<p>Test episodes, failure modes and pictures: <a href="report.html">report.html</a></p>'
    count = len(_networks_tested(folder))
    return link + (f"<p>{escape(again_words(count))}</p>" if count > 1 else "")


def _recipe(folder: Path) -> str:
    recipe, seed, _ = recipe_of(folder)
    command = f"manikin train --recipe {folder / 'recipe.toml'} --seed {seed}"
    return (
        f"<section><h2>Recipe</h2><pre>{escape(recipe.to_toml())}</pre><p><code>{escape(command)}</code></p></section>"
    )
