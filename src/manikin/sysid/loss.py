"""How far a simulated motion is from the recorded one.

``pose`` is SIMPLER's (arXiv 2405.05941): the mean over steps of |x - x'| plus the mean of
arcsin(|R - R'|_F / (2 sqrt 2)), metres and radians one to one. For rotations by an angle a from one another the second
term is a / 2, so it is computed as that: near zero the Frobenius norm loses half the digits. Steps are the instants
before each action, the first one included; trajectories count alike, however long they are.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from manikin.errors import UnknownNameError
from manikin.math import atan2, norm, quat_conj, quat_mul
from manikin.sysid.trajectories import Trajectories

__all__ = ["LOSSES", "chosen_loss", "distances", "half_turns", "residuals"]

LOSSES = {"pose": ("pos", "quat"), "position": ("pos",), "joints": ("qpos",)}
"""Name -> what has to be recorded."""


def chosen_loss(name: str | None, recorded: Trajectories) -> str:
    """A loss by its name; by default the first of :data:`LOSSES` for which everything is recorded.

    Raises:
        UnknownNameError: no such loss, or not for these recordings.
    """
    fitting = [word for word, needed in LOSSES.items() if set(needed) <= set(recorded.tracks)]
    if name is None:
        return fitting[0]
    if name not in fitting:
        raise UnknownNameError(
            "loss", name, fitting, f"(these trajectories have {', '.join(recorded.tracks)}; pose needs pos and quat)"
        )
    return name


def half_turns(quat: Tensor, other: Tensor) -> Tensor:
    """(..., 3) half the rotation vector from ``other`` (..., 4) to ``quat`` (..., 4) [rad], of length 0 to pi / 2."""
    between = quat_mul(quat, quat_conj(other))
    between = torch.where(between[..., :1] < 0, -between, between)
    length = norm(between[..., 1:])[..., None]
    half = atan2(length, between[..., :1])
    return torch.where(length > 1e-12, between[..., 1:] * (half / length.clamp_min(1e-12)), between[..., 1:])


def residuals(kind: str, simulated: dict[str, Tensor], recorded: dict[str, Tensor]) -> list[Tensor]:
    """The parts of the loss before their lengths are taken: [m], [half rad], or [rad or m] of joints, each (..., k)."""
    if kind == "joints":
        return [simulated["qpos"] - recorded["qpos"]]
    parts = [simulated["pos"] - recorded["pos"]]
    return [*parts, half_turns(simulated["quat"], recorded["quat"])] if kind == "pose" else parts


def distances(parts: list[Tensor], lengths: np.ndarray) -> np.ndarray:
    """(k, E) loss of each candidate on each trajectory, of residuals (k, E, T, ...) of which ``lengths`` (E,) count."""
    whole = sum(norm(part) for part in parts)
    assert isinstance(whole, Tensor)
    values = whole.cpu().numpy()
    return np.stack([values[:, e, :length].mean(-1) for e, length in enumerate(lengths)], -1)
