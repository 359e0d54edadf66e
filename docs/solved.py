"""Fill docs/solved.md: which tasks are solved, by an expert or by a policy that was trained here, and which are not.

python docs/solved.py            # after benchmarks/experts.py and benchmarks/learning.py
python docs/solved.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from filling import finish, sections

from manikin.author.sheet import table
from manikin.env.registry import family_title, task_class, task_families

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "solved.md"
EXPERTS = ROOT / "benchmarks" / "results" / "experts.json"
LEARNING = ROOT / "benchmarks" / "results" / "learning.json"
SIMPLER = ROOT / "benchmarks" / "results" / "simpler_experts.json"
SIM_TO_REAL = ROOT / "benchmarks" / "results" / "sim_to_real.json"
ATTEMPTS = ROOT / "benchmarks" / "results" / "attempts.json"
HOME_TASKS = ROOT / "benchmarks" / "results" / "home_tasks.json"
IMAGES = ROOT / "docs" / "images" / "failures"  # TASK.png: moments of an episode that failed
LEAST = 0.9  # share of successes of what counts as solved
LEAST_LONG, COUNTED_LONG = 0.5, 100  # that share of a long task of homes, if so many episodes were counted
ABOVE = {"AntWalk-v1": 700.0, "HopperStand-v1": 350.0}  # or this mean return, where success is not what is asked for
GPU = {  # what one would change, of tasks that are not solved
    "HopperHop-v1": "tens of millions of steps in minutes",
    "HumanoidRun-v1": "tens to hundreds of millions of steps in hours; 10 m/s is much even so",
    "ReorientCube-v1": "billions of steps, as published",
    "TrackVelocityRough-v1": "tens of millions of steps on the height field in minutes, not days",
}


class Way(NamedTuple):
    """How a task is done: by whom, how well as text, whether that solves it, processor time of training [h]."""

    who: str
    how_well: str
    solves: bool
    hours: float


def read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text()))


def experts() -> dict[str, tuple[int, int]]:
    """Task -> successes and starts of its scripted expert, all layouts or settings together."""
    found: dict[str, tuple[int, int]] = {}

    def more(task: str, won: int, tried: int) -> None:
        before = found.get(task, (0, 0))
        found[task] = before[0] + won, before[1] + tried

    for name, entry in read(EXPERTS)["entries"].items():
        if "=" in name:  # with other options than its own
            continue
        more(name.partition("/")[0], entry["successes"], entry["seeds"])
    for suite in read(SIMPLER)["suites"]:
        for one in suite["tasks"] if suite["kinds"] == "stand-ins" else ():
            more(one["task"], one["solved"], one["trials"])
    return found


def levels() -> dict[str, dict[str, tuple[int, int]]]:
    """Task -> level -> successes and starts of its expert, where they were counted by level."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for name, entry in read(EXPERTS)["entries"].items():
        task, _, level = name.partition("/level=")
        if level:
            found.setdefault(task, {})[level] = entry["successes"], entry["seeds"]
    return found


def declared_levels(task: str) -> list[str]:
    """The levels that a task can be made with."""
    return [str(level) for level in getattr(sys.modules[task_class(task).__module__], "LEVELS", ())]


def long_tasks() -> dict[str, Way]:
    """Task of homes -> how far its experts come in whole episodes with all targets, teleported from one subtask to the
    next, as the published counts were made."""
    found: dict[str, Way] = {}
    for name, entry in read(HOME_TASKS)["entries"].items():
        task, *how = name.split(", ")
        if how != ["teleported", "expert"]:
            continue
        won, tried = entry["successes"], entry["episodes"]
        solves = tried >= COUNTED_LONG and won >= LEAST_LONG * tried
        found[task] = Way("expert, teleported", f"{won} of {tried}", solves, 0.0)
    return found


def policies() -> dict[str, list[Way]]:
    """Task -> the policies that were trained on it from its reward alone."""
    found: dict[str, list[Way]] = {}
    for run, seeds in read(LEARNING)["runs"].items():
        algorithm, _, task = run.partition(":")
        tested = [one for one in seeds.values() if one["tested"]]
        for one in tested if algorithm in ("ppo", "sac") else ():
            rate, paid = one["tested"]["rate"], one["tested"].get("return", 0.0)
            solves = paid >= ABOVE[task] if task in ABOVE else rate >= LEAST
            well = f"{rate:.0%}, return {paid:.0f}" if task in ABOVE else f"{rate:.0%}"
            found.setdefault(task, []).append(Way(f"`{algorithm}`", well, solves, one["cpu_seconds"] / 3600))
    teacher = read(SIM_TO_REAL)["teacher"]
    rate = teacher["tested"]["rate"]
    grasp = Way("`ppo`", f"{rate:.0%}", rate >= LEAST, teacher["cpu_seconds"] / 3600)
    found.setdefault("GraspCube-v1", []).append(grasp)
    for task, tried in read(ATTEMPTS)["tasks"].items():
        well = f"{tried['successes']} of {tried['seeds']}, return {tried['return']:.0f}, {tried['fell']} fell"
        who = tried["who"] if " " in tried["who"] else f"`{tried['who']}`"
        found.setdefault(task, []).append(Way(f"{who}, {tried['said']}", well, False, 0.0))
    return found


def row(task: str, ways: list[Way], *, solved: bool, level: str = "") -> tuple[str, ...]:
    """A line for a task, or for one of its levels."""
    shown = "; ".join(f"{way.who}: {way.how_well}" for way in ways)
    hours = max((way.hours for way in ways), default=0.0)
    name = f"`{task}`, level {level}" if level else f"`{task}`"
    line = (name, shown or "nobody tried yet", f"{hours:.1f}" if hours else "-")
    if solved:
        return line
    if level:
        return (*line, "-", "-")
    picture = f"[failure](images/failures/{task}.png)" if (IMAGES / f"{task}.png").is_file() else "-"
    return (*line, picture, GPU.get(task, "-"))


def filled(page: str) -> str:
    """The page with its tables made from the results."""
    solved, open_, counts = [], [], []
    shown, trained, long, counted = experts(), policies(), long_tasks(), levels()
    for family, tasks in task_families().items():
        done = 0
        for task in tasks:
            ways = sorted(trained.get(task, []), key=lambda way: (way.solves, way.how_well))[-1:]
            if task in shown:
                won, tried = shown[task]
                ways.insert(0, Way("expert", f"{won} of {tried}", won >= LEAST * tried, 0.0))
            if task in long:
                ways.insert(0, long[task])
            good = any(way.solves for way in ways)
            done += good
            (solved if good else open_).append(row(task, ways, solved=good))
            for level in declared_levels(task):
                ways = trained.get(f"{task}/level={level}", [])
                if level in counted.get(task, {}):
                    won, tried = counted[task][level]
                    ways = [Way("expert", f"{won} of {tried}", won >= LEAST * tried, 0.0), *ways]
                elif not ways and level == "0":  # which is the task's own
                    continue
                good = any(way.solves for way in ways)
                (solved if good else open_).append(row(task, ways, solved=good, level=level))
        counts.append((family_title(family), f"{done} of {len(tasks)}"))
    head = ("task", "best", "CPU hours of training")
    made = {"count": table(("family", "solved"), counts), "solved": table(head, solved)}
    made["open"] = table((*head, "moments", "what a GPU would change"), open_)
    return sections(page, made)


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text())}))
