"""Fill tables and curves of docs/training*.md, homes-learning.md and robosuite.md from the results of benchmarks.

python docs/training.py            # after benchmarks/learning.py, imitation.py or robosuite.py
python docs/training.py --check    # only say whether it is up to date (exit status 1: it is not)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from filling import alone, finish, sections

from manikin.learn.run.chart import chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"
PICTURE = ROOT / "docs" / "images" / "training.svg"
RESULT = ROOT / "benchmarks" / "results" / "learning.json"
BESIDE = ROOT / "docs" / "images" / "training-maniskill.svg"
PEER = ROOT / "benchmarks" / "results" / "beside_maniskill.json"
ROBOSUITE = ROOT / "docs" / "robosuite.md"
BENCHMARK = ROOT / "benchmarks" / "results" / "robosuite.json"
IMITATION = ROOT / "docs" / "training-imitation.md"
PICTURES = ROOT / "docs" / "training-pictures.md"
IMITATED = ROOT / "benchmarks" / "results" / "imitation.json"
AT_HOME = ROOT / "docs" / "homes-learning.md"
HOMES = ROOT / "benchmarks" / "results" / "homes_learning.json"
HOME_CURVES = ROOT / "docs" / "images" / "homes-learning.svg"
MSHAB = {  # run: aim; success once in percent, MS-HAB's Table 1, training scenes: RL for each object, and its BC
    "diffusion:HomeClose-v1": (0.80, 88.79, 88.39),
    "diffusion:HomeOpen-v1": (0.60, 84.92, 79.86),
    "clone:HomeOpen-v1": (0.60, 84.92, 79.86),
    "bc:HomeClose-v1": (0.80, 88.79, 88.39),
    "diffusion:HomePick-v1": (0.40, 81.75, 61.11),
    "bc:HomePick-v1": (0.40, 81.75, 61.11),
}
# success in percent of the best checkpoint by state: algorithm -> number of demonstrations -> success
MANISKILL = {  # tables II and III of Tao et al. (2024), arXiv:2410.00425: the best of an evaluation of 100 episodes
    "PickCube-v2": {"bc": {100: 0, 1000: 3}, "diffusion": {100: 100, 1000: 100}, "act": {100: 70, 1000: 100}},
    "PushCube-v2": {"bc": {100: 69, 1000: 81}, "diffusion": {100: 95, 1000: 96}, "act": {100: 99, 1000: 97}},
    "StackCube-v2": {"bc": {100: 0, 1000: 0}, "diffusion": {100: 90, 1000: 99}, "act": {100: 50, 1000: 97}},
    "PegInsertionSide-v2": {"bc": {100: 0, 1000: 0}, "diffusion": {100: 38, 1000: 66}, "act": {100: 14, 1000: 43}},
}
SEEN = {"PickCube-v2": {"diffusion": {100: 76, 1000: 100}}}  # 128 x 128 pixels, the same tables
HUMAN = {  # 200 human demonstrations: LSTM-GMM and DP-CNN, best checkpoint; Chi et al. (2023), table I
    "Lift-v2": {"bc": 100, "diffusion": 100},
    "PickPlaceCan-v2": {"bc": 100, "diffusion": 100},
    "NutAssemblySquare-v4": {"bc": 95, "diffusion": 100},
}
BASELINES = "https://github.com/haosulab/ManiSkill/tree/main/examples/baselines"
FLASH = "https://github.com/Holiday-Robot/FlashSAC"
ROBOSUITE_LOGS = "https://github.com/ARISE-Initiative/robosuite-benchmark"
sys.path.insert(0, str(ROOT / "benchmarks"))


def table(result: dict[str, Any]) -> str:
    """A line for each recipe and seed, and its median beside the target; also for what is not measured."""
    from learning import TARGETS

    heads = ("recipe", "seed", "tested success [95 %]", "at the end", "control steps", "minutes", "CPU minutes / 2")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for run in dict.fromkeys([*result["runs"], *TARGETS]):
        seeds = result["runs"].get(run, {})
        for seed, one in seeds.items():
            end = f"{100 * one['tested']['at_end']:.1f} %" if one["tested"] else "-"
            wall = "-" if one["seconds"] is None else f"{one['seconds'] / 60:.1f}"
            cells = (
                *(f"`{_words(run)}`", seed, _said(one), end, f"{one['steps']:,}"),
                *(wall, f"{one['cpu_seconds'] / 120:.1f}"),
            )
            lines.append(f"| {' | '.join(cells)} |")
        if run in TARGETS:
            lines.append(_line(_judged(run, _tested(seeds))))
    return "\n".join(lines)


def _said(one: dict[str, Any]) -> str:
    """The tested rate, or what a run that was not tested had in validation."""
    return _rate(one) if one["tested"] else f"not yet; {100 * one['validated']:.1f} % in validation"


def _tested(seeds: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {seed: one for seed, one in seeds.items() if one["tested"]}


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _judged(run: str, seeds: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Cells of the median of a run's seeds, and whether it is what was wanted."""
    from learning import SEEDS, TARGETS, final_return

    least, minutes, of = TARGETS[run]
    rate = of == "success"
    wanted = f"lower end above {100 * least:.0f} %" if rate else f"final return of {least:g} or more"
    words = f"target: {wanted} in {minutes:.0f} min"
    if not seeds:
        return (f"`{_words(run)}`", "", "not measured", words, "", "", "")
    found = median(one["tested"]["low"] if rate else final_return(one["curve"]) or 0.0 for one in seeds.values())
    took = median((one["seconds"] or one["cpu_seconds"] / 2) / 60 for one in seeds.values())
    met = "met" if (found > least if rate else found >= least) and took <= minutes else "not met"
    met = met if len(seeds) >= len(SEEDS) else f"{len(seeds)} of {len(SEEDS)} seeds measured"
    reached = f"lower end {100 * found:.1f} %" if rate else f"final return {found:.0f}"
    return ("", "median", reached, f"{words}: **{met}**", "", f"{took:.1f}", "")


