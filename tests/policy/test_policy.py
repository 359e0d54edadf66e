"""Policies: chunks per row, and networks with the same bits at any number of environments."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from manikin.errors import ActionError, ConfigError
from manikin.policy.api import Policy, check_actions
from manikin.policy.chunk import ChunkPolicy, Execution
from manikin.policy.network import NetworkPolicy


class Counter:
    """Answers a chunk that counts: row * 100 + (number of asks of that row) * 10 + place in the chunk."""

    def __init__(self, rows: int, horizon: int) -> None:
        self.asks = torch.zeros(rows)
        self.horizon, self.calls, self.resets = horizon, 0, []

    def reset(self, rows: torch.Tensor) -> None:
        self.resets.append(rows.tolist())

    def act(self, observation: torch.Tensor, instruction: list[str]) -> torch.Tensor:
        self.calls += 1
        which = observation[:, 0].long()
        base = (which * 100).float() + observation[:, 1] * 10
        return (base[:, None] + torch.arange(self.horizon))[..., None]


def test_chunks_run_on_each_rows_own_clock() -> None:
    inner = Counter(2, horizon=3)
    chunk = ChunkPolicy(inner, num_envs=2, dimensions=1)
    chunk.reset(torch.tensor([0, 1]))
    seen = []
    for t in range(6):
        if t == 2:
            chunk.reset(torch.tensor([1]))  # row 1 begins a new episode in the middle of its chunk
        observation = torch.tensor([[0.0, t], [1.0, t]])
        seen.append(chunk.act(observation, ["", ""])[:, 0, 0].tolist())
    assert [s[0] for s in seen] == [0, 1, 2, 30, 31, 32]
    assert [s[1] for s in seen] == [100, 101, 120, 121, 122, 150]
    assert inner.resets == [[0, 1], [1]]


def test_execute_takes_the_first_part_of_a_chunk_and_never_more_than_there_is() -> None:
    for execute, expected in ((2, [0, 1, 20, 21, 40]), (9, [0, 1, 2, 30, 31])):
        chunk = ChunkPolicy(Counter(1, horizon=3), num_envs=1, dimensions=1, execution=Execution(execute))
        chunk.reset(torch.tensor([0]))
        seen = [chunk.act(torch.tensor([[0.0, t]]), [""]).item() for t in range(5)]
        assert seen == expected
    with pytest.raises(ConfigError, match="at least 1"):
        Execution(0)


class Told:
    """Answers with what a table has for a row at a time: (rows, times, horizon, A). The observation says which."""

    stateless = True

    def __init__(self, table: np.ndarray) -> None:
        self.table, self.asked = table, []

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: torch.Tensor, instruction: list[str]) -> torch.Tensor:
        row, time = observation.long().unbind(1)
        self.asked.append(len(row))
        return torch.from_numpy(self.table[row.numpy(), time.numpy()])


@pytest.mark.parametrize("ensemble", [0.0, 0.01, 0.7, -0.4])
@pytest.mark.parametrize("execute", [None, 2, 3, 5])
def test_overlapping_chunks_are_averaged_by_the_formula(ensemble: float, execute: int | None) -> None:
    """Algorithm 2 of Zhao et al. (2023): weights exp(-m i), normalized, i = 0 for the oldest chunk. Each row begins
    anew at its own reset."""
    rng, rows, times, horizon = np.random.default_rng(0), 3, 14, 5
    table = rng.normal(size=(rows, times, horizon, 2))
    begun = np.array([[0] * times, [0] * 6 + [6] * (times - 6), [0] * 3 + [3] * 4 + [7] * (times - 7)])
    policy = ChunkPolicy(Told(table), rows, 2, execution=Execution(execute, ensemble))
    for t in range(times):
        if len(again := np.flatnonzero(begun[:, t] == t)):
            policy.reset(torch.from_numpy(again))
        found = policy.act(torch.tensor([[row, t] for row in range(rows)]), [""] * rows)[:, 0].numpy()
        for row in range(rows):
            asked = range(begun[row, t], t + 1, execute or 1)
            over = np.array([table[row, s, t - s] for s in asked if t - s < horizon])
            weights = np.exp(-ensemble * np.arange(len(over)))
            np.testing.assert_allclose(found[row], weights @ over / weights.sum(), rtol=1e-6, atol=1e-9)


def test_the_first_chunk_of_an_episode_is_executed_to_the_bit() -> None:
    table = np.random.default_rng(1).normal(size=(1, 4, 6, 3)).astype(np.float32)
    for execution, calls in ((Execution(), 1), (Execution(6, 0.5), 1), (Execution(2), 2)):
        inner = Told(table)
        policy = ChunkPolicy(inner, 1, 3, execution=execution)
        policy.reset(torch.tensor([0]))
        found = torch.cat([policy.act(torch.tensor([[0, t]]), [""])[0] for t in range(4)])
        expected = [table[0, 0, t] if calls == 1 or t < 2 else table[0, 2, t - 2] for t in range(4)]
        assert torch.equal(found, torch.from_numpy(np.array(expected))) and len(inner.asked) == calls


def test_a_policy_may_say_how_its_chunks_are_executed_and_the_caller_decides() -> None:
    network = NetworkPolicy(mlp(), execution=Execution(3, 0.01))
    assert ChunkPolicy(network, 2, 8).execution == Execution(3, 0.01)
    assert ChunkPolicy(network, 2, 8, execution=Execution(2)).execution == Execution(2)
    assert ChunkPolicy(Counter(1, 3), 1, 1).execution == Execution()
    said = Execution(3, 0.01)
    assert Execution.of(json.loads(json.dumps({"execution": said.plain}))) == said
    assert Execution.of({}) == Execution.of({"execution": Execution().plain}) == Execution(None, None)
    for wrong in ({"execute": 1.5}, {"execute": True}, {"ensemble": "0.1"}, {"other": 1}, [1], 3):
        with pytest.raises(ConfigError, match="must have execute"):
            Execution.of({"execution": wrong})
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="finite"):
            Execution(None, wrong)


def test_stateless_policies_are_asked_only_for_rows_that_need_it() -> None:
    inner = Counter(4, horizon=5)
    inner.stateless = True  # type: ignore[attr-defined]
    sizes = []
    act = inner.act
    inner.act = lambda o, i: (sizes.append((len(o), len(i))), act(o, i))[1]  # type: ignore[method-assign]
    chunk = ChunkPolicy(inner, num_envs=4, dimensions=1)
    chunk.reset(torch.arange(4))
    observation = torch.tensor([[float(r), 0.0] for r in range(4)])
    chunk.act(observation, [""] * 4)
    chunk.reset(torch.tensor([2]))
    assert chunk.act(observation, [""] * 4)[:, 0, 0].tolist() == [1, 101, 200, 301]
    assert sizes == [(4, 4), (1, 1)]


def test_wrong_answers_name_the_right_shape() -> None:
    with pytest.raises(ActionError, match=r"\(4, 7\).*\(4, horizon, 7\).*actions\[:, None\]"):
        check_actions(torch.zeros(4, 7), 4, 7)
    with pytest.raises(ActionError, match=r"must be \(4, horizon, 7\)"):
        check_actions(torch.zeros(4, 1, 6), 4, 7)
    with pytest.raises(ActionError, match="int64"):
        check_actions(torch.zeros(4, 1, 7, dtype=torch.int64), 4, 7)
    with pytest.raises(ActionError, match="list"):
        check_actions([0.0], 4, 7)


def mlp(width: int = 256) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(3)
    layers = torch.nn.Sequential(
        torch.nn.Linear(42, width),
        torch.nn.LayerNorm(width),
        torch.nn.GELU(),
        torch.nn.Linear(width, width),
        torch.nn.Tanh(),
        torch.nn.Linear(width, 4 * 8),
        torch.nn.Sigmoid(),
        torch.nn.Unflatten(1, (4, 8)),
    )
    for p in layers.parameters():
        p.data = torch.randn(p.shape, generator=generator) * 0.3
    return layers


@pytest.mark.parametrize("threads", [1, 2])
def test_network_bits_do_not_depend_on_the_number_of_rows_or_the_place(threads: int) -> None:
    """Batch sizes 1, 8, 64, 100 and shuffled rows give equal bits, and the module's own answer within rounding."""
    module = mlp()
    observation = torch.randn(100, 42, generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        policy = NetworkPolicy(module)
        words = ["go"] * 100
        whole = policy.act(observation, words)
        assert whole.shape == (100, 4, 8)
        for size in (1, 8, 64):
            parts = [policy.act(observation[i : i + size], words[i : i + size]) for i in range(0, 100, size)]
            assert torch.equal(torch.cat(parts), whole), size
        order = torch.randperm(100, generator=torch.Generator().manual_seed(1))
        assert torch.equal(policy.act(observation[order], words), whole[order])
        with torch.no_grad():
            alone = torch.cat([module(observation[i : i + 1]) for i in range(100)])
        assert torch.allclose(alone, whole, atol=1e-5)
    finally:
        torch.set_num_threads(before)


def random_network(seeds: torch.Generator) -> tuple[torch.nn.Module, int]:
    """Some layers of any sizes, and how many columns go in. Small outputs after sizes that are no multiple of 16 are
    what matrix products answer with other last bits in other places: a row's first number is then aligned otherwise."""

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=seeds))

    sizes = [draw(1, 80), *(draw(3, 200) for _ in range(draw(0, 4))), draw(1, 20)]
    activation = (torch.nn.Tanh, torch.nn.ReLU, torch.nn.SiLU, torch.nn.GELU, torch.nn.Sigmoid)[draw(0, 5)]
    layers: list[torch.nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), *([torch.nn.LayerNorm(b)] if draw(0, 2) else []), activation()]
    network = torch.nn.Sequential(*layers[:-1])
    for p in network.parameters():
        p.data = torch.randn(p.shape, generator=seeds) / max(1, p.shape[-1]) ** 0.5
    return network, sizes[0]


