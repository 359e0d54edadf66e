"""Who was measured: policies that come with manikin and policies behind a server are found again by name and hash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from manikin.cli import main
from manikin.eval.protocol import Protocol
from manikin.policy import shipped

pytest.importorskip("duckdb", reason="needs pip install 'manikin[results]'")

from manikin.results import Store

NAME = "ppo-PickCube-v2"


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Evaluates a policy in two episodes of a moment; returns its row in the store."""
    monkeypatch.setenv("MANIKIN_RESULTS", str(tmp_path / "store"))
    protocol = tmp_path / "protocol.toml"
    words = Protocol(name="short", tasks=("PickCube-v2",), seeds=(1_000_000, 1_000_001), horizon=2)
    protocol.write_text(words.to_toml())

    def run(word: str, *more: str) -> dict[str, object]:
        out = str(tmp_path / f"out{len(Store(tmp_path / 'store').runs())}")
        assert main(["eval", str(protocol), "--policy", word, "--pictures", "0", "--out", out, *more]) == 0
        return next(run for run in Store(tmp_path / "store").runs() if run["source"].startswith(out))

    return run


def recorded(name: str) -> str:
    """The hash that ``sha256sum`` wrote."""
    lines = (shipped.FOLDER / shipped.HASHES).read_text().splitlines()
    return next(line.split()[0] for line in lines if line.endswith(f"{name}.safetensors"))


def test_a_policy_that_comes_with_manikin_is_stored_by_its_word_and_hash(evaluate, tmp_path, capsys) -> None:
    run = evaluate(NAME)
    assert (run["policy"], run["policy_sha256"]) == (NAME, recorded(NAME))
    evaluate("random")
    capsys.readouterr()
    assert main(["results", "compare", NAME, "random", "--store", str(tmp_path / "store")]) == 0
    assert f"only {NAME}" in capsys.readouterr().out


def test_a_served_policy_is_stored_by_what_its_server_says(evaluate, tmp_path, capsys) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed: pip install 'manikin[remote]'")
    pytest.importorskip("msgpack", reason="msgpack is not installed: pip install 'manikin[remote]'")
    words = [sys.executable, "-m", "manikin.cli", "serve", NAME, "--port", "0"]
    quiet = {**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=quiet) as process:
        try:
            address = process.stdout.readline().partition(" at ")[2].partition(";")[0]
            run = evaluate(address)
            assert (run["policy"], run["policy_sha256"]) == (NAME, recorded(NAME))
            assert address in run["command"]
            source = str(Path(run["source"]).parent)
            again = ["eval", str(tmp_path / "protocol.toml"), "--policy", address, "--pictures", "0", "--out", source]
            assert main([*again, "--resume"]) == 0
            assert "complete" in capsys.readouterr().out
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            finally:
                process.kill()
