"""What `manikin doctor` looks at. Each check is a function that returns findings and never raises."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CHECKS", "Diagnosis", "run_checks"]

OK, MISSING, FAILED = "ok", "missing", "failed"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One line of the report.

    Attributes:
        group: heading, for example "renderers".
        name: what was looked at.
        state: "ok", "missing" (optional and not there) or "failed" (there, but does not work; or needed and absent).
        detail: what was found.
        hint: how to get it, empty when there is nothing to do.
        core: True when nothing works without it.
    """

    group: str
    name: str
    state: str
    detail: str
    hint: str = ""
    core: bool = False


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _try_physics() -> str:
    import mujoco
    from mujoco import batch

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body pos='0 0 1'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    rows = batch.Batch(model, 2)
    rows.step(nstep=10)
    fallen = float(1.0 - rows.qpos[1, 2])
    if not 0 < fallen < 0.01:
        raise RuntimeError(f"a body in free fall moved {fallen} m in {10 * model.opt.timestep} s")
    return f"mujoco {mujoco.__version__}: a batch of two fell as it should"


def try_torch() -> str:
    import torch

    total = float(torch.arange(4.0).sum())
    if total != 6.0:
        raise RuntimeError(f"0 + 1 + 2 + 3 gave {total}")
    return f"torch {torch.__version__}, {'CUDA ' + str(torch.version.cuda) if torch.version.cuda else 'CPU build'}"


def _try_import(module: str) -> Callable[[], str]:
    return lambda: f"{module} {importlib.import_module(module).__version__}"


def core() -> Iterator[Diagnosis]:
    """Python and the packages without which nothing runs, each tried and not only looked up."""
    version = platform.python_version()
    right = sys.version_info >= (3, 11)
    yield Diagnosis(
        group="core",
        name="python",
        state=OK if right else FAILED,
        detail=f"Python {version}, {platform.system()} {platform.machine()}",
        hint="" if right else "use Python 3.11 or newer",
        core=True,
    )
    tries = {
        "torch": try_torch,
        "physics": _try_physics,
        "numpy": _try_import("numpy"),
        "gymnasium": _try_import("gymnasium"),
        "h5py": _try_import("h5py"),
    }
    for name, attempt in tries.items():
        try:
            yield Diagnosis(group="core", name=name, state=OK, detail=attempt(), core=True)
        except Exception as error:  # a broken install may raise anything; that it did is the finding
            detail = f"{type(error).__name__}: {_last_line(str(error))}"
            hint = "install again: pip install -c constraints/cpu.txt -e ."
            yield Diagnosis(group="core", name=name, state=FAILED, detail=detail, hint=hint, core=True)


def compute() -> Iterator[Diagnosis]:
    """CPU threads and memory; GPU as torch and Warp see it."""
    from manikin.control.numerics.native import compiler
    from manikin.sim.device import processors

    detail = f"{processors()} threads"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        detail += f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB memory"
    yield Diagnosis(group="compute", name="cpu", state=OK, detail=detail)
    if path := compiler():
        yield Diagnosis(group="compute", name="compiler", state=OK, detail=f"{path}, for osc_* control on the CPU")
    else:
        hint = "install gcc or clang, or name one in MANIKIN_CC; without, osc_* control is slower"
        yield Diagnosis(group="compute", name="compiler", state=MISSING, detail="no C compiler", hint=hint)
    yield _gpu()
    warp = _version("mujoco-warp")
    if warp:
        detail = f"mujoco-warp {warp}, warp {_version('warp-lang')}; {_kernels()}"
        yield Diagnosis(group="compute", name="warp", state=OK, detail=detail)
    else:
        hint = 'for simulation on an NVIDIA GPU: pip install -c constraints/cuda.txt -e ".[gpu]"'
        yield Diagnosis(group="compute", name="warp", state=MISSING, detail="mujoco-warp is not installed", hint=hint)


