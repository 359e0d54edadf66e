"""``lerobot-eval`` runs a manikin task from LeRobot's EnvHub, episode by episode with manikin's own results.

    ENV/bin/python benchmarks/lerobot_envhub.py

ENV is a Python environment with lerobot[dataset,evaluation] 0.6 (which needs Python 3.12), manikin and hatchling. The
script writes the folder of ``manikin new envhub PickCube-v2``, builds and installs it where LeRobot finds it, lays
``env.py`` into LeRobot's cache of the hub as a download would, and calls ``lerobot-eval`` twice: from the installed
package and from the hub. The policy is one that comes with manikin, as a policy of LeRobot's. manikin then plays the
same episodes itself. Nothing is fetched.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from common import ROOT, arguments, command, parsed
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.pretrained import PreTrainedPolicy
from lerobot.processor import PolicyProcessorPipeline
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action

import manikin
from manikin.author.package import write_envhub
from manikin.eval.runner import run_episodes
from manikin.learn.common.seeds import TEST
from manikin.machine import machine
from manikin.policy.choices import policy_maker
from manikin.policy.network import NetworkPolicy
from manikin.policy.shipped import shipped_policy
from manikin.policy.trained import load_trained

OUT = ROOT / "benchmarks" / "results" / "lerobot_envhub.json"
TASK, SHIPPED, REPOSITORY = "PickCube-v2", "ppo-PickCube-v2", "manikin/pick_cube"
PACKAGES = ("lerobot", "manikin", "torch", "mujoco", "gymnasium", "numpy")


@PreTrainedConfig.register_subclass("manikin_network")
@dataclass
class ManikinNetworkConfig(PreTrainedConfig):
    """A trained policy that comes with manikin, as LeRobot asks for one."""

    shipped: str = SHIPPED
    observation_delta_indices = action_delta_indices = reward_delta_indices = None

    def get_optimizer_preset(self) -> Any:
        return None

    def get_scheduler_preset(self) -> Any:
        return None

    def validate_features(self) -> None: ...


class ManikinNetworkPolicy(PreTrainedPolicy):
    """The network, fed with LeRobot's names."""

    config_class, name = ManikinNetworkConfig, "manikin_network"

    def __init__(self, config: ManikinNetworkConfig, **_: Any) -> None:
        super().__init__(config)
        path = shipped_policy(config.shipped)
        assert path is not None
        self.network = load_trained(path)[0]

    def select_action(self, batch: dict[str, torch.Tensor], **_: Any) -> torch.Tensor:
        seen = torch.cat([batch["observation.state"], batch["observation.environment_state"]], 1)
        return NetworkPolicy(self.network).act(seen, [""] * len(seen))[:, 0]

    def reset(self) -> None: ...

    def get_optim_params(self) -> dict:
        return {}

    def forward(self, batch: dict[str, torch.Tensor]) -> Any:
        raise NotImplementedError

    def predict_action_chunk(self, batch: dict[str, torch.Tensor], **_: Any) -> torch.Tensor:
        return self.select_action(batch)[:, None]


def make_manikin_network_pre_post_processors(config: Any, dataset_stats: Any = None) -> tuple[Any, Any]:
    after = {"to_transition": policy_action_to_transition, "to_output": transition_to_policy_action}
    return PolicyProcessorPipeline(steps=[]), PolicyProcessorPipeline(steps=[], **after)


def installed(folder: Path) -> Path:
    """A folder for PYTHONPATH with the package of LeRobot's environment, and this file as one of its policies."""
    site = folder / "site"
    built = write_envhub(TASK, folder)
    words = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*words, "--target", str(site), str(built)], check=True)
    about = site / "lerobot_policy_manikin-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lerobot_policy_manikin\nVersion: 0\n")
    (site / "lerobot_policy_manikin.py").write_text("import lerobot_envhub\n")
    cached = folder / "hub" / f"models--{REPOSITORY.replace('/', '--')}"
    (cached / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0" * 40)
    (cached / "snapshots" / ("0" * 40) / "env.py").write_text((built / "env.py").read_text())
    return site


def lerobot_eval(folder: Path, site: Path, episodes: int, *options: str) -> dict[str, list]:
    """Sums of rewards and successes of LeRobot's own command."""
    out = folder / ("hub_eval" if options else "eval")
    words = ["lerobot.scripts.lerobot_eval", "--env.type=pick_cube", "--policy.type=manikin_network", *options]
    words += ["--policy.device=cpu", f"--eval.n_episodes={episodes}", f"--eval.batch_size={min(10, episodes)}"]
    paths = os.pathsep.join([str(site), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    env = {**os.environ, "PYTHONPATH": paths, "HF_HUB_CACHE": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    words += [f"--seed={TEST}", f"--output_dir={out}", "--eval.use_async_envs=false"]
    subprocess.run([sys.executable, "-m", *words], check=True, env=env, cwd=folder)
    (task,) = json.loads((out / "eval_info.json").read_text())["per_task"]
    return {"rewards": task["metrics"]["sum_rewards"], "successes": task["metrics"]["successes"]}


def main() -> None:
    args = parsed(arguments(__doc__), OUT)
    episodes = 2 if args.quick else 50
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        site = installed(folder)
        found = {
            "package": lerobot_eval(folder, site, episodes),
            "hub": lerobot_eval(folder, site, episodes, f"--env.hub_path={REPOSITORY}", "--trust_remote_code=true"),
        }
    env = manikin.make(TASK, min(10, episodes), autoreset="disabled")  # an episode ends with success, as in LeRobot
    own = run_episodes(env, policy_maker(SHIPPED)(env), range(TEST, TEST + episodes)).results
    env.close()
    sums, wins = [result.return_ for result in own], [result.success_once for result in own]
    result = {
        "command": command(),
        "task": TASK,
        "policy": SHIPPED,
        "episodes": episodes,
        "successes": {"manikin": sum(wins)} | {way: sum(one["successes"]) for way, one in found.items()},
        "same_successes": {way: one["successes"] == wins for way, one in found.items()},
        "rewards_apart": {
            way: max(abs(a - b) for a, b in zip(one["rewards"], sums, strict=True)) for way, one in found.items()
        },
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "machine": machine(),
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
