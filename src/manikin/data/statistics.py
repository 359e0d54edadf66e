"""Statistics of per-frame values, for normalization: of one episode, and of many together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["aggregate", "summarize"]

_QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
_PICTURES = 100  # of an episode that enter its statistics, evenly spread


def summarize(values: np.ndarray, *, picture: bool = False) -> dict[str, Any]:
    """``min, max, mean, std, q01 ... q99`` (lists of the shape of one frame) and ``count`` of (T, ...) values.

    Pictures (T, H, W, 3) uint8 count per channel in [0, 1], as lists of shape (3, 1, 1).
    """
    values = np.asarray(values)
    count = len(values)
    if picture:
        chosen = np.unique(np.linspace(0, count - 1, min(count, _PICTURES)).round().astype(int))
        count, flat = len(chosen), values[chosen].reshape(-1, 3).astype(np.float64) / 255.0
        shape: tuple[int, ...] = (3, 1, 1)
    else:
        flat = values.reshape(count, -1).astype(np.float64)
        shape = values.shape[1:] or (1,)
    found = {"min": flat.min(0), "max": flat.max(0), "mean": flat.mean(0), "std": flat.std(0)}
    quantiles = np.quantile(flat, list(_QUANTILES.values()), axis=0)
    found |= dict(zip(_QUANTILES, quantiles, strict=True))
    return {name: value.reshape(shape).tolist() for name, value in found.items()} | {"count": [count]}


def aggregate(episodes: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Statistics of all frames from those of the episodes: feature -> what -> value.

    Exact for min, max, mean and std; a quantile is the mean of the episodes' own, weighted by their frames.
    """
    together: dict[str, dict[str, Any]] = {}
    for feature in episodes[0]:
        parts = [episode[feature] for episode in episodes]
        counts = np.array([part["count"][0] for part in parts], np.float64)
        total = counts.sum()

        def mean_of(values: Sequence[np.ndarray], weights: np.ndarray = counts / total) -> np.ndarray:
            return np.tensordot(weights, np.stack(values), 1)

        column = {name: [np.asarray(part[name], np.float64) for part in parts] for name in parts[0] if name != "count"}
        mean = mean_of(column["mean"])
        spread = [std**2 + (m - mean) ** 2 for std, m in zip(column["std"], column["mean"], strict=True)]
        found = {"min": np.min(column["min"], 0), "max": np.max(column["max"], 0), "mean": mean}
        found |= {"std": np.sqrt(mean_of(spread))} | {name: mean_of(column[name]) for name in _QUANTILES}
        together[feature] = {name: value.tolist() for name, value in found.items()} | {"count": [int(total)]}
    return together
