"""Ways to search: each asks for points in the unit cube, is told what they are worth, and asks again.

A method is a generator. It yields points (k, P) and is sent their losses (k,), or their residuals (k, R) where it says
so; it ends when it has nothing more to ask. What it asks depends on its seed and on what it was told, and on nothing
else, so that a search that was killed goes the same way again.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from mujoco import minimize

from manikin.errors import ConfigError

__all__ = ["STEP", "Anneal", "Cma", "Method", "Squares", "Stream", "differences", "follow"]

STEP = 1e-3
"""Of finite differences, in shares of a parameter's range."""

Asks = Generator[np.ndarray, np.ndarray, None]
Stream = np.random.Generator  # house: random, a type
Residual = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Anneal:
    """Simulated annealing as SIMPLER does it, with many chains side by side.

    A neighbour is x + (u - 1/2) step for u uniform in [0, 1) in each coordinate, clipped to the round's range; it is
    taken if a number uniform in [0, 1) is below exp(-dE / T); T falls linearly from ``temperature`` to 0. Each round
    begins at the best point so far, with ranges ``shrink`` times as wide around it.

    Attributes:
        rounds: how many.
        candidates: of a round, over all chains.
        chains: that run side by side; 1 is the original. Fewer than ``candidates``.
        temperature: of the first step, in the loss's unit. The original's 1.5 takes nearly every step.
        step: of a neighbour, in shares of the round's range.
        shrink: of the ranges from round to round.
    """

    rounds: int = 3
    candidates: int = 400
    chains: int = 40
    temperature: float = 1.5
    step: float = 1.0
    shrink: float = 0.4
    name = "anneal"

    def __post_init__(self) -> None:
        """Raises ConfigError for numbers that make no search."""
        if min(self.rounds, self.chains) < 1 or self.candidates < self.chains:
            raise ConfigError(f"anneal needs rounds and chains of at least 1, and as many candidates as chains: {self}")
        if not (self.temperature > 0 and self.step > 0 and 0 < self.shrink <= 1):
            raise ConfigError(f"anneal needs temperature > 0, step > 0 and 0 < shrink <= 1: {self}")

    def generation(self, count: int) -> int:
        """How many points are asked for at a time, of so many parameters."""
        return self.chains

    def __call__(self, start: np.ndarray, loss: float, rng: Stream) -> Asks:
        best, least = start.copy(), loss
        low, high = np.zeros_like(start), np.ones_like(start)
        steps = self.candidates // self.chains
        for number in range(self.rounds):
            if number:
                half = 0.5 * self.shrink**number
                low, high = np.clip(best - half, 0, 1), np.clip(best + half, 0, 1)
            x, energy = np.tile(best, (self.chains, 1)), np.full(self.chains, least)
            for k in range(steps):
                heat = self.temperature * (1 - k / steps)
                move = (rng.random(x.shape) - 0.5) * self.step * (high - low)
                asked = np.clip(x + move, low, high)
                found = yield asked
                with np.errstate(over="ignore", invalid="ignore"):
                    taken = rng.random(self.chains) < np.exp(-(found - energy) / heat)
                x, energy = np.where(taken[:, None], asked, x), np.where(taken, found, energy)
                if found.min() < least:
                    best, least = asked[found.argmin()].copy(), float(found.min())


