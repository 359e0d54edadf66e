"""ReorientCube-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Event, Handles, Labels, Mode, Part, Quantity, Robot, SceneBuilder, Task, Variable
from manikin.arenas.table import table
from manikin.errors import ConfigError
from manikin.math import quat_angle, quat_conj, quat_mul, quat_normalize, quat_standardize, quat_to_matrix
from manikin.props.hands.painted_cube import painted_faces
from manikin.spec.prop import Shape
from manikin.toolkit import constant, first_valid

__all__ = ["ReorientCube"]

H = 0.5**0.5
HEIGHT = 0.25  # [m] of the palm's frame
SHOWN = (0.0, 0.22, HEIGHT + 0.15)  # [m] where the goal is shown


@dataclass(frozen=True)
class Held:
    """How a hand is held, palm up.

    Attributes:
        pos, quat: of its base, in the world [m, wxyz].
        palm: [m] where the surface of the palm is, in the world, below where the cube begins.
        tips: its tools at the fingers' ends.
    """

    pos: tuple[float, float, float]
    quat: tuple[float, float, float, float]
    palm: tuple[float, float, float]
    tips: tuple[str, ...]


HANDS = {
    "allegro": Held((0.095, 0, HEIGHT), (H, 0, -H, 0), (-0.01, 0, HEIGHT + 0.011), ("ff", "mf", "rf", "th")),
    "shadow": Held((0.322, 0, HEIGHT), (H, 0, -H, 0), (0.015, -0.006, HEIGHT + 0.0175), ("ff", "mf", "rf", "lf", "th")),
}


@dataclass
class ReorientCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    goals: Variable  # (goals, 4) wxyz, one after another
    count: Variable  # goals reached in this episode
    left: Variable  # [rad] to the goal of this step
    gained: Variable  # [rad] closer to it than one step before
    reached: Variable  # 1 where a goal was reached in this step
    shown: Part  # turned as the goal


class ReorientCube(Task):
    """Turn a cube in the hand to one orientation after another.

    Randomization: the cube's orientation, and all goals, uniform over all orientations; the cube's place above the palm
    and the hand's joints, a little noise.
    Success: ``goals`` goals were reached. A goal is reached when the cube is within ``tol`` of it; then the next one is
    asked for.
    Failure: the cube's middle is 5 cm below the palm.

    Numbers: OpenAI's "Learning dexterous in-hand manipulation" (2018), its reward and tolerance; it goes on to 50
    goals. Number of goals, time, and rates are chosen here. The Shadow hand has OpenAI's block of HandManipulateBlock
    (Gymnasium-Robotics: 5 cm, 567 kg/m^3); the Allegro hand, which is larger, the cube that MuJoCo Playground gives the
    LEAP hand (7 cm, 108 g). The hand is level; OpenAI's is, too.
    """

    id = "ReorientCube-v1"
    horizon_s = 30.0
    instruction = "turn the cube in the hand as the cube beside it is turned"
    robots = ("shadow", "allegro")
    robot_needs = ("palm", "ff", "mf", "rf", "th")
    robots_named = ("allegro", "shadow")  # that it knows how to hold
    control = "joint_target_delta_pos"  # with the measured positions as reference, a hand would sink by its weight
    robot_config = {"allegro": {"half_size": 0.035, "mass": 0.108}}
    labels = Labels(
        events=(Event("reached", "is_reached"), Event("dropped", "fail"), Event("success", "success")),
        success=(Mode("success", "not dropped"), Mode("success_then_dropped", "otherwise")),
        failure=(
            Mode("dropped", "dropped and not reached"),
            Mode("dropped_later", "dropped", "goals were reached before"),
            Mode("none_reached", "not reached", "it was held, and no goal was reached"),
            Mode("too_few", "otherwise", "goals were reached, and too few"),
        ),
        source="tasks of things in a hand; flags is_reached and fail",
    )
    reward_max = 5.0 + math.pi
    reward_norm = 5.0
    observations = {
        "goal_quat": Quantity("1", "world", "wxyz of the goal"),
        "touch": Quantity("log(1 + N)", "", "on each body of the hand that feels touch"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "cube_velocity": Quantity("m/s", "world"),
        "cube_rates": Quantity("rad/s", "world"),
        "cube_to_goal_quat": Quantity("1", "cube", "wxyz of the turn that is left"),
        "cube_to_tips": Quantity("m", "world", "to the tips of the fingers"),
        "reached_count": Quantity("goals", "", "in this episode"),
    }
    reward_terms = {
        "turn": "how much closer to the goal the cube has been turned in this step [rad]",
        "reached": "5 where a goal is reached",
        "dropped": "-20 where the cube is dropped",
    }

    @dataclass(frozen=True)
    class Config:
        half_size: float = 0.025  # [m]
        mass: float = 0.0709  # [kg]
        friction: float = 1.0  # [1] sliding, of the cube on the palm; the tips bring their own
        tol: float = 0.4  # [rad] a goal is reached within this
        goals: int = 5  # [1] so many are to be reached, one after another
        spread: float = 0.005  # [m] the cube's place varies by this, both ways
        noise: float = 0.02  # [rad] of the hand's joints
        above: float = 0.014  # [m] the cube's lowest corner begins so far above the palm
        depth: float = 0.05  # [m] dropped: so far below the palm

    def __init__(self, config: object = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        if self.config.goals < 1:
            raise ConfigError(f"option 'goals' of {self.id} must be at least 1, not {self.config.goals}")

    def scene(self, b: SceneBuilder) -> ReorientCubeHandles:
        c = self.config
        seen = ((0.2, 0.15, 0.5), (-0.02, 0.09, HEIGHT + 0.06))  # the cube in the hand, and the one beside it
        table(b, base_camera=seen, human_camera=((0.32, 0.25, 0.55), (0, 0.03, 0.27)))
        name = b.robots[0][0].name
        if name not in HANDS:
            raise ConfigError(f"{self.id} does not know how to hold {name!r}; it takes {', '.join(HANDS)}")
        self._held = held = HANDS[name]
        robot = b.robot(pos=held.pos, quat=held.quat)
        body = Shape(type="box", size=(c.half_size,) * 3)
        cube = b.part("cube", [body], looks=painted_faces(c.half_size), mass=c.mass, friction=c.friction)
        b.spec.geom("cube/0").condim = 4  # a finger's tip that turns on a face holds against it
        shown = b.part("goal_cube", painted_faces(c.half_size), kind="kinematic", collide=False)
        self._palm = torch.tensor(held.palm)
        return ReorientCubeHandles(
            robot=robot,
            cube=cube,
            goals=b.variable("goals", (c.goals, 4)),
            count=b.variable("count"),
            left=b.variable("left"),
            gained=b.variable("gained"),
            reached=b.variable("reached"),
            shown=shown,
        )

    def start(self, h: ReorientCubeHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        rest = h.robot.keyframe()
        h.robot.set_qpos(rest + ep.rng.normal("robot/qpos", 0.0, c.noise, (len(rest),)))
        turn = quat_normalize(ep.rng.normal("cube/turn", 0.0, 1.0, (4,)))
        lowest = c.half_size * quat_to_matrix(turn)[:, 2].abs().sum(1, keepdim=True)  # corner below the middle
        spot = ep.rng.uniform("cube/xy", -c.spread, c.spread, (2,))
        h.cube.set_pose(self._palm + torch.cat([spot, lowest + c.above], 1), turn)
        goals = quat_normalize(ep.rng.normal("goals", 0.0, 1.0, (c.goals, 4)))
        firsts = quat_normalize(ep.rng.normal("goals/first", 0.0, 1.0, (8, 4)))
        away = quat_angle(turn[:, None].expand_as(firsts), firsts) > 2 * c.tol
        first = first_valid(firsts, away)  # never one that is reached already
        h.goals.set(torch.cat([first[:, None], goals[:, 1:]], 1))
        h.left.set(quat_angle(turn, first))
        h.shown.set_pose(torch.tensor(SHOWN).expand(n, 3), first)

    def goal(self, h: ReorientCubeHandles, count: Tensor) -> Tensor:
        """(n, 4) wxyz of the goal after ``count`` (n,) others, the last one after all of them."""
        number = count.clamp_max(self.config.goals - 1).long()
        return h.goals.value.gather(1, number[:, None, None].expand(h.n, 1, 4))[:, 0]

    def advance(self, h: ReorientCubeHandles) -> None:
        count, quat = h.count.value, h.cube.quat
        now = quat_angle(quat, self.goal(h, count))
        reached = (now < self.config.tol) & (count < self.config.goals)
        h.gained.set(h.left.value - now)
        h.reached.set(reached.float())
        count = count + reached
        following = self.goal(h, count)
        h.left.set(torch.where(reached, quat_angle(quat, following), now))
        h.count.set(count)
        h.shown.set_pose(torch.tensor(SHOWN).expand(h.n, 3), following)

    def evaluate(self, h: ReorientCubeHandles) -> dict[str, Tensor]:
        count = h.count.value
        return {
            "success": count >= self.config.goals,
            "fail": h.cube.pos[:, 2] < constant(HEIGHT - self.config.depth),
            "is_reached": count > 0,
            "count": count,
        }

    def observe(self, h: ReorientCubeHandles) -> dict[str, dict[str, Tensor]]:
        goal = self.goal(h, h.count.value)
        tips = torch.stack([h.robot.tools[tip].tcp_pos for tip in self._held.tips], 1)
        return {
            "policy": {"goal_quat": goal, "touch": torch.log1p(h.robot.touch_forces)},
            "privileged": {
                "cube_pose": h.cube.pose,
                "cube_velocity": h.cube.linvel,
                "cube_rates": h.cube.angvel,
                "cube_to_goal_quat": quat_standardize(quat_mul(quat_conj(h.cube.quat), goal)),
                "cube_to_tips": tips - h.cube.pos[:, None],
                "reached_count": h.count.value[:, None],
            },
        }

    def reward(self, h: ReorientCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {
            "turn": h.gained.value,
            "reached": 5.0 * h.reached.value,
            "dropped": -20.0 * ev["fail"].float(),
        }
