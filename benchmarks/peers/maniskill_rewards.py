"""ManiSkill3's own rewards and successes, as numbers that tests compare with; run by the Python of ManiSkill3.

``python benchmarks/peers/maniskill_rewards.py tests/published/maniskill.json`` calls ManiSkill's own functions of each
task on drawn numbers in place of a simulation: places, turns and speeds of things, the arm's speeds, the gripper's
opening, and whether it holds the thing. Nothing is simulated, so that no graphics card is needed.
"""

import json
import sys
import warnings
from importlib.metadata import version
from types import SimpleNamespace

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from mani_skill.agents.robots.panda.panda import Panda  # noqa: E402
from mani_skill.envs.tasks.tabletop.lift_peg_upright import LiftPegUprightEnv  # noqa: E402
from mani_skill.envs.tasks.tabletop.pick_cube import PickCubeEnv  # noqa: E402
from mani_skill.envs.tasks.tabletop.place_sphere import PlaceSphereEnv  # noqa: E402
from mani_skill.envs.tasks.tabletop.pull_cube import PullCubeEnv  # noqa: E402
from mani_skill.envs.tasks.tabletop.push_cube import PushCubeEnv  # noqa: E402
from mani_skill.envs.tasks.tabletop.stack_cube import StackCubeEnv  # noqa: E402
from mani_skill.utils.structs.actor import Actor  # noqa: E402
from mani_skill.utils.structs.pose import Pose  # noqa: E402

N = 32
DRAW = torch.Generator().manual_seed(0)


def uniform(low, high, *shape):
    return low + (high - low) * torch.rand(N, *shape, generator=DRAW)


def some(share=0.5):
    return torch.rand(N, generator=DRAW) < share


def upright():
    return torch.tensor([[1.0, 0, 0, 0]]).expand(N, 4).clone()


def either(flags, one, other):
    return torch.where(flags[:, None], one, other)


class Thing:
    """What the tasks ask an actor."""

    is_static = Actor.is_static

    def __init__(self, pos, quat=None):
        self.pose = Pose.create_from_pq(p=pos, q=upright() if quat is None else quat)
        fast = uniform(0, 1) * some()
        self.linear_velocity = uniform(-0.05, 0.05, 3) * fast[:, None]
        self.angular_velocity = uniform(-1, 1, 3) * fast[:, None]


class Arm:
    """What the tasks ask the agent."""

    is_static = Panda.is_static

    def __init__(self, tcp):
        self.tcp_pose = Pose.create_from_pq(p=tcp, q=upright())
        self.tcp = SimpleNamespace(pose=self.tcp_pose)
        self.held = some()
        qvel, qpos = uniform(-0.4, 0.4, 9) * some()[:, None], uniform(0, 0.04, 9)
        self.robot = SimpleNamespace(
            get_qvel=lambda: qvel,
            get_qpos=lambda: qpos,
            get_qlimits=lambda: torch.tensor([[[0.0, 0.04]] * 9]),
        )

    def is_grasping(self, thing, **unused):
        return self.held


def near(place, reach, share=0.5):
    """Places near others in a share of rows, anywhere on the table in the others."""
    anywhere = torch.cat([uniform(-0.2, 0.2, 2), uniform(0.0, 0.3, 1)], 1)
    return either(some(share), place + uniform(-reach, reach, 3), anywhere)


def pick_cube():
    goal = torch.cat([uniform(-0.1, 0.1, 2), uniform(0.02, 0.3, 1)], 1)
    cube = near(goal, 0.02)
    env = dict(goal_site=Thing(goal), cube=Thing(cube), goal_thresh=0.025, robot_uids="panda")
    return PickCubeEnv, near(cube, 0.03), env, {"cube": "cube"}, goal


def pushed(kind, offset):
    goal = torch.cat([uniform(-0.1, 0.2, 2), torch.full((N, 1), 1e-3)], 1)
    cube = near(goal + torch.tensor([0, 0, 0.02]), 0.12)
    cube[:, 2] = 0.02 + uniform(0, 0.02) * some()
    tcp = near(cube + torch.tensor([offset, 0, 0]), 0.008, 0.7)
    env = dict(obj=Thing(cube), goal_region=Thing(goal), goal_radius=0.1, cube_half_size=0.02)
    return kind, tcp, env, {"obj": "cube"}, goal


def stack_cube():
    green = torch.cat([uniform(-0.1, 0.1, 2), torch.full((N, 1), 0.02)], 1)
    red = near(green + torch.tensor([0, 0, 0.04]), 0.004, 0.6)
    env = dict(cubeA=Thing(red), cubeB=Thing(green), cube_half_size=torch.tensor([0.02] * 3))
    return StackCubeEnv, near(red, 0.03), env, {"cubeA": "red", "cubeB": "green"}, None


def place_sphere():
    tray = torch.cat([uniform(-0.1, 0.1, 2), torch.full((N, 1), 0.0025)], 1)
    ball = near(tray + torch.tensor([0, 0, 0.0225]), 0.004, 0.6)
    env = dict(obj=Thing(ball), bin=Thing(tray), radius=0.02, block_half_size=[0.0025, 0.02, 0.02])
    return PlaceSphereEnv, near(ball, 0.03), env, {"obj": "ball", "bin": "bin"}, None


def lift_peg_upright():
    """The peg rolled by a quarter as at the start, then raised."""
    raised = torch.where(some(), torch.full((N,), torch.pi / 2) + uniform(-0.12, 0.12), uniform(0, torch.pi))
    half, s = raised / 2, 0.5**0.5
    quat = torch.stack([half.cos() * s, half.cos() * s, -half.sin() * s, half.sin() * s], 1)
    place = near(torch.tensor([[0.0, 0, 0.12]]).expand(N, 3), 0.006)
    env = dict(peg=Thing(place, quat), peg_half_length=0.12)
    return LiftPegUprightEnv, near(place, 0.03), env, {"peg": "peg"}, None


TASKS = {
    "LiftPegUpright": lift_peg_upright,
    "PickCube": pick_cube,
    "PlaceSphere": place_sphere,
    "PullCube": lambda: pushed(PullCubeEnv, 0.03),
    "PushCube": lambda: pushed(PushCubeEnv, -0.025),
    "StackCube": stack_cube,
}


def numbers(values):
    return [round(v, 6) for v in values.tolist()]


def rows(kind, tcp, env, names, goal):
    arm = Arm(tcp)
    fake = SimpleNamespace(agent=arm, device=torch.device("cpu"), **env)
    info = kind.evaluate(fake)
    reward = kind.compute_dense_reward(fake, None, None, info)
    for k in range(N):
        things = {
            here: numbers(torch.cat([t.pose.raw_pose[k], t.linear_velocity[k], t.angular_velocity[k]]))
            for t, here in ((env[name], here) for name, here in names.items())
        }
        yield {
            "tcp": numbers(tcp[k]),
            "speed": numbers(arm.robot.get_qvel()[k, :7]),
            "gap": round(float(arm.robot.get_qpos()[k, 7:].sum()) / 0.08, 6),
            "grasped": bool(arm.held[k]),
            "goal": [] if goal is None else numbers(goal[k]),
            "things": things,
            "reward": round(float(reward[k]), 6),
            "success": bool(info["success"][k]),
        }


def main(path):
    made = f"mani_skill {version('mani_skill')}: benchmarks/peers/maniskill_rewards.py"
    out = {"made": made, "tasks": {name: list(rows(*draw())) for name, draw in TASKS.items()}}
    with open(path, "w") as file:
        file.write(json.dumps(out, separators=(",", ":")).replace('{"tcp"', '\n{"tcp"') + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
