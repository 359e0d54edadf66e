"""When a function runs, is recorded and is replayed: with stand-ins for what torch needs a GPU for."""

from __future__ import annotations

import contextlib
import gc
from types import SimpleNamespace

import pytest
import torch

from manikin.env.loop.graph import Graph


class Card:
    """What of ``torch.cuda`` a recording uses: its present stream, and what was done."""

    def __init__(self, monkeypatch):
        self.stream, self.done, self.playing = "the user's", [], []
        card = self

        @contextlib.contextmanager
        def graph(recorded, *, stream, capture_error_mode):
            card.stream, recorded.stream = stream, stream  # torch does not put it back where the recording fails
            yield
            card.stream = "the user's"

        @contextlib.contextmanager
        def stream(chosen):
            before, card.stream = card.stream, chosen
            try:
                yield
            finally:
                card.stream = before

        @contextlib.contextmanager
        def device(chosen):
            card.done.append(f"on {chosen}")
            yield

        replayed = lambda recorded: card.done.append("replay")  # noqa: E731
        fakes = {"CUDAGraph": type("Recorded", (), {"replay": replayed}), "graph": graph, "stream": stream,
                 "device": device, "Stream": lambda chosen: f"another of {chosen}",
                 "current_stream": lambda chosen: card.stream}  # fmt: skip
        for name, fake in fakes.items():
            monkeypatch.setattr(torch.cuda, name, fake)
        self.world = SimpleNamespace(device=torch.device("cuda", 1), layout=0, version=0)
        self.world.joined_capture = lambda: contextlib.nullcontext([])


def test_it_runs_then_is_recorded_then_replayed(monkeypatch):
    card, seen = Card(monkeypatch), []

    def function():
        seen.append((card.stream, gc.isenabled()))
        card.done.append("run")
        return {"found": value}

    value = torch.zeros(2)
    graph, away = Graph(function, card.world, record=True), "another of cuda:1"
    first, second, third = (graph() for _ in range(3))
    assert first["found"] is value  # called as it is
    assert second["found"] is not value and third["found"] is not second["found"]  # the recording's own stays there
    assert seen == [("the user's", True), (away, False)] and gc.isenabled() and card.stream == "the user's"
    assert [d for d in card.done if d != "on cuda:1"] == ["run", "run", "replay", "replay"]
    card.world.layout += 1
    for _ in range(3):
        graph()
    assert [s for s, _ in seen[2:]] == ["the user's", away]
    assert card.world.version >= 5  # what handles kept is of the recording


def test_a_recording_that_fails_says_what_to_do_and_leaves_nothing_behind(monkeypatch):
    card, calls = Card(monkeypatch), []

    def function():
        calls.append(card.stream)
        if len(calls) > 1:
            raise RuntimeError("operation not permitted when stream is capturing")

    graph = Graph(function, card.world, record=True)
    graph()
    with pytest.raises(RuntimeError, match="not permitted") as caught:
        graph()
    assert "graphs=False" in caught.value.__notes__[0]
    assert card.stream == "the user's" and gc.isenabled()


def test_without_a_gpu_every_call_runs(monkeypatch):
    world = SimpleNamespace(device=torch.device("cpu"), layout=0, version=0)
    calls = []
    graph = Graph(lambda: calls.append(1), world, record=True)
    for _ in range(3):
        graph()
    assert len(calls) == 3
