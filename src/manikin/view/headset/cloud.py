"""What a depth camera sees, as points around the person who stands in the robot's place."""

from __future__ import annotations

import struct

import mujoco
import numpy as np
import torch

from manikin.errors import ConfigError
from manikin.render.renderer import Renderer
from manikin.render.view import View
from manikin.sense.pointcloud import from_depth
from manikin.teleop.headset import turns

__all__ = ["FAR", "SIZE", "around_person", "cloud_bytes", "cloud_of"]

SIZE = (96, 72)  # of the depth picture [pixels]
FAR = 3.0  # [m] from the robot; what is further is the room


def cloud_of(
    renderer: Renderer, model: mujoco.MjModel, data: mujoco.MjData, view: View
) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) [m] in the world and their colours (n, 3) uint8: one per pixel that sees anything.

    Raises:
        ConfigError: the renderer has no depth.
    """
    if "depth" not in renderer.outputs:
        raise ConfigError(
            f"a cloud of points needs depth, which {renderer.name} does not give; use --renderer rays or gl"
        )
    seen = renderer.images(model, data, view, ("rgb", "depth"))
    cloud = from_depth(
        torch.from_numpy(seen["depth"])[None],
        torch.from_numpy(view.K),
        torch.from_numpy(view.T),
        rgb=torch.from_numpy(seen["rgb"])[None],
    )
    valid = cloud.valid[0].numpy()
    assert cloud.rgb is not None
    return cloud.xyz[0].numpy()[valid], cloud.rgb[0].numpy()[valid]


def around_person(points: np.ndarray, base: np.ndarray, turn: float) -> np.ndarray:
    """Points (n, 3) of the world in the axes forward, left and up of a person who stands where the robot's ``base``
    (7,) does, turned by ``turn`` [rad] from it. Heights are those of the world, whose table top is at 0."""
    ahead = turns.rotate(base[3:], np.array([1.0, 0.0, 0.0]))
    yaw = float(np.arctan2(ahead[1], ahead[0])) + turn
    c, s = np.cos(yaw), np.sin(yaw)
    away = points - (base[0], base[1], 0.0)
    return np.stack([c * away[:, 0] + s * away[:, 1], c * away[:, 1] - s * away[:, 0], away[:, 2]], 1)


def cloud_bytes(number: int, points: np.ndarray, colours: np.ndarray) -> bytes:
    """Little-endian: the cloud's number and how many points it has (uint32), then their places (float32, x y z) and
    colours (uint8, r g b)."""
    near = np.linalg.norm(points[:, :2], axis=1) < FAR
    points, colours = points[near], colours[near]
    head = struct.pack("<II", number, len(points))
    return head + points.astype("<f4").tobytes() + np.ascontiguousarray(colours, np.uint8).tobytes()
