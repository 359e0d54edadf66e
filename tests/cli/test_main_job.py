"""Collect, replay, evaluate and report on the real simulation."""

from __future__ import annotations

import html.parser
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from manikin.cli.collect import CollectOptions
from manikin.cli.collect import run as collect
from manikin.cli.demo import DemoOptions
from manikin.cli.demo import run as demo
from manikin.cli.evaluate import EvalOptions
from manikin.cli.evaluate import run as evaluate_command
from manikin.cli.replay import ReplayOptions
from manikin.cli.replay import run as replay_command
from manikin.data.recorder import Recorder
from manikin.data.recording.format import parts_folder
from manikin.data.recording.read import read_episodes
from manikin.data.replay.verify import replay
from manikin.env.make import make
from manikin.errors import AssetError, ConfigError, DataError, DivergedError, UnknownNameError
from manikin.eval.evaluation import evaluate
from manikin.eval.pages.report import render_html
from manikin.eval.protocol import Protocol
from manikin.eval.report import as_dict, compare, read_report, write_report
from manikin.eval.runner import EpisodeResult, run_episodes
from manikin.policy.choices import policy_maker
from manikin.policy.expert import ExpertPolicy
from manikin.policy.network import NetworkPolicy
from manikin.policy.random_policy import RandomPolicy
from toy_episodes import first_step

SEEDS = (1000, 7, 123456789, 42, 2**40, 3, 99, 1, 2, 64)


def network(env: Any) -> NetworkPolicy:
    """A small fixed network that answers chunks of four actions."""
    generator = torch.Generator().manual_seed(5)
    inputs, actions = env.single_observation_space.shape[0], env.single_action_space.shape[0]
    module = torch.nn.Sequential(
        torch.nn.Linear(inputs, 128),
        torch.nn.LayerNorm(128),
        torch.nn.GELU(),
        torch.nn.Linear(128, 4 * actions),
        torch.nn.Tanh(),
        torch.nn.Unflatten(1, (4, actions)),
    )
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.2
    return NetworkPolicy(module)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.h5"
    env = make("PickCube-v2", 4, autoreset="disabled")
    recorder = Recorder(env, path, policy="expert", observations=True)
    run_episodes(env, ExpertPolicy(env), [(s, i % 2) for i, s in enumerate(SEEDS)], observers=[recorder])
    recorder.close()
    env.close()
    return path


@pytest.mark.parametrize("policy", [ExpertPolicy, RandomPolicy, network], ids=["expert", "random", "network"])
def test_results_do_not_depend_on_the_batch_size(policy: Any) -> None:
    runs: dict[int, tuple[EpisodeResult, ...]] = {}
    for n in (1, 8, 64):
        env = make("PickCube-v2", n, autoreset="disabled", terminate=False, horizon=30)
        runs[n] = run_episodes(env, policy(env), SEEDS).results
        env.close()
    assert runs[1] == runs[8] == runs[64]


@pytest.mark.parametrize("num_envs", [1, 7])
def test_replay_of_physics_is_bit_exact(recording: Path, num_envs: int) -> None:
    report = replay(recording, num_envs=num_envs)
    assert len(report.episodes) == len(SEEDS)
    assert report.exact, report.summary()
    assert report.same_processor and not report.changed


