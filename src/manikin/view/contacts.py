"""Contact forces of a state, for lists and for arrows in pictures."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.moved import old_names
from manikin.render.files.caption import draw_arrow
from manikin.render.view import View

__all__ = ["BodyContact", "draw_touches", "touches"]


@dataclass(frozen=True, eq=False)
class BodyContact:
    """Two bodies that press on each other; all their contact points together.

    Attributes:
        names: of the two bodies; the force acts on the second.
        pos: (3,) mean of the contact points, weighted by force [m].
        force: (3,) on the second body in the world [N].
        points: how many contact points.
    """

    names: tuple[str, str]
    pos: np.ndarray
    force: np.ndarray
    points: int

    @property
    def newtons(self) -> float:
        """Size of the force [N]."""
        return float(np.linalg.norm(self.force))


def touches(model: mujoco.MjModel, data: mujoco.MjData, least: float = 1e-3) -> list[BodyContact]:
    """Pairs of bodies in contact, strongest first.

    The second body of a pair is the one that can move; of two that can, the one later in the model.

    Args:
        model: the model.
        data: a state with ``mj_forward`` run.
        least: pairs whose force is smaller are left out [N].
    """
    found: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray, float]]] = {}
    wrench = np.zeros(6)
    for number in range(data.ncon):
        contact = data.contact[number]
        if min(contact.geom) < 0:  # a flex
            continue
        mujoco.mj_contactForce(model, data, number, wrench)
        first, second = (int(model.geom_bodyid[g]) for g in contact.geom)
        # The contact frame's axes are rows; its first points from the first geom to the second, which is pushed there.
        force = contact.frame.reshape(3, 3).T @ wrench[:3]
        still = [model.body_weldid[body] == 0 for body in (first, second)]
        if (still[1] and not still[0]) or (still[0] == still[1] and first > second):
            first, second, force = second, first, -force
        size = float(np.linalg.norm(wrench[:3]))
        found.setdefault((first, second), []).append((contact.pos.copy(), force, size))
    pairs = []
    for (first, second), parts in found.items():
        total = sum(size for _, _, size in parts)
        if total < least:
            continue
        pos = np.sum([pos * size for pos, _, size in parts], axis=0) / total
        force = np.sum([force for _, force, _ in parts], axis=0)
        pairs.append(BodyContact((model.body(first).name, model.body(second).name), pos, force, len(parts)))
    return sorted(pairs, key=lambda touch: -touch.newtons)


def draw_touches(image: np.ndarray, view: View, pairs: list[BodyContact], metres_per_newton: float = 0.02) -> None:
    """Draw forces as arrows into a picture (height, width, 3) uint8 taken from ``view``, in place, not hidden by
    anything. An arrow is at most 0.25 m long in the world."""
    for touch in pairs:
        length = min(touch.newtons * metres_per_newton, 0.25)
        tip = touch.pos + touch.force * (length / max(touch.newtons, 1e-9))
        ahead = (np.stack([touch.pos, tip]) - view.pos) @ view.rotation[:, 2]
        if (ahead > 0.02).all():
            start, end = view.project(np.stack([touch.pos, tip]))
            draw_arrow(image, start, end, width=max(2.0, view.width / 320), colour=(255, 170, 0))


__getattr__ = old_names(__name__)
