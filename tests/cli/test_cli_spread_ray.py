"""`--on ray` on a cluster that is there: a task's file and a policy's folder go along, and the result is the same."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from manikin.data.recording.read import EpisodeFile
from manikin.policy.shipped import FOLDER

pytest.importorskip("ray", reason="needs pip install 'manikin[ray]'")

TASK = """
import os
import manikin
from manikin.env.registry import task_class

with open({seen!r}, "a") as file:
    print(__file__, manikin.__file__, os.environ.get("CUDA_VISIBLE_DEVICES"), sep=",", file=file)


class Mine(task_class("PushCube-v2")):
    pass
"""


KEY = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}


def ran(words: list[str], here: Path, **more: str) -> str:
    """What a command says, in a process and a folder of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "manikin.cli", *words],
        cwd=here,
        env={**os.environ, **KEY, **more},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


@pytest.fixture
def cluster() -> Iterator[str]:
    """Address of a cluster of this machine that was started by hand, with four cores and, by its own word, a GPU."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets need a short path
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={port}"]
    command += ["--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={place}"]
    command += ["--num-cpus=4", "--num-gpus=1", "--object-store-memory=100000000"]
    with open(os.path.join(place, "log.txt"), "wb") as log:
        head = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **KEY})
    until = time.monotonic() + 120
    while "Ray runtime started" not in Path(place, "log.txt").read_text():
        assert head.poll() is None and time.monotonic() < until, Path(place, "log.txt").read_text()
        time.sleep(0.2)
    yield f"127.0.0.1:{port}"
    head.terminate()
    try:
        head.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(head.pid, signal.SIGKILL)  # the group is its own
        head.wait()
    shutil.rmtree(place, ignore_errors=True)


def test_files_go_along_to_a_cluster_and_it_is_asked_how_many_fit(cluster: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    here = tmp_path / "here"
    (here / "policy").mkdir(parents=True)
    (here / "mine.py").write_text(TASK.format(seen=str(seen)))
    shutil.copyfile(FOLDER / "ppo-PushCube-v2.safetensors", here / "policy" / "policy.safetensors")
    command = ["collect", "mine.py:Mine", "--policy", "policy", "--episodes", "8", "--num-envs", "2"]
    command += ["--horizon", "10", "--seed", "3", "--no-check-disk", "--out"]
    ran([*command, "one.h5"], here)
    seen.write_text("")
    said = ran([*command, "two.h5", "--on", "ray", "--worker-gpus", "0.5"], here, RAY_ADDRESS=cluster)
    assert "8 episodes in 4 shards on ray" in said, "two workers fit beside the GPU, and each has two shards"
    with EpisodeFile(here / "one.h5") as one, EpisodeFile(here / "two.h5") as two:
        assert one.content_hash() == two.content_hash() and two.numbers == list(range(8))
    lines = [line.split(",") for line in seen.read_text().split()]
    away = [line for line in lines if not Path(line[0]).is_relative_to(here)]
    assert 1 <= len(away) <= 2, "each worker runs the file that was sent along, once"
    assert all("py_modules_files" in manikin and gpu == "0" for _, manikin, gpu in away), away
    assert sorted(os.listdir(here)) == ["mine.py", "one.h5", "policy", "two.h5"]
