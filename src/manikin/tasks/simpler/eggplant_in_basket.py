"""WidowXEggplantInBasket-v2."""

from __future__ import annotations

import math
from dataclasses import replace

from torch import Tensor

from manikin import Part, Robot, SceneBuilder
from manikin.props.simpler import GROUND_FRICTION, simpler_prop
from manikin.robots.widowx_bridge import SINK_BASE, SINK_CAMERA
from manikin.tasks.simpler.common import made_of, table_top
from manikin.tasks.simpler.lamps import SINK_LIGHT
from manikin.tasks.simpler.put_on import HALF_TURN, PutOnHandles, PutOnTask

__all__ = ["WidowXEggplantInBasket"]

_SINK = (-0.16, 0.13, 0.88)  # [m] where the sink stands
_TARGET = (-0.125, 0.025, 0.932)  # [m] where the original's plate of the target comes to rest, in the basket


class WidowXEggplantInBasket(PutOnTask):
    """Put the eggplant from the sink's basin into its basket: SIMPLER's PutEggplantInBasketScene.

    Randomization: one of 24 trials: the eggplant at one of eight places in the basin, turned by 0, 45 or -45 degrees;
    it comes to rest from there. With ``trials="grid"`` the seed is the number of the trial.
    Success: the eggplant's centre of mass is over the basket's bottom, within a box of 13 x 8 cm, at most 8 cm high. It
    counts at the end of the episode.

    Numbers: Li et al. 2024 (arXiv 2405.05941) and its released code; see docs/simpler.md for what differs.
    """

    id = "WidowXEggplantInBasket-v2"
    instruction = "put eggplant into yellow basket"
    horizon_s = 24.0
    settle_s = 1.5
    source_name, source_model = "eggplant", "eggplant"
    target_name, target_model = "basket", "dummy_sink_target_plane"
    photograph = "bridge_sink.png"
    drawn = ("robot", "eggplant")
    places = tuple(((x, y), _TARGET[:2]) for x in (-0.115, -0.095) for y in (0.191, 0.201, 0.211, 0.221))
    turns = (0.0, math.pi / 4, -math.pi / 4)
    above = 0.06
    alone = False
    keyframe = "sink"
    floor = 0.921
    lift = 0.04

    def arena(self, b: SceneBuilder) -> tuple[Part, ...]:
        table = table_top(
            b,
            SINK_BASE[2] - 0.0005,
            low=(-0.75, -0.75),
            high=(0.35, 0.75),
            base_camera=((-0.65, 0.1, 1.45), (-0.1, 0.1, 0.95)),
            human_camera=((-0.75, 0.65, 1.55), (-0.05, 0.1, 0.95)),
            lights=SINK_LIGHT,
        )
        made = simpler_prop("sink")
        sink = b.part("sink", made.shapes, kind="fixed", pos=_SINK, looks=made.looks, friction=GROUND_FRICTION)
        sink.source = made_of(made)
        return table, sink

    def robot(self, b: SceneBuilder) -> Robot:
        robot = b.robot(pos=SINK_BASE, quat=HALF_TURN)
        b.camera(SINK_CAMERA, on=robot, link=SINK_CAMERA.on)
        return robot

    def add_target(self, b: SceneBuilder) -> Part:
        """The bottom of the basket: a plate that nobody sees, as in the original, but fixed."""
        made = simpler_prop(self.target_model)
        unseen = [replace(shape, rgba=(0.0, 0.0, 0.0, 0.0)) for shape in made.shapes]
        target = b.part(self.target_name, unseen, kind="fixed", pos=_TARGET, friction=GROUND_FRICTION)
        target.source = "the original's plate, which nobody sees"
        return target

    def place_target(self, h: PutOnHandles, spot: Tensor) -> None:
        """It stays where it is."""