def _kernels() -> str:
    """Where Warp's compiled kernels lie, and how many there are."""
    from manikin.assets.paths import cache_root

    folder = Path(os.environ.get("WARP_CACHE_PATH") or cache_root() / "warp")
    count = sum(1 for path in folder.glob("*/wp_*") if path.is_dir()) if folder.is_dir() else 0
    return f"{count} compiled modules in {folder}" if count else f"no kernels compiled yet in {folder}: manikin warmup"


def _gpu() -> Diagnosis:
    try:
        import torch

        if torch.cuda.is_available():
            cards = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
            detail = ", ".join(f"{card.name} ({card.total_memory / 2**30:.0f} GiB)" for card in cards)
            return Diagnosis(group="compute", name="gpu", state=OK, detail=detail)
        build_has_cuda = torch.version.cuda is not None
    except Exception as error:
        detail = f"torch cannot be asked: {type(error).__name__}: {_last_line(str(error))}"
        return Diagnosis(group="compute", name="gpu", state=FAILED, detail=detail)
    if not (shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()):
        return Diagnosis(group="compute", name="gpu", state=MISSING, detail="no NVIDIA GPU; everything runs on the CPU")
    if build_has_cuda:
        detail, hint = "there is a driver, but torch sees no GPU", "see what nvidia-smi says; the driver may be too old"
    else:
        detail, hint = "there is a driver, but torch is the CPU build", "pip install -c constraints/cuda.txt -e ."
    return Diagnosis(group="compute", name="gpu", state=FAILED, detail=detail, hint=hint)


# Runs in a process of its own: a GL library that does not fit may abort, and MuJoCo chooses one per process.
GL_PROBE = """
import os, sys
os.environ["MUJOCO_GL"] = sys.argv[1]
import mujoco
model = mujoco.MjModel.from_xml_string(
    "<mujoco><worldbody><light pos='0 0 3'/><geom type='plane' size='1 1 1' rgba='1 0 0 1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 32, 32)
renderer.update_scene(data)
if renderer.render().max() == 0:
    sys.exit("the picture is black")
from OpenGL import GL
name = GL.glGetString(GL.GL_RENDERER).decode()
renderer.close()
print(name, flush=True)
os._exit(0)  # some drivers complain while Python shuts down
"""
_GL_HINTS = {
    "egl": "Debian or Ubuntu: apt-get install libegl1 libgl1-mesa-dri (an NVIDIA driver brings its own)",
    "osmesa": "Debian or Ubuntu: apt-get install libosmesa6",
}


def renderers() -> Iterator[Diagnosis]:
    """OpenGL without a screen and Filament, tried in processes of their own; ray casting, which needs nothing."""
    probes = {}
    if platform.system() == "Linux":
        for backend in _GL_HINTS:
            command = [sys.executable, "-c", GL_PROBE, backend]
            probes[backend] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for backend, probe in probes.items():
        try:
            out, err = probe.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            probe.kill()
            out, err = probe.communicate()
            err += "\nno answer in 120 s"
        if probe.returncode == 0 and out.strip():
            yield Diagnosis(group="renderers", name=backend, state=OK, detail=_last_line(out))
        else:
            why, hint = _last_line(err), _GL_HINTS[backend]
            yield Diagnosis(group="renderers", name=backend, state=MISSING, detail=why, hint=hint)
    yield _filament()
    yield _rays()


def _filament() -> Diagnosis:
    from manikin.render.backends.filament import probe

    interface, why = probe()
    if interface is not None:
        return Diagnosis(group="renderers", name="filament", state=OK, detail=f"physically based, through {interface}")
    reason, _, hint = why.rpartition("; ")
    return Diagnosis(group="renderers", name="filament", state=MISSING, detail=reason, hint=hint)


