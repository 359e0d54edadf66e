"""What an apartment is, as data: walls, fixtures, mechanisms with joints, receptacles.

The floor is z = 0. In the frame of built-in furniture x points out of the front and z = 0 is the floor.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import mujoco
import numpy as np

from manikin.errors import SceneError, UnknownNameError
from manikin.spec.links import Quat, Vec3
from manikin.spec.prop import Shape

__all__ = ["Apartment", "Fixture", "Mechanism", "Receptacle"]


@dataclass(frozen=True, kw_only=True)
class Receptacle:
    """A box of space in which things may lie on the lower face.

    Attributes:
        name: unique within the apartment: ``table/top``.
        pos, quat: middle and orientation of the box in the frame of what it belongs to [m]; z points up.
        half: half lengths [m].
        link: of a mechanism, the body that carries it; empty for a fixture.
    """

    name: str
    pos: Vec3
    half: Vec3
    quat: Quat = (1, 0, 0, 0)
    link: str = ""


@dataclass(frozen=True, kw_only=True)
class Fixture:
    """Furniture that does not move.

    Attributes:
        name: unique within the apartment.
        kind: a word such as ``table``.
        pos, quat: where it stands [m].
        shapes: what collides; also what is seen, unless there are ``looks``.
        looks: what is seen instead.
        receptacles: where things may lie.
    """

    name: str
    kind: str
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    shapes: tuple[Shape, ...] = ()
    looks: tuple[Shape, ...] = ()
    receptacles: tuple[Receptacle, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Mechanism:
    """Furniture with drawers or doors.

    Attributes:
        name, kind, pos, quat, receptacles: as for :class:`Fixture`.
        model: its bodies and joints; the first body stands still. A site ``handle/JOINT`` marks where a joint's handle
            is. Geoms named ``handle/...`` are what a hand takes.
    """

    name: str
    kind: str
    model: mujoco.MjSpec
    pos: Vec3 = (0, 0, 0)
    quat: Quat = (1, 0, 0, 0)
    receptacles: tuple[Receptacle, ...] = ()

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of its joints."""
        return tuple(joint.name for joint in self.model.joints)


@dataclass(frozen=True, kw_only=True, eq=False)
class Apartment:
    """Rooms with what stands in them.

    Attributes:
        name: says where it comes from and which it is.
        low, high: (2,) corners of the floor plan, x and y [m].
        walls: in the world's frame.
        fixtures, mechanisms: furniture.
        notes: what is missing or replaced, one sentence each.
        view: where ``human_camera`` is and what it looks at [m]; None for a place from which all of it is seen.

    Raises:
        SceneError: two things or two receptacles have one name, a receptacle's link is not in its mechanism, or the
            floor plan is empty.
    """

    name: str
    low: tuple[float, float]
    high: tuple[float, float]
    walls: tuple[Shape, ...]
    fixtures: tuple[Fixture, ...] = ()
    mechanisms: tuple[Mechanism, ...] = ()
    notes: tuple[str, ...] = ()
    view: tuple[Vec3, Vec3] | None = None
    _owners: dict[str, tuple[Fixture | Mechanism, Receptacle]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.low[0] < self.high[0] and self.low[1] < self.high[1]):
            raise SceneError(f"{self.name}: the floor plan from {self.low} to {self.high} is empty")
        things: tuple[Fixture | Mechanism, ...] = (*self.fixtures, *self.mechanisms)
        twice = [name for name, count in Counter(thing.name for thing in things).items() if count > 1]
        if twice:
            raise SceneError(f"{self.name}: several things are named {twice[0]!r}")
        for thing in things:
            links = [""] if isinstance(thing, Fixture) else [body.name for body in thing.model.bodies[1:]]
            for receptacle in thing.receptacles:
                if receptacle.name in self._owners:
                    raise SceneError(f"{self.name}: several receptacles are named {receptacle.name!r}")
                if receptacle.link not in links:
                    raise SceneError(
                        f"{self.name}: receptacle {receptacle.name!r} is on link {receptacle.link!r}, which "
                        f"{thing.name} does not have; valid: {', '.join(links)}"
                    )
                self._owners[receptacle.name] = (thing, receptacle)

    @property
    def receptacles(self) -> tuple[str, ...]:
        """Names of all receptacles, fixtures first."""
        return tuple(self._owners)

    def receptacle(self, name: str) -> tuple[Fixture | Mechanism, Receptacle]:
        """What the receptacle ``name`` belongs to, and the receptacle.

        Raises:
            UnknownNameError: there is none; lists the receptacles.
        """
        if name not in self._owners:
            raise UnknownNameError(f"receptacle of {self.name}", name, self._owners)
        return self._owners[name]

    def middle(self, name: str) -> np.ndarray:
        """(7,) position [m] and quaternion wxyz of the middle of a receptacle in the world, all joints at 0.

        Raises:
            UnknownNameError: there is none; lists the receptacles.
        """
        thing, receptacle = self.receptacle(name)
        chain: list[Fixture | Mechanism | mujoco.MjsBody] = [thing]
        if isinstance(thing, Mechanism):
            body = thing.model.body(receptacle.link)
            while body.name != "world":
                chain.insert(1, body)
                body = body.parent
        pos, quat = np.zeros(3), np.array([1.0, 0, 0, 0])
        for frame in (*chain, receptacle):
            step, turn = np.empty(3), np.empty(4)
            mujoco.mju_rotVecQuat(step, np.array(frame.pos, float), quat)
            mujoco.mju_mulQuat(turn, quat, np.array(frame.quat, float))
            pos, quat = pos + step, turn
        return np.concatenate([pos, quat])

    def of_kind(self, kind: str) -> tuple[Fixture | Mechanism, ...]:
        """All fixtures and mechanisms of a kind.

        Raises:
            UnknownNameError: there is none; lists the kinds.
        """
        things: tuple[Fixture | Mechanism, ...] = (*self.fixtures, *self.mechanisms)
        found = tuple(thing for thing in things if thing.kind == kind)
        if not found:
            raise UnknownNameError(f"kind of furniture of {self.name}", kind, {thing.kind for thing in things})
        return found
