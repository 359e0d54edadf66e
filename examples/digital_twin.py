"""A table with a robot, from photographs to a protocol: mask, camera, photograph, controller, evaluation.

python examples/digital_twin.py          # rendered photographs and simulated motions stand in for yours
python examples/digital_twin.py --real   # SIMPLER's photographs, from MANIKIN_DATA; needs manikin[video]

Look at digital_twin.png: the photograph, the mask, the simulated robot over the photograph with the task's camera and
with the camera that was found, and what a policy sees through both.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import manikin
from manikin.assets.paths import data_root
from manikin.assets.pictures import read_picture
from manikin.env.observe import Vision
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol
from manikin.policy.expert import ExpertPolicy
from manikin.render import SegmentationTable, make_renderer, tile, write_png
from manikin.render.align import align_camera, silhouette
from manikin.sense.pixels import Photograph
from manikin.spec.camera import CameraSpec
from manikin.sysid import Squares, Trajectories, Trajectory, identify
from manikin.sysid.result import save


@dataclass(frozen=True)
class Table:
    """What there is in simulation: a task, its camera, and the things that move."""

    task: str
    robot: str
    camera: str
    thing: str
    config: dict[str, Any]


@dataclass(frozen=True)
class Photographs:
    """(h, w, 3) uint8 each: with the robot, from the same place without it, and of the empty table."""

    robot: np.ndarray
    without: np.ndarray
    empty: np.ndarray


SOFT, LATE = 0.5, 0.06  # the arm that stands in for yours: a share of the servos' stiffness, and a delay [s]
PICK_CUBE = Table("PickCube-v2", "panda", "base_camera", "cube", {})
PICK_CAN = Table("GooglePickCokeCan-v1", "google_robot_rt1:menagerie", "overhead_camera", "object", {"trials": "grid"})


def taken() -> Photographs:
    """The first picture of a clip of the Google robot, and SIMPLER's pictures without the robot."""
    import av

    root = data_root()
    if root is None:
        raise SystemExit("set MANIKIN_DATA to the folder that has simpler/")
    clip = root / "simpler/debug/rt1_real_standing_coke_can_1.mp4"
    with av.open(str(clip)) as video:
        first = next(video.decode(video=0)).to_ndarray(format="rgb24")
    without, empty = (
        read_picture(root / "simpler" / name)[..., :3]
        for name in (f"debug/{clip.stem}_cleanup.png", "real_inpainting/google_coke_can_real_eval_1.png")
    )
    return Photographs(first, without, empty)


def rendered(model, data, camera: CameraSpec, thing: str, renderer) -> Photographs:
    """What stands in for photographs: the scene from a few centimetres beside the task's camera, its target moved."""
    lens = dataclasses.replace(
        camera,
        pos=tuple(np.add(camera.pos, (-0.02, 0.04, 0.03))),
        target=tuple(np.add(camera.target, (0, -0.03, 0.02))),
    )
    names = SegmentationTable.of(model)

    def without(*things: str) -> np.ndarray:
        hidden = copy.deepcopy(model)
        for name in things:
            geoms = names.ids(thing=name) - 1  # row 0 is the background
            hidden.geom_rgba[geoms, 3], hidden.geom_matid[geoms] = 0, -1
        return renderer.images(hidden, data, lens)["rgb"]

    return Photographs(without(), without("robot"), without("robot", thing))


