"""Write-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Dots, Episode, Handles, Quantity, Robot, SceneBuilder, Shape, Task, Variable, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose
from manikin.props.soft.layer import Layer, layer
from manikin.toolkit import ONE, bonus, closeness, constant, facing_down, noisy_rest

__all__ = ["LETTERS", "Write"]

# strokes from one point to another, of a letter that is 1 high and about 0.7 wide
LETTERS = {
    "L": ((0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.6, 0.0)),
    "T": ((0.0, 1.0, 0.7, 1.0), (0.35, 1.0, 0.35, 0.0)),
    "V": ((0.0, 1.0, 0.35, 0.0), (0.35, 0.0, 0.7, 1.0)),
    "X": ((0.0, 1.0, 0.7, 0.0), (0.7, 1.0, 0.0, 0.0)),
    "N": ((0.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.7, 0.0), (0.7, 0.0, 0.7, 1.0)),
    "Z": ((0.0, 1.0, 0.7, 1.0), (0.7, 1.0, 0.0, 0.0), (0.0, 0.0, 0.7, 0.0)),
    "H": ((0.0, 1.0, 0.0, 0.0), (0.7, 1.0, 0.7, 0.0), (0.0, 0.5, 0.7, 0.5)),
    "A": ((0.0, 0.0, 0.35, 1.0), (0.35, 1.0, 0.7, 0.0), (0.15, 0.4, 0.55, 0.4)),
}
_MOST = 3  # strokes of a letter
_POINTS = 12  # of each stroke that are shown
_BOARD = 0.01  # [m] height of the board under the layer
_MIDDLE = (-0.1, 0.0)  # [m]


@dataclass
class WriteHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    height: Variable  # (columns,) [m]
    strokes: Variable  # (3, 4) [m] start and end of each stroke of the letter; the last may be there more than once
    target: Variable  # (columns,) 1 where a column has to be pressed
    outline: Dots
    groove: Dots
    used: Variable  # dots of the groove so far


class Write(Task):
    """Press a letter into a soft layer with a stylus.

    Randomization: the letter, its place and its turn; the arm's joints, a little noise about rest.
    Success: the columns that are pressed by more than ``depth`` cover those of the letter with an intersection over
    union above ``overlap``. Those of the letter are within the stylus's radius of its strokes.

    Model: ``cells`` squared columns of the layer, each with a height, which are state of the task and not of the
    physics. What the stylus presses down rises around it, so the volume stays the same to rounding; it stays where it
    is, and does not push back on the stylus. ManiSkill2's layer is of material points, which do; its success rule is
    the same overlap, as far as known. Pictures show the letter and a trail of dots where it was pressed, not the
    heights.
    """

    id = "Write-v1"
    horizon_s = 14.0
    instruction = "press the letter into the soft layer"
    robots = ("panda+stick",)
    robot_needs = ("stick",)
    reward_max = 5.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "strokes": Quantity("m", "world", "x and y of the start and of the end of each of three strokes"),
        "outline_pressed": Quantity("0 or 1", "", "for points along the strokes, whether the column there is pressed"),
        "overlap": Quantity("1", "", "intersection over union of what is pressed and the letter"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from the tip to the nearest point of the letter not yet pressed; 1 if none is left",
        "overlap": "3 times the intersection over union of what is pressed and the letter",
        "success": "what is missing to 5, in success",
    }

    @dataclass(frozen=True)
    class Config:
        cells: int = 44  # columns along a side
        cell: float = 0.005  # [m]
        thickness: float = 0.012  # [m] of the layer
        stylus: float = 0.008  # [m] radius of the stylus's end
        rim: float = 0.012  # [m] width of the ring that rises around it
        depth: float = 0.004  # [m]
        overlap: float = 0.8  # intersection over union, more than
        size: float = 0.13  # [m] height of a letter
        spread: float = 0.02  # [m] half size of the square in which its middle is
        turn: float = 0.3  # [rad] either way

    def scene(self, b: SceneBuilder) -> WriteHandles:
        c = self.config
        table(b, base_camera=((0.25, 0, 0.45), (-0.1, 0, 0.0)), human_camera=((0.25, 0.3, 0.4), (-0.1, 0.0, 0.02)))
        half = c.cells * c.cell / 2
        board = Shape(
            type="box",
            size=(half + 0.01, half + 0.01, _BOARD / 2),
            pos=(*_MIDDLE, _BOARD / 2),
            rgba=(0.4, 0.3, 0.25, 1),
        )
        b.fixture("board", board)
        soft = Shape(
            type="box", size=(half, half, c.thickness / 2), pos=(*_MIDDLE, _BOARD + c.thickness / 2),
            rgba=(0.85, 0.78, 0.65, 1),
        )  # fmt: skip
        b.fixture("clay", soft, contype=0, conaffinity=0)
        self.layer: Layer = layer(
            b, "height", middle=_MIDDLE, cells=c.cells, cell=c.cell, bottom=_BOARD, thickness=c.thickness
        )
        self._letters = torch.tensor(
            [[*strokes, *[strokes[-1]] * (_MOST - len(strokes))] for strokes in LETTERS.values()]
        )
        return WriteHandles(
            robot=b.robot(),
            height=self.layer.height,
            strokes=b.variable("strokes", (_MOST, 4)),
            target=b.variable("target", (c.cells * c.cells,)),
            outline=b.dots("outline", count=_MOST * _POINTS, radius=0.003, height=0.003, rgba=(0.9, 0.4, 0.35, 1)),
            groove=b.dots("groove", count=300, radius=c.stylus, height=0.003, rgba=(0.45, 0.38, 0.3, 1)),
            used=b.variable("used"),
        )

    def start(self, h: WriteHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        letter = self._letters[rng.integers("letter", 0, len(LETTERS)).long()]
        u, v = (letter.view(h.n, 2 * _MOST, 2) - torch.tensor([0.35, 0.5])).unbind(2)
        yaw = rng.uniform("letter/yaw", -c.turn, c.turn)
        cos, sin = torch.cos(yaw)[:, None] * c.size, torch.sin(yaw)[:, None] * c.size
        # seen from the robot: up is along x, to the right is against y
        flat = torch.stack([cos * v + sin * u, sin * v - cos * u], 2)
        spot = rng.uniform("letter/xy", -c.spread, c.spread, (2,)) + torch.tensor(_MIDDLE)
        strokes = (flat + spot[:, None]).view(h.n, _MOST, 4)
        h.strokes.set(strokes)
        h.target.set(self.layer.near(strokes[:, :, :2], strokes[:, :, 2:], c.stylus).float())
        top = torch.full((h.n, _MOST * _POINTS, 1), _BOARD + c.thickness)
        h.outline.set_places(torch.cat([self._points(strokes), top], 2))

    def _points(self, strokes: Tensor) -> Tensor:
        """(n, points, 2) [m] along strokes (n, 3, 4)."""
        share = torch.linspace(0.0, 1.0, _POINTS)[:, None]
        start, end = strokes[:, :, None, :2], strokes[:, :, None, 2:]
        return (start + share * (end - start)).flatten(1, 2)

    def advance(self, h: WriteHandles) -> None:
        c, tip = self.config, h.robot.tcp_pos
        self.layer.press(tip, c.stylus, c.rim)
        low = tip[:, 2] < constant(_BOARD + c.thickness - c.depth)
        inside = ((tip[:, :2] - torch.tensor(_MIDDLE)).abs() < c.cells * c.cell / 2).all(1)
        drawn = low & inside & (h.used.value < constant(float(h.groove.group.count)))
        place = torch.cat([tip[:, :2], torch.full((h.n, 1), _BOARD + c.thickness)], 1)
        h.groove.put(h.used.value.clamp_max(h.groove.group.count - 1), place, drawn)
        h.used.set(h.used.value + drawn)

    def overlap(self, h: WriteHandles) -> Tensor:
        """(n,) intersection over union of what is pressed and the letter."""
        return self.layer.cover(self.layer.pressed(self.config.depth), h.target.value > 0)

    def _pressed(self, h: WriteHandles) -> Tensor:
        """(n, points) bool: the column at a point of the letter is pressed."""
        c = self.config
        cell = ((h.outline.pos[..., :2] - torch.tensor(_MIDDLE)) * (1.0 / c.cell) + c.cells / 2).floor().long()
        cell = cell.clamp(0, c.cells - 1)
        return self.layer.pressed(c.depth).gather(1, cell[..., 0] * c.cells + cell[..., 1])

    def evaluate(self, h: WriteHandles) -> dict[str, Tensor]:
        return {"success": self.overlap(h) > constant(self.config.overlap)}

    def observe(self, h: WriteHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "strokes": h.strokes.value.flatten(1)},
            "privileged": {"outline_pressed": self._pressed(h).float(), "overlap": self.overlap(h)},
        }

    def reward(self, h: WriteHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        pressed = self._pressed(h)
        away = torch.where(pressed, constant(10.0), norm(h.outline.pos - h.robot.tcp_pos[:, None])).amin(1)
        reach = torch.where(pressed.all(1), ONE, closeness(away, 5.0))
        return bonus({"reach": reach, "overlap": constant(3.0) * self.overlap(h)}, ev["success"], self.reward_max)

    def expert(self, h: WriteHandles) -> list[Waypoint]:
        c, down = self.config, facing_down(h.robot)
        up, low = _BOARD + c.thickness + 0.015, _BOARD + 0.003

        def at(spot: Tensor, height: float) -> Tensor:
            return pose(torch.cat([spot, torch.full((h.n, 1), height)], 1), down)

        path = []
        for k in range(_MOST):  # a letter of two strokes has its last one pressed twice
            start, end = h.strokes.value[:, k, :2], h.strokes.value[:, k, 2:]
            path += [
                Waypoint(name=f"above {k}", pose=at(start, up), gripper=1, pos_tol=0.004, timeout_s=3.0),
                Waypoint(name=f"down {k}", pose=at(start, low), gripper=1, pos_tol=0.003, speed=0.1),
                Waypoint(name=f"along {k}", pose=at(end, low), gripper=1, pos_tol=0.003, speed=0.1, timeout_s=3.0),
                Waypoint(name=f"up {k}", pose=at(end, up), gripper=1, pos_tol=0.006, speed=0.2),
            ]
        return [*path[:-1], path[-1].hold()]
