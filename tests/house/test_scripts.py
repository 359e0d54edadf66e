"""Every script of benchmarks/ and docs/ runs, in its small size, with the arguments that its published result names.

Those of examples/ run as they are, see test_docs.py.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.stats
import torch

import manikin
from browser import chromium, iwer
from manikin.data.formats.convert import to_maniskill, to_robomimic
from manikin.data.recorder import Recorder
from manikin.env.registry import task_ids, task_versions
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from script import ran, script

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
ELSEWHERE = {  # who runs them
    "benchmarks/common.py": "the others, which share it",
    "benchmarks/gpu.py": "test_gpu_scripts.py",
    "docs/filling.py": "the others, which share it",
    "docs/hooks.py": "make docs",
}
UNPUBLISHED = {  # of no result
    "benchmarks/demonstrations.py": "python benchmarks/demonstrations.py ROBOSUITE",
    "benchmarks/grains.py": "python benchmarks/grains.py --quick",
    "benchmarks/homes.py": "python benchmarks/homes.py --quick",
    "benchmarks/interact.py": "python benchmarks/interact.py --quick",
    "benchmarks/lerobot_policies.py": "python benchmarks/lerobot_policies.py act --quick",
    "benchmarks/pinched.py": "python benchmarks/pinched.py --quick",
    "benchmarks/realities.py": "python benchmarks/realities.py",
    "benchmarks/soft.py": "python benchmarks/soft.py --quick",
    "benchmarks/trajectories.py": "python benchmarks/trajectories.py MANISKILL",
    "docs/cameras.py": "python docs/cameras.py --check",
    "docs/conversion.py": "python docs/conversion.py --check",
    "docs/devices.py": "python docs/devices.py --check",
    "docs/families.py": "python docs/families.py --check",
    "docs/fidelity.py": "python docs/fidelity.py --check",
    "docs/headset.py": "python docs/headset.py --quick --draw --out OUT",
    "docs/homes_sheet.py": "python docs/homes_sheet.py --quick --out OUT",
    "docs/homes_tables.py": "python docs/homes_tables.py --check",
    "docs/kitchens_sheet.py": "python docs/kitchens_sheet.py --quick --out OUT",
    "docs/moments.py": "python docs/moments.py --quick --out OUT",
    "docs/physics.py": "python docs/physics.py --check",
    "docs/pictures.py": "python docs/pictures.py --quick --out OUT",
    "docs/planning.py": "python docs/planning.py --quick --out OUT",
    "docs/ranking.py": "python docs/ranking.py --check",
    "docs/robots_pick.py": "python docs/robots_pick.py --quick",
    "docs/robots_sheet.py": "python docs/robots_sheet.py --quick --out OUT",
    "docs/sim_to_real.py": "python docs/sim_to_real.py --check",
    "docs/simpler_experts.py": "python docs/simpler_experts.py --check",
    "docs/simpler_numbers.py": "python docs/simpler_numbers.py --check",
    "docs/simpler_sheet.py": "python docs/simpler_sheet.py --quick --out OUT",
    "docs/simpler_speed.py": "python docs/simpler_speed.py --check",
    "docs/solved.py": "python docs/solved.py --check",
    "docs/speed.py": "python docs/speed.py --check",
    "docs/stages.py": "python docs/stages.py --out OUT",
    "docs/sysid.py": "python docs/sysid.py --check",
    "docs/tactile.py": "python docs/tactile.py --check",
    "docs/task_speed.py": "python docs/task_speed.py --check",
    "docs/training.py": "python docs/training.py --check",
    "docs/view_map.py": "python docs/view_map.py --quick --out OUT",
    "docs/view_recording.py": "python docs/view_recording.py --quick --out OUT",
    "docs/your_simulator.py": "python docs/your_simulator.py --check",
}
LIBRARIES = {"sb3": "stable_baselines3", "skrl": "skrl", "rsl_rl": "rsl_rl"}
PICTURES = {
    "benchmarks/ranking.py": {"table"},  # of a reality
    "benchmarks/ranking_varied.py": {"table"},
    "docs/moments.py": {
        "fidelity-tasks",
        "pour",
        "sim-to-real",
        "sim-to-real-settings",
        "tactile-insert",
        "walking",
        "turning",
        "carrying",
    },
    "docs/pictures.py": {
        "arenas",
        "faucets",
        "AntRun-v1",
        "different-objects",
        "robots",
        "table-top",
        "tasks",
    },
    "docs/headset.py": {"headset"},
    "docs/homes_sheet.py": {"homes", "homes-plans", "home-episodes"},
    "docs/kitchens_sheet.py": {"kitchens"},
    "docs/planning.py": {"planning"},
    "docs/robots_sheet.py": {"arms-and-grippers", "hands", "legged-robots", "robot-kinds"},
    "docs/simpler_sheet.py": {"simpler"},
    "docs/stages.py": {"stages"},
    "docs/view_map.py": {"view_map"},
    "docs/view_recording.py": {"view_recording"},
}
PEERS = {  # arguments with which a peer's script runs for a moment
    "maniskill": "0.05",
    "maniskill_render": "0.05 32 32 rgb",
    "maniskill_rows": "0.05",
    "maniskill_trajectories": "record OUT",
    "robosuite": "0.05",
    "robosuite_demonstrations": "OUT 2",
    "robosuite_render": "0.05 32 32 rgb",
    "maniskill_rewards": "OUT/rewards.json",
    "robosuite_rewards": "OUT/rewards.json",
    "robosuite_osc": "OUT/osc.json",
    "gymrobotics": "0.05",
    "maniskill_gpu": "cuda:0 0.05 2",
    "mjlab_gpu": "cuda:0 0.05 2",
}


def published() -> Iterator[tuple[str, str, Path]]:
    """Script, command and file of every published result."""
    for file in sorted(RESULTS.glob("*.json")):
        for key, command in json.loads(file.read_text()).items():
            if key.startswith("command"):
                yield shlex.split(command)[1], command, file


PUBLISHED = list(published())


def run(words: list[str], folder: Path, timeout: float = 300) -> str:
    """What a script prints; it has to succeed."""
    done = ran(words, folder, timeout)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def words_of(command: str, places: dict[str, Path]) -> list[str]:
    """A command without its file of results, with what stands for a place replaced, as this Python runs it."""
    python, path, *rest = shlex.split(command)
    assert python == "python"
    if "--out" in rest and rest[rest.index("--out") + 1] != "OUT":
        at = rest.index("--out")
        del rest[at : at + 2]
    return [sys.executable, str(ROOT / path), *(str(places.get(word, newest(word))) for word in rest)]


def newest(word: str) -> str:
    """The newest version of a task where the one that a result was measured on is gone."""
    name, _, version = word.rpartition("-v")
    if not name or not version.isdigit() or word in task_versions():
        return word
    return next(task for task in task_ids() if task.startswith(f"{name}-v"))


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """Folder of environments whose Python says that it did a hundred steps per second."""
    for name in ("maniskill", "robosuite", "gymrobotics"):
        python = tmp_path / "peers" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/bash\necho 100.0\n")
        python.chmod(0o755)
    return tmp_path / "peers"


@pytest.mark.parametrize(("name", "command", "file"), PUBLISHED, ids=[command for _, command, _ in PUBLISHED])
def test_a_result_can_be_made_again(
    name: str, command: str, file: Path, tmp_path: Path, peers: Path, request: pytest.FixtureRequest
) -> None:
    if name in ELSEWHERE:
        pytest.skip(f"{ELSEWHERE[name]} runs it")
    if name == "benchmarks/parity.py":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    if name == "benchmarks/adapters.py" and (library := LIBRARIES.get(shlex.split(command)[2])):
        pytest.importorskip(library, reason="runs in an environment of its own that has this library")
    if name == "benchmarks/lerobot_envhub.py":
        pytest.importorskip("lerobot", reason="runs in LeRobot's own Python, which is not here")
    scenes = name == "benchmarks/home_scenes.py" and "--validation" not in command
    if scenes or name == "benchmarks/human_lift.py":
        request.getfixturevalue("data_root")
    out = tmp_path / "made.json"
    place = ROOT if name == "benchmarks/before_after.py" else peers  # what DIR stands for
    run([*words_of(command, {"DIR": place}), "--quick", "--out", str(out)], tmp_path)
    made, there = json.loads(out.read_text()), json.loads(file.read_text())
    parts = {"demonstrations", "pairs", "runs", "chance"} | {
        key for key in there if key.startswith("command")
    }  # several commands'
    if name == "benchmarks/few_demonstrations.py":
        assert (made["few"], made["played"]) == (3, 6) and 0 < made["kept"] <= 6
        assert made["teacher"]["steps"] == 160 and made["student"]["tested"]["episodes"] == 512
    if name == "benchmarks/imitation.py":
        assert len({"cells", "pictures"} & set(made)) == 1
        parts |= {"cells", "pictures"}
    if name == "benchmarks/home_scenes.py":
        assert ("validation" if "--validation" in command else "subtasks") in made
        parts |= {"subtasks", "validation"}
    assert set(there) - parts <= set(made), "a part of the published result is not made"
    pages = (("speed", "section"), ("cameras", "section"), ("conversion", "table"), ("simpler_speed", "section"))
    pages = (*pages, ("simpler_experts", "section"))
    for page, show in pages:
        if (
            script(page, "docs").__dict__.get("RESULT", script(page, "docs").__dict__.get("RESULTS")) == file
            and "pairs" not in made
        ):
            assert getattr(script(page, "docs"), show)(made).startswith("| ")
    assert {path.stem for path in tmp_path.rglob("*.png")} == PICTURES.get(name, set())
    if name == "benchmarks/simpler_speed.py":
        entry = made["tasks"]["WidowXSpoonOnTowel-v2"]
        assert entry["trials"] == 2 and entry["share"] == [0, 1] and made["wanted_on_gpu"]["measured"] is None
        steps, times = (entry[kind]["steps_per_s"]["median"] for kind in ("all", "one")), entry["times_one"]["median"]
        whole, single = steps
        assert whole / single == pytest.approx(times, rel=0.05) and made["suite"]["times_one"]["median"] == times
        assert made["physics_steps_per_s"]["median"] == pytest.approx(100 * whole, rel=0.05)
        assert script("simpler_speed", "docs").section(made).count("\n| ") == 2  # a task and the suite
    elif name == "benchmarks/sim_to_real.py":
        assert list(made["checkpoints"]) == ["40", "80"] == [str(steps) for steps, _ in made["student"]["validated"]]
        assert made["checkpoints"]["80"]["reality"]["episodes"] == 2


ENDS = """
import atexit, os, sys, threading
atexit.register(print, "at its end", flush=True)
threading.Timer(0.1, print, ["of a thread"], {"flush": True}).start()
print(__name__, __file__, sys.argv, sys.path[0], os.getcwd(), os.environ["ASKED"], sys.stdin.read(), flush=True)
if sys.argv[1] == "fail":
    raise KeyError("lost")
