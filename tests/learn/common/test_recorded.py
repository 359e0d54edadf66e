"""A trainer's parts as CUDA graphs: what is recorded, replayed and copied; and on a GPU, the same training as call by
call."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from manikin import make
from manikin.errors import ConfigError
from manikin.learn import ppo, sac
from manikin.learn.common import recorded
from manikin.learn.common.recorded import Recorded

SMALL = {
    ppo.PPO: ppo.Config(num_steps=6, epochs=2, minibatches=3, hidden=(16,), critic_hidden=(16,)),
    sac.SAC: sac.Config(num_steps=2, updates=4, batch=16, start_steps=12, actor_every=2, hidden=(16,)),
}


def _train(trainer, *, device="cpu", iterations=6, **changed):
    config = type(SMALL[trainer])(**{**vars(SMALL[trainer]), **changed})
    made = trainer(make("PushCube-v2", num_envs=6, device=device, horizon=8), config, 3)
    numbers = [made.iterate() for _ in range(iterations)]
    return torch.cat([p.detach().flatten().cpu() for p in made.parameters]), numbers


@pytest.mark.parametrize("trainer", SMALL, ids=lambda one: one.__name__)
def test_without_a_gpu_the_option_changes_nothing(trainer):
    weights, numbers = _train(trainer, cuda_graphs=True)
    plain, others = _train(trainer)
    assert torch.equal(weights, plain) and numbers == others


@pytest.mark.gpu
@pytest.mark.parametrize("trainer", SMALL, ids=lambda one: one.__name__)
def test_on_a_gpu_graphs_train_as_call_by_call(trainer):
    weights, _ = _train(trainer, device="cuda", cuda_graphs=True)
    plain, _ = _train(trainer, device="cuda")
    torch.testing.assert_close(weights, plain, rtol=1e-3, atol=1e-4)


def test_a_learning_rate_that_falls_does_not_go_with_graphs():
    with pytest.raises(ConfigError, match="leave anneal and lag out"):
        _train(ppo.PPO, cuda_graphs=True, anneal=True)


class FakeGraph:
    """Replays by calling again with the tensors that were recorded; the results lie where they lay."""

    latest = None

    def __init__(self):
        FakeGraph.latest, self.generators = self, []

    def register_generator_state(self, generator):
        self.generators.append(generator)

    def replay(self):
        self.replays = getattr(self, "replays", 0) + 1
        for name, value in self.function(self.inputs).items():
            self.out[name].copy_(value)


@pytest.fixture
def card(monkeypatch):
    """A GPU whose graphs are made of calls."""
    monkeypatch.setattr(recorded, "device_of", lambda given: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, **options: nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())


def _following(calls):
    """A function that keeps what the graph needs, and counts in place."""
    total = torch.zeros(())

    def function(given):
        calls.append(given)
        total.add_(given["x"].sum())
        out = {"double": 2 * given["x"], "total": total.clone()}
        if FakeGraph.latest is not None and not hasattr(FakeGraph.latest, "out"):
            FakeGraph.latest.function, FakeGraph.latest.inputs, FakeGraph.latest.out = function, given, out
        return out

    return function, total


def test_two_calls_run_as_they_are_the_third_is_recorded_and_the_rest_replayed(card):
    FakeGraph.latest, calls, seeds = None, [], torch.Generator()
    function, _ = _following(calls)
    graph = Recorded(function, record=True, generators=[seeds])
    given = [{"x": torch.full((2,), float(k))} for k in range(6)]
    found = [graph(one) for one in given[:2]]
    assert FakeGraph.latest is None and [c is g for c, g in zip(calls, given, strict=False)] == [True, True]
    found += [graph(one) for one in given[2:]]
    assert FakeGraph.latest.replays == 4 and FakeGraph.latest.generators == [seeds]
    for k, one in enumerate(found):  # each call's own results, though the graph writes to one place
        assert one["double"].tolist() == [2.0 * k] * 2
    assert len({one["double"].data_ptr() for one in found}) == 6


def test_other_shapes_are_another_graph(card):
    FakeGraph.latest, calls = None, []
    graph = Recorded(_following(calls)[0], record=True)
    for _ in range(3):
        graph({"x": torch.ones(2)})
    first = FakeGraph.latest
    for _ in range(3):
        graph({"x": torch.ones(3)})
    assert FakeGraph.latest is not first
    graph({"x": torch.ones(2)})
    assert first.replays == 2


def test_an_error_while_recording_says_how_to_do_without(card):
    def fails(given):
        if len(calls) == 2:
            raise RuntimeError("not permitted")
        calls.append(given)
        return given

    calls: list[dict[str, torch.Tensor]] = []
    graph = Recorded(fails, record=True)
    for _ in range(2):
        graph({"x": torch.ones(2)})
    with pytest.raises(RuntimeError, match="not permitted") as error:
        graph({"x": torch.ones(2)})
    assert "cuda_graphs=false" in error.value.__notes__[0]
