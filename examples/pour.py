"""A task with a tilted grasp and many small parts: pour eight balls from a cup into a bowl.

python examples/pour.py
manikin check examples/pour.py
manikin view examples/pour.py --film pour.mp4 --num-envs 4
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

import manikin
from manikin import Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Shape, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.plan.executor import WaypointExecutor
from manikin.toolkit import above, closeness, noisy_rest, tilted

RAISED = 0.6  # [rad] the gripper points down and so far forward when it grasps
TIPPED = 2.0  # [rad] how far the cup is tipped in the end
SIDES = 8  # an even number: two sides face the fingers


def vessel(radius: float, height: float, *, thick: float, lean: float = 0.0) -> list[Shape]:
    """A floor and round walls of boxes, all so ``thick`` [m]. Its origin is the middle of its bottom; the walls lean
    outward by ``lean`` [rad]."""
    shapes = [Shape(type="cylinder", size=(radius, thick / 2), pos=(0, 0, thick / 2))]
    half = height / 2 / math.cos(lean)
    out = radius + height / 2 * math.tan(lean)
    for k in range(SIDES):
        turn = 2 * math.pi * k / SIDES
        c, s, cl, sl = math.cos(turn / 2), math.sin(turn / 2), math.cos(lean / 2), math.sin(lean / 2)
        width = (radius + height * math.tan(lean)) * math.tan(math.pi / SIDES)
        middle = (out * math.cos(turn), out * math.sin(turn), height / 2)
        shapes.append(
            Shape(type="box", size=(thick / 2, width, half), pos=middle, quat=(c * cl, -s * sl, c * sl, s * cl))
        )
    return shapes


@dataclass
class PourHandles(Handles):
    robot: Robot
    cup: Part
    bowl: Part
    balls: list[Part]
    grasp: Grasp


@manikin.register
class PourBalls(Task):
    """Pour eight balls from a cup into a bowl.

    Randomization: the places of cup and bowl, uniform in a square each; how the balls lie in the cup; the arm's
    joints, a little noise about rest.
    Success: all balls are inside the bowl, below its rim, and the cup is not.
    """

    id = "PourBalls-v1"
    horizon_s = 9.0
    settle_s = 0.3  # the balls come to rest in the cup before the episode begins
    instruction = "pour the balls into the bowl"
    robots = ("panda",)
    reward_max = 6.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1"),
        "cup_pose": Quantity("m, quaternion wxyz", "world"),
        "bowl_pos": Quantity("m", "world"),
        "ball_pos": Quantity("m", "world", "eight balls"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to where the cup is held",
        "grasp": "1 while the cup is grasped",
        "carry": "while grasped, 1 - tanh(5 d), d from the cup to 15 cm above the bowl",
        "pour": "twice the share of the balls that are in the bowl",
        "success": "1 in success",
    }

    @dataclass(frozen=True)
    class Config:
        balls: int = 8
        ball_radius: float = 0.0075  # [m]
        cup_radius: float = 0.03  # [m]
        cup_height: float = 0.1  # [m]
        grasp_height: float = 0.075  # [m] above the cup's bottom
        bowl_radius: float = 0.055  # [m] at its bottom
        bowl_height: float = 0.05  # [m]
        bowl_lean: float = 0.5  # [rad] of its walls
        spread: float = 0.04  # [m] half size of the squares in which cup and bowl start
        cup_xy: tuple[float, float] = (0.0, -0.12)  # [m] middle of the cup's square
        bowl_xy: tuple[float, float] = (-0.14, 0.14)  # [m] middle of the bowl's square

    def scene(self, b: SceneBuilder) -> PourHandles:
        c = self.config
        table(b)
        robot = b.robot()
        shapes = vessel(c.cup_radius, c.cup_height, thick=0.004)
        # of two things that touch, the larger friction counts: the gripper's fingers bring their own
        cup = b.part("cup", shapes, density=600.0, friction=0.2, rgba=(0.3, 0.55, 0.85, 0.35))
        # a ball falls at 1.5 m/s, 7.5 mm per physics step of 5 ms; it would go through a thinner floor
        shapes = vessel(c.bowl_radius, c.bowl_height, thick=0.01, lean=c.bowl_lean)
        bowl = b.part("bowl", shapes, kind="kinematic", rgba=(0.9, 0.88, 0.8, 1))
        balls = []
        for k in range(c.balls):
            balls.append(b.sphere(f"ball{k}", radius=c.ball_radius, friction=0.2, rgba=(0.9, 0.35, 0.1, 1)))
            rolls = b.spec.geom(f"ball{k}/0")
            rolls.condim, rolls.friction[2] = 6, 0.0002  # [m] resists rolling
        return PourHandles(robot=robot, cup=cup, bowl=bowl, balls=balls, grasp=b.grasp(robot, cup))

    def start(self, h: PourHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep)
        zero = torch.zeros(h.n, 1)
        cup = torch.tensor(c.cup_xy) + ep.rng.uniform("cup/xy", -c.spread, c.spread, (2,))
        bowl = torch.tensor(c.bowl_xy) + ep.rng.uniform("bowl/xy", -c.spread, c.spread, (2,))
        h.cup.set_pose(torch.cat([cup, zero], 1))
        h.bowl.set_pose(torch.cat([bowl, zero], 1))
        turn = ep.rng.uniform("balls/turn", 0.0, math.pi / 2)
        for k, ball in enumerate(h.balls):  # layers of four in the cup
            angle = turn + k * math.pi / 2
            ring = 1.6 * c.ball_radius * torch.stack([torch.cos(angle), torch.sin(angle)], 1)
            height = torch.full((h.n, 1), 0.006 + c.ball_radius * (1 + 2.2 * (k // 4)))
            ball.set_pose(torch.cat([cup + ring, height], 1))

    def in_bowl(self, h: PourHandles, things: list[Part]) -> Tensor:
        """(n, things) bool: which of them have their origin inside the bowl, below its rim."""
        c = self.config
        away = torch.stack([thing.pos for thing in things], 1) - h.bowl.pos[:, None]
        rim = c.bowl_radius + c.bowl_height * math.tan(c.bowl_lean)
        return (norm(away[..., :2]) < rim) & (away[..., 2] < c.bowl_height)

    def held_at(self, h: PourHandles) -> Tensor:
        """(n, 3) where the gripper holds the cup [m], while it stands."""
        return h.cup.pos + torch.tensor([0.0, 0.0, self.config.grasp_height])

    def evaluate(self, h: PourHandles) -> dict[str, Tensor]:
        inside = self.in_bowl(h, h.balls) & ~self.in_bowl(h, [h.cup])
        return {"success": inside.all(1), "poured": inside.float().mean(1), "is_grasped": h.grasp.value}

    def observe(self, h: PourHandles) -> dict[str, dict[str, Tensor]]:
        policy = {
            "tcp_pose": h.robot.tcp_pose,
            "is_grasped": h.grasp.value,
            "cup_pose": h.cup.pose,
            "bowl_pos": h.bowl.pos,
        }
        return {"policy": policy, "privileged": {"ball_pos": torch.cat([ball.pos for ball in h.balls], 1)}}

    def reward(self, h: PourHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        over = h.bowl.pos + torch.tensor([0.0, 0.0, 0.15])
        grasped = ev["is_grasped"].float()
        return {
            "reach": closeness(norm(self.held_at(h) - h.robot.tcp_pos), 5.0),
            "grasp": grasped,
            "carry": grasped * closeness(norm(h.cup.pos - over), 5.0),
            "pour": 2.0 * ev["poured"],
            "success": ev["success"].float(),
        }

    def expert(self, h: PourHandles) -> list[Waypoint]:
        at, raised = self.held_at(h), tilted(h.robot, RAISED)  # the gripper opens sideways
        before = at - 0.12 * torch.tensor([math.sin(RAISED), 0.0, -math.cos(RAISED)])  # back along the gripper's axis
        lifted = above(at, 0.15)
        return [
            Waypoint(name="before", pose=pose(before, raised), gripper=1, pos_tol=0.02, rot_tol=0.1),
            Waypoint(name="around", pose=pose(at, raised), gripper=1, speed=0.3),
            Waypoint(name="close", pose=pose(at, raised), gripper=-1, pos_tol=0.01),
            Waypoint(name="lift", pose=pose(lifted, raised), gripper=-1, pos_tol=0.02, speed=0.3),
            self._tipped(h, "over", 0.4),
            self._tipped(h, "tip", 1.2),
            self._tipped(h, "pour", TIPPED).hold(),
        ]

    def _tipped(self, h: PourHandles, name: str, angle: float) -> Waypoint:
        """The cup tipped forward by ``angle`` [rad], its mouth over the middle of the bowl, its bottom clear of it."""
        c = self.config
        back = (c.cup_height - c.grasp_height) * math.sin(angle)  # [m] from the mouth to the TCP
        height = c.bowl_height + 0.07 + c.grasp_height * max(math.cos(angle), 0.0)
        place = above(h.bowl.pos, height) - torch.tensor([back + 0.01, 0.0, 0.0])  # balls fly forward a little
        target = pose(place, tilted(h.robot, RAISED - angle))
        return Waypoint(name=name, pose=target, gripper=-1, pos_tol=0.02, rot_tol=0.1, speed=0.3, turn=1.5, timeout_s=3)


def main(episodes: int = 32) -> None:
    env = manikin.make(PourBalls, num_envs=episodes, autoreset="disabled")
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    done = torch.zeros(episodes, dtype=torch.bool)
    poured = done.clone()
    while not done.all():
        _, _, terminated, truncated, info = env.step(expert.act(), active=~done)
        poured |= info["success"] & ~done
        done |= terminated | truncated
    print(f"poured all balls in {int(poured.sum())} of {episodes} episodes")
    assert poured.float().mean() >= 0.9
    env.close()


if __name__ == "__main__":
    main()