@dataclass(frozen=True, kw_only=True)
class Cma:
    """Covariance matrix adaptation (Hansen, arXiv 1604.00772), points clipped to the cube.

    Attributes:
        candidates: in all.
        population: of a generation; 0 for 4 + 3 ln P, at least.
        sigma: of the first generation, in shares of the ranges.
    """

    candidates: int = 1200
    population: int = 0
    sigma: float = 0.25
    name = "cma"

    def __post_init__(self) -> None:
        """Raises ConfigError for numbers that make no search."""
        if self.candidates < 4 or self.population < 0 or 0 < self.population < 4 or not self.sigma > 0:
            raise ConfigError(f"cma needs candidates >= 4, a population of 0 or at least 4, and sigma > 0: {self}")

    def generation(self, count: int) -> int:
        """How many points are asked for at a time, of so many parameters."""
        return self.population or 4 + int(3 * math.log(count))

    def __call__(self, start: np.ndarray, loss: float, rng: Stream) -> Asks:
        n = len(start)
        size = self.generation(n)
        half = size // 2
        weights = np.log((size + 1) / 2) - np.log(np.arange(1, half + 1))
        weights /= weights.sum()
        mu = 1 / (weights**2).sum()
        c_sigma = (mu + 2) / (n + mu + 5)
        d_sigma = 1 + 2 * max(0.0, math.sqrt((mu - 1) / (n + 1)) - 1) + c_sigma
        c_c = (4 + mu / n) / (n + 4 + 2 * mu / n)
        c_1 = 2 / ((n + 1.3) ** 2 + mu)
        c_mu = min(1 - c_1, 2 * (mu - 2 + 1 / mu) / ((n + 2) ** 2 + mu))
        usual = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))
        mean, sigma, spread = start.copy(), self.sigma, np.eye(n)
        path_sigma, path_c = np.zeros(n), np.zeros(n)
        for generation in range(1, max(1, self.candidates // size) + 1):
            values, axes = np.linalg.eigh((spread + spread.T) / 2)
            scale = np.sqrt(np.maximum(values, 1e-20))
            asked = np.clip(mean + sigma * (rng.standard_normal((size, n)) * scale) @ axes.T, 0, 1)
            found = yield asked
            order = np.argsort(found, kind="stable")[:half]
            steps = (asked[order] - mean) / sigma
            step = weights @ steps
            mean = mean + sigma * step
            whitened = axes @ ((axes.T @ step) / scale)
            path_sigma = (1 - c_sigma) * path_sigma + math.sqrt(c_sigma * (2 - c_sigma) * mu) * whitened
            length = float(np.linalg.norm(path_sigma))
            still = length / math.sqrt(1 - (1 - c_sigma) ** (2 * generation)) < (1.4 + 2 / (n + 1)) * usual
            path_c = (1 - c_c) * path_c + still * math.sqrt(c_c * (2 - c_c) * mu) * step
            rank_one = np.outer(path_c, path_c) + (not still) * c_c * (2 - c_c) * spread
            spread = (1 - c_1 - c_mu) * spread + c_1 * rank_one + c_mu * (steps.T * weights) @ steps
            sigma *= math.exp(min(1.0, c_sigma / d_sigma * (length / usual - 1)))
            sigma = min(sigma, 1.0)


@dataclass(frozen=True, kw_only=True)
class Squares:
    """Least squares by ``mujoco.minimize.least_squares``, the solver of ``mujoco.sysid``: Gauss-Newton with a trust
    region and box bounds. Derivatives are central differences, all columns of a Jacobian at once.

    It minimizes the sum of squared residuals, where the losses add lengths; the two agree where a motion is followed.

    Attributes:
        iterations: at most.
    """

    iterations: int = 15
    name = "squares"

    def __post_init__(self) -> None:
        """Raises ConfigError for no iterations."""
        if self.iterations < 1:
            raise ConfigError(f"squares needs at least one iteration, not {self.iterations}")

    def solve(self, start: np.ndarray, residual: Residual) -> np.ndarray:
        """The point (P,) that it ends at; ``residual`` gives (k, R) of points (k, P)."""
        ends = (np.zeros_like(start), np.ones_like(start))
        found, _ = minimize.least_squares(
            start,
            lambda x: residual(x.T).T,
            bounds=ends,
            jacobian=lambda x, _: differences(x[:, 0], residual),
            max_iter=self.iterations,
            xtol=1e-6,
            verbose=0,
            output=io.StringIO(),
        )
        return np.clip(found.reshape(-1), 0, 1)


Method = Anneal | Cma | Squares


def follow(
    way: Anneal | Cma, start: np.ndarray, loss: float, losses: Callable[[np.ndarray], np.ndarray], rng: Stream
) -> None:
    """Ask and tell until the method ends.

    Args:
        way: annealing or CMA.
        start: (P,) point in the unit cube that it begins at.
        loss: of that point.
        losses: gives (k,) of points (k, P), and remembers what it wants of them.
        rng: random numbers.
    """
    asks = way(start, loss, rng)
    try:
        asked = next(asks)
        while True:
            asked = asks.send(losses(asked))
    except StopIteration:
        return


def differences(at: np.ndarray, residual: Residual) -> np.ndarray:
    """(R, P) derivative of residuals at a point, by central differences; one-sided at the end of a range."""
    ahead, behind = (np.clip(at + sign * STEP * np.eye(len(at)), 0, 1) for sign in (1, -1))
    both = residual(np.concatenate([ahead, behind]))
    width = np.diagonal(ahead) - np.diagonal(behind)
    slope: np.ndarray = ((both[: len(at)] - both[len(at) :]) / width[:, None]).T
    return slope
