"""A person's fingertips become the joints of a robot hand.

The joints q minimize  sum of |alpha v - f(q)|^2 + beta |q - q_before|^2  within their limits: v are a person's
fingertips from the wrist, f(q) the robot's from the body that carries its palm, both in axes that point along the
fingers and out of the palm, and alpha is how much larger the robot's hand is. The objective is ManiSkill3's (section
XII of its paper, which writes the second term without the square); there NLopt solves it, here Gauss-Newton steps do,
in which a joint at its limit is held.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from manikin.control.coupled import ToolFrames
from manikin.errors import ConfigError

__all__ = ["FINGERS", "HandRetarget", "fingers_of"]

FINGERS = {
    "thumb": ("thumb", "th"),
    "index": ("index", "ff"),
    "middle": ("middle", "mf"),
    "ring": ("ring", "rf"),
    "little": ("little", "pinky", "lf"),
}
"""A person's fingers -> what tools at a robot's fingertips are called."""
PERSON = 0.17  # [m] from the wrist to the tips of the long fingers of a grown-up's open hand, on average
STEP = 0.3  # of a joint at once [rad]


def fingers_of(tools: Sequence[str]) -> dict[int, str]:
    """Finger of a person (0 is the thumb) -> the tool at the robot's fingertip; empty for what is no hand."""
    found: dict[int, str] = {}
    for finger, words in enumerate(FINGERS.values()):
        for tool in tools:
            if tool.removesuffix("_tip") in words:
                found[finger] = tool
    return found if 0 in found and len(found) > 1 else {}


class HandRetarget:
    """Of one robot hand.

    Args:
        frames: of the palm's tool first, then of those at the fingertips.
        fingers: as :func:`fingers_of` gives them, in the order of these tools.
        scale: alpha; by default from the size of the robot's open hand and that of a grown-up.
        smooth: beta [m^2/rad^2].

    Attributes:
        moves: (joints,) bool, those that move fingers and not the palm.
        axes: (3, 3) along the fingers, their right for who looks at the back of the hand, and out of the palm: columns
            in the frame of the palm's tool.

    Raises:
        ConfigError: no joint moves the fingers alone.
    """

    def __init__(
        self, frames: ToolFrames, fingers: Sequence[int], *, scale: float | None = None, smooth: float = 1e-3
    ) -> None:
        self.frames, self.fingers, self.smooth = frames, list(fingers), smooth
        rest = np.clip(frames.rest, *frames.limits.T)
        jacobians = frames.jacobians(rest)
        palm, tips = np.abs(jacobians[0]).max(0) > 1e-9, (np.abs(jacobians[1:]) > 1e-9).any((0, 1))
        self.moves = tips & ~palm
        if not self.moves.any():
            raise ConfigError("no joint of this robot moves its fingers alone")
        self._root = frames.carrier(frames.tools[0])
        open_ = rest.copy()
        open_[self.moves] = np.clip(0.0, *frames.limits[self.moves].T)
        at = self._tips(open_)
        long = [k for k, finger in enumerate(self.fingers) if finger > 0]
        ahead = at[long].mean(0)
        ahead[2] = 0.0  # the palm's tool points out of the palm
        along = ahead / max(1e-6, float(np.linalg.norm(ahead)))
        self.axes = np.stack([along, np.cross((0.0, 0.0, 1.0), along), (0.0, 0.0, 1.0)], 1)
        self._size = float(np.linalg.norm(at[long], axis=1).mean())
        self.scale = self._size / PERSON if scale is None else scale

    def measure(self, tips: np.ndarray) -> None:
        """Take the size of the person's open hand, fingertips (5, 3) from the wrist [m]."""
        long = [finger for finger in self.fingers if finger > 0]
        self.scale = self._size / max(0.05, float(np.linalg.norm(tips[long], axis=1).mean()))

    def _tips(self, q: np.ndarray) -> np.ndarray:
        """(tips, 3) [m] from the palm's carrier, in the frame of the palm's tool: f(q) before its axes are turned."""
        pos, quat = self.frames.poses(q)
        return (pos[1:] - pos[0]) @ _matrix(quat[0]) - self._root

    def wanted(self, tips: np.ndarray) -> np.ndarray:
        """(tips, 3) [m] where the robot's tips are to be: alpha v, for a person's (5, 3)."""
        return self.scale * tips[self.fingers] @ self.axes.T

    def cost(self, tips: np.ndarray, q: np.ndarray, before: np.ndarray) -> float:
        """What is minimized."""
        away = self.wanted(tips) - self._tips(q)
        return float((away**2).sum() + self.smooth * ((q - before) ** 2)[self.moves].sum())

    def solve(self, tips: np.ndarray, before: np.ndarray, *, iterations: int = 20) -> np.ndarray:
        """(joints,) [rad] for a person's fingertips (5, 3) [m] from the wrist in the axes of the hand, from the joints
        ``before``; those that do not move fingers stay."""
        low, high = self.frames.limits.T
        before = np.clip(before, low, high)
        q, wanted, damping = before.copy(), self.wanted(tips), 1e-6
        cost = self.cost(tips, q, before)
        for _ in range(iterations):
            turn = _matrix(self.frames.poses(q)[1][0])
            away = (wanted - self._tips(q)).reshape(-1)
            jac = np.concatenate([turn.T @ one[:3] for one in self.frames.jacobians(q)[1:]])
            pull = jac.T @ away - self.smooth * (q - before)
            square = jac.T @ jac + self.smooth * np.eye(len(q))
            at_end = ((q <= low) & (pull < 0)) | ((q >= high) & (pull > 0))
            free = np.flatnonzero(self.moves & ~at_end)
            if not len(free):
                break
            better = False
            while not better and damping < 1e3:
                move = np.zeros_like(q)
                move[free] = np.linalg.solve(square[np.ix_(free, free)] + damping * np.eye(len(free)), pull[free])
                move *= STEP / max(STEP, float(np.abs(move).max()))
                there = np.clip(q + move, low, high)
                new = self.cost(tips, there, before)
                better = new <= cost
                damping = max(1e-9, damping * (0.3 if better else 10.0))
            if not better:
                break
            done = float(np.abs(there - q).max()) < 1e-7
            q, cost = there, new
            if done:
                break
        return q


def _matrix(quat: np.ndarray) -> np.ndarray:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)
