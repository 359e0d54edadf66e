"""AssemblingKits-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Part,
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
from manikin.errors import ConfigError
from manikin.math import (
    norm,
    pose,
    pose_inv,
    pose_mul,
    quat_from_yaw,
    quat_mul,
    quat_rotate,
    quat_to_yaw,
    wrap_to_pi,
)
from manikin.props.holed_box import bars, frame
from manikin.props.insertion.kit import DEPTH, SHAPES, TILE, WOOD, inlay, kit_shape, piece, recess
from manikin.toolkit import (
    GRASP,
    above,
    bearing,
    bonus,
    closeness,
    constant,
    facing_down,
    first_valid,
    full_turn,
    noisy_rest,
    per_step,
)

__all__ = ["AssemblingKits"]

_BOARD = (0.15, 0.23)  # [m] half size of the board
_OPENING = (TILE / math.sqrt(2) - 5e-4,) * 2  # [m] half of its opening, which the block covers however it is turned
_SLOTS = ((0.0, 0.0), (0.055, 0.12), (0.055, -0.12), (-0.055, 0.12), (-0.055, -0.12))  # [m] places in the board
_HOLD = 0.02  # [m] above the bottom of the piece, where it is held
_MIDDLE = math.pi / 4  # [rad] turn of the gripper to where the arm faces, at which the wrist is in mid range
_UNDER = (0.0, 0.0, -5e-4)  # [m] by which the board is lower than blocks and inlays, so that those are seen


@dataclass
class AssemblingKitsHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    piece: VariantPart
    recess: VariantPart  # the block with the recess that fits
    inlays: list[VariantPart]  # pieces that are in place already
    board: Part
    grasp: Grasp
    goal: Variable  # (7,)


class AssemblingKits(Task):
    """Pick up the loose piece of a kit and put it into the recess that has its shape.

    Randomization: the piece's shape; which shapes are in place already; where on the board the recess is, and its turn;
    the piece's place on the board, off the recess, and its turn; the arm's joints, a little noise about rest.
    Success: the piece is within ``goal_tol`` of the recess's middle, turned as the recess within ``goal_angle`` or as
    it looks the same, and within ``depth_tol`` of its bottom.

    Numbers: ManiSkill3 3.0.1, whose reward is sparse; the dense one is manikin's own. ManiSkill3's kits are files that
    are not part of manikin, so these are a family of outlines, see ``manikin.props.insertion.kit``. Sizes of board and
    pieces, the clearance and the places of the recesses are manikin's own. In ManiSkill3 the piece may begin in its own
    recess or on other pieces, which stand out of the board; here the others are level with it. Friction is 1.
    """

    id = "AssemblingKits-v1"
    horizon_s = 10.0
    labels = GRASP
    segments = (Segment("piece", until="gripper", after_s=0.5), Segment("goal", moves="piece"))
    instruction = "put the loose piece into the recess that has its shape"
    robots = ("panda",)
    physics = Physics(impratio=100)  # as PegInsertionSide
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the piece"),
        "piece_pose": Quantity("m, quaternion wxyz", "world", "origin in the middle of its bottom"),
        "goal_pose": Quantity("m, quaternion wxyz", "world", "the piece's in its recess"),
        "tcp_to_grip": Quantity("m", "world", "to where the piece is held"),
        "piece_to_goal": Quantity("m", "world"),
        "turn_to_goal": Quantity("rad", "world", "by which the piece has to be turned to look as in its recess"),
        "symmetry": Quantity("rad", "", "turn after which the piece looks the same; 0 for a disc"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to where the piece is held",
        "grasp": "1 while grasped",
        "place": "while grasped, 2 (1 - tanh(5 d)) + (1 - tanh(r)), d from piece to recess along the table, r the turn "
        "between them [rad]",
        "insert": "while grasped and both are within the tolerances of success: 3 (1 - tanh(20 z)), z how high the "
        "piece is above the bottom of the recess",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        shapes: tuple[str, ...] = SHAPES  # names of shapes, at least five
        clearance: float = 0.001  # [m] between piece and recess on each side
        spawn_half_size: tuple[float, float] = (0.1, 0.182)  # [m] of the rectangle that the piece begins in
        spawn_apart: float = 0.08  # [m] from the middle of the recess, at least
        goal_tol: float = 0.02  # [m] along the table
        goal_angle: float = math.radians(4)  # [rad]
        depth_tol: float = 0.003  # [m]

    def scene(self, b: SceneBuilder) -> AssemblingKitsHandles:
        c = self.config
        if len(set(c.shapes)) < len(_SLOTS):
            raise ConfigError(f"a kit needs {len(_SLOTS)} different shapes of {', '.join(SHAPES)}; got {c.shapes}")
        table(b, base_camera=((0.2, 0, 0.4), (0, 0, 0)), human_camera=((0.3, 0.3, 0.6), (0, 0, 0)))
        shapes = [kit_shape(name) for name in c.shapes]
        # of each: where it is held [m], its period [rad], and 1, or for a disc 0 and a period that stands for none
        self._known = torch.tensor(
            [[*shape.grip[0], _HOLD, shape.period or 1.0, float(shape.order > 0)] for shape in shapes]
        )
        self._closing = torch.tensor([shape.grip[1] - math.pi / 2 for shape in shapes])
        self._slots = torch.tensor(_SLOTS)
        robot = b.robot()
        loose = b.mesh("piece", choice=[piece(name) for name in c.shapes], draw=False)
        blocks = [recess(name, c.clearance) for name in c.shapes]
        placed = [inlay(name) for name in c.shapes]
        return AssemblingKitsHandles(
            robot=robot,
            piece=loose,
            recess=b.mesh("recess", choice=blocks, kind="kinematic", draw=False),
            inlays=[b.mesh(f"inlay{k}", choice=placed, kind="kinematic", draw=False) for k in range(len(_SLOTS) - 1)],
            board=b.part("board", frame(_BOARD, _OPENING, DEPTH), kind="kinematic", rgba=WOOD, resizable=True),
            grasp=b.grasp(robot, loose),
            goal=b.variable("goal", (7,)),
        )

    def start(self, h: AssemblingKitsHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        shapes = rng.permutation("shapes", len(c.shapes))
        slots = self._slots[rng.permutation("slots", len(_SLOTS))]
        level = torch.zeros(h.n, 1)
        goal = torch.cat([slots[:, 0], level], 1)
        turn = full_turn(ep, "goal/yaw")
        h.piece.set_choice(shapes[:, 0])
        h.recess.set_choice(shapes[:, 0])
        h.recess.set_pose(goal, turn)
        h.goal.set(pose(goal, turn))
        for k, part in enumerate(h.inlays, 1):
            part.set_choice(shapes[:, k])
            part.set_pose(torch.cat([slots[:, k], level], 1), full_turn(ep, f"inlay{k}/yaw"))
        sizes, places = bars(_BOARD, _OPENING, DEPTH, slots[:, 0])
        h.board.set_size(sizes)
        h.board.set_offsets(places)
        h.board.set_pose(_UNDER)
        spots = rng.uniform("piece/xy", -1.0, 1.0, (16, 2)) * torch.tensor(c.spawn_half_size)
        spot = first_valid(spots, norm(spots - slots[:, :1]) > c.spawn_apart)
        h.piece.set_pose(torch.cat([spot, level + DEPTH], 1), full_turn(ep, "piece/yaw"))

    @per_step
    def known(self, h: AssemblingKitsHandles) -> Tensor:
        """(n, 5) of the row's piece: where it is held (3,) [m], its period [rad], whether it has one."""
        return self._known[h.piece.choice]

    @per_step
    def grip(self, h: AssemblingKitsHandles) -> Tensor:
        """(n, 3) [m] where the piece is held, in the world."""
        return h.piece.pos + quat_rotate(h.piece.quat, self.known(h)[:, :3])

    @per_step
    def turn_to_goal(self, h: AssemblingKitsHandles) -> Tensor:
        """(n,) [rad] about the vertical, the least of those that make the piece look right."""
        goal, now = quat_to_yaw(torch.stack((h.goal.value[:, 3:], h.piece.quat)))
        return self._least(h, goal - now)

    def _least(self, h: AssemblingKitsHandles, turn: Tensor) -> Tensor:
        """(n,) the turn or one that looks the same, nearest to 0."""
        period, has = self.known(h)[:, 3:].unbind(1)
        return has * (turn - torch.round(turn / period) * period)

    @per_step
    def piece_to_goal(self, h: AssemblingKitsHandles) -> Tensor:
        return h.goal.value[:, :3] - h.piece.pos

    def evaluate(self, h: AssemblingKitsHandles) -> dict[str, Tensor]:
        c, away = self.config, self.piece_to_goal(h)
        over = (norm(away[:, :2]) < constant(c.goal_tol)) & (self.turn_to_goal(h).abs() < constant(c.goal_angle))
        return {
            "success": over & (-away[:, 2] < constant(c.depth_tol)),
            "is_aligned": over,
            "is_grasped": h.grasp.value,
        }

    def observe(self, h: AssemblingKitsHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "piece_pose": h.piece.pose,
                "goal_pose": h.goal.value,
                "tcp_to_grip": self.grip(h) - h.robot.tcp_pos,
                "piece_to_goal": self.piece_to_goal(h),
                "turn_to_goal": self.turn_to_goal(h),
                "symmetry": self.known(h)[:, 3] * self.known(h)[:, 4],
            },
        }

    def reward(self, h: AssemblingKitsHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        grasped, away = ev["is_grasped"].float(), self.piece_to_goal(h)
        reach, near = closeness((norm(self.grip(h) - h.robot.tcp_pos), norm(away[:, :2])), 5.0)
        place = constant(2.0) * near + closeness(self.turn_to_goal(h).abs(), 1.0)
        terms = {
            "reach": reach,
            "grasp": grasped,
            "place": grasped * place,
            "insert": constant(3.0) * grasped * ev["is_aligned"] * closeness(away[:, 2].abs(), 20.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def frames(self, h: AssemblingKitsHandles) -> dict[str, Tensor]:
        return {"goal": h.goal.value}

    def expert(self, h: AssemblingKitsHandles) -> list[Waypoint]:
        goal, tcp, quat, down = h.goal.value, h.robot.tcp_pos, h.robot.tcp_quat, facing_down(h.robot)
        grip = self.grip(h)
        # of both ways to take the piece the one after which the wrist turns least far from its middle
        first = wrap_to_pi(quat_to_yaw(h.piece.quat) + self._closing[h.piece.choice] - self._mid(h, grip))
        second = wrap_to_pi(first + math.pi)
        worst = [torch.maximum(way.abs(), self._placed(h, way + self._mid(h, grip)).abs()) for way in (first, second)]
        way = torch.where(worst[0] <= worst[1], first, second)
        take = quat_mul(quat_from_yaw(way + self._mid(h, grip)), down)
        # once it is held: where the piece, and with it the tool, has to go
        yaw = quat_to_yaw(quat_mul(quat, down))
        now = wrap_to_pi(yaw - self._mid(h, tcp))
        then = self._placed(h, yaw)
        turn = then + self._mid(h, goal[:, :3]) - yaw
        in_hand = pose_mul(pose_inv(h.piece.pose), h.robot.tcp_pose)
        upright = quat_from_yaw(quat_to_yaw(h.piece.quat) + turn)

        def at(height: float) -> Tensor:  # TCP pose that brings the piece so high above the bottom of its recess
            return pose_mul(pose(above(goal[:, :3], height), upright), in_hand)

        lift, over = above(tcp, 0.05), at(0.04)
        # halfway poses: of two ways round the one that the wrist can go
        swing, half = (quat_mul(quat_from_yaw((end - now) / 2), quat) for end in (way, then))
        caught = h.piece.pos[:, 2] > constant(self.config.depth_tol)  # it met the edge of the recess
        again, still = (torch.where(caught[:, None], there, h.robot.tcp_pose) for there in (at(0.012), at(0.0)))
        return [
            Waypoint(name="swing", pose=pose(tcp, swing), gripper=1, pos_tol=0.05, rot_tol=0.5, timeout_s=1.0),
            Waypoint(
                name="above", pose=pose(above(grip, 0.06), take), gripper=1, pos_tol=0.015, rot_tol=0.1, speed=1.0
            ),
            Waypoint(name="down", pose=pose(grip, take), gripper=1, pos_tol=0.002, rot_tol=0.03, speed=0.25),
            Waypoint(name="close", pose=pose(grip, take), gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=0.5),
            Waypoint(name="lift", pose=pose(lift, quat), gripper=-1, pos_tol=0.02, timeout_s=1.0),
            Waypoint(name="turn", pose=pose(tcp, half), gripper=-1, pos_tol=0.03, rot_tol=0.3, timeout_s=1.0),
            Waypoint(name="over", pose=over, gripper=-1, pos_tol=0.01, rot_tol=0.1, timeout_s=2.0),
            Waypoint(name="align", pose=over, gripper=-1, pos_tol=5e-4, rot_tol=0.005, track=True, timeout_s=0.8),
            Waypoint(name="lower", pose=at(0.0), gripper=-1, pos_tol=0.002, rot_tol=0.05, speed=0.1, timeout_s=1.0),
            Waypoint(name="back", pose=again, gripper=-1, pos_tol=5e-4, rot_tol=0.005, timeout_s=0.6),
            Waypoint(name="lower again", pose=still, gripper=-1, pos_tol=0.002, speed=0.05, timeout_s=0.8),
            Waypoint(name="open", pose=pose(tcp, quat), gripper=1, pos_tol=0.01, dwell_s=0.3),
            Waypoint(name="leave", pose=pose(above(tcp, 0.08), quat), gripper=1).hold(),
        ]

    def _mid(self, h: AssemblingKitsHandles, place: Tensor) -> Tensor:
        """(n,) [rad] turn of the gripper at a place with the wrist in mid range."""
        return bearing(h.robot, place) + _MIDDLE

    def _placed(self, h: AssemblingKitsHandles, yaw: Tensor) -> Tensor:
        """(n,) [rad] turn of the gripper, from mid range, that brings the piece into its recess, if it is turned by
        ``yaw`` (n,) now; of all that look the same the one nearest to mid range."""
        there = yaw + quat_to_yaw(h.goal.value[:, 3:]) - quat_to_yaw(h.piece.quat) - self._mid(h, h.goal.value[:, :3])
        free = self.known(h)[:, 4] == 0
        return torch.where(free, wrap_to_pi(yaw - self._mid(h, h.goal.value[:, :3])), self._least(h, there))
