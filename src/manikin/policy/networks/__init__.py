"""Networks that trained policies act with, by name. A checkpoint says which one and with which options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from manikin.errors import DataError, UnknownNameError
from manikin.policy.networks.chunked import ChunkTransformer
from manikin.policy.networks.cloned import Cloned, MixtureCloned
from manikin.policy.networks.denoiser import MlpDenoiser, UNetDenoiser
from manikin.policy.networks.mlp import GaussianActor, TanhGaussianActor
from manikin.policy.networks.voxels import VoxelKeyframes
from manikin.policy.networks.world_model import WorldModel

__all__ = ["NETWORKS", "GaussianActor", "TanhGaussianActor", "build"]

NETWORKS: dict[str, type[torch.nn.Module]] = {
    "gaussian": GaussianActor,
    "tanh_gaussian": TanhGaussianActor,
    "bc": Cloned,
    "bc_gmm": MixtureCloned,
    "act": ChunkTransformer,
    "denoiser_mlp": MlpDenoiser,
    "denoiser_unet": UNetDenoiser,
    "voxel": VoxelKeyframes,
    "world_model": WorldModel,
}


def build(kind: str, options: Mapping[str, Any]) -> torch.nn.Module:
    """A network of a kind, with weights yet to be loaded.

    Raises:
        UnknownNameError: there is no such kind.
        DataError: the kind takes other options.
    """
    if kind not in NETWORKS:
        raise UnknownNameError("network", kind, NETWORKS)
    try:
        return NETWORKS[kind](**options)
    except (TypeError, ValueError) as error:
        raise DataError(f"a network {kind!r} cannot be made with {dict(options)!r:.200}: {error}") from None
