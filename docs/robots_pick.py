"""How often PickCube's scripted expert succeeds with each robot, as rows of the table in docs/robots.md.

    python docs/robots_pick.py [ROBOT ...]

64 held-out starts per robot, joint_delta_pos, success at any time of the 2.5 s episode.
"""

from __future__ import annotations

import argparse

import torch

from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol
from manikin.policy.expert import ExpertPolicy
from manikin.robots import arms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robots", nargs="*", help="default all arms")
    parser.add_argument("--quick", action="store_true", help="two starts of one robot, to see that it runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = 2 if options.quick else 64
    for name in options.robots or (arms()[:1] if options.quick else arms()):
        protocol = Protocol(
            name="pick",
            description="PickCube with a robot",
            tasks=("PickCube-v2",),
            seeds=tuple(range(1_000_000, 1_000_000 + count)),
            robot=name,
        )
        result = evaluate(protocol, ExpertPolicy, num_envs=32, film=0).tasks[0]
        done = sum(episode.success("once") for episode in result.results)
        print(f"| `{name}` | {done}/{len(result.results)} |", flush=True)


if __name__ == "__main__":
    main()
