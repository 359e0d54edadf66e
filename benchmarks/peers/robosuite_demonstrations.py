"""Demonstrations of robosuite's own, with what robosuite says of each state; for benchmarks/demonstrations.py.

    python robosuite_demonstrations.py FOLDER [steps]

Run by the Python of robosuite 1.5. Of each task two demonstrations by random actions of OSC_POSE. In the first half of
the second, objects are put where they may or may not count as being in place, at random.
"""

import json
import logging
import sys
from pathlib import Path

sys.path.pop(0)  # this folder, which has a robosuite.py of its own
import h5py
import numpy as np
import robosuite

logging.disable(logging.CRITICAL)
TASKS = ("Lift", "Stack", "PickPlace", "PickPlaceMilk", "PickPlaceBread", "PickPlaceCereal", "PickPlaceCan",
         "NutAssembly", "NutAssemblySquare", "NutAssemblyRound")  # fmt: skip


def goals(env, name):
    """Joint -> where the object counts as being in place, and near it."""
    if name.startswith("PickPlace"):
        order = ("Milk", "Bread", "Cereal", "Can")
        return {f"{o}_joint0": env.target_bin_placements[k] for k, o in enumerate(order)}, 0.12
    if name.startswith("NutAssembly"):
        body = {n: env.sim.data.body_xpos[env.sim.model.body_name2id(n)] for n in ("peg1", "peg2")}
        return {"SquareNut_joint0": body["peg1"], "RoundNut_joint0": body["peg2"]}, 0.04
    return {}, 0.0


def main(folder, steps):
    config = robosuite.load_composite_controller_config(controller="BASIC")
    rng = np.random.default_rng(0)
    for name in TASKS:
        env = robosuite.make(
            name, robots="Panda", has_renderer=False, has_offscreen_renderer=False, use_camera_obs=False,
            control_freq=20, controller_configs=config, ignore_done=True,
        )  # fmt: skip
        with h5py.File(folder / f"{name}.hdf5", "w") as file:
            data = file.create_group("data")
            data.attrs["env"], data.attrs["repository_version"] = name, robosuite.__version__
            info = {"env_name": name, "robots": "Panda", "controller_configs": config}
            data.attrs["env_info"] = json.dumps(info, default=lambda x: np.asarray(x).tolist())
            for k in (1, 2):
                env.reset()
                states, actions, success = [], [], []
                where, spread = goals(env, name)
                for t in range(steps):
                    if k == 2 and where and t < steps // 2 and t % 2 == 0:
                        for joint, place in where.items():
                            q = env.sim.data.get_joint_qpos(joint)
                            if abs(q[0]) < 5:  # those of the other forms of the task lie far away
                                offset = rng.uniform(-spread, spread, 3) * (1, 1, 0.5)
                                turn = rng.uniform(-np.pi, np.pi) / 2
                                quat = (np.cos(turn), 0, 0, np.sin(turn))
                                height = 0.05 if name.startswith("PickPlace") else 0.0
                                env.sim.data.set_joint_qpos(joint, [*(place + offset + (0, 0, height)), *quat])
                    env.sim.forward()
                    states.append(env.sim.get_state().flatten())
                    success.append(bool(env._check_success()))
                    actions.append(rng.uniform(-1, 1, env.action_dim))
                    env.step(actions[-1])
                demo = data.create_group(f"demo_{k}")
                demo.attrs["model_file"] = env.sim.model.get_xml()
                demo["states"], demo["actions"], demo["success"] = np.array(states), np.array(actions), success
        env.close()
        print(name, "states that succeed:", sum(success), "of", len(success), flush=True)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 120)
