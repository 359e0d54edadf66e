"""Random numbers as a pure function of (episode seed, episode index, stream name, counter).

A row's numbers never depend on other rows, on the row's place, on other streams or on any global state, and the integer
arithmetic gives the same bits on every device. The generator is splitmix64 (Steele, Lea and Flood 2014): word j of a
stream is ``mix(start + (j + 1) * GAMMA)``, and each (episode, stream) starts at its own pseudo-random place.

torch has no unsigned 64-bit shifts, so words are int64 that wrap around, and a logical shift is an arithmetic one with
the upper bits masked off.
"""

from __future__ import annotations

import functools
import math
import secrets

import torch
from torch import Tensor

__all__ = ["EpisodeRng", "episode_seed_from_entropy", "hash_name", "seeds_for_reset"]

_WORD = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_SPREAD = 0xD1342543DE82EF95  # multiplier of good spectral quality (Steele and Vigna 2021), spreads small integers


def hash_name(name: str) -> int:
    """The 64-bit FNV-1a hash of the UTF-8 bytes of ``name``, in [0, 2^64). The same in every process and version."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & _WORD
    return value


def episode_seed_from_entropy() -> int:
    """A fresh seed of 48 bits from the operating system, small enough for every reader of JSON."""
    return secrets.randbits(48)


def seeds_for_reset(seed: int, n: int, device: torch.device | str = "cpu") -> Tensor:
    """Row i of ``n`` gets the episode seed ``seed + i`` (Gymnasium's rule) -> (n,) int64."""
    return torch.arange(n, dtype=torch.int64, device=device) + _signed(seed)


def _signed(word: int) -> int:
    """The int64 that has the low 64 bits of ``word``."""
    word &= _WORD
    return word - (1 << 64) if word >> 63 else word


def _mix_int(z: int) -> int:
    z = ((z ^ (z >> 30)) * _MIX_1) & _WORD
    z = ((z ^ (z >> 27)) * _MIX_2) & _WORD
    return z ^ (z >> 31)


@functools.lru_cache(maxsize=4096)
def _stream_offset(name: str) -> int:
    return _signed(_mix_int(hash_name(name)))


class _Words:
    """The integer arithmetic on one device. Ready tensors: a Python number is wrapped anew in every torch call."""

    def __init__(self, device: torch.device) -> None:
        with torch.inference_mode(False):
            self._shift = {
                k: (self._int(k, device), self._int((1 << (64 - k)) - 1, device)) for k in (27, 30, 31, 32, 40)
            }
            self._mix_1, self._mix_2 = self._int(_MIX_1, device), self._int(_MIX_2, device)
            self._gamma, self._spread = self._int(_GAMMA, device), self._int(_SPREAD, device)
            self._steps = torch.empty(0, dtype=torch.int64, device=device)
            self._outgrown: list[Tensor] = []

    @staticmethod
    def _int(word: int, device: torch.device) -> Tensor:
        return torch.tensor(_signed(word), dtype=torch.int64, device=device)

    def shift(self, z: Tensor, bits: int) -> Tensor:
        """Logical shift to the right."""
        by, mask = self._shift[bits]
        return (z >> by) & mask

    def mix(self, z: Tensor) -> Tensor:
        z = (z ^ self.shift(z, 30)) * self._mix_1
        z = (z ^ self.shift(z, 27)) * self._mix_2
        return z ^ self.shift(z, 31)

    def combine(self, key: Tensor | int, value: Tensor) -> Tensor:
        """A new key from a key and a number."""
        return self.mix((value * self._spread ^ key) + self._gamma)

    def words(self, start: Tensor, count: int) -> Tensor:
        """The first ``count`` words of the streams that begin at ``start`` (n, 1) -> (n, count)."""
        if count > len(self._steps):
            with torch.inference_mode(False):
                longer = 1 << max(6, (count - 1).bit_length())
                self._outgrown.append(self._steps)  # a CUDA graph may still read it
                self._steps = torch.arange(1, longer + 1, dtype=torch.int64, device=start.device) * self._gamma
        return self.mix(start + self._steps.narrow(0, 0, count))


@functools.lru_cache(maxsize=64)
def words_on(device: torch.device) -> _Words:
    return _Words(device)


class EpisodeRng:
    """The random numbers of n episodes, one per row.

    Each named stream is its own sequence; a second call on a name continues it. Streams do not know of each other, so
    adding a draw under a new name changes no other number.

    Args:
        seed: (n,) int64, any values.
        index: (n,) int64, number of the episode under that seed, counted from 0.

    Raises:
        ValueError: if the two are not int64 vectors of one length on one device.
    """

    def __init__(self, seed: Tensor, index: Tensor) -> None:
        ok = seed.dtype == index.dtype == torch.int64 and seed.dim() == index.dim() == 1
        if not ok or len(seed) != len(index) or seed.device != index.device:
            raise ValueError(
                f"EpisodeRng: seed and index must be int64 of one shape (n,) on one device; got {seed.dtype} "
                f"{tuple(seed.shape)} on {seed.device} and {index.dtype} {tuple(index.shape)} on {index.device}"
            )
        words = words_on(seed.device)
        self._begin(words, words.combine(words.combine(0, seed), index).unsqueeze(1))

    def _begin(self, words: _Words, key: Tensor) -> None:
        self._words = words
        self._key = key  # (n, 1)
        self._start: dict[str, Tensor] = {}
        self._used: dict[str, int] = {}

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._key)

    @property
    def device(self) -> torch.device:
        """Where the numbers are made."""
        return self._key.device

    def to(self, device: torch.device) -> EpisodeRng:
        """The same episodes' streams on another device, each from its beginning."""
        made = EpisodeRng.__new__(EpisodeRng)
        made._begin(words_on(device), self._key.to(device))
        return made

    def derive(self, value: Tensor) -> EpisodeRng:
        """Independent streams of the same episodes for another number per row, for example the control step.

        Args:
            value: (n,) int64.
        """
        if value.dtype != torch.int64 or value.shape != (self.n,):
            raise ValueError(f"derive: value must be int64 ({self.n},); got {value.dtype} {tuple(value.shape)}")
        made = EpisodeRng.__new__(EpisodeRng)
        made._begin(self._words, self._words.combine(self._key, value.unsqueeze(1)))
        return made

    def draw_words(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The next prod(shape) words of a stream, (n, prod(shape)) int64."""
        start = self._start.get(name)
        if start is None:
            start = self._start[name] = self._key + _stream_offset(name)
        first, count = self._used.get(name, 0), math.prod(shape)
        self._used[name] = first + count
        return self._words.words(start + _signed(first * _GAMMA) if first else start, count)

    def uniform(
        self, name: str, low: float | Tensor = 0.0, high: float | Tensor = 1.0, shape: tuple[int, ...] = ()
    ) -> Tensor:
        """Uniform in [low, high), from 24 bits each -> (n, *shape) float32.

        ``low`` and ``high`` are numbers, or float32 tensors broadcastable to the result. Between 0 and 1 every value is
        a multiple of 2^-24, exact; otherwise rounding may return ``high`` itself.
        """
        if not isinstance(low, Tensor) and not isinstance(high, Tensor) and low > high:
            raise ValueError(f"stream {name!r}: low {low} exceeds high {high}")
        bits = self._words.shift(self.draw_words(name, shape), 40).to(torch.float32)
        # Scaling by a power of two is exact, so it may be done on the factor, which is the smaller of the two.
        return _shaped(bits, shape) * ((high - low) * 2.0**-24) + low

    def normal(
        self, name: str, mean: float | Tensor = 0.0, std: float | Tensor = 1.0, shape: tuple[int, ...] = ()
    ) -> Tensor:
        """Normal by Box and Muller, one 64-bit word each -> (n, *shape) float32; at most 6.7 ``std`` from ``mean``.

        ``mean`` and ``std`` are numbers, or float32 tensors broadcastable to the result. The logarithm and the cosine
        are of float64 and rounded at the end, so that devices differ in about one of 10^8 numbers, by the last bit.
        """
        words = self.draw_words(name, shape)
        radius = ((self._words.shift(words, 32).to(torch.float64) + 1) * 2.0**-32).log().mul_(-2).sqrt_()
        angle = (words & 0xFFFFFFFF).to(torch.float64) * (2 * math.pi * 2.0**-32)
        return _shaped((radius * angle.cos_()).to(torch.float32), shape) * std + mean

    def integers(self, name: str, low: int, high: int, shape: tuple[int, ...] = ()) -> Tensor:
        """Integers in [low, high) -> (n, *shape) int64. Each has its probability to within 2^-32.

        Raises:
            ValueError: unless 1 <= high - low <= 2^31.
        """
        if not 1 <= high - low <= 1 << 31:
            raise ValueError(f"stream {name!r}: integers need 1 <= high - low <= 2^31; got [{low}, {high})")
        words = self._words.shift(self.draw_words(name, shape), 32)
        return _shaped((words * (high - low) >> 32) + low, shape)

    def permutation(self, name: str, k: int) -> Tensor:
        """A random order of 0 .. k - 1 for each row -> (n, k) int64."""
        mask = (1 << max(k - 1, 0).bit_length()) - 1
        # The place is written into the low bits, so that no two words are equal and every device sorts alike.
        words = self.draw_words(name, (k,)) & ~mask | torch.arange(k, device=self.device)
        return words.sort(-1).values & mask


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """(n, prod(shape)) -> (n, *shape)."""
    return x if len(shape) == 1 else x.reshape(len(x), *shape)
