"""How quickly batches come from a recording, and how much memory that takes.

    python benchmarks/dataset.py                    # a recording is made up in a temporary folder
    python benchmarks/dataset.py run.h5 --chunk 16

Batches of 256 frames, in a process of its own for each case; memory is what the process takes beyond what it had before
the first batch. The made-up recordings hold what PickCube's do: 50 steps, 30 numbers, or a 128x128 picture as well.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, command, write

STEPS = 50


def make(path: Path, episodes: int, pictures: bool) -> None:
    """A recording of random numbers and smooth pictures."""
    import numpy as np

    from manikin.data.recording.format import Header, RecordedEpisode
    from manikin.data.recording.write import EpisodeWriter

    rng = np.random.default_rng(0)
    together: list[RecordedEpisode] = []
    ramp = np.linspace(0, 200, 128)[None, :, None, None]
    with EpisodeWriter(path, Header(fingerprint={"robot": "panda", "control": "ee_delta_pose"})) as writer:
        for number in range(episodes):
            seen = {"policy/state": rng.normal(size=(STEPS + 1, 30)).astype(np.float32)}
            if pictures:
                shift = rng.uniform(0, 50, (STEPS + 1, 1, 1, 1))
                seen["cameras/base_camera/rgb"] = np.broadcast_to(ramp + shift, (STEPS + 1, 128, 128, 3)).astype(
                    np.uint8
                )
            flags = {k: np.zeros(STEPS, bool) for k in ("terminated", "truncated", "success", "fail")}
            together.append(
                RecordedEpisode(
                    number=number,
                    seed=number,
                    actions=rng.uniform(-1, 1, (STEPS, 7)).astype(np.float32),
                    rewards=np.zeros(STEPS, np.float32),
                    state_hash=np.zeros(STEPS + 1, np.int64),
                    observations=seen,
                    **flags,
                )
            )
            if len(together) == 50 or number == episodes - 1:
                writer.write(*together)
                together.clear()


def resident() -> float:
    """[MB] memory of this process now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def worker(path: str, chunk: int, stack: int, memory_mb: float) -> dict[str, float]:
    """Batches of one epoch."""
    from manikin.data import Dataset

    with Dataset(path, batch_size=256, chunk=chunk, stack=stack, memory_mb=memory_mb) as data:
        before, most, batches, begin = resident(), 0.0, 0, time.perf_counter()
        for _ in data:
            batches, most = batches + 1, max(most, resident())
        spent, grown = time.perf_counter() - begin, most - before
    size = os.path.getsize(path) / 1e6
    return {"batches_per_s": batches / spent, "frames": data.frames, "file_mb": size, "memory_mb": grown}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("recording", nargs="?", type=Path)
    parser.add_argument("--chunk", type=int, default=16)
    parser.add_argument("--stack", type=int, default=2)
    parser.add_argument("--memory-mb", type=float, default=64.0)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(worker(str(args.recording), args.chunk, args.stack, args.memory_mb)))
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        cases = {"given": args.recording} if args.recording else {}
        if not cases:
            for kind, sizes in (("state", (500, 4000)), ("128x128 rgb", (50, 150))):
                for episodes in (2,) if args.quick else sizes:
                    path = cases[f"{kind}, {episodes} episodes"] = Path(folder) / f"{len(cases)}.h5"
                    make(path, episodes, kind != "state")
        for name, path in cases.items():
            options = ["--chunk", args.chunk, "--stack", args.stack, "--memory-mb", args.memory_mb]
            words = [sys.executable, __file__, str(path), "--worker", *map(str, options)]
            line = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
            found[name] = {k: round(v, 1) for k, v in json.loads(line).items()}
    result = {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "cases": found,
    }
    write(result, args.out)


if __name__ == "__main__":
    main()