REPORTED = (  # run, what others report, where
    ("ppo:PickCube-v2", "near 100 % in about 1 min (RTX 4090)", "[paper](https://arxiv.org/abs/2410.00425), figure 11"),
    ("ppo:PushCube-v2", "2 M steps, less than 1 min (GPU)", f"[PPO]({BASELINES}/ppo)"),
    ("ppo:PullCube-v2", "100 % from 5 M steps on, 3 seeds", f"[logs]({FLASH})"),
    ("ppo:LiftPegUpright-v2", "56 % after 5 M steps, 76 % after 20 M, 6 seeds", f"[logs]({FLASH})"),
    ("ppo:StackCube-v2", "25 M steps; no rate is given", f"[PPO]({BASELINES}/ppo)"),
    ("ppo:PegInsertionSide-v2", "53 % after 50 M steps, 92 % after 100 M, 3 seeds", f"[logs]({FLASH})"),
    ("sac:PickCube-v2", "1 M steps with 32 rows (GPU); no rate is given", f"[SAC]({BASELINES}/sac)"),
    ("sac:Lift-v2", "return 425 ± 25 after 1.25 M steps, 24 h", f"[logs]({ROBOSUITE_LOGS})"),
    ("sac:Door-v2", "return 452 ± 4 after 1.25 M steps, 25 h", f"[logs]({ROBOSUITE_LOGS})"),
    ("rlpd:PickCube-v2", "about 50,000 steps; or 200,000, a few minutes (GPU); 1,000 demonstrations",
     f"[RLPD]({BASELINES}/rlpd)"),
    ("rfcl:PickCube-v2", "less than 10 min (RTX 4090), 5 demonstrations", f"[RFCL]({BASELINES}/rfcl)"),
    ("rfcl:PegInsertionSide-v2", "less than 60 min (RTX 4090), 5 demonstrations", f"[RFCL]({BASELINES}/rfcl)"),
)  # fmt: skip


def reported(result: dict[str, Any]) -> str:
    """What others report of a task beside what was measured here."""
    from learning import TARGETS, final_return

    heads = ("recipe", "others", "where", "here", "control steps", "minutes")
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|---:|---:|---:|"]
    for run, theirs, where in REPORTED:
        seeds = list(_tested(result["runs"].get(run, {})).values())
        cells = ["not measured", "", ""]
        if seeds:
            rates = [100 * one["tested"]["rate"] for one in seeds]
            ours = _range(rates, "{:.1f}", " %")
            if run in TARGETS and TARGETS[run].of == "return":
                ours = "return " + _range([final_return(one["curve"]) or 0.0 for one in seeds], "{:.0f}", "")
            steps = _range([one["steps"] / 1e6 for one in seeds], "{:.2f}", " M")
            cells = [ours, steps, _range([one["cpu_seconds"] / 120 for one in seeds], "{:.1f}", "")]
        lines.append(_line([f"`{_words(run)}`", theirs, where, *cells]))
    return "\n".join(lines)


