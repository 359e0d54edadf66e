"""What the tasks of robots on legs share: their servos, the scene, how the base moves, and when they have fallen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Event, Handles, Labels, Mode, Part, Physics, Quantity, Robot, SceneBuilder, Task, Variable
from manikin.arenas.ground import following, ground
from manikin.errors import ConfigError
from manikin.math import pose, quat_from_yaw, quat_rotate_inv
from manikin.spec.robot import Gains, RobotSpec
from manikin.spec.vary import Uniform
from manikin.toolkit import per_step

__all__ = ["ABOUT_REST", "LEGS_ABOUT_REST", "STEP", "LeggedHandles", "LeggedTask", "between", "with_servos"]

STEP = 0.5  # [rad] that an action of 1 asks for, beside the pose at rest
ABOUT_REST = f"joint_pos:about=rest,step={STEP}"
LEGS_ABOUT_REST = f"legs: {ABOUT_REST}"
EYE, FOCUS = (-2.2, -2.2, 1.3), (0.0, 0.0, 0.3)  # of a scene before it has a robot
TOUCH = 1.0  # [N] what is pressed harder touches the ground

SERVOS: Mapping[str, Mapping[str, tuple[tuple[float, ...], tuple[float, ...], str]]] = {
    "go2": {"legs": ((40.0,) * 12, (1.0,) * 12, "chosen: twice as stiff as Isaac Lab's 25 and 0.5, near MuJoCo "
                     "Playground's 35 and 0.5")},
    "h1": {
        "legs": ((150.0, 150.0, 200.0, 200.0, 40.0) * 2, (5.0, 5.0, 5.0, 5.0, 2.0) * 2,
                 "Isaac Lab; ankles: Unitree's unitree_rl_gym"),
    },
    "g1": {
        "legs": ((100.0, 100.0, 100.0, 150.0, 40.0, 40.0) * 2, (2.0, 2.0, 2.0, 4.0, 2.0, 2.0) * 2,
                 "Unitree's unitree_rl_gym"),
    },
}  # fmt: skip
"""Robot: {group: (kp, kd, source)} [N m/rad, N m s/rad] where the robot file's servos are stiffer than those that
walking is learned with. ANYmal C's are those of ManiSkill3 and of legged_gym."""

LABELS = Labels(
    events=(Event("fell", "fail"), Event("success", "success")),
    success=(Mode("success", "otherwise"),),
    failure=(Mode("fell", "fell"), Mode("inaccurate", "otherwise", "it stayed on its legs and did not do as told")),
    source="chosen for these tasks",
)


@dataclass
class LeggedHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    view: Part  # goes along with the robot and carries the cameras
    fell: Variable  # [1] whether it has fallen in this episode


