"""The scripts that compare Warp with the CPU and measure GPUs, on Warp's CPU device."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import runpy
import subprocess
import sys
import weakref
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import manikin
from manikin.cli import main
from manikin.errors import ConfigError
from manikin.robots import arm
from manikin.spec.action import ActionCard, ActionDim
from script import ran, script

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

ROOT = Path(__file__).resolve().parents[2]


def test_warp_agrees_with_the_cpu() -> None:
    """PickCube with its controller; benchmarks/parity.py does the same for every task, and 256 of its episodes."""
    parity = script("parity")
    entry = parity.compare("PickCube-v2", None, "warp:cpu", seeds=0, rows=4)
    assert entry["share_free"] > 0.5 and entry["states"] >= 28
    assert entry["one_step"] > 0 and entry["force"] > 0  # they are two simulators
    assert entry["same_rows"] > 0.95
    assert not parity.broken(entry)


PARITY = script("parity")


@pytest.mark.parametrize("task", PARITY.with_layouts(most=8))
def test_every_task_takes_the_same_first_step(task: str) -> None:
    """Of other joints than PickCube's, and of up to eight layouts of a task; benchmarks/parity.py goes on for fifty
    steps with each."""
    found = PARITY.free(task, None, "warp:cpu", rows=2, steps=1)
    assert not PARITY.broken(found) and found["share_free"] == 1


@pytest.mark.parametrize("control", [c for c in arm("panda").controllers if c != "joint_delta_pos"])
def test_every_controller_takes_the_same_first_step(control: str) -> None:
    found = PARITY.free("PickCube-v2", control, "warp:cpu", rows=2, steps=1)
    assert not PARITY.broken(found) and found["share_free"] == 1


def test_an_arm_at_a_cabinet_goes_the_same_way_for_fifty_steps() -> None:
    """As PickCube in the first test; the tasks after robosuite take five times as many physics steps."""
    found = PARITY.free("OpenCabinetDrawer-v2/two_drawers_two_doors", None, "warp:cpu", rows=2, steps=50)
    assert not PARITY.broken(found) and found["share_free"] > 0.5 and found["free"] > found["one_step"] > 0


def test_an_arm_that_stays_where_it_is_keeps_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PARITY, "LARGEST", {"rad": 0.0})
    found = PARITY.free("PickCube-v2", None, "warp:cpu", rows=1, steps=1)
    assert [one.partition(" ")[0] for one in PARITY.broken(found)] == ["one_step", "free"] and found["share_free"] == 1


def test_moves_in_metres_stay_within_reach_and_others_are_as_they_were() -> None:
    def dim(scale: float, unit: str, reference: str) -> ActionDim:
        return ActionDim(name="x", unit=unit, frame="base", reference=reference, scale=scale)

    numbers = ((1.0, "m", "measured"), (1.0, "rad", "commanded"), (0.1, "rad", "measured"), (1.0, "m", "absolute"))
    card = ActionCard(controller="of a test", robot="panda", dims=tuple(dim(*one) for one in numbers))
    largest, most = PARITY.random_moves(card, 64, 20).abs().amax((0, 1)), torch.tensor([0.05, 0.15, 0.4, 0.4])
    assert torch.allclose(largest, most, rtol=0.02) and (largest <= most + 1e-6).all()


def newest(name: str, entries: dict[str, Any]) -> str:
    """``TASK-vN CONTROL`` with the newest version that is there; as it is where none is."""
    task, version, rest = re.fullmatch(r"(.*-v)(\d+)(.*)", name).groups()  # type: ignore[union-attr]
    there = (f"{task}{v}{rest}" for v in range(int(version), 0, -1))
    return next((one for one in there if one in entries), name)


def test_every_task_and_controller_is_in_the_table() -> None:
    """What was measured keeps its bounds; docs/devices.md shows it, see test_pages.py. A task whose new version was not
    measured yet is there with the version before."""
    entries = json.loads(PARITY.OUT.read_text())["entries"]
    kinds = {task: PARITY.task_class(task.partition("/")[0]) for task in PARITY.with_layouts()}
    controls = {task: kind.control for task, kind in kinds.items() if kind.__module__.startswith("manikin.tasks.")}
    wanted = {f"{task} {control}" for task, control in controls.items()}
    measured = {name.split(" ")[0].partition("/")[0] for name in entries}
    assert not measured & set(PARITY.PENDING), "these are measured: take them out of PENDING"
    wanted = {name for name in wanted if name.split(" ")[0].partition("/")[0] not in PARITY.PENDING}
    wanted |= {f"PickCube-v2 {control}" for control in arm("panda").controllers}
    wanted = {newest(name, entries) for name in wanted}
    assert not wanted - entries.keys()
    assert not [name for name in wanted if "force" not in entries[name]]
    least = {name: getattr(kinds.get(name.split(" ")[0]), "trial_count", 0) or 256 for name in wanted}
    assert not [name for name in wanted if entries[name]["success"]["seeds"] < least[name]]
    assert not [(name, PARITY.broken(entry)) for name, entry in entries.items() if PARITY.broken(entry)]


def test_bounds_that_are_not_kept_are_named() -> None:
    parity = script("parity")
    good = {"one_step": 1e-7, "free": 1e-6, "force": 1e-4, "jacobian": 1e-7}
    shares = {"share_free": 0.9, "same_rows": 0.9}
    calm = {"overflow": 0, "diverged": 0, "solver_limit": 0}
    rates = {"seeds": 256, "difference": [-0.01, 0.02], "within": True}
    rates |= {"cpu": {"successes": 250, "health": calm}, "warp": {"successes": 249, "health": calm}}
    assert not parity.broken({**good, **shares, "success": rates})
    for name in shares:
        assert parity.broken({**good, **shares, name: 0.1})[0].startswith(f"{name} 0.1 < ")
        assert parity.broken({**good, **shares, name: float("nan")})
    for name in good:
        assert parity.broken({**good, name: 1.0})[0].startswith(f"{name} 1 > ")
        assert parity.broken({**good, name: float("nan")})
    assert parity.broken({**good, "success": {**rates, "difference": [0.01, 0.05]}}) == ["success 250 and 249 of 256"]
    for kind in calm:
        ill = {**rates, "warp": {"successes": 249, "health": {**calm, kind: 1}}}
        assert kind in parity.broken({**good, "success": ill})[0]


def test_what_is_known_is_not_measured_again_and_layouts_are_tasks(monkeypatch) -> None:
    parity = script("parity")
    calls = []
    monkeypatch.setattr(parity, "free", lambda *_, **__: calls.append("free") or {"one_step": 1e-7, "free": 1e-6})
    monkeypatch.setattr(parity, "touching", lambda *_, **__: calls.append("touching") or {"force": 1e-4})
    first = parity.compare("PickCube-v2", None, "warp:cpu", seeds=0, forces=False)
    assert calls == ["free"] and first["control"] == "joint_delta_pos"
    both = parity.compare("PickCube-v2", None, "warp:cpu", seeds=0, known=first)
    assert calls == ["free", "touching"] and both["force"] == 1e-4 and both["free"] == 1e-6
    assert parity.has_expert("PickCube-v2", "joint_torque") and parity.has_expert("CartpoleBalance-v1", None)
    with monkeypatch.context() as without:
        without.setattr(parity.task_class("PickCube-v2"), "expert", parity.Task.expert)
        assert not parity.has_expert("PickCube-v2", None)
    words = parity.with_layouts()
    assert "PickCube-v2" in words and "OpenCabinetDrawer-v2" not in words
    env = parity.make("OpenCabinetDrawer-v2/two_drawers", None, "cpu", 1)
    assert env.task.layout == "two_drawers" and "OpenCabinetDrawer-v2/two_drawers" in words
    env.close()


def test_the_jacobian_of_the_script_is_that_of_mujoco() -> None:
    parity = script("parity")
    env = parity.make("PickCube-v2", None, "cpu", 1)
    env.reset(seed=0)
    for _ in range(5):
        env.step(torch.full((1, 8), 0.7))
    exact = parity.exact_jacobian(env)
    assert abs(exact).max() > 0.5 and abs(exact - parity.world_jacobian(env)[0]).max() < 1e-6


def test_the_gpu_benchmark_runs_dry(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--quick", "--out", str(out)]
    command += ["--task", "CartpoleBalance-v1", "PickCube-v2"]
    done = ran(command, tmp_path, 550)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["card"].startswith("dry run on ")
    row = found["manikin"]["PickCube-v2 state, N=2"]
    assert row["num_envs"] == 2 and row["env"] > 0 and row["raw"] > 0 and 1e4 < row["bytes_per_env"] < 1e6
    assert 5e3 < row["scratch_per_env"] < row["bytes_per_env"] and row["card_bytes"] == 0
    assert row["time_over_raw"] == pytest.approx(row["raw"] / row["env"])
    for task in ("CartpoleBalance-v1", "PickCube-v2"):
        assert found["manikin"][f"{task} 16x16, N=2"]["env"] > 0 and found["manikin"][f"{task} state, N=2"]["env"] > 0
    drawn = found["manikin"]["PickCube-v2 16x16, N=2"]
    assert drawn["scratch_per_env"] == row["scratch_per_env"] and drawn["bytes_per_env"] == row["bytes_per_env"]
    pixels = 16 * 16 * (4 + 4 + 8)  # colour, depth, and a pair of numbers of what is seen
    assert pixels < drawn["renderer_per_env"] < pixels + 5000 and drawn["card_bytes"] == 0
    assert {target["measured"] for target in found["targets"].values()} == {"unmeasured"}
    assert list(found["training"]) == ["PickCube-v2 ppo state, N=2", "PickCube-v2 ppo 36x36 RGB, N=2"]
    for trained in found["training"].values():
        assert trained["steps"] == 8 and 0 <= trained["validated"] <= 1, trained
        assert 0 < trained["seconds"] < trained["process_s"]


def test_memory_is_read_before_raw_physics_takes_some(monkeypatch) -> None:
    from manikin.author import speed

    free, begin = [100, 70], speed.raw_physics
    monkeypatch.setattr(speed, "free_memory", lambda device, **_: free.pop(0))
    monkeypatch.setattr(speed, "raw_physics", lambda env: begin(env) if not free else pytest.fail("raw came first"))
    assert speed.measure_speed("CartpoleBalance-v1", 2, seconds=0.01).card_bytes == 30


def test_what_is_free_is_read_when_what_is_gone_has_been_given_back(monkeypatch) -> None:
    """With stand-ins for what torch and Warp need a GPU for."""
    from manikin.author import speed

    class Circle:
        def __init__(self) -> None:
            self.itself = self

    done: list[str] = []
    monkeypatch.setattr(speed, "torch_device", lambda word: torch.device("cuda", 1))
    monkeypatch.setattr(speed, "wait_for", lambda device: done.append("wait"))
    monkeypatch.setattr(speed, "trim_graphs", lambda device: done.append(f"trim {device}"))
    monkeypatch.setattr(torch, "zeros", lambda *_, device: done.append(f"begin {device}"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("empty"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: done.append("read") or (7, 9))
    gc.disable()
    try:
        gone = weakref.ref(Circle())
        assert speed.free_memory("cuda:1") == 7 and gone() is not None
        assert done == ["begin cuda:1", "wait", "read"]  # pools keep what they needed
        done.clear()
        assert speed.free_memory("cuda:1", tidy=True) == 7 and gone() is None
    finally:
        gc.enable()
    assert done == ["begin cuda:1", "wait", "empty", "trim cuda:1", "read"]


def test_a_measurement_begins_tidily_and_two_steps_after_the_resets(monkeypatch) -> None:
    """A GPU records a step in its second call, and anew after a reset that replaced an array."""
    from manikin.author import speed

    asked: list[dict[str, Any]] = []
    warm: list[int] = []
    begin = speed.raw_physics
    monkeypatch.setattr(speed, "free_memory", lambda device, **options: asked.append(options) or 0)
    monkeypatch.setattr(speed, "raw_physics", lambda env: warm.append(int(env.elapsed[0])) or begin(env))
    speed.measure_speed("CartpoleBalance-v1", 2, seconds=0.01, device="warp:cpu")
    assert asked == [{"tidy": True}, {}] and warm == [2]


def test_the_graph_of_raw_physics_is_launched_before_it_is_timed(monkeypatch) -> None:
    """Warp makes a recording ready to run in its first launch. With stand-ins for what needs a GPU."""
    import manikin
    from manikin.author import raw

    env = manikin.make("CartpoleBalance-v1", 1, device="warp:cpu")
    env.reset(seed=0)
    done: list[str] = []
    wp, mjw = raw.modules()

    @contextlib.contextmanager
    def said(word: str, value: object = None):
        done.append(word)
        yield value
        done.append(f"end of {word}")

    fake = SimpleNamespace(
        to_torch=wp.to_torch,
        ScopedDevice=lambda device: contextlib.nullcontext(),
        ScopedCapture=lambda: said("record", SimpleNamespace(graph="the recording")),
        capture_launch=lambda graph: done.append(f"launch {graph}"),
        synchronize_device=lambda device: done.append("wait"),
    )
    monkeypatch.setattr(raw, "modules", lambda: (fake, mjw))
    monkeypatch.setattr(raw, "warp_device", lambda device: SimpleNamespace(is_cuda=True))
    monkeypatch.setattr(raw, "in_torch_order", lambda device: said("order"))
    physics = raw.raw_physics(env)
    launch = ["wait", "order", "launch the recording", "end of order"]
    assert done == ["record", "end of record", *launch]
    physics.mark()  # the same arrays: nothing is recorded
    assert len(done) == 6
    physics.run([physics.controls()] * 2)
    assert done[6:] == [*launch[:3], *launch[2:], "wait"]
    env.close()


def test_an_unknown_task_is_refused(tmp_path: Path, capsys) -> None:
    out = tmp_path / "gpu.json"
    with pytest.raises(SystemExit) as stopped:
        script("gpu").main(["--quick", "--task", "CartpoleBalance-v1", "PickCube", "--out", str(out)])
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and "'PickCube'" in said and "Did you mean 'PickCube-v2'" in said
    assert "StackCube-v2" in said and not out.exists()


def test_what_eight_cards_do_is_not_held_to_what_one_is_meant_to(tmp_path: Path, monkeypatch) -> None:
    gpu = script("gpu")

    class Eight:
        """The first of eight processes; the others did twice as much."""

        rank, size, local = 0, 8, 0
        close = staticmethod(lambda: None)

        def all(self, row: dict[str, Any]) -> list[dict[str, Any]]:
            return [row, *[{**row, "env": 2 * row["env"]}] * 7]

    def measured(command: list[str], timeout: float = 0) -> dict[str, Any]:
        if command[-2] == "--worker":
            case = json.loads(command[-1])
            return {"num_envs": case["num_envs"], "env": 2e5, "raw": 1.6e5, "time_over_raw": 0.8, "card_bytes": 40}
        return {"num_envs": int(command[-1]), "env": 3e5, "card_bytes": 80}

    monkeypatch.setattr(gpu, "Ranks", Eight)
    monkeypatch.setattr(gpu, "card", lambda args, local: ("cuda:0", "a card"))
    monkeypatch.setattr(gpu, "in_process", measured)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert gpu.main(["--task", "PickCube-v2", "--num-envs", "64", "--peers", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "gpu-8.json").read_text())
    assert found["gpus"] == 8 and not (tmp_path / "gpu.json").exists()
    assert found["manikin"]["PickCube-v2 state, N=64"]["env"] == 15 * 2e5
    *rates, state, pictures = [t["measured"] for t in found["targets"].values()]
    assert rates == pytest.approx([2e5, 2 / 3, 0.8, 2e5, 0.5])
    assert found["training"] == {} and (state, pictures) == ("unmeasured", "unmeasured")  # it is of one card
    assert gpu.results_of(1) == tmp_path / "gpu.json"


def test_a_benchmark_in_several_goes_keeps_what_this_card_did(tmp_path: Path, monkeypatch) -> None:
    gpu, name = script("gpu"), ["a card"]
    done: list[tuple[int, int]] = []
    room: list[str] = []

    def measured(words: list[str], timeout: float = 0) -> dict[str, Any]:
        if words[-2] == "--trainer":
            return {"to_target_s": 20.0}
        case = json.loads(words[-1])
        done.append((case["num_envs"], case["width"]))
        if done[-1] == (2, 0) and not room:
            return {"failed": "no memory"}
        return {"num_envs": case["num_envs"], "env": 1e5, "raw": 1e5, "time_over_raw": 1.0, "card_bytes": 1}

    monkeypatch.setattr(gpu, "card", lambda args, local: ("cuda:0", name[0]))
    monkeypatch.setattr(gpu, "in_process", measured)
    monkeypatch.setattr(sys, "argv", ["benchmarks/gpu.py", "--resume"])
    words = ["--task", "PickCube-v2", "--num-envs", "2", "4", "--out", str(tmp_path / "gpu.json")]

    def go(*parts: str, resume: bool = True) -> dict[str, Any]:
        done.clear()
        assert gpu.main([*words, *(["--resume"] if resume else []), "--parts", *parts]) == 0
        return json.loads((tmp_path / "gpu.json").read_text())

    assert "failed" in go("state")["manikin"]["PickCube-v2 state, N=2"] and done == [(2, 0), (4, 0)]
    room.append("more memory")
    found = go("state", "training")
    assert done == [(2, 0)] and found["manikin"]["PickCube-v2 state, N=2"]["env"] == 1e5
    found = go("pictures")
    assert len(done) == 6 and len(found["manikin"]) == 8 and len(found["training"]) == 2
    assert found["targets"]["PickCube state, seconds of training to 95 %"]["measured"] == 20.0
    assert found["command"] == "python benchmarks/gpu.py --resume"  # the same command once
    ranks = {"rank": 0, "local": 0, "all": lambda row: [row], "close": lambda: None}
    monkeypatch.setattr(gpu, "Ranks", lambda: SimpleNamespace(size=2, **ranks))
    with pytest.raises(SystemExit):
        go("state")
    monkeypatch.setattr(gpu, "Ranks", lambda: SimpleNamespace(size=1, **ranks))
    name[0] = "another card"
    assert len(go("state")["manikin"]) == 2 and done == [(2, 0), (4, 0)]


def test_no_episode_of_mjlab_ends_while_it_is_timed(monkeypatch, capsys) -> None:
    """The script with stand-ins for mjlab and the GPU."""
    command = SimpleNamespace(resampling_time_range=(8.0, 12.0))
    config = SimpleNamespace(
        scene=SimpleNamespace(num_envs=1), terminations={"time_out": 1}, commands={"lift": command}
    )
    made: list[tuple[dict, float]] = []

    class Made:
        action_manager = SimpleNamespace(total_action_dim=3)

        def __init__(self, *, cfg: Any, device: str) -> None:
            made.append((dict(cfg.terminations), cfg.commands["lift"].resampling_time_range[0]))

        reset = staticmethod(lambda: None)
        step = staticmethod(lambda action: None)

    modules = {"mjlab": {}, "mjlab.tasks": {}, "mjlab.envs": {"ManagerBasedRlEnv": Made}}
    modules |= {"mjlab.tasks.registry": {"load_env_cfg": lambda word: config}}
    for name, contents in modules.items():
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        vars(sys.modules[name]).update(contents)
    for name in ("set_device", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (7, 9))
    monkeypatch.setattr(sys, "argv", ["mjlab_gpu.py", "cpu", "0.01", "4"])
    runpy.run_path(str(ROOT / "benchmarks" / "peers" / "mjlab_gpu.py"))
    assert made == [({}, 1e9)] and json.loads(capsys.readouterr().out)["num_envs"] == 4


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to measure")
def test_without_a_gpu_it_says_unmeasured(tmp_path: Path) -> None:
    gpu = script("gpu")
    assert gpu.main(["--out", str(tmp_path / "gpu.json")]) == 0
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["card"] == "unmeasured" and not found["manikin"]
    assert {target["measured"] for target in found["targets"].values()} == {"unmeasured"}


def test_rates_of_several_gpus_add_and_the_worst_counts() -> None:
    gpu = script("gpu")
    row = {"num_envs": 4, "env": 10.0, "raw": 20.0, "create_s": 3.0, "bytes_per_env": 7, "time_over_raw": 2.0}
    both = gpu.summed([row, {**row, "env": 15.0, "create_s": 5.0}])
    assert both["env"] == 25.0 and both["num_envs"] == 8 and both["create_s"] == 5.0 and both["gpus"] == 2
    assert both["time_over_raw"] == 40.0 / 25.0
    assert gpu.summed([row]) == row
    assert gpu.summed([row, {"failed": "no memory"}]) == {"failed": "no memory"}


def test_processes_of_torchrun_hear_of_each_other(tmp_path: Path) -> None:
    """Two of them gather what both measured; without a GPU, since it is not asked for."""
    program = tmp_path / "both.py"
    lines = (
        "import importlib.util, sys",
        f"sys.path.insert(0, {str(ROOT / 'benchmarks')!r})",
        f"spec = importlib.util.spec_from_file_location('gpu', {str(ROOT / 'benchmarks' / 'gpu.py')!r})",
        "gpu = sys.modules['gpu'] = importlib.util.module_from_spec(spec)",
        "spec.loader.exec_module(gpu)",
        "ranks = gpu.Ranks()",
        "rows = ranks.all({'env': 1.0 + ranks.rank, 'num_envs': 4, 'device': f'cuda:{ranks.local}'})",
        "assert [row['device'] for row in rows] == ['cuda:0', 'cuda:1'], rows",
        "assert gpu.summed([{**row, 'device': 0} for row in rows])['env'] == 3.0",
        "ranks.close()",
    )
    program.write_text("\n".join(lines))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_targets_are_judged_on_what_was_measured() -> None:
    gpu = script("gpu")
    rows = {
        "PickCube-v2 state, N=16": {"num_envs": 16, "env": 10.0, "time_over_raw": 1.5, "card_bytes": 50},
        "PickCube-v2 state, N=64": {"num_envs": 64, "env": 90.0, "time_over_raw": 1.2, "card_bytes": 90},
        "PickCube-v2 128x128, N=1024": {"num_envs": 1024, "env": 7.0},
        "StackCube-v2 state, N=64": {"num_envs": 64, "env": 900.0, "time_over_raw": 1.0},
    }
    theirs = {"N=64": {"num_envs": 64, "env": 30.0, "card_bytes": 180}, "N=1": {"failed": "no driver"}}
    peers, learned = {"ManiSkill3 PickCube": theirs}, {"PickCube-v2 ppo state, N=4096": {"to_target_s": 25.0}}
    learned["PickCube-v2 ppo 128x128 RGB, N=1024"] = {"to_target_s": None, "seconds": 900.0}  # not reached
    found = gpu.targets(rows, peers, learned)
    assert [target["measured"] for target in found.values()] == [90.0, 3.0, 1.2, 7.0, 0.5, 25.0, 900.0]
    failed = gpu.targets(rows, peers, {name: {"failed": "no memory"} for name in learned})
    assert [target["measured"] for target in failed.values()][5:] == ["unmeasured"] * 2


def test_warmup_makes_a_task_twice_in_new_processes(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    from manikin.cli import warmup

    monkeypatch.setenv("COLUMNS", "200")
    calls = []

    def created(task: str, options: warmup.WarmupOptions) -> tuple[float, float] | str:
        calls.append((task, options.device, options.num_envs))
        return "out of memory" if task.startswith("Stack") else (20.0 / len(calls), 25_000.0)

    monkeypatch.setattr(warmup, "created", created)
    words = ["warmup", "PickCube-v2", "--device", "warp:cpu", "--num-envs", "2"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "20.0 s" in out and "10.0 s" in out and "0.03 MB" in out
    assert calls == [("PickCube-v2", "warp:cpu", 2)] * 2
    assert main([*words[:2], "StackCube-v2", *words[2:]]) == 1
    out = capsys.readouterr().out
    assert "out of memory" in out and "first creation" in out
    assert main(["warmup", "StackCube-v2", *words[2:]]) == 1
    assert "first creation" not in capsys.readouterr().out  # a table of nothing
    for wrong in (["--observe", "rbg"], ["--budget", "room=3"]):
        assert main([*words, *wrong]) == 2 and not capsys.readouterr().out
    assert main(["warmup", "PickCube-v2", "--device", "tpu"]) == 2


def test_warmup_makes_what_is_asked_for(monkeypatch) -> None:
    from manikin.cli import warmup

    made = []

    def make(task: str, num_envs: int, **options: Any) -> None:
        made.append((task, num_envs, options))
        raise ConfigError("that is all")

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """In this process, where what is made can be seen."""
        monkeypatch.setattr(sys, "argv", ["-c", *command[3:]])
        with pytest.raises(ConfigError):
            exec(command[2], {})
        return subprocess.CompletedProcess(command, 1, "", "that is all")

    monkeypatch.setattr(manikin, "make", make)
    monkeypatch.setattr(warmup.subprocess, "run", run)
    words = ["warmup", "PickCube-v2", "--num-envs", "2", "--device", "warp:cpu"]
    assert main(words) == 1
    more = ["--observe", "rgb,state", "--deterministic", "--budget", "nconmax=48,njmax=96", "--robot", "ur5e"]
    assert main([*words, *more]) == 1
    options = {"device": "warp:cpu", "robot": "ur5e", "observe": "rgb+state", "deterministic": True}
    assert made == [
        ("PickCube-v2", 2, {"device": "warp:cpu", "observe": "state"}),
        ("PickCube-v2", 2, {**options, "budget": manikin.Budget(nconmax=48, njmax=96)}),
    ]


def test_warmup_reports_what_a_process_could_not_do() -> None:
    from manikin.cli.warmup import WarmupOptions, created

    said = created("PickCube-v2", WarmupOptions(device="cpu", num_envs=2, robot="no_such_robot"))
    assert isinstance(said, str) and "no_such_robot" in said
    spent, size = created("PickCube-v2", WarmupOptions(device="cpu", num_envs=2))
    assert spent > 0 and size > 1e5
