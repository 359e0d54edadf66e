"""Fill the tables and curves of docs/homes-tables.md: MS-HAB's published tables beside what is measured here.

python docs/homes_tables.py            # after benchmarks/home_push.py, home_objects.py or home_scenes.py
python docs/homes_tables.py --check    # only say whether they are up to date (exit status 1: they are not)
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filling import alone, finish, numbers, sections

from manikin.eval.stats import wilson
from manikin.learn.run.chart import chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "homes-tables.md"
IMAGES = ROOT / "docs" / "images"
OBJECTS = ROOT / "benchmarks" / "results" / "home_objects.json"
EXPERTS = ROOT / "benchmarks" / "results" / "experts.json"
SCENES = ROOT / "benchmarks" / "results" / "home_scenes.json"
ABLATIONS = ROOT / "benchmarks" / "results" / "home_ablations.json"
PUSH = ROOT / "benchmarks" / "results" / "home_push.json"
PUBLISHED = ROOT / "tests" / "published" / "mshab_tables.json"
KINDS = ("pick", "place", "open", "close")
MORE = 5.0  # [points] above the best published policy are aimed for
TOP, EVERY = 20_000, 250  # [N] of the sweep
Episode = Mapping[str, Any]


class Found:
    """The measured episodes by place; of a part that is not measured there are none."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        self._entries = result["entries"]

    def __call__(self, *places: str) -> list[Episode]:
        """Those of these parts, together; none where one of the parts is missing. ``PART:OBJECT`` are those of a part
        with an object."""
        found: list[Episode] = []
        for place, _, thing in (one.partition(":") for one in places):
            if place not in self._entries:
                return []
            episodes = self._entries[place]["episodes"].values()
            found += [one for one in episodes if not thing or one["object"] == thing]
        return found

    def everything(self, kind: str) -> list[Episode]:
        """Those of the expert in a subtask, all objects, drawers and fridges together."""
        mine = [place for place in self._entries if place.startswith((f"objects/{kind}/", f"objects/{kind} "))]
        return self(*mine)


def rate(won: int, of: int) -> str:
    """A share in percent with its interval, or that there is none."""
    if not of:
        return "not measured"
    interval = wilson(won, of)
    return f"{100 * won / of:.1f} [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def once(episodes: Sequence[Episode], limit: str = "published") -> str:
    """Success once under a limit."""
    return rate(sum(one[limit][1] is not None for one in episodes), len(episodes))


# ---- the published tables --------------------------------------------------------------------------------------------


def ours(kind: str, task: str, thing: str, split: str = "train") -> tuple[str, ...]:
    """Places of the episodes that stand beside a row of the published tables; none where nothing compares."""
    first = {"train": "objects", "val": "validation"}[split]
    if kind in ("open", "close"):
        return (f"{first}/{kind}/{thing}",)
    if task == "prepare_groceries":
        return (f"{first}/{kind} fridge/all",) if thing == "all" else ()
    if task == "tidy_house":
        return (f"{first}/{kind}/nine" + ("" if thing == "all" else f":{thing}"),)
    places = {"013_apple": f"{first}/place/013_apple", "024_bowl": f"{first}/place/nine:024_bowl"}
    if kind == "pick":
        places = {"013_apple": f"{first}/pick fridge/013_apple", "024_bowl": f"{first}/pick drawer/024_bowl"}
    return tuple(places.values()) if thing == "all" else (places[thing],)


def beside(published: Mapping[str, Any], found: Found) -> str:
    """One of the published tables, its rows followed by ours."""
    kind, columns, modes = published["subtask"], published["columns"], published["modes"]
    rows: list[Sequence[str]] = []
    last = len(published["rows"]) - 1
    for k, (task, thing, policy, *values) in enumerate(published["rows"]):
        where = (task.replace("_", " "), thing.replace("_", " "))
        rows.append((*where, policy, *(f"{value:.2f}" for value in values)))
        if k < last and published["rows"][k + 1][:2] == [task, thing]:
            continue
        if episodes := found(*ours(kind, task, thing, published["split"])):
            rows.append((*where, f"**expert here**, {len(episodes)}", *shares(episodes, columns, modes)))
    return numbers(("task", "object", "policy", *columns), rows, words=3)


