"""Control steps per second, memory and pictures on a GPU, beside raw MuJoCo Warp and other libraries, in one command.

    python benchmarks/gpu.py                               # one GPU
    python benchmarks/gpu.py --peers DIR                   # also ManiSkill3 and mjlab
    torchrun --nproc-per-node 8 benchmarks/gpu.py          # one process per GPU; rates are summed
    python benchmarks/gpu.py --quick                       # the same path on Warp's CPU device, two environments each
    python benchmarks/gpu.py --parts pictures --resume     # in several goes: what --out has of this card is kept

``DIR`` holds one virtual environment per peer: DIR/maniskill (mani_skill==3.0.1) and DIR/mjlab (mjlab==1.6.0, which
needs mujoco and mujoco-warp 3.11 where manikin needs 4.0: the two cannot share one). A peer that does not run is
reported with its last words. Every measurement is a process of its own: random actions in [-1, 1], full reward, success
and info. Raw is ``mujoco_warp`` on the very model with the same room for contacts: the same substeps and one more pass
of positions and velocities per control step, as one graph. Resets are timed apart: no episode ends meanwhile, nor do
the peers'. Targets are for one card: of several, the first's figures are judged, and the peers run on it.

Training is ``ppo`` on PickCube-v2 until 95 % of 256 validation episodes succeed. The figure is seconds of the training
loop, validation included. By state it is done twice: with manikin's recipe in 1,024 environments of 8 steps, and with
ManiSkill3's published settings for a GPU, which are not tuned for manikin. It is measured on one card only.

The result goes to results/gpu.json, of several GPUs to results/gpu-8.json (their number). Without a GPU it holds the
word "unmeasured" and nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, command, parsed

HERE = Path(__file__).parent
RESULTS = HERE / "results"
UNMEASURED = "unmeasured"
TASKS = ("CartpoleBalance-v1", "PickCube-v2", "StackCube-v2", "PickSingleYCB-v2", "OpenCabinetDrawer-v2")
SIZES = (1, 16, 256, 1024, 4096, 16384, 65536)
PARTS = ("state", "pictures", "training", "training-pictures")
IMAGES = "rgb+depth+segmentation"
PICTURES = ((128, 128, (1, 256, 1024)), (640, 480, (1, 64, 256)))  # width, height, environments
PEERS = {"ManiSkill3 PickCube": "maniskill_gpu", "mjlab lift cube": "mjlab_gpu"}
LEARNED = 0.95  # of the validation episodes succeed
# what an H200-class card is meant to reach: (name, bound, at least or at most)
TARGETS = (
    ("PickCube state, control steps/s", 1e6, "at least"),
    ("PickCube state, times ManiSkill3", 3.0, "at least"),
    ("PickCube state, time over raw", 1.25, "at most"),
    ("PickCube 128x128 at 1,024, environment frames/s", 6e4, "at least"),
    ("PickCube memory over ManiSkill3's", 0.5, "at most"),
    ("PickCube state, seconds of training to 95 %", 30.0, "at most"),
    ("PickCube 128x128 RGB, seconds of training to 95 %", 300.0, "at most"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One measurement: state observations, or pictures of this size."""

    task: str
    num_envs: int
    device: str
    seconds: float
    width: int = 0
    height: int = 0

    @property
    def name(self) -> str:
        return f"{self.task} {f'{self.width}x{self.height}' if self.width else 'state'}, N={self.num_envs}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """A training with ``ppo``: by state, or from pictures of this size.

    Attributes:
        rows, num_steps: of the environment, and of each in an iteration.
        published: ManiSkill3's settings, not those of manikin's recipe.
        minutes: after which it ends anyhow. iterations: likewise, 0 for no limit.
    """

    device: str
    rows: int = 1024
    num_steps: int = 8
    size: int = 0
    minutes: float = 5.0
    iterations: int = 0
    published: bool = False

    @property
    def name(self) -> str:
        kind = f"{self.size}x{self.size} RGB" if self.size else "state"
        return f"PickCube-v2 ppo {kind}, N={self.rows}{', published settings' if self.published else ''}"


def trainings(args: argparse.Namespace, device: str) -> list[Training]:
    """What is trained on a device."""
    if args.quick:
        small = Training(device=device, rows=2, num_steps=4, minutes=0, iterations=1)
        every = [small, dataclasses.replace(small, size=36)]  # the least that the encoder takes
    else:
        published = Training(device=device, rows=4096, num_steps=4, published=True)
        every = [Training(device=device), published, Training(device=device, size=128)]
    return [one for one in every if ("training-pictures" if one.size else "training") in args.parts]


def trained(training: Training) -> dict[str, Any]:
    """In this process: when validation first reached ``LEARNED``, and what the run came to."""
    import tempfile

    from manikin.learn.run.recipe import Recipe
    from manikin.learn.run.record import read_progress
    from manikin.learn.run.train import LOG, train

    begin, small = time.perf_counter(), training.iterations > 0
    seen: dict[str, Any] = {"observe": "rgb", "cameras": ["base_camera"], "renderer": "warp"}
    seen |= {"size": [training.size, training.size]}
    settings: dict[str, Any] = {"cuda_graphs": True, "encoder": "nature", "channels": [32, 64, 64]}
    if training.published:
        settings |= {"epochs": 8, "minibatches": 32, "gamma": 0.8, "gae_lambda": 0.9, "log_std": 0.0}
    if small:
        settings["minibatches"] = 2
    hidden = [512] if training.size else [256, 256, 256] if training.published else [128, 128]
    recipe = Recipe(
        algorithm="ppo",
        task="PickCube-v2",
        env={"num_envs": training.rows, **(seen if training.size else {}), **({"horizon": 4} if small else {})},
        settings={**settings, "num_steps": training.num_steps, "hidden": hidden, "critic_hidden": hidden},
        minutes=training.minutes,
        steps=training.iterations * training.num_steps * training.rows,
        validate_every=10,
        validation_episodes=2 if small else 256,
        stop_at=LEARNED,
    )
    with tempfile.TemporaryDirectory() as folder:
        ended = train(recipe, folder=folder, seed=9351, device=training.device)
        log = read_progress(Path(folder) / LOG)
    reached = (row["seconds"] for row in log if row.get("validated_success", 0.0) >= LEARNED)
    state = ended.state
    return {
        "to_target_s": next(reached, None),
        "validated": state.best,
        "steps": state.steps,
        "seconds": state.seconds,
        "process_s": time.perf_counter() - begin,
        "recipe_hash": recipe.hash,
    }


def measure(case: Case) -> dict[str, Any]:
    """In this process: rates per second, times, and memory."""
    import torch

    from manikin.author.speed import measure_speed

    if case.device.startswith("cuda"):
        torch.cuda.set_device(torch.device(case.device))
    if case.width:
        return pictures(case)
    speed = measure_speed(case.task, case.num_envs, seconds=case.seconds, device=case.device)
    return {**dataclasses.asdict(speed), "time_over_raw": speed.raw / speed.env}


def pictures(case: Case) -> dict[str, Any]:
    """Control steps, each with one camera's pictures, per second."""
    import torch

    import manikin
    from manikin.author.speed import bytes_per_env, free_memory, renderer_per_env, scratch_per_env
    from manikin.env.observe import Vision
    from manikin.spec.camera import CameraSpec

    declared = manikin.make(case.task).camera("base_camera")
    camera: CameraSpec = dataclasses.replace(declared, width=case.width, height=case.height)
    free, begin = free_memory(case.device), time.perf_counter()
    options: dict[str, Any] = {"horizon": 10**9, "terminate": False, "observe": IMAGES}
    options["vision"] = Vision(cameras=[camera], renderer="warp")
    env = manikin.make(case.task, case.num_envs, device=case.device, **options)
    env.reset(seed=0)
    moves = torch.rand(8, case.num_envs, env.single_action_space.shape[0], device=env.device) * 2 - 1

    def wait() -> float:
        if env.device.type == "cuda":
            torch.cuda.synchronize(env.device)
        return time.perf_counter()

    env.step(moves[0])
    create = wait() - begin
    for move in moves[1:3]:  # the first of them records the graphs
        env.step(move)
    row = {"num_envs": case.num_envs, "create_s": create, "card_bytes": free - free_memory(case.device)}
    counts = {"bytes_per_env": bytes_per_env, "scratch_per_env": scratch_per_env, "renderer_per_env": renderer_per_env}
    row |= {name: count(env) for name, count in counts.items()}
    steps, start = 0, wait()
    while wait() - start < case.seconds:
        env.step(moves[steps % 8])
        steps += 1
    row["env"] = steps * case.num_envs / (wait() - start)
    env.close()
    return row


