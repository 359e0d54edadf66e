"""`manikin eval` with several policies, and policies by the error of their actions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.cli import main
from manikin.cli.evaluation.one import EvalOptions, Job, job_settings
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.errors import ConfigError
from manikin.eval.agreement.metrics import METRICS
from manikin.eval.offline import action_errors, agreement_of_errors
from manikin.eval.protocol import Protocol
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.policy.graded import Grade, GradedPolicy
from manikin.policy.random_policy import RandomPolicy

PROTOCOL = Protocol(name="tiny", tasks=("PushCube-v2",), seeds=(0, 1, 2), horizon=3)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(PROTOCOL.to_toml(), encoding="utf-8")
    return path


def test_several_policies_are_evaluated_ranked_and_resumed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, real = file.parent / "out", file.parent / "real.json"
    real.write_text(json.dumps({"PushCube-v2": {"robot-a": [True, False], "robot-b": [True, True]}}))
    words = ["eval", str(file), "--policy", "a=random", "--policy", "b=graded:noise=2,of=random", "--out", str(out)]
    words += ["--policy-seeds", "1", "2", "--num-envs", "3", "--pictures", "0"]
    assert main([*words, "--real", str(real)]) == 2
    assert "real results are of the policies robot-a, robot-b; simulated are a, b" in capsys.readouterr().err
    assert not out.exists()  # said before anything ran
    own = file.with_name("own.toml")  # a task that is named by its module has its id in reality
    own.write_text(file.read_text().replace("PushCube-v2", "manikin.tasks.tabletop.push_cube:PushCube"))
    assert main([*words[:1], str(own), *words[2:], "--real", str(real)]) == 2
    assert "PushCube-v2: real results are of the policies" in capsys.readouterr().err
    names = ["--real", str(real), "--map", "robot-a=a", "--map", "robot-b=b"]
    assert main([*words, *names]) == 0
    told = capsys.readouterr().out
    assert "against reality, PushCube-v2: mmrv 0.250" in told and "undefined (all simulated rates are equal" in told
    folders = ["a-seed-1", "a-seed-2", "b-seed-1", "b-seed-2"]
    assert sorted(p.name for p in out.iterdir()) == [*folders, "ranking.html", "ranking.json"]
    reports = [json.loads((out / name / "report.json").read_text()) for name in folders]
    assert [(r["policy"], r["policy_seed"]) for r in reports] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    returns = [[e["sum_reward"] for e in r["per_task"][0]["per_episode"]] for r in reports]
    assert len({tuple(one) for one in returns}) == 4  # other seeds, other runs
    times = {name: (out / name / "report.json").stat().st_mtime_ns for name in folders}
    (out / "b-seed-2" / "report.json").unlink()
    assert main([*words, *names, "--resume"]) == 0
    again = {name: (out / name / "report.json").stat().st_mtime_ns for name in folders}
    assert [name for name in folders if times[name] != again[name]] == ["b-seed-2"]
    assert (
        json.loads((out / "b-seed-2" / "report.json").read_text())["per_task"][0]["per_episode"]
        == (reports[3]["per_task"][0]["per_episode"])
    )


def test_what_is_complete_is_resumed_as_the_same_policy_only(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, network = file.parent / "out", file.parent / "one.py"
    code = "from manikin.policy.random_policy import RandomPolicy as Mine\n"
    network.write_text(code)
    words = ["eval", str(file), "--policy", "b=random", "--out", str(out), "--num-envs", "3", "--pictures", "0"]
    mine, resume = ["--policy", f"a={network}:Mine"], [*words, "--resume"]
    assert main([*words, *mine]) == 0
    before = (out / "a" / "report.json").read_bytes()
    assert main([*resume, *mine]) == 0
    assert main([*resume[:-1], "--resume", "--policy", "a=graded:noise=2,of=random"]) == 2
    assert "a/report.json is of another evaluation: options: '--policy a=" in capsys.readouterr().err
    network.write_text(code + "# another network\n")
    assert main([*resume, *mine]) == 2
    assert "is of another evaluation: SHA-256 of the policy:" in capsys.readouterr().err
    file.write_text(file.read_text().replace("horizon = 3", "horizon = 4"))
    assert main([*resume, *mine]) == 2
    assert "b/report.json is of another evaluation: protocol:" in capsys.readouterr().err
    assert (out / "a" / "report.json").read_bytes() == before  # nothing ran again


def test_the_folder_of_a_run_is_the_network_in_it(tmp_path: Path) -> None:
    (tmp_path / "policy.safetensors").write_bytes(b"weights")
    options = EvalOptions(protocol="core")
    found = job_settings(options, Job(str(tmp_path)), "hash")
    assert found["file"] == hashlib.sha256(b"weights").hexdigest() and found["policy"] == str(tmp_path)
    (tmp_path / "policy.safetensors").write_bytes(b"trained further")
    assert job_settings(options, Job(str(tmp_path)), "hash") != found


def test_one_that_is_complete_is_not_run_again(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = file.parent / "out"
    words = ["eval", str(file), "--policy", "random", "--out", str(out), "--num-envs", "3", "--pictures", "0"]
    assert main(words) == 0
    before = (out / "report.json").read_bytes()
    assert main([*words, "--resume"]) == 0
    assert "out: complete" in " ".join(capsys.readouterr().out.split())
    assert (out / "report.json").read_bytes() == before


@pytest.mark.parametrize(
    "words, said",
    [
        (["--policy", "random", "--policy", "random"], "the policy random is listed twice"),
        (["--policy", "random", "--policy", "expert", "--until", "0.9"], "--until is for one policy"),
        (["--policy", "random", "--real", "real.json"], "give --policy twice"),
        (["--policy", "a.py:f", "--policy", "b/a.py:f"], "would share a folder; give them names"),
        (["--policy", "expert", "--policy-seeds", "1"], "expert takes no seed"),
        (["--policy", "random", "--instructions", "none.toml"], "none.toml cannot be read"),
    ],
)
def test_options_that_do_not_go_together_are_named(
    file: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert main(["eval", str(file), "--pictures", "0", *words]) == 2
    assert said in capsys.readouterr().err


def test_an_answer_that_takes_time_and_other_sentences_stand_in_the_report(file: Path) -> None:
    (file.parent / "words.toml").write_text('"push the cube to the goal" = ["shove the block"]\n')
    out = file.parent / "out"
    words = ["eval", str(file), "--policy", "random", "--pictures", "0", "--out", str(out), "--inference-ms", "60"]
    assert main([*words, "--instructions", str(file.parent / "words.toml")]) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["inference_ms"] == 60 and "--inference-ms 60" in report["command"]
    assert report["protocol"]["hash"] != PROTOCOL.hash
    said = {e["instruction"] for e in report["per_task"][0]["per_episode"]}
    assert said == {"shove the block"} or "push the cube to the goal" not in said, said
    assert "an answer takes <b>60 ms</b>" in (out / "report.html").read_text()


# ---- by action error -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demos") / "demos.h5"
    env = manikin.make("PushCube-v2", 2, autoreset="disabled", horizon=6)
    recorder = Recorder(env, path, policy="random")
    run_episodes(env, RandomPolicy(env), range(4), observers=[recorder])
    recorder.close()
    env.close()
    return path


class Zero:
    stateless, name = True, "zero"

    def __init__(self, env: Any) -> None:
        self.seen: list[torch.Tensor] = []

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: torch.Tensor, instruction: Any) -> torch.Tensor:
        self.seen.append(observation.clone())
        return torch.zeros(len(observation), 2, 8)


def test_errors_are_those_of_the_recorded_actions(recording: Path) -> None:
    zeros: list[Zero] = []

    def zero(env: Any) -> Zero:
        zeros.append(Zero(env))
        return zeros[-1]

    makers = {
        "off": lambda env: GradedPolicy(RandomPolicy(env), env, Grade(bias=0.05)),
        "zero": zero,
        "itself": RandomPolicy,
    }
    task, found = action_errors(recording, makers, num_envs=3)
    assert task == "PushCube-v2" and [one.policy for one in found] == ["itself", "off", "zero"]
    assert found[0].episodes == (0.0,) * 4  # the policy that was recorded
    with read_episodes(recording) as episodes:
        actions = [episodes[k].actions.astype(np.float64) for k in episodes.numbers]
    np.testing.assert_allclose(found[2].episodes, [np.mean(a**2) for a in actions], rtol=1e-6)
    biased = [np.mean((np.clip(a[:, :7] + 0.05, -1, 1) - a[:, :7]) ** 2) * 7 / 8 for a in actions]
    np.testing.assert_allclose(found[1].episodes, biased, rtol=1e-4)
    assert found[2].error.low < found[2].error.estimate < found[2].error.high
    env = manikin.make("PushCube-v2", 3, autoreset="disabled", horizon=6)
    observation, _ = env.reset(seed=[0, 1, 2])
    assert torch.equal(zeros[0].seen[0], observation)  # it was shown what the demonstrations began with
    env.step(torch.from_numpy(np.stack([a[0] for a in actions[:3]])).float())
    assert not torch.equal(zeros[0].seen[1], observation)
    env.close()


def test_small_errors_are_compared_with_reality(recording: Path, tmp_path: Path, capsys: Any) -> None:
    _, found = action_errors(recording, {"zero": Zero, "itself": RandomPolicy}, num_envs=4)
    real = {"zero": {"": [True] * 9 + [False]}, "itself": {"": [True] + [False] * 9}}
    metrics = agreement_of_errors(found, real)
    errors = {one.policy: one.error.estimate for one in found}
    expected = METRICS["mmrv"](np.array([0.9, 0.1]), -np.array([errors["zero"], errors["itself"]]))
    assert metrics["mmrv"].value == pytest.approx(float(expected)) == pytest.approx(0.8)
    assert metrics["pearson"].value == pytest.approx(-1.0)
    with pytest.raises(ConfigError, match="real results are of the policies x; errors are of itself, zero"):
        agreement_of_errors(found, {"x": {"": [True]}})
    out = tmp_path / "out"
    words = ["eval", "--offline", str(recording), "--policy", "itself=random", "--policy", f"zero={__file__}:Zero"]
    assert main([*words, "--out", str(out)]) == 0
    content = json.loads((out / "offline.json").read_text())
    assert [one["policy"] for one in content["policies"]] == ["itself", "zero"]
    assert content["policies"][1]["error"] == pytest.approx(errors["zero"])
    assert "itself" in capsys.readouterr().out


def test_films_of_outcomes_are_written_and_linked(file: Path) -> None:
    av = pytest.importorskip("av", reason="needs manikin[video]")
    out = file.parent / "out"
    words = ["eval", str(file), "--policy", "a=random", "--policy", "b=graded:", "--num-envs", "3", "--pictures", "1"]
    assert main([*words, "--videos", "--renderer", "rays", "--out", str(out)]) == 0
    films = sorted(out.glob("*/videos/*.mp4"))
    assert len(films) >= 2 and {film.parent.parent.name for film in films} == {"a", "b"}
    with av.open(str(films[0])) as film:
        frames = sum(1 for _ in film.decode(video=0))
    assert frames == 3 + 1 + 10  # every control step, the start, and half a second of the end
    page = (out / "ranking.html").read_text()
    for film in films:
        assert f'href="{film.relative_to(out).as_posix()}"' in page
        shown = f'<video controls muted preload="metadata" src="videos/{film.name}">'
        assert shown in (film.parents[1] / "report.html").read_text()
        assert film.name.startswith("PushCube-v2-") and film.stem.rpartition("-")[2] in ("0", "1", "2")


def test_a_small_error_is_no_success(tmp_path: Path) -> None:
    """A bias errs less than noise in every state of the demonstrations, and leads away from them."""
    env = manikin.make("PushCube-v2", 12, autoreset="disabled")
    recorder = Recorder(env, tmp_path / "demos.h5", policy="expert")
    run_episodes(env, ExpertPolicy(env), range(6), observers=[recorder])
    recorder.close()
    grades = {"biased": Grade(bias=0.15), "noisy": Grade(noise=0.4)}

    def maker(grade: Grade) -> Any:
        return lambda env: GradedPolicy(ExpertPolicy(env), env, grade)

    makers = {name: maker(grade) for name, grade in grades.items()}
    _, found = action_errors(tmp_path / "demos.h5", makers, num_envs=6)
    assert [one.policy for one in found] == ["biased", "noisy"]
    assert found[0].error.high < found[1].error.low
    rates = {}
    for name, make in makers.items():
        run = run_episodes(env, make(env), range(1000, 1012))
        rates[name] = sum(r.success_once for r in run.results) / 12
    env.close()
    assert rates["biased"] < rates["noisy"], rates
