"""Cameras that are placed, turned and zoomed about what the scene declares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from manikin.errors import UnknownNameError
from manikin.math import dot, norm, quat_from_rotvec, quat_mul, quat_normalize, quat_rotate
from manikin.scene.builder import SceneBuilder
from manikin.scene.looks.item import Item, Rngs, Values, draw
from manikin.sim.world import World
from manikin.spec.looks import CameraLook, Looks

__all__ = ["cameras"]

_FOR_PEOPLE = "human_camera"
_SOMEWHERE = 0.5  # [m] how far away a camera without a target is taken to look
_FLIP = torch.tensor([1.0, -1.0, -1.0])  # MuJoCo's camera frame is the optical frame turned by half about x
_FORWARD = torch.tensor([[0.0, 0.0, -1.0]])


def cameras(looks: Looks, builder: SceneBuilder) -> Iterable[Item]:
    """The cameras that vary. Raises :class:`UnknownNameError` for one that is not there."""
    names = [*builder.cameras, *(c.name for c in builder.spec.cameras)]
    if looks.cameras is None:
        return
    named = looks.cameras
    if not isinstance(named, Mapping):
        named = {name: named for name in names if name != _FOR_PEOPLE}
    for name, look in named.items():
        if name not in names:
            raise UnknownNameError("camera", name, names)
        yield _Camera(name, (look,) if isinstance(look, CameraLook) else tuple(look), builder)


class _Camera:
    def __init__(self, name: str, looks: tuple[CameraLook, ...], builder: SceneBuilder) -> None:
        self.name, self.looks = name, looks
        stepping = [look for look in looks if look.every == "step"]
        self.per_step = bool(stepping)
        # what must be worked out anew at a step: place, direction, width
        self.moves = any(look.shift for look in stepping)
        self.turns = any(look.turn or (look.shift and look.keep_target) for look in stepping)
        self.widens = any(look.fovy for look in stepping)
        declared = builder.cameras.get(name)
        target = None if declared is None else declared.target
        self.reach = _SOMEWHERE if declared is None or target is None else math.dist(declared.pos, target)

    def bind(self, world: World) -> None:
        model = world.scene.model
        self.id = int(model.camera(self.name).id)
        self.pos = torch.from_numpy(model.cam_pos[self.id].astype(np.float32))[None]
        self.quat = torch.from_numpy(model.cam_quat[self.id].astype(np.float32))[None]
        self.sensor, self.intrinsic = model.cam_sensorsize[self.id], model.cam_intrinsic[self.id]
        self.has_lens = self.sensor[1] > 0
        self.fovy = float(model.cam_fovy[self.id])
        if self.has_lens:
            self.fovy = math.degrees(2 * math.atan(self.sensor[1] / 2 / self.intrinsic[1]))

    def draw(self, rngs: Rngs, rows: np.ndarray | None) -> Values:
        pos, quat, fovy = self.pos, self.quat, torch.full((1, 1), self.fovy)
        reach: Tensor | float = self.reach
        every = not rngs.within
        shifted = turned = widened = False
        for k, look in enumerate(self.looks):
            rng, name = rngs.of(look.every), f"camera/{self.name}/{k}"
            if look.shift is not None and (every or self.moves or (self.turns and look.keep_target)):
                before, pos, shifted = pos, pos + draw(rng, f"{name}/shift", look.shift, 3), True
                if look.keep_target and (every or self.turns):
                    quat, reach = _towards(before, pos, quat, reach)
                    turned = True
            if look.turn is not None and (every or self.turns):
                turn = draw(rng, f"{name}/turn", look.turn, 3) * _FLIP
                quat, turned = quat_mul(quat, quat_from_rotvec(turn)), True
            if look.fovy is not None and (every or self.widens):
                more = draw(rng, f"{name}/fovy", look.fovy, 1) * math.degrees(1)
                fovy, widened = (fovy + more).clamp(1.0, 170.0), True
        out: Values = {}
        if shifted and (every or self.moves):
            out["cam_pos", (self.id,)] = pos[:, None]
        if turned:
            out["cam_quat", (self.id,)] = quat_normalize(quat)[:, None]
        if widened and self.has_lens:
            half = fovy * math.radians(0.5)
            lens = torch.tensor(self.intrinsic, dtype=torch.float32).repeat(len(fovy), 1)
            lens[:, :2] *= math.tan(math.radians(self.fovy) / 2) / (torch.sin(half) / torch.cos(half))
            out["cam_intrinsic", (self.id,)] = lens[:, None]
        elif widened:
            out["cam_fovy", (self.id,)] = fovy
        return out


def _towards(before: Tensor, after: Tensor, quat: Tensor, reach: Tensor | float) -> tuple[Tensor, Tensor]:
    """``quat`` turned the shortest way to look from ``after`` where it looked from ``before``, and how far that is."""
    forward = quat_rotate(quat, _FORWARD.expand(len(quat), 3))
    wanted = before + forward * reach - after
    far = norm(wanted, keepdim=True).clamp(min=1e-6)
    forward, wanted = forward.expand_as(wanted), wanted / far
    turn = torch.cat([1 + dot(forward, wanted)[:, None], torch.linalg.cross(forward, wanted)], 1)
    return quat_mul(quat_normalize(turn), quat.expand(len(turn), 4)), far
