"""What SIMPLER's tasks share: trials of a grid, objects laid on a table, tests of contact and of boxes, photographs.

Poses, grids, limits and rules are those of the paper (Li et al. 2024, arXiv 2405.05941) and its released code. One
difference: objects are laid a millimetre above their place instead of falling from half a metre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import ContactForce, Part, Physics, SceneBuilder, Task
from manikin.arenas.ground import View, ground
from manikin.assets.paths import data_root
from manikin.errors import AssetError, UnknownNameError
from manikin.math import norm, quat_rotate
from manikin.props.simpler import FRICTION, GROUND_FRICTION, extent_along, simpler_prop
from manikin.sense.pixels import Photograph
from manikin.spec.prop import Prop, Shape
from manikin.tasks.simpler.lamps import Lights, light_up

__all__ = [
    "BRIDGE_TABLE",
    "COUNTER",
    "LEAST_FORCE",
    "LOOKS",
    "SimplerTask",
    "add_object",
    "lies_in_box",
    "longest",
    "made_of",
    "photograph",
    "resting_height",
    "rotated_half",
    "table_top",
    "touched",
]

BRIDGE_TABLE, COUNTER = 0.8695, 0.8875
"""[m] height of the tables of the WidowX and of the Google Robot."""
LEAST_FORCE = 5e-4
"""[N] of a contact that counts: the original's impulse of 1e-6 N s in a physics step of 2 ms."""
LOOKS = ("plain", "matched")
_GAP = 0.001  # [m] under an object when it is laid down


class SimplerTask(Task):
    """A task of SIMPLER's. An episode runs to its time limit, and success counts at its end.

    Class attributes:
        camera: name of the camera that policies see through.
        photograph: file of the real photograph, in ``MANIKIN_DATA/simpler/real_inpainting``.
        drawn: names of the things that are drawn over the photograph.
    """

    camera: ClassVar[str]
    photograph: ClassVar[str]
    drawn: ClassVar[tuple[str, ...]]
    physics = Physics(hz=500.0)
    terminate = False
    beside_photograph = {"look": "matched", "trials": "grid"}

    @dataclass(frozen=True)
    class Config:
        trials: str = "random"  # "grid": the episode's seed is the number of the trial
        look: str = "plain"  # "matched": the real photograph behind what is drawn (visual matching)

    def __init__(self, config: Any = None, **more: Any) -> None:
        super().__init__(config, **more)
        if self.config.look not in LOOKS:
            raise UnknownNameError(f"look of {self.id}", self.config.look, LOOKS)

    def pictures(self, vision: Any) -> Any:
        """Through the task's camera, the photograph behind it where ``look`` is ``matched``."""
        if vision.cameras is None:
            vision = replace(vision, cameras=(self.camera,))
        if self.config.look == "matched":
            vision = replace(vision, stages=(self.photographed(), *vision.stages))
        return vision

    def photographed(self) -> Photograph:
        """The stage that puts the photograph behind what is drawn."""
        return Photograph(photograph(self.photograph), keep=self.drawn, cameras=(self.camera,))


def photograph(name: str) -> str:
    """Path of a real photograph.

    Raises:
        AssetError: it is not there.
    """
    root = data_root()
    path = None if root is None else root / "simpler" / "real_inpainting" / name
    if path is None or not path.is_file():
        raise AssetError(
            f"look='matched' needs the photograph MANIKIN_DATA/simpler/real_inpainting/{name}, which is not there; "
            "look='plain' shows the simulated scene"
        )
    return str(path)


# ---- things ----------------------------------------------------------------------------------------------------------


def table_top(
    b: SceneBuilder,
    height: float,
    *,
    low: tuple[float, float],
    high: tuple[float, float],
    rgba: tuple[float, float, float, float] = (0.66, 0.52, 0.40, 1.0),
    base_camera: View,
    human_camera: View,
    lights: Lights,
) -> Part:
    """A table with its top at ``height`` [m] that reaches from ``low`` to ``high`` (x, y) [m], on a floor at 0."""
    ground(b, height=0.0, base_camera=base_camera, human_camera=human_camera)
    light_up(b, lights)
    half = ((high[0] - low[0]) / 2, (high[1] - low[1]) / 2, height / 2)
    middle = ((high[0] + low[0]) / 2, (high[1] + low[1]) / 2, height / 2)
    block = Shape(type="box", size=half, pos=middle, rgba=rgba)
    table = b.part("table", [block], kind="fixed", friction=GROUND_FRICTION)
    table.source = "stand-in: a box"
    return table


def add_object(b: SceneBuilder, name: str, model: str, *, kind: str = "dynamic") -> tuple[Part, Prop]:
    """One of SIMPLER's objects as the part ``name``, with its meshes or a stand-in, and what it is made of."""
    prop = simpler_prop(model)
    friction = FRICTION if kind == "dynamic" else GROUND_FRICTION
    part = b.part(name, prop.shapes, looks=prop.looks, friction=friction, kind=kind)
    part.source = made_of(prop)
    return part, prop


def made_of(prop: Prop) -> str:
    """Where an object comes from, and whether its looks are missing."""
    return prop.source + (", in one colour" if "mesh" in prop.source and not prop.looks else "")


def resting_height(prop: Prop, quat: Sequence[float] = (1.0, 0.0, 0.0, 0.0)) -> float:
    """[m] of an object's origin over what it is laid on, turned by ``quat``."""
    w, x, y, z = quat
    up = (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y))  # the world's z in the object's frame
    return _GAP - extent_along(prop, up)[0]


# ---- what is asked of an episode -------------------------------------------------------------------------------------


def touched(contacts: Sequence[ContactForce]) -> Tensor:
    """(n,) bool: any of the pairs presses on one another, as the original counts it."""
    return torch.stack([norm(one.value) >= LEAST_FORCE for one in contacts]).any(0)


def rotated_half(quat: Tensor, half: Sequence[float]) -> Tensor:
    """(n, 3) half of an object's box turned by ``quat`` (n, 4) [m]: a vector with signs, as in the original."""
    return quat_rotate(quat, quat.new_tensor(half).expand(len(quat), 3))


def lies_in_box(offset: Tensor, target: Tensor, source: Tensor, *, above: float, aside: float = 0.003) -> Tensor:
    """(n,) bool: a thing's centre of mass is over the target's, within its box.

    Args:
        offset: (n, 3) from the target's centre of mass to the thing's [m].
        target: (n, 3) half of the target's box as it lay at the start, see :func:`rotated_half` [m].
        source: (n, 3) that of the thing.
        above: [m] allowed beyond both boxes in height.
        aside: [m] allowed beyond the target's box to the side.
    """
    over = norm(offset[:, :2]) <= norm(target[:, :2]) + aside
    height = offset[:, 2]
    return over & (height > 0) & (height <= target[:, 2] + source[:, 2] + above)


def longest(count: Tensor, now: Tensor) -> Tensor:
    """(n,) how many control steps in a row a flag has been true: ``count`` before this step, the flag ``now``."""
    return torch.where(now, count + 1, torch.zeros_like(count))
