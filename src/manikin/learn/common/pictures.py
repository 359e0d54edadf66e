"""Observations with pictures for trainers: what the network is told of them, and how they are varied in training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.data.recording.format import flatten
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError, UnknownNameError
from manikin.learn.common.settings import TrainerSettings
from manikin.policy.networks.pictures import DEPTH, NUMBERS
from manikin.sense.pixels import luma

__all__ = ["PictureConfig", "augmented", "augmented_with_places", "inputs_of"]

_TOLD = "policy/"  # the group of what a real robot knows


@dataclass(frozen=True, kw_only=True)
class PictureConfig(TrainerSettings):
    """Settings of algorithms that learn from pictures. They change nothing where the observation is flat.

    Attributes:
        encoder: keypoints (convolutions and a spatial softmax) or nature (three convolutions and a layer).
        channels: of its convolutions. features: per camera, of nature.
        numbers: which values of the group ``policy`` the network is told beside the pictures; all where empty.
        shift: in training, each picture is moved by up to so many pixels each way, its border repeated.
        jitter: in training, brightness, contrast and each channel of a picture in colour are multiplied by 1 - jitter
            to 1 + jitter.
        saturation: in training, what each pixel has beyond its grey is multiplied by 1 - saturation to 1 + saturation;
            with 1 a picture may lose all its colours.
    """

    encoder: str = "keypoints"
    channels: tuple[int, ...] = (16, 32, 32)
    features: int = 256
    numbers: tuple[str, ...] = ()
    shift: int = 0
    jitter: float = 0.0
    saturation: float = 0.0


def inputs_of(env: BatchEnv, config: PictureConfig) -> tuple[int, int | dict[str, Any]]:
    """How many observations the network sees together, and what it takes: columns of a flat observation, or the options
    of a :class:`~manikin.policy.networks.pictures.PictureEncoder`. Privileged values are never among them.

    Raises:
        ConfigError: the observation is neither flat nor has it pictures in colour or depth, only parts of it are
            stacked, or settings that cannot work.
        UnknownNameError: ``numbers`` names a value that the observation has not.
    """
    shape = env.single_observation_space.shape
    if shape is not None:
        return (1, int(shape[0])) if len(shape) == 1 else (int(shape[0]), int(shape[1]))
    shapes = {path: tuple(space.shape) for path, space in flatten(env.single_observation_space).items()}
    sizes = {"/rgb": slice(-3, -1), DEPTH: slice(-2, None)}  # where height and width are
    pictures = {
        path: list(one[at])
        for path, one in shapes.items()
        for end, at in sizes.items()
        if path.startswith("cameras/") and path.endswith(end)
    }
    if not pictures:
        raise ConfigError(
            f"this algorithm learns from flat observations or from pictures, and observe={env.observe!r} has neither: "
            "observe='state', 'policy', 'rgb' or 'depth'"
        )
    told = {path.removeprefix(_TOLD): one for path, one in shapes.items() if path.startswith(_TOLD)}
    for name in config.numbers:
        if name not in told:
            raise UnknownNameError("number of the observation", name, told)
    chosen = {name: told[name] for name in config.numbers or told}
    stacked = bool(env.observation.stacks)
    window = shapes[next(iter(pictures))][0] if stacked else 1
    if stacked and any(len(shapes[path]) != (3 if path.endswith(DEPTH) else 4) for path in pictures):
        raise ConfigError("a Stack must take all pictures: give it no paths")
    if stacked and any(one[:1] != (window,) for one in chosen.values()):
        raise ConfigError("a Stack must take pictures and numbers alike: give it no paths")
    return window, {
        "numbers": {_TOLD + name: math.prod(one[1:] if stacked else one) for name, one in chosen.items()},
        "pictures": pictures,
        "encoder": config.encoder,
        "channels": list(config.channels),
        "features": config.features,
    }


def augmented(taken: Any, config: PictureConfig, generator: torch.Generator) -> Any:
    """The same observations with other pictures, each frame and camera by numbers of its own.

    Args:
        taken: what ``scaling.take`` of a network gave.
        config: says how far.
        generator: on the tensors' device.
    """
    return augmented_with_places(taken, {}, config, generator)[0]


def augmented_with_places(
    taken: Any, places: Mapping[str, Tensor], config: PictureConfig, generator: torch.Generator
) -> tuple[Any, dict[str, Tensor]]:
    """As :func:`augmented`, and places in the pictures as they moved with them.

    Args:
        taken: what ``scaling.take`` of a network gave.
        places: (..., K, 2) by the picture's path: x and y from -1 (the middle of the first pixel) to 1 (of the last).
        config: says how far.
        generator: on the tensors' device.
    """
    if not isinstance(taken, Mapping) or not (config.shift or config.jitter or config.saturation):
        return taken, dict(places)
    pictures, moved = dict(taken), dict(places)
    for name, value in taken.items():
        if name != NUMBERS:
            pictures[name], moves = _varied(value, config, generator)
            if name in moved and moves is not None:
                moved[name] = moved[name] - moves
    return pictures, moved


def _varied(pictures: Tensor, config: PictureConfig, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
    """(..., H, W, C) as such, and by how much their places moved back, (..., 1, 2), where they did."""
    out, moved = pictures.reshape(-1, *pictures.shape[-3:]), None
    count, height, width = out.shape[:3]
    device = out.device
    if config.shift:
        moves = torch.randint(-config.shift, config.shift + 1, (2, count, 1), generator=generator, device=device)
        down = (torch.arange(height, device=device) + moves[0]).clamp(0, height - 1)
        across = (torch.arange(width, device=device) + moves[1]).clamp(0, width - 1)
        out = out[torch.arange(count, device=device)[:, None, None], down[:, :, None], across[:, None, :]]
        steps = torch.stack([2.0 * moves[1] / (width - 1), 2.0 * moves[0] / (height - 1)], -1)
        moved = steps.reshape(*pictures.shape[:-3], 1, 2)
    if (config.jitter or config.saturation) and out.dtype == torch.uint8:
        out = _recoloured(out, config, generator)
    return out.reshape(pictures.shape), moved


def _recoloured(pictures: Tensor, config: PictureConfig, generator: torch.Generator) -> Tensor:
    """(B, H, W, 3) uint8 as such. Brightness, contrast and saturation together are one matrix per picture, and one pass
    over its pixels."""
    count, height, width = pictures.shape[:3]
    device = pictures.device
    before = pictures.reshape(count, height * width, 3).float()
    matrix = torch.eye(3, device=device).repeat(count, 1, 1)
    offset = torch.zeros((count, 1, 3), device=device)
    if config.jitter:
        factors = 1 + config.jitter * (2 * torch.rand((count, 1, 5), generator=generator, device=device) - 1)
        bright, contrast = factors[..., :3] * factors[..., 3:4], factors[..., 4:]
        offset = (1 - contrast) * bright * before.mean(1, keepdim=True)
        matrix = torch.diag_embed((contrast * bright)[:, 0])
    if config.saturation:
        factor = 1 + config.saturation * (2 * torch.rand((count, 1, 1), generator=generator, device=device) - 1)
        grey = luma(torch.eye(3, device=device)).expand(3, 3)  # a row of colours times this is their grey
        saturated = factor * torch.eye(3, device=device) + (1 - factor) * grey
        matrix, offset = matrix @ saturated, offset @ saturated
    after = torch.baddbmm(offset, before, matrix)
    return after.round_().clamp_(0, 255).to(torch.uint8).reshape(pictures.shape)
