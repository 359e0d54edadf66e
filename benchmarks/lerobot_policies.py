"""LeRobot's ACT and Diffusion Policy: trained by LeRobot on an export of manikin, evaluated by manikin over the server.

    ENV/bin/python benchmarks/lerobot_policies.py act            # or diffusion
    ENV/bin/python benchmarks/lerobot_policies.py serve --checkpoint FOLDER --dataset FOLDER --port 8000

ENV is a Python environment with lerobot 0.4.4 and manikin. The first form collects demonstrations of the expert,
exports them, trains with LeRobot's own command, serves the checkpoint with openpi's protocol and plays 256 episodes
that no demonstration shows. The second form serves any checkpoint of LeRobot whose policy sees one step at a time.
``cpu_seconds`` is the processor time of LeRobot's training command.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, command, write

from manikin.cli import main as manikin_command
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol
from manikin.learn.common.seeds import TEST
from manikin.machine import machine
from manikin.policy.remote.client import RemotePolicy
from manikin.policy.remote.server import PolicyServer

TASK, HORIZON = "PushCube-v2", 100  # [control steps], three times a demonstration
PACKAGES = ("lerobot", "torch", "datasets", "diffusers", "mujoco")
COMMON = {"n_obs_steps": 1, "n_action_steps": 8, "device": "cpu", "push_to_hub": False}
SETTINGS: dict[str, dict[str, Any]] = {  # what differs from LeRobot's defaults, which are for a GPU
    "act": {
        "chunk_size": 16,
        "dim_model": 128,
        "n_heads": 4,
        "dim_feedforward": 256,
        "n_encoder_layers": 2,
        "optimizer_lr": 3e-4,
    },
    "diffusion": {
        "horizon": 16,
        "down_dims": "[64,128]",
        "noise_scheduler_type": "DDIM",
        "num_inference_steps": 10,
        "optimizer_lr": 1e-3,
    },
}
STEPS = {"act": 5000, "diffusion": 6000}
FEW = {"dim_model": 16, "dim_feedforward": 16, "down_dims": "[8,16]", "n_encoder_layers": 1}  # in the small size


class Served:
    """A checkpoint of LeRobot: rows of a dataset's features to chunks (N, H, A) in [-1, 1].

    Args:
        folder: LeRobot's ``pretrained_model``.
        dataset: what it was trained on. A published model may declare cameras that are not there.

    Attributes:
        shapes: of the features that it sees; pictures (H, W, 3).
    """

    stateless = True

    def __init__(self, folder: Path, dataset: Path) -> None:
        from lerobot.configs.policies import PreTrainedConfig
        from lerobot.policies.factory import get_policy_class, make_pre_post_processors

        self.config = PreTrainedConfig.from_pretrained(folder)
        if self.config.n_obs_steps != 1:
            raise SystemExit(f"{folder} sees {self.config.n_obs_steps} steps at a time; train with n_obs_steps=1")
        self.name = f"lerobot {self.config.type}"
        self.policy = get_policy_class(self.config.type).from_pretrained(folder).eval()
        self.before, self.after = make_pre_post_processors(self.config, pretrained_path=str(folder))
        renamed = json.loads((folder / "train_config.json").read_text()).get("rename_map") or {}
        self.shapes = {
            name: tuple(feature["shape"])
            for name, feature in features_of(dataset).items()
            if renamed.get(name, name) in self.config.input_features
        }

    def reset(self, rows: torch.Tensor) -> None:
        """Nothing: every request begins anew."""

    @torch.no_grad()
    def act(self, observation: dict[str, torch.Tensor], instruction: Sequence[str]) -> torch.Tensor:
        seen: dict[str, Any] = {
            name: value.permute(0, 3, 1, 2) / 255 if value.dtype == torch.uint8 else value
            for name, value in observation.items()
        }
        seen = self.before({**seen, "task": list(instruction)})
        torch.manual_seed(0)  # the same observation, the same actions
        self.policy.reset()
        count = self.config.n_action_steps  # the first call asks the network, the others take what it answered
        chunk = torch.stack([self.after(self.policy.select_action(dict(seen))) for _ in range(count)], 1)
        return chunk.clamp(-1.0, 1.0)


def features_of(dataset: Path) -> dict[str, Any]:
    return dict(json.loads((dataset / "meta" / "info.json").read_text())["features"])


def adapter(dataset: Path, served: Sequence[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that renames a row of manikin's observation as the dataset does. It keeps what is ``served``."""
    features = features_of(dataset)

    def adapt(row: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {"prompt": row["prompt"]}
        for name in served:
            if name.startswith("observation.images."):
                found[name] = row[f"cameras/{name.removeprefix('observation.images.')}/rgb"]
            else:
                parts = dict.fromkeys(column.partition("[")[0] for column in features[name]["names"])
                found[name] = np.concatenate([np.ravel(row[part]) for part in parts]).astype(np.float32)
        return found

    return adapt


def tested(checkpoint: Path, dataset: Path, episodes: int, horizon: int) -> dict[str, float]:
    """Success at least once, with Wilson's interval, asked over a websocket."""
    served = Served(checkpoint, dataset)
    protocol = Protocol(
        name="lerobot", tasks=(TASK,), seeds=tuple(range(TEST, TEST + episodes)), observe="state_dict", horizon=horizon
    )
    adapt = adapter(dataset, list(served.shapes))
    with PolicyServer(served, served.shapes, port=0) as server:
        found = evaluate(protocol, lambda _: RemotePolicy(server.url, adapt=adapt), num_envs=min(64, episodes))
    found.raise_if_unhealthy()
    rate = found.tasks[0].rate("once")
    return {"rate": round(rate.estimate, 4), "low": round(rate.low, 4), "high": round(rate.high, 4)}


def exported(folder: Path, demonstrations: int) -> Path:
    """A LeRobot dataset of the expert's successes, by state."""
    run, dataset = folder / "run.h5", folder / "dataset"
    for words in (
        ["collect", TASK, "--episodes", str(demonstrations), "--num-envs", "32", "--keep", "success", "--out", run],
        ["convert", run, dataset, "--observe", "state"],
    ):
        if manikin_command([str(word) for word in words]):
            raise SystemExit(f"manikin {words[0]} failed")
    return dataset


def trained(policy: str, dataset: Path, out: Path, steps: int, batch: int, seed: int, small: bool) -> float:
    """LeRobot's command; its processor time [s]."""
    settings = {**COMMON, **SETTINGS[policy]}
    if small:
        settings |= {name: value for name, value in FEW.items() if name in settings}
    words = [sys.executable, "-m", "lerobot.scripts.lerobot_train", "--dataset.repo_id=manikin/export"]
    words += [f"--dataset.root={dataset}", f"--output_dir={out}", f"--policy.type={policy}"]
    words += [
        f"--policy.{name}={str(value).lower()}" if isinstance(value, bool) else f"--policy.{name}={value}"
        for name, value in settings.items()
    ]
    words += [f"--steps={steps}", f"--save_freq={steps}", f"--batch_size={batch}", f"--seed={seed}"]
    words += ["--num_workers=0", "--log_freq=500", "--eval_freq=0", "--wandb.enable=false"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=[*SETTINGS, "serve"])
    parser.add_argument("--checkpoint", type=Path, help="of serve: LeRobot's folder pretrained_model")
    parser.add_argument("--dataset", type=Path, help="of serve: what it was trained on")
    parser.add_argument("--port", type=int, default=8000, help="of serve")
    parser.add_argument("--demonstrations", type=int, default=200)
    parser.add_argument("--steps", type=int, help=f"gradient steps, default {STEPS}")
    parser.add_argument("--seed", type=int, default=9351)
    parser.add_argument("--keep", type=Path, help="folder in which dataset and checkpoints stay")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.what == "serve":
        if args.checkpoint is None or args.dataset is None:
            parser.error("serve needs --checkpoint and --dataset")
        served = Served(args.checkpoint, args.dataset)
        server = PolicyServer(served, served.shapes, port=args.port)
        print(f"{served.name} at {server.url} takes {served.shapes}; Ctrl-C ends it", flush=True)
        server.serve_forever()
        return
    count, steps, batch, episodes = args.demonstrations, args.steps or STEPS[args.what], 64, 256
    if args.quick:
        count, steps, batch, episodes = 3, 2, 4, 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        dataset = folder / "dataset"
        if not dataset.exists():
            exported(folder, count)
        cpu = trained(args.what, dataset, folder / args.what, steps, batch, args.seed, args.quick)
        checkpoint = folder / args.what / "checkpoints" / "last" / "pretrained_model"
        info = json.loads((dataset / "meta" / "info.json").read_text())
        found = {
            "command": command(),
            "machine": {**machine(), "cores": os.cpu_count()},
            "task": TASK,
            "policy": args.what,
            "seed": args.seed,
            "steps": steps,
            "batch_size": batch,
            "cpu_seconds": round(cpu, 1),
            "tested": tested(checkpoint, dataset, episodes, 5 if args.quick else HORIZON),
            "episodes": episodes,
            "horizon": HORIZON,
            "demonstrations": info["total_episodes"],
            "frames": info["total_frames"],
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        }
    write(found, args.out)


if __name__ == "__main__":
    main()
