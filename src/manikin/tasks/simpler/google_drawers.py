"""GoogleOpenDrawer-v1, GoogleCloseDrawer-v1 and GooglePlaceAppleInDrawer-v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Articulation, ContactForce, Episode, Handles, Part, Quantity, Robot, SceneBuilder, Variable
from manikin.arenas.ground import ground
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import norm, quat_from_yaw
from manikin.props.station import DRAWERS, station
from manikin.tasks.simpler.common import add_object, resting_height, touched
from manikin.tasks.simpler.google import GoogleTask
from manikin.toolkit import bonus, closeness

__all__ = ["POSES", "GoogleCloseDrawer", "GoogleOpenDrawer", "GooglePlaceAppleInDrawer"]

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
CABINET = (-0.295, 0.0, 0.017)
"""Where the cabinet stands [m]."""
TOP = 0.882
"""Height of its top [m]."""
_ANY = "random"


@dataclass
class DrawerHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cabinet: Articulation
    drawer: Variable  # number of the drawer that is meant, from the top
    pose: Variable  # number of the robot's pose


class DrawerTask(GoogleTask):
    """What the tasks at the cabinet share.

    The robot's base does not move between episodes. Where its pose is drawn, the cabinet and what lies on it are put
    where they are as seen from that pose.
    """

    horizon_s = 113 / 3
    poses: ClassVar[tuple[str, ...]] = tuple(POSES)
    trial_count: ClassVar[int] = 9
    drawn: ClassVar[tuple[str, ...]] = ("robot", "cabinet")
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
        drawer: str = _ANY  # top, middle, bottom or random
        pose: str = _ANY  # of the robot: a0, a1, a2, b0, b1, b2, c0, c1, c2 or random
        solid_handles: bool = True  # handles collide; the original's do not

    def __init__(self, config: Any = None, **more: Any) -> None:
        super().__init__(config, **more)
        for name, valid in (("drawer", (*DRAWERS, _ANY)), ("pose", (*self.poses, _ANY))):
            value = getattr(self.config, name)
            if value not in valid:
                raise UnknownNameError(f"{name} of {self.id}", value, valid)

    def pictures(self, vision: Any) -> Any:
        c = self.config
        if c.look == "matched" and c.pose == _ANY:
            raise ConfigError(
                f"look='matched' of {self.id} needs one pose of the robot, since each has its photograph; "
                f"config={{'pose': 'a0'}}, of {', '.join(self.poses)}"
            )
        return super().pictures(vision)

    @property
    def photograph(self) -> str:  # type: ignore[override]
        """File of the photograph that belongs to the robot's pose."""
        return f"open_drawer_{self.config.pose}.png"

    def room(self, b: SceneBuilder) -> tuple[Robot, Articulation]:
        """Floor, cabinet and robot."""
        ground(
            b, height=0.0, base_camera=((0.9, 0.9, 1.4), (-0.1, 0, 0.6)), human_camera=((0.9, 1.3, 1.5), (0, 0, 0.6))
        )
        cabinet = b.articulation("cabinet", station(handles=self.config.solid_handles), pos=CABINET)
        at = POSES["b0" if self.config.pose == _ANY else self.config.pose]
        robot = self.stand(b, at[:2], at[2])
        self._at = torch.tensor([POSES[name] for name in self.poses])
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

    def begin(self, h: DrawerHandles, ep: Episode, number: Tensor) -> Tensor:
        """Choose pose and drawer, put cabinet and robot there -> (n, 3) the robot's pose in the original's world."""
        pose, drawer = self._choice(ep, "pose", self.poses), self._choice(ep, "drawer", tuple(DRAWERS))
        if self.config.pose == _ANY and self.config.trials == "grid":
            pose = number
        h.pose.set(pose.float())
        h.drawer.set(drawer.float())
        at = self._at[pose]
        place, turn = self.seen(at, torch.tensor([CABINET]).expand(h.n, 3))
        h.cabinet.set_base(place, turn)
        h.robot.set_qpos(h.robot.keyframe().expand(h.n, -1))
        return at

    def _choice(self, ep: Episode, name: str, names: tuple[str, ...]) -> Tensor:
        drawn = ep.rng.integers(name, 0, len(names)).long()
        given = getattr(self.config, name)
        return drawn if given == _ANY else torch.full_like(drawn, names.index(given))

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


