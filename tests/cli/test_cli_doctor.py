"""The command `manikin`: quick help, clear usage errors, and a doctor whose findings are true."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from manikin.cli import COMMANDS, main
from manikin.cli.common import checks
from manikin.cli.common.checks import FAILED, MISSING, OK, Diagnosis


def manikin(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "manikin.cli", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **env}, check=False)


def by_name(findings: list[Diagnosis]) -> dict[str, Diagnosis]:
    return {finding.name: finding for finding in findings}


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom manikin.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(sum(m in sys.modules for m in ('torch', 'mujoco', 'h5py', 'av')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    for command in COMMANDS:
        assert command in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_loads_nothing_heavy(command: str) -> None:
    code = (
        "import sys\nfrom manikin.cli import main\n"
        f"try: main([{command!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(sum(m in sys.modules for m in ('torch', 'mujoco', 'h5py', 'av')))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"manikin {command}" in result.stdout


def test_unknown_command_is_refused_with_the_valid_ones() -> None:
    result = manikin("doktor")
    assert result.returncode == 2
    assert "doktor" in result.stderr
    assert "doctor" in result.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    import manikin as package

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"manikin {package.__version__}\n"


def test_doctor_as_json_in_a_fresh_process(tmp_path) -> None:
    missing = tmp_path / "nowhere"
    (tmp_path / "menagerie" / "franka_emika_panda").mkdir(parents=True)
    result = manikin(
        "doctor",
        "--json",
        MANIKIN_DATA=str(missing),
        MENAGERIE_ROOT=str(tmp_path / "menagerie"),
        MANIKIN_CACHE=str(tmp_path / "cache"),
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert report["ok"]
    assert {"python", "torch", "physics", "numpy", "gymnasium", "h5py"} == {n for n, f in findings.items() if f["core"]}
    assert findings["rays"]["state"] == OK
    assert findings["MANIKIN_DATA"]["state"] == FAILED  # set, but wrong
    assert str(missing) in findings["MANIKIN_DATA"]["detail"]
    assert findings["MENAGERIE_ROOT"]["state"] == OK
    assert "franka_emika_panda" in findings["MENAGERIE_ROOT"]["detail"]
    assert str(tmp_path / "cache") in findings["cache"]["detail"]
    assert not (tmp_path / "cache").exists()  # looking makes nothing
    for finding in report["findings"]:
        if finding["state"] == MISSING and finding["name"] != "gpu":
            assert finding["hint"], finding


def test_doctor_fails_when_the_core_does_not_work(monkeypatch, capsys) -> None:
    def broken() -> str:
        raise OSError("libtorch_cpu.so: cannot open shared object file")

    monkeypatch.setattr(checks, "try_torch", broken)
    monkeypatch.setattr(checks, "CHECKS", (checks.core,))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "libtorch_cpu.so" in out
    assert "The core does not work" in out


def test_optional_parts_never_fail_the_doctor(monkeypatch, capsys) -> None:
    bad = Diagnosis(group="renderers", name="egl", state=FAILED, detail="no device [driver]", hint="install one")
    monkeypatch.setattr(checks, "CHECKS", (checks.core, lambda: iter([bad])))
    assert main(["doctor"]) == 0
    assert "no device [driver]" in capsys.readouterr().out  # brackets are text, not markup


def test_a_gl_library_that_does_not_load_is_reported_with_the_reason(monkeypatch) -> None:
    monkeypatch.setattr(checks, "GL_PROBE", "import sys; sys.exit('cannot load libEGL.so.1')")
    monkeypatch.setattr(
        "manikin.render.backends.filament.probe", lambda: (None, "vulkan: no driver; apt-get install libvulkan1")
    )
    findings = by_name(list(checks.renderers()))
    if "egl" in findings:  # Linux
        assert findings["egl"].state == MISSING
        assert findings["egl"].detail == "cannot load libEGL.so.1"
        assert "libegl1" in findings["egl"].hint
    assert (findings["filament"].detail, findings["filament"].hint) == (
        "vulkan: no driver",
        "apt-get install libvulkan1",
    )
    assert findings["filament"].state == MISSING and findings["rays"].state == OK


def test_doctor_knows_the_declared_extras() -> None:
    findings = by_name(list(checks.extras()))
    assert {"gpu", "video", "data", "learn", "teleop", "viewer", "real2sim", "dev"} <= set(findings)
    assert findings["viewer"].state == OK
