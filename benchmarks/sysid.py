"""System identification: how fast the batched search is, what it recovers, and what it finds on real recordings.

    python benchmarks/sysid.py --parts speed search              # what is timed: to be run alone on a machine
    python benchmarks/sysid.py --parts recover drive bridge collins    # what is found; the last two need MANIKIN_DATA
    python docs/sysid.py                                               # then fills docs/system-identification.md

``search``: three rounds of 400 candidates on twelve 40-step trajectories of a simulated WidowX. ``recover``: known
parameters again, under noise. ``drive``: gains of SIMPLER's robots against its drive law, integrated independently.
``bridge``: clips of a real WidowX. ``collins``: a real Kinova Mico. A run adds its parts to the file that ``--out``
names.

Raw is the same rows under the same controller in the same world: no parameters are set, no track is kept, no loss is
taken. One candidate at a time has its twelve trajectories as rows; one row at a time is one trajectory of one
candidate, as SIMPLER's own script runs.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, arguments, command, spread, write

sys.path.insert(0, str(ROOT / "tests" / "helpers"))

VARY = ["kp=600:1450", "kd=80:550"]  # SIMPLER's ranges of the WidowX, joined
DRIVEN = {"google_robot_rt1": ("rest", 3.0, 90.0), "widowx_bridge": ("table", 5.0, 500.0)}
"""Pose, control steps and physics steps per second of SIMPLER's robots in its tasks."""
GAINS = {"kp": [700, 1250, 1400, 650, 1300, 640], "kd": [400, 170, 90, 500, 100, 480]}  # far from SIMPLER's


def motions(episodes: int, steps: int, physics_hz: float, noise: float = 5e-4) -> Any:
    """What the arm of SIMPLER does under random actions of a few centimetres, and its parameters."""
    from motions import moved

    truth = [float(x) for kind in ("kp", "kd") for x in GAINS[kind]]
    return moved(VARY, truth, episodes=episodes, steps=steps, physics_hz=physics_hz, noise=noise), truth


def speed(options: Any) -> dict[str, Any]:
    import torch

    from manikin.sysid import parse_parameter
    from manikin.sysid.objective import Objective
    from manikin.sysid.rollout import Rollout

    torch.set_num_threads(1)
    episodes, steps, hz = (2, 4, 50.0) if options.quick else (12, 40, 500.0)
    recorded, _ = motions(episodes, steps, hz)
    rng = np.random.default_rng(0)
    parameters = [parse_parameter(word) for word in VARY]
    single = recorded.some([recorded.items[0].name])
    sizes = {"batch": (recorded, 4 if options.quick else 40), "one_candidate": (recorded, 1), "one_row": (single, 1)}
    measured: dict[str, list[float]] = {}
    made = {name: Rollout(given, parameters, physics_hz=hz, batch=size) for name, (given, size) in sizes.items()}
    for _ in range(options.rounds):
        for name, rollout in made.items():
            objective = Objective(rollout, "pose")
            points = rng.random((rollout.batch, len(rollout.space)))
            before, begin = rollout.steps, time.perf_counter()
            objective.losses(points)
            measured.setdefault(name, []).append((rollout.steps - before) / (time.perf_counter() - begin))
        measured.setdefault("raw", []).append(raw(made["batch"]))
    rates = {name: spread(values, 0) for name, values in measured.items()}
    ratio = {
        f"batch_over_{name}": spread([a / b for a, b in zip(measured["batch"], measured[name], strict=True)], 2)
        for name in ("raw", "one_candidate", "one_row")
    }
    return {
        "physics_steps_per_second": rates,
        **ratio,
        "rows": made["batch"].batch * episodes,
        "rounds": options.rounds,
    }


def raw(rollout: Any) -> float:
    """Physics steps per second of the rows of a full batch under the controller alone."""
    import torch

    rows = np.repeat(rollout.space.present[None], rollout.batch * len(rollout.recorded), 0)
    actions = rollout._actions.repeat(rollout.batch, 1, 1)
    count = 0
    with torch.no_grad():
        rollout._take(rollout.batch)
        rollout._reset(rows)
        carry = rollout.controller.start(rollout.robot)
        begin = time.perf_counter()
        for k in range(int(rollout.lengths.max()) - 1):
            ctrl, carry = rollout.controller(carry, rollout.robot, actions[:, k])
            rollout.robot._ctrl.write(ctrl)
            rollout.world.step(rollout.substeps)
            count += rollout.substeps * len(rows)
        return count / (time.perf_counter() - begin)


