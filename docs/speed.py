"""Fill the speed table of the README from the benchmark's committed result.

python docs/speed.py            # after benchmarks/throughput.py --out benchmarks/results/throughput.json
python docs/speed.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "throughput.json"
SECTION = re.compile(r"(<!-- speed:[^\n]*-->\n).*?(<!-- /speed -->)", re.DOTALL)


def section(result: dict[str, Any]) -> str:
    """The table as Markdown, with the command and machine that measured it."""
    rates: dict[str, dict[int, dict[str, float]]] = {}
    for label, row in result["manikin"].items():
        steps, n = label.rsplit(", N=", 1)
        rates.setdefault(steps, {})[int(n)] = row
    sizes = sorted({n for rows in rates.values() for n in rows})
    lines = [
        f"| {result['task']}, control steps per second | "
        + " | ".join(f"{n:,} env{'s' * (n > 1)}" for n in sizes)
        + " |"
    ]
    lines.append("|---|" + "---:|" * len(sizes))
    for steps, rows in rates.items():
        cells = [f"**{rows[n]['env']:,.0f}** ({rows[n]['env_over_raw']:.2f})" if n in rows else "" for n in sizes]
        lines.append(f"| manikin, physics {steps} (share of raw) | {' | '.join(cells)} |")
        cells = [f"{rows[n]['raw']:,.0f}" if n in rows else "" for n in sizes]
        lines.append(f"| raw MuJoCo, the same steps | {' | '.join(cells)} |")
    for title, rate in result.get("peers", {}).items():
        lines.append(f"| {title} | {rate:,.0f} |" + " |" * (len(sizes) - 1))
    times = result.get("times_maniskill3_at_one_env")
    words = (
        f"Measured on {result['machine']} by `{result['command'].strip()}`, all in one run; state observations, full "
    )
    words += "reward and success. Raw is MuJoCo's batch alone on the same model, with the same controls."
    if times:
        words += " One environment is " + " and ".join(f"{v:.1f}x ({k.rsplit(',', 1)[0]})" for k, v in times.items())
        words += " as fast as ManiSkill3's."
    return "\n".join([*lines, "", words])


def filled(readme: str, result: dict[str, Any] | None) -> str:
    """The README with its section made new; without a result it points to the command."""
    body = section(result) if result else "`manikin bench` measures on your machine."
    made, count = SECTION.subn(lambda found: f"{found[1]}{body}\n{found[2]}", readme)
    if count != 1:
        raise SystemExit("README.md has no section between <!-- speed: ... --> and <!-- /speed -->")
    return made


def main(words: list[str]) -> int:
    if words not in ([], ["--check"]):
        raise SystemExit(__doc__)
    readme = ROOT / "README.md"
    old = readme.read_text()
    new = filled(old, json.loads(RESULT.read_text()) if RESULT.exists() else None)
    if words:
        return int(new != old)
    readme.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
