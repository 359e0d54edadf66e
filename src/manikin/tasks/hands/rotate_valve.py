"""RotateValve-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Articulation,
    ContactForce,
    Episode,
    Event,
    Handles,
    Labels,
    Mode,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
)
from manikin.arenas.table import table
from manikin.errors import UnknownNameError
from manikin.math import norm
from manikin.props.hands.valve import ARMS, LENGTH, RADIUS, valve
from manikin.tasks.hands.claw import finger_bases, finger_joints, push_targets
from manikin.toolkit import bonus, closeness, constant, per_step

__all__ = ["RotateValve"]

TURNS = (math.pi / 2, math.pi, math.pi, math.pi, 2 * math.pi)  # [rad] of each level
LEVELS = range(len(TURNS))
STEPS = (80, 150, 150, 150, 300)  # control steps of each level
GAP = math.pi / 6  # [rad] least angle between the directions of two arms
BURIED = -0.3  # [m] arms that are not there lie so far below the others, inside the table
FINGERS = ("f1", "f2", "f3")


@dataclass
class RotateValveHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    valve: Articulation
    press: ContactForce
    began: Variable  # [rad] the joint's position at the start
    sense: Variable  # 1 anticlockwise, -1 clockwise
    angles: Variable  # (5,) [rad] of the arms on the valve
    there: Variable  # (5,) 1 for arms that there are
    size: Variable  # (2,) [m] length and radius of the arms


class RotateValve(Task):
    """Turn a valve with a claw of three fingers.

    ``level`` says how hard it is: 0 has three arms and asks for a quarter turn; 1 has 3 to 5 arms, evenly spread, and
    asks for half a turn; in 2 their angles are drawn; in 3 also their length and thickness; 4 asks for a whole turn in
    either direction. The levels have 80, 150, 150, 150 and 300 control steps.

    Randomization: the valve's place and turn, uniform; the claw's joints, a little noise about fingers that are swung
    aside; and what the level draws, anew in each episode.
    Success: the valve has turned further than the level's angle, in the direction that is asked for.

    Numbers: ManiSkill3 3.0.1, after ROBEL. It draws the arms once per environment, and of the least angle between them
    it forgets the one between the last and the first; here all keep it. Its reward for progress counts clockwise
    turns as going backward although level 4 asks for them; here progress is what is asked for. A success is worth
    the largest reward. The joint has the published damping and 0.02 N m of friction.
    """

    id = "RotateValve-v1"
    horizon_s = STEPS[0] / 20.0
    instruction = "turn the valve"
    robots = ("dclaw",)
    robot_needs = ("claw",)
    labels = Labels(
        events=(Event("touched", "is_touched"), Event("turned", "is_turned"), Event("success", "success")),
        success=(Mode("success", "otherwise"),),
        failure=(
            Mode("never_touched", "not touched and not turned", "the fingers never touched the valve"),
            Mode("not_turned", "not turned", "touched it, and it did not turn as asked"),
            Mode("not_far", "otherwise", "it turned, and not far enough"),
        ),
        source="tasks that turn a switch; flags is_touched and is_turned",
    )
    reward_max = 6.0
    observations = {
        "sense": Quantity("1", "", "1 to turn it anticlockwise, seen from above, -1 clockwise"),
        "valve_direction": Quantity("1", "world", "cosine and sine of the direction of its red arm"),
        "valve_rate": Quantity("rad/s", "", "anticlockwise"),
        "turned": Quantity("rad", "", "since the start, as asked"),
        "valve_pos": Quantity("m", "world", "on the axis, in the plane of the arms"),
        "arms": Quantity("1", "world", "directions of up to five arms; zeros where there is none"),
        "valve_to_tips": Quantity("m", "world", "to the three tips"),
    }
    reward_terms = {
        "reach": "1 - tanh(10 e), e the norm over the tips of how far each is, along the table, from a circle about "
        "the axis, 1 cm inside the arms' ends",
        "turn": "4 tanh(5 w), w the valve's rate as asked [rad/s]",
        "progress": "the turn so far in whole turns, from -1 to 1",
        "success": "what is missing to 6, in success",
    }

    @dataclass(frozen=True)
    class Config:
        level: int = 0  # 0 to 4
        spread: float = 0.02  # [m] the valve's place varies by this, both ways
        noise: float = 0.02  # [rad] of the claw's joints
        swing: float = 0.7  # [rad] the fingers start swung aside by this
        scale_std: float = 0.1  # [1] of the arms' length and thickness, from level 3
        inside: float = 0.01  # [m] the tips' circle is so far inside the arms' ends
        turned: float = 0.05  # [rad] it counts as turned beyond this

    def __init__(self, config: object = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        level = self.config.level
        if level not in LEVELS:
            raise UnknownNameError(f"level of {self.id}", level, map(str, LEVELS))
        vars(self)["horizon_s"] = STEPS[level] / self.control_hz  # the class has that of level 0

    def scene(self, b: SceneBuilder) -> RotateValveHandles:
        table(b, base_camera=((0.3, 0, 0.3), (-0.1, 0, 0.05)), human_camera=((0.2, 0.4, 0.4), (0, 0, 0.1)))
        robot, thing = b.robot(), b.articulation("valve", valve())
        for name in ARMS:  # those that are not there lie in the table
            b.spec.add_exclude(bodyname1="world", bodyname2=thing.prefix + name)
        return RotateValveHandles(
            robot=robot,
            valve=thing,
            press=b.contact_force(robot, thing),
            began=b.variable("began"),
            sense=b.variable("sense", initial=1.0),
            angles=b.variable("angles", (len(ARMS),)),
            there=b.variable("there", (len(ARMS),)),
            size=b.variable("size", (2,)),
        )

    def start(self, h: RotateValveHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        rest = torch.tensor([c.swing, -c.swing, -c.swing] + [0.0] * 6)
        h.robot.set_qpos(rest + ep.rng.normal("robot/qpos", 0.0, c.noise, (9,)))
        spot = ep.rng.uniform("valve/xy", -c.spread, c.spread, (2,))
        h.valve.set_base(torch.cat([spot, torch.zeros(n, 1)], 1), torch.tensor([[1.0, 0.0, 0.0, 0.0]]).expand(n, 4))
        turn = ep.rng.uniform("valve/turn", -math.pi, math.pi, (1,))
        h.valve.set_qpos(turn)
        h.began.set(turn[:, 0])
        h.sense.set(1.0 - 2.0 * ep.rng.integers("sense", 0, 2) if c.level == 4 else torch.ones(n))
        angles, there = self.drawn_arms(ep, n)
        scale = ep.rng.normal("valve/scale", 1.0, c.scale_std, (2,)).clamp(0.7, 1.3) if c.level > 2 else 1.0
        size = torch.tensor([[LENGTH, RADIUS]]).expand(n, 2) * scale
        h.angles.set(angles)
        h.there.set(there.float())
        h.size.set(size)
        half, none = size[:, :1] / 2, torch.zeros_like(angles)
        at = torch.where(there[..., None], torch.stack([torch.cos(angles), torch.sin(angles)], 2), 0.0)
        depth = torch.where(there, 0.0, BURIED)
        turns = torch.stack([torch.cos(angles / 2), none, none, torch.sin(angles / 2)], 2)
        shapes = torch.cat([size[:, 1:], half, torch.zeros(n, 1)], 1)[:, None].expand(n, len(ARMS), 3)
        h.valve.set_links(ARMS, torch.cat([at * half[..., None], depth[..., None], turns], 2), shapes)

    def drawn_arms(self, ep: Episode, n: int) -> tuple[Tensor, Tensor]:
        """Directions (n, 5) [rad] of the arms on the valve, the first at 0, and which there are (n, 5) bool."""
        level, number = self.config.level, torch.arange(len(ARMS))
        count = ep.rng.integers("valve/arms", 3, 6)[:, None] if level else torch.full((n, 1), 3)
        there = number < count
        if level < 2:
            return number * (2 * math.pi / count), there
        # uniform among all that keep the gap: what the gaps leave of the circle is divided at random
        cuts = torch.where(there[:, 1:], ep.rng.uniform("valve/angles", 0.0, 1.0, (len(ARMS) - 1,)), 2.0)
        first = torch.zeros(n, 1)
        return torch.cat([first, cuts.sort(1).values], 1) * (2 * math.pi - count * GAP) + number * GAP, there

    @per_step
    def turned(self, h: RotateValveHandles) -> Tensor:
        """(n,) [rad] since the start, in the direction that is asked for."""
        return (h.valve.qpos[:, 0] - h.began.value) * h.sense.value

    @per_step
    def tips(self, h: RotateValveHandles) -> Tensor:
        """(n, 3, 3) [m] from the valve's axis, in the plane of its arms, to the tips."""
        tips = torch.stack([h.robot.tools[name].tcp_pos for name in FINGERS], 1)
        return tips - h.valve.link_pose("valve")[:, None, :3]

    def evaluate(self, h: RotateValveHandles) -> dict[str, Tensor]:
        turned = self.turned(h)
        return {
            "success": turned > constant(TURNS[self.config.level]),
            "is_turned": turned > constant(self.config.turned),
            "is_touched": norm(h.press.value) > 0,
        }

    def observe(self, h: RotateValveHandles) -> dict[str, dict[str, Tensor]]:
        red = h.valve.qpos
        angles = red + h.angles.value
        arms = torch.stack([torch.cos(angles), torch.sin(angles)], 2) * h.there.value[..., None]
        return {
            "policy": {
                "sense": h.sense.value[:, None],
                "valve_direction": arms[:, 0],
                "valve_rate": h.valve.qvel,
                "turned": self.turned(h)[:, None],
            },
            "privileged": {
                "valve_pos": h.valve.link_pose("valve")[:, :3],
                "arms": arms,
                "valve_to_tips": self.tips(h),
            },
        }

    def reward(self, h: RotateValveHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        circle = h.size.value[:, :1] - self.config.inside
        error = norm(norm(self.tips(h)[..., :2]) - circle)
        terms = {
            "reach": closeness(error, 10.0),
            "turn": 4.0 * torch.tanh(5.0 * h.valve.qvel[:, 0] * h.sense.value),
            "progress": (self.turned(h) / (2 * math.pi)).clamp(-1.0, 1.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: RotateValveHandles) -> Tensor:
        """Each finger pushes an arm as far as it reaches, draws back and takes the next; see ``claw``."""
        hub = h.valve.link_pose("valve")[:, :3]
        arms = torch.where(h.there.value > 0, h.valve.qpos + h.angles.value, math.nan)
        bases = finger_bases(h.robot.base_pose[:3].expand(h.n, 3))
        tips = self.tips(h) + hub[:, None]
        goal = push_targets(tips, bases, hub[:, :2], arms, h.size.value, h.sense.value)
        # the servos go this share of the way within a step (kp / kd = 10/s), and an action of 1 asks for 0.1 rad
        share = 0.1 * (1.0 - math.exp(-10.0 / self.control_hz))
        action = (finger_joints(goal - bases) - h.robot.arm_qpos) / share
        most = action.reshape(h.n, 3, 3).abs().amax(1).clamp_min(1.0)  # of each finger, which goes straight
        return action / torch.cat([most] * 3, 1)
