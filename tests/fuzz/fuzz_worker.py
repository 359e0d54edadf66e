"""The process that does the trials; it tells of each before and after, so that one that kills or hangs it is known."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")]

from manikin.errors import ManikinError  # noqa: E402

KINDS = ("files", "arguments", "protocols", "servers", "policies")


def fuzzer(kind: str, folder: Path) -> Any:
    if kind == "files":
        from fuzz_files import Files as Made
    elif kind == "arguments":
        from fuzz_arguments import Arguments as Made  # type: ignore[assignment]
    elif kind == "protocols":
        from fuzz_protocols import Protocols as Made  # type: ignore[assignment]
    elif kind == "servers":
        from fuzz_servers import Servers as Made  # type: ignore[assignment]
    else:
        from fuzz_policies import Policies as Made  # type: ignore[assignment]
    folder.mkdir()
    return Made(folder)


def judged(trial: Callable[[], object]) -> tuple[str, str]:
    """What came of a trial: it did its work, said in manikin's words why not, or let another error through."""
    try:
        trial()
    except ManikinError:
        return "refused", ""
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = next((f for f in reversed(frames) if "manikin" in Path(f.filename).parts), frames[-1])
        said = " ".join(str(error).split())[:150]
        return "raw", f"{type(error).__name__}: {said} ({Path(last.filename).name}, line {last.lineno})"
    return "done", ""


def work(seed: int, starts: dict[str, int], until: float, most: int, tell: Callable[..., None]) -> None:
    """One trial of each kind after the other, until the time or their number is through."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        tell("began", "", -1, "preparing")
        fuzzers = {kind: fuzzer(kind, Path(folder) / kind) for kind in starts}
        numbers = dict(starts)
        while time.time() < until and any(number < most for number in numbers.values()):
            for kind, made in fuzzers.items():
                if (number := numbers[kind]) >= most or time.time() >= until:
                    continue
                numbers[kind] += 1
                draw = np.random.Generator(np.random.Philox([seed, KINDS.index(kind) * 2**32 + number]))
                words, trial = made.case(draw)
                tell("began", kind, number, words)
                tell("ended", kind, number, *judged(trial))


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    with open(options.pop("pipe"), "w", buffering=1) as pipe:  # the standard output belongs to what is tried
        work(**options, tell=lambda *told: print(json.dumps(told), file=pipe))
