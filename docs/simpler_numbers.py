"""Fill the tables of docs/simpler-numbers.md: SIMPLER's published numbers beside those that manikin computes.

python docs/simpler_numbers.py            # after a change of tests/published/simpler.json or of manikin.eval.agreement
python docs/simpler_numbers.py --check    # only say whether the page is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from filling import finish, sections

from manikin.eval.agreement.metrics import delta_success, kruskal_wallis, mmrv, pearson
from manikin.eval.agreement.trials import trials

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "simpler-numbers.md"
PUBLISHED = ROOT / "tests" / "published" / "simpler.json"
ROUNDING = 0.0015  # of three printed digits on either side

KINDS = {"variant_aggregation": "variants", "visual_matching": "matching"}
Column = Mapping[str, Any]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    """Markdown; the first ``words`` columns to the left."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * words + "---:|" * (len(heads) - words)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def three(value: float) -> str:
    """Three digits, and no minus before a zero."""
    return f"{round(value, 3) + 0.0:.3f}"


def beside(printed: float, *ours: float) -> list[str]:
    """What is printed and what is computed; bold where none of ours is it."""
    mark = "" if any(abs(one - printed) <= ROUNDING for one in ours) else "**"
    return [three(printed), *(f"{mark}{three(one)}{mark}" for one in ours)]


def fractions(column: Column) -> list[float]:
    """The simulated rates as fractions of their trials."""
    return [round(rate * n) / n for rate, n in zip(column["sim"], column["sim_trials"], strict=True)]


def pairs(published: Mapping[str, Any], number: str) -> str:
    """Tables IV and V: MMRV and Pearson of each column."""
    rows = []
    for one in published["columns"]:
        if one["table"] == number:
            rates, exact = {"real": one["real"], "sim": one["sim"]}, {"real": one["real"], "sim": fractions(one)}
            name = [f"{one['column'].replace('_', ' ')}", KINDS[one["kind"]]]
            rows.append(
                [
                    *name,
                    *beside(one["mmrv"], mmrv(**rates)),
                    *beside(one["pearson"], pearson(**rates), pearson(**exact)),
                ]
            )
    heads = ("task", "kind", "MMRV, paper", "ours", "Pearson, paper", "ours", "ours, of fractions")
    return table(heads, rows, words=2)


def differing(published: Mapping[str, Any]) -> str:
    """Table XIV: in how many policies simulation differs from reality."""
    rows = []
    for one in published["columns"]:
        if "kruskal" in one:
            rates = zip(one["real"], one["sim"], strict=True)
            tests = [kruskal_wallis(real=trials(r, one["trials"]), sim=trials(s, one["trials"])) for r, s in rates]
            found = sum(test.p_value < 0.05 for test in tests)
            mark = "" if found == one["kruskal"] else "**"
            rows.append([one["column"].replace("_", " "), str(one["kruskal"]), f"{mark}{found}{mark}"])
    return table(("task", "policies, paper", "ours"), rows, words=1)


def shifts(published: Mapping[str, Any]) -> str:
    """Table VI: changes of success of Table VII's rates, and how they go with the real ones."""
    rows = []
    tasks: dict[tuple[str, str], dict[str, float]] = {}
    for one in published["shifts"]:
        policy, task, kinds = one["policy"], one["task"], list(one["delta"])
        if task == "average":
            both = [tasks[policy, other] for other in ("pick_coke_can", "move_near")]
            found = {kind: fmean(each[kind] for each in both) for kind in kinds}
        else:
            found = {kind: delta_success(base=one["base"], shifts=one["rates"][kind]) for kind in kinds}
        tasks[policy, task] = found
        name = [policy.replace("_", " ").upper().replace("WITHOUT AUG", "without augmentation"), task.replace("_", " ")]
        name[0] = name[0].replace("WITH AUG", "with augmentation")
        rows += [[*name, f"change, {k.replace('_', ' ')}", *beside(one["delta"][k], found[k])] for k in kinds]
        real, sim = ([values[kind] for kind in kinds] for values in (one["real_delta"], one["delta"]))
        rows.append([*name, "Pearson", *beside(one["pearson"], pearson(real=real, sim=sim))])
        rows.append([*name, "MMRV", *beside(one["mmrv"], mmrv(real=real, sim=sim))])
    return table(("policy", "task", "number", "paper", "ours"), rows, words=3)


def further(published: Mapping[str, Any]) -> str:
    """Tables XI and XIII."""
    rows = []
    for one in published["further"]:
        rates = {"real": one["real"], "sim": one["sim"]}
        name = [one["table"], one["column"].replace("_", " ")]
        rows.append([*name, *beside(one["mmrv"], mmrv(**rates)), *beside(one["pearson"], pearson(**rates))])
    return table(("table", "task", "MMRV, paper", "ours", "Pearson, paper", "ours"), rows, words=2)


def gaps(published: Mapping[str, Any]) -> str:
    """Tables IX and III: MMRV of opening, of closing and of both, and the mean distance of the rates."""
    rows = []
    for one in published["visual_gaps"]:
        both = [one[task] for task in ("open", "close")]
        found = [mmrv(real=task["real"], sim=task["sim"]) for task in both]
        apart = fmean(abs(r - s) for task in both for r, s in zip(task["real"], task["sim"], strict=True))
        cells = [one["background"], one["drawer"], one["robot"]]
        for task, ours in zip(both, found, strict=True):
            cells += beside(task["mmrv"], ours)
        rows.append([*cells, *beside(one["table_III"]["mmrv"], fmean(found)), *beside(one["table_III"]["gap"], apart)])
    heads = ("background", "drawer", "robot", "open: MMRV, paper", "ours", "close: MMRV, paper", "ours")
    heads = (*heads, "both: MMRV, paper", "ours", "both: mean distance, paper", "ours")
    return table(heads, rows, words=3)


def averages(published: Mapping[str, Any]) -> str:
    """Table I: the columns are those of Table IV, the mean of drawer and apple, and the mean of the three."""
    of = {(one["kind"], one["column"]): one for one in published["columns"] if one["table"] == "IV"}
    rows = []
    for one in published["averages"]:
        kind = one["kind"]
        for name, metric in (("mmrv", mmrv), ("pearson", pearson)):

            def value(column: str, kind: str = kind, metric: Any = metric) -> float:
                entry = of[kind, column]
                return float(metric(real=entry["real"], sim=fractions(entry)))

            found = {"pick_coke_can": value("pick_coke_can/average"), "move_near": value("move_near/average")}
            found["drawer"] = fmean((value("drawer/average"), value("place_apple_in_top_drawer/average")))
            found["average"] = fmean(found.values())
            for column, printed in one[name].items():
                shown = [KINDS[kind], "MMRV" if name == "mmrv" else "Pearson", column.replace("_", " ")]
                rows.append([*shown, *beside(printed, found[column])])
    return table(("kind", "number", "task", "paper", "ours"), rows, words=3)


def filled(page: str, published: Mapping[str, Any]) -> str:
    """The page with its tables made new."""
    made = {
        "averages": averages(published),
        "google": pairs(published, "IV"),
        "widowx": pairs(published, "V"),
        "shifts": shifts(published),
        "differing": differing(published),
        "gaps": gaps(published),
        "further": further(published),
    }
    return sections(page, made)


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, lambda: {PAGE: filled(PAGE.read_text(), json.loads(PUBLISHED.read_text()))}))
