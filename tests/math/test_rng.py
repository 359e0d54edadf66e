"""rng: against splitmix64 in Python integers, published constants, statistics, and independence of rows and streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch.utils._python_dispatch import TorchDispatchMode

from manikin import rng as module
from manikin.rng import EpisodeRng, episode_seed_from_entropy, hash_name, seeds_for_reset

WORD = (1 << 64) - 1


def ints(*values):
    return torch.tensor(values, dtype=torch.int64)


def episodes(n, seed=0, index=0):
    return EpisodeRng(seeds_for_reset(seed, n), torch.full((n,), index))


# ---- reference in Python integers ----------------------------------------------------------------------------------


def splitmix64(state, count):
    """The published generator: add the constant, then mix (Steele, Lea and Flood 2014; Vigna's splitmix64.c)."""
    out = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        out.append(z ^ (z >> 31))
    return out


def combine(key, value):
    return splitmix64((value * 0xD1342543DE82EF95 & WORD) ^ key, 1)[0]


def reference(seed, index, name, count):
    h = hash_name(name)
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & WORD
    h ^= h >> 31
    key = combine(combine(0, seed & WORD), index & WORD)
    return splitmix64((key + h) & WORD, count)


def test_reference_gives_the_published_outputs():
    # First outputs of splitmix64 seeded with 0 and with 1234567, as printed by the authors' C program.
    assert splitmix64(0, 3) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert splitmix64(1234567, 2) == [6457827717110365317, 3203168211198807973]


@pytest.mark.parametrize(
    "name, value", [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)]
)
def test_hash_name_is_fnv1a(name, value):
    assert hash_name(name) == value


def test_words_match_the_reference_exactly():
    seeds = [0, 1, 42, -1, 2**63 - 1, -(2**63), 123456789012345]
    indices = [0, 1, 2, 7, 2**40, -5, 0]
    got = EpisodeRng(ints(*seeds), ints(*indices)).draw_words("cube pose ü", (100,))
    for row, (seed, index) in enumerate(zip(seeds, indices, strict=True)):
        assert [w & WORD for w in got[row].tolist()] == reference(seed, index, "cube pose ü", 100)


def test_floats_integers_and_orders_match_the_reference():
    words = reference(5, 3, "x", 64)
    one = lambda: EpisodeRng(ints(5), ints(3))  # noqa: E731
    assert one().uniform("x", shape=(64,))[0].tolist() == [(w >> 40) / 2**24 for w in words]
    got = one().uniform("x", -0.3, 0.5, (8, 8)).flatten().numpy()
    want = np.array([w >> 40 for w in words], np.float32) * np.float32(0.8 / 2**24) + np.float32(-0.3)
    np.testing.assert_array_equal(got, want)
    assert one().integers("x", -3, 10, (64,))[0].tolist() == [((w >> 32) * 13 >> 32) - 3 for w in words]
    u1, u2 = ([((w >> 32) + 1) / 2**32 for w in words], [(w & 0xFFFFFFFF) / 2**32 for w in words])
    want = [math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in zip(u1, u2, strict=True)]
    np.testing.assert_allclose(one().normal("x", shape=(64,))[0], want, rtol=2e-7)


def test_golden_values():
    """Changing these numbers changes every recorded episode."""
    rng = EpisodeRng(ints(0, 7), ints(0, 2))
    torch.testing.assert_close(rng.uniform("goal", -1, 1, (2,)), torch.tensor(GOLDEN["uniform"]), rtol=0, atol=0)
    torch.testing.assert_close(rng.normal("goal", shape=(2,)), torch.tensor(GOLDEN["normal"]), rtol=2e-7, atol=0)
    assert rng.integers("kind", 0, 1000, (2,)).tolist() == GOLDEN["integers"]
    assert rng.permutation("order", 5).tolist() == GOLDEN["permutation"]
    assert rng.derive(ints(1, 1)).integers("kind", 0, 1000).tolist() == GOLDEN["derived"]


GOLDEN = {
    "uniform": [[0.5424380302429199, 0.036910414695739746], [-0.20643973350524902, -0.37720930576324463]],
    "normal": [[0.3166864216327667, -0.9398236870765686], [-0.7543357610702515, -0.3364676833152771]],
    "integers": [[904, 44], [806, 627]],
    "permutation": [[3, 1, 0, 4, 2], [0, 3, 4, 1, 2]],
    "derived": [268, 551],
}


# ---- independence --------------------------------------------------------------------------------------------------


def everything(rng):
    return (
        rng.uniform("a", 0, 2, (3,)),
        rng.normal("b", shape=(2, 2)),
        rng.integers("c", 0, 7),
        rng.permutation("d", 6),
        rng.uniform("a", -1, 1),
        rng.derive(torch.full((rng.n,), 4, dtype=torch.int64)).normal("a", shape=(5,)),
    )


@pytest.mark.parametrize("n", [1, 2, 7, 256])
def test_a_row_does_not_depend_on_its_neighbours(n):
    seeds, index = seeds_for_reset(100, 300), torch.arange(300) % 5
    whole = everything(EpisodeRng(seeds, index))
    rows = torch.randperm(300, generator=torch.Generator().manual_seed(n))[:n]
    for part, all_rows in zip(everything(EpisodeRng(seeds[rows], index[rows])), whole, strict=True):
        assert torch.equal(part, all_rows[rows])


def test_streams_continue_and_do_not_disturb_each_other():
    a, b = episodes(4), episodes(4)
    first, second = a.uniform("x", shape=(3,)), a.uniform("x", shape=(2,))
    b.normal("other", shape=(9,))
    assert torch.equal(torch.cat((first, second), 1), b.uniform("x", shape=(5,)))
    assert not torch.equal(episodes(4).uniform("y", shape=(3,)), first)
    assert not torch.equal(episodes(4, index=1).uniform("x", shape=(3,)), first)


