"""How files of episodes name furniture and the links of it."""

from __future__ import annotations

from manikin.errors import UnknownNameError
from manikin.homes import Apartment, Fixture, Mechanism

__all__ = ["furniture", "in_file", "joint_at", "link_of"]


def in_file(name: str) -> str:
    """``fridge_:0000``: ReplicaCAD's things have numbers, built-in ones are alone of their name."""
    stem, _, count = name.partition(":")
    return f"{stem}_:{count or '0000'}"


def furniture(home: Apartment, handle: str) -> Fixture | Mechanism:
    """The furniture of a name in a file.

    Raises:
        UnknownNameError: there is none; lists what is there.
    """
    all_things: tuple[Fixture | Mechanism, ...] = (*home.fixtures, *home.mechanisms)
    things = {in_file(one.name): one for one in all_things}
    if handle not in things:
        raise UnknownNameError(f"furniture of {home.name}", handle, things)
    return things[handle]


def link_of(thing: Fixture | Mechanism, joint: str) -> int:
    """The number of the link that a joint moves."""
    bodies = thing.model.bodies[1:] if isinstance(thing, Mechanism) else []
    return next(k for k, body in enumerate(bodies) if any(one.name == joint for one in body.joints))


def joint_at(thing: Fixture | Mechanism, link: int) -> str:
    """The joint that moves a link.

    Raises:
        UnknownNameError: none does; lists the links that move.
    """
    moved = {link_of(thing, joint): joint for joint in thing.joints} if isinstance(thing, Mechanism) else {}
    if link not in moved:
        raise UnknownNameError(f"link of {thing.name} that moves", str(link), [str(k) for k in moved])
    return moved[link]
