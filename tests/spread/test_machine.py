"""What two workers must have in common so that they compute the same bits."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manikin.errors import DataError
from manikin.machine import cpu_kind, different, exact_machine, machine
from manikin.spread.drive import drive
from manikin.spread.ledger import Ledger
from manikin.spread.processes import Processes
from toy_work import begun, outcome

XEON = """processor	: {number}
vendor_id	: GenuineIntel
cpu family	: 6
model		: {model}
model name	: Intel(R) Xeon(R) Processor
stepping	: {stepping}
cpu MHz		: {mhz}
flags		: {flags}

"""
GRAVITON = """processor	: {number}
BogoMIPS	: 243.75
Features	: fp asimd {features}
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: {part}
CPU revision	: 1

"""


def xeon(number: int = 0, model: int = 143, stepping: int = 8, mhz: float = 2000.0, flags: str = "sse fma avx2") -> str:
    return XEON.format(number=number, model=model, stepping=stepping, mhz=mhz, flags=flags)


def graviton(number: int = 0, part: str = "0xd40", features: str = "sve") -> str:
    return GRAVITON.format(number=number, part=part, features=features)


def test_two_processors_of_one_name_are_told_apart() -> None:
    one = cpu_kind(xeon())
    assert one.startswith("GenuineIntel family 6 model 143 stepping 8 flags ")
    assert len(one) < 64, "people read it"
    others = [cpu_kind(xeon(**other)) for other in ({"model": 207}, {"stepping": 2}, {"flags": "sse fma avx2 avx512f"})]
    assert len({one, *others}) == 4
    assert cpu_kind(xeon(0) + xeon(1, mhz=3100.0)) == one, "neither how many cores nor their clock counts"
    assert cpu_kind(xeon(flags="avx2 sse fma")) == one, "nor the order of the flags"


def test_processors_of_arm_are_told_apart_and_all_kinds_of_cores_are_named() -> None:
    one, other = cpu_kind(graviton()), cpu_kind(graviton(part="0xd0c"))
    assert one.startswith("implementer 0x41 part 0xd40 variant 0x1 revision 1 flags ") and one != other
    assert cpu_kind(graviton(features="")) != one
    assert cpu_kind(graviton(0) + graviton(1, part="0xd0c")) == f"{other} and {one}"
    assert cpu_kind("Hardware : a board\n") == ""


def test_the_kind_of_this_machine_has_versions_and_differences_are_named() -> None:
    here = exact_machine()
    assert machine().items() <= here.items() and "cpu" not in machine(), "recordings keep what they kept"
    assert (here["mujoco"], here["numpy"]) == (mujoco.__version__, np.__version__)
    assert here["torch"] == torch.__version__.split("+")[0] or here["torch"] == torch.__version__
    assert here["cpu"] and here["manikin"] and "mujoco-warp" in exact_machine("warp:cpu")
    assert different(here, dict(here)) == ""
    there = {**here, "mujoco": "3.3.0", "cpu": "AuthenticAMD family 25"}
    assert different(there, here) == (
        f"cpu: {here['cpu']} here, AuthenticAMD family 25 there; mujoco: {here['mujoco']} here, 3.3.0 there"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/cpuinfo")
def test_the_kind_of_this_machine_is_what_linux_says() -> None:
    assert exact_machine()["cpu"] == cpu_kind(Path("/proc/cpuinfo").read_text())


@pytest.mark.parametrize("name", ["cpu", "torch", "manikin"])
def test_workers_of_another_kind_or_version_are_left_out_and_it_is_said_in_what(tmp_path: Path, name: str) -> None:
    begun(tmp_path / "run", 4, 2)
    plan = tmp_path / "run" / "plan.json"
    plain = json.loads(plan.read_text())
    plain["machine"][name] = "another"
    plan.write_text(json.dumps(plain))
    ledger = Ledger(tmp_path / "run")
    with pytest.raises(DataError, match=rf"of another kind than the run, .*: {name}: .* here, another there"):
        drive(ledger, Processes(ledger.folder), workers=1, deadline=60)
    assert outcome(ledger) == ([], [])


def test_a_worker_on_another_device_than_the_processor_compares_with_that(tmp_path: Path) -> None:
    begun(tmp_path / "run", 2, 2)
    plan = tmp_path / "run" / "plan.json"
    plain = json.loads(plan.read_text())
    plain["machine"] = exact_machine("warp:cpu")
    plan.write_text(json.dumps(plain))
    ledger = Ledger(tmp_path / "run")
    drive(ledger, Processes(ledger.folder), workers=1, deadline=60)
    assert not ledger.left()