@pytest.mark.parametrize("seed", range(10))
def test_bits_of_a_row_are_those_of_the_row_alone(seed: int) -> None:
    """Fifty networks each, at numbers of rows from 2 to 70, in another order, and as part of a wider tensor; the
    reference is the module with that row and nothing else."""
    seeds = torch.Generator().manual_seed(seed)
    for _ in range(50):
        network, columns = random_network(seeds)
        rows = int(torch.randint(2, 70, (1,), generator=seeds))
        wide = torch.randn(rows, columns + 1, generator=seeds)
        with torch.no_grad():
            alone = torch.stack([network(row[None, 1:].clone()) for row in wide])
        policy, order = NetworkPolicy(network), torch.randperm(rows, generator=seeds)
        assert torch.equal(policy.act(wide[:, 1:], [""] * rows), alone)
        assert torch.equal(policy.act(wide[order, 1:], [""] * rows), alone[order])


class NormalizesOverTheBatch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


def test_a_module_that_mixes_rows_is_run_row_by_row() -> None:
    observation = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    actions = NetworkPolicy(NormalizesOverTheBatch()).act(observation, [""] * 5)
    assert torch.equal(actions, torch.zeros(5, 1, 3))  # each row is its own mean


def test_rows_that_are_asked_together_are_padded_to_one_width() -> None:
    """For a GPU, and where the number of rows never changes: a batch always has ``width`` rows."""
    seen = []

    class Watched(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(len(x))
            return 2 * x

    observation = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    actions = NetworkPolicy(Watched(), width=4).act(observation, [""] * 6)
    assert seen == [4, 4] and torch.equal(actions[:, 0], 2 * observation)


def test_network_takes_dicts_is_in_evaluation_mode_and_prepares() -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, x: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.drop(x["a"] + x["b"])

    policy = NetworkPolicy(Both(), width=4, prepare=lambda o: o["policy"])
    observation = {"policy": {"a": torch.ones(6, 2), "b": torch.ones(6, 2)}}
    assert torch.equal(policy.act(observation, [""] * 6), torch.full((6, 1, 2), 2.0))
    assert isinstance(policy, Policy)
    with pytest.raises(ConfigError, match="width"):
        NetworkPolicy(Both(), width=0)
