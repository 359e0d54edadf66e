"""Tries what nobody means: damaged files, wrong arguments, odd protocols, servers that misbehave, policy
files that are none.

    python tests/fuzz --seconds 120 --seed 0            # all kinds
    python tests/fuzz --kinds files --first 137 --trials 1 --seed 0   # one trial again

Everything must work, or be refused in manikin's words (``ManikinError``). Another error, a crash or a hang is a
failure, and the status is then 1. Trial k of a kind depends on the seed and k alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from select import select
from typing import Any

KINDS = ("files", "arguments", "protocols", "servers", "policies")
VERDICTS = ("done", "refused", "raw", "hung", "crashed")
HANGS = 30.0  # [s] without a sign
PREPARING = 240.0  # [s] at most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="in all")
    parser.add_argument("--trials", type=int, default=10**9, help="of each kind at most")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    counts = {kind: Counter[str]() for kind in options.kinds}
    starts = dict.fromkeys(options.kinds, options.first)
    until = time.time() + options.seconds
    while time.time() < until and any(number < options.first + options.trials for number in starts.values()):
        if not watched(options, starts, until, counts):
            break
    print(f"{'':10} {'tried':>7} " + " ".join(f"{verdict:>5}" for verdict in VERDICTS))
    for kind, count in counts.items():
        verdicts = " ".join(
            f"{count[v]:{w}}" for v, w in (("done", 7), ("refused", 7), ("raw", 5), ("hung", 5), ("crashed", 7))
        )
        print(f"{kind:10} {sum(count.values()):7} {verdicts}")
    bad = sum(count[v] for count in counts.values() for v in VERDICTS[2:])
    print(f"{bad} of {sum(sum(c.values()) for c in counts.values())} trials failed (seed {options.seed})")
    return 1 if bad or not all(sum(count.values()) for count in counts.values()) else 0


def watched(options: Any, starts: dict[str, int], until: float, counts: dict[str, Counter[str]]) -> bool:
    """Run a worker and count what it tells; whether another one is to go on where a trial ended it."""
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder) / "pipe"
        os.mkfifo(pipe)
        told = {"seed": options.seed, "starts": starts, "until": until, "most": options.first + options.trials}
        program = str(Path(__file__).with_name("fuzz_worker.py"))
        command = [sys.executable, program, json.dumps({**told, "pipe": str(pipe)})]
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        held = os.open(pipe, os.O_WRONLY)  # so that the pipe has no end before the worker opens it
        worker = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        kind, number, words, rest = "", -1, "preparing", b""
        last, patience = time.time(), PREPARING
        try:
            while True:
                ready, _, _ = select([reader], [], [], 0.2)
                if ready:
                    *lines, rest = (rest + os.read(reader, 65_536)).split(b"\n")
                    last = time.time()
                    for line in lines:
                        what, kind, number, *more = json.loads(line)
                        if what == "began":
                            words = more[0]
                            patience = HANGS if kind else PREPARING
                            continue
                        starts[kind] = number + 1
                        counts[kind][more[0]] += 1
                        if more[0] == "raw":
                            print(f"{kind} {number}: {words}: {more[1]}", flush=True)
                        words = ""
                elif worker.poll() is not None or time.time() - last > patience:
                    break
        finally:
            ended = worker.poll()
            worker.kill()
            worker.wait()
            os.close(reader)
            os.close(held)
    if ended == 0:
        return False
    verdict = "hung" if ended is None else "crashed"
    print(f"{kind or 'all'} {number}: {words}: {verdict}" + (f" (status {ended})" if ended else ""), flush=True)
    if not kind:  # it never began
        return False
    counts[kind][verdict] += 1
    starts[kind] = number + 1
    return True


if __name__ == "__main__":
    sys.exit(main())
