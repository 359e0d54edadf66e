"""HomePick-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from manikin import Episode, Robot, SceneBuilder, Waypoint
from manikin.math import pose
from manikin.tasks.home.doors.inside import one_front
from manikin.tasks.home.from_front import reaching, turned
from manikin.tasks.home.handling import HandlingHandles, HandlingTask, back
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.predicates import Goal, succeeds
from manikin.tasks.home.rewards import pick_terms
from manikin.tasks.home.rules import RULES
from manikin.toolkit import above, constant, full_turn, per_step

__all__ = ["HomePick", "picking"]

_OVER = 0.1  # [m] above where the tool takes the object
_OPENING = 0.025 / 0.06  # at the start: fingers 15 mm open each, as at the original's rest


class HomePick(HandlingTask):
    """Pick an object up from a table, a counter or a sofa, or out of an open drawer or the open fridge, and bring the
    arm back to rest.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); which object; which place
    on which surface, and its turn, in the fridge a little off straight; where within 2 m of it the robot starts, about
    facing it; its arm's joints.
    Success: the gripper holds the object; the tool and all joints are near rest; the robot stands still; and it has
    pressed on things by less than 5000 N, added up over control steps.

    After MS-HAB's Pick, whose numbers are in ``manikin.tasks.home.rules``. There are 200 control steps.
    """

    id = "HomePick-v1"
    subtask = "pick"
    instruction = "pick up the object and bring the arm back to rest"
    labels = subtask_labels("pick")
    reward_max = RULES["pick"].reward_max + 1.0
    reward_norm = RULES["pick"].reward_max
    reward_terms: ClassVar = {
        "reach": "5 (1 - tanh(3 d)), d from TCP to object; while it is not held also 1 - tanh(5 |v|) of the torso, or "
        "1 where d < 0.3, and 1 - tanh(5 d) of the horizontal distance",
        "slow": "1 - tanh(v / 5), v of the TCP",
        "grasp": "2 while held",
        "arm": "1 - tanh(q / 5), q of the joints from rest",
        "back": "while held: 2 + 5 (1 - tanh(3 t)) + 1 - tanh(q / 5) + 1 - tanh(b), t of the TCP from rest, b of the "
        "base's speeds",
        "still": "while held at rest: 2 + 1 - tanh(s), s of all speeds",
        "gentle": "3 (1 - tanh(3 c)), c = max(0.001 F, 0.2) - 0.2, F the force on the robot's links",
        "within_limit": "2 while the sum of F over the steps is below 5000 N",
        "success": "3",
    }

    @dataclass(frozen=True)
    class Config(HandlingTask.Config):
        force_limit: float = RULES["pick"].force_limit  # [N] added up over steps; contacts must stay below

    def scene(self, b: SceneBuilder) -> HandlingHandles:
        return self.furnished(b)

    def start(self, h: HandlingHandles, ep: Episode) -> None:
        point, joints = self.begin(h, ep)
        choice, stream = h.thing.choice, "object/yaw"
        turn = full_turn(ep, stream)
        if self.from_front:
            ahead = one_front(self.layout, "fridge").yaw + math.pi
            turn = turned(ep, stream, ahead, self._grips.own(choice))
        h.thing.set_pose(above(point, self._grips.height(choice)), turn)
        h.robot.set_qpos(joints, opening=_OPENING)

    @per_step
    def done(self, h: HandlingHandles) -> Tensor:
        """(n,) bool: success."""
        return succeeds("pick", self.seen(h), Goal(h.thing.pos), force_limit=self.config.force_limit)

    def evaluate(self, h: HandlingHandles) -> dict[str, Tensor]:
        over = h.pressed.value >= constant(self.config.force_limit)
        return {"success": self.done(h), "fail": over, **self.flags(h)}

    def landmarks(self, h: HandlingHandles) -> dict[str, Tensor]:
        return {"object": h.thing.pos}

    def observe(self, h: HandlingHandles) -> dict[str, dict[str, Tensor]]:
        return self.state(h)

    def reward(self, h: HandlingHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return pick_terms(self.seen(h), h.tool.value[:, 3], self.done(h), self.config.force_limit)

    def expert(self, h: HandlingHandles) -> list[Waypoint]:
        drive, stand = self.drive(h, gripper=1)
        thing = (h.thing.choice, h.thing.pose, stand[:, 2])
        if self.from_front:
            return [drive, *reaching(h.robot, self._grips.from_front(*thing), stand)]
        return [drive, *picking(h.robot, self._grips.of(h.robot, *thing))]


def picking(robot: Robot, grip: Tensor) -> list[Waypoint]:
    """From a stand: take what lies so that the tool takes it at ``grip`` (n, 7), lift it, go back to rest."""
    over = pose(above(grip[:, :3], _OVER), grip[:, 3:])
    lift = pose(above(robot.tcp_pos, _OVER), robot.tcp_quat)
    return [
        Waypoint(name="over", pose=over, gripper=1, pos_tol=0.02, rot_tol=0.1, speed=1.2, turn=3.0),
        Waypoint(name="down", pose=grip, gripper=1, pos_tol=0.005, speed=0.22),
        Waypoint(name="close", pose=grip, gripper=-1, pos_tol=0.02),
        Waypoint(name="lift", pose=lift, gripper=-1, pos_tol=0.03, speed=0.4),
        back(robot, gripper=-1),
    ]
