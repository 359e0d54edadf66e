"""CI begins with the README's two commands as a newcomer types them. A stand-in for ``make`` writes down its calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = """#!/bin/bash
echo "$* EXTRAS=$EXTRAS DATA=$MANIKIN_DATA WARP=$WARP_CACHE_PATH PATHS=$PYTHONPATH" >> "$CALLS"
mkdir -p .venv/bin demo
for tool in manikin python; do  # at once, since what runs meanwhile may be about to read it
  printf '#!/bin/bash\necho "tries $1"; [ "$BROKEN $1" != "fuzz tests/fuzz" ]' > .venv/bin/new
  chmod +x .venv/bin/new && mv .venv/bin/new .venv/bin/$tool
done
case " $* " in
  *" demo "*) echo page > demo/report.html; [ "$BROKEN" = video ] || echo film > demo/video.mp4 ;;
  *" test "*)
    echo "=== 1 failed, 2 passed in 3.00s (0:00:03) ==="
    echo "=== $(wc -l < "$CALLS") passed, 7 skipped in 5.25s ==="
    [ "$BROKEN" != test ] ;;
esac
"""


def run(folder: Path, broken: str = "") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """CI's script with the stand-in, for somebody who has set this and that; and the calls."""
    (folder / "bin").mkdir()
    npm = '#!/bin/bash\necho "$*" > npm\n'  # nothing is fetched
    for name, text in (("make", MAKE), ("npm", npm), ("id", "#!/bin/bash\necho 1000\n")):  # not root: no packages
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    clone = folder / "clone"
    (clone / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", clone / ".ci")
    shutil.copy(ROOT / "README.md", clone)
    mine = {"EXTRAS": "data", "MANIKIN_DATA": "/mine", "WARP_CACHE_PATH": "/warp", "PYTHONPATH": "/src"}
    mine |= {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(folder / "calls"), "BROKEN": broken}
    done = subprocess.run(["bash", ".ci/run"], cwd=clone, env={**os.environ, **mine}, capture_output=True, text=True)
    return done, (folder / "calls").read_text().splitlines()


def test_the_two_commands_come_first_and_as_they_are_typed(tmp_path: Path) -> None:
    done, calls = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    bare = "EXTRAS= DATA= WARP= PATHS="
    assert calls[0].startswith("--no-print-directory clean ")
    assert calls[1:3] == [f"demo {bare}", f"test {bare}"]
    more = [call for call in calls[3:] if " test " in call]
    assert [call.partition(" EXTRAS=gpu DATA=/mine WARP=/warp PATHS=/src")[::2] for call in more] == [
        ("--no-print-directory test ARGS=--last-skipped", ""),
        ("--no-print-directory test ARGS=-k YCB", ""),
    ]
    assert [word for word in ("lint", "docs") if any(word in call for call in calls[3:])] == ["lint", "docs"]
    installed = (tmp_path / "clone" / "npm").read_text()
    assert re.search(r"--prefix \.venv/iwer iwer@\d+\.\d+\.\d+$", installed.strip())
    lines = done.stdout.splitlines()
    tested = [line for line in lines if re.fullmatch(r"=== \d+ passed, 7 skipped in 5.25s ===", line)]
    assert lines[-3:] == tested[:3] and len(tested) == 6  # the last line of each run is shown again at the end


@pytest.mark.parametrize("broken", ["video", "test", "fuzz"])
def test_what_fails_fails_it_and_the_rest_runs(tmp_path: Path, broken: str) -> None:
    done, calls = run(tmp_path, broken)
    assert done.returncode == 1 and any("docs" in call for call in calls)
    failed = [line.split(" s  ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    tests = ["as a newcomer: make test", "tests that skipped, with EXTRAS=gpu", "tests of objects, with real ones"]
    fuzzed = ["fuzz, two minutes, meanwhile"]
    assert failed == {"video": ["as a newcomer: make demo"], "test": tests, "fuzz": fuzzed}[broken]
    assert done.stdout.index("=== fuzz") < done.stdout.index("tries tests/fuzz") < done.stdout.index("=== doctor")
