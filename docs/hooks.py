"""Pages that mkdocs makes from the code: one per task, the overview of tasks, and the action cards of all robots."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import torch
from mkdocs.structure.files import File

from manikin.env.card import measured_card
from manikin.env.registry import task_class, task_ids
from manikin.env.sheet import table, task_sheet
from manikin.robots import arm, arms

IMAGES = Path(__file__).parent / "images" / "tasks"


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
    rows = []
    for task_id in task_ids():
        kind = task_class(task_id)
        words = f"{kind.instruction}<br>robots: {', '.join(kind.robots)}"
        rows.append((picture(task_id, width=200), f"[{task_id}]({task_id}.md)", words))
    return table(("", "task", "what to do"), rows)


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
