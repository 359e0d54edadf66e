"""Let things rest until something touches them: they cost little physics meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from manikin.errors import SceneError
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Part
from manikin.scene.handles.articulation import Articulation
from manikin.scene.handles.base import Handle, Scope

__all__ = ["Resting", "let_rest"]


class Resting(Handle):
    """Things that may sleep; see :func:`let_rest`."""

    def __init__(self, scope: Scope, name: str, bodies: Sequence[str]) -> None:
        super().__init__(scope, name)
        self._names = tuple(bodies)

    def bind(self, model: mujoco.MjModel) -> None:
        self._bodies = [int(model.body(name).id) for name in self._names]

    def begin(self) -> None:
        """Let all of them sleep, in the rows in view, where they are then; for a task's ``start``.

        On a Warp device nothing sleeps: things lie still by themselves, and cost more.
        """
        world = self.scope.world
        if world.kind == "cpu":
            for body in self._bodies:
                world.rest(body, self.scope.rows)  # type: ignore[attr-defined]


def let_rest(b: SceneBuilder, things: Sequence[Part | Articulation]) -> Resting:
    """Declare that things may sleep: parts that lie on others, doors and drawers that are closed.

    What sleeps stays exactly where it is, also in mid-air, and costs little. It wakes when something that is awake
    touches it, or when the task moves it, and does not fall asleep again in the episode. A door or drawer sleeps only
    where its joint is at 0. What touches something awake does not sleep, so a bowl in a drawer sleeps if the drawer
    does.

    Sensors of contact between two that sleep keep what they said last. Whether a robot holds a part that may sleep must
    be declared with ``b.grasp``: sensors for all of them would cost as much as the rest.

    Args:
        b: the scene.
        things: dynamic parts and articulations.

    Returns:
        A handle; call its ``begin`` in ``start``.

    Raises:
        SceneError: a part does not move by physics.
    """
    bodies = []
    for thing in things:
        if isinstance(thing, Articulation):
            found = [body for body in b.spec.bodies if body.joints and body.name.startswith(thing.prefix)]
            bodies += [body for body in found if not _above(body)]
        elif thing.kind != "dynamic":
            raise SceneError(f"{thing.name} is {thing.kind}; only dynamic parts and articulations may sleep")
        else:
            bodies.append(b.spec.body(thing.name))
    b.graspable = [part for part in b.graspable if part not in things]
    for body in bodies:
        body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_ALLOWED
    b.spec.nuserdata += len(bodies)
    handle = Resting(b.scope, "resting", [body.name for body in bodies])
    b.handles.append(handle)
    return handle


def _above(body: mujoco.MjsBody) -> bool:
    """Whether a body above this one moves, so that the two are of one tree."""
    parent = body.parent
    while parent is not None and parent.name != "world":
        if parent.joints:
            return True
        parent = parent.parent
    return False
