"""Made-up episodes for tests of the file format. Imports no torch, so that a process that uses it starts quickly."""

from __future__ import annotations

from typing import Any

import numpy as np

from manikin.data.recording.format import Header, RecordedEpisode

HEADER = Header(
    fingerprint={
        "task": "Toy-v1",
        "config": {"size": 0.02},
        "control_hz": 20.0,
        "machine": {"processor": "x86_64 test"},
    },
    policy="random",
)


def toy_episode(number: int, length: int = 30) -> RecordedEpisode:
    """An episode whose every value follows from its number."""
    draw = np.random.Generator(np.random.Philox(number))
    success = np.zeros(length, bool)
    success[length // 2 :] = number % 2 == 0
    return RecordedEpisode(
        number=number,
        seed=1000 + number,
        index=number % 3,
        actions=draw.uniform(-1, 1, (length, 8)).astype(np.float32),
        rewards=draw.uniform(0, 1, length).astype(np.float32),
        terminated=np.zeros(length, bool),
        truncated=np.arange(length) == length - 1,
        success=success,
        fail=np.zeros(length, bool),
        state_hash=draw.integers(-(2**63), 2**63 - 1, length + 1, dtype=np.int64),
        initial={"state": draw.normal(size=40), "extra/elapsed": np.int64(0), "extra/goal": draw.normal(size=3)},
        states=draw.normal(size=(length + 1, 40)),
        observations={"policy/image": draw.integers(0, 255, (length + 1, 8, 8, 3), dtype=np.uint8)},
        instruction="pick up the cube",
        health=0,
    )


def first_step(file: Any, number: int) -> int:
    """Row where an episode's steps begin in an open recording of one block, worked out as the format says."""
    table = file["block_0/episodes"]
    return int(table["length"][: table["number"][()].tolist().index(number)].sum())