def _range(values: Sequence[float], form: str, unit: str) -> str:
    ends = [form.format(value) for value in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends)) + unit


def aims(result: dict[str, Any]) -> str:
    """What was aimed for in imitation, and whether it is reached."""
    from imitation import AIMS

    lines = ["| run | aim | tested [95 %] | reached |", "|---|---:|---:|---|"]
    for (task, algorithm, count), aim in AIMS.items():
        seeds = result["cells"].get(task, {}).get(algorithm, {}).get(str(count), {})
        for one in seeds.values() or (None,):
            cells = ["not measured", ""]
            if one is not None:
                tested = one["tested"]
                words = "yes" if tested["low"] > aim else "no"
                if tested["low"] <= aim < tested["rate"]:
                    words = "by the estimate, not by the lower end of the interval"
                cells = [_rate(one), words]
            lines.append(_line([f"`{algorithm}` {task}, {count:,}", f"{100 * aim:.0f} %", *cells]))
    return "\n".join(lines)


_SPENT = ("environment", "update", "policy", "validation")


def throughput(result: dict[str, Any]) -> str:
    """Control steps per second of each run, and where the time of its loop went."""
    heads = ("recipe", "seed", "steps per second", "steps per CPU second", *_SPENT)
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for run, seeds in result["runs"].items():
        for seed, one in seeds.items():
            seconds = one.get("loop", {}).get("seconds") or (one["curve"][-1][1] if one["curve"] else 0)
            idle = one["seconds"] is not None and seconds
            first = one.get("teacher", one.get("begin_from", {}))
            own = one["cpu_seconds"] - first.get("cpu_seconds", 0.0)
            spent = one.get("loop", {}).get("spent", {})
            shares = [f"{100 * spent[name] / seconds:.0f} %" if name in spent else "-" for name in _SPENT]
            rate = _to_ten(one["steps"] / seconds) if idle else "-"
            lines.append(_line((f"`{_words(run)}`", seed, rate, _to_ten(one["steps"] / own), *shares)))
    return "\n".join(lines)


def _to_ten(rate: float) -> str:
    return f"{round(rate, -1):,.0f}"


def _words(run: str) -> str:
    """What is typed after ``manikin train``."""
    from learning import DEMONSTRATED

    name, task = run.split(":")
    if name not in DEMONSTRATED:
        return f"{name} {task}"
    return " ".join([f"sac {task} --demos demos.h5", *(f"--set {one}" for one in DEMONSTRATED[name])])


def curves(result: dict[str, Any]) -> str:
    found = {
        _words(run): [[(at[0], at[2]) for at in one["curve"]] for one in seeds.values()]
        for run, seeds in result["runs"].items()
    }
    return alone(chart(found, across="control steps", up="success in validation", top=1.0))


def at_home(result: dict[str, Any]) -> str:
    """What was learned in homes beside what was aimed for and what MS-HAB published."""
    heads = ("run", "seed", "tested [95 %]", "aim", "MS-HAB, RL", "MS-HAB, BC", "steps", "CPU minutes")
    lines = [_line(heads), "|---|" + "---:|" * (len(heads) - 1)]
    for run, (aim, *published) in MSHAB.items():
        theirs = [f"{100 * aim:.0f} %", *(f"{value} %" for value in published)]
        seeds = result["runs"].get(run, {})
        if not seeds:
            lines.append(_line([f"`{_words(run)}`", "", "not measured", *theirs, "", ""]))
        for seed, one in seeds.items():
            spent = (f"{one['steps']:,}", f"{one['cpu_seconds'] / 60:.1f}")
            lines.append(_line([f"`{_words(run)}`", seed, _said(one), *theirs, *spent]))
    return "\n".join(lines)


def home_curves(result: dict[str, Any]) -> str:
    """Of the runs that were validated more than once. Their steps are of different kinds, their minutes are not."""
    found = {
        _words(run): [[(at[1] / 60, at[2]) for at in one["curve"]] for one in seeds.values()]
        for run, seeds in result["runs"].items()
        if all(len(one["curve"]) > 1 for one in seeds.values())
    }
    return alone(chart(found, across="minutes", up="success in validation", top=1.0))


