"""Families of tasks: which there are, in the order of lists, and which one a task is of that names none."""

from __future__ import annotations

__all__ = ["FAMILIES", "FOLDERS", "OWN"]

OWN = "own"
FAMILIES: dict[str, str] = {
    "table-top": "Table-top",
    "pushing": "Pushing and tools",
    "insertion": "Insertion",
    "cabinets": "Cabinets and doors",
    "drawing": "Drawing and cleaning",
    "hands": "Hands",
    "soft": "Grains and soft things",
    "two-arms": "Two arms",
    "humanoids": "Humanoids",
    "homes": "Homes",
    "control-suite": "Control suite",
    "locomotion": "Locomotion",
    "simpler": "Real to sim (SIMPLER)",
    "robosuite": "After robosuite",
    OWN: "Your own",
}
"""What ``Task.family`` may say -> its title. Another word is a family of its own and comes last."""

FOLDERS: dict[str, str] = {
    "bimanual": "two-arms",
    "cabinets": "cabinets",
    "classic": "control-suite",
    "drawing": "drawing",
    "hands": "hands",
    "home": "homes",
    "humanoids": "humanoids",
    "insertion": "insertion",
    "kitchen": "homes",
    "locomotion": "locomotion",
    "pushing": "pushing",
    "robosuite": "robosuite",
    "simpler": "simpler",
    "soft": "soft",
    "tabletop": "table-top",
}
"""Folder of manikin.tasks -> the family of its tasks that name none."""
