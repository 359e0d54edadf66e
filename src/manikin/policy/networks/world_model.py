"""A model of the world in a latent space, and a planner in it (TD-MPC2: Hansen et al., 2024, arXiv:2310.16828)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from manikin.errors import ConfigError
from manikin.policy.networks.scaling import Scaling

__all__ = ["Bins", "WorldModel"]


class Bins:
    """Numbers as weights of the two nearest of evenly spaced values, on a logarithmic scale.

    A number x stands at ``sign(x) log(1 + |x|)`` among ``count`` values from ``-span`` to ``span``.
    """

    def __init__(self, count: int = 101, span: float = 10.0) -> None:
        self.count, self.span = count, span

    def weights(self, values: Tensor) -> Tensor:
        """(..., count) of values (...): their two weights, which add up to 1."""
        place = (values.sign() * values.abs().log1p()).clamp(-self.span, self.span)
        place = (place + self.span) * (self.count - 1) / (2 * self.span)
        values_at = torch.arange(self.count, device=values.device, dtype=values.dtype)
        return (1.0 - (place[..., None] - values_at).abs()).clamp_min(0.0)

    def loss(self, logits: Tensor, values: Tensor) -> Tensor:
        """Cross entropy (...) of logits (..., count) against values (...)."""
        return -(self.weights(values) * logits.log_softmax(-1)).sum(-1)

    def values(self, logits: Tensor) -> Tensor:
        """(...) the numbers that logits (..., count) mean."""
        at = torch.linspace(-self.span, self.span, self.count, device=logits.device)
        place = (logits.softmax(-1) * at).sum(-1)
        return place.sign() * place.abs().expm1()


class _Simplex(nn.Module):
    """Softmax over groups of columns: latents stay bounded and sparse."""

    def __init__(self, group: int) -> None:
        super().__init__()
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.group)).softmax(-1).flatten(-2)


def _layers(inputs: int, hidden: Sequence[int], outputs: int, last: nn.Module | None = None) -> nn.Sequential:
    """Linear, layer normalization, SiLU (published: Mish, which costs a third of all time on a processor); the last
    layer linear, or normalized and followed by ``last``."""
    sizes = [inputs, *hidden, outputs]
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(pairwise(sizes)):
        linear = nn.Linear(a, b)
        nn.init.trunc_normal_(linear.weight, std=0.02)
        nn.init.zeros_(linear.bias)
        layers.append(linear)
        if i < len(sizes) - 2:
            layers += [nn.LayerNorm(b), nn.SiLU()]
        elif last is not None:
            layers += [nn.LayerNorm(b), last]
    return nn.Sequential(*layers)


class _Critics(nn.Module):
    """``count`` networks like :func:`_layers`, computed as one by batched matrix products.

    (B, D) to (K, B, outputs); of ``some``, only these of the K.
    """

    def __init__(self, count: int, inputs: int, hidden: Sequence[int], outputs: int) -> None:
        super().__init__()
        self.count, sizes = count, [inputs, *hidden, outputs]
        shapes = list(pairwise(sizes))
        weights = [nn.init.trunc_normal_(torch.empty(count, a, b), std=0.02) for a, b in shapes[:-1]]
        weights.append(torch.zeros(count, *shapes[-1]))
        self.weights = nn.ParameterList(nn.Parameter(weight) for weight in weights)
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(count, 1, b)) for _, b in shapes)
        self.gains = nn.ParameterList(nn.Parameter(torch.ones(count, 1, b)) for _, b in shapes[:-1])
        self.shifts = nn.ParameterList(nn.Parameter(torch.zeros(count, 1, b)) for _, b in shapes[:-1])

    def forward(self, joined: Tensor, some: Sequence[int] | None = None) -> Tensor:
        chosen = slice(None) if some is None else list(some)
        x = joined.expand(self.count if some is None else len(some), *joined.shape)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias[chosen], x, weight[chosen])
            if i < len(self.gains):
                normed = nn.functional.layer_norm(x, x.shape[-1:])
                x = nn.functional.silu(torch.addcmul(self.shifts[i][chosen], normed, self.gains[i][chosen]))
        return x


class WorldModel(nn.Module):
    """Actions (B, A) from observations (B, D), by planning in a learned model.

    Planning is model predictive path integral control: sequences of actions are drawn, the model says what each would
    bring, and the mean moves to the best. Noise is drawn once, when the network is made, and saved with its weights. So
    the policy is a function of the observation.

    Args:
        observations, actions: columns of an observation, dimensions of an action.
        latent: columns of a latent state, a multiple of ``group``, over which a softmax is taken.
        hidden: sizes of the layers between. critics: how many.
        gamma: discount per control step, in planning.
        plan: control steps ahead. iterations: of planning. samples: sequences in each. proposals: the policy's among
            them.
        elites: sequences that move the mean. sharpness: of their weights. std_range: of the drawn actions.

    Raises:
        ConfigError: sizes that do not go together.
    """

    noise: Tensor
    proposal_noise: Tensor

    def __init__(
        self,
        *,
        observations: int,
        actions: int,
        latent: int = 128,
        group: int = 8,
        hidden: Sequence[int] = (256, 256),
        critics: int = 5,
        gamma: float = 0.99,
        plan: int = 3,
        iterations: int = 6,
        samples: int = 128,
        proposals: int = 8,
        elites: int = 16,
        sharpness: float = 0.5,
        std_range: Sequence[float] = (0.05, 2.0),
    ) -> None:
        super().__init__()
        if latent % group:
            raise ConfigError(f"latent must be a multiple of group = {group}, got {latent}")
        if not 0 < elites <= samples or not 0 <= proposals <= samples or min(plan, iterations, critics) < 1:
            raise ConfigError(
                f"planning needs 1 to samples = {samples} elites, at most as many proposals, and plan, iterations and "
                f"critics of 1 or more; got elites {elites}, proposals {proposals}, plan {plan}, iterations "
                f"{iterations}, critics {critics}"
            )
        self.actions, self.gamma, self.plan_steps = actions, gamma, plan
        self.iterations, self.samples, self.proposals, self.elites = iterations, samples, proposals, elites
        self.sharpness, (self.least, self.most) = sharpness, std_range
        self.bins, size = Bins(), latent + actions
        self.scaling = Scaling(observations)
        self.encoder = _layers(observations, hidden[:1], latent, _Simplex(group))
        self.dynamics = _layers(size, hidden, latent, _Simplex(group))
        self.reward = _layers(size, hidden, self.bins.count)
        self.actor = _layers(latent, hidden, 2 * actions)
        self.critics = _Critics(critics, size, hidden, self.bins.count)
        nn.init.zeros_(self.reward[-1].weight)  # type: ignore[arg-type]
        drawn = samples - proposals
        half = torch.randn(iterations, -(-drawn // 2), plan, actions)  # house: random, as weights, under a run's seed
        # each with its opposite: noise that is drawn once and for all must not lean to one side
        self.register_buffer("noise", torch.cat([half, -half], 1)[:, :drawn].contiguous())
        own = torch.randn(proposals, plan + 1, actions)  # house: random, as weights, under a run's seed
        self.register_buffer("proposal_noise", own)

    # ---- the model ---------------------------------------------------------------------------------------------------

    def after(self, latent: Tensor, action: Tensor) -> Tensor:
        """The latent state (B, L) that follows."""
        return self.dynamics(torch.cat([latent, action], -1))

    def reward_of(self, latent: Tensor, action: Tensor) -> Tensor:
        """Logits (B, bins) of the reward."""
        return self.reward(torch.cat([latent, action], -1))

    def values(self, latent: Tensor, action: Tensor) -> Tensor:
        """Logits (K, B, bins) of each critic's value."""
        return self.critics(torch.cat([latent, action], -1))

    def drawn_action(self, latent: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (B, A) of the policy beside the planner, and the logarithm of their density (B,), for normal numbers
        ``noise`` (B, A)."""
        mean, spread = self.actor(latent).chunk(2, -1)
        log_std = -4.0 + 6.0 * spread.tanh()  # -10 to 2
        u = mean + log_std.exp() * noise
        normal = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
        change = 2.0 * (math.log(2.0) - u - nn.functional.softplus(-2.0 * u))
        return u.tanh(), (normal - change).sum(-1)

    # ---- planning ----------------------------------------------------------------------------------------------------

    def planned(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and spread (B, A) of the first action of the best sequences from latent states (B, L)."""
        b, h, a = latent.shape[0], self.plan_steps, self.actions
        every = latent[:, None].expand(-1, self.samples, -1).flatten(0, 1)
        proposed = self._proposed(latent)
        mean = latent.new_zeros(b, 1, h, a)
        std = torch.full_like(mean, self.most)
        for i in range(self.iterations):
            drawn = (mean + std * self.noise[i]).clamp(-1.0, 1.0)
            tried = torch.cat([drawn, proposed], 1)  # (B, S, H, A)
            worth = self.worth(every, tried.flatten(0, 1)).view(b, self.samples)
            best, place = worth.topk(self.elites, 1)
            elite = tried.gather(1, place[:, :, None, None].expand(-1, -1, h, a))
            weight = (self.sharpness * (best - best[:, :1])).softmax(1)[:, :, None, None]
            mean = (weight * elite).sum(1, keepdim=True)
            std = (weight * (elite - mean).square()).sum(1, keepdim=True).sqrt().clamp(self.least, self.most)
        return mean[:, 0, 0], std[:, 0, 0]

    def _proposed(self, latent: Tensor) -> Tensor:
        """(B, proposals, plan, A): the policy's own sequences."""
        b, n = latent.shape[0], self.proposals
        at = latent[:, None].expand(-1, n, -1).flatten(0, 1)
        found = []
        for t in range(self.plan_steps):
            action, _ = self.drawn_action(at, self._own(t, b))
            at = self.after(at, action)
            found.append(action.view(b, n, self.actions))
        return torch.stack(found, 2)

    def _own(self, t: int, rows: int) -> Tensor:
        return self.proposal_noise[:, t].expand(rows, -1, -1).flatten(0, 1)

    def worth(self, at: Tensor, tried: Tensor) -> Tensor:
        """(B * S,) discounted rewards that the model says, and the critics' value behind them."""
        total, discount = at.new_zeros(at.shape[0]), 1.0
        for t in range(self.plan_steps):
            action = tried[:, t]
            total = total + discount * self.bins.values(self.reward_of(at, action))
            at = self.after(at, action)
            discount *= self.gamma
        action = self.actor(at).chunk(2, -1)[0].tanh()
        return total + discount * self.bins.values(self.values(at, action)).mean(0)

    def forward(self, observation: Tensor) -> Tensor:
        return self.planned(self.encoder(self.scaling(observation)))[0]