sys.exit({"good": None, "bad": 3, "said": "words"}[sys.argv[1]])
"""


@pytest.mark.parametrize("how", ["good", "bad", "said", "fail"])
def test_a_script_goes_on_as_python_would_have_it(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = tmp_path / "scripts" / "ends.py", tmp_path / "elsewhere"
    file.parent.mkdir()
    folder.mkdir()
    file.write_text(ENDS)
    monkeypatch.setenv("ASKED", how)
    words = [sys.executable, str(file), how]
    alone = subprocess.run(words, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    copied = ran(words, folder, 60)
    assert (copied.returncode, copied.stdout) == (alone.returncode, alone.stdout) and "of a thread" in alone.stdout
    assert copied.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]


def test_a_script_that_does_not_end_is_ended_and_the_next_one_runs(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import sys, time; print('begun', flush=True); time.sleep(float(sys.argv[1]))")
    with pytest.raises(subprocess.TimeoutExpired) as late:
        ran([sys.executable, str(file), "600"], tmp_path, 3.0)
    assert late.value.timeout == 3.0
    assert ran([sys.executable, str(file), "0"], tmp_path, 60).stdout == "begun\n"


def test_rates_are_the_median_of_rounds_with_their_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import common
    import throughput

    row = throughput.summary([{"num_envs": 1, "env": float(v), "raw": 100.0, "create_s": v} for v in (5, 1, 40, 3, 2)])
    assert row["env"] == {"median": 3.0, "low": 1.0, "high": 40.0} and row["create_s"] == 3
    assert row["env_over_raw"] == {"median": 0.03, "low": 0.01, "high": 0.4} and "num_envs" not in row
    here = str(ROOT / "benchmarks" / "throughput.py")
    inside = str(RESULTS / "throughput.json")
    typed = [here, "--peers", str(ROOT.parent), "--rounds", "6", "--out", inside]
    assert common.command(typed) == (
        "python benchmarks/throughput.py --peers DIR --rounds 6 --out benchmarks/results/throughput.json"
    )


def test_the_interval_of_a_ratio_is_students(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import before_after

    rng = np.random.default_rng(0)
    for n in (2, 5, 9, 15):
        logs = rng.normal(0.05, 0.1, n)
        low, high = np.exp(scipy.stats.t.interval(0.95, n - 1, logs.mean(), logs.std(ddof=1) / np.sqrt(n)))
        found = before_after.ratio(logs.tolist())
        assert found["low"] == pytest.approx(low, abs=2e-3) and found["high"] == pytest.approx(high, rel=2e-3)
        assert found["ratio"] == pytest.approx(np.exp(logs.mean()), abs=1e-3)
    assert before_after.ratio([0.0])["low"] is None  # one round says nothing


def test_the_page_of_simplers_numbers_follows_the_published_rates() -> None:
    numbers = script("simpler_numbers", "docs")
    page, published = numbers.PAGE.read_text(), json.loads(numbers.PUBLISHED.read_text())
    assert numbers.filled(page, published) == page
    assert "| drawer/close | matching | 0.123 | 0.123 | 0.768 | **0.771** |" in page
    published["columns"][0]["sim"][0] = 0.1
    assert numbers.filled(page, published) != page
    with pytest.raises(SystemExit, match="no section between <!-- averages"):
        numbers.filled("", published)


def test_a_small_run_or_few_rounds_do_not_get_published(tmp_path: Path) -> None:
    for name, options, said in (
        ("throughput", ["--rounds", "4"], "median of at least 5 rounds"),
        ("experts", ["--quick"], "--quick needs --out"),
    ):
        command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *options]
        done = ran(command, tmp_path, 300)
        assert done.returncode == 2 and said in done.stderr


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of what ManiSkill and robosuite could have written, made of an expert's two episodes."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("MANISKILL", "ROBOSUITE")}
    path = tmp_path_factory.mktemp("own") / "run.h5"
    env = manikin.make("PickCube-v2", 2, autoreset="disabled")
    recorder = Recorder(env, path, policy="expert")
    run_episodes(env, ExpertPolicy(env), range(2), observers=[recorder])
    recorder.close()
    env.close()
    to_maniskill(path, folders["MANISKILL"] / "PickCube-v2.h5", observe="state_dict", num_envs=2)
    with h5py.File(to_robomimic(path, folders["ROBOSUITE"] / "PickCube.hdf5"), "r+") as file:
        for demo in file["data"].values():
            demo["success"] = np.ones(len(demo["states"]) + 1, bool)  # as robosuite_demonstrations.py adds it
    return folders


@pytest.mark.parametrize("name", UNPUBLISHED)
def test_a_script_runs(name: str, tmp_path: Path, recordings: dict[str, Path]) -> None:
    if name in ("docs/view_map.py", "docs/view_recording.py") and chromium() is None:
        pytest.skip("no Chromium is installed")
    if name == "docs/headset.py" and (chromium() is None or iwer() is None):
        pytest.skip("needs Chromium and the npm package iwer: npm install --prefix .venv/iwer iwer")
    if name == "benchmarks/lerobot_policies.py":
        pytest.importorskip("lerobot", reason="runs in LeRobot's own Python, which is not here")
    said = run(words_of(UNPUBLISHED[name], {"OUT": tmp_path, **recordings}), tmp_path)
    assert {path.stem for path in tmp_path.rglob("*.png")} == PICTURES.get(name, set())
    if name == "docs/robots_pick.py":
        assert said.endswith("/2 |\n")
    elif name == "benchmarks/trajectories.py":
        assert "success (theirs 2) the same in" in said and "2 succeed; tool apart at most 0.0 mm" in said
    elif name == "benchmarks/demonstrations.py":
        assert "tool apart 0.0 mm after 10" in said


@pytest.mark.parametrize("name", PEERS)
def test_a_script_of_a_peer_runs(name: str, tmp_path: Path) -> None:
    folder = os.environ.get("MANIKIN_PEERS")
    if not folder:
        pytest.skip("MANIKIN_PEERS is not set: a folder with the Pythons of other libraries, as for --peers")
    if name.endswith("_gpu"):
        torch.cuda.is_available() or pytest.skip("no CUDA device")
    python = Path(folder) / name.partition("_")[0] / "bin" / "python"
    arguments = [word.replace("OUT", str(tmp_path)) for word in PEERS[name].split()]
    words = [str(python), "-P", str(ROOT / "benchmarks" / "peers" / f"{name}.py"), *arguments]
    said = subprocess.run(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=300, check=True).stdout
    assert list(tmp_path.iterdir()) if "OUT" in PEERS[name] else float(said.split()[-1]) > 0


def test_a_trainer_steps_the_rows_of_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes of 2 and 3 steps that end by success; an observation is the seed, the step, and the actions' sum."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import beside_maniskill

    (tmp_path / "fake.py").write_text(
        f"""