def over(photograph: np.ndarray, model, data, camera: CameraSpec, renderer) -> np.ndarray:
    """The simulated robot over the photograph."""
    drawn = renderer.images(model, data, camera)["rgb"]
    robot = silhouette(model, data, camera, SegmentationTable.of(model).ids(kind="robot"), renderer)
    return np.where(robot[..., None], drawn // 2 + photograph // 2, photograph)


def seen(table: Table, camera: CameraSpec, stage: Photograph) -> np.ndarray:
    """What a policy sees at the start of an episode."""
    vision = Vision(cameras=[camera], stages=[stage], renderer="rays")
    env = manikin.make(table.task, 1, robot=table.robot, observe="rgb", vision=vision, config=table.config)
    observation, _ = env.reset(seed=12)
    env.close()
    return observation["cameras"][camera.name]["rgb"][0].numpy()


def recorded(table: Table) -> tuple[Trajectories, float]:
    """What stands in for motions that you record, and its servos' true stiffness: an arm with softer servos that hears
    late, asked to swing its joints. You record the actions, and where the joints were before each of them."""
    control, steps = "joint_target_delta_pos", 24
    arm = manikin.make(table.task, 1, robot=table.robot, control=control)
    joints = arm.robot.joints[:7]
    stiff = SOFT * float(arm.robot.arm.gains.kp[0])
    lines = ["format = 1", f'robot = "{table.robot}"', f"delay = {LATE}"]
    for name in joints:
        lines += [f"[joints.{name}]", f"kp = {stiff}"]
    Path("real_arm.toml").write_text("\n".join(lines) + "\n")
    arm.close()
    real = manikin.make(table.task, 1, robot="real_arm.toml", control=control, autoreset="disabled", terminate=False)
    clips, rng = [], np.random.default_rng(0)
    for k in range(2):
        real.reset(seed=k)
        asked, reached = [], []
        for step in range(steps):
            reached.append(real.arm_qpos[0].double().numpy() + rng.normal(0.0, 5e-4, len(joints)))  # encoders are off
            action = torch.zeros(1, real.single_action_space.shape[0])
            wave = 0.4 * np.cos(2 * np.pi * (1 + k) * step / steps + np.arange(len(joints)))
            action[0, : len(joints)] = torch.from_numpy(wave)
            asked.append(action[0, : len(joints)].double().numpy())
            real.step(action)
        clips.append(Trajectory(name=f"motion {k}", actions=np.array(asked), qpos=np.array(reached)))
    rate = real.control_hz
    real.close()
    return Trajectories(robot=table.robot, control=control, control_hz=rate, units="normalized", items=clips), stiff


def main(real: bool) -> None:
    """All steps."""
    table = PICK_CAN if real else PICK_CUBE
    env = manikin.make(table.task, num_envs=1, robot=table.robot, config=table.config)
    env.reset(seed=0)
    model, data = env.model_data(0)
    renderer = make_renderer("auto", outputs=("rgb", "depth", "segmentation"))
    guess = env.camera(table.camera).resized(320, 256)
    photographs = taken() if real else rendered(model, data, guess, table.thing, renderer)

    # 1. the robot is where the two photographs differ
    mask = np.abs(photographs.robot.astype(int) - photographs.without).max(-1) > 25

    # 2. the camera from which the simulated robot has the same silhouette
    found = align_camera(model, data, guess, mask, renderer=renderer)
    print(f"silhouettes agree to {found.agreement:.2f}, with the task's camera to {found.before:.2f}")
    print(f"the camera moved by {100 * found.shift:.1f} cm and {math.degrees(found.turn):.1f} degrees")
    twin = dataclasses.replace(found.camera, name="twin")

    # 3. the photograph of the empty table behind what is simulated
    write_png("table.png", photographs.empty)
    behind = Photograph("table.png", keep=("robot", table.thing))

    # look at it before you believe it
    shown = np.repeat((mask * 255).astype(np.uint8)[..., None], 3, -1)
    overlays = [over(photographs.robot, model, data, camera, renderer) for camera in (guess, twin)]
    views = [seen(table, camera, behind) for camera in (dataclasses.replace(guess, name="guess"), twin)]
    write_png("digital_twin.png", tile([photographs.robot, shown, *overlays, *views], 2))
    renderer.close()
    env.close()

    # 4. the controller: with which stiffness and delay the simulated arm follows the recorded motions
    robot = table.robot
    if not real:  # nobody recorded the joints in SIMPLER's clip
        motions, stiff = recorded(table)
        vary = ["kp=100:3000:tied,log", "delay=0:0.2"]
        identified = identify(motions, vary, physics_hz=100, methods=[Squares()])
        print(identified.summary())
        robot = str(save(identified, "found"))
        found_kp = identified.after[identified.kinds.index("kp")]
        assert abs(found_kp / stiff - 1) < 0.1 and abs(identified.delay - LATE) < 0.01, (found_kp, identified.delay)

    # 5. all of it as a protocol, which anyone can run on any policy
    protocol = Protocol(
        name="my-table",
        tasks=(table.task,),
        seeds=(0, 1),
        robot=robot,
        observe="rgb",
        cameras=(twin,),
        size=(80, 64),
        renderer="rays",
        stages=({"kind": "Photograph", **behind.describe()},),
        config={table.task: table.config},
    )
    Path("my_table.toml").write_text(protocol.to_toml())
    evaluation = evaluate(protocol, ExpertPolicy, num_envs=2)
    print(f"the scripted expert succeeds in {evaluation.tasks[0].rate('once').estimate:.0%} of two episodes")
    assert found.agreement > max(0.9, found.before)


if __name__ == "__main__":
    main("--real" in sys.argv)