def shares(episodes: Sequence[Episode], columns: Sequence[str], modes: Mapping[str, str]) -> list[str]:
    """Cells of ours, in the order of the columns of a published table [%]."""
    n = len(episodes)
    counts = Counter(one["published"][0] for one in episodes)
    if strange := set(counts) - set(modes.values()):
        raise SystemExit(f"no column of the published table has the mode {sorted(strange)[0]}")
    at_end = sum(one["published"][2] for one in episodes)
    known = {"SoR": once(episodes), "SaeR": f"{100 * at_end / n:.1f}"}
    return [known.get(column) or f"{100 * counts[modes[column]] / n:.1f}" for column in columns]


def legend(published: Mapping[str, Any]) -> str:
    """What the Roman numbers of a table mean."""
    return "; ".join(f"{number} `{name}`" for number, name in published["modes"].items())


def tables(published: Mapping[str, Any], found: Found) -> dict[str, str]:
    """A section for each of the published tables, by name."""
    made = {}
    for number, one in published["tables"].items():
        scenes = "training scenes" if one["split"] == "train" else "validation scenes"
        head = f"### Table {number}: {one['subtask'].capitalize()}, {scenes}\n\n{legend(one)}.\n\n"
        made[f"table{number}"] = head + beside(one, found)
    return made


def highest(published: Mapping[str, Any], kind: str, task: str, thing: str) -> dict[str, float | None]:
    """By split, success once [%] of the best of the published policies."""
    mine = [task.replace(" ", "_"), thing]
    return {
        one["split"]: max((row[3] for row in one["rows"] if row[:2] == mine), default=None)
        for one in published["tables"].values()
        if one["subtask"] == kind
    }


def summary(published: Mapping[str, Any], found: Found, experts: Mapping[str, Any]) -> str:
    """Success once of each subtask: the best of the published policies, ours, and of the count of all experts."""
    rows = []
    for kind in KINDS:
        for task, thing in (("tidy house", "all"), ("set table", "drawer"), ("set table", "fridge")):
            best = highest(published, kind, task, thing)
            if best["train"] is None:
                continue
            here, there = (found(*ours(kind, task.replace(" ", "_"), thing, split)) for split in ("train", "val"))
            name = f"Home{kind.capitalize()}-v1" + ("/mechanism=fridge" if thing == "fridge" else "")
            longer = experts["entries"][name]
            counted = f"{longer['successes']} of {longer['seeds']}"
            cells = (f"{best['train']:.2f}", f"{best['val']:.2f}", once(here), once(there), str(len(here)), counted)
            rows.append((kind.capitalize(), "nine objects" if thing == "all" else thing, *cells))
    theirs = ("published, training scenes", "published, validation scenes")
    mine = ("expert here, training", "expert here, validation", "episodes of each", "counted before")
    return numbers(("subtask", "of", *theirs, *mine), rows, words=2)


def scenes(published: Mapping[str, Any], result: Mapping[str, Any], split: str) -> str:
    """Success once in ReplicaCAD's training scenes or in the apartments that validate, beside the best published
    policy; of the first also what was aimed for."""
    rows, train = [], split == "train"
    for name, entry in result["subtasks" if train else "validation"].items():
        kind, _, thing = name.partition(" ")
        task = "set table" if thing else "tidy house"
        best = highest(published, kind, task, thing or "all").get(split)
        found, failed = entry["summary"], entry["summary"]["failed"]
        low = sorted(entry["summary"]["scenes"].values(), key=lambda words: int(words.split()[0]))[0]
        theirs = ["-", "-"] if best is None else [f"{best:.2f}", f"{best + MORE:.2f}"]
        reached = "-" if best is None else "yes" if 100 * found["rate"][0] >= best + MORE else "no"
        most = ", ".join(f"`{mode}` {count}" for mode, count in list(failed.items())[:2]) or "-"
        mine = (rate(found["successes"], found["episodes"]), str(found["episodes"]))
        cells = (*theirs, *mine, reached, low, most) if train else (theirs[0], *mine, low, most)
        rows.append((kind.capitalize(), thing or "nine objects" * (kind in ("pick", "place")) or "-", *cells))
    aim, reach = (("aim",), ("reached",)) if train else ((), ())
    heads = ("subtask", "of", "published", *aim, "expert here", "episodes", *reach, "worst scene", "most failures")
    return numbers(heads, rows, words=2)


# ---- forces ----------------------------------------------------------------------------------------------------------