import sys
from types import SimpleNamespace
import numpy as np
sys.path.insert(0, {str(ROOT / "benchmarks")!r})
from peers.maniskill_rows import serve

class Fake:
    observation_space, action_space = SimpleNamespace(shape=(1, 3)), SimpleNamespace(shape=(2,))
    def reset(self, seed=None):
        self.seed, self.k = self.seed if seed is None else seed % 100, 0
        return np.array([[self.seed, 0.0, 0.0]]), {{}}
    def step(self, action):
        self.k += 1
        won = self.k == 2 + self.seed % 2
        info = {{"success": won, "elapsed_steps": self.k}}
        return np.array([[self.seed, self.k, action.sum()]]), 0.1 * self.k, won, False, info

serve(Fake, int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
"""
    )
    words = [sys.executable, str(tmp_path / "fake.py")]
    env = beside_maniskill.PeerRows(words, 2)
    assert env.reset(seed=[4, 7])[0].tolist() == [[4, 0, 0], [7, 0, 0]]
    seen, rewards, terminated, truncated, info = env.step(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert seen.tolist() == [[4, 1, 3], [7, 1, 7]] and rewards.tolist() == pytest.approx([0.1, 0.1])
    assert not (terminated | truncated | info["success"]).any() and "final_obs" not in info
    seen, _, terminated, truncated, info = env.step(torch.ones(2, 2))
    assert seen.tolist() == [[4, 0, 0], [7, 2, 2]]  # the first row began again
    assert terminated.tolist() == [True, False] and not truncated.any()
    assert info["final_obs"].tolist() == [[4, 2, 2], [7, 2, 2]]
    assert info["final_info"]["success"].tolist() == [True, False] and info["elapsed"].tolist() == [2, 2]
    assert beside_maniskill.validated(env, lambda seen: seen[:, :2], 4) == 1.0
    trainer = beside_maniskill.PPO(
        env, beside_maniskill.Config(num_steps=6, minibatches=1, hidden=(4,), stagger=False), 0
    )
    numbers = trainer.iterate()
    assert numbers["success"] == 1.0 and numbers["episodes"] == 5 and trainer.steps == 12  # rows of 2 and 3 steps
    assert 0 < env.cpu_seconds() < 60
    env.close()
    divided, alone = (beside_maniskill.PeerRows(words, 3, processes) for processes in (2, 1))
    for rows in (divided, alone):
        rows.reset(seed=[4, 7, 8])
    for t in range(5):
        seen, rewards, terminated, _, info = divided.step(actions := torch.arange(6.0).view(3, 2) + t)
        again = alone.step(actions)
        assert torch.equal(seen, again[0]) and torch.equal(rewards, again[1]) and torch.equal(terminated, again[2])
        assert torch.equal(info["elapsed"], again[4]["elapsed"])
    divided.close(), alone.close()
    rates = beside_maniskill.probe(words, 5, 2, 0.05)
    assert list(rates) == [1, 2, 4] and min(rates.values()) > 0
    assert beside_maniskill.helpful({1: 100.0, 2: 180.0, 4: 189.0, 8: 150.0}) == 2
    small = beside_maniskill.Config(num_steps=6, minibatches=1, hidden=(4,), stagger=False)
    for wall, clock in ((True, "seconds"), (False, "cpu_seconds")):
        found = beside_maniskill.theirs(words, 1e-4, 0, 4, 2, wall, small)
        assert found["steps"] == 24 and len(found["curve"]) == 1 and 0.006 < found[clock] < 60
        assert found["curve"][0][0] == pytest.approx(found[clock], abs=0.06)


def test_no_script_is_forgotten() -> None:
    there = {
        path.relative_to(ROOT).as_posix() for name in ("benchmarks", "docs") for path in (ROOT / name).glob("*.py")
    }
    assert there == {name for name, _, _ in PUBLISHED} | set(UNPUBLISHED) | set(ELSEWHERE)
    assert {path.stem for path in (ROOT / "benchmarks" / "peers").glob("*.py")} == set(PEERS)
    assert {file for _, _, file in PUBLISHED} == set(RESULTS.glob("*.json")), "a result without its command"
