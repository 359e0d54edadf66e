"""The scripts that compare Warp with the CPU and measure GPUs, on Warp's CPU device."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from manikin.cli import main
from manikin.robots import arm

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

ROOT = Path(__file__).resolve().parents[1]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_warp_agrees_with_the_cpu() -> None:
    """PickCube with its controller; benchmarks/parity.py does the same for every task, and 256 of its episodes."""
    parity = script("parity")
    entry = parity.compare("PickCube-v1", None, "warp:cpu", seeds=0, rows=4)
    assert entry["share_free"] > 0.5 and entry["states"] >= 28
    assert entry["one_step"] > 0 and entry["force"] > 0  # they are two simulators
    assert entry["same_rows"] > 0.95
    assert not parity.broken(entry)


PARITY = script("parity")


@pytest.mark.parametrize("task", PARITY.with_layouts())
def test_every_task_takes_the_same_first_step(task: str) -> None:
    """Of other joints than PickCube's, and of every layout; benchmarks/parity.py goes on for fifty steps with each."""
    found = PARITY.free(task, None, "warp:cpu", rows=2, steps=1)
    assert not PARITY.broken(found) and found["share_free"] == 1


@pytest.mark.parametrize("control", [c for c in arm("panda").controllers if c != "joint_delta_pos"])
def test_every_controller_takes_the_same_first_step(control: str) -> None:
    found = PARITY.free("PickCube-v1", control, "warp:cpu", rows=2, steps=1)
    assert not PARITY.broken(found) and found["share_free"] == 1


def test_an_arm_at_a_cabinet_goes_the_same_way_for_fifty_steps() -> None:
    """As PickCube in the first test; the tasks after robosuite take five times as many physics steps."""
    found = PARITY.free("OpenCabinetDrawer-v1/two_drawers_two_doors", None, "warp:cpu", rows=2, steps=50)
    assert not PARITY.broken(found) and found["share_free"] > 0.5 and found["free"] > found["one_step"] > 0


def test_every_task_and_controller_is_in_the_table() -> None:
    """What was measured keeps its bounds; docs/devices.md shows it, see test_pages.py."""
    entries = json.loads(PARITY.OUT.read_text())["entries"]
    controls = {task: PARITY.task_class(task.partition("/")[0]).control for task in PARITY.with_layouts()}
    wanted = {f"{task} {control}" for task, control in controls.items()}
    wanted |= {f"PickCube-v1 {control}" for control in arm("panda").controllers}
    assert not wanted - entries.keys()
    assert not [(name, PARITY.broken(entry)) for name, entry in entries.items() if PARITY.broken(entry)]


def test_bounds_that_are_not_kept_are_named() -> None:
    parity = script("parity")
    good = {"one_step": 1e-7, "free": 1e-6, "force": 1e-4, "jacobian": 1e-7}
    calm = {"overflow": 0, "diverged": 0}
    rates = {"seeds": 256, "difference": [-0.01, 0.02], "within": True}
    rates |= {"cpu": {"successes": 250, "health": calm}, "warp": {"successes": 249, "health": calm}}
    assert not parity.broken({**good, "success": rates})
    for name in good:
        assert parity.broken({**good, name: 1.0})[0].startswith(f"{name} 1 > ")
        assert parity.broken({**good, name: float("nan")})
    assert parity.broken({**good, "success": {**rates, "difference": [0.01, 0.05]}}) == ["success 250 and 249 of 256"]
    ill = {**rates, "warp": {"successes": 249, "health": {"overflow": 1, "diverged": 0}}}
    assert "overflow" in parity.broken({**good, "success": ill})[0]


def test_what_is_known_is_not_measured_again_and_layouts_are_tasks(monkeypatch) -> None:
    parity = script("parity")
    calls = []
    monkeypatch.setattr(parity, "free", lambda *_, **__: calls.append("free") or {"one_step": 1e-7, "free": 1e-6})
    monkeypatch.setattr(parity, "touching", lambda *_, **__: calls.append("touching") or {"force": 1e-4})
    first = parity.compare("PickCube-v1", None, "warp:cpu", seeds=0, forces=False)
    assert calls == ["free"] and first["control"] == "joint_delta_pos"
    both = parity.compare("PickCube-v1", None, "warp:cpu", seeds=0, known=first)
    assert calls == ["free", "touching"] and both["force"] == 1e-4 and both["free"] == 1e-6
    assert parity.has_expert("PickCube-v1", "joint_torque") and parity.has_expert("CartpoleBalance-v1", None)
    with monkeypatch.context() as without:
        without.setattr(parity.task_class("PickCube-v1"), "expert", parity.Task.expert)
        assert not parity.has_expert("PickCube-v1", None)
    words = parity.with_layouts()
    assert "PickCube-v1" in words and "OpenCabinetDrawer-v1" not in words
    env = parity.make("OpenCabinetDrawer-v1/two_drawers", None, "cpu", 1)
    assert env.task.layout == "two_drawers" and "OpenCabinetDrawer-v1/two_drawers" in words
    env.close()