def pushes(push: Mapping[str, Any]) -> str:
    """The reference push."""
    rows = []
    for by, speeds in push["pushes"].items():
        for share, one in speeds.items():
            unit = "rad/s" if by == "arm" else "m/s"
            theirs = f"{one['published']:,.0f}" if "published" in one else ""
            spread = f"{one['sum']:,.0f} [{one['low']:,.0f}, {one['high']:,.0f}]"
            cells = (f"{one['speed']:.2f} {unit}", spread, f"{one['impulse']:,.0f}", f"{one['ratio']:.3f}", theirs)
            rows.append((f"{by}, {share} of full speed", *cells))
    heads = (
        "push",
        "speed before",
        "sum of 20 steps [rows]",
        "20 times the impulse",
        "ratio",
        "by the original's servo",
    )
    return numbers(heads, rows)


def limits(push: Mapping[str, Any], found: Found) -> str:
    """Success once under the published limit, the calibrated one, and none."""
    rows = []
    for kind in KINDS:
        episodes, of = found.everything(kind), push["limits"][kind]
        cells = (f"{of['published']:,.0f}", once(episodes), f"{of['calibrated']:,.0f}", once(episodes, "calibrated"))
        rows.append((kind.capitalize(), str(len(episodes)), *cells, once(episodes, "none")))
    heads = ("subtask", "episodes", "published [N]", "under it", "calibrated [N]", "under it", "without a limit")
    return numbers(heads, rows)


def forces(found: Found) -> str:
    """The distribution of the sums of 200 steps, and of the largest forces of a step."""
    rows = []
    for kind in KINDS:
        for title, episodes in ((f"{kind.capitalize()}, expert", found.everything(kind)), noisy(found, kind, 0.2)):
            if not episodes:
                rows.append((title, "not measured", *[""] * 7))
                continue
            sums = np.array([one["force"] for one in episodes])
            largest = np.array([one["largest"] for one in episodes])
            at = [f"{value:,.0f}" for value in np.percentile(sums, (50, 75, 90, 95, 100))]
            most = [f"{value:,.0f}" for value in np.percentile(largest, (90, 100))]
            rows.append((title, f"{100 * float((sums == 0).mean()):.0f} %", *at, *most))
    heads = ("episodes", "touch nothing", "median", "75 %", "90 %", "95 %", "most", "largest force, 90 %", "most")
    return numbers(heads, rows)


def noisy(found: Found, kind: str, noise: float) -> tuple[str, list[Episode]]:
    return f"{kind.capitalize()}, noise {noise:g}", found(f"graded/{kind}/noise={noise:g}")


def sweep(found: Found, *, noise: float | None = None) -> str:
    """Success once by limit of force."""
    curves = {}
    for kind in KINDS:
        episodes = found.everything(kind) if noise is None else noisy(found, kind, noise)[1]
        at = [one["force_at_success"] for one in episodes if one["force_at_success"] is not None]
        points = [
            (float(x), sum(force < x for force in at) / len(episodes)) for x in range(0, TOP + 1, EVERY) if episodes
        ]
        curves[kind.capitalize()] = [points]
    return alone(chart(curves, across="limit of the sum of forces [N]", up="success once", top=1.0)) + "\n"


# ---- experts of graded quality ---------------------------------------------------------------------------------------


def graded(result: Mapping[str, Any], found: Found) -> str:
    """Success of experts with noise on their actions, by the published rules and by easier ones."""
    rows = []
    for place in result["entries"]:
        first, kind, grade = place.split("/", 2)
        if first != "graded":
            continue
        episodes = found(place)
        zone = rate(sum(one["in_zone"] for one in episodes), len(episodes)) if kind == "place" else ""
        cells = (once(episodes), once(episodes, "none"), zone)
        rows.append((kind.capitalize(), grade.replace("=", " "), str(len(episodes)), *cells))
    rows.sort(key=lambda row: KINDS.index(row[0].lower()))
    heads = ("subtask", "expert with", "episodes", "published rules", "no limit", "no limit, zone")
    return numbers(heads, rows, words=2)


MIX = ("placed_in_goal_success", "dropped_to_goal_success", "winding_success", "dubious_success")


def mix(result: Mapping[str, Any], found: Found) -> str:
    """How the successes of Place are reached, by grade."""
    rows = []
    for place in result["entries"]:
        if not place.startswith("graded/place/"):
            continue
        counts = Counter(one["published"][0] for one in found(place))
        won = sum(one["published"][1] is not None for one in found(place))
        cells = (str(len(found(place))), str(won), *(str(counts[mode]) for mode in MIX))
        rows.append((place.rpartition("/")[2].replace("=", " "), *cells))
    return numbers(("expert with", "episodes", "successes", *(f"`{mode}`" for mode in MIX)), rows)