def test_a_tampered_action_of_physics_is_found_at_its_step(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "tampered.h5"
    path.write_bytes(recording.read_bytes())
    with h5py.File(path, "r+") as file:
        file["block_0/steps/actions"][first_step(file, 4) + 9, 3] += np.float32(1e-3)
    report = replay(path, numbers=[3, 4, 5])
    assert [e.number for e in report.episodes if not e.exact] == [4]
    assert report.episodes[1].first_difference == 10
    assert report.episodes[1].difference is not None and 0 < report.episodes[1].difference < 1
    assert "first after action 9" in report.summary()


def test_a_recording_holds_what_the_policy_saw_and_where_it_started(recording: Path) -> None:
    env = make("PickCube-v2", 2, autoreset="disabled")
    with read_episodes(recording) as episodes:
        episode = episodes[1]
        first, _ = env.reset(seed=[5, SEEDS[1]], options={"episode_index": torch.tensor([0, 1])})
        assert episode.observations is not None and episode.states is not None
        assert np.array_equal(episode.observations["value"][0], first[1].numpy())
        assert np.array_equal(episode.states[0], episode.initial["state"])
        assert episode.instruction == env.instruction[0] and episode.success_at_end
        assert episodes.header is not None and episodes.header.task == "PickCube-v2"
        assert episodes.header.fingerprint["model_hash"] == env.fingerprint()["model_hash"]
    env.close()


# ---- health ----------------------------------------------------------------------------------------------------------


class Breaker(RandomPolicy):
    """Throws the arm away with an absurd velocity in the episode of one seed."""

    name = "breaker"

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        extra = self.env.save().extra
        rows = np.flatnonzero((extra["seed"] == 12) & (extra["elapsed"] == 3)).astype(np.int32)
        if len(rows):
            velocity = self.env.world.read("qvel")[rows].clone()
            velocity[:, 0] = 1e15
            self.env.world.write("qvel", velocity, rows)
        return super().act(observation, instruction)


def protocol(**options: Any) -> Protocol:
    return Protocol(**{"name": "test", "tasks": ("PickCube-v2",), "seeds": (10, 11, 12, 13), "horizon": 12, **options})


def test_a_diverged_episode_makes_the_evaluation_fail_and_leaves_others_alone(tmp_path: Path) -> None:
    broken = evaluate(protocol(), Breaker, num_envs=4)
    sound = evaluate(protocol(), RandomPolicy, num_envs=4)
    (task,), (reference,) = broken.tasks, sound.tasks
    assert not broken.healthy and sound.healthy
    assert [r.seed for r in task.unhealthy] == [12]
    assert task.results[2].truncated and task.results[2].length == 4
    others = [0, 1, 3]
    assert [task.results[i] for i in others] == [reference.results[i] for i in others]
    with pytest.raises(DivergedError, match=r"PickCube-v2: 1 episode was not healthy: seed 12 \(diverged"):
        broken.raise_if_unhealthy()
    sound.raise_if_unhealthy()
    page = render_html(as_dict(broken))
    assert "These rates are not valid" in page and "1 of 4 episodes unhealthy" in page

    file = tmp_path / "p.toml"
    file.write_text(protocol().to_toml(), encoding="utf-8")
    for word, status in ((f"{__file__}:Breaker", 1), ("random", 0)):
        options = EvalOptions(protocol=str(file), policy=(word,), out=tmp_path / "out", pictures=0, num_envs=3)
        assert evaluate_command(options) == status


# ---- reports ---------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Collects what a page refers to and checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_says_the_same_in_json_and_html(tmp_path: Path) -> None:
    from manikin.render import make_renderer

    nasty = '<script>alert("x")</script>'
    options = protocol(name=nasty, seeds=tuple(range(8)), horizon=None)
    renderer = make_renderer("rays")
    evaluation = evaluate(options, ExpertPolicy, num_envs=8, film=2, renderer=renderer)
    renderer.close()
    report = as_dict(evaluation, command="manikin eval test.toml")
    other = as_dict(evaluate(options, RandomPolicy, num_envs=8))
    report["comparison"] = compare(report, other)
    write_report(report, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == json.loads(json.dumps(report))

    task = report["per_task"][0]
    wins = sum(e["success"] for e in task["per_episode"])
    assert task["success"]["once"]["successes"] == wins == sum(r.success_once for r in evaluation.tasks[0].results)
    assert report["overall"]["pc_success"] == 100 * wins / 8 and report["overall"]["n_episodes"] == 8
    assert {"episode_ix", "seed", "sum_reward", "max_reward", "success"} <= task["per_episode"][0].keys()
    assert report["protocol"]["hash"] == options.hash
    assert Protocol.from_toml(report["protocol"]["toml"]) == options
    assert report["comparison"][0]["only_first"] == wins and report["comparison"][0]["p_value"] < 0.05

    text = render_html(report, evaluation.reels)
    page = Page(text)
    assert "script" not in page.tags and nasty not in text
    assert page.links and all(link.startswith("data:image/png;base64,") for link in page.links)
    assert not re.search(r"https?://|url\(|@import", text)
    assert page.tags.count("img") == 12
    for shown in (options.hash, "manikin eval test.toml", f"{wins} of 8 episodes", "No episode reported a problem"):
        assert shown in text
    assert len(re.findall(r'<a class="', text)) == 8


def test_reports_that_cannot_be_compared_or_read_say_why(tmp_path: Path) -> None:
    one = as_dict(evaluate(protocol(), RandomPolicy))
    two = as_dict(evaluate(protocol(horizon=13), RandomPolicy))
    with pytest.raises(ConfigError, match="different protocols"):
        compare(one, two)
    with pytest.raises(ConfigError, match="no episode in common"):
        compare(one, {**one, "per_task": []})
    with pytest.raises(DataError, match="cannot be read"):
        read_report(tmp_path / "none.json")
    for text, message in (
        ("{", "not JSON"),
        ("[]", "no evaluation report"),
        ('{"schema": "x"}', "no evaluation report"),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DataError, match=message):
            read_report(tmp_path / "bad.json")
    write_report({**one, "schema_version": 9}, tmp_path / "new.json")
    with pytest.raises(DataError, match="schema version 9"):
        read_report(tmp_path / "new.json")


def test_a_protocol_that_cannot_run_is_refused_before_anything_runs() -> None:
    with pytest.raises(ConfigError, match=r"PickCube-v9 does not exist; valid: PickCube-v1, PickCube-v2"):
        evaluate(protocol(tasks=("PickCube-v9",)), RandomPolicy)
    with pytest.raises(ConfigError, match="cameras need pictures, but observe = 'state' has none"):
        evaluate(protocol(cameras=("base_camera",)), RandomPolicy)
    with pytest.raises(UnknownNameError, match="robot"):
        evaluate(protocol(robot="pand"), RandomPolicy)


def test_interrupted_evaluations_say_so() -> None:
    seen: list[str] = []
    evaluation = evaluate(
        protocol(seeds=tuple(range(6))),
        RandomPolicy,
        num_envs=2,
        on_result=lambda task, result: seen.append(task),
        stop=lambda: len(seen) >= 2,
    )
    assert evaluation.interrupted and len(evaluation.tasks[0].results) == 2
    assert "Interrupted." in render_html(as_dict(evaluation))


# ---- policies by word ------------------------------------------------------------------------------------------------


def test_policies_by_word(tmp_path: Path) -> None:
    assert type(policy_maker("expert")(make("PickCube-v2"))) is ExpertPolicy
    assert policy_maker("random") is RandomPolicy
    (tmp_path / "mine.py").write_text("def make(env):\n    return ('made for', env)\n")
    assert policy_maker(f"{tmp_path}/mine.py:make")("env") == ("made for", "env")
    with pytest.raises(
        UnknownNameError, match=r"'expret'. Did you mean 'expert'\? Valid: expert, planner, ppo-.*, random"
    ):
        policy_maker("expret")
    with pytest.raises(UnknownNameError, match=r"'mkae'. Did you mean 'make'"):
        policy_maker(f"{tmp_path}/mine.py:mkae")
    with pytest.raises(AssetError, match="no file"):
        policy_maker("nothing.py:make")
    with pytest.raises(ConfigError, match="cannot be imported"):
        policy_maker("no_such_module_here:make")


# ---- commands --------------------------------------------------------------------------------------------------------


def test_collect_resume_and_replay_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.h5"
    options = {"task": "PickCube-v2", "policy": "random", "out": out, "num_envs": 4, "horizon": 10}
    assert collect(CollectOptions(**options, episodes=5)) == 0  # type: ignore[arg-type]
    with pytest.raises(DataError, match="exists"):
        collect(CollectOptions(**options, episodes=7))  # type: ignore[arg-type]
    assert collect(CollectOptions(**options, episodes=7, resume=True)) == 0  # type: ignore[arg-type]
    with read_episodes(out) as episodes:
        assert episodes.numbers == list(range(7)) and [episodes[n].seed for n in range(7)] == list(range(7))
    capsys.readouterr()
    assert replay_command(ReplayOptions(file=out, check=True, num_envs=3)) == 0
    assert "7 of 7 episodes reproduced bit for bit" in capsys.readouterr().out
    with h5py.File(out, "r+") as file:
        file["block_0/steps/actions"][first_step(file, 5) + 4] *= -1
    assert replay_command(ReplayOptions(file=out, check=True)) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "6 of 7 episodes" in said and "first after action 4 of 10" in said
    with pytest.raises(ConfigError, match="--episodes"):
        collect(CollectOptions(task="PickCube-v2", episodes=0))


COLLECT = """
import sys
from pathlib import Path
from manikin.cli.collect import CollectOptions, run
run(CollectOptions(task="PickCube-v2", policy="random", horizon=8, num_envs=3, episodes=100000, out=Path(sys.argv[1])))
"""


def test_killing_collect_leaves_every_finished_episode(tmp_path: Path) -> None:
    out = tmp_path / "run.h5"
    child = subprocess.Popen([sys.executable, "-c", COLLECT, str(out)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while len(list(parts_folder(out).glob("*.h5"))) < 12:
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    parts = [int(part.stem) for part in parts_folder(out).glob("*.h5")]  # each is named after its first episode
    with read_episodes(out) as episodes:
        assert set(parts) <= set(episodes.numbers) and len(episodes) >= len(parts) >= 12
        assert episodes.numbers == list(range(len(episodes)))
    report = replay(out, num_envs=6)
    assert report.exact, report.summary()


def test_demo_from_one_end_to_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = DemoOptions(out=tmp_path / "demo", episodes=4, held_out=5, num_envs=4, render_s=5, renderer="rays")
    assert demo(options) == 0
    said = capsys.readouterr().out
    assert "4 of 4 episodes reproduced bit for bit" in said
    names = {"episodes.h5", "protocol.toml", "report.json", "report.html", "video.mp4"}
    assert {p.name for p in options.out.iterdir()} == names
    report = read_report(options.out / "report.json")
    assert report["healthy"] and report["overall"]["n_episodes"] == 5
    assert [e["seed"] for e in report["per_task"][0]["per_episode"]] == list(range(1_000_000, 1_000_005))
    import av

    with av.open(str(options.out / "video.mp4")) as video:
        frames = [f.to_ndarray(format="rgb24") for f in video.decode(video=0)]
    assert len(frames) >= 4 and frames[0].std() > 10 and not np.array_equal(frames[0], frames[-1])
    assert demo(options) == 0  # again, over what is there
