"""What lies before the layers of a network: one row of numbers from an observation, flat or with pictures.

A flat observation is scaled. Of one with pictures, :class:`NamedScaling` takes the numbers and pictures that the policy
is told, and :class:`PictureEncoder` makes features of the pictures and joins them with the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from manikin.errors import ConfigError, UnknownNameError
from manikin.policy.networks.scaling import Scaling, value_at

__all__ = [
    "DEPTH",
    "ENCODERS",
    "NUMBERS",
    "KeypointCNN",
    "NamedScaling",
    "NatureCNN",
    "PictureEncoder",
    "SpatialSoftmax",
    "input_layers",
    "kept_picture",
]

NUMBERS = "numbers"
"""The name of the numbers among what :class:`NamedScaling` gives; the rest are pictures by their path."""

DEPTH = "/depth"
"""How the path of a depth picture ends; other pictures are in colour."""


def kept_picture(path: str, picture: Tensor) -> Tensor:
    """A picture of the observation as it is kept for training: (..., H, W, 3) uint8 as it is; depth (..., H, W) [m] as
    (..., H, W, 1) in half precision, which is 1 mm or better up to 2 m."""
    return picture.half().unsqueeze(-1) if path.endswith(DEPTH) else picture


def input_layers(
    observations: int | Mapping[str, Any],
) -> tuple[Scaling | NamedScaling, nn.Identity | PictureEncoder, int]:
    """Two modules, to be called one after the other, and the columns that come out.

    The first has no weights that are trained: what it gives can be kept for training. The second has those of the
    encoder of pictures; for flat observations it changes nothing.

    Args:
        observations: columns of a flat observation; or the options of a :class:`PictureEncoder`.
    """
    if isinstance(observations, int):
        return Scaling(observations), nn.Identity(), observations
    encoder = PictureEncoder(**observations)
    return NamedScaling(encoder.numbers, encoder.pictures), encoder, encoder.columns


class NamedScaling(nn.Module):
    """Numbers and pictures from a nested observation: the numbers joined and scaled, the pictures as they are.

    Args:
        numbers: columns by path, such as ``{"policy/qpos": 9}``, in the order in which they are joined.
        pictures: height and width by path, such as ``{"cameras/front/rgb": (64, 64)}``; depth where the path ends so.
    """

    def __init__(self, numbers: Mapping[str, int], pictures: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self.numbers, self.pictures = dict(numbers), dict(pictures)
        self.scaling = Scaling(sum(self.numbers.values()))

    @property
    def mean(self) -> Tensor:
        """(columns,) of the numbers."""
        return self.scaling.mean

    @property
    def std(self) -> Tensor:
        """(columns,) of the numbers."""
        return self.scaling.std

    def hide(self, columns: Sequence[int]) -> None:
        """As :meth:`~manikin.policy.networks.scaling.Scaling.hide`, of the numbers."""
        self.scaling.hide(columns)

    def take(self, observation: Mapping[str, Any]) -> dict[str, Tensor]:
        """What the policy is told, to be kept for training: ``numbers`` (B, columns), not scaled, and each picture by
        its path, as :func:`kept_picture` gives it; of a stack (B, window, ...). What this gave is given back."""
        if NUMBERS in observation:
            return dict(observation)
        pictures = {path: kept_picture(path, value_at(observation, path)) for path in self.pictures}
        leading = next(iter(pictures.values())).shape[:-3]
        numbers = [value_at(observation, path).reshape(*leading, columns) for path, columns in self.numbers.items()]
        return {NUMBERS: torch.cat(numbers, -1), **pictures}

    def forward(self, observation: Mapping[str, Any]) -> dict[str, Tensor]:
        """As :meth:`take`, with the numbers scaled."""
        taken = self.take(observation)
        return {**taken, NUMBERS: self.scaling(taken[NUMBERS])}


class SpatialSoftmax(nn.Module):
    """Where in the picture each channel is: the mean place under the channel's softmax (Levine et al., 2016,
    arXiv:1504.00702).

    ``p = softmax(value / temperature)`` over all places, and the answer is the sum of ``p`` times the place, from -1
    (left, top) to 1 (right, bottom): (B, C, H, W) becomes (B, 2 C), every x and then every y.

    Args:
        height, width: of the channels.

    Attributes:
        log_temperature: of which the temperature is the exponential; trained. It begins at 0.1, so that new channels,
            whose values are small, already tell one place from another.
    """

    x: Tensor
    y: Tensor

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.tensor(math.log(0.1)))
        across, down = torch.linspace(-1, 1, width), torch.linspace(-1, 1, height)
        self.register_buffer("x", across.repeat(height), persistent=False)
        self.register_buffer("y", down.repeat_interleave(width), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        chance = (values.flatten(2) / self.log_temperature.exp()).softmax(-1)
        return torch.cat([chance @ self.x, chance @ self.y], 1)

    def log_chances(self, values: Tensor) -> Tensor:
        """The logarithm of ``p`` for each place, (B, C, H, W)."""
        return (values.flatten(2) / self.log_temperature.exp()).log_softmax(-1).reshape(values.shape)


class KeypointCNN(nn.Sequential):
    """Convolutions and a :class:`SpatialSoftmax`: places of what the channels have learned to find. The first two of
    the convolutions halve the picture.

    Args:
        height, width: of the picture (B, inputs, height, width).
        channels: of each convolution; the last ones are found. features: does not count here.
        inputs: 3 of a picture in colour, 1 of depth.

    Attributes:
        columns: that come out.
    """

    def __init__(self, height: int, width: int, *, channels: Sequence[int], features: int, inputs: int = 3) -> None:
        layers: list[nn.Module] = []
        for i, (a, b) in enumerate(pairwise([inputs, *channels])):
            size, stride = (5, 2) if i == 0 else (3, 2) if i == 1 else (3, 1)
            layers += [nn.Conv2d(a, b, size, stride=stride, padding=size // 2), nn.ReLU()]
            height, width = -(-height // stride), -(-width // stride)
        super().__init__(*layers[:-1], SpatialSoftmax(height, width))  # the softmax is the last one's nonlinearity
        self.columns = 2 * channels[-1]

    def located(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        """(B, columns) as the network gives them, and the logarithm of how likely each channel of the last convolution
        finds each place: (B, channels, h, w)."""
        *convolutions, softmax = self
        for layer in convolutions:
            picture = layer(picture)
        assert isinstance(softmax, SpatialSoftmax)
        return softmax(picture), softmax.log_chances(picture)


class NatureCNN(nn.Sequential):
    """Three convolutions and a layer (Mnih et al., 2015, doi:10.1038/nature14236).

    Args:
        height, width: of the picture (B, inputs, height, width), 36 pixels at least.
        channels: of the three convolutions. features: of the layer. inputs: 3 of a picture in colour, 1 of depth.

    Attributes:
        columns: that come out.
    """

    def __init__(self, height: int, width: int, *, channels: Sequence[int], features: int, inputs: int = 3) -> None:
        if len(channels) != 3 or min(height, width) < 36:
            raise ConfigError(
                f"the encoder 'nature' takes three numbers of channels and pictures of 36 x 36 pixels at least, got "
                f"{list(channels)} and {height} x {width}"
            )
        layers: list[nn.Module] = []
        for (a, b), (size, stride) in zip(pairwise([inputs, *channels]), ((8, 4), (4, 2), (3, 1)), strict=True):
            layers += [nn.Conv2d(a, b, size, stride=stride), nn.ReLU()]
            height, width = (height - size) // stride + 1, (width - size) // stride + 1
        super().__init__(*layers, nn.Flatten(), nn.Linear(channels[-1] * height * width, features), nn.ReLU())
        self.columns = features


ENCODERS: dict[str, type[KeypointCNN] | type[NatureCNN]] = {"keypoints": KeypointCNN, "nature": NatureCNN}


class PictureEncoder(nn.Module):
    """Joins scaled numbers with features of pictures; each camera has a network of its own.

    Args:
        numbers, pictures: see :class:`NamedScaling`.
        encoder: ``keypoints`` or ``nature``.
        channels: of the convolutions. features: per camera, where the encoder leaves that open.

    Attributes:
        columns: that come out: the numbers, and behind them the features of each camera.

    Raises:
        UnknownNameError: no such encoder.
        ConfigError: no picture, or sizes that the encoder does not take.
    """

    def __init__(
        self,
        *,
        numbers: Mapping[str, int],
        pictures: Mapping[str, Sequence[int]],
        encoder: str = "keypoints",
        channels: Sequence[int] = (16, 32, 32),
        features: int = 256,
    ) -> None:
        super().__init__()
        if encoder not in ENCODERS:
            raise UnknownNameError("encoder of pictures", encoder, ENCODERS)
        if not pictures or not channels:
            raise ConfigError("an encoder of pictures needs a picture and channels")
        self.numbers, self.pictures = dict(numbers), {path: tuple(size) for path, size in pictures.items()}
        made = [
            ENCODERS[encoder](*size, channels=channels, features=features, inputs=1 if path.endswith(DEPTH) else 3)
            for path, size in self.pictures.items()
        ]
        self.cameras = nn.ModuleList(made)
        self.columns = sum(self.numbers.values()) + sum(one.columns for one in made)

    def forward(self, taken: Mapping[str, Tensor]) -> Tensor:
        """(B, columns), or (B, window, columns) of a stack, of what :class:`NamedScaling` gives."""
        cameras = zip(self.pictures, self.cameras, strict=True)
        return self.joined(taken, {path: network(self._scaled(taken[path])) for path, network in cameras})

    def joined(self, taken: Mapping[str, Tensor], seen: Mapping[str, Tensor]) -> Tensor:
        """As :meth:`forward`, from what each camera's network gave."""
        numbers = taken[NUMBERS]
        return torch.cat([numbers, *(seen[path].reshape(*numbers.shape[:-1], -1) for path in self.pictures)], -1)

    def located(self, taken: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """As :meth:`forward`, and the logarithm of how likely each place is, by each channel: (..., channels, h, w) by
        the picture's path.

        Raises:
            ConfigError: another encoder than ``keypoints``.
        """
        seen, chances = {}, {}
        for path, network in zip(self.pictures, self.cameras, strict=True):
            if not isinstance(network, KeypointCNN):
                raise ConfigError("only the encoder 'keypoints' says where in the picture its channels are")
            seen[path], spread = network.located(self._scaled(taken[path]))
            chances[path] = spread.reshape(*taken[path].shape[:-3], *spread.shape[1:])
        return self.joined(taken, seen), chances

    @staticmethod
    def _scaled(picture: Tensor) -> Tensor:
        """(..., H, W, C) as (B, C, H, W) from -0.5 to 0.5. Depth d [m] as 1 - tanh(d), which tells near things apart
        best (as MS-HAB); where nothing was hit it is 0, and that counts as far away."""
        rows = picture.reshape(-1, *picture.shape[-3:]).permute(0, 3, 1, 2).float()
        if picture.dtype == torch.uint8:
            return rows / 255.0 - 0.5
        return torch.where(rows > 0, 0.5 - torch.tanh(rows), -0.5)