class LeggedTask(Task):
    """A robot on legs. Its shapes collide with the ground and not with one another."""

    control = ABOUT_REST
    robot_control = {"h1": LEGS_ABOUT_REST, "g1": LEGS_ABOUT_REST}
    control_hz = 50.0
    physics = Physics(hz=200.0, integrator="Euler", cone="pyramidal", solref=(0.01, 1.0), iterations=20)
    robot_needs: ClassVar[tuple[str, ...]] = ("feet", "legs", "free base", "servos that hold it up")
    labels = LABELS
    observations = {
        "turn_rate": Quantity("rad/s", "base"),
        "gravity": Quantity("1", "base", "the direction in which gravity pulls"),
        "asked": Quantity("rad", "joint", "of the legs: positions commanded last, less those at rest"),
        "velocity": Quantity("m/s", "base"),
        "foot_forces": Quantity("log(1 + N)", "", "of each foot on the ground"),
    }

    @dataclass(frozen=True)
    class Config:
        start_noise: float = 0.1  # [rad, rad/s, m/s] to either side
        lean_cos: float = 0.5  # [1] cosine of the trunk's lean that is no fall yet
        low_share: float = 0.5  # [1] the base may be so low, of its height at rest
        friction: tuple[float, float] = (1.0, 1.0)  # range of the feet's friction, times their own
        trunk_mass: tuple[float, float] = (1.0, 1.0)  # range of the mass of the heaviest link, times its own
        latency_s: float = 0.0  # [s] servos follow their commands so late, in whole physics steps

    def floor(self, b: SceneBuilder) -> None:
        """Lay the ground."""
        ground(b, height=0.0, base_camera=(EYE, FOCUS), human_camera=(EYE, FOCUS))

    def scene(self, b: SceneBuilder) -> LeggedHandles:
        c = self.config
        if c.latency_s < 0:
            raise ConfigError(f"option 'latency_s' of {self.id} must not be negative, but it is {c.latency_s}")
        for option in ("friction", "trunk_mass"):
            low, high = getattr(c, option)
            if not 0 < low <= high:
                raise ConfigError(
                    f"option {option!r} of {self.id} must be two positive factors, the smaller first, but it is "
                    f"{(low, high)}"
                )
        self.floor(b)
        robot = b.robot(
            foot_friction=between(c.friction),
            trunk_mass=between(c.trunk_mass),
            declared=lambda arm: replace(with_servos(arm), delay=c.latency_s or arm.delay),
        )
        own = {robot.prefix + name for name in robot.model.bodies}
        for geom in (geom for body in b.spec.bodies if body.name in own for geom in body.geoms):
            if geom.contype or geom.conaffinity:
                geom.contype, geom.conaffinity = 1, 0  # with the ground, whose bits are both 1, and nothing else
        arm, links = robot.arm, robot.forces.links
        gains = arm.gains
        self._legs = robot.groups["legs"]
        self._rest = torch.tensor(arm.keyframes["rest"])
        self._share = torch.tensor([p / f for p, f in zip(gains.kp, gains.force, strict=True)])
        self._mass = sum(link.mass for link in arm.links)
        trunks = {arm.links[0].name, max(arm.links, key=lambda link: link.mass).name}
        self._trunk = [1 + links.index(name) for name in links if name in trunks]
        self._height = arm.base_pos[2]
        away = 0.9 + 1.9 * self._height  # so that a dog and a human fill the picture
        eye, focus = (-away, -away, 0.6 * away + 0.1), (0.0, 0.0, 0.8 * self._height)
        view = following(b, (eye, focus), fovy=math.pi / 4)
        return LeggedHandles(robot=robot, view=view, fell=b.variable("fell"))

    # ---- the start ---------------------------------------------------------------------------------------------------

    def start(self, h: LeggedHandles, ep: Episode) -> None:
        noise = self.config.start_noise
        h.robot.set_qpos(self._rest + self.posture(ep))
        place = self.place(h, ep)
        h.robot.set_root(place, ep.rng.uniform("root", -noise, noise, (6,)))
        self._look(h, place)

    def posture(self, ep: Episode) -> Tensor:
        """(n, joints) [rad] by which the joints begin beside their positions at rest."""
        return ep.rng.uniform("joints", -self.config.start_noise, self.config.start_noise, self._rest.shape)

    def place(self, h: LeggedHandles, ep: Episode) -> Tensor:
        """(n, 7) pose of the base at the start: any heading."""
        spot = h.robot.base_pose[:3].expand(h.n, 3)
        return pose(spot, quat_from_yaw(ep.rng.uniform("heading", -math.pi, math.pi)))

    def _look(self, h: LeggedHandles, place: Tensor) -> None:
        """Turn the cameras to a robot whose base is at ``place`` (n, 7)."""
        h.view.set_pose(place[:, :3] * torch.tensor([1.0, 1.0, 0.0]))

    # ---- how the base moves ------------------------------------------------------------------------------------------

    def _in_base(self, h: LeggedHandles, vector: Tensor) -> Tensor:
        return quat_rotate_inv(h.robot.root_pose[:, 3:], vector.expand(h.n, 3))

    @per_step
    def velocity(self, h: LeggedHandles) -> Tensor:
        """(n, 3) [m/s] of the base, in its own frame."""
        return self._in_base(h, h.robot.root_velocity[:, :3])

    @per_step
    def gravity(self, h: LeggedHandles) -> Tensor:
        """(n, 3) unit vector along gravity in the base's frame; upright it is (0, 0, -1)."""
        return self._in_base(h, torch.tensor([[0.0, 0.0, -1.0]]))

    def turn_rate(self, h: LeggedHandles) -> Tensor:
        """(n, 3) [rad/s] of the base, in its own frame."""
        return h.robot.root_velocity[:, 3:]

    def clearance(self, h: LeggedHandles) -> Tensor:
        """(n,) [m] height of the base over the ground."""
        return h.robot.root_pose[:, 2]

    @per_step
    def step_number(self, h: LeggedHandles) -> Tensor:
        """(n,) control steps since the episode began. It follows from the physics' clock, so that a row that is left
        out of a step keeps it."""
        return torch.round(h.robot.time * self.control_hz)

    @per_step
    def asked(self, h: LeggedHandles) -> Tensor:
        """(n, joints of the legs) [rad] commanded last, less the positions at rest."""
        return self.commanded(h)[:, self._legs] - self._rest[self._legs]

    def commanded(self, h: LeggedHandles) -> Tensor:
        """(n, joints) [rad] last, without a gripper's."""
        return h.robot.ctrl[:, : len(self._rest)]

    # ---- what is judged ----------------------------------------------------------------------------------------------

    @per_step
    def fallen(self, h: LeggedHandles) -> Tensor:
        """(n,) bool: the trunk touches the ground, leans too far or is too low."""
        c = self.config
        leans = self.gravity(h)[:, 2] > -c.lean_cos
        low = self.clearance(h) < c.low_share * self._height
        down = leans | low
        for column in self._trunk:
            down = down | (h.robot.forces.value[:, column] > TOUCH)
        return down

    def fail(self, h: LeggedHandles) -> Tensor:
        """(n,) bool: it has fallen in this episode."""
        return self.fallen(h) | (h.fell.value > 0)

    def bumps(self, h: LeggedHandles) -> Tensor:
        """(n,) bool: something other than a foot touches the ground."""
        return h.robot.forces.total - h.robot.foot_forces.sum(1) > TOUCH

    @per_step
    def effort(self, h: LeggedHandles) -> Tensor:
        """(n,) mean over all joints of the squared share of its torque that a servo asks for."""
        return ((self.commanded(h) - h.robot.arm_qpos) * self._share).clamp(-1.0, 1.0).square().mean(1)

    def advance(self, h: LeggedHandles) -> None:
        self._look(h, h.robot.root_pose)  # first, since what is read of the physics is read anew after it
        h.fell.set(torch.maximum(h.fell.value, self.fallen(h).float()))

    def observe(self, h: LeggedHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"turn_rate": self.turn_rate(h), "gravity": self.gravity(h), "asked": self.asked(h)},
            "privileged": {"velocity": self.velocity(h), "foot_forces": torch.log1p(h.robot.foot_forces)},
        }


def with_servos(arm: RobotSpec) -> RobotSpec:
    """A robot with the servos of :data:`SERVOS`; one that is not there keeps its own."""
    groups = dict(arm.groups)
    for name, (kp, kd, source) in SERVOS.get(arm.name, {}).items():
        own = groups[name]
        groups[name] = replace(own, gains=Gains(kp=kp, kd=kd, force=own.gains.force, source=source))
    return replace(arm, groups=groups)


def between(ends: tuple[float, float]) -> Uniform | None:
    """Uniform factors between two ends; None where nothing varies."""
    return None if ends == (1.0, 1.0) else Uniform(*ends)
