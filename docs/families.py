"""Fill the families of docs/families.md from the tasks that are registered.

    python docs/families.py            # after a task is new, or of another family
    python docs/families.py --check    # is the page up to date?

The sheets that the page shows are made by ``python docs/pictures.py families``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from filling import finish, sections

from manikin.author.sheet import table
from manikin.env.registry import family_title, task_class, task_families
from manikin.env.task import Task

PAGE = Path(__file__).parent / "families.md"
SUMMARIES = {
    "table-top": "Grasp, lift, place and stack things on a table.",
    "pushing": "Move things without a grasp, or with something that is held.",
    "insertion": "Bring a part into a hole, a recess or a receptacle.",
    "cabinets": "Open what hangs on a hinge or runs on a rail.",
    "drawing": "Leave marks on a surface, or wipe them off.",
    "hands": "Turn things with fingers: a valve, what lies in the hand, a cube on the table.",
    "soft": "Grains, ropes, cloth, clay and layers. See [how grains work](#grains) and "
    "[how soft things work](#soft-things).",
    "two-arms": "Use two arms that hand over, lift or hold together.",
    "homes": "A mobile robot in apartments and kitchens: see [Homes](homes.md) and [Kitchens](kitchens.md).",
    "humanoids": "Work with the upper body of a humanoid: a torso that turns, two arms, two hands.",
    "control-suite": "Balance, walk and run. The rewards are dm_control's.",
    "locomotion": "Robots on legs that go where they are told, reach a mark, turn, stand or follow a motion.",
    "simpler": "The scenes of real robots' evaluations, after SIMPLER. See [SIMPLER](simpler.md).",
    "robosuite": "robosuite's other tasks for one arm. See [Tasks after robosuite](robosuite.md).",
}


def overview(families: dict[str, list[str]]) -> str:
    """A table: a family, its word, how many tasks, which robots they are tested with, how many have an expert."""
    rows = []
    for name, tasks in families.items():
        kinds = [task_class(task) for task in tasks]
        robots = dict.fromkeys(f"`{word}`" for kind in kinds for word in kind.robots)
        experts = sum(kind.expert is not Task.expert for kind in kinds)
        rows.append((f"[{family_title(name)}](#{name})", f"`{name}`", str(len(tasks)), ", ".join(robots), f"{experts}"))
    return table(("family", "word", "tasks", "tested with", "with a scripted expert"), rows)


def section(name: str, tasks: list[str]) -> str:
    """A family's heading, sentence, sheet and tasks."""
    shown = f"![{', '.join(tasks)}](images/families/{name}.png)"
    rows = [(f"`{task}`", task_class(task).instruction) for task in tasks]
    return "\n\n".join(
        (f"### {family_title(name)} {{ #{name} }}", SUMMARIES[name], shown, table(("task", "what to do"), rows))
    )


def filled(page: str, families: dict[str, list[str]]) -> str:
    """The page with its overview and families made new."""
    shown = "\n\n".join(section(name, tasks) for name, tasks in families.items())
    return sections(page, {"overview": overview(families), "families": shown})


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), task_families())}))