def search(options: Any) -> dict[str, Any]:
    from manikin.sysid import Anneal, identify

    episodes, steps, hz, candidates = (2, 4, 50.0, 8) if options.quick else (12, 40, 500.0, 400)
    recorded, _ = motions(episodes, steps, hz)
    begin = time.perf_counter()
    methods = [Anneal(candidates=candidates, chains=min(40, candidates // 2))]
    found = identify(recorded, VARY, physics_hz=hz, methods=methods)
    return {"search_seconds": round(time.perf_counter() - begin, 1), "loss": losses(found)}


def recover(options: Any) -> dict[str, Any]:
    from manikin.sysid import Cma, Squares, identify

    episodes, steps, hz = (2, 4, 50.0) if options.quick else (4, 24, 100.0)
    recorded, truth = motions(episodes, steps, hz)
    count, population, iterations = (8, 4, 1) if options.quick else (1200, 40, 30)
    methods = [Cma(candidates=count, population=population), Squares(iterations=iterations)]
    found = identify(recorded, ["kp=200:1450:log", "kd=10:550:log"], physics_hz=hz, methods=methods)
    gains = dict(zip(found.names, found.after, strict=True))
    joints = [name.partition("/")[2] for name in found.names[:6]]
    return {
        "noise_m_and_rad": 5e-4,
        "loss": losses(found),
        "lag_kd_over_kp_true_s": [round(d / k, 4) for k, d in zip(truth[:6], truth[6:], strict=True)],
        "lag_kd_over_kp_found_s": [round(gains[f"kd/{j}"] / gains[f"kp/{j}"], 4) for j in joints],
        "not_determined": [direction.words for direction in found.identifiability.open],
        "candidates": found.provenance["candidates"],
    }


def drive(options: Any) -> dict[str, Any]:
    """How far joints are from the published drive law: root mean square over a step and a wave of each [mrad].

    ``limit_on_servos`` has the published limit on the servos of the model, which bounds what stiffness gives, without
    damping; ``robot`` is the robot as it is; ``fitted`` has gains and limits that are fitted to the law."""
    from drive_law import DriveLaw, motions_of
    from manikin.robots import robot
    from manikin.sysid import Squares, identify, parse_parameter
    from manikin.sysid.rollout import Rollout

    vary = ["kp=200:4000:log", "kd=20:4000:log", "force=50:4000:log"]
    size, seconds, iterations = (0.3, 0.4, 1) if options.quick else (0.3, 4.0, 8)
    told: dict[str, Any] = {"size_rad": size, "seconds_each": seconds, "robots": {}}
    for word, (keyframe, hz, physics_hz) in list(DRIVEN.items())[-1 if options.quick else 0 :]:
        arm = robot(word).arm
        law, joints = DriveLaw.of(arm), len(arm.joints)
        recorded = motions_of(law, word, arm.keyframes[keyframe], hz, size=size, seconds=seconds)
        rollout = Rollout(recorded, [parse_parameter(one) for one in vary], physics_hz=physics_hz, batch=1)
        limited = rollout(np.array([[*arm.gains.kp, *arm.gains.kd, *law.limit]])).qpos[0].numpy()
        rollout.close()
        found = identify(recorded, vary, physics_hz=physics_hz, methods=[Squares(iterations=iterations)])
        before, after = (
            np.array([getattr(one, when)["qpos"] for one in found.overlays]) for when in ("before", "after")
        )
        errors = {}
        for name, q in {"limit_on_servos": limited, "robot": before, "fitted": after}.items():
            off = q - np.array([one.qpos for one in recorded.items])
            own = [off[j::joints, :, j] for j in range(joints)]  # of the joint that is told to move
            errors[name] = [round(1e3 * float(np.sqrt(np.mean(one**2))), 3) for one in own]
        times = np.array(found.after) / np.array(found.before)
        told["robots"][word] = {
            "joints": list(arm.joints),
            "physics_hz": physics_hz,
            "error_mrad": errors,
            "fitted_over_robot": {
                kind: times[k * joints :][:joints].round(3).tolist() for k, kind in enumerate(("kp", "kd"))
            },
            "loss": losses(found),
        }
    return told


def losses(found: Any) -> dict[str, Any]:
    times = found.loss_before / found.loss_after
    return {"before": round(found.loss_before, 5), "after": round(found.loss_after, 5), "times": round(times, 1)}


def told(found: Any, folder: Path | None) -> dict[str, Any]:
    from manikin.sysid.page import overlay_svg
    from manikin.sysid.result import save

    if folder is not None:
        save(found, folder)
        (folder / "worst.svg").write_text(
            overlay_svg(found.overlays[int(np.argmax(found.each_before))], found.control_hz)
        )
    rows = zip(found.names, found.before, found.after, found.identifiability.deviations, strict=True)
    return {
        "trajectories": len(found.overlays),
        "loss": {"kind": found.loss, **losses(found)},
        "parameters": {name: [float(f"{b:.4g}"), float(f"{a:.4g}"), round(w, 3)] for name, b, a, w in rows},
        "parameters_are": "before, found, standard deviation in shares of the range",
        "not_determined": [direction.words for direction in found.identifiability.open],
        "candidates": found.provenance["candidates"],
    }


def bridge(options: Any) -> dict[str, Any]:
    from manikin.robots import robot
    from manikin.sysid import Anneal, Squares, identify, importers, parse_parameter
    from manikin.sysid.objective import Objective
    from manikin.sysid.rollout import Rollout

    clips = importers.bridge()
    if options.quick:
        clips = clips.some([one.name for one in clips.items[:2]])
    small = {"rounds": 1, "candidates": 4, "chains": 2} if options.quick else {"candidates": 200}
    methods = [Anneal(**small), Squares(iterations=1 if options.quick else 15)]
    hz = 50.0 if options.quick else 100.0
    vary = ["kp=200:3000:log", "kd=20:600:log"]
    found = identify(clips, vary, physics_hz=hz, methods=methods)
    arm, rollout = robot(clips.robot).arm, Rollout(clips, [parse_parameter("force=50:4000")], physics_hz=hz, batch=1)
    limited = float(Objective(rollout, "pose").losses(rollout.space.unit(np.array(arm.effort, float)[None]))[0])
    rollout.close()
    return {**told(found, options.pages and options.pages / "bridge"), "limit_on_servos": round(limited, 5)}


def collins(options: Any) -> dict[str, Any]:
    from manikin.fidelity.recordings.motions import collins as recordings
    from manikin.sysid import Anneal, Squares, identify

    recorded = recordings((9,) if options.quick else (3, 4, 9, 10))
    small = {"rounds": 1, "candidates": 4, "chains": 2} if options.quick else {"candidates": 120, "chains": 30}
    methods = [Anneal(**small), Squares(iterations=1 if options.quick else 15)]
    vary = ["kd=0.2:60:log", "friction=0:5:tied", "delay=0:0.5"]
    found = identify(recorded, vary, physics_hz=100, methods=methods)
    return told(found, options.pages and options.pages / "collins")


PARTS = {"speed": speed, "search": search, "recover": recover, "drive": drive, "bridge": bridge, "collins": collins}


def main() -> None:
    from manikin.assets.paths import data_root

    parser = arguments(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, required=True)
    parser.add_argument("--rounds", type=int, default=3, help="of the speed")
    parser.add_argument("--pages", type=Path, help="folder for the pages of the searches")
    options = parser.parse_args()
    result = json.loads(options.out.read_text()) if options.out and options.out.is_file() else {}
    result["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    result["command_speed" if "speed" in options.parts else "command"] = command()
    result.setdefault("runs", {})
    for name in options.parts:
        if name in ("bridge", "collins") and options.quick and data_root() is None:
            continue  # a small run needs no data
        begin = time.perf_counter()
        result["runs"][name] = PARTS[name](options)
        result["runs"][name]["seconds"] = round(time.perf_counter() - begin, 1)
        write(result, options.out)


if __name__ == "__main__":
    main()
