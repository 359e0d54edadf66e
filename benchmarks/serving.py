"""Requests per second and how long an answer takes, of a served policy with many clients at once.

    python benchmarks/serving.py

The policy that comes with manikin for PickCube-v2 (``small``), and layers of 2048 units without training (``large``),
behind ``manikin serve``'s server, on this machine. Clients are threads of another process, each of which asks again as
soon as it has its answer. ``together`` is how many rows the network computes at once, ``--together`` of the command.
``batch_rows`` is how many rows the policy was asked about at once, on average. ``server_ms`` is the processor time of
the server's process for each request: clients need some, too. ``alone`` is the policy asked directly, row by row.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, command, parsed, write

from manikin.env.state.provenance import versions
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks import GaussianActor
from manikin.policy.remote.server import PolicyServer
from manikin.policy.remote.wire import pack, unpack
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import load_trained

OUT = Path(__file__).parent / "results" / "serving.json"
POLICY = "ppo-PickCube-v2"
CLIENTS = (1, 8, 64)
LARGE = [2048, 2048, 2048]


def asked(url: str, row: np.ndarray, until: float, took: list[float]) -> None:
    """One client: asks until then, and notes how long each answer took [s]."""
    from websockets.sync.client import connect

    message = pack({"state": row})
    with connect(url, compression=None) as connection:
        connection.recv()
        while not took or time.perf_counter() < until:  # each asks once at least
            began = time.perf_counter()
            connection.send(message)
            unpack(connection.recv())
            took.append(time.perf_counter() - began)


def clients_here(url: str, size: int, clients: int, seconds: float) -> list[float]:
    """How long each answer took [s], of so many clients at the same time."""
    row = np.zeros(size, np.float32)
    took: list[list[float]] = [[] for _ in range(clients)]
    until = time.perf_counter() + seconds
    threads = [threading.Thread(target=asked, args=(url, row, until, mine)) for mine in took]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [t for mine in took for t in mine]


def measured(policy: NetworkPolicy, size: int, clients: int, seconds: float) -> dict[str, Any]:
    """Requests per second, and the median and the 99th percentile of an answer's time [ms]."""
    with PolicyServer(policy, {"state": (size,)}, port=0, batch=True) as server:
        words, used = [server.url, str(size), str(clients), str(seconds)], time.process_time()
        ran = subprocess.run(
            [sys.executable, __file__, "--clients", *words], capture_output=True, text=True, check=True
        )
        used = time.process_time() - used
        lines = dict(line.rsplit(" ", 1) for line in server.metrics.text().splitlines() if not line.startswith("#"))
    times = sorted(json.loads(ran.stdout))
    return {
        "requests_per_s": round(len(times) / seconds, 1),
        "median_ms": round(1e3 * statistics.median(times), 2),
        "p99_ms": round(1e3 * times[min(len(times) - 1, int(0.99 * len(times)))], 2),
        "server_ms": round(1e3 * used / len(times), 3),
        "batch_rows": round(float(lines["manikin_batch_rows_sum"]) / float(lines["manikin_batch_rows_count"]), 2),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each number of clients")
    args = parsed(parser, OUT)
    seconds = 0.3 if args.quick else args.seconds
    module, about = load_trained(shipped_policies()[POLICY])
    size, actions = len(about["observation"]), int(about["network"]["options"]["actions"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    large = GaussianActor(observations=size, actions=actions, hidden=LARGE, log_std=0.0)
    out: dict[str, Any] = {
        "command": command(),
        "versions": versions(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "policies": {"small": POLICY, "large": f"{len(LARGE)} layers of {LARGE[0]} units"},
    }
    for name, network in (("small", module), ("large", large)):
        policy = NetworkPolicy(network)
        count, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            policy.act(torch.zeros(1, size), [""])
            count += 1
        out[name] = {"alone": {"requests_per_s": round(count / seconds, 1)}}
        for together in (1, 64) if name == "large" else (1,):
            policy = NetworkPolicy(network, width=together)
            asked = {str(n): measured(policy, size, n, seconds) for n in (CLIENTS[:2] if args.quick else CLIENTS)}
            out[name][f"together {together}"] = asked
    write(out, args.out)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--clients"]:  # the other process
        url, size, clients, seconds = sys.argv[2:]
        print(json.dumps(clients_here(url, int(size), int(clients), float(seconds))))
    else:
        main()