# ---- policies --------------------------------------------------------------------------------------------------------

_MODES = {"placed_in_goal_success": "placed at the goal", "dropped_to_goal_success": "dropped to it"}


def words(thing: str) -> str:
    """An object's name without its number."""
    return thing.partition("_")[2].replace("_", " ")


def bars(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Rates with their intervals as horizontal bars, in SVG."""
    left, wide, tall = 230, 330, 24
    parts = []
    for k, (name, one) in enumerate(rows):
        y, at = 8 + tall * k, {key: left + wide * one[key] for key in ("rate", "low", "high")}
        parts += [
            f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{name}</text>',
            f'<rect x="{left}" y="{y + 3}" width="{at["rate"] - left:.1f}" height="13" fill="#2f6fd0" opacity="0.75"/>',
            f'<path d="M{at["low"]:.1f},{y + 9.5}H{at["high"]:.1f}" stroke="currentColor" stroke-width="1.5"/>',
            f'<text x="{at["high"] + 8:.1f}" y="{y + 13}">{100 * one["rate"]:.1f} %</text>',
        ]
    end = 14 + tall * len(rows)
    parts.append(f'<path d="M{left},4V{end - 4}" stroke="currentColor" opacity=".4"/>')
    parts.append(
        f'<text x="{left + wide / 2:.0f}" y="{end + 10}" text-anchor="middle">success once, 95 % interval</text>'
    )
    return alone(f'<svg viewBox="0 0 640 {end + 18}" role="img" class="chart">{"".join(parts)}</svg>') + "\n"


def ablated(runs: Mapping[str, Any]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The runs of each ablation, with their titles."""
    objects, counts, modes = (
        [(name.split("/")[1:], one) for name, one in runs.items() if name.startswith(f"{part}/")]
        for part in ("objects", "demonstrations", "modes")
    )
    whose = {"one": "its own policy", "nine": "one for nine"}
    titled = [(f"{words(thing)}, {whose[who]}", one) for (thing, who), one in objects if thing != "all"]
    return {
        "objects": sorted(titled, key=lambda row: row[0].split(",")[0]),
        "demonstrations": sorted(
            ((f"{one['demonstrations']:,} demonstrations", one) for _, one in counts),
            key=lambda row: row[1]["demonstrations"],
        ),
        "modes": [(_MODES[mode], one) for (mode,), one in modes],
    }


def policies(part: str, found: Mapping[str, list[tuple[str, dict[str, Any]]]]) -> str:
    """The table of an ablation of policies; where it is known how their episodes went, with that."""
    ways = list(dict.fromkeys(mode for _, one in found[part] for mode in one.get("ways", ())))
    rows = []
    for title, one in found[part]:
        tested = one["tested"]
        cells = [title, f"{one['demonstrations']:,}", *(f"{100 * tested[key]:.1f}" for key in ("rate", "low", "high"))]
        rows.append([*cells, *(f"{100 * one['ways'].get(mode, 0) / tested['episodes']:.1f}" for mode in ways)])
    heads = ("policy", "demonstrations", "success once", "low", "high", *(f"`{mode}`" for mode in ways))
    return numbers(heads, rows)


def made() -> dict[Path, str]:
    """The text of each file."""
    files = (OBJECTS, PUSH, PUBLISHED, EXPERTS, SCENES, ABLATIONS)
    result, push, published, experts, scanned, trained = (json.loads(one.read_text()) for one in files)
    found, parts_of = Found(result), ablated(trained["runs"])
    parts = {
        "summary": summary(published, found, experts),
        "scenes": scenes(published, scanned, "train"),
        "validation": scenes(published, scanned, "val"),
        "push": pushes(push),
        "limits": limits(push, found),
        "forces": forces(found),
        "graded": graded(result, found),
        "mix": mix(result, found),
        **{f"ablation {part}": policies(part, parts_of) for part in parts_of},
        **tables(published, found),
    }
    return {
        PAGE: sections(PAGE.read_text(), parts),
        IMAGES / "homes-limits.svg": sweep(found),
        IMAGES / "homes-limits-noise.svg": sweep(found, noise=0.2),
        **{
            IMAGES / f"homes-{part}.svg": bars([(title, one["tested"]) for title, one in rows])
            for part, rows in parts_of.items()
            if part != "modes"  # how these end says more than how often they succeed
        },
    }


if __name__ == "__main__":
    sys.exit(finish(sys.argv[1:], __doc__, made))
