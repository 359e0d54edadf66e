"""How ManiSkill's own recordings come out on manikin's tasks, state by state and by their actions (docs/exchange.md).

    python benchmarks/trajectories.py FOLDER

FOLDER holds what ``benchmarks/peers/maniskill_trajectories.py record FOLDER`` wrote with ManiSkill's Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from manikin.data.formats.demonstrations import read_demos
from manikin.data.formats.playback import play_actions, play_states


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.h5")):
        demos = read_demos(path)
        seen = list(play_states(demos, reward="dense"))
        then = [demos[one.name] for one in seen]
        agree = np.concatenate([one.success[1:] == demo.success for one, demo in zip(seen, then, strict=True)])
        won = sum(int(demo.success.sum()) for demo in then)
        reward = np.concatenate([np.abs(o.rewards[1:] - d.rewards) for o, d in zip(seen, then, strict=True)])
        tool = max(
            float(np.abs(o.tcp[:-1] - d.observations["extra/tcp_pose"][:, :3]).max())
            for o, d in zip(seen, then, strict=True)
        )
        close = np.mean(reward < 0.01)
        print(
            f"{path.stem}: {len(agree)} steps, success (theirs {won}) the same in {agree.sum()}; tool within "
            f"{1e3 * tool:.3f} mm; reward: median {np.median(reward):.2g} apart, within 0.01 in {100 * close:.0f} %, "
            f"at most {reward.max():.2f}"
        )
        acted = play_actions(demos, seen)
        at = {t: max((1e3 * float(o.tcp[t]) for o in acted if t < len(o.tcp)), default=0.0) for t in (5, 15, 30)}
        told = ", ".join(f"{mm:.1f} mm after {t}" for t, mm in at.items())
        print(f"  actions, {demos.controller}: {sum(o.success[-1] for o in acted)} succeed; tool apart at most {told}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
