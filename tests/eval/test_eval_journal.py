"""An evaluation that ends before its end keeps what it finished, and goes on to the same numbers to the bit."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manikin.cli.evaluate import EvalOptions
from manikin.cli.evaluate import run as evaluate_command
from manikin.errors import ConfigError, DataError
from manikin.eval.evaluation import evaluate
from manikin.eval.journal import Journal
from manikin.eval.protocol import Protocol
from manikin.eval.report import as_dict, read_report
from manikin.policy.random_policy import RandomPolicy

TASKS = ("PickCube-v2", "PushCube-v2")
PROTOCOL = Protocol(name="short", tasks=TASKS, seeds=tuple(range(10)), horizon=9)


def timeless(report: dict[str, Any]) -> dict[str, Any]:
    """A report without when, how long and by which command."""
    report = json.loads(json.dumps(report))
    for part in (report["overall"], *(task["aggregated"] for task in report["per_task"])):
        part["eval_s"] = part["eval_ep_s"] = 0
    return report | {"created": "", "command": ""}


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The report of an evaluation that nothing interrupted."""
    return timeless(as_dict(evaluate(PROTOCOL, RandomPolicy, num_envs=4)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(PROTOCOL.to_toml(), encoding="utf-8")
    return path


def options(file: Path, **changes: Any) -> EvalOptions:
    chosen: dict[str, Any] = {"policy": ("random",), "num_envs": 3, "pictures": 0, "out": file.parent / "out"}
    return EvalOptions(protocol=str(file), **{**chosen, **changes})


def lines(folder: Path) -> list[dict[str, Any]]:
    """What the journal holds, without a last line that was cut."""
    text = (folder / "episodes.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["line"] for line in text.splitlines(keepends=True) if line.endswith("\n")]


def episodes(folder: Path) -> int:
    return sum("episode" in line for line in lines(folder))


RUN = """
import sys, time
from pathlib import Path
from manikin.cli.evaluate import EvalOptions, run
import manikin.policy.random_policy as random

class Stuck(random.RandomPolicy):  # in the second task, for ever
    def act(self, observation, instruction):
        journal = Path(sys.argv[2], "episodes.jsonl")
        if journal.exists() and journal.read_text().count('"episode"') >= 12:
            time.sleep(600)
        return super().act(observation, instruction)

random.RandomPolicy = Stuck
run(EvalOptions(protocol=sys.argv[1], policy=("random",), num_envs=3, pictures=0, out=Path(sys.argv[2])))
"""


def test_a_killed_evaluation_goes_on_to_the_same_bits(file: Path, whole: dict[str, Any]) -> None:
    out = file.parent / "out"
    child = subprocess.Popen([sys.executable, "-c", RUN, str(file), str(out)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not (out / "episodes.jsonl").exists() or episodes(out) < 12:  # in the second task
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert 12 <= episodes(out) < 20 and not (out / "report.json").exists()
    with open(out / "episodes.jsonl", "a") as journal:
        journal.write('{"crc32": 17, "line": {"episo')  # as a kill in the middle of a line leaves it
    assert evaluate_command(options(file, resume=True)) == 0
    report = read_report(out / "report.json")
    assert timeless(report) == whole and report["overall"]["eval_s"] > 0
    assert sorted(p.name for p in out.iterdir()) == ["report.html", "report.json"]


def test_a_server_that_hangs_up_loses_nothing(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("msgpack")
    pytest.importorskip("websockets")
    from policy_server import Server

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        """The hand follows the cube, for three steps a time; after 40 requests, none."""
        wanted = np.resize(np.tanh(request["state"][-8:]), 8).astype(np.float32)
        return {"actions": np.tile(wanted, (3, 1))} if len(server.seen) <= most else None

    most = 10**6
    server = Server(answer)
    words: dict[str, Any] = {"policy": (server.url,), "out": None, "num_envs": 2}
    folder = Path(f"runs/eval-short-127.0.0.1-{server.port}")
    monkeypatch.chdir(file.parent)
    try:
        assert evaluate_command(options(file, **words)) == 0
        reference = timeless(read_report(folder / "report.json"))
        assert len(server.seen) == 60
        server.seen.clear()
        most = 40
        assert evaluate_command(options(file, **words)) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "closed the connection" in said and "go on with the same command and --resume" in said
        partial = read_report(folder / "report.json")
        kept = partial["overall"]["n_episodes"]
        assert 10 <= kept < 20 and kept == episodes(folder)
        assert partial["interrupted"] and "closed the connection" in partial["error"]
        assert "It ended by an error: the policy server at ws" in (folder / "report.html").read_text()
        with pytest.raises(DataError, match=rf"contains {kept} episodes of an unfinished evaluation.*--resume"):
            evaluate_command(options(file, **words))
        server.seen.clear()
        assert evaluate_command(options(file, **words | {"num_envs": 1}, resume=True)) == 0
        assert len(server.seen) == 3 * (20 - kept)  # nothing twice
        assert timeless(read_report(folder / "report.json")) == reference
    finally:
        server.close()


class Stumbles(RandomPolicy):
    """Not finite once, in the episode with the seed 6 of the second task."""

    sound = False

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        actions = super().act(observation, instruction)
        if self.env.task.id == TASKS[1] and not self.sound:
            actions[(torch.as_tensor(self.env.save().extra["seed"]) == 6)] = torch.nan
        return actions


def test_an_answer_that_is_not_finite_leaves_a_report(file: Path, whole: dict[str, Any]) -> None:
    word = f"{__file__}:Stumbles"
    assert evaluate_command(options(file, policy=(word,))) == 1
    report = read_report(file.parent / "out" / "report.json")
    assert report["interrupted"] and "finite" in report["error"]
    assert [len(task["per_episode"]) for task in report["per_task"]] == [10, 6]
    firsts = [task["per_episode"][:6] for task in whole["per_task"]]
    assert [task["per_episode"][:6] for task in report["per_task"]] == firsts


def test_errors_in_a_policy_reach_the_caller_with_what_is_finished() -> None:
    class Fails(RandomPolicy):
        def act(self, observation: Any, instruction: Any) -> torch.Tensor:
            if self.env.task.id == TASKS[1]:
                raise ZeroDivisionError("a mistake of its own")
            return super().act(observation, instruction)

    partial: list[Any] = []
    with pytest.raises(ZeroDivisionError):
        evaluate(PROTOCOL, Fails, num_envs=4, on_error=partial.append)
    (evaluation,) = partial
    assert evaluation.interrupted and evaluation.error == "a mistake of its own"
    assert [(task.task, len(task.results)) for task in evaluation.tasks] == [(TASKS[0], 10)]


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_is_said_and_what_was_written_is_kept(
    file: Path,
    whole: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    short: bool,
) -> None:
    """No room for a line, or for a part of it; and none for the report either."""
    out, write, left = file.parent / "out", os.write, [14]

    def full(handle: int, content: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            if short:
                return write(handle, content[:40])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, content)

    def no_room(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("manikin.data.recording.lines.os.write", full)
        patch.setattr("manikin.eval.report.replace_file", no_room)
        assert evaluate_command(options(file)) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "episodes.jsonl: No space left on device; the 11 episodes written before are safe" in said
        assert f"no report: cannot write the report in {out}: No space left on device" in said
    assert episodes(out) == 11
    assert evaluate_command(options(file, resume=True)) == 0
    assert timeless(read_report(out / "report.json")) == whole


def test_no_room_for_the_report_keeps_every_episode(
    file: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = file.parent / "out"
    with monkeypatch.context() as patch:
        patch.setattr("manikin.eval.pages.report.replace_file", no_room)
        assert evaluate_command(options(file)) == 1
    assert episodes(out) == 20
    assert evaluate_command(options(file, resume=True)) == 0
    assert timeless(read_report(out / "report.json")) == whole and not (out / "episodes.jsonl").exists()


NOT_FINITE = """
from manikin.tasks.tabletop.pick_cube import PickCube


class Broken(PickCube):
    id = "Broken-v0"

    def reward(self, h, ev, action):
        return {name: term * float("nan") for name, term in super().reward(h, ev, action).items()}
"""


def test_a_report_of_rewards_that_are_not_finite_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its folder has a name that every system takes, whatever the protocol is called."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_task.py").write_text(NOT_FINITE)
    file = tmp_path / "p.toml"
    file.write_text(Protocol(name="../my: 1 / 2", tasks=("broken_task.py:Broken",), seeds=(1, 2), horizon=3).to_toml())
    assert evaluate_command(options(file, out=None)) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"[\w.-]+", folder.name)
    report = read_report(folder / "report.json")
    assert [e["sum_reward"] for e in report["per_task"][0]["per_episode"]] == [None, None]
    (tmp_path / "broken_task.py").write_text("import no_such_module\n")
    with pytest.raises(ConfigError, match=r"broken_task\.py:Broken cannot be imported: ModuleNotFoundError"):
        evaluate_command(options(file, out=None))


# ---- the file --------------------------------------------------------------------------------------------------------


def stopped(path: Path, after: int, **settings: Any) -> None:
    """An evaluation that was stopped after some episodes."""
    seen: list[str] = []
    journal = Journal(path, settings or {"policy": "random"})
    evaluate(
        PROTOCOL,
        RandomPolicy,
        num_envs=4,
        on_result=lambda task, result: seen.append(task),
        stop=lambda: len(seen) >= after,
        journal=journal,
    )
    journal.close()


def test_damaged_lines_run_again(tmp_path: Path, whole: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "j.jsonl"
    stopped(path, 8)
    text = path.read_text().splitlines(keepends=True)
    assert len(text) == 10
    text[4] = text[4].replace('"length":9', '"length":8')
    text[6] = "nonsense\n"
    path.write_text("".join(text))
    journal = Journal(path, {"policy": "random"}, resume=True)
    assert len(journal) == 6 and "2 damaged lines" in caplog.text
    numbers: list[int] = []
    done = evaluate(
        PROTOCOL, RandomPolicy, journal=journal, on_result=lambda task, result: numbers.append(result.number)
    )
    assert len(numbers) == 14 and timeless(as_dict(done)) == whole
    journal.close(remove=True)
    assert not path.exists()


def test_what_was_begun_otherwise_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    stopped(path, 4)
    with pytest.raises(DataError, match=r"contains 4 episodes.*resume=True"):
        Journal(path, {"policy": "random"})
    with pytest.raises(DataError, match=r"with other settings: policy: 'random' in the file, 'expert' now"):
        Journal(path, {"policy": "expert"}, resume=True)
    journal = Journal(path, {"policy": "random"}, resume=True)
    with pytest.raises(DataError, match="another evaluation is writing"):
        Journal(path, {"policy": "random"}, resume=True)
    changed = Protocol(name="short", tasks=TASKS, seeds=tuple(range(10)), horizon=8)
    with pytest.raises(
        DataError, match=r"PickCube-v2 has run with other settings or versions: horizon: 9 there, 8 here"
    ):
        evaluate(changed, RandomPolicy, journal=journal)
    journal.close()
    path.write_text("{}\n")
    with pytest.raises(DataError, match="is not a journal of an evaluation"):
        Journal(path, {}, resume=True)
    with pytest.raises(DataError, match="cannot write"):
        Journal(tmp_path / "j.jsonl" / "below", {})


OWN = """
from manikin.policy.random_policy import RandomPolicy


class Mine(RandomPolicy):
    def act(self, *seen):
        assert self.env.task.id == "PickCube-v2", "cannot push"
        return super().act(*seen)
"""


def test_a_policy_in_a_file_is_the_files_content(file: Path) -> None:
    policy = file.parent / "mine.py"
    word = f"{policy}:Mine"
    policy.write_text(OWN.replace("PickCube", "StackCube"))
    with pytest.raises(AssertionError, match="cannot push"):
        evaluate_command(options(file, policy=(word,)))
    assert not (file.parent / "out" / "episodes.jsonl").exists()  # nothing was finished
    policy.write_text(OWN)
    with pytest.raises(AssertionError, match="cannot push"):
        evaluate_command(options(file, policy=(word,)))
    assert episodes(file.parent / "out") == 10
    policy.write_text(OWN.replace("assert", "# assert"))
    with pytest.raises(DataError, match="with other settings: file:"):
        evaluate_command(options(file, policy=(word,), resume=True))