def _rays() -> Diagnosis:
    try:
        import mujoco
        import numpy as np

        model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.5'/></worldbody></mujoco>")
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        hit, distance = np.zeros(1, np.int32), np.zeros(1)
        mujoco.mj_multiRay(
            model, data, np.array([0.0, 0, 2]), np.array([0.0, 0, -1]), None, True, -1, hit, distance, None, 1, 10.0
        )
        if abs(distance[0] - 1.5) > 1e-9:
            raise RuntimeError(f"a ray of 1.5 m measured {distance[0]} m")
        return Diagnosis(group="renderers", name="rays", state=OK, detail="ray casting on the CPU, no GL needed")
    except Exception as error:
        detail = f"{type(error).__name__}: {_last_line(str(error))}"
        return Diagnosis(group="renderers", name="rays", state=FAILED, detail=detail)


def data() -> Iterator[Diagnosis]:
    """Roots of real data, the cache, video."""
    for variable, what, hint in (
        ("MANIKIN_DATA", "recordings and real models", "optional: set it to a folder of real data"),
        (
            "MENAGERIE_ROOT",
            "robots with the makers' meshes",
            "optional: a checkout of MuJoCo Menagerie, or pip install mujoco-menagerie (downloads at first use)",
        ),
    ):
        value = os.environ.get(variable)
        if not value:
            yield Diagnosis(group="data", name=variable, state=MISSING, detail=f"not set ({what})", hint=hint)
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            yield Diagnosis(group="data", name=variable, state=FAILED, detail=f"{folder} is not a folder", hint=hint)
            continue
        names = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        yield Diagnosis(group="data", name=variable, state=OK, detail=f"{folder}: {listed or 'empty'}")
    yield _cache()
    yield _video()


def _cache() -> Diagnosis:
    from manikin.assets.paths import cache_root

    folder = cache_root()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    if not os.access(existing, os.W_OK):
        hint = "set MANIKIN_CACHE to a folder that can be written"
        return Diagnosis(group="data", name="cache", state=FAILED, detail=f"{folder} cannot be written", hint=hint)
    free = shutil.disk_usage(existing).free / 2**30
    return Diagnosis(group="data", name="cache", state=OK, detail=f"{folder}, {free:.0f} GiB free")


def _video() -> Diagnosis:
    hint = 'pip install -e ".[video]"'
    try:
        import av
    except ImportError:
        return Diagnosis(group="data", name="video", state=MISSING, detail="av is not installed", hint=hint)
    encoders = [name for name in ("libx264", "libopenh264", "mpeg4") if name in av.codec.codecs_available]
    if not encoders:
        return Diagnosis(
            group="data", name="video", state=FAILED, detail=f"av {av.__version__} has no encoder", hint=hint
        )
    return Diagnosis(group="data", name="video", state=OK, detail=f"av {av.__version__}, {encoders[0]}")


def extras() -> Iterator[Diagnosis]:
    """The optional parts that the package declares, and whether what they need is installed."""
    try:
        metadata = importlib.metadata.metadata("manikin")
    except importlib.metadata.PackageNotFoundError:
        return
    wanted: dict[str, list[str]] = {name: [] for name in metadata.get_all("Provides-Extra") or []}
    for requirement in metadata.get_all("Requires-Dist") or []:
        match = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", requirement)
        if match and match[1] != "manikin":
            wanted[match[2]].append(match[1])
    for extra, distributions in wanted.items():
        versions = {name: _version(name) for name in distributions}
        lacking = [name for name, version in versions.items() if version is None]
        there = ", ".join(f"{name} {version}" for name, version in versions.items()) or "nothing more to install"
        yield Diagnosis(
            group="extras",
            name=extra,
            state=MISSING if lacking else OK,
            detail=f"not installed: {', '.join(lacking)}" if lacking else there,
            hint=f'pip install -e ".[{extra}]"' if lacking else "",
        )


CHECKS: tuple[Callable[[], Iterator[Diagnosis]], ...] = (core, compute, renderers, data, extras)


def run_checks() -> list[Diagnosis]:
    """All findings, in the order of the report. Takes a few seconds: torch, MuJoCo and GL are really tried."""
    return [finding for check in CHECKS for finding in check()]
