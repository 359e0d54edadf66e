"""The drawer and the fridge of a long task: Open and Close as they are alone, about one drawer and one door."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manikin import Handles, Robot, SceneBuilder, Waypoint
from manikin.homes import Home
from manikin.math import norm, yaw_rotate
from manikin.tasks.home.doors.close import HomeClose
from manikin.tasks.home.doors.fronts import Fronts
from manikin.tasks.home.doors.inside import drawn_out, one_front, open_up
from manikin.tasks.home.doors.mechanisms import MechanismHandles, mechanism_handles
from manikin.tasks.home.doors.open import HomeOpen
from manikin.tasks.home.long.steps import Errand, Step
from manikin.tasks.home.predicates import Joint, closed, opened, slightly_closed
from manikin.tasks.home.rules import ARTICULATIONS
from manikin.toolkit import chosen, constant

__all__ = ["DOOR_FLAGS", "Doors"]

DOOR_FLAGS = ("is_open", "is_slightly_open", "is_closed", "is_slightly_closed")
"""What the labels of Open and Close need besides contact."""
_WORDS: dict[str, type[HomeOpen | HomeClose]] = {"open": HomeOpen, "close": HomeClose}


class Doors:
    """Those that the subtasks of one layout open and close.

    Args:
        layout: name of the apartment.
        steps: the subtasks.

    Attributes:
        kinds: ``drawer`` and ``fridge``, or one of them, or none.
    """

    def __init__(self, layout: str, steps: Sequence[Step]) -> None:
        self.kinds = tuple(dict.fromkeys(step.door for step in steps if step.door))
        self._layout, self._each = layout, [(word, kind) for kind in self.kinds for word in _WORDS]
        self._tasks: dict[tuple[str, str], HomeOpen | HomeClose] = {}
        self._fronts = {kind: Fronts((one_front(layout, kind),), (kind,)) for kind in self.kinds}
        for word, kind in self._each:
            self._tasks[word, kind] = task = _WORDS[word]({"mechanism": kind})
            task.layout = layout  # which may be another apartment than its own
            task.about(self._fronts[kind], (kind,))
        seen = (*steps, steps[-1])
        self._which = torch.tensor([1 + self.kinds.index(s.door) if s.door else 0 for s in seen])
        self._moved = self._which * torch.tensor([s.kind in _WORDS for s in seen])

    def declare(self, b: SceneBuilder, robot: Robot, home: Home) -> dict[str, MechanismHandles]:
        """Their handles in a scene, by kind."""
        each = {kind: mechanism_handles(b, robot, home, self._fronts[kind], f"{kind}/") for kind in self.kinds}
        return {kind: Handles.of(one, b.scope) for kind, one in each.items()}

    def number(self, step: Step) -> int:
        """Of the part of :meth:`experts` that does a subtask Open or Close."""
        return self._each.index((step.kind, step.door))

    # ---- how an episode begins ---------------------------------------------------------------------------------------

    def drawn_in(self, errand: Errand) -> Tensor:
        """(3,) [m] by which an object is farther back at the start than where it is to be taken, in a shut drawer."""
        return drawn_out(self._layout) if errand.door == "drawer" else torch.zeros(3)

    def begin(self, home: Home, ajar: str) -> None:
        """Open what is open all the time."""
        open_up(home, self._layout, ajar)

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def joint(self, h: dict[str, MechanismHandles], kind: str) -> Joint:
        """What conditions ask of the drawer or the fridge."""
        return self._tasks["open", kind].joint(h[kind])

    def goal(self, h: dict[str, MechanismHandles], now: Tensor, place: Tensor) -> Tensor:
        """(n, 3) [m] where rows in subtasks ``now`` (n,) are led: to a drawer's handle or to the fridge; or ``place``
        (n, 3), where it is about neither."""
        each = [place]
        for kind in self.kinds:
            joint = self.joint(h, kind)
            fridge = torch.cat([joint.frame[:, :2], joint.handle[:, 2:]], 1)
            each.append(fridge if kind == "fridge" else joint.handle)
        return chosen(each, self._which[now]) if self.kinds else place

    def aims(self, h: dict[str, MechanismHandles], now: Tensor, goal: Tensor, grasped: Tensor) -> tuple[Tensor, Tensor]:
        """What rows in subtasks ``now`` (n,) see: where they are led (n, 3) [m] and whether they hold it (n,) bool; the
        handle, in rows that open or close, else what is given."""
        if not self.kinds:
            return goal, grasped
        which = self._moved[now]
        goal = chosen([goal, *(self.joint(h, kind).handle for kind in self.kinds)], which)
        return goal, chosen([grasped, *(h[kind].grasps[0].value for kind in self.kinds)], which)

    def told(self, h: dict[str, MechanismHandles], now: Tensor, yaw: Tensor) -> dict[str, Tensor]:
        """As Open and Close tell of drawers and doors, to rows in subtasks ``now`` (n,) whose bases face ``yaw`` (n,)
        [rad]; 0 in rows that neither open nor close."""
        if not self.kinds:
            return {}
        which, no = self._moved[now], torch.zeros(len(now), 3)
        found = []
        for kind in self.kinds:
            joint, along = self.joint(h, kind), self._tasks["open", kind].opens_along(h[kind])
            found.append(torch.cat([joint.share(joint.q)[:, None], yaw_rotate(along, -yaw)], 1))
        share, along = chosen([no, *found], which).split([1, 2], 1)
        return {"open_share": share, "opens_along": along}

    def flags(self, h: dict[str, MechanismHandles], now: Tensor, flags: list[Tensor]) -> list[Tensor]:
        """Flags of the subtasks ``now`` (n,), the first of which are contact and grasp, with those of drawer and fridge
        in rows that open or close one."""
        if not self.kinds:
            return flags
        which, no = self._which[now], torch.zeros_like(flags[0])
        grasps = [h[kind].grasps[0] for kind in self.kinds]
        touched = chosen([flags[0], *(norm(grasp.force).amax(1) > 0 for grasp in grasps)], which)
        grasped = chosen([flags[1], *(grasp.value for grasp in grasps)], which)
        found = []
        for kind in self.kinds:
            joint = self.joint(h, kind)
            slightly = joint.share(joint.q) > constant(ARTICULATIONS[kind].slightly_open)
            found.append((opened(joint), slightly, closed(joint), slightly_closed(joint)))
        more = [chosen([no, *each], which) for each in zip(*found, strict=True)]
        return [touched, grasped, *flags[2:], *more]

    def begun(self, h: dict[str, MechanismHandles], on: Tensor) -> None:
        """The next subtask begins in rows ``on`` (n,) bool."""
        for kind in self.kinds:
            h[kind].began.set(torch.where(on, self.joint(h, kind).q, h[kind].began.value))

    # ---- how they are opened and closed ------------------------------------------------------------------------------

    def experts(self, h: dict[str, MechanismHandles]) -> list[list[Waypoint]]:
        """What opens and what closes each, in turn."""
        return [self._tasks[word, kind].expert(h[kind]) for word, kind in self._each]
