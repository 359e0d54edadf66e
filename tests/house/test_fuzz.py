"""A few trials of each kind of what nobody means; ``python tests/fuzz`` tries for as long as one likes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"


def test_nothing_that_nobody_means_raises_a_raw_error_or_hangs() -> None:
    pytest.importorskip("msgpack")
    pytest.importorskip("websockets")
    command = [sys.executable, str(FUZZ), "--trials", "12", "--seconds", "100", "--seed", "1"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert [line.split()[1] for line in told.stdout.splitlines()[1:6]] == ["12"] * 5


def test_a_raw_error_is_told_from_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FUZZ))
    from fuzz_values import changed_bytes, changed_tree
    from fuzz_worker import judged

    from manikin.errors import ConfigError

    def fail(error: BaseException) -> None:
        raise error

    assert judged(lambda: None) == ("done", "")
    assert judged(lambda: fail(ConfigError("no"))) == ("refused", "")
    verdict, said = judged(lambda: fail(TypeError("oh")))
    assert verdict == "raw" and said.startswith("TypeError: oh (test_fuzz.py")
    assert judged(lambda: fail(SystemExit(3)))[0] == "raw"
    draws = [np.random.Generator(np.random.Philox(7)) for _ in range(2)]
    whole = bytes(range(256)) * 8
    assert changed_bytes(draws[0], whole) == (same := changed_bytes(draws[1], whole)) and same[1] != whole
    tree = {"a": [1, {"b": 2}]}
    assert changed_tree(draws[0], tree)[1] != tree == {"a": [1, {"b": 2}]}
