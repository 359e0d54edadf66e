"""Pages that mkdocs makes from the code: one per task, the overview of tasks, and the action cards of all robots."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
from mkdocs.structure.files import File

from manikin.env.card import measured_card
from manikin.env.registry import task_class, task_ids
from manikin.env.sheet import table, task_sheet
from manikin.robots import arm, arms
from manikin.spec.control import ALIASES, CONTROLLERS, IMPEDANCES, Control

IMAGES = Path(__file__).parent / "images" / "tasks"
EXPERTS = Path(__file__).parents[1] / "benchmarks" / "results" / "experts.json"


def on_config(config: Any) -> Any:
    torch.set_num_threads(1)
    for entry in config.nav:
        if entry.get("Tasks") == "tasks/index.md":
            entry["Tasks"] = [{"Overview": "tasks/index.md"}, *({i: f"tasks/{i}.md"} for i in task_ids())]
    return config


def on_files(files: Any, config: Any) -> Any:
    for task_id in task_ids():
        files.append(File.generated(config, f"tasks/{task_id}.md", content=task_page(task_id)))
    return files


def on_page_markdown(markdown: str, page: Any, **unused: Any) -> str:
    if page.file.src_uri == "tasks/index.md":
        return markdown.replace("<!-- tasks -->", tasks_table())
    if page.file.src_uri == "controllers.md":
        return markdown.replace("<!-- controllers -->", controllers_table())
    if page.file.src_uri == "action-cards.md":
        return markdown.replace("<!-- action cards -->", action_cards())
    return markdown


def picture(task_id: str, *, width: int, path: str = "../images/tasks") -> str:
    """Markdown of a task's picture; nothing where there is none yet."""
    if not (IMAGES / f"{task_id}.png").is_file():
        return ""
    return f"![{task_id}]({path}/{task_id}.png){{ width={width} }}"


def task_page(task_id: str) -> str:
    page = task_sheet(task_id).markdown(picture=picture(task_id, width=480))
    kind = task_class(task_id)
    module = importlib.util.find_spec(kind.__module__)
    assert module is not None and module.origin is not None
    source = Path(module.origin).relative_to(Path(module.origin).parents[4])
    page += f"\nThe task is one file, `{source}`; the same page in a terminal: `manikin info {task_id}`.\n"
    return page


def tasks_table() -> str:
    measured = json.loads(EXPERTS.read_text(encoding="utf-8"))
    rows = []
    for task_id in task_ids():
        kind = task_class(task_id)
        words = f"{kind.instruction}<br>robots: {', '.join(kind.robots)}"
        rows.append((picture(task_id, width=200), f"[{task_id}]({task_id}.md)", words, expert(task_id, measured)))
    note = f"Episodes that the expert solves, of the seeds 0, 1, 2, ..., by `{measured['command']}`."
    return table(("", "task", "what to do", "expert"), rows) + f"\n\n{note}"


def expert(task_id: str, measured: dict[str, Any]) -> str:
    """How often the scripted expert solves a task, over all of its layouts."""
    entries = [e for name, e in measured["entries"].items() if name.partition("/")[0] == task_id]
    if not entries:
        return ""
    return f"{sum(e['successes'] for e in entries)} of {sum(e['seeds'] for e in entries)}"


def controllers_table(robot: str = "panda") -> str:
    """Every controller with the number of values it takes, with which gains in the action, and what +1 asks for."""
    theirs = {mine: name for name, mine in ALIASES.items()}
    rows = []
    for name, options in CONTROLLERS.items():
        kinds = IMPEDANCES if "impedance" in options else ("fixed",)
        cards = [
            measured_card(robot, Control.of(name, **({"impedance": k} if k != "fixed" else {})).word) for k in kinds
        ]
        numbers = " / ".join(str(sum(d.frame != "gripper" for d in card.dims)) for card in cards)
        units = {d.unit: f"{d.range[1]:.3g} {d.unit}" for d in cards[0].dims if d.frame != "gripper"}
        when = cards[0].when.removeprefix("once per ").removeprefix("every ")
        rows.append(
            (f"`{name}`", theirs.get(name, ""), numbers, cards[0].dims[0].reference, ", ".join(units.values()), when)
        )
    head = (
        "controller",
        "robosuite",
        "numbers (fixed / variable kp / variable)",
        "relative to",
        "first at +1",
        "acts each",
    )
    return table(head, rows)


def action_cards() -> str:
    summary, cards = [], []
    for name in arms():
        for control in arm(name).controllers:
            card = measured_card(name, control)
            realised = "" if card.realised is None else f"{100 * card.realised:.0f} %"
            drift = "" if card.hold_drift is None else f"{1000 * card.hold_drift:.1f} mm/s"
            link = f"[`{control}`](#{name}-{control})"
            summary.append((name, link, str(card.size), realised, drift))
            cards += [f"## {name}: `{control}` {{ #{name}-{control} }}", card.summary(), card.table()]
    overview = table(("robot", "controller", "numbers", "covered after one step", "drift when held"), summary)
    return "\n\n".join([overview, *cards])
