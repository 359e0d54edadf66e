"""robosuite's own rewards, successes and starts, as numbers that tests compare with; run by the Python of robosuite.

``python benchmarks/peers/robosuite_rewards.py tests/published/robosuite.json`` puts each task into drawn states (things
on the table, near the tool, in the fingers, near their goal) and writes what robosuite says of them. Poses are
(x, y, z, w, x, y, z), heights above what things stand on.
"""

import json
import logging
import sys

sys.path.pop(0)  # this folder, which has a robosuite.py of its own
import mujoco
import numpy as np

logging.disable(logging.CRITICAL)
import robosuite  # noqa: E402

ROWS = 24
GRASPED = {"cube": 0.0205, "red": 0.02, "milk": 0.0197, "bread": 0.02, "cereal": 0.015, "can": 0.0248}
NAMES = {  # of things: in robosuite's model, here
    "Lift": {"cube": "cube"},
    "Stack": {"cubeA": "red", "cubeB": "green"},
    "NutAssembly": {"SquareNut": "square", "RoundNut": "round"},
    "PickPlace": {"Milk": "milk", "Bread": "bread", "Cereal": "cereal", "Can": "can"},
    "Door": {},
    "TwoArmLift": {"pot": "pot"},
    "TwoArmHandover": {"hammer": "hammer"},
    "TwoArmPegInHole": {},
}
HANDLE = {"square": 0.054, "round": 0.06}


def make(name, **options):
    two = name.startswith("TwoArm")
    return robosuite.make(
        name,
        robots=["Panda", "Panda"] if two else "Panda",
        has_renderer=False,
        has_offscreen_renderer=False,
        use_camera_obs=False,
        reward_shaping=True,
        reward_scale=None,
        control_freq=20,
        hard_reset=False,
        seed=0,
        **options,
    )


def level(env, name):
    if name.endswith("PegInHole"):
        return 0.0
    return float(env.bin1_pos[2] if name == "PickPlace" else env.table_offset[2])


def numbers(values):
    return np.round(np.asarray(values, float), 6).tolist()


