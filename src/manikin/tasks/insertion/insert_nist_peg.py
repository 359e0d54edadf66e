"""InsertNISTPeg-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Physics,
    Quantity,
    Robot,
    SceneBuilder,
    Segment,
    Task,
    Variable,
    VariantPart,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import norm, pose, pose_inv, pose_mul, quat_from_yaw, quat_rotate, quat_to_yaw
from manikin.props.insertion.nist import HOLE_HEIGHT, LENGTH, PEGS, hole, nist_peg, peg, stand
from manikin.toolkit import (
    GRASP,
    above,
    bonus,
    closeness,
    constant,
    first_valid,
    noisy_rest,
    per_step,
    top_down,
)

__all__ = ["InsertNISTPeg"]

_HOLD = 0.036  # [m] above the peg's bottom, where it is held
_GAP = 0.001  # [m] between peg and stand on each side


@dataclass
class InsertNISTPegHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    peg: VariantPart
    hole: VariantPart
    stand: VariantPart  # that the peg begins in
    grasp: Grasp
    goal: Variable  # (7,)


class InsertNISTPeg(Task):
    """Take a peg of NIST's assembly task board out of its stand and put it into the hole that fits it.

    Randomization: which of the pegs, round and rectangular ones of 4, 8, 12 and 16 mm; the places of stand and hole in
    rectangles, never near each other, and their turn; the arm's joints, a little noise about rest.
    Success: the middle of the peg's bottom is within ``goal_tol`` of the hole's axis and within ``depth_tol`` of its
    lower end, and the peg is upright within ``tilt_tol``. It is then held by the hole.

    Sizes of pegs and holes: Narang et al. 2022 (Factory), from its asset tables, in its loose fit or the tight one. All
    else is manikin's own: Factory's pegs begin in the hand. Round holes have sixteen flat sides. Clearances are 0.05 to
    0.26 mm, and contacts give way by as much while a peg enters, so forces in the hole are not those of steel.
    ``meshes`` takes pegs and holes from IsaacGymEnvs' meshes in ``MANIKIN_DATA/nist_factory`` instead: they have
    chamfers, square blocks, and round holes with 36 sides, and the same sizes, goals and rules.
    """

    id = "InsertNISTPeg-v1"
    horizon_s = 10.0
    labels = GRASP
    segments = (Segment("peg", until="gripper", after_s=0.5), Segment("goal", moves="peg"))
    instruction = "take the peg out of its stand and insert it into the hole"
    robots = ("panda",)
    physics = Physics(hz=500, impratio=100)  # at 100 Hz a peg passes the rim of its hole by sinking into it
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the peg"),
        "peg_pose": Quantity("m, quaternion wxyz", "world", "origin in the middle of its bottom"),
        "peg_size": Quantity("m", "peg", "width and depth, of a round one its diameter twice"),
        "peg_is_round": Quantity("0 or 1"),
        "goal_pose": Quantity("m, quaternion wxyz", "world", "the peg's in its hole"),
        "tcp_to_grip": Quantity("m", "world", "to where the peg is held"),
        "peg_to_goal": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to where the peg is held",
        "grasp": "1 while grasped",
        "align": "while grasped, 3 (1 - tanh(5 a)), a how far the peg's bottom is off the hole's axis",
        "insert": "while grasped and within goal_tol of the axis: 3 (1 - tanh(20 z)), z how high the peg's bottom "
        "is above the hole's",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        pegs: tuple[str, ...] = PEGS  # names of pegs
        fit: str = "loose"  # or tight
        meshes: bool = False  # pegs and holes of MANIKIN_DATA/nist_factory, instead of primitives
        stand_low: tuple[float, float] = (-0.12, -0.2)  # [m] place of the stand
        stand_high: tuple[float, float] = (0.08, 0.2)  # [m]
        hole_low: tuple[float, float] = (-0.12, -0.2)  # [m] place of the hole
        hole_high: tuple[float, float] = (0.08, 0.2)  # [m]
        apart: float = 0.15  # [m] between both, at least
        turn: float = math.pi / 4  # [rad] of each, either way
        goal_tol: float = 0.0025  # [m]
        depth_tol: float = 0.001  # [m]
        tilt_tol: float = 0.1  # [rad]

    def scene(self, b: SceneBuilder) -> InsertNISTPegHandles:
        c = self.config
        table(b, human_camera=((0.35, 0.35, 0.35), (-0.02, 0, 0.03)))
        known = [nist_peg(name) for name in c.pegs]
        self._known = torch.tensor([[*one.size(c.fit), float(one.round)] for one in known])
        self._hold = torch.tensor([0.0, 0.0, _HOLD])
        robot = b.robot()
        thing = b.mesh("peg", choice=[peg(name, c.fit, meshes=c.meshes) for name in c.pegs], draw=False)
        return InsertNISTPegHandles(
            robot=robot,
            peg=thing,
            hole=b.mesh("hole", choice=[hole(name, meshes=c.meshes) for name in c.pegs], kind="kinematic", draw=False),
            stand=b.mesh("stand", choice=[stand(name, _GAP) for name in c.pegs], kind="kinematic", draw=False),
            grasp=b.grasp(robot, thing),
            goal=b.variable("goal", (7,)),
        )

    def start(self, h: InsertNISTPegHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        which = rng.integers("peg", 0, len(c.pegs))
        for part in (h.peg, h.hole, h.stand):
            part.set_choice(which)
        level = torch.zeros(h.n, 1)
        start = rng.uniform("stand/xy", torch.tensor(c.stand_low), torch.tensor(c.stand_high), (2,))
        spots = rng.uniform("hole/xy", 0.0, 1.0, (16, 2))
        low, high = torch.tensor(c.hole_low), torch.tensor(c.hole_high)
        spots = low + spots * (high - low)
        goal = first_valid(spots, norm(spots - start[:, None]) > c.apart)
        turns = [quat_from_yaw(rng.uniform(f"{name}/yaw", -c.turn, c.turn)) for name in ("stand", "hole")]
        start, goal = torch.cat([start, level], 1), torch.cat([goal, level], 1)
        h.stand.set_pose(start, turns[0])
        h.peg.set_pose(start, turns[0])
        h.hole.set_pose(goal, turns[1])
        h.goal.set(pose(goal, turns[1]))

    @per_step
    def grip(self, h: InsertNISTPegHandles) -> Tensor:
        """(n, 3) [m] where the peg is held, in the world."""
        return h.peg.pos + quat_rotate(h.peg.quat, self._hold.expand(h.n, 3))

    @per_step
    def peg_to_goal(self, h: InsertNISTPegHandles) -> Tensor:
        return h.goal.value[:, :3] - h.peg.pos

    def evaluate(self, h: InsertNISTPegHandles) -> dict[str, Tensor]:
        c, away = self.config, self.peg_to_goal(h)
        over = norm(away[:, :2]) <= constant(c.goal_tol)
        quat = h.peg.quat
        upright = norm(quat[:, 1:3]) <= constant(math.sin(c.tilt_tol / 2))
        return {
            "success": over & (away[:, 2].abs() <= constant(c.depth_tol)) & upright,
            "is_aligned": over,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: InsertNISTPegHandles) -> dict[str, dict[str, Tensor]]:
        known = self._known[h.peg.choice]
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "peg_pose": h.peg.pose,
                "peg_size": known[:, :2],
                "peg_is_round": known[:, 2],
                "goal_pose": h.goal.value,
                "tcp_to_grip": self.grip(h) - h.robot.tcp_pos,
                "peg_to_goal": self.peg_to_goal(h),
            },
        }

    def reward(self, h: InsertNISTPegHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        grasped, away = ev["is_grasped"].float(), self.peg_to_goal(h)
        reach, near = closeness((norm(self.grip(h) - h.robot.tcp_pos), norm(away[:, :2])), 5.0)
        three = constant(3.0)
        terms = {
            "reach": reach,
            "grasp": grasped,
            "align": three * grasped * near,
            "insert": three * grasped * ev["is_aligned"] * closeness(away[:, 2].abs(), 20.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def frames(self, h: InsertNISTPegHandles) -> dict[str, Tensor]:
        return {"goal": h.goal.value}

    def expert(self, h: InsertNISTPegHandles) -> list[Waypoint]:
        goal, tcp, quat = h.goal.value, h.robot.tcp_pos, h.robot.tcp_quat
        grip = self.grip(h)
        take = top_down(h.peg.quat, h.robot, symmetry=2)
        in_hand = pose_mul(pose_inv(h.peg.pose), h.robot.tcp_pose)
        # a peg turned by half a turn is the same
        yaw, there = quat_to_yaw(torch.stack((h.peg.quat, goal[:, 3:])))
        turn = there - yaw
        turn = turn - torch.round(turn / math.pi) * math.pi
        upright = quat_from_yaw(yaw + turn)

        def at(height: float) -> Tensor:  # TCP pose that brings the peg's bottom so high above the hole's
            return pose_mul(pose(above(goal[:, :3], height), upright), in_hand)

        over = HOLE_HEIGHT + 0.004
        lift = above(tcp, LENGTH)
        return [
            Waypoint(
                name="above", pose=pose(above(grip, 0.06), take), gripper=1, pos_tol=0.015, rot_tol=0.1, speed=1.0
            ),
            Waypoint(name="down", pose=pose(grip, take), gripper=1, pos_tol=0.002, rot_tol=0.02, speed=0.25),
            Waypoint(name="close", pose=pose(grip, take), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.5),
            Waypoint(name="lift", pose=pose(lift, quat), gripper=-1, pos_tol=0.01, speed=0.3, timeout_s=1.5),
            Waypoint(name="over", pose=at(0.05), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=2.0),
            Waypoint(name="align", pose=at(over), gripper=-1, pos_tol=1e-4, rot_tol=0.003, track=True),
            Waypoint(name="enter", pose=at(0.5 * HOLE_HEIGHT), gripper=-1, pos_tol=0.001, speed=0.03, timeout_s=0.8),
            Waypoint(name="insert", pose=at(-0.001), gripper=-1, pos_tol=0.001, speed=0.05, timeout_s=0.6),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.01, dwell_s=0.2),
            Waypoint(name="leave", pose=pose(above(tcp, 0.06), quat), gripper=1).hold(),
        ]
