"""How robosuite's own demonstrations come out on manikin's tasks, by states and by actions (docs/exchange.md).

    python benchmarks/demonstrations.py FOLDER

FOLDER holds what ``benchmarks/peers/robosuite_demonstrations.py FOLDER`` wrote with robosuite's Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np

from manikin.data.formats.demonstrations import read_demos
from manikin.data.formats.playback import play_actions, play_states


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.hdf5")):
        demos = read_demos(path)
        seen = list(play_states(demos, num_envs=64))
        with h5py.File(path) as file:
            theirs = np.concatenate([file[f"data/{one.name}/success"][()] for one in seen])
        ours = np.concatenate([one.success for one in seen])
        base = max(float(np.linalg.norm(one.base_offset)) for one in seen)
        print(
            f"{path.stem}: {len(ours)} states, success (theirs {theirs.sum()}) the same in {(ours == theirs).sum()}; "
            f"robot's base within {1e3 * base:.1f} mm"
        )
        (acted,) = play_actions(demos, seen[:1])
        told = ", ".join(f"{1e3 * float(acted.tcp[t]):.1f} mm after {t}" for t in (10, 50, 100) if t < len(acted.tcp))
        print(f"  actions: tool apart {told}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
