"""From a person's hands to an action: tools follow them, by coupled inverse kinematics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin.control.coupled import CoupledIk, ToolFrames
from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.robot import FULL_POSE, RobotSpec
from manikin.teleop.device import SIDES, Hand, HandOptions, Motion
from manikin.teleop.headset import turns
from manikin.teleop.headset.grip import FingerGrip
from manikin.teleop.headset.retarget import HandRetarget, fingers_of

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv
    from manikin.scene.handles import Robot

__all__ = ["HandPilot", "driven_tools", "soft_mask"]

LEAD = (0.12, 0.6)  # how far a goal may be ahead of its tool [m], [rad]
FREE, WAIST = 1.0, 0.3  # how freely a tool's own joints move, and what carries several of them


def driven_tools(arm: RobotSpec) -> tuple[str, ...]:
    """The tools of a robot that hands drive: those of a left and a right side, else the first. "" is the frame of a
    robot without tools."""
    names = tuple(arm.tools)
    sides = tuple(name for name in names if any(side in name.split("_") for side in SIDES))
    return sides if len(sides) > 1 else names[:1] or ("",)


def soft_mask(arm: RobotSpec, tools: tuple[str, ...], masks: dict[str, float]) -> np.ndarray:
    """(joints,) how freely the joints move: those of the tools' own groups do, a torso does less, and legs, fingers and
    what drives over the floor stay. ``masks`` say otherwise, by group.

    Raises:
        UnknownNameError: no such group.
    """
    for name in masks:
        if name not in arm.groups:
            raise UnknownNameError(f"joint group of {arm.name}", name, arm.groups)
    own = {arm.tools[tool].group for tool in tools if tool} - {""}
    moved = set(arm.ik_groups or arm.groups)
    weights = []
    for name, group in arm.groups.items():
        weight = FREE if name in (own or moved) else WAIST if "torso" in name or "waist" in name else 0.0
        weights += [masks.get(name, weight)] * len(group.joints)
    return np.array(weights)


@dataclass(eq=False)
class _Follower:
    """A tool, and the hand that drives it. Poses are in the base frame of its robot."""

    robot: int
    tool: str
    side: str
    gripper: int | None  # its number in an action
    fingers: HandRetarget | None
    close: FingerGrip | None
    goal: tuple[np.ndarray, np.ndarray]
    anchor: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None  # hand and tool where it was held
    wrist: np.ndarray | None = None  # from the turn of the hand to that of the tool, once they were calibrated
    armed: bool = False  # whether the hand has let go since the episode began
    grip: float = 1.0


class HandPilot:
    """Turns motions with hands into actions of an environment's controller.

    While a hand holds its tool, the tool moves as the hand has moved since it closed, along the axes of the first
    robot's base. A calibrated hand also gives the tool its turn, whatever it did before. The goals of all tools of a
    robot are solved together; the action asks for the joints that were found, as a leader arm's does, so any
    controller will do. A goal that gets ahead, since something is in the way, is held back.

    The hand of a robot with fingers follows those of a person whose hand is seen. What holds the tool is then the
    other hand's pinch, since this one's fingers are taken.

    Args:
        env: with one row.
        options: how hands drive tools.

    Attributes:
        speed: how far a tool moves for each metre of its hand.
        sides: the hand of each tool that is driven, and the tool.
        limbs, limb: as of a :class:`~manikin.teleop.pilot.Pilot`; all tools are driven at once.

    Raises:
        ConfigError: more tools than hands.
        UnknownNameError: a mask for a group that the robot does not have.
    """

    limbs = ("",)
    limb = ""

    def __init__(self, env: BatchEnv, options: HandOptions) -> None:
        self.env, self.options, self.speed = env, options, options.scale
        robots = list(env.part(0)[0].robots)
        named = [(k, tool) for k, robot in enumerate(robots) for tool in driven_tools(robot.arm)]
        if len(named) > len(SIDES):
            those = ", ".join(f"{robots[k].name}/{tool}" for k, tool in named)
            raise ConfigError(f"two hands drive two tools, and there are {len(named)}: {those}; use --device keyboard")
        self._solvers: list[CoupledIk] = []
        self._slices: list[slice] = []
        start = 0
        for k, robot in enumerate(robots):
            tools = tuple(tool for at, tool in named if at == k)
            frames = ToolFrames(robot.arm, robot.gripper, [tool or frame_name(robot) for tool in tools])
            groups = {name: weight for name, weight in options.masks.items() if name in robot.arm.groups}
            unknown = [name for name in options.masks if not any(name in one.arm.groups for one in robots)]
            mask = soft_mask(robot.arm, tools, groups | {name: options.masks[name] for name in unknown})
            turned = 0.2 if int((mask > 0).sum()) >= FULL_POSE * len(tools) else 0.02  # else the place comes first
            self._solvers.append(CoupledIk(frames, weights=mask, rotation_weights=(turned,) * len(tools)))
            self._slices.append(slice(start, start + len(robot.arm.joints)))
            start += len(robot.arm.joints)
        most = [robot.arm.joint_delta or (0.1,) * len(robot.arm.joints) for robot in robots]
        self._most = np.concatenate([np.array(one, float) for one in most])
        sides = self._sides(robots, named)
        self._tools = [
            _Follower(
                robot=k,
                tool=tool,
                side=side,
                gripper=self._gripper(robots, k, tool),
                fingers=self._fingers(robots[k], tool),
                close=self._close(robots[k], tool),
                goal=self._rest(k, tool),
            )
            for (k, tool), side in zip(named, sides, strict=True)
        ]
        self.sides = {one.side: "/".join(w for w in (robots[one.robot].name, one.tool) if w) for one in self._tools}
        self._q: np.ndarray | None = None  # of all joints, as they were asked for last

    # ---- as of any pilot ---------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether a gripper is to be closed."""
        return any(one.grip < 0 for one in self._tools)

    def reset(self) -> np.ndarray:
        """Begin where the robot is; returns its joints. A hand that still holds must let go first."""
        with torch.no_grad():
            self._q = q = self.env.arm_qpos[0].double().cpu().numpy().copy()
        for one in self._tools:
            one.anchor, one.armed, one.grip = None, False, 1.0
            one.goal = self._at(one.robot, one.tool, q)
        return q

    def press(self, button: str, motion: Motion | None = None) -> None:
        """A button has gone down: ``calibrate`` takes the hands' turns for the tools', and the size of open hands. All
        hands must close anew, as their axes may have changed. The others are not for this pilot."""
        if button != "calibrate" or motion is None:
            return
        if self._q is None:
            self.reset()
        for one in self._tools:
            one.anchor = None
            hand = motion.hands.get(one.side)
            if hand is not None:
                one.wrist = turns.mul(
                    turns.conj(hand.quat), turns.mul(turns.conj(self._facing(one.robot)), one.goal[1])
                )
                if one.fingers is not None and hand.tips is not None:
                    one.fingers.measure(hand.tips)

    def begins(self, motion: Motion) -> bool:
        """Whether a motion begins an episode that waits."""
        held = [self._holds(one, motion) for one in self._tools]  # of each, as that arms it
        return any(held)

    def action(self, motion: Motion) -> torch.Tensor:
        """(1, A) for a motion, from the state as it is. A tool that no hand holds stays."""
        env = self.env
        with torch.no_grad():
            measured = env.arm_qpos[0].double().cpu().numpy()
        now = self.reset() if self._q is None else self._q
        moved = False
        for one in self._tools:
            hand = motion.hands.get(one.side)
            if hand is not None:
                one.grip = hand.grip
            if self._holds(one, motion) and hand is not None:
                one.goal = self._short(one, self._goal(one, hand), measured)
                moved = True
            else:
                one.anchor = None
        want = now.copy()
        if moved:
            for k, solver in enumerate(self._solvers):
                goals = [one.goal for one in self._tools if one.robot == k]
                if goals:
                    own = self._slices[k]
                    found = solver.solve(np.stack([g[0] for g in goals]), np.stack([g[1] for g in goals]), want[own])
                    want[own] = found.q
        for one in self._tools:
            hand = motion.hands.get(one.side)
            if one.fingers is not None and hand is not None and hand.tips is not None:
                own = self._slices[one.robot]
                want[own] = one.fingers.solve(hand.tips, want[own])
                moved = True
            elif one.close is not None:
                own = self._slices[one.robot]
                want[own] = one.close.solve(one.grip, want[own])
                moved = True
        if moved:
            self._q = now = now + np.clip(want - now, -self._most, self._most)
        with torch.no_grad():
            action = env.towards(torch.from_numpy(now[None]).float().to(env.device))
        for one in self._tools:
            if one.gripper is not None:
                action[:, one.gripper] = one.grip
        return action.clamp(-1.0, 1.0)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _holds(self, one: _Follower, motion: Motion) -> bool:
        hand = motion.hands.get(one.side)
        held = hand is not None and hand.held
        if one.fingers is not None and hand is not None and hand.tips is not None:
            other = motion.hands.get(SIDES[1 - SIDES.index(one.side)])
            held = other is not None and other.pinched
        one.armed |= not held
        return held and one.armed

    def _goal(self, one: _Follower, hand: Hand) -> tuple[np.ndarray, np.ndarray]:
        """Where a hand that holds wants its tool."""
        if one.anchor is None:
            one.anchor = (hand.pos, hand.quat, *one.goal)
        hand_pos, hand_quat, pos, quat = one.anchor
        face = self._facing(one.robot)
        there = pos + self.options.scale * turns.rotate(face, hand.pos - hand_pos)
        if one.wrist is not None:
            return there, turns.mul(face, turns.mul(hand.quat, one.wrist))
        turned = turns.mul(hand.quat, turns.conj(hand_quat))
        return there, turns.mul(turns.mul(face, turns.mul(turned, turns.conj(face))), quat)

    def _facing(self, robot: int) -> np.ndarray:
        """From the person's forward, left and up to the axes of a robot's base."""
        robots = self.env.part(0)[0].robots
        first, own = (_base_quat(robots[k]) for k in (0, robot))
        return turns.mul(turns.conj(own), turns.mul(first, turns.about_z(self.options.turn)))

    def _short(
        self, one: _Follower, goal: tuple[np.ndarray, np.ndarray], measured: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The goal, not too far ahead of where the tool is."""
        pos, quat = self._at(one.robot, one.tool, measured)
        way, twist = goal[0] - pos, turns.log(turns.mul(goal[1], turns.conj(quat)))
        way *= LEAD[0] / max(LEAD[0], float(np.linalg.norm(way)))
        twist *= LEAD[1] / max(LEAD[1], float(np.linalg.norm(twist)))
        return pos + way, turns.mul(turns.turn_of(twist), quat)

    def _at(self, robot: int, tool: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a tool is, for the joints of all robots."""
        return self._frame(robot, tool, q[self._slices[robot]])

    def _rest(self, robot: int, tool: str) -> tuple[np.ndarray, np.ndarray]:
        return self._frame(robot, tool, self._solvers[robot].frames.rest)

    def _frame(self, robot: int, tool: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        frames = self._solvers[robot].frames
        k = frames.tools.index(tool) if tool else 0
        pos, quat = frames.poses(q)
        return pos[k], quat[k]

    def _sides(self, robots: list[Robot], named: list[tuple[int, str]]) -> list[str]:
        """Which hand drives which tool: by its name, else the left one what is further to the left."""
        if len(named) == 1:
            return [self.options.hand]
        words = [f"{robots[k].arm.name}_{tool}".split("_") for k, tool in named]
        said = [[side for side in SIDES if side in one] for one in words]
        if all(len(one) == 1 for one in said) and said[0] != said[1]:
            return [one[0] for one in said]
        forward = turns.mul(_base_quat(robots[0]), turns.about_z(self.options.turn))
        left = []
        for k, tool in named:
            base = robots[k].base_pose.double().cpu().numpy()
            at = base[:3] + turns.rotate(base[3:], self._rest(k, tool)[0])
            left.append(turns.rotate(turns.conj(forward), at)[1])
        return ["left", "right"] if left[0] > left[1] else ["right", "left"]

    def _gripper(self, robots: list[Robot], robot: int, tool: str) -> int | None:
        """Which number of an action opens a tool's gripper."""
        opening = [one.key for one in robots[robot].tools.values() if one.drivers]
        if tool not in opening:
            return None
        words = [robots[robot].name] if len(robots) > 1 else []
        words += [tool] if len(opening) > 1 else []
        name = "/".join([*words, "gripper"])
        return next((k for k, dim in enumerate(self.env.controller.card.dims) if dim.name == name), None)

    def _close(self, robot: Robot, tool: str) -> FingerGrip | None:
        """How a trigger closes a tool's fingers, where no command of a gripper does."""
        named = robot.tools.get(tool)
        if named is None or named.drivers:
            return None
        close = FingerGrip(ToolFrames(robot.arm, robot.gripper, [tool]), robot.arm.keyframes.get("fist"))
        return close if close.moves.any() else None

    def _fingers(self, robot: Robot, tool: str) -> HandRetarget | None:
        """How a tool's fingers follow a person's, where it is a hand whose fingertips are tools."""
        found: dict[int, Any] = fingers_of([name for name in robot.arm.tools if name != tool])
        if not tool or not found:
            return None
        return HandRetarget(ToolFrames(robot.arm, robot.gripper, [tool, *found.values()]), list(found))


def frame_name(robot: Robot) -> str:
    """What the frame of a robot without tools is called."""
    name: str = robot.model.tools[0].name
    return name


def _base_quat(robot: Robot) -> np.ndarray:
    pose = robot.root_pose[0] if robot.arm.base.loose else robot.base_pose
    return np.asarray(pose[3:].double().cpu().numpy())
