"""Where in its pictures things are: known in simulation, so that an encoder can be taught to find them.

A network that learns actions from pictures must find small things on the way. Where colours, light and camera vary, the
actions alone say too little about that: the loss stays that of the mean for thousands of gradient steps. Told where the
things are, the first channels of a spatial softmax find them within hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from manikin.data.recording.format import flatten
from manikin.env.interface import BatchEnv, SceneEnv
from manikin.errors import ConfigError, UnknownNameError
from manikin.policy.networks.pictures import kept_picture
from manikin.scene.handles import Part, Robot

__all__ = ["Locator", "place_loss", "projected"]


class Locator:
    """Says where the things of a scene are in its pictures.

    Args:
        env: observes pictures, with the poses of their cameras.
        names: of parts, or of robots: these are where their tool is.
        pictures: paths of the pictures, such as ``cameras/front/rgb``.

    Raises:
        UnknownNameError: no part or robot has that name.
        ConfigError: two names are equal.
    """

    def __init__(self, env: BatchEnv, names: Iterable[str], pictures: Iterable[str]) -> None:
        self.names = tuple(names)
        if len(set(self.names)) != len(self.names):
            raise ConfigError(f"each thing is found once, got {', '.join(self.names)}")
        known = [one.name for one in _found_in(env.part(0)[0])]
        for name in self.names:
            if name not in known:
                raise UnknownNameError("thing to find", name, known)
        self._env, self._pictures = env, tuple(pictures)

    def __call__(self, observation: Mapping[str, object]) -> dict[str, Tensor]:
        """(N, K, 2) by path, of the present observation and as :func:`projected` gives them."""
        leaves = flatten(observation)
        points = self._env.gather(self._points)
        found = {}
        for path in self._pictures:
            camera, picture = path.rpartition("/")[0], kept_picture(path, leaves[path])
            K, T = (leaves[f"{camera}/{name}"] for name in ("K", "T"))
            stacked = picture.ndim == 5  # the last frame is the present
            K, T = (value[:, -1] if stacked and value.ndim == 4 else value for value in (K, T))
            found[path] = projected(points, K, T, picture.shape[-2], picture.shape[-3])
        return found

    def _points(self, env: SceneEnv) -> Tensor:
        at = {one.name: one.tcp_pos if isinstance(one, Robot) else one.pos for one in _found_in(env)}
        return torch.stack([at[name] for name in self.names], 1)


def _found_in(env: SceneEnv) -> list[Robot | Part]:
    return [one for one in env.things if isinstance(one, Robot | Part)]


def projected(points: Tensor, K: Tensor, T: Tensor, width: int, height: int) -> Tensor:
    """Where points are in pictures.

    Args:
        points: (N, K, 3) [m] in the world.
        K: (N, 3, 3) intrinsics [pixels], pixel centres at integers.
        T: (N, 4, 4) camera to world, OpenCV frame.
        width: of the pictures [pixels].
        height: of the pictures [pixels].

    Returns:
        (N, K, 2) x and y from -1 (the middle of the first pixel) to 1 (of the last); NaN behind the camera.
    """
    seen = (points - T[:, None, :3, 3]) @ T[:, :3, :3]
    pixels = seen @ K.mT
    places = 2.0 * pixels[..., :2] / pixels[..., 2:] / torch.tensor([width - 1, height - 1], device=points.device) - 1.0
    return torch.where(seen[..., 2:] > 0, places, torch.nan)


def place_loss(chances: Tensor, places: Tensor) -> Tensor:
    """How unlikely the true places are to the first channels: the mean of ``-log p``.

    Each place's probability is spread over the four cells around it, by how near they are. Places outside the picture
    count for nothing; where all are, the loss is 0.

    Args:
        chances: (B, C, h, w) logarithms of probabilities that sum to 1 over each channel.
        places: (B, K, 2) with K of C at most; channel k is to find place k.
    """
    height, width = chances.shape[-2:]
    inside = ((places >= -1) & (places <= 1)).all(-1)  # not where they are NaN
    at = (torch.where(inside[..., None], places, 0.0) + 1) / 2 * torch.tensor([width - 1, height - 1]).to(places)
    low = torch.minimum(at.floor(), torch.tensor([max(width - 2, 0), max(height - 2, 0)]).to(places))
    right, down = (at - low).unbind(-1)
    first = (low[..., 1] * width + low[..., 0]).long()
    flat = chances[:, : places.shape[1]].flatten(2)
    total = torch.zeros_like(right)
    for step, share in (
        (0, (1 - right) * (1 - down)),
        (1, right * (1 - down)),
        (width, (1 - right) * down),
        (width + 1, right * down),
    ):
        total = total + share * flat.gather(2, (first + step)[..., None])[..., 0]
    count = inside.sum()
    return -(total * inside).sum() / count.clamp(min=1)
