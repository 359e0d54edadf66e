"""TrackVelocityRough-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Quantity, SceneBuilder
from manikin.arenas.height_field import lay
from manikin.arenas.terrain import patchwork
from manikin.errors import ConfigError
from manikin.math import pose, quat_from_yaw, quat_rotate, quat_to_yaw
from manikin.tasks.locomotion.legged import LeggedHandles
from manikin.tasks.locomotion.track_velocity import TrackVelocity, TrackVelocityHandles
from manikin.toolkit import per_step

__all__ = ["TrackVelocityRough"]

AHEAD, ASIDE = (-0.5, 0.5, 11), (-0.3, 0.3, 7)  # [m] first and last, and how many points the scan has along x and y
_BELOW = 0.005  # [m] the flat floor lies so far below the field's height 0, or feet and cameras would meet both
FEET = 0.35  # [m] half side of the square that the robot stands on at the start


class TrackVelocityRough(TrackVelocity):
    """Walk as commanded over noise, slopes and stairs.

    Randomization: as in TrackVelocity-v1, and the patch of ground where the robot begins, up to ``hardest`` of 1.
    Success: as in TrackVelocity-v1.

    The ground is one height field for all rows, 32 m wide: patches of 4 m with noise of up to 8 cm, slopes of up to 0.3
    and stairs of up to 12 cm. Patches get harder along y; beyond the field the ground is flat. ``terrain_seed`` makes
    another field. The policy knows the heights of 77 points around the base, relative to it. Between the field's points
    they are bilinear in the scan; in the physics the ground there is triangles. On a Warp device contacts at the edges
    of these triangles differ from the CPU's, so after two or three control steps the two part: a joint by up to 0.04
    rad and the base by 3 mm.
    """

    id = "TrackVelocityRough-v1"
    instruction = "walk as commanded over rough ground"
    robots = ("go2", "anymal_c", "h1", "g1")
    observations = {
        **TrackVelocity.observations,
        "scan": Quantity(
            "m", "base, level", "heights of the ground around it, less where the ground would be beneath it at rest"
        ),
    }

    @dataclass(frozen=True)
    class Config(TrackVelocity.Config):
        terrain_seed: int = 0  # of the ground
        hardest: float = 1.0  # [1] episodes begin on patches of the easier share of the field

    def floor(self, b: SceneBuilder) -> None:
        if not 0 < self.config.hardest <= 1:
            raise ConfigError(
                f"option 'hardest' of {self.id} must be above 0 and at most 1, but it is {self.config.hardest}"
            )
        super().floor(b)
        b.spec.geom("floor").pos[2] = -_BELOW
        self.terrain = patchwork(self.config.terrain_seed)
        self.heights = self.terrain.tensor()
        lay(b, self.terrain, name="terrain")

    def scene(self, b: SceneBuilder) -> TrackVelocityHandles:
        made = super().scene(b)
        x, y = (torch.linspace(*ends) for ends in (AHEAD, ASIDE))
        grid = torch.stack(torch.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
        self._grid = torch.cat([grid, torch.zeros(len(grid), 1)], 1)[None]  # (1, points, 3)
        return made

    def place(self, h: LeggedHandles, ep: Episode) -> Tensor:
        field = self.terrain
        count = round(2 * field.half / field.tile)
        rows = max(1, min(count, round(self.config.hardest * count)))
        column, row = ep.rng.integers("column", 0, count).float(), ep.rng.integers("row", 0, rows).float()
        spot = torch.stack([column, row], 1) * field.tile - field.half + field.tile / 2
        spot = spot + ep.rng.uniform("spot", -0.2, 0.2, (2,))
        corners = torch.tensor([[x, y] for x in (-FEET, 0.0, FEET) for y in (-FEET, 0.0, FEET)])
        ground = field.at(self.heights, spot[:, None, :] + corners).amax(1)
        up = ground + h.robot.base_pose[2]
        yaw = ep.rng.uniform("heading", -math.pi, math.pi)
        return pose(torch.cat([spot, up[:, None]], 1), quat_from_yaw(yaw))

    def clearance(self, h: LeggedHandles) -> Tensor:
        place = h.robot.root_pose
        return place[:, 2] - self.terrain.at(self.heights, place[:, :2])

    @per_step
    def scan(self, h: LeggedHandles) -> Tensor:
        """(n, 77) [m] heights of the ground around the base, as it faces, less where the ground would be beneath a
        robot at rest whose base is where it is; at most 1 m either way."""
        place = h.robot.root_pose
        turn = quat_from_yaw(quat_to_yaw(place[:, 3:]))
        points = place[:, None, :2] + quat_rotate(turn[:, None, :], self._grid)[..., :2]
        beneath = place[:, 2:3] - self._height
        return (self.terrain.at(self.heights, points) - beneath).clamp(-1.0, 1.0)

    def observe(self, h: LeggedHandles) -> dict[str, dict[str, Tensor]]:
        seen = super().observe(h)
        return {**seen, "policy": {**seen["policy"], "scan": self.scan(h)}}
