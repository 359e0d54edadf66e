"""What SIMPLER's tasks at the cabinet share: where the robot stands, the photographs taken from there, the drawers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Articulation, Handles, Quantity, Robot, SceneBuilder, Variable
from manikin.arenas.ground import ground
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import Constant, norm, quat_conj, quat_from_yaw, quat_mul, quat_rotate
from manikin.props.station import DRAWERS, FINISHES, JOINT_FRICTION, station
from manikin.sense.pixels import Photograph
from manikin.tasks.simpler.common import photograph
from manikin.tasks.simpler.google import FORWARD, GoogleTask, motion
from manikin.tasks.simpler.lamps import CABINET_LIGHTS, as_shown, light_up
from manikin.toolkit import constant

__all__ = ["ANY", "CABINET", "EVEN_POSES", "OUT", "POSES", "TOP", "CabinetTask", "DrawerHandles", "inwards"]

POSES = {
    "a0": (0.644, -0.179, -0.03),
    "a1": (0.765, -0.182, -0.02),
    "a2": (0.889, -0.203, -0.06),
    "b0": (0.652, 0.009, 0.0),
    "b1": (0.752, 0.009, 0.0),
    "b2": (0.851, 0.035, 0.0),
    "c0": (0.665, 0.224, 0.0),
    "c1": (0.765, 0.222, -0.025),
    "c2": (0.865, 0.222, -0.025),
}
"""Where the robot stands in visual matching: x, y [m] and yaw from facing -x [rad]."""
_ROWS = {"a": -0.2, "b": 0.0, "c": 0.2}
EVEN_POSES = {f"{row}{k}": (x, y, 0.0) for row, y in _ROWS.items() for k, x in enumerate((0.65, 0.75, 0.85))}
"""Where it stands in variant aggregation."""
CABINET = (-0.295, 0.0, 0.017)
"""Where the cabinet stands [m]."""
TOP = 0.882
"""Height of its top [m]."""
ANY = "random"
_DEEP = 0.008  # [m] the expert's tool goes beyond a handle's bar
_WIDE, _GRIPPED = 0.35, 0.3  # opening of the gripper before a handle, and at most when it holds one
OUT = Constant((1.0, 0.0, 0.0))


def inwards(pitch: float, *, over: bool = False) -> tuple[float, ...]:
    """Orientation of a tool that points into a cabinet and down by ``pitch`` [rad], its fingers over one another.

    With ``over`` the hand is turned over: by half a turn about where it points, so that its fingers change places.
    """
    half = (math.pi / 2 + pitch) / 2
    c, s = math.cos(half) * math.sqrt(0.5), math.sin(half) * math.sqrt(0.5)
    return (-c, -s, s, c) if over else (c, -s, -s, c)


# from the top drawer down: at the lowest the forearm comes to its limit unless the hand is turned over
_PULLING = Constant((inwards(0.6), inwards(0.6), inwards(0.5, over=True)))
_PUSHING = Constant((inwards(0.9),) * len(DRAWERS))
_STANDS = {"photographs": POSES, "even": EVEN_POSES}


@dataclass
class DrawerHandles(Handles):
    """What the scene consists of, and ``h`` in the methods of the tasks."""

    robot: Robot
    cabinet: Articulation
    drawer: Variable  # number of the drawer that is meant, from the top
    pose: Variable  # number of the robot's pose


class CabinetTask(GoogleTask):
    """What the tasks at the cabinet share.

    The robot's base does not move between episodes. Where its pose differs, the cabinet and what lies on it are put
    where they are as seen from that pose.
    """

    poses: ClassVar[tuple[str, ...]] = tuple(POSES)
    drawn: ClassVar[tuple[str, ...]] = ("robot", "cabinet")
    lights = CABINET_LIGHTS
    reward_max = 3.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "handle_pos": Quantity("m", "world", "of the drawer that is meant"),
        "tcp_to_handle": Quantity("m", "world"),
        "drawer": Quantity("1", note="which is meant: 0 top, 1 middle, 2 bottom"),
        "opening": Quantity("m", note="how far it is open"),
    }

    @dataclass(frozen=True)
    class Config(GoogleTask.Config):
        pose: str = ANY  # of the robot: a0, a1, a2, b0, b1, b2, c0, c1, c2 or random
        poses: str = "photographs"  # visual matching's, or "even": variant aggregation's, 0.1 m and 0.2 m apart
        solid_handles: bool = True  # handles collide; the original's do not
        cabinet: str = "mk_station_recolor"  # its colours: this is visual matching's; mk_station, mk_station2 or 3
        joint_friction: float = JOINT_FRICTION  # of the drawers, times their weight; SIMPLER tries 0.0125 to 0.2

    def __init__(self, config: Any = None, **more: Any) -> None:
        super().__init__(config, **more)
        c = self.config
        for name, valid in (("pose", (*self.poses, ANY)), ("poses", tuple(_STANDS)), ("cabinet", tuple(FINISHES))):
            if getattr(c, name) not in valid:
                raise UnknownNameError(f"{name} of {self.id}", getattr(c, name), valid)
        self.chosen = self.poses if c.pose == ANY else (c.pose,)

    def pictures(self, vision: Any) -> Any:
        c = self.config
        if c.look == "matched" and c.poses != "photographs":
            raise ConfigError(f"look='matched' of {self.id} has photographs of poses='photographs' alone")
        return super().pictures(vision)

    def photographed(self) -> Photograph:
        """The photographs of the robot's poses; an episode has that of its pose."""
        files = tuple(photograph(f"open_drawer_{name}.png") for name in self.chosen)
        return Photograph(files, keep=self.drawn, cameras=(self.camera,), which="pose")

    def room(self, b: SceneBuilder) -> tuple[Robot, Articulation]:
        """Floor, cabinet and robot."""
        ground(
            b, height=0.0, base_camera=((0.9, 0.9, 1.4), (-0.1, 0, 0.6)), human_camera=((0.9, 1.3, 1.5), (0, 0, 0.6))
        )
        c = self.config
        light_up(b, self.lights[c.light])
        made = station(handles=c.solid_handles, finish=c.cabinet, joint_friction=c.joint_friction)
        cabinet = b.articulation("cabinet", as_shown(made), pos=CABINET)
        cabinet.source = "the boxes of the original's file"
        places = _STANDS[self.config.poses]
        at = places["b0" if len(self.chosen) > 1 else self.chosen[0]]
        robot = self.stand(b, at[:2], at[2])
        self.stands = torch.tensor([places[name] for name in self.chosen])
        self._here = torch.tensor([at])
        return robot, cabinet

    def seen(self, pose: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """Where a ``place`` (n, 3) [m] of the original's world is here, when the robot is meant to stand at ``pose``
        (n, 3), and the turn (n, 4) of what stands there."""
        here, away = self._here.expand_as(pose), place[:, :2] - pose[:, :2]
        turn = here[:, 2] - pose[:, 2]
        cos, sin = torch.cos(turn), torch.sin(turn)
        x = here[:, 0] + cos * away[:, 0] - sin * away[:, 1]
        y = here[:, 1] + sin * away[:, 0] + cos * away[:, 1]
        return torch.stack([x, y, place[:, 2]], 1), quat_from_yaw(turn)

    def begin(self, h: DrawerHandles, drawer: Tensor, pose: Tensor) -> Tensor:
        """Put robot and cabinet there; ``drawer`` and ``pose`` (n,) are numbers -> (n, 3) the robot's pose in the
        original's world."""
        h.pose.set(pose.float())
        h.drawer.set(drawer.float())
        at = self.stands[pose]
        place, turn = self.seen(at, torch.tensor([CABINET]).expand(h.n, 3))
        h.cabinet.set_base(place, turn)
        h.robot.set_qpos(h.robot.keyframe().expand(h.n, -1))
        return at

    def opening(self, h: DrawerHandles) -> Tensor:
        """(n,) [m] of the drawer that is meant."""
        return h.cabinet.qpos.gather(1, h.drawer.value.long()[:, None])[:, 0]

    def handle(self, h: DrawerHandles) -> Tensor:
        """(n, 3) [m] the middle of its handle."""
        return h.cabinet.places.gather(1, h.drawer.value.long()[:, None, None].expand(-1, 1, 3))[:, 0]

    def observe(self, h: DrawerHandles) -> dict[str, dict[str, Tensor]]:
        handle = self.handle(h)
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "handle_pos": handle,
                "tcp_to_handle": handle - h.robot.tcp_pos,
                "drawer": h.drawer.value,
                "opening": self.opening(h),
            },
        }

    def towards_handle(
        self, h: DrawerHandles, facing: Constant, *, before: float, below: float = 0.0, deep: float = 0.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Where the expert's tool goes next to come to the handle of the drawer that is meant, straight from outside.

        Args:
            h: handles.
            facing: (drawers, 4) orientation of the tool in the cabinet's frame, for each drawer from the top.
            before: [m] from the place to where the tool turns towards it.
            below: [m] of the place under the handle's bar.
            deep: [m] of the place beyond the bar, along the tool.

        Returns:
            position (n, 3) [m], orientation (n, 4), and (n,) bool whether the tool is in the place.
        """
        robot, place = h.robot, self.handle(h)
        place = torch.cat([place[:, :2], (place[:, 2] - below)[:, None]], 1)
        turn = quat_mul(h.cabinet.base_quat, facing.like(place)[h.drawer.value.long()])
        tool = quat_rotate(turn, FORWARD.like(place).expand_as(place))
        place = place + deep * tool
        way = robot.tcp_pos - place
        depth = (way * tool).sum(1)
        aside = norm(way - depth[:, None] * tool)
        turned = norm(quat_mul(turn, quat_conj(robot.tcp_quat))[:, 1:])
        ready = (aside < 0.015) & (turned < 0.1)
        there = (ready & (depth > -0.012)) | ((robot.opening < 0.3) & (aside < 0.03) & (depth > -0.03))
        near = there | (ready & (depth > -before - 0.1))
        return place - torch.where(near[:, None], constant(0.0), constant(before)) * tool, turn, there

    def pull(self, h: DrawerHandles, to: float) -> Tensor:
        """(n, 7) the action that opens the drawer to about ``to`` [m]: grasp the handle from outside, then draw it."""
        goal, turn, there = self.towards_handle(h, _PULLING, before=0.12, deep=_DEEP)
        gripped = there & (h.robot.opening < _GRIPPED)
        outwards = quat_rotate(h.cabinet.base_quat, OUT.like(goal).expand_as(goal))
        more = (constant(to) - self.opening(h)).clamp(-0.02, 0.05)
        goal = goal + torch.where(gripped, more, constant(0.0))[:, None] * outwards
        return motion(h.robot, goal, turn, torch.where(there, -constant(1.0), constant(_WIDE) - h.robot.opening))

    def push(self, h: DrawerHandles) -> Tensor:
        """(n, 7) the action that closes the drawer: push its front with closed fingers, below the handle."""
        goal, turn, there = self.towards_handle(h, _PUSHING, before=0.08, below=0.04)
        outwards = quat_rotate(h.cabinet.base_quat, OUT.like(goal).expand_as(goal))
        goal = goal - torch.where(there, constant(0.1), constant(0.0))[:, None] * outwards
        return motion(h.robot, goal, turn, -torch.ones_like(goal[:, 0]))
