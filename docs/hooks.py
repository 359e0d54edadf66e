"""Pages that mkdocs makes from the code: task pages and their overview, action cards, the Python reference."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import math
import re
import time
from pathlib import Path
from typing import Any

import torch
from mkdocs.structure.files import File

from manikin.assets.paths import cache_root
from manikin.author.card import measured_card
from manikin.author.sheet import table, task_sheet
from manikin.env.make import make
from manikin.env.registry import family_title, task_class, task_families, task_family, task_ids
from manikin.env.task import Task
from manikin.errors import AssetError
from manikin.policy.expert import ExpertPolicy
from manikin.render import make_renderer
from manikin.robots import arm, arms, fetch_mshab
from manikin.spec.control import ALIASES, CONTROLLERS, IMPEDANCES, Control
from manikin.tasks.robosuite.common import StagedTask
from manikin.view.recorder import FilmRecorder

FILM: dict[str, Any] = {"fps": 10, "width": 240, "height": 180}
FILMS_S = 60.0  # [s] most time that one build begins new films in; the next one goes on
REFERENCE = re.compile(r"^::: (\S+)$", re.MULTILINE)
ROLE = re.compile(r":(?:class|func|meth|mod|attr|data):<code>~?([^<]+)</code>")
IMAGES = Path(__file__).parent / "images" / "tasks"
EXPERTS = Path(__file__).parents[1] / "benchmarks" / "results" / "experts.json"


def on_config(config: Any) -> Any:
    torch.set_num_threads(1)
    for entry in config.nav:
        for page in next(iter(entry.values())):  # each entry is a group: {"Start": [{"Overview": "index.md"}, ...]}
            if page.get("Tasks") == "tasks/index.md":
                families = (
                    {family_title(f): [{i: f"tasks/{i}.md"} for i in ids]} for f, ids in task_families().items()
                )
                page["Tasks"] = [{"Overview": "tasks/index.md"}, *families]
    return config


def on_files(files: Any, config: Any) -> Any:
    deadline = time.monotonic() + FILMS_S
    for task_id in sorted(task_ids(), key=lambda name: task_class(name).horizon_s):  # many short films before long ones
        shown = film(task_id, deadline)
        if shown is not None:
            files.append(File.generated(config, f"tasks/{task_id}.mp4", content=shown))
        files.append(
            File.generated(config, f"tasks/{task_id}.md", content=task_page(task_id, filmed=shown is not None))
        )
    return files


def on_page_markdown(markdown: str, page: Any, **unused: Any) -> str:
    if page.file.src_uri.startswith("reference/"):
        return REFERENCE.sub(lambda found: reference(found[1]), markdown)
    if page.file.src_uri == "tasks/index.md":
        return markdown.replace("<!-- tasks -->", tasks_table())
    if page.file.src_uri == "controllers.md":
        return markdown.replace("<!-- controllers -->", controllers_table())
    if page.file.src_uri == "action-cards.md":
        return markdown.replace("<!-- action cards -->", action_cards())
    return markdown


def on_page_content(html: str, page: Any, **unused: Any) -> str:
    """Docstrings name classes with Sphinx's roles, which mkdocstrings shows as text."""
    return ROLE.sub(r"<code>\1</code>", html) if page.file.src_uri.startswith("reference/") else html


def public(name: str) -> Any:
    """The class or function that users import as ``name``, such as ``manikin.data.Dataset``."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def reference(name: str) -> str:
    """The directive of mkdocstrings for a public name. It names the module that defines it, which may move."""
    found = public(name)
    if inspect.ismodule(found):
        return f"::: {name}"
    place = f"{found.__module__}.{found.__qualname__}"
    options = {"heading": name, "toc_label": name.rpartition(".")[2]}
    return f"::: {place}\n    options: {json.dumps(options)}"  # quoted: a class named On is no yes to YAML


def picture(task_id: str, *, width: int, path: str = "../images/tasks") -> str:
    """Markdown of a task's picture; nothing where there is none yet."""
    if not (IMAGES / f"{task_id}.png").is_file():
        return ""
    return f"![{task_id}]({path}/{task_id}.png){{ width={width} }}"


