"""The drawers and doors of an apartment that Open and Close are about: where they are, shut, and how they move."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from manikin.errors import UnknownNameError
from manikin.homes import Apartment
from manikin.homes.episodes import home_of
from manikin.spec.links import Quat
from manikin.tasks.home.rules import ARTICULATIONS

__all__ = ["KINDS", "WHERE", "Front", "Fronts", "behind", "fronts"]

KINDS = ("drawer", "fridge")
"""What is opened and closed: an upper drawer of the kitchen counter, or the upper door of the fridge."""
WHERE = ("open", *KINDS)
"""Where things lie: on open surfaces, or in one of those."""
# what each kind is part of, by the kind of furniture, and the names of its links; of ReplicaCAD's counter MS-HAB's
# tasks are about one drawer
_OWNERS = {
    "drawer": {"counter": re.compile("drawer.*"), "kitchen_counter": re.compile("drawer3")},
    "fridge": {"fridge": re.compile("top_door")},
}
_UPPER = 0.6  # [m] above which the handle of an upper drawer of the built-in counter is
_SLOTS = 12  # any number of drawers up to 4 divides it


@dataclass(frozen=True)
class Front:
    """A drawer or a door of an apartment, shut.

    Attributes:
        kind: ``drawer`` or ``fridge``.
        mechanism, joint, link: names; the link is the body that the joint moves.
        handle: (3,) [m] its middle.
        yaw: [rad] where it faces.
        frame: (2,) [m] from here the place of the robot counts: the outside of a drawer, the middle of a fridge.
        hinge: (2,) [m] about which a door turns; of a drawer ``frame``.
        sense: of that turn, 1 to the left, -1 to the right, seen from above; 0 for a drawer.
        limits: of the joint [m, rad].
        width: [m] of a door, from its hinge to its edge; 0 for a drawer.
        top: [m] height of the upper end of a door's handle; 0 for a drawer.
    """

    kind: str
    mechanism: str
    joint: str
    link: str
    handle: tuple[float, ...]
    yaw: float
    frame: tuple[float, ...]
    hinge: tuple[float, ...]
    sense: float
    limits: tuple[float, float]
    width: float = 0.0
    top: float = 0.0


class Fronts:
    """The drawers and doors of one apartment that tasks are about, as tensors; ``T`` is their number.

    Attributes:
        each: one by one, drawers first.
        slots: (kinds, slots) numbers of those of each kind, every one equally often.
        fridge: (T,) bool; handle: (T, 3); yaw: (T,); frame: (T, 2); hinge: (T, 2); sense: (T,); limits: (T, 2), of
            each; see :class:`Front`; open_from: (T,) [m, rad] of its joint, from where it counts as open;
            width and top: (T,) [m] of a door.
    """

    def __init__(self, each: tuple[Front, ...], kinds: tuple[str, ...]) -> None:
        self.each = each
        of = [[k for k, one in enumerate(each) if one.kind == kind] for kind in kinds]
        self.slots = torch.tensor([np.resize(numbers, _SLOTS).tolist() for numbers in of])
        self.fridge = torch.tensor([one.kind == "fridge" for one in each])
        self.handle, self.frame, self.hinge = (
            torch.tensor([getattr(one, name) for one in each]) for name in ("handle", "frame", "hinge")
        )
        self.yaw, self.sense = (torch.tensor([getattr(one, name) for one in each]) for name in ("yaw", "sense"))
        self.limits = torch.tensor([one.limits for one in each])
        self.width, self.top = (torch.tensor([getattr(one, name) for one in each]) for name in ("width", "top"))
        share = torch.tensor([ARTICULATIONS[one.kind].open_share for one in each])
        self.open_from = self.limits[:, 0] + share * (self.limits[:, 1] - self.limits[:, 0])


def fronts(layout: str, kinds: tuple[str, ...] = KINDS) -> Fronts:
    """The drawers of the counter and the upper door of the fridge of an apartment that tasks are about; of the drawers
    the one alone that the layout names, as in ``apartment3/counter/drawer1``.

    Raises:
        UnknownNameError: there is no such drawer, or tasks are not about it.
    """
    home, (scene, _, named) = home_of(layout), layout.partition("/")
    found = [front for kind in kinds for front in _fronts_of(kind, home)]
    if named and "drawer" in kinds:
        drawers = [one.link for one in found if one.kind == "drawer"]
        link = home.receptacle(named)[1].link if named in home.receptacles else ""
        if link not in drawers:
            raise UnknownNameError(f"drawer of {scene}", named, drawers)
        found = [one for one in found if one.kind != "drawer" or one.link == link]
    return Fronts(tuple(found), kinds)


@functools.lru_cache(maxsize=4096)  # episodes ask for the same ones again and again
def behind(layout: str, receptacle: str) -> str:
    """What is opened to reach into a receptacle: ``drawer`` or ``fridge``; an empty word for what is open."""
    thing, box = home_of(layout).receptacle(receptacle)
    if thing.kind in _OWNERS["fridge"]:
        return "fridge"
    moved = _OWNERS["drawer"].get(thing.kind)
    return "drawer" if moved and moved.fullmatch(box.link) else ""


def _fronts_of(kind: str, home: Apartment) -> list[Front]:
    owner = next((one for one in home.mechanisms if one.kind in _OWNERS[kind]), None)
    if owner is None:
        raise UnknownNameError(f"{kind} of {home.name}", kind, [one.kind for one in home.mechanisms])
    model = owner.model.copy().compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    turn, yaw = _turned(owner.quat)

    def world(at: np.ndarray) -> tuple[float, ...]:
        return tuple((np.array(owner.pos[:2]) + (turn[:2, :2] @ at[:2] + turn[:2, 2] * at[2])).tolist())

    found = []
    for joint in owner.model.joints:
        body, handle = data.body(joint.parent.name), data.site(f"handle/{joint.name}").xpos
        if not _OWNERS[kind][owner.kind].fullmatch(body.name):
            continue
        height = owner.pos[2] + turn[2] @ handle
        if owner.kind == "counter" and height < _UPPER:
            continue
        out = turn @ body.xmat.reshape(3, 3)[:, 0]
        facing = math.atan2(out[1], out[0])
        found.append(
            Front(
                kind=kind,
                mechanism=owner.name,
                joint=joint.name,
                link=body.name,
                handle=(*world(handle), float(height)),
                yaw=facing + math.tau * round((yaw - facing) / math.tau),  # whole turns as those of the furniture
                frame=tuple(owner.pos[:2]) if kind == "fridge" else world(body.xpos),
                hinge=world(body.xpos),
                sense=float(np.sign(turn[2] @ data.xaxis[model.joint(joint.name).id])) if kind == "fridge" else 0.0,
                limits=(float(joint.range[0]), float(joint.range[1])),
                **(_door(model, body.id, joint.name, float(height)) if kind == "fridge" else {}),
            )
        )
    return found


def _door(model: mujoco.MjModel, body: int, joint: str, height: float) -> dict[str, float]:
    """Width of a door and upper end of its handle [m], whose middle is at a height [m]; see :class:`Front`."""
    far = []  # from the hinge
    for k in np.flatnonzero((model.geom_bodyid == body) & (model.geom_contype > 0)):
        if not model.geom(k).name.startswith("handle/"):
            turn, _ = _turned(tuple(model.geom_quat[k].tolist()))
            far.append(abs(model.geom_pos[k, 1]) + np.abs(turn[1]) @ model.geom_size[k])
    return {"width": float(max(far)), "top": height + float(model.geom(f"handle/{joint}/bar").size[1])}


def _turned(quat: Quat) -> tuple[np.ndarray, float]:
    """(3, 3) how furniture is turned, and by which yaw [rad]; 0 where it does not stand upright in its own frame."""
    w, x, y, z = quat
    if x or y:
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, np.array(quat, float))
        return flat.reshape(3, 3), 0.0
    yaw = 2 * math.atan2(z, w)
    return np.array([[math.cos(yaw), -math.sin(yaw), 0], [math.sin(yaw), math.cos(yaw), 0], [0, 0, 1]]), yaw