def beside(result: dict[str, Any]) -> str:
    found = {name: [[(at[0] / 60, at[2]) for at in one["curve"]]] for name, one in result["runs"].items()}
    across = "minutes" if result.get("clock") == "wall" else "minutes of processor time"
    return alone(chart(found, across=across, up="success in validation", top=1.0))


def imitated(result: dict[str, Any]) -> str:
    """Success by task, algorithm and number of demonstrations beside what others published, and how the measured runs
    went."""
    from imitation import ALGORITHMS, COUNTS, TASKS

    heads = ["task", "algorithm", *(f"{count:,} demonstrations | published" for count in COUNTS)]
    lines = [f"| {' | '.join(heads)} |", "|---|---|" + "---:|---:|" * len(COUNTS)]
    runs = [f"| run | seed | {' | '.join(_RUN)} |", "|---|" + "---:|" * (1 + len(_RUN))]
    for task in TASKS:
        for algorithm in ALGORITHMS:
            cells = [task, f"`{algorithm}`"]
            for count in COUNTS:
                seeds = result["cells"].get(task, {}).get(algorithm, {}).get(str(count), {})
                cells.append("<br>".join(map(_rate, seeds.values())) or "not measured")
                cells.append(_published(task, algorithm, count))
                runs += [f"| `{algorithm}` {task}, {count:,} | {seed} | {_how(one)} |" for seed, one in seeds.items()]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *(["", *runs] if len(runs) > 2 else [])])


_RUN = (
    "best, tested",
    "last, tested",
    "gradient steps",
    "CPU minutes",
    "horizon",
    "controller",
    "a demonstration",
    "pushes",
)


def pictured(result: dict[str, Any]) -> str:
    """Success of what was learned from rendered demonstrations, beside what others published."""
    heads = ("run", "published", "seed", "best, tested", "last, tested", "gradient steps", "CPU minutes")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for task, algorithms in result.get("pictures", {}).items():
        for algorithm, counts in algorithms.items():
            for count, seeds in counts.items():
                value = SEEN.get(task, {}).get(algorithm, {}).get(int(count))
                name = f"`{algorithm}` {task}, {int(count):,} | {'-' if value is None else f'{value} %'}"
                lines += [f"| {name} | {seed} | {_spent(one)} |" for seed, one in seeds.items()]
    return "\n".join(lines)


def _spent(one: dict[str, Any]) -> str:
    return f"{_rate(one)} | {_rate(one, 'tested_last')} | {one['steps']:,} | {one['cpu_seconds'] / 60:.1f}"


def _rate(one: dict[str, Any], of: str = "tested") -> str:
    return f"{100 * one[of]['rate']:.1f} % [{100 * one[of]['low']:.1f}, {100 * one[of]['high']:.1f}]"


def _how(one: dict[str, Any]) -> str:
    cells = (
        _spent(one),
        f"{one['horizon']} steps",
        f"`{one['control']}`",
        f"{one['demonstration_length']} steps",
        f"{100 * one['pushes']:g} %" if one["pushes"] else "none",
    )
    return " | ".join(cells)


def _published(task: str, algorithm: str, count: int) -> str:
    if (value := MANISKILL.get(task, {}).get(algorithm, {}).get(count)) is not None:
        return f"{value} %"
    human = HUMAN.get(task, {}).get(algorithm)
    return "-" if human is None else f"{human} % (human)"


def made() -> dict[Path, str]:
    """The text of each file."""
    from robosuite import table as returns

    learned, imitation, home = (json.loads(one.read_text()) for one in (RESULT, IMITATED, HOMES))
    tables = {"learning": table(learned), "throughput": throughput(learned), "reported": reported(learned)}
    return {
        PAGE: sections(PAGE.read_text(), tables),
        PICTURE: curves(learned) + "\n",
        BESIDE: beside(json.loads(PEER.read_text())) + "\n",
        ROBOSUITE: sections(ROBOSUITE.read_text(), {"robosuite": returns(json.loads(BENCHMARK.read_text()))}),
        IMITATION: sections(IMITATION.read_text(), {"imitation": imitated(imitation), "aims": aims(imitation)}),
        HOME_CURVES: home_curves(home) + "\n",
        AT_HOME: sections(AT_HOME.read_text(), {"homes": at_home(home)}),
        PICTURES: sections(PICTURES.read_text(), {"pictures": pictured(imitation)}),
    }


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
