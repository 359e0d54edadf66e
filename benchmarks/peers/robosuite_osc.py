"""How robosuite's OSC_POSE moves a Panda, as numbers that tests compare with; run in an environment with robosuite:
``python benchmarks/peers/robosuite_osc.py tests/published/robosuite_osc.json``.

Writes the arm's inertia, actions, and the tool's pose after each, as it comes (``shipped``) and without air and joint
friction (``poses``). All that hangs on the last joint is one body, its gripper open. Every action asks for a rotation,
since without one robosuite 1.5 and 1.0 set different goals.
"""

import json
import logging
import sys

sys.path.pop(0)  # this folder, which has a robosuite.py of its own
import mujoco
import numpy as np

logging.disable(logging.CRITICAL)
import robosuite  # noqa: E402

ACTIONS = {
    "turn about x": [[0, 0, 0, 0.2, 0, 0]] * 12,
    "turn about y": [[0, 0, 0, 0, 0.2, 0]] * 12,
    "turn about z": [[0, 0, 0, 0, 0, 0.2]] * 12,
    "drawn": np.repeat(np.random.default_rng(0).uniform(-0.2, 0.2, (4, 6)), 3, 0).round(3).tolist(),
}


def play(actions, shipped):
    env = robosuite.make(
        "Lift",
        robots="Panda",
        has_renderer=False,
        has_offscreen_renderer=False,
        use_camera_obs=False,
        control_freq=20,
        initialization_noise=None,
    )
    env.reset()
    model, data = env.sim.model._model, env.sim.data._data
    if not shipped:
        model.dof_damping[:7] = model.dof_frictionloss[:7] = 0
        model.opt.density = model.opt.viscosity = 0
    data.qpos[7:9] = [0.04, -0.04]
    data.joint("cube_joint0").qpos[:3] = [0.3, 0.3, 0.83]
    mujoco.mj_forward(model, data)
    env.robots[0].composite_controller.part_controllers["right"].update(force=True)
    site = data.site("gripper0_right_grip_site")
    poses = [[*site.xpos, *site.xmat]]
    for action in actions:
        env.step([*action, -1])
        poses.append([*site.xpos, *site.xmat])
    return model, data, np.round(poses, 6).tolist()


def hand(model, data):
    """Mass, centre and inertia (xx, yy, zz, xy, xz, yz) of all that hangs on the last link, in the hand's frame."""
    root = model.body("robot0_right_hand").id
    place, axes = data.xpos[root], data.xmat[root].reshape(3, 3)
    bodies = [b for b in range(model.nbody) if b == root or model.body(b).name.startswith("gripper0")]
    mass = model.body_mass[bodies].sum()
    centre = (model.body_mass[bodies, None] * data.xipos[bodies]).sum(0) / mass
    total = np.zeros((3, 3))
    for b in bodies:
        turn, away = data.ximat[b].reshape(3, 3), data.xipos[b] - centre
        total += turn @ np.diag(model.body_inertia[b]) @ turn.T
        total += model.body_mass[b] * (away @ away * np.eye(3) - np.outer(away, away))
    total = axes.T @ total @ axes
    return {
        "mass": float(mass),
        "com": ((centre - place) @ axes).tolist(),
        "inertia": [*np.diag(total), total[0, 1], total[0, 2], total[1, 2]],
    }


def fingertip(model, data):
    """How far the fingers reach beyond the grip site, along it [m]."""
    site, geom = data.site("gripper0_right_grip_site"), model.geom("gripper0_right_finger1_collision").id
    mesh = model.geom_dataid[geom]
    points = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
    points = points @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom] - site.xpos
    return float((points @ site.xmat.reshape(3, 3)[:, 2]).max())


def main(path):
    out = {"made": f"robosuite {robosuite.__version__}, mujoco {mujoco.__version__}: benchmarks/peers/robosuite_osc.py"}
    out["tracks"] = {}
    for name, actions in ACTIONS.items():
        out["tracks"][name] = {"actions": actions, "shipped": play(actions, True)[2]}
        model, data, out["tracks"][name]["poses"] = play(actions, False)
    links = [model.body(f"robot0_link{k}") for k in range(1, 8)]
    assert all(np.allclose(link.iquat, [1, 0, 0, 0]) for link in links)
    out["links"] = [
        {"mass": link.mass[0], "com": link.ipos.tolist(), "inertia": [*link.inertia, 0, 0, 0]} for link in links
    ]
    out["armature"] = model.dof_armature[:7].tolist()
    out["effort"] = model.actuator_ctrlrange[:7, 1].tolist()
    mount, tool = model.body("robot0_right_hand"), model.body("gripper0_right_eef")
    out["hand"] = {"pos": mount.pos.tolist(), "quat": mount.quat.tolist(), "tool": float(tool.pos[2])}
    out["fingertip"] = fingertip(model, data)
    data.qpos[7:9] = [0.04, -0.04]
    mujoco.mj_forward(model, data)
    out["hand"] |= hand(model, data)
    with open(path, "w") as file:
        json.dump(out, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
