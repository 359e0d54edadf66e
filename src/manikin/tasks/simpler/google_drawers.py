"""GoogleOpenDrawer-v1 and GoogleCloseDrawer-v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Episode, SceneBuilder
from manikin.errors import UnknownNameError
from manikin.math import norm
from manikin.props.station import DRAWERS
from manikin.tasks.simpler.google_cabinet import ANY, CabinetTask, DrawerHandles
from manikin.toolkit import bonus, closeness

__all__ = ["GoogleCloseDrawer", "GoogleOpenDrawer"]


class GoogleOpenDrawer(CabinetTask):
    """Open a drawer of the cabinet, as in SIMPLER's evaluation of the Google Robot.

    Randomization: which of three drawers, and from which of nine poses the robot looks at the cabinet. With
    ``trials="grid"`` the episode's seed is the number of the trial, 0 to 26: three drawers from the top times nine
    poses. With one ``drawer`` or one ``pose`` there are 9, 3 or 1.
    Success: the drawer is open by 0.15 m or more at the last step.

    After SIMPLER (Li et al. 2024): 27 trials, 113 steps at 3 Hz. The original's handles have no collision shape; here
    they have, and ``solid_handles=False`` gives the original's.
    """

    id = "GoogleOpenDrawer-v1"
    horizon_s = 113 / 3
    trial_count = 27
    instruction = "open the drawer"
    verb: ClassVar[str] = "open"
    starts: ClassVar[float] = 0.0
    """[m] how far the drawer is open at the start."""
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to handle",
        "move": "share of the way that the drawer has to go",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config(CabinetTask.Config):
        drawer: str = ANY  # top, middle, bottom or random

    def __init__(self, config: Any = None, **more: Any) -> None:
        super().__init__(config, **more)
        drawer, names = self.config.drawer, tuple(DRAWERS)
        if drawer not in (*names, ANY):
            raise UnknownNameError(f"drawer of {self.id}", drawer, (*names, ANY))
        self.meant = tuple(range(len(names))) if drawer == ANY else (names.index(drawer),)

    def scene(self, b: SceneBuilder) -> DrawerHandles:
        robot, cabinet = self.room(b)
        return DrawerHandles(robot=robot, cabinet=cabinet, drawer=b.variable("drawer"), pose=b.variable("pose"))

    def start(self, h: DrawerHandles, ep: Episode) -> None:
        poses = len(self.chosen)
        number = ep.trial(len(self.meant) * poses, self.config.trials)
        self.begin(h, torch.tensor(self.meant)[number // poses], number % poses)
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
        return {"success": self.done(self.opening(h)), "q": self.opening(h)}

    def reward(self, h: DrawerHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        reach = closeness(norm(self.handle(h) - h.robot.tcp_pos), 5.0)
        return bonus({"reach": reach, "move": self.share(self.opening(h))}, ev["success"], self.reward_max)

    def expert(self, h: DrawerHandles) -> Tensor:
        """Grasp the handle and pull."""
        return self.pull(h, to=0.19)


class GoogleCloseDrawer(GoogleOpenDrawer):
    """Close a drawer of the cabinet, as in SIMPLER's evaluation of the Google Robot.

    Randomization: as in GoogleOpenDrawer-v1: which of three drawers, and which of nine poses of the robot.
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

    def expert(self, h: DrawerHandles) -> Tensor:
        """Push the front."""
        return self.push(h)
