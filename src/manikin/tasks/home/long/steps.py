"""The subtasks of a long task, one after the other, made from its errands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Errand", "Step", "steps_of"]


@dataclass(frozen=True)
class Errand:
    """One object's way.

    Attributes:
        start: where it lies: on ``open`` surfaces, the ``counter`` or the ``table``, in the ``drawer`` or the
            ``fridge``.
        goal: where it is brought, likewise.
        door: what is opened before and closed afterwards: the ``drawer``, the ``fridge``, or nothing.
    """

    start: str = "open"
    goal: str = "open"
    door: str = ""

    @property
    def from_front(self) -> bool:
        """Whether the gripper takes the object from the front, as under a shelf there is no room above."""
        return "fridge" in (self.start, self.goal)


@dataclass(frozen=True)
class Step:
    """One subtask of a sequence.

    Attributes:
        kind: ``navigate``, ``pick``, ``place``, ``open`` or ``close``.
        target: number of the object that it is about.
        carrying: whether that is in the gripper meanwhile.
        to_goal: whether Navigate goes to the object's goal, and not to where it is.
        door: ``drawer`` or ``fridge``, which it opens or closes or goes to.
        opened: the one that is open when it begins, or nothing.
    """

    kind: str
    target: int
    carrying: bool = False
    to_goal: bool = False
    door: str = ""
    opened: str = ""

    @property
    def name(self) -> str:
        """In words."""
        if self.door:
            return f"navigate to {self.door}" if self.kind == "navigate" else f"{self.kind} {self.door}"
        return f"{self.kind} {self.target}" if self.kind != "navigate" else f"navigate to {self._where} {self.target}"

    @property
    def _where(self) -> str:
        return "goal" if self.to_goal else "object"


def steps_of(words: Sequence[str], errands: Sequence[Errand], opened: str = "") -> tuple[Step, ...]:
    """The subtasks of errands.

    Args:
        words: the kinds of all subtasks of the whole task in their order; those of further errands are left out.
        errands: the first ones of the task.
        opened: what is open all the time, if anything is.
    """
    found, target, carrying, now = [], 0, False, opened
    for i, kind in enumerate(words):
        if target == len(errands):
            break
        errand = errands[target]
        after = words[i + 1] if kind == "navigate" else ""
        door = errand.door if {kind, after} & {"open", "close"} else ""
        found.append(Step(kind, target, carrying or kind == "place", after == "place", door, now))
        carrying = kind == "pick" or (carrying and kind == "navigate")
        now = {"open": errand.door, "close": opened}.get(kind, now)
        target += kind == ("close" if errand.door else "place")
    return tuple(found)
