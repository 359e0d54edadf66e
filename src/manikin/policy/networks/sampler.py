"""From noise to actions: denoising diffusion (DDPM, DDIM) and flow matching, as one list of steps each.

DDPM: Ho et al., 2020, arXiv:2006.11239. DDIM: Song et al., 2021, arXiv:2010.02502. The squared-cosine schedule: Nichol
and Dhariwal, 2021, arXiv:2102.09672. Flow matching on straight lines: Lipman et al., 2023, arXiv:2210.02747.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from manikin.errors import ConfigError

__all__ = ["SAMPLERS", "Sampler", "squared_cosine"]

SAMPLERS = ("ddpm", "ddim", "flow")


def squared_cosine(steps: int) -> Tensor:
    """Variances beta (steps,) float64: ``1 - f((t + 1) / T) / f(t / T)``, at most 0.999, where
    ``f(s) = cos((s + 0.008) / 1.008 * pi / 2) ** 2``."""
    f = [math.cos((t / steps + 0.008) / 1.008 * math.pi / 2) ** 2 for t in range(steps + 1)]
    return torch.tensor([min(0.999, 1 - f[t + 1] / f[t]) for t in range(steps)], dtype=torch.float64)


class Sampler(nn.Module):
    """How noise is added in training, and taken away when the policy acts.

    ``x`` is data from -1 to 1, (B, ...), with noise in it.

    Args:
        kind: ddpm, which makes every step it was trained with and draws noise in each; ddim, fewer steps; flow, Euler's
            steps along the velocity.
        train_steps: levels of noise T in training.
        steps: when the policy acts; ddpm makes all of them.
        eta: of ddim: 0 draws noise only at the beginning; 1 draws as much as ddpm.
        prediction: what the network answers: ``sample``, the data; ``epsilon``, the noise (ddpm, ddim); ``velocity``,
            from noise to data (flow).

    Attributes:
        times: (steps,) the levels at which the network is asked, from noise to data, between 0 and T.
        draws: tensors of noise that a pass takes: one to begin with, and one per step that draws.

    Raises:
        ConfigError: an unknown kind, no such number of steps, or a prediction that the kind does not know.
    """

    def __init__(
        self,
        kind: str = "ddim",
        *,
        train_steps: int = 100,
        steps: int = 10,
        eta: float = 0.0,
        prediction: str,
    ) -> None:
        super().__init__()
        if kind not in SAMPLERS:
            raise ConfigError(f"sampler must be one of {', '.join(SAMPLERS)}, got {kind!r}")
        known = ("sample", "velocity" if kind == "flow" else "epsilon")
        if prediction not in known:
            raise ConfigError(f"prediction of {kind} must be one of {', '.join(known)}, got {prediction!r}")
        if not 1 <= steps <= train_steps:
            raise ConfigError(f"a sampler makes 1 to {train_steps} steps, as many as training has levels; got {steps}")
        self.kind, self.train_steps, self.eta, self.prediction = kind, train_steps, eta, prediction
        steps = train_steps if kind == "ddpm" else steps
        beta = squared_cosine(train_steps)
        kept = torch.cumprod(1 - beta, 0)  # alpha bar
        self.register_buffer("kept", kept.float(), persistent=False)
        if kind == "flow":
            self.times = [train_steps * k / steps for k in range(steps)]
        else:
            self.times = [float(k * train_steps // steps) for k in reversed(range(steps))]
        self._kept, self._beta = kept.tolist(), beta.tolist()
        self._stride = 1.0 / steps
        stochastic = kind == "ddpm" or (kind == "ddim" and eta > 0)
        self.draws = steps if stochastic else 1  # the last step draws nothing

    kept: Tensor

    # ---- training ----------------------------------------------------------------------------------------------------

    def draw_times(self, count: int, generator: torch.Generator) -> Tensor:
        """Levels (count,) float32 between 0 and T: whole numbers, for flow any."""
        device = self.kept.device
        if self.kind == "flow":
            return torch.rand(count, generator=generator, device=device) * self.train_steps
        return torch.randint(self.train_steps, (count,), generator=generator, device=device).float()

    def noised(self, x: Tensor, noise: Tensor, times: Tensor) -> Tensor:
        """Data with the noise of these levels (B,) in it."""
        shape = (-1, *[1] * (x.ndim - 1))
        if self.kind == "flow":
            share = (times / self.train_steps).view(shape)
            return (1 - share) * noise + share * x
        kept = self.kept[times.long()].view(shape)
        return kept.sqrt() * x + (1 - kept).sqrt() * noise

    def target(self, x: Tensor, noise: Tensor) -> Tensor:
        """What the network is to predict."""
        return {"sample": x, "epsilon": noise, "velocity": x - noise}[self.prediction]

    # ---- acting ------------------------------------------------------------------------------------------------------

    def step(self, k: int, x: Tensor, predicted: Tensor, noise: Tensor | None = None) -> Tensor:
        """Step ``k`` from noise towards data, counted from 0; ``noise`` where the kind draws."""
        sample = self.prediction == "sample"
        if self.kind == "flow":
            velocity = (predicted - x) / (1 - self.times[k] / self.train_steps) if sample else predicted
            return x + self._stride * velocity
        t = int(self.times[k])
        last = k == len(self.times) - 1
        kept, before = self._kept[t], 1.0 if last else self._kept[int(self.times[k + 1])]
        clean = predicted if sample else (x - math.sqrt(1 - kept) * predicted) / math.sqrt(kept)
        clean = clean.clamp(-1.0, 1.0)
        if self.kind == "ddpm":
            mean, std = self._posterior(t, kept, before, x, clean)
        else:
            mean, std = self._implicit(kept, before, x, clean)
        return mean if noise is None or last else mean + std * noise

    def _posterior(self, t: int, kept: float, before: float, x: Tensor, clean: Tensor) -> tuple[Tensor, float]:
        """Mean and deviation of what came before ``x``, given the data (equation 7 of Ho et al.)."""
        beta = self._beta[t]
        mean = math.sqrt(before) * beta / (1 - kept) * clean + math.sqrt(1 - beta) * (1 - before) / (1 - kept) * x
        return mean, math.sqrt(beta * (1 - before) / (1 - kept))

    def _implicit(self, kept: float, before: float, x: Tensor, clean: Tensor) -> tuple[Tensor, float]:
        """The same for any two levels (equation 12 of Song et al.), ``eta`` times as much noise."""
        std = self.eta * math.sqrt((1 - before) / (1 - kept) * (1 - kept / before))
        noise = (x - math.sqrt(kept) * clean) / math.sqrt(1 - kept)
        return math.sqrt(before) * clean + math.sqrt(max(0.0, 1 - before - std**2)) * noise, std
