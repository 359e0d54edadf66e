"""Fill the tables of docs/devices.md from the benchmarks' committed results.

python docs/devices.py            # after benchmarks/parity.py and benchmarks/gpu.py
python docs/devices.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from filling import finish, sections

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "devices.md"
RESULTS = ROOT / "benchmarks" / "results"


def parity(result: dict[str, Any]) -> str:
    """Free motion, a line for all tasks with the same controller and errors; then contacts and successes, one each."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for name, entry in result["entries"].items():
        task, control = name.split(" ")
        alike.setdefault((control, f"{entry['one_step']:.0e}", f"{entry['free']:.0e}"), []).append(task)
    lines = ["| controller | tasks | one step | fifty steps | free, at least |", "|---|---|---:|---:|---:|"]
    for (control, one, fifty), tasks in sorted(alike.items()):
        share = min(result["entries"][f"{task} {control}"]["share_free"] for task in tasks)
        lines.append(f"| `{control}` | {', '.join(sorted(tasks))} | {one} | {fifty} | {100 * share:.0f} % |")
    lines += ["", *touching({k: e for k, e in result["entries"].items() if "force" in e or "success" in e})]
    health = [e["success"][k]["health"] for e in result["entries"].values() if "success" in e for k in ("cpu", "warp")]
    ill = ", ".join(f"{sum(h[kind] for h in health)} {kind.replace('_', ' ')}" for kind in health[0])
    words = f"Measured on `{result['device']}` ({result['processor']}), mujoco {result['versions']['mujoco']}, "
    words += f"mujoco-warp {result['versions']['mujoco-warp']}. Rows of these episodes whose health said: {ill}."
    return "\n".join([*lines, "", words])


def touching(entries: dict[str, Any]) -> list[str]:
    """One line for each task and controller whose contacts or episodes were compared."""
    head = ("task, controller", "same rows", "force: median, 95 %, all", "Jacobian", "successes CPU, Warp", "agree")
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    for name, entry in entries.items():
        wins, agree = "", ""
        if rates := entry.get("success"):
            wins = f"{rates['cpu']['successes']}, {rates['warp']['successes']} of {rates['seeds']}"
            agree = "yes" if rates["difference"][0] <= 0 <= rates["difference"][1] else "**no**"
        force, same, jacobian = "", "", ""
        if "force" in entry:
            force = " ".join(f"{entry[k]:.0e}" for k in ("force_median", "force", "force_largest"))
            same, jacobian = f"{100 * entry['same_rows']:.0f} %", f"{entry['jacobian']:.0e}"
        task, control = name.split(" ")
        lines.append(f"| {' | '.join((f'{task} `{control}`', same, force, jacobian, wins, agree))} |")
    return lines


def gpu(result: dict[str, Any]) -> str:
    """Targets with what was measured, then a line for each measurement."""
    lines = ["| on an H200-class card | wanted | measured |", "|---|---|---|"]
    for name, target in result["targets"].items():
        value = target["measured"]
        lines.append(f"| {name} | {target['wanted']} | {value if isinstance(value, str) else f'{value:,.3g}'} |")
    if result["manikin"]:
        lines += [
            "",
            "| measurement | per second | raw | to make it | bytes each | in a step | in the renderer | card, MB |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
        ]
    for name, row in result["manikin"].items():
        if "failed" in row:
            lines.append(f"| {name} | {row['failed']} | | | | | | |")
            continue
        raw = f"{row['raw']:,.0f}" if "raw" in row else ""
        sizes = [f"{row[k]:,}" if k in row else "" for k in ("bytes_per_env", "scratch_per_env", "renderer_per_env")]
        card = f"{row['card_bytes'] / 1e6:,.0f}"
        cells = (name, f"{row['env']:,.0f}", raw, f"{row['create_s']:.1f} s", *sizes, card)
        lines.append(f"| {' | '.join(cells)} |")
    if result.get("training"):
        lines += ["", "| training | to 95 % | in all | control steps | validated |", "|---|---:|---:|---:|---:|"]
    for name, row in result.get("training", {}).items():
        if "failed" in row:
            lines.append(f"| {name} | {row['failed']} | | | |")
            continue
        reached = "not reached" if row["to_target_s"] is None else f"{row['to_target_s']:.1f} s"
        cells = (name, reached, f"{row['process_s']:.1f} s", f"{row['steps']:,}", f"{100 * row['validated']:.1f} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Card: {result['card']}. Command: `{result['command']}`."])


TABLES = {"parity": parity, "gpu": gpu}


def filled(page: str, results: dict[str, dict[str, Any] | None]) -> str:
    """The page with its tables made new; without a result a table is the word unmeasured."""
    found = {name: results.get(name) for name in TABLES}
    return sections(page, {name: TABLES[name](result) if result else "Unmeasured." for name, result in found.items()})


def results() -> dict[str, dict[str, Any] | None]:
    """The committed results by table."""
    files = {name: RESULTS / f"{name}.json" for name in TABLES}
    return {name: json.loads(file.read_text()) if file.exists() else None for name, file in files.items()}


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), results())}))
