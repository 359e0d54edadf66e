"""`manikin policies`: the trained policies that come with manikin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.terminal import NOT_GOOD, OK, bar, console, counted, show_table

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.eval.stats import Interval

__all__ = ["PoliciesOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class PoliciesOptions:
    """Options of `manikin policies`."""

    verify: tuple[str, ...] = ()
    """Compare the files of these policies (all of them: all) with their recorded SHA-256, evaluate them anew, and
    compare with the recorded rate."""
    add: Path | None = None
    """Folder of a training run: make its policy one that comes with manikin (weights in half precision). The run must
    have the recipe that comes with manikin, so that one command makes it again."""
    replace: bool = False
    """With --add: in place of a policy of that name."""


def main(options: Annotated[PoliciesOptions, tyro.conf.arg(name="")]) -> int:
    """List the trained policies that come with manikin, evaluate them anew, or add one."""
    return run(options)


def run(options: PoliciesOptions) -> int:
    """List, verify or add; 1 where a policy is not the file that is recorded, or does not reach what is."""
    from rich.table import Table

    from manikin.assets.paths import file_hash
    from manikin.errors import UnknownNameError
    from manikin.policy.shipped import shipped_policies
    from manikin.policy.trained import read_about

    out, files = console(), shipped_policies()
    if options.add is not None:
        return _add(out, options.add, replace=options.replace)
    if options.verify:
        names = tuple(files) if options.verify == ("all",) else options.verify
        for name in names:
            if name not in files:
                raise UnknownNameError("policy", name, files)
        good = [_verify(out, name, files[name]) for name in names]
        return OK if all(good) else NOT_GOOD
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("policy", "task", "success", "episodes", "kB", "sha256", "made by"):
        table.add_column(heading, no_wrap=True)
    for name, file in files.items():
        about = read_about(file)
        tested = about["tested"]
        rate = f"{tested['rate']:.1%} [{tested['low']:.1%}, {tested['high']:.1%}]"
        size, digest = f"{file.stat().st_size / 1000:.0f}", file_hash(file)[:12]
        table.add_row(name, about["task"], rate, str(tested["episodes"]), size, digest, about["command"])
    show_table(out, table)
    out.print("use one: manikin eval, view or collect with --policy NAME")
    return OK


def _evaluate(out: Console, about: dict[str, Any], file: Path) -> Interval:
    from manikin.eval.evaluation import evaluate
    from manikin.learn.run.recipe import Recipe
    from manikin.learn.run.validate import test_protocol
    from manikin.policy.trained import trained_policy

    protocol = test_protocol(Recipe.from_toml(about["recipe"], source=str(file)))
    with bar(out, about["task"], len(protocol.seeds)) as advance:
        evaluation = evaluate(protocol, trained_policy(file), num_envs=128, on_result=lambda task, result: advance())
    evaluation.raise_if_unhealthy()
    return evaluation.tasks[0].rate(protocol.success)


def _verify(out: Console, name: str, file: Path) -> bool:
    from rich.markup import escape

    from manikin.errors import DataError
    from manikin.policy.shipped import check_shipped
    from manikin.policy.trained import read_about

    try:
        check_shipped(name)
    except DataError as error:
        out.print(f"[red]{escape(str(error))}[/]", soft_wrap=True)
        return False
    about = read_about(file)
    tested, found = about["tested"], _evaluate(out, about, file)
    good = found.high >= tested["low"] and found.low <= tested["high"]
    words = "as recorded" if good else "[red]not what is recorded[/]"
    out.print(f"{name}: its SHA-256 is as recorded; {found}, recorded {tested['rate']:.1%}: {words}", soft_wrap=True)
    return good


def _add(out: Console, folder: Path, *, replace: bool) -> int:
    from manikin.data.recording.durable import write_file
    from manikin.errors import ConfigError
    from manikin.learn.run.contents import with_contents
    from manikin.learn.run.recipe import Recipe, recipe_for
    from manikin.policy.shipped import FOLDER, LARGEST, record_hashes, shipped_policies
    from manikin.policy.trained import load_trained, save_trained

    module, about = load_trained(folder)
    name = f"{about['algorithm']}-{about['task']}"
    place = FOLDER / f"{name}.safetensors"
    if place.exists() and not replace:
        raise ConfigError(f"{name} comes with manikin already: --replace puts that of {folder} in its place")
    own, has_own = recipe_for(about["algorithm"], about["task"])
    if not has_own or with_contents(own).hash != about["recipe_hash"]:
        raise ConfigError(
            f"the run in {folder} has the recipe {about['recipe_hash'][:12]}, and that of {name} which comes with "
            f"manikin is {with_contents(own).hash[:12]}: only a policy that manikin train makes again without options "
            "can be added"
        )
    about["command"] = f"manikin train {about['algorithm']} {about['task']} --seed {about['seed']}"
    network = about.pop("network")
    about.pop("format")
    tested = {"rate": 0.0, "low": 0.0, "high": 0.0, "episodes": 0}
    made = Path(folder) / place.name  # beside the run until it is evaluated, so that nothing half done is shipped
    try:
        save_trained(made, module.half(), network=network, about={**about, "tested": tested})
        if (size := made.stat().st_size) > LARGEST:
            raise ConfigError(f"{name} has {size:,} bytes, more than {LARGEST:,}: train a smaller network")
        found = _evaluate(out, about, made)  # of the weights as they are kept
        rate = {"rate": found.estimate, "low": found.low, "high": found.high}
        episodes = Recipe.from_toml(about["recipe"]).test_episodes
        save_trained(made, module, network=network, about={**about, "tested": {**rate, "episodes": episodes}})
        write_file(place, made.read_bytes())
    finally:
        made.unlink(missing_ok=True)
    record_hashes()
    out.print(f"{name}: {found}; {counted(len(shipped_policies()), 'file')} in all")
    return OK