class States:
    def __init__(self, name, rng):
        self.name, self.rng = name, rng
        self.env = make(name)
        self.env.reset()
        self.model, self.data = self.env.sim.model._model, self.env.sim.data._data
        self.level = level(self.env, name)
        self.arms = [np.array(r._ref_joint_pos_indexes) for r in self.env.robots]
        self.fingers = [np.array(r._ref_gripper_joint_pos_indexes["right"] or [], int) for r in self.env.robots]
        self.sites = [
            self.model.site(f"gripper{k}_right_grip_site").id if self.fingers[k].size else -1
            for k in range(len(self.arms))
        ]

    def frame(self, k):
        """Place and axes of a robot's grip site."""
        i = self.sites[k]
        return self.data.site_xpos[i].copy(), self.data.site_xmat[i].reshape(3, 3).copy()

    def bring(self, k, body, place, axis=None):
        """Move arm k until a body is at a place, its z along an axis or against it; by steps along the Jacobian."""
        q = self.arms[k]
        columns = [self.model.jnt_dofadr[list(self.model.jnt_qposadr).index(i)] for i in q]
        for _ in range(200):
            mujoco.mj_forward(self.model, self.data)
            linear, angular = np.zeros((2, 3, self.model.nv))
            mujoco.mj_jac(self.model, self.data, linear, angular, self.data.xpos[body], body)
            error, jacobian = [place - self.data.xpos[body]], [linear[:, columns]]
            if axis is not None:
                z = self.data.xmat[body].reshape(3, 3)[:, 2]
                error.append(np.cross(z, axis * np.sign(z @ axis)))
                jacobian.append(angular[:, columns])
            error, jacobian = np.concatenate(error), np.concatenate(jacobian)
            step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-3 * np.eye(len(error)), error)
            self.data.qpos[q] += 0.5 * step
        mujoco.mj_forward(self.model, self.data)

    def reach(self, place, k=0):
        """Bring the grip site of robot k near a place."""
        self.bring(k, self.model.site_bodyid[self.sites[k]], np.asarray(place) + self.rng.normal(0, 0.02, 3))

    def put(self, thing, place, rotation):
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, np.asarray(rotation, float).ravel())
        self.data.joint(f"{thing}_joint0").qpos[:] = [*place, *quat]

    def draw(self, row):
        rng, env, name = self.rng, self.env, self.name
        env.reset()
        for q in self.arms:
            self.data.qpos[q] += rng.normal(0, 0.12, len(q))
        for f in self.fingers:
            if f.size:
                self.data.qpos[f] = [0.04, -0.04]
        mujoco.mj_forward(self.model, self.data)
        things = list(NAMES[name])
        for thing in things:
            at = self.data.joint(f"{thing}_joint0").qpos.copy()
            if rng.random() < 0.5:
                self.put(thing, at[:3] + np.array([0, 0, rng.uniform(0, 0.3)]), rotation(rng))
        if things:
            getattr(self, f"_{name.lower()}")(row % 6, things)
        elif name == "Door":
            self.data.qpos[env.hinge_qpos_addr] = rng.choice([0, rng.uniform(0, 0.4)])
            self.data.qpos[env.handle_qpos_addr] = rng.choice([0, rng.uniform(-1.6, 1.6)])
            mujoco.mj_forward(self.model, self.data)
            if row % 2:
                self.reach(env._handle_xpos)
        elif row % 2:
            self.align()
        mujoco.mj_forward(self.model, self.data)
        return self.read()

    def hold(self, thing, here, k=0):
        """Put a thing between the fingers of robot k."""
        place, axes = self.frame(k)
        half, shift = GRASPED.get(here, 0.0), np.zeros(3)
        if here in HANDLE:
            half, shift = 0.0159, np.array([HANDLE[here], 0, 0])
        turn = axes
        if here == "cereal":  # thin along its x
            turn = axes @ [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
        self.put(thing, place - turn @ shift, turn)
        self.data.qpos[self.fingers[k]] = [half, -half]

    def _lift(self, mode, things):
        if mode in (1, 4, 5):
            self.reach([*self.rng.uniform(-0.05, 0.05, 2), self.level + 0.02])
        if mode in (1, 2):
            self.hold("cube", "cube")
        elif mode in (3, 4):
            self.put("cube", self.frame(0)[0] + self.rng.normal(0, 0.03, 3), rotation(self.rng))

    def align(self):
        """The peg along the hole's axis, more or less, here and there around it."""
        plate = self.data.xmat[self.env.hole_body_id].reshape(3, 3)
        along, aside = self.rng.uniform(-0.2, 0.2), self.rng.uniform(-0.07, 0.07, 2)
        hole = self.data.xpos[self.env.hole_body_id] + plate @ [0.1, 0, 0]
        axis = plate @ [*self.rng.normal(0, 0.12, 2), 1]
        self.bring(0, self.env.peg_body_id, hole + plate @ [*aside, along], axis / np.linalg.norm(axis))

    def _stack(self, mode, things):
        green = np.array([*self.rng.uniform(-0.1, 0.1, 2), self.level + 0.0249])
        upright = np.eye(3)
        self.put("cubeB", green, upright)
        if mode in (0, 3):
            self.put("cubeA", green + np.array([*self.rng.uniform(-0.02, 0.02, 2), 0.0448]), upright)
        elif mode in (1, 2):
            self.hold("cubeA", "red")

    def _nutassembly(self, mode, things):
        which = things[self.rng.integers(2)]
        here = NAMES["NutAssembly"][which]
        peg = np.array([0.23, 0.1 if here == "square" else -0.1, self.level])
        if mode in (0, 3):
            for thing, y in zip(things, (0.1, -0.1), strict=True) if mode == 3 else [(which, peg[1])]:
                rise = self.rng.uniform(0.01, 0.07)
                self.put(thing, [0.23 + self.rng.uniform(-0.04, 0.04), y, self.level + rise], rotation(self.rng, True))
        elif mode in (1, 2):
            self.hold(which, here)
        elif mode == 4:  # on its peg, still in the hand's reach
            self.put(which, self.frame(0)[0] - [0, 0, 0.03], rotation(self.rng, True))

    def _pickplace(self, mode, things):
        order = self.rng.permutation(4)
        goal = self.env.target_bin_placements
        if mode in (0, 3, 5):
            for i in order[: 4 if mode == 3 else 2]:
                place = goal[i] + [*self.rng.uniform(-0.11, 0.11, 2) * (mode != 3), self.rng.uniform(0.03, 0.12)]
                self.put(things[i], place, rotation(self.rng, True))
        if mode in (1, 2, 5):
            i = order[3]
            self.hold(things[i], NAMES["PickPlace"][things[i]])

    def _twoarmlift(self, mode, things):
        place, axes = self.frame(mode % 2)
        pot = np.array([*self.rng.uniform(-0.03, 0.03, 2), self.level + 0.07 + self.rng.choice([0, 0.06, 0.13])])
        self.put("pot", pot, turned(np.pi + self.rng.uniform(-1, 1)) @ tilted(self.rng.choice([0, 0.3, 0.6])))
        if mode in (1, 2, 4):  # a handle's bar between the fingers, across which they close
            k, side = mode % 2, 1 if mode % 2 == 0 else -1
            turn = axes @ [[1, 0, 0], [0, -1, 0], [0, 0, -1]]
            self.put("pot", place - turn @ [0, 0.16 * side, 0.06], turn)
            self.data.qpos[self.fingers[k]] = [0.0098, -0.0098]

    def _twoarmhandover(self, mode, things):
        hammer = self.env.hammer
        radius = hammer.handle_radius
        if mode in (0, 1, 2, 5):
            k = 0 if mode in (0, 1) else 1
            place, axes = self.frame(k)
            turn = axes @ [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
            self.put("hammer", place, turn)
            self.data.qpos[self.fingers[k]] = [radius, -radius]
        else:
            place = np.array([*self.rng.uniform(-0.1, 0.1, 2), self.level + self.rng.uniform(0.05, 0.4)])
            self.put("hammer", place, rotation(self.rng))

    def read(self):
        env, name, data = self.env, self.name, self.data
        floor = np.array([0, 0, self.level])
        row = {"tcp": []}
        for i in self.sites:
            if i >= 0:
                row["tcp"].append(numbers(data.site_xpos[i] - floor))
        for thing, here in NAMES[name].items():
            q = data.joint(f"{thing}_joint0").qpos
            row[here] = numbers([*(q[:3] - floor), *q[3:]])
        grippers = [r.gripper["right"] for r in env.robots] if isinstance(env.robots[0].gripper, dict) else []
        if name in ("Lift", "Stack", "NutAssembly", "PickPlace"):
            objects = {"Lift": "cube", "Stack": "cubeA cubeB", "NutAssembly": "nuts", "PickPlace": "objects"}[name]
            found = [o for key in objects.split() for o in np.atleast_1d(getattr(env, key))]
            names = list(NAMES[name].values())
            row["held"] = [h for h, o in zip(names, found, strict=True) if env._check_grasp(grippers[0], o)]
            if name == "Stack":
                row["touching"] = bool(env.check_contact(env.cubeA, env.cubeB))
                pads = grippers[0].important_geoms
                row["fingered"] = any(env.check_contact(pads[p], env.cubeA) for p in ("left_finger", "right_finger"))
        elif name == "TwoArmLift":
            parts = (env.pot.handle0_geoms, env.pot.handle1_geoms)
            row["held"] = [k for k in (0, 1) if env._check_grasp(grippers[k], parts[k])]
        elif name == "TwoArmHandover":
            parts = (env.hammer.contact_geoms, env.hammer.handle_geoms)
            row["held"] = [k for k in (0, 1) if env._check_grasp(grippers[k], parts[k])]
            row["size"] = numbers([env.hammer.handle_radius, env.hammer.handle_length / 2, env.hammer.head_halfsize])
        elif name == "TwoArmPegInHole":
            for here, body in (("peg", env.peg_body_id), ("plate", env.hole_body_id)):
                row[here] = numbers([*data.xpos[body], *data.xquat[body]])
        elif name == "Door":
            row["hinge"] = float(np.round(data.qpos[env.hinge_qpos_addr], 6))
            row["latch"] = float(np.round(data.qpos[env.handle_qpos_addr], 6))
            row["handle"] = numbers(env._handle_xpos - floor)
        row["reward"] = float(np.round(env.reward(None), 6))
        row["success"] = bool(env._check_success())
        return row


def turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def tilted(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def rotation(rng, upright=False):
    if upright:
        return turned(rng.uniform(-np.pi, np.pi))
    found, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return found * np.sign(np.linalg.det(found))


def starts(name, count=400):
    """Least and largest of each thing's place over resets. A cube's height is that of its lower side, a hammer's that
    of the lower side of its lying handle; how much its three axes point up follows."""
    env = make(name)
    floor, seen = np.array([0, 0, level(env, name)]), {}
    for _ in range(count):
        env.reset()
        data = env.sim.data._data
        for thing, here in NAMES[name].items():
            q = data.joint(f"{thing}_joint0").qpos
            place = [*(q[:3] - floor)]
            if here == "hammer":
                axes = np.zeros(9)
                mujoco.mju_quat2Mat(axes, q[3:])
                place = [*place[:2], place[2] - env.hammer.handle_radius, *axes.reshape(3, 3)[2]]
            if here == "cube":
                place[2] -= env.cube.size[2]
            seen.setdefault(here, []).append(place)
    return {k: {"low": numbers(np.min(v, 0)), "high": numbers(np.max(v, 0))} for k, v in seen.items()}


def main(path):
    versions = f"robosuite {robosuite.__version__}, mujoco {mujoco.__version__}"
    out = {
        "made": f"{versions}: benchmarks/peers/robosuite_rewards.py",
        "tasks": {},
        "starts": {},
    }
    for number, name in enumerate(NAMES):
        states = States(name, np.random.default_rng(number))
        out["tasks"][name] = [states.draw(row) for row in range(ROWS)]
        if NAMES[name]:
            out["starts"][name] = starts(name)
    text = json.dumps(out, separators=(",", ":"))
    for key in ('{"tcp"', '"tasks"', '"starts"'):
        text = text.replace(key, f"\n{key}")
    with open(path, "w") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
