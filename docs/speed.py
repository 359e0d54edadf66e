"""Fill the speed table of the README from the benchmark's committed result.

python docs/speed.py            # after benchmarks/throughput.py --out benchmarks/results/throughput.json
python docs/speed.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
RESULT = ROOT / "benchmarks" / "results" / "throughput.json"


def section(result: dict[str, Any]) -> str:
    """The table as Markdown, with the command and machine that measured it."""
    rates: dict[str, dict[int, dict[str, Any]]] = {}
    for label, row in result["manikin"].items():
        steps, n = label.rsplit(", N=", 1)
        rates.setdefault(steps, {})[int(n)] = row
    sizes = sorted({n for rows in rates.values() for n in rows})
    heads = [f"{n:,} env{'s' * (n > 1)}" for n in sizes]
    lines = [f"| {result['task']}, control steps per second | {' | '.join(heads)} |", "|---|" + "---:|" * len(sizes)]
    for steps, rows in rates.items():
        cells = [f"**{rows[n]['env']['median']:,.0f}**{span(rows[n]['env'])}" if n in rows else "" for n in sizes]
        lines.append(f"| manikin, physics {steps} | {' | '.join(cells)} |")
        cells = [f"{rows[n]['raw']['median']:,.0f}{span(rows[n]['raw'])}" if n in rows else "" for n in sizes]
        lines.append(f"| raw MuJoCo, the same steps | {' | '.join(cells)} |")
        cells = [f"{rows[n]['env_over_raw']['median']:.2f}" if n in rows else "" for n in sizes]
        lines.append(f"| manikin's share of raw | {' | '.join(cells)} |")
    for title, rate in result.get("peers", {}).items():
        lines.append(f"| {title} | {rate['median']:,.0f}{span(rate)} |" + " |" * (len(sizes) - 1))
    words = f"Median of {result['rounds']} rounds"
    words += "; brackets hold the lowest and the highest. " if spans(rates) else ". "
    words += f"Measured on {result['machine']} with `{result['command']}`, all in one run. "
    words += "Each step computes the state observation, the full reward and success. "
    words += "Raw MuJoCo is MuJoCo's batch alone, with the same model and the same controls."
    if times := result.get("times_maniskill3_at_one_env"):
        each = [f"{v['median']:.1f}x{span(v, '.1f')} ({k.rsplit(',', 1)[0]})" for k, v in times.items()]
        words += f" With one environment, manikin is {' and '.join(each)} as fast as ManiSkill3's task, round by round."
        words += " ManiSkill3 makes 5 steps of 10 ms."
    return "\n".join([*lines, "", words])


def spans(rates: dict[str, dict[int, dict[str, Any]]]) -> bool:
    """Whether any figure of the table has the range of its rounds."""
    return any("low" in row["env"] for rows in rates.values() for row in rows.values())


def span(figure: dict[str, float], form: str = ",.0f") -> str:
    """The lowest and the highest of a figure's rounds, where the result has them."""
    return f" [{figure['low']:{form}}–{figure['high']:{form}}]" if "low" in figure else ""


def filled(readme: str, result: dict[str, Any] | None) -> str:
    """The README with its section made new; without a result it points to the command."""
    missing = "`manikin bench` measures on your machine."
    return sections(readme, {"speed": section(result) if result else missing})


if __name__ == "__main__":
    sys.exit(
        finish(
            sys.argv[1:],
            __doc__,
            lambda: {README: filled(README.read_text(), json.loads(RESULT.read_text()) if RESULT.exists() else None)},
        )
    )
