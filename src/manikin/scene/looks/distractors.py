"""Things to be seen only, in places where nothing happens."""

from __future__ import annotations

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import UnknownNameError
from manikin.math import quat_from_yaw
from manikin.moved import old_names
from manikin.rng import EpisodeRng
from manikin.scene.looks.item import Rngs, Values, counts, draw, most
from manikin.sim.world import World
from manikin.spec.looks import Distractors
from manikin.spec.vary import Uniform

__all__ = ["DistractorSlots"]

_G = mujoco.mjtGeom
_TYPES = {
    "box": _G.mjGEOM_BOX,
    "capsule": _G.mjGEOM_CAPSULE,
    "cylinder": _G.mjGEOM_CYLINDER,
    "ellipsoid": _G.mjGEOM_ELLIPSOID,
    "sphere": _G.mjGEOM_SPHERE,
}
# Which of three half extents are a shape's MuJoCo sizes (3: none), and which add up to the height of its centre.
_SIZES = {"box": (0, 1, 2), "ellipsoid": (0, 1, 2), "sphere": (0, 3, 3), "capsule": (0, 2, 3), "cylinder": (0, 2, 3)}
_HEIGHTS = {"box": (2, 3), "ellipsoid": (2, 3), "sphere": (0, 3), "capsule": (0, 2), "cylinder": (2, 3)}
_TRIES = 10  # places tried for each
_TRIES_AROUND = 40  # where about half of the places are too near
_TURN = Uniform(-torch.pi, torch.pi)


class DistractorSlots:
    """Slots of fixed shapes, of which a row shows some. Absent ones have alpha 0, which no renderer draws."""

    def __init__(self, spec: mujoco.MjSpec, look: Distractors) -> None:
        self.look, self.per_step = look, look.every == "step"
        self.most = most(look.count)
        # at least one of each shape to choose from: a slot's shape cannot differ between rows
        self.shapes = [look.shapes[i % len(look.shapes)] for i in range(max(self.most, len(look.shapes)))]
        self.slots = [f"distractor/{i}" for i in range(len(self.shapes))]
        for name, shape in zip(self.slots, self.shapes, strict=True):
            spec.worldbody.add_geom(
                name=name,
                type=_TYPES[shape],
                size=(0.02, 0.02, 0.02),
                pos=((look.low[0] + look.high[0]) / 2, (look.low[1] + look.high[1]) / 2, look.height),
                rgba=(0, 0, 0, 0),
                contype=0,
                conaffinity=0,
                group=0,
            )
        self.sizes, self.heights = (torch.tensor([t[s] for s in self.shapes]) for t in (_SIZES, _HEIGHTS))
        self.keep_out = torch.tensor(look.keep_out, dtype=torch.float32).reshape(-1, 4)
        self.joint = None if look.around is None else _joint_of(spec, look.around[0])

    def bind(self, world: World) -> None:
        """Look up ids in the compiled model."""
        self.world = world
        self.ids = tuple(int(world.scene.model.geom(name).id) for name in self.slots)

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        """Sizes, places and colours of all slots."""
        look, rng, k, n = self.look, rngs.of(self.look.every), len(self.ids), rngs.n
        half = torch.cat([draw(rng, "distractor/size", look.size, 3, k), torch.zeros(n, k, 1)], 2)
        size = half.gather(2, self.sizes.expand(n, k, 3))
        height = half.gather(2, self.heights.expand(n, k, 2))
        radius = (half[..., 0] * half[..., 0] + half[..., 1] * half[..., 1]).sqrt()
        wanted = rng.permutation("looks/distractor/which", k) < counts(rng, "distractor/count", look.count)
        tries, apart = self._tries(rng, rows)
        place, found = self._places(tries, radius, wanted, apart)
        z = look.height + height[..., :1] + height[..., 1:]
        alpha = (wanted & found)[..., None].float()
        return {
            ("geom_size", self.ids): size,
            ("geom_pos", self.ids): torch.cat([place, z], 2),
            ("geom_quat", self.ids): quat_from_yaw(draw(rng, "distractor/yaw", _TURN, 1, k)[..., 0]),
            ("geom_rgba", self.ids): torch.cat([draw(rng, "distractor/colour", look.colour, 3, k), alpha], 2),
        }

    def _tries(self, rng: EpisodeRng, rows: np.ndarray | None) -> tuple[Tensor, Tensor | None]:
        """Places to try (n, k, tries, 2), and which of them are far enough from the part that they lie around."""
        k, low, high = len(self.ids), torch.tensor(self.look.low), torch.tensor(self.look.high)
        if self.joint is None or self.look.around is None:
            return rng.uniform("looks/distractor/xy", low, high, (k, _TRIES, 2)), None
        _, reach, apart = self.look.around
        at = int(self.world.scene.model.joint(self.joint).qposadr[0])
        every = np.arange(rng.n, dtype=np.int32) if rows is None else rows
        middle = torch.from_numpy(self.world.places(every)["qpos"][:, at : at + 2].astype(np.float32))[:, None, None]
        tries = middle + rng.uniform("looks/distractor/xy", -reach, reach, (k, _TRIES_AROUND, 2))
        tries = torch.minimum(torch.maximum(tries, low), high)
        gap = tries - middle
        return tries, (gap * gap).sum(-1) > apart * apart

    def _places(self, tries: Tensor, radius: Tensor, wanted: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """The first place (n, k, 2) of each that is out of the way and apart from those before it; is there one?"""
        x, y = (tries[..., None, i] for i in (0, 1))
        low, high = self.keep_out[:, :2], self.keep_out[:, 2:]
        dx = torch.maximum(low[:, 0] - x, x - high[:, 0]).clamp(min=0.0)
        dy = torch.maximum(low[:, 1] - y, y - high[:, 1]).clamp(min=0.0)
        free = (dx * dx + dy * dy > (radius * radius)[:, :, None, None]).all(-1)  # (n, k, tries)
        free = free if allowed is None else free & allowed
        n, k = radius.shape
        rows = torch.arange(n)
        place, found = torch.zeros(n, k, 2), torch.zeros(n, k, dtype=torch.bool)
        for i in range(k):
            good = free[:, i]
            if i:
                gap = tries[:, i, :, None] - place[:, None, :i]
                apart = radius[:, i, None] + radius[:, :i]
                clear = (gap * gap).sum(-1) > (apart * apart)[:, None]
                good = good & (clear | ~(found & wanted)[:, None, :i]).all(-1)
            first = good.to(torch.uint8).argmax(1)
            place[:, i], found[:, i] = tries[rows, i, first], good[rows, first]
        return place, found


def _joint_of(spec: mujoco.MjSpec, part: str) -> str | None:
    """Name of the free joint of a part, of the first that has one for ""; None where no part can move."""
    free = {
        body.name: joint
        for body in spec.bodies
        for joint in body.joints
        if joint.type == mujoco.mjtJoint.mjJNT_FREE and body.name and "/" not in body.name
    }
    if part and part not in free:
        raise UnknownNameError("part that can move, for distractors to lie around", part, free)
    if not free:
        return None
    joint = free[part or next(iter(free))]
    joint.name = joint.name or f"looks/{part}/free"
    return str(joint.name)


__getattr__ = old_names(__name__)