def in_process(command: Sequence[str], timeout: float = 1800) -> dict[str, Any]:
    """The JSON object that a command prints last, or {"failed": its last words}."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"failed": str(error)}
    lines = [line for line in (done.stdout if done.returncode == 0 else done.stderr).splitlines() if line.strip()]
    try:
        return json.loads(lines[-1]) if done.returncode == 0 else {"failed": lines[-1] if lines else "no words"}
    except (IndexError, ValueError) as error:
        return {"failed": f"no result: {error}"}


def summed(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row of what several GPUs did at the same time: rates and environments add, for the rest the worst counts."""
    failed = next((row for row in rows if "failed" in row), None)
    if failed or len(rows) == 1:
        return failed or rows[0]
    add = ("env", "raw", "num_envs")
    out = {k: sum(row[k] for row in rows) if k in add else max(row[k] for row in rows) for k in rows[0]}
    if "raw" in out:
        out["time_over_raw"] = out["raw"] / out["env"]
    return {**out, "gpus": len(rows)}


class Ranks:
    """The processes that torchrun started, one per GPU; alone without it."""

    def __init__(self) -> None:
        self.rank, self.size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.local = int(os.environ.get("LOCAL_RANK", 0))
        if self.size > 1:
            import torch.distributed as dist

            dist.init_process_group("gloo")

    def all(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Everybody's, in order; waits for the slowest, so that all begin the next together."""
        if self.size == 1:
            return [row]
        import torch.distributed as dist

        rows: list[Any] = [None] * self.size
        dist.all_gather_object(rows, row)
        return rows

    def close(self) -> None:
        if self.size > 1:
            import torch.distributed as dist

            dist.destroy_process_group()


def cases(args: argparse.Namespace, device: str) -> list[Case]:
    """What is measured on a device."""
    if args.quick:
        small = [Case(task=task, num_envs=2, device=device, seconds=0.1) for task in args.task]
        both = [one for case in small for one in (case, dataclasses.replace(case, width=16, height=16))]
        return [one for one in both if ("pictures" if one.width else "state") in args.parts]
    out = []
    for task in args.task:
        if "state" in args.parts:
            out += [Case(task=task, num_envs=n, device=device, seconds=args.seconds) for n in args.num_envs]
        for width, height, sizes in PICTURES if "pictures" in args.parts else ():
            images = {"device": device, "seconds": args.seconds, "width": width, "height": height}
            out += [Case(task=task, num_envs=n, **images) for n in sizes]
    return out


def targets(rows: dict[str, Any], peers: dict[str, Any], learned: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each target with what one card did (its rows by name, the peers' by title, trainings by name), or the word
    unmeasured. A training that did not get there in its minutes took longer than all of them."""
    state = {n: r for n, r in rows.items() if n.startswith("PickCube-v2 state") and "failed" not in r}
    best = max(state.values(), key=lambda row: row["env"], default=None)
    there = [r for r in peers.get("ManiSkill3 PickCube", {}).values() if "failed" not in r]
    theirs = max(there, key=lambda row: row["env"], default=None)
    frames = rows.get("PickCube-v2 128x128, N=1024", {}).get("env")
    same = [(r, t) for r in state.values() for t in there if r["num_envs"] == t["num_envs"] and r.get("card_bytes")]
    took = [
        next((r.get("to_target_s") or r.get("seconds") for n, r in learned.items() if kind in n), None)
        for kind in ("ppo state", "ppo 128x128")
    ]
    found = [
        best and best["env"],
        best and theirs and best["env"] / theirs["env"],
        best and best["time_over_raw"],
        frames,
        same and max(r["card_bytes"] / t["card_bytes"] for r, t in same),
        *took,
    ]
    names = [name for name, _, _ in TARGETS]
    return {
        name: {"wanted": f"{way} {bound:g}", "measured": value or UNMEASURED}
        for name, (_, bound, way), value in zip(names, TARGETS, found, strict=True)
    }


def card(args: argparse.Namespace, local: int) -> tuple[str | None, str]:
    """The device word of this process and the card's name; no word where there is no GPU."""
    import torch

    from manikin.machine import processor

    if args.quick:
        return "warp:cpu", f"dry run on {processor('warp:cpu')}"
    if not torch.cuda.is_available():
        return None, UNMEASURED
    return f"cuda:{local}", processor(f"cuda:{local}")


def kept(path: Path, now: dict[str, Any]) -> dict[str, Any]:
    """What a result has of this card, number of GPUs and versions; nothing of others, and nothing that failed."""
    before = json.loads(path.read_text()) if path.exists() else {}
    if any(before.get(key) != value for key, value in now.items()):
        return {}
    done = {part: {n: r for n, r in before[part].items() if "failed" not in r} for part in ("manikin", "training")}
    return {**done, "peers": before["peers"], "command": before["command"]}


def results_of(gpus: int) -> Path:
    """Where a result goes; docs/devices.py shows that of one card."""
    return RESULTS / ("gpu.json" if gpus == 1 else f"gpu-{gpus}.json")


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="+", default=list(TASKS))
    parser.add_argument("--num-envs", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=5.0, help="of stepping per measurement")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--resume", action="store_true", help="keep what --out has of this card and these versions")
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--trainer", help=argparse.SUPPRESS)
    args = parsed(parser, results_of(int(os.environ.get("WORLD_SIZE", 1))), argv)
    if args.worker:
        print(json.dumps(measure(Case(**json.loads(args.worker)))))
        return 0
    if args.trainer:
        print(json.dumps(trained(Training(**json.loads(args.trainer)))))
        return 0

    from manikin.env.registry import task_ids
    from manikin.env.state.provenance import versions
    from manikin.errors import UnknownNameError

    for task in args.task:
        if task not in task_ids():
            parser.error(str(UnknownNameError("task", task, task_ids())))
    ranks = Ranks()
    if args.resume and ranks.size > 1:
        parser.error("--resume is for one GPU: of several, each keeps its own figures for the targets")
    device, name = card(args, ranks.local)
    result: dict[str, Any] = {"card": name, "gpus": ranks.size, "versions": versions()}
    result |= {"manikin": {}, "peers": {}, "training": {}, **(kept(args.out, result) if args.resume else {})}
    called = command() if ranks.size == 1 else f"torchrun --nproc-per-node {ranks.size} ..."
    earlier = result["command"].split("; ") if "command" in result else []
    result["command"] = "; ".join(dict.fromkeys([*earlier, called]))
    own: dict[str, Any] = dict(result["manikin"]) if ranks.size == 1 else {}  # what this card did
    if device is not None:
        for case in cases(args, device):
            if case.name in result["manikin"]:
                continue
            worker = [sys.executable, __file__, "--worker", json.dumps(dataclasses.asdict(case))]
            own[case.name] = in_process(worker)
            row = summed(ranks.all(own[case.name]))
            if ranks.rank == 0:
                print(f"{case.name}: {json.dumps(row)}", file=sys.stderr, flush=True)
            result["manikin"][case.name] = row
        if args.peers and ranks.rank == 0:
            for title, script in PEERS.items():
                python = args.peers / script.partition("_")[0] / "bin" / "python"
                run = [str(python), str(HERE / "peers" / f"{script}.py"), device, str(args.seconds)]
                result["peers"][title] = {f"N={n}": in_process([*run, str(n)]) for n in args.num_envs}
        for training in trainings(args, device) if ranks.size == 1 else ():
            if training.name in result["training"]:
                continue
            worker = [sys.executable, __file__, "--trainer", json.dumps(dataclasses.asdict(training))]
            result["training"][training.name] = row = in_process(worker)
            print(f"{training.name}: {json.dumps(row)}", file=sys.stderr, flush=True)
    result["targets"] = targets(*[{}] * 3) if args.quick else targets(own, result["peers"], result["training"])
    if ranks.rank == 0:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=2) + "\n")
        print(f"{name}: wrote {args.out}")
    ranks.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
