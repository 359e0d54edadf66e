"""The benchmark of few demonstrations goes on where it was interrupted."""

from __future__ import annotations

import json
import sys

from manikin.cli import main
from manikin.data.recording.read import EpisodeFile
from script import script

TASK = "PushCube-v2"
KEPT = ["--observations", "--keep", "success", "--num-envs", "3"]


def test_a_short_recording_and_a_teacher_that_has_begun_go_on(tmp_path, monkeypatch):
    few, many, teacher = (str(tmp_path / name) for name in ("few.h5", "many.h5", "teacher"))
    plays = ["--policy", "ppo-PushCube-v2", "--seed", "100000", "--no-states"]
    assert main(["collect", TASK, "--episodes", "3", *KEPT, "--out", few]) == 0
    assert main(["collect", TASK, "--episodes", "2", *plays, *KEPT, "--out", many]) == 0  # of six
    words = ["train", "sac", TASK, "--demos", few, "--seed", "9351", "--minutes", "0", "--steps", "80", "--no-test"]
    settings = ["env.num_envs=8", "env.horizon=10", "start_steps=16", "updates=1"]
    assert main([*words, "--set", *settings, "--out", teacher]) == 0
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["few_demonstrations.py", "--quick", "--keep", str(tmp_path), "--out", str(out)])
    bench = script("few_demonstrations")
    bench.main()
    found = json.loads(out.read_text())
    assert found["few"] == 3 and found["teacher"]["steps"] == 160 and found["teacher"]["tested"]
    with EpisodeFile(tmp_path / "many.h5") as file:
        assert file.numbers[-1] >= 2  # more than the two that were there
    assert found["kept"] > 2 and found["student"]["steps"] == 4
    again = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("*/report.json"))]
    bench.main()
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("*/report.json"))] == again and len(again) == 2
