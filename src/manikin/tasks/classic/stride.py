"""How the humanoid walks: its legs swing in turn, and where each foot comes down keeps it up, in closed form.

The form is SIMBICON's (Yin, Loken and van de Panne, SIGGRAPH 2007), with roles that change by time alone. The leg that
swings goes further forward or outward the more the centre of mass is beyond the foot that stands, and the faster it
moves. The hip of the leg that stands holds the torso and takes up what the swing pulls. The numbers were found by a
search for a fast gait that lasts (CMA-ES, some 2,000 gaits of 3 to 10 s, on other starts than those that are counted).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from manikin.math import atan2

__all__ = ["beyond", "legs", "stride"]


class Spring(NamedTuple):
    """``stiff`` [N m/rad] and ``damped`` [N m s/rad]."""

    stiff: float
    damped: float

    def pull(self, away: Tensor, rate: Tensor) -> Tensor:
        """(n,) [N m] toward a place that is ``away`` [rad], against ``rate`` [rad/s]."""
        return self.stiff * away - self.damped * rate


STEP = 0.362  # [s] of each step
EARLY = 0.22  # [1] of the first step that is left out
LEAN = 0.214  # [rad] of the torso, forward
FORWARD, FORWARD_PLACE, FORWARD_RATE = 0.021, 0.7, 0.022  # [rad, rad/m, rad s/m] of the thigh that swings, at its end
LIFTS = 0.5  # [rad] by which it is further forward in the middle of the swing
OUTWARD, OUTWARD_PLACE, OUTWARD_RATE = 0.029, 0.63, 0.033  # [rad, rad/m, rad s/m] and aside
BENT, BENDS = 0.2, 0.86  # [rad] its knee, and how much more in the middle
TOE_DOWN = -0.11  # [rad] its foot, in the world
ROLL_ANGLE, ROLL_RATE = 0.61, -0.71  # [1, rad s/m] the ankle that stands turns by the torso's roll and the drift
RELIEF = 0.62  # [1] of the swing's torques that the other hip takes up
BEARS = 12.5  # [N m] of the hip that stands, since the pelvis would sink on the other side
ARMS_SWING = -0.25  # [1] of the angle between the thighs
PITCH, ROLL = Spring(143.0, 17.0), Spring(390.0, 3.1)  # of the torso, by the hip that stands
SWINGS, KNEES, ANKLES, TWISTS = Spring(321.0, 0.8), Spring(129.0, 3.8), Spring(58.0, 0.9), Spring(60.0, 3.0)
FOOT, FOOT_ROLL = Spring(40.0, 0.7), Spring(20.0, 0.4)  # of the foot in the air
WAIST, ARMS = Spring(96.0, 3.8), Spring(30.0, 1.0)
HIP_PULL, OUT_PULL = 120.0, 40.0  # [N m] of the robot's hips at most
OUT_RANGE, FOOT_RANGE = (-0.45, 0.1), (-0.8, 0.8)  # [rad] what is asked for is within that
THIGH, SHIN, TRUNK, APART = 0.383, 0.36, 0.28, 0.1  # [m] hip to knee to ankle; hips to middle; hip beside the middle


def stride(time: Tensor, joints: Tensor, rates: Tensor, up: Tensor, velocity: Tensor, turns: Tensor) -> Tensor:
    """(n, 21) [N m] with which the humanoid walks to where its torso faces.

    Args:
        time: (n,) [s] since it stood.
        joints: (n, 21) [rad] of waist, right leg, left leg and arms, in the robot's order.
        rates: (n, 21) [rad/s] their speeds.
        up: (n, 3) the world's z axis in the torso's frame.
        velocity: (n, 3) [m/s] of the centre of mass in the torso's frame.
        turns: (n, 3) [rad/s] turn rates about the torso's axes.
    """
    steps = time / STEP + EARLY
    done = torch.floor(steps)
    middle = torch.sin(math.pi * (steps - done))  # 1 in the middle of a step
    left = torch.remainder(done, 2.0) < 0.5  # swings
    side = torch.where(left, 1.0, -1.0)
    swing, stand = legs(left, joints)
    swing_rate, stand_rate = legs(left, rates)
    out, twist, hip, knee, ankle, ankle_roll = swing

    pitch, roll = atan2(-up[:, 0], up[:, 2]), atan2(up[:, 1], up[:, 2])  # forward; to the right
    rise = (velocity * up).sum(1)
    speed, drift = velocity[:, 0] - up[:, 0] * rise, velocity[:, 1] - up[:, 1] * rise
    pelvis, tips = pitch + joints[:, 1], roll + joints[:, 2]
    ahead, aside = beyond(side, pitch, roll, pelvis, tips, stand)

    forward = FORWARD + FORWARD_PLACE * ahead + FORWARD_RATE * speed + LIFTS * middle
    outward = OUTWARD + side * (OUTWARD_PLACE * aside + OUTWARD_RATE * drift)
    hip_pull = SWINGS.pull(-forward - pelvis - hip, swing_rate[2]).clamp(-HIP_PULL, HIP_PULL)
    out_pull = SWINGS.pull((side * tips - outward).clamp(*OUT_RANGE) - out, swing_rate[0]).clamp(-OUT_PULL, OUT_PULL)
    level = (TOE_DOWN - pelvis - hip + knee).clamp(*FOOT_RANGE)
    swings = [
        out_pull,
        TWISTS.pull(-twist, swing_rate[1]),
        hip_pull,
        KNEES.pull(-BENT - BENDS * middle - knee, swing_rate[3]),
        FOOT.pull(level - ankle, swing_rate[4]),
        FOOT_ROLL.pull(side * out - tips - ankle_roll, swing_rate[5]),
    ]
    stands = [
        side * ROLL.pull(roll, -turns[:, 0]) + RELIEF * out_pull - BEARS,
        TWISTS.pull(-stand[1], stand_rate[1]),
        PITCH.pull(pitch - LEAN, -turns[:, 1]) - RELIEF * hip_pull,
        KNEES.pull(-stand[3], stand_rate[3]),
        ANKLES.pull(-stand[4], stand_rate[4]),
        ANKLES.pull(ROLL_ANGLE * roll + ROLL_RATE * drift - stand[5], stand_rate[5]),
    ]
    one, other = torch.stack(swings, 1), torch.stack(stands, 1)
    right_leg, left_leg = torch.where(left[:, None], other, one), torch.where(left[:, None], one, other)
    waist = [WAIST.pull(-joints[:, k], rates[:, k]) for k in range(3)]
    arms = [ARMS.pull(-joints[:, k], rates[:, k]) for k in range(15, 21)]
    swung = ARMS.stiff * ARMS_SWING * side * (hip - stand[2])
    arms[0], arms[3] = arms[0] + swung, arms[3] + swung
    return torch.cat([torch.stack(waist, 1), right_leg, left_leg, torch.stack(arms, 1)], 1)


def beyond(
    side: Tensor, pitch: Tensor, roll: Tensor, pelvis: Tensor, tips: Tensor, stand: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """(n,) and (n,) [m] how far the centre of mass is ahead of the ankle that stands, and to its left, about.

    Args:
        side: (n,) of the leg that swings: 1 left, -1 right.
        pitch: (n,) [rad] of the torso, forward.
        roll: (n,) [rad] of the torso, to the right.
        pelvis: (n,) [rad] pitch of the pelvis.
        tips: (n,) [rad] roll of the pelvis.
        stand: (n,) [rad] of each joint of the leg that stands.
    """
    thigh, leans = pelvis + stand[2], tips + side * stand[0]
    ahead = THIGH * torch.sin(thigh) + SHIN * torch.sin(thigh - stand[3]) + TRUNK * torch.sin(pitch)
    return ahead, side * APART - (THIGH + SHIN) * torch.sin(leans) - TRUNK * torch.sin(roll)


def legs(left: Tensor, values: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Of (n, 21) values those of the leg that swings and of the one that stands: (n,) of each joint."""
    one, other = values[:, 9:15], values[:, 3:9]
    swings = torch.where(left[:, None], one, other)
    return swings.unbind(1), torch.where(left[:, None], other, one).unbind(1)
