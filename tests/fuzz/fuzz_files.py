"""Recordings, demonstrations, datasets, reports and policies that were damaged or made up."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from fuzz_values import Case, Draw, changed_bytes, changed_hdf5, changed_json, chosen

import manikin
from manikin.data.dataset import Dataset
from manikin.data.formats.convert import to_lerobot, to_maniskill, to_robomimic
from manikin.data.formats.demonstrations import read_demos
from manikin.data.formats.lerobot import LeRobotWriter
from manikin.data.formats.playback import play_actions, play_states
from manikin.data.recorder import Recorder
from manikin.data.recording.format import parts_folder
from manikin.data.recording.read import EpisodeFile
from manikin.data.recording.write import EpisodeWriter
from manikin.data.replay.rerecord import rerecord
from manikin.data.replay.verify import replay
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol
from manikin.eval.report import as_dict, compare, read_report, write_report
from manikin.eval.runner import run_episodes
from manikin.policy.choices import policy_maker
from manikin.policy.random_policy import RandomPolicy
from manikin.view.sources import open_source

SIMULATED = 0.1  # share of the trials that simulate, which take longer


class Files:
    """Makes whole files once, and damages copies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.run = folder / "run.h5"
        env = manikin.make("PushCube-v2", 2, autoreset="disabled", horizon=4, observe="state_dict")
        recorder = Recorder(env, self.run, policy="random", observations=True, first_seed=0)
        run_episodes(env, RandomPolicy(env), range(3), observers=[recorder])
        recorder.close(merge=False)
        shutil.copytree(parts_folder(self.run), folder / "parts.h5.parts")
        recorder.close()
        env.close()
        to_robomimic(self.run, folder / "robomimic.hdf5", valid=0.5)
        to_maniskill(self.run, folder / "maniskill.h5")
        protocol = Protocol(name="short", tasks=("PushCube-v2",), seeds=(1, 2))
        write_report(as_dict(evaluate(protocol, RandomPolicy)), folder / "report.json")
        self.report = read_report(folder / "report.json")
        self.env = manikin.make("PushCube-v2", 2, observe="policy")
        size, seen = self.env.single_action_space.shape[0], self.env.reset(seed=0)[0]
        module = torch.nn.Sequential(torch.nn.Linear(seen.shape[1], size), torch.nn.Tanh()).eval()
        torch.export.save(torch.export.export(module, (seen,)), folder / "policy.pt2")
        self.kinds = ["recording"] * 4 + [
            "parts",
            "robomimic",
            "robomimic",
            "maniskill",
            "maniskill",
            "report",
            "policy",
        ]
        if all(importlib.util.find_spec(name) for name in ("pyarrow", "av")):
            to_lerobot(self.run, folder / "lerobot")
            half = LeRobotWriter(folder / "half", fps=20.0, robot="x", features={"action": ("float32", (2,), None)})
            half.write(0, "a", {"action": torch.zeros(3, 2).numpy()})
            self.kinds += ["lerobot", "lerobot", "half"]

    def case(self, draw: Draw) -> Case:
        kind = chosen(draw, self.kinds)
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        words, target = getattr(self, f"_{kind}")(draw)
        simulate = bool(draw.random() < SIMULATED)
        return f"{kind}: {words}", lambda: getattr(self, f"_open_{kind}")(target, simulate)

    # ---- damage --------------------------------------------------------------------------------------------------

    def _damaged(self, draw: Draw, path: Path) -> str:
        if path.suffix in (".h5", ".hdf5") and draw.random() < 0.7:
            return changed_hdf5(draw, path)
        if path.suffix == ".json" and draw.random() < 0.8:
            words, text = changed_json(draw, path.read_text())
            path.write_text(text)
            return words
        words, content = changed_bytes(draw, path.read_bytes())
        path.write_bytes(content)
        return words

    def _copied(self, draw: Draw, *names: str, damage: str = "") -> tuple[str, Path]:
        for name in names:
            shutil.copy(self.folder / name, self.work / name)
        return self._damaged(draw, self.work / (damage or names[0])), self.work / names[0]

    def _recording(self, draw: Draw) -> tuple[str, Path]:
        return self._copied(draw, "run.h5")

    def _parts(self, draw: Draw) -> tuple[str, Path]:
        parts = self.work / "parts.h5.parts"
        shutil.copytree(self.folder / parts.name, parts)
        return self._damaged(draw, chosen(draw, sorted(parts.iterdir()))), self.work / "parts.h5"

    def _robomimic(self, draw: Draw) -> tuple[str, Path]:
        return self._copied(draw, "robomimic.hdf5")

    def _maniskill(self, draw: Draw) -> tuple[str, Path]:
        names = ["maniskill.h5", "maniskill.json"]
        return self._copied(draw, *names, damage=chosen(draw, names))

    def _report(self, draw: Draw) -> tuple[str, Path]:
        return self._copied(draw, "report.json")

    def _policy(self, draw: Draw) -> tuple[str, Path]:
        return self._copied(draw, "policy.pt2")

    def _lerobot(self, draw: Draw, name: str = "lerobot") -> tuple[str, Path]:
        shutil.copytree(self.folder / name, self.work / name)
        path = chosen(draw, sorted(p for p in (self.work / name).rglob("*") if p.is_file()))
        return f"{path.name} {self._damaged(draw, path)}", self.work / name

    def _half(self, draw: Draw) -> tuple[str, Path]:
        return self._lerobot(draw, "half")

    # ---- use -----------------------------------------------------------------------------------------------------

    def _open_recording(self, path: Path, simulate: bool) -> None:
        """Every reader, each whatever the one before it said."""
        trials: list[Any] = [
            lambda: self._read(path, strict=True),
            lambda: self._read(path, strict=False),
            lambda: [len(batch["actions"]) for batch in Dataset(path, batch_size=4, chunk=2, stack=2)],
            lambda: Dataset(path).statistics,
            lambda: self._look(path),
            lambda: self._resumed(path),
        ]
        if simulate:
            trials += [
                lambda: replay(path, num_envs=2),
                lambda: rerecord(path, self.work / "new.h5", way="states", observe="policy"),
                lambda: to_robomimic(path, self.work / "new.hdf5"),
                lambda: to_maniskill(path, self.work / "other.h5"),
            ]
        each(trials)

    _open_parts = _open_recording

    def _read(self, path: Path, *, strict: bool) -> None:
        with EpisodeFile(path, strict=strict) as file:
            each([lambda n=n: file[n].summary for n in file.numbers])
            each([lambda n=n: (file.attributes(n), file.shapes(n)) for n in file.numbers])

    def _look(self, path: Path) -> None:
        source = open_source(path)
        try:
            about = json.dumps(source.about())
            for episode in json.loads(about)["episodes"]:
                seen = source.episode(episode["number"])
                json.dumps(seen)
                for camera in seen["cameras"]:
                    source.picture(episode["number"], camera, 0)
        finally:
            source.close()

    def _resumed(self, path: Path) -> None:
        with EpisodeFile(self.run) as whole:
            header, episode = whole.needed_header(), whole[0]
        with EpisodeWriter(path, header, resume=True) as writer:
            if 0 not in writer.finished:
                writer.write(episode)

    def _open_robomimic(self, path: Path, simulate: bool) -> None:
        demos = read_demos(path)
        each([lambda name=name: demos[name] for name in demos.lengths])
        if simulate:
            seen = list(play_states(demos, names=list(demos.lengths)[:1], num_envs=2))
            play_actions(demos, seen)

    _open_maniskill = _open_robomimic

    def _open_report(self, path: Path, simulate: bool) -> None:
        compare(read_report(path), self.report)

    def _open_policy(self, path: Path, simulate: bool) -> None:
        policy = policy_maker(str(path))(self.env)
        policy.act(self.env.reset(seed=0)[0], self.env.instruction)

    def _open_lerobot(self, path: Path, simulate: bool) -> None:
        each([lambda: self._look(path), lambda: LeRobotWriter.reopen(path)])

    def _open_half(self, path: Path, simulate: bool) -> None:
        each([lambda: self._look(path), lambda: LeRobotWriter.reopen(path).close()])


def each(trials: list[Any]) -> None:
    """Try all; raise at the end what was refused, so that one refusal does not spare the others."""
    refused: manikin.errors.ManikinError | None = None
    for trial in trials:
        try:
            trial()
        except manikin.errors.ManikinError as error:
            refused = error
    if refused is not None:
        raise refused