def test_no_global_generator_is_touched():
    before = torch.get_rng_state()
    everything(episodes(5))
    episode_seed_from_entropy()
    assert torch.equal(before, torch.get_rng_state())


def test_results_under_inference_mode_do_not_poison_later_calls():
    module.words_on.cache_clear()
    with torch.inference_mode():
        episodes(2).uniform("x", shape=(200,))
    scale = torch.ones(2, 200, requires_grad=True)
    (episodes(2).uniform("x", shape=(200,)) * scale).sum().backward()
    assert scale.grad is not None


# ---- statistics ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda: episodes(100_000).uniform("x"),  # neighbouring seeds
        lambda: EpisodeRng(torch.zeros(100_000, dtype=torch.int64), torch.arange(100_000)).uniform("x"),  # episodes
        lambda: episodes(1).uniform("x", shape=(100_000,)),  # one stream
        lambda: torch.cat([episodes(1).uniform(f"stream {i}") for i in range(5000)]),  # names
        lambda: torch.cat([episodes(1).derive(ints(i)).uniform("x") for i in range(5000)]),
    ],
)
def test_uniform_is_uniform(draw):
    x = draw().flatten().double().numpy()
    assert x.min() >= 0
    assert x.max() < 1
    assert (x * 2**24 == np.floor(x * 2**24)).all()
    assert stats.kstest(x, "uniform").pvalue > 1e-3
    assert stats.chisquare(np.histogram(x, bins=200, range=(0, 1))[0]).pvalue > 1e-3
    low_bits = (x * 2**24).astype(np.int64) & 0xFF
    assert stats.chisquare(np.bincount(low_bits, minlength=256)).pvalue > 1e-3


def test_normal_is_normal():
    x = episodes(300).normal("x", 1.0, 2.0, (1000,)).double().numpy().ravel()
    assert stats.kstest((x - 1) / 2, "norm").pvalue > 1e-3
    assert abs(stats.kurtosis(x)) < 0.03
    assert np.abs((x - 1) / 2).max() < 6.7


def test_integers_and_permutations_are_fair():
    counts = np.bincount(episodes(200).integers("x", 0, 13, (1000,)).flatten().numpy(), minlength=13)
    assert stats.chisquare(counts).pvalue > 1e-3
    orders = episodes(60_000).permutation("x", 4)
    assert (orders.sort(-1).values == torch.arange(4)).all()
    which = (orders * torch.tensor([64, 16, 4, 1])).sum(-1).numpy()
    assert stats.chisquare(np.unique(which, return_counts=True)[1]).pvalue > 1e-3
    assert len(np.unique(which)) == 24
    assert episodes(3).permutation("x", 1).tolist() == [[0]] * 3
    assert episodes(1).integers("x", 0, 1 << 31, (1000,)).max() > 1 << 30


def test_neighbouring_seeds_episodes_streams_and_steps_are_uncorrelated():
    n = 20_000
    base = episodes(n)
    x = base.uniform("x")
    others = [
        episodes(n, seed=1).uniform("x"),
        episodes(n, index=1).uniform("x"),
        episodes(n).uniform("y"),
        episodes(n).derive(torch.zeros(n, dtype=torch.int64)).uniform("x"),
        base.uniform("x"),
    ]
    table = torch.stack([x, *others]).double()
    off = torch.corrcoef(table) - torch.eye(len(table), dtype=torch.float64)
    assert off.abs().max() < 4.5 / math.sqrt(n)
    assert (x[:, None] == torch.stack(others, 1)).double().mean() < 1e-4


# ---- use -----------------------------------------------------------------------------------------------------------


def test_shapes_dtypes_and_bounds_as_tensors():
    rng = episodes(6)
    assert rng.uniform("a").shape == (6,)
    assert rng.uniform("a", shape=(2, 3)).shape == (6, 2, 3)
    assert rng.uniform("a", shape=()).dtype == rng.normal("a").dtype == torch.float32
    assert rng.integers("a", 0, 5, (4,)).dtype == rng.permutation("a", 3).dtype == torch.int64
    low, high = torch.tensor([-1.0, 5.0]), torch.tensor([0.0, 6.0])
    x = rng.uniform("b", low, high, (2,))
    assert (x >= low).all()
    assert (x <= high).all()
    rows = torch.arange(6, dtype=torch.float32)
    assert (rng.normal("c", rows, 1e-6) - rows).abs().max() < 1e-4
    assert (rng.uniform("d", 2.0, 2.0) == 2).all()


def test_seeds_for_reset_counts_up_and_wraps():
    assert seeds_for_reset(5, 3).tolist() == [5, 6, 7]
    assert seeds_for_reset(2**63 - 1, 2).tolist() == [2**63 - 1, -(2**63)]
    assert 0 <= episode_seed_from_entropy() < 2**48


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="int64"):
        EpisodeRng(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ValueError, match="one shape"):
        EpisodeRng(ints(1, 2), ints(1))
    with pytest.raises(ValueError, match=r"stream 'pose': low 1\.0 exceeds high 0\.5"):
        episodes(1).uniform("pose", 1.0, 0.5)
    with pytest.raises(ValueError, match="stream 'kind'"):
        episodes(1).integers("kind", 3, 3)
    with pytest.raises(ValueError, match="derive"):
        episodes(2).derive(ints(1))


class Count(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_number_of_torch_calls():
    episodes(4).uniform("warm", shape=(10,))
    rng = episodes(4)
    with torch.inference_mode(), Count() as count:
        rng.uniform("x", -0.1, 0.1, (10,))
    assert count.calls <= 20