def test_the_jacobian_of_the_script_is_that_of_mujoco() -> None:
    parity = script("parity")
    env = parity.make("PickCube-v1", None, "cpu", 1)
    env.reset(seed=0)
    for _ in range(5):
        env.step(torch.full((1, 8), 0.7))
    exact = parity.exact_jacobian(env)
    assert abs(exact).max() > 0.5 and abs(exact - parity.world_jacobian(env)[0]).max() < 1e-6


def test_the_gpu_benchmark_runs_dry(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--dry-run", "--out", str(out)]
    command += ["--task", "CartpoleBalance-v1", "PickCube-v1"]
    subprocess.run(command, check=True, capture_output=True, timeout=550)
    found = json.loads(out.read_text())
    assert found["card"].startswith("dry run on ")
    row = found["manikin"]["PickCube-v1 state, N=2"]
    assert row["num_envs"] == 2 and row["env"] > 0 and row["raw"] > 0 and 1e4 < row["bytes_per_env"] < 1e6
    assert 5e3 < row["scratch_per_env"] < row["bytes_per_env"] and row["card_bytes"] == 0
    assert row["time_over_raw"] == pytest.approx(row["raw"] / row["env"])
    for task in ("CartpoleBalance-v1", "PickCube-v1"):
        assert found["manikin"][f"{task} 16x16, N=2"]["env"] > 0 and found["manikin"][f"{task} state, N=2"]["env"] > 0
    assert not found["absent"]
    assert {target["measured"] for target in found["targets"].values()} == {"unmeasured"}


def test_memory_is_read_before_raw_physics_takes_some(monkeypatch) -> None:
    from manikin.env import speed

    free, begin = [100, 70], speed.raw_physics
    monkeypatch.setattr(speed, "_free", lambda device: free.pop(0))
    monkeypatch.setattr(speed, "raw_physics", lambda env: begin(env) if not free else pytest.fail("raw came first"))
    assert speed.measure_speed("CartpoleBalance-v1", 2, seconds=0.01).card_bytes == 30


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
        "PickCube-v1 state, N=16": {"num_envs": 16, "env": 10.0, "time_over_raw": 1.5, "card_bytes": 50},
        "PickCube-v1 state, N=64": {"num_envs": 64, "env": 90.0, "time_over_raw": 1.2, "card_bytes": 90},
        "PickCube-v1 128x128, N=1024": {"num_envs": 1024, "env": 7.0},
        "StackCube-v1 state, N=64": {"num_envs": 64, "env": 900.0, "time_over_raw": 1.0},
    }
    theirs = {"N=64": {"num_envs": 64, "env": 30.0, "card_bytes": 180}, "N=1": {"failed": "no driver"}}
    found = gpu.targets(rows, {"ManiSkill3 PickCube": theirs})
    assert [target["measured"] for target in found.values()] == [90.0, 3.0, 1.2, 7.0, 0.5]


def test_warmup_makes_a_task_twice_in_new_processes(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    from manikin.cli import warmup

    monkeypatch.setenv("COLUMNS", "200")
    calls = []

    def created(task: str, options: warmup.WarmupOptions) -> tuple[float, float] | str:
        calls.append((task, options.device, options.num_envs))
        return "out of memory" if task.startswith("Stack") else (20.0 / len(calls), 25_000.0)

    monkeypatch.setattr(warmup, "_created", created)
    words = ["warmup", "PickCube-v1", "--device", "warp:cpu", "--num-envs", "2"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "20.0 s" in out and "10.0 s" in out and "0.03 MB" in out
    assert calls == [("PickCube-v1", "warp:cpu", 2)] * 2
    assert main([*words[:2], "StackCube-v1", *words[2:]]) == 1
    assert "out of memory" in capsys.readouterr().out
    assert main(["warmup", "PickCube-v1", "--device", "tpu"]) == 2


def test_warmup_reports_what_a_process_could_not_do() -> None:
    from manikin.cli.warmup import WarmupOptions, _created

    said = _created("PickCube-v1", WarmupOptions(device="cpu", num_envs=2, robot="no_such_robot"))
    assert isinstance(said, str) and "no_such_robot" in said
    spent, size = _created("PickCube-v1", WarmupOptions(device="cpu", num_envs=2))
    assert spent > 0 and size > 1e5
