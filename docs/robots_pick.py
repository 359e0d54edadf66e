"""How often PickCube's scripted expert succeeds with each robot, as rows of the table in docs/robots.md.

    python docs/robots_pick.py [ROBOT ...]

64 held-out starts per robot, joint_delta_pos, success at any time of the 2.5 s episode.
"""

from __future__ import annotations

import sys

import torch

from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol
from manikin.policy.expert import ExpertPolicy
from manikin.robots import arms


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    for name in names or arms():
        protocol = Protocol(
            name="pick",
            description="PickCube with a robot",
            tasks=("PickCube-v1",),
            seeds=tuple(range(1_000_000, 1_000_064)),
            robot=name,
        )
        result = evaluate(protocol, ExpertPolicy, num_envs=32, film=0).tasks[0]
        done = sum(episode.success("once") for episode in result.results)
        print(f"| `{name}` | {done}/{len(result.results)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
