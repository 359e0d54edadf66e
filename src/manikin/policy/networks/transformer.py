"""Transformer layers over short sequences (Vaswani et al., 2017, arXiv:1706.03762), normalized behind each part.

Places are added to queries and keys in every layer and not to values, as in DETR (Carion et al., 2020,
arXiv:2005.12872), whose decoder these layers are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from manikin.errors import ConfigError

__all__ = ["Attention", "DecoderLayer", "EncoderLayer", "sinusoids"]


def sinusoids(length: int, size: int) -> Tensor:
    """(length, size) places: at ``t``, sines and cosines of ``t * 10000 ** (-2 k / size)`` in turn.

    Raises:
        ConfigError: ``size`` is odd.
    """
    if size % 2:
        raise ConfigError(f"width must be even, got {size}")
    frequency = 10_000.0 ** (-torch.arange(0, size, 2) / size)
    angle = torch.arange(length).unsqueeze(1) * frequency
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1)


class Attention(nn.Module):
    """Attention with several heads.

    Args:
        width: columns. heads: that divide them. dropout: of the weights.

    Raises:
        ConfigError: ``heads`` do not divide ``width``.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ConfigError(f"heads must divide width = {width}, got {heads}")
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None = None) -> Tensor:
        """(B, Q, width) of queries (B, Q, width), keys and values (B, K, width).

        ``seen`` (B, K) bool says which keys count; None for all.
        """

        def apart(x: Tensor) -> Tensor:
            return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

        found = functional.scaled_dot_product_attention(
            apart(self.query(query)),
            apart(self.key(key)),
            apart(self.value(value)),
            attn_mask=None if seen is None else seen[:, None, None],
            dropout_p=self.dropout if self.training else 0.0,
        )
        mixed: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return mixed


class _Layer(nn.Module):
    """What both kinds of layer share: two linear layers, and adding with normalization."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, norms: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout)
        self.inner = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Dropout(dropout), nn.Linear(inner, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(norms))
        self.drop = nn.Dropout(dropout)

    def _add(self, k: int, x: Tensor, change: Tensor) -> Tensor:
        found: Tensor = self.norms[k](x + self.drop(change))
        return found


class EncoderLayer(_Layer):
    """A sequence looks at itself.

    Args:
        width, heads, dropout: see :class:`Attention`.
        inner: size between the two linear layers.
    """

    def __init__(self, width: int, heads: int, inner: int, dropout: float = 0.0) -> None:
        super().__init__(width, heads, inner, dropout, norms=2)

    def forward(self, x: Tensor, place: Tensor, seen: Tensor | None = None) -> Tensor:
        """(B, T, width) of ``x`` (B, T, width), ``place`` (T, width), ``seen`` (B, T) as of :class:`Attention`."""
        placed = x + place
        x = self._add(0, x, self.attention(placed, placed, x, seen))
        return self._add(1, x, self.inner(x))


class DecoderLayer(_Layer):
    """A sequence looks at itself, and then at another one.

    Args:
        width, heads, inner, dropout: as of :class:`EncoderLayer`.
    """

    def __init__(self, width: int, heads: int, inner: int, dropout: float = 0.0) -> None:
        super().__init__(width, heads, inner, dropout, norms=3)
        self.across = Attention(width, heads, dropout)

    def forward(self, x: Tensor, place: Tensor, memory: Tensor, memory_place: Tensor) -> Tensor:
        """(B, Q, width) of ``x`` (B, Q, width) at ``place`` (Q, width), ``memory`` (B, T, width) at ``memory_place``
        (T, width)."""
        placed = x + place
        x = self._add(0, x, self.attention(placed, placed, x))
        x = self._add(1, x, self.across(x + place, memory + memory_place, memory))
        return self._add(2, x, self.inner(x))