def film(task_id: str, deadline: float = math.inf) -> bytes | None:
    """One episode of a task's expert as a small MP4, kept in the cache by what it shows.

    None where the task has no expert, where data or PyAV is missing, and where it is not kept and the time is over.
    """
    kind = task_class(task_id)
    if importlib.util.find_spec("av") is None or kind.expert is Task.expert:
        return None
    try:
        env = make(task_id, autoreset="disabled", reward="none")
    except AssetError:
        return None
    scene = getattr(env, "scene", None)  # none where rows have several layouts
    shown = (task_id, scene and scene.hash, Path(inspect.getfile(kind)).read_text(encoding="utf-8"), str(FILM))
    kept = cache_root() / "films" / f"{hashlib.sha256(repr(shown).encode()).hexdigest()[:32]}.mp4"
    try:
        if not kept.is_file():
            if time.monotonic() > deadline:
                return None
            renderer = make_renderer("auto")
            with FilmRecorder(env, kept, renderer, captions=False, **FILM) as recorder:
                recorder.play(ExpertPolicy(env), seeds=[0])
            renderer.close()
        return kept.read_bytes()
    finally:
        env.close()


def task_page(task_id: str, *, filmed: bool = False) -> str:
    shown = picture(task_id, width=480)
    if filmed:
        place = f"../{task_id}.mp4"
        shown += f'\n\n<video src="{place}" width="480" autoplay loop muted playsinline controls></video>'
    page = task_sheet(task_id).markdown(picture=shown)
    kind = task_class(task_id)
    module = importlib.util.find_spec(kind.__module__)
    assert module is not None and module.origin is not None
    source = Path(module.origin).relative_to(Path(module.origin).parents[4])
    if issubclass(kind, StagedTask):
        page += "\nEpisodes last 500 steps, as in robosuite's benchmark; 1000 is only its constructor's default. "
        page += "[Where these tasks differ from robosuite, and how far](../robosuite.md).\n"
    family = task_family(task_id)
    page += f"\nOther tasks of its family: [{family_title(family)}](../families.md#{family}).\n"
    page += f"\nThe task is one file, `{source}`; the same page in a terminal: `manikin info {task_id}`.\n"
    return page


def tasks_table() -> str:
    measured = json.loads(EXPERTS.read_text(encoding="utf-8"))
    parts = []
    for family, tasks in task_families().items():
        rows = []
        for task_id in tasks:
            kind = task_class(task_id)
            words = f"{kind.instruction}<br>robots: {', '.join(kind.robots)}"
            rows.append((picture(task_id, width=200), f"[{task_id}]({task_id}.md)", words, expert(task_id, measured)))
        parts += [f"## {family_title(family)} {{ #{family} }}", table(("", "task", "what to do", "expert"), rows)]
    note = f"Episodes that the expert solves, of the seeds 0, 1, 2 and so on. Measured with `{measured['command']}`."
    return "\n\n".join([*parts, note])


def expert(task_id: str, measured: dict[str, Any]) -> str:
    """How often the scripted expert solves a task with its own options, over all of its layouts."""
    counted = {name: e for name, e in measured["entries"].items() if "=" not in name}
    entries = [e for name, e in counted.items() if name.partition("/")[0] == task_id]
    if not entries:
        return ""
    return f"{sum(e['successes'] for e in entries)} of {sum(e['seeds'] for e in entries)}"


def controllers_table(robot: str = "panda") -> str:
    """Every controller with the number of values it takes, with which gains in the action, and what +1 asks for."""
    theirs = {mine: name for name, mine in ALIASES.items()}
    rows = []
    for name, options in CONTROLLERS.items():
        if name not in arm(robot).controllers:
            continue
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


WHOLE = (  # robots that drive, and controllers that move base and arm together
    ("fetch_mshab", fetch_mshab.CONTROL),
    ("fetch_mshab", "base+torso+arm: ee_delta_pose"),
    ("stretch3", "base+lift+arm+wrist: ee_delta_pose"),
    ("tiago", "base+torso+arm: ee_delta_pose"),
    ("panda@planar", "base+arm: ee_delta_pose"),
    ("panda@differential", "base+arm: ee_delta_pose"),
)


def action_cards() -> str:
    summary, cards = [], []
    # base_vel drives no arm
    pairs = [(name, "base: base_vel" if c == "base_vel" else c) for name in arms() for c in arm(name).controllers]
    for name, control in (*pairs, *WHOLE):
        card = measured_card(name, control)
        realised = "" if card.realised is None else f"{100 * card.realised:.0f} %"
        drift = "" if card.hold_drift is None else f"{1000 * card.hold_drift:.1f} mm/s"
        anchor = re.sub(r"\W+", "-", f"{name}-{control.removeprefix('base: ')}")
        summary.append((name, f"[`{control}`](#{anchor})", str(card.size), realised, drift))
        cards += [f"## {name}: `{control}` {{ #{anchor} }}", card.summary(), card.table()]
    overview = table(("robot", "controller", "numbers", "covered after one step", "drift when held"), summary)
    return "\n\n".join([overview, *cards])
