"""HopperStand-v1 and HopperHop-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Quantity, SceneBuilder
from manikin.errors import ConfigError
from manikin.math import atan2, pose, quat_from_axis_angle
from manikin.tasks.classic.gait import GaitHandles, GaitTask, small_control
from manikin.toolkit import per_step, tolerance

__all__ = ["HopperHop", "HopperStand"]

HEIGHT = (0.6, 2.0)  # [m] of the torso's centre of mass over the foot's: what counts as standing


class HopperStand(GaitTask):
    """Get up and stand on one leg.

    Randomization: all joints, uniform over their ranges, of the hip from ``hip_start``; how far the torso is turned,
    the full circle. The hopper falls from 1 m.
    Success: for the last ``hold_steps`` (2 s) the torso was at least 0.6 m over the foot.

    Numbers: dm_control's hopper, also its reward; it has no success, that is chosen here. An episode has the 600 steps
    at 25 Hz of ManiSkill3 3.0.1, with 200 Hz of physics where that has 100. ManiSkill3's reward takes heights from the
    origins of links, which gives 8 cm less, and leaves out that small actions are better: ``published_reward`` does so,
    too, and changes neither success nor what is observed. It moves joints by position servos,
    as ``control="joint_delta_pos"`` does; here the actions are the torques of dm_control's motors. Its hip bends by 144
    degrees, as here at the start: beyond that the foot would begin inside the torso.
    """

    id = "HopperStand-v1"
    instruction = "stand up on one leg"
    robots = ("hopper",)
    robot_needs = (*GaitTask.robot_needs, "vertical base", "4 joints", "link torso", "link foot")
    horizon_s = 24.0
    control_hz = 25.0
    eye, focus, fovy = (0.0, -2.8, 0.8), (0.0, 0.0, 0.5), math.pi / 4
    observations = {
        **GaitTask.observations,
        "height": Quantity("m", "world", "of the torso's centre of mass over the foot's"),
        "foot_forces": Quantity("log(1 + N)", "", "of heel and toe on the ground"),
    }
    reward_terms = {
        "stand": "stands x small: 1 where the torso is 0.6 to 2 m over the foot, else 0; dm_control's tolerance of the "
        "actions, scaled to at least 4/5. As published, only stands, the height from the links' origins"
    }

    @dataclass(frozen=True)
    class Config(GaitTask.Config):
        published_reward: bool = False  # whether the dense reward is ManiSkill3's
        start_noise: float = 0.0
        hip_start: float = math.radians(-144)  # [rad] the hip begins no further bent
        hold_steps: int = 50  # [control steps] success: it went well for so long

    def scene(self, b: SceneBuilder) -> GaitHandles:
        made = super().scene(b)
        links = {link.name: link for link in made.robot.arm.links}
        self._torso, self._foot = links["torso"].com, links["foot"].com
        self._hinges = [links[name].pos[2] for name in ("pelvis", "thigh", "calf", "foot")]  # each below the one before
        return made

    def start(self, h: GaitHandles, ep: Episode) -> None:
        legs = h.robot.limits
        low = torch.maximum(legs[:, 0], torch.tensor([-math.inf, self.config.hip_start, -math.inf, -math.inf]))
        share = ep.rng.uniform("joints", 0.0, 1.0, (4,))
        h.robot.set_qpos(low + share * (legs[:, 1] - low))
        turn = quat_from_axis_angle(torch.tensor([0.0, 1.0, 0.0]), ep.rng.uniform("root", -math.pi, math.pi))
        place = torch.tensor([0.0, 0.0, 1.0]).expand(h.n, 3)
        h.robot.set_root(pose(place, turn))
        h.view.set_pose(torch.zeros(h.n, 3))

    @per_step
    def height(self, h: GaitHandles) -> Tensor:
        """(n,) [m] of the torso's centre of mass over the foot's."""
        up, ahead = self._directions(h)
        torso = self._torso[2] * up[:, 0] - self._torso[0] * ahead[:, 0]
        foot = self._foot[2] * up[:, 4] - self._foot[0] * ahead[:, 4]
        return torso - self._ankle(h, up) - foot

    def _ankle(self, h: GaitHandles, up: Tensor) -> Tensor:
        """(n,) [m] height of the foot's origin over the torso's."""
        return sum((z * up[:, k] for k, z in enumerate(self._hinges)), torch.zeros(h.n))

    def _directions(self, h: GaitHandles) -> tuple[Tensor, Tensor]:
        """Cosine and sine (n, 5) of each link's pitch, the torso's first."""
        turn = h.robot.root_pose
        root = 2.0 * atan2(turn[:, 5], turn[:, 3])
        pitch = root[:, None] + torch.cumsum(torch.cat([torch.zeros(h.n, 1), h.robot.arm_qpos], 1), 1)
        return torch.cos(pitch), torch.sin(pitch)

    def upright(self, h: GaitHandles) -> Tensor:
        height = self.height(h)
        return (height >= HEIGHT[0]) & (height <= HEIGHT[1])

    def well(self, h: GaitHandles) -> Tensor:
        return self.upright(h)

    def stands(self, h: GaitHandles) -> Tensor:
        """(n,) dm_control's tolerance of the height, which has no margin."""
        height = -self._ankle(h, self._directions(h)[0]) if self.config.published_reward else self.height(h)
        return tolerance(height, low=HEIGHT[0], high=HEIGHT[1])

    def reward(self, h: GaitHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        small = 1.0 if self.config.published_reward else small_control(action)
        return {"stand": self.stands(h) * small}


class HopperHop(HopperStand):
    """Hop along x on one leg, at 2 m/s.

    Randomization: as in HopperStand-v1.
    Success: for the last ``hold_steps`` (2 s) the centre of mass moved along x with at least ``fast_share`` of the
    speed, in the mean over ``pace_s``, and at the end the torso is at least 0.6 m over the foot.

    Numbers: dm_control's hopper, with the times of HopperStand-v1. Its reward is that of the defaults. By it a hopper
    that stands for longer and moves less fast than 2 m/s earns as much; a recipe that is to learn the speed pays for
    more. ManiSkill3's reward has other heights, as in HopperStand-v1; ``published_reward`` has them, too.
    """

    id = "HopperHop-v1"
    instruction = "hop along x"
    wanted = 2.0
    reward_terms = {
        "hop": "stands x moves: 1 where the torso is 0.6 to 2 m over the foot, else 0; dm_control's tolerance of the "
        "speed along x (from 0 at rest to 1 at paid_speed, linear). As published, the height is from the links' origins"
    }

    @dataclass(frozen=True)
    class Config(HopperStand.Config):
        paid_speed: float = 2.0  # [m/s] up to which the reward rises

    def scene(self, b: SceneBuilder) -> GaitHandles:
        c = self.config
        if not c.paid_speed > 0:
            raise ConfigError(f"{self.id} pays for a speed above 0 m/s, but paid_speed is {c.paid_speed}")
        return super().scene(b)

    def well(self, h: GaitHandles) -> Tensor:
        return h.pace.value >= self.config.fast_share * self.wanted

    def evaluate(self, h: GaitHandles) -> dict[str, Tensor]:
        ev = super().evaluate(h)
        return {**ev, "success": ev["success"] & ev["upright"]}

    def reward(self, h: GaitHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {"hop": self.stands(h) * self.moves(h, self.config.paid_speed)}
