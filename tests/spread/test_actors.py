"""Workers that are actors of a Ray cluster of this machine: the same comes out, with actors and the raylet killed."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from manikin.errors import ConfigError
from manikin.spread.actors import Actors
from manikin.spread.cluster import Cluster
from manikin.spread.drive import drive
from toy_work import begun, outcome

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'manikin[ray]'")


def raylets() -> list[int]:
    """Processes of this user's that keep a machine in a Ray cluster, and were started from here."""
    every = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in every.stdout.splitlines()]
    return [int(pid) for pid, parent, name in rows if name.strip() == "raylet" and int(parent) == os.getpid()]


def test_the_same_comes_out_with_actors_and_the_raylet_killed(tmp_path: Path) -> None:
    chance = random.Random(1)
    ledger = begun(tmp_path / "run", 60, 3, seconds=0.5, raises=[5])
    crew = Actors(ledger.folder, Cluster(most=2))
    done: list[str] = []

    def disturb() -> bool:
        finished = len(ledger.intent.shards) - len(ledger.left())
        if "actor" not in done and finished >= 1:
            os.kill(chance.choice(list(crew.pids.values())), signal.SIGKILL)
            done.append("actor")
        if "raylet" not in done and finished >= 3:
            (raylet,) = raylets()
            os.kill(raylet, signal.SIGKILL)
            done.append("raylet")
        return False

    told = drive(ledger, crew, workers=2, deadline=600, stop=disturb, stillborn=10)
    items, tried = outcome(ledger)
    assert items == [[n, n * n] for n in range(60) if n != 5]
    assert [item["what"] for item in ledger.failed] == ["item 5 (seed 1005)"]
    assert done == ["actor", "raylet"] and told.ended >= 2
    assert len(tried) == len(set(tried)), "a finished item was done again"
    assert crew.bytes_heard < 100 * len(ledger.intent.shards), "words, no data"


def test_nobody_at_an_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("needs pip install 'manikin[ray]'")
    monkeypatch.setattr("ray.util.client.worker.INITIAL_TIMEOUT_SEC", 0.1)
    monkeypatch.setattr("ray.util.client.worker.MAX_TIMEOUT_SEC", 0.1)
    with pytest.raises(ConfigError, match=r"no Ray cluster answers at ray://127\.0\.0\.1:9"):
        Cluster(address="ray://127.0.0.1:9")


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, *more: Any) -> Any:
        return None if name == "ray" else find(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    began = time.monotonic()
    with pytest.raises(FileNotFoundError, match=r"pip install 'manikin\[ray\]'"):
        Cluster()
    assert time.monotonic() - began < 60  # a cluster is not waited for