class GoogleOpenDrawer(DrawerTask):
    """Open a drawer of the cabinet, as in SIMPLER's evaluation of the Google Robot.

    Randomization: which of three drawers, and from which of nine poses the robot looks at the cabinet. With
    ``trials="grid"`` the episode's seed is the number of the pose, 0 to 8.
    Success: the drawer is open by 0.15 m or more at the last step.

    After SIMPLER (Li et al. 2024): 27 trials, 113 steps at 3 Hz. The original's handles have no collision shape; here
    they have, and ``solid_handles=False`` gives the original's.
    """

    id = "GoogleOpenDrawer-v1"
    instruction = "open the drawer"
    verb: ClassVar[str] = "open"
    starts: ClassVar[float] = 0.0
    """[m] how far the drawer is open at the start."""
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to handle",
        "move": "share of the way that the drawer has to go",
        "success": "what is missing to 3, in success",
    }

    def scene(self, b: SceneBuilder) -> DrawerHandles:
        robot, cabinet = self.room(b)
        return DrawerHandles(robot=robot, cabinet=cabinet, drawer=b.variable("drawer"), pose=b.variable("pose"))

    def start(self, h: DrawerHandles, ep: Episode) -> None:
        count = self.trial_count if self.config.pose == _ANY else 1
        self.begin(h, ep, ep.trial(count, self.config.trials))
        meant = torch.nn.functional.one_hot(h.drawer.value.long(), len(DRAWERS)).float()
        h.cabinet.set_qpos(meant * torch.tensor(self.starts))

    def instructions(self, h: DrawerHandles) -> list[str]:
        names = list(DRAWERS)
        return [f"{self.verb} {names[int(number)]} drawer" for number in h.drawer.value.tolist()]

    def done(self, opening: Tensor) -> Tensor:
        """(n,) bool."""
        return opening >= 0.15

    def share(self, opening: Tensor) -> Tensor:
        """(n,) of the way that the drawer has to go."""
        return (opening / 0.15).clamp(0.0, 1.0)

    def evaluate(self, h: DrawerHandles) -> dict[str, Tensor]:
        return {"success": self.done(self.opening(h))}

    def reward(self, h: DrawerHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        reach = closeness(norm(self.handle(h) - h.robot.tcp_pos), 5.0)
        return bonus({"reach": reach, "move": self.share(self.opening(h))}, ev["success"], self.reward_max)


class GoogleCloseDrawer(GoogleOpenDrawer):
    """Close a drawer of the cabinet, as in SIMPLER's evaluation of the Google Robot.

    Randomization: as in GoogleOpenDrawer-v1.
    Success: the drawer, which begins open by 0.2 m, is open by 0.05 m or less at the last step.

    After SIMPLER (Li et al. 2024): 27 trials, 113 steps at 3 Hz.
    """

    id = "GoogleCloseDrawer-v1"
    instruction = "close the drawer"
    verb = "close"
    starts = 0.2

    def done(self, opening: Tensor) -> Tensor:
        return opening <= 0.05

    def share(self, opening: Tensor) -> Tensor:
        return ((0.2 - opening) / 0.15).clamp(0.0, 1.0)


@dataclass
class AppleHandles(DrawerHandles):
    """Beside the cabinet an apple."""

    apple: Part
    inside: ContactForce  # of the apple with the bottom of the top drawer
    steps: Variable  # of the episode so far
    was_open: Variable
    touched: Variable  # control steps in which the apple touched the drawer's bottom


class GooglePlaceAppleInDrawer(DrawerTask):
    """Open the top drawer, then place the apple from the cabinet's top into it, as in SIMPLER's evaluation.

    Randomization: the apple's place, uniform over a rectangle of 0.05 x 0.10 m, and from which of three poses the robot
    looks at the cabinet. With ``trials="grid"`` the episode's seed is the number of the trial, 0 to 26: three poses,
    three places away from the cabinet's back, three across; with one ``pose`` 0 to 8.
    Success: at the last step the second instruction holds, the drawer is open by 0.05 m or more, and the apple has
    touched its bottom in some control step. It need not be released.

    After SIMPLER (Li et al. 2024): 200 steps at 3 Hz. The instruction changes after 100 steps. In the original it also
    changes when a policy says that it is done, for which an action has no number here.
    """

    id = "GooglePlaceAppleInDrawer-v1"
    horizon_s = 200 / 3
    settle_s = 0.4
    instruction = "open top drawer"
    poses = ("a0", "b0", "c0")
    trial_count = 27
    drawn = ("robot", "cabinet", "apple")
    observations = {
        **DrawerTask.observations,
        "apple_pose": Quantity("m, quaternion wxyz", "world"),
        "subtask": Quantity("0 or 1"),
    }
    reward_terms = {
        "open": "share of 0.15 m that the top drawer is open",
        "place": "1 - tanh(5 d), d from the apple to the drawer's bottom, in the second half of the episode",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config(GoogleTask.Config):
        pose: str = _ANY  # of the robot: a0, b0, c0 or random
        solid_handles: bool = True  # handles collide; the original's do not
        drawer: str = "top"  # the one that is meant

    def scene(self, b: SceneBuilder) -> AppleHandles:
        robot, cabinet = self.room(b)
        apple, made = add_object(b, "apple", "baked_apple_v2")
        self._height = TOP + resting_height(made)
        self._places = torch.tensor([(x, y) for x in (-0.08, -0.05, -0.02) for y in (-0.02, 0.03, 0.08)])
        return AppleHandles(
            robot=robot,
            cabinet=cabinet,
            drawer=b.variable("drawer"),
            pose=b.variable("pose"),
            apple=apple,
            inside=b.contact_force(apple, cabinet, link="top_floor"),
            steps=b.variable("steps"),
            was_open=b.variable("was_open"),
            touched=b.variable("touched"),
        )

    def start(self, h: AppleHandles, ep: Episode) -> None:
        places = len(self._places)
        number = ep.trial(self.trial_count if self.config.pose == _ANY else places, self.config.trials)
        pose = self.begin(h, ep, number // places)
        spot = self._places[number % places]
        if self.config.trials == "random":
            spot = ep.rng.uniform("apple/xy", torch.tensor([-0.10, 0.0]), torch.tensor([-0.05, 0.1]), (2,))
        place, turn = self.seen(pose, torch.cat([spot, torch.full_like(spot[:, :1], self._height)], 1))
        h.apple.set_pose(place, turn)
        h.cabinet.set_qpos(torch.zeros(len(DRAWERS)))

    def advance(self, h: AppleHandles) -> None:
        h.steps.set(h.steps.value + 1.0)
        h.was_open.set(torch.maximum(h.was_open.value, (self.opening(h) >= 0.15).float()))
        h.touched.set(h.touched.value + touched((h.inside,)).float())

    def second(self, h: AppleHandles) -> Tensor:
        """(n,) bool: the second instruction holds."""
        return h.steps.value >= 100

    def instructions(self, h: AppleHandles) -> list[str]:
        return ["place apple into top drawer" if late else "open top drawer" for late in self.second(h).tolist()]

    def evaluate(self, h: AppleHandles) -> dict[str, Tensor]:
        second = self.second(h)
        return {
            "success": second & (self.opening(h) >= 0.05) & (h.touched.value >= 1),
            "is_drawer_open": h.was_open.value > 0,
            "has_contact": h.touched.value > 0,
            "subtask": second,
        }

    def observe(self, h: Any) -> dict[str, dict[str, Tensor]]:
        seen = super().observe(h)
        seen["privileged"] |= {"apple_pose": h.apple.pose, "subtask": self.second(h)}
        return seen

    def reward(self, h: AppleHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        bottom = h.cabinet.link_pose("top_floor")[:, :3]
        place = closeness(norm(h.apple.pos - bottom), 5.0) * ev["subtask"]
        terms = {"open": (self.opening(h) / 0.15).clamp(0.0, 1.0), "place": place}
        return bonus(terms, ev["success"], self.reward_max)
