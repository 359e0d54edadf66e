"""Loads a converted dataset with the real LeRobot and takes one gradient step of its ACT policy.

Run by hand, in a Python that has lerobot 0.4.4 (it needs nothing of manikin):

    manikin collect PickCube-v2 --episodes 6 --out pick.h5
    manikin convert pick.h5 pick_cube --observe rgb
    ENV/bin/python benchmarks/lerobot_act.py pick_cube --out benchmarks/results/lerobot.json
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from pathlib import Path
from typing import Any

CHUNK = 16


def check(root: Path) -> dict[str, Any]:
    """What LeRobot finds in the dataset, and the loss before and after a step on one batch."""
    import torch
    from lerobot.configs.types import FeatureType
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.datasets.utils import dataset_to_policy_features
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy
    from lerobot.policies.factory import make_pre_post_processors

    info = json.loads((root / "meta" / "info.json").read_text())
    data = LeRobotDataset(root.name, root=root, delta_timestamps={"action": [i / info["fps"] for i in range(CHUNK)]})
    assert len(data) == info["total_frames"] and data.num_episodes == info["total_episodes"]
    seen = {k: [list(v.shape), str(v.dtype)] for k, v in data[0].items() if hasattr(v, "shape")}
    features = dataset_to_policy_features(data.meta.features)
    outputs = {k: f for k, f in features.items() if f.type is FeatureType.ACTION}
    inputs = {k: f for k, f in features.items() if k not in outputs}
    config = ACTConfig(
        input_features=inputs,
        output_features=outputs,
        chunk_size=CHUNK,
        n_action_steps=CHUNK,
        device="cpu",
        pretrained_backbone_weights=None,
    )
    torch.manual_seed(0)
    policy = ACTPolicy(config)
    prepare, _ = make_pre_post_processors(config, dataset_stats=data.meta.stats)
    batch = prepare(next(iter(torch.utils.data.DataLoader(data, batch_size=8, shuffle=False))))
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5)
    losses = []
    for _ in range(2):
        torch.manual_seed(1)
        loss, _ = policy.forward(batch)
        losses.append(float(loss))
        optimizer.zero_grad()
        loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(policy.parameters(), 10.0))
        optimizer.step()
    assert all(torch.isfinite(p).all() for p in policy.parameters()) and losses[1] < losses[0]
    return {
        "command": "python benchmarks/lerobot_act.py DATASET",
        "versions": {name: importlib.metadata.version(name) for name in ("lerobot", "torch", "datasets", "av")},
        "episodes": data.num_episodes,
        "frames": len(data),
        "item": seen,
        "act": {"loss": losses, "gradient_norm": norm},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    text = json.dumps(check(args.root), indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
