"""`manikin eval`: a success rate under a protocol, with a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import tyro

from manikin.cli.common.terminal import OK, console
from manikin.cli.evaluation.one import EvalOptions, evaluate_one, policy_jobs
from manikin.moved import old_names

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["EvalOptions", "main", "run"]


def main(options: Annotated[EvalOptions, tyro.conf.arg(name="")]) -> int:
    """Evaluate a policy under a frozen protocol: every episode once, intervals, health, one page of report."""
    return run(options)


def run(options: EvalOptions) -> int:
    """Evaluate; 0 done, 1 unhealthy or stopped by an error, 130 interrupted. The report then holds what is finished and
    says so, and ``--resume`` goes on."""
    from manikin.errors import ConfigError

    options.check_spread()
    if options.plan is not None:
        return _plan(console(), options)
    jobs = policy_jobs(options.policy, options.policy_seeds)
    if options.offline is not None:
        from manikin.cli.evaluation.offline import run_offline

        return run_offline(console(), options, jobs)
    if options.protocol is None:
        raise ConfigError("name a protocol: a file (.toml), core or pick-cube; or ask --plan RATE RATE")
    if len(jobs) == 1:
        if options.real is not None or options.map:
            raise ConfigError("--real compares policies: give --policy twice or more")
        return evaluate_one(options, jobs[0])
    from manikin.cli.evaluation.several import evaluate_several

    return evaluate_several(options, jobs)


def _plan(out: Console, options: EvalOptions) -> int:
    """Print how many episodes tell two rates apart."""
    from manikin.eval.planning import MOST, episodes_for_width, plan

    assert options.plan is not None
    found = plan(*options.plan, power=options.power, correlation=options.correlation)
    sure = f"in {found.power:.0%} of experiments, at {100 * found.confidence:.0f} % confidence:"
    out.print(f"To tell {found.first:.1%} from {found.second:.1%}, {sure}", soft_wrap=True)
    common = f"{found.common:,} episodes" if found.common else f"more than {MOST:,} episodes"
    out.print(f"  the same episodes for both policies (--against):    {common} each")
    if found.stopped:
        words = f"{found.stopped:,} episodes in half of the runs"
        out.print(f"  the same, ending once it is known (--until better): {words}", soft_wrap=True)
    out.print(f"  other episodes for each policy:                     {found.other:,} episodes each")
    width = episodes_for_width(found.first, 0.05)
    out.print(f"One rate near {found.first:.1%} within 5 points to either side: {width:,} episodes")
    return OK


__getattr__ = old_names(__name__)
