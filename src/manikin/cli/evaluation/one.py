"""One policy under a protocol: its episodes, its report, its films."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.assets.paths import file_hash
from manikin.cli.common.documented import documented
from manikin.cli.common.options import RendererWord, WarpOptions, file_name, load_task, register_robot_file
from manikin.cli.common.remember import remember
from manikin.cli.common.terminal import INTERRUPTED, NOT_GOOD, OK, bar, console, counted, rates_table, show_table
from manikin.cli.evaluation.spread import Failed, evaluate_on_workers
from manikin.cli.spread.options import SpreadOptions, plain_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from manikin.eval.evaluation import Evaluation
    from manikin.eval.protocol import Protocol
    from manikin.eval.sequential import Sequential
    from manikin.policy.chunk import Execution

    Question = Callable[[str], Sequential]

__all__ = ["EvalOptions", "Job", "chosen_execution", "chosen_protocol", "evaluate_one", "job_settings", "policy_jobs"]


@dataclass(frozen=True)
class Job:
    """One policy with one seed. ``label``: what the user calls it; "" for its own name."""

    word: str
    label: str = ""
    seed: int | None = None


def policy_jobs(words: tuple[str, ...], seeds: tuple[int, ...]) -> list[Job]:
    """A job for each policy and seed.

    Raises:
        ConfigError: a policy or a seed is there twice.
    """
    from manikin.errors import ConfigError

    jobs = []
    for word in words or ("expert",):
        label, equals, rest = word.partition("=")
        named = bool(equals and rest) and re.fullmatch(r"[\w.-]+", label) is not None
        jobs += [Job(rest, label, seed) if named else Job(word, "", seed) for seed in seeds or (None,)]
    twice = [job for place, job in enumerate(jobs) if job in jobs[:place]]
    if twice:
        seed = "" if twice[0].seed is None else f" with the seed {twice[0].seed}"
        raise ConfigError(f"the policy {twice[0].label or twice[0].word}{seed} is listed twice")
    return jobs


@dataclass(frozen=True, kw_only=True)
class EvalOptions(WarpOptions, SpreadOptions):
    """Options of `manikin eval`."""

    protocol: tyro.conf.Positional[str | None] = None
    """A protocol file (.toml), or the name of one that comes with manikin, such as core or simpler_widowx."""
    variants: str | None = None
    """Every task under several looks: simpler (background, light, distractors, table), or simpler-shifts (and camera).
    Reports each, their mean and by how much each kind of change changes success."""
    policy: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """expert (the default), planner, random, graded:noise=0.3,delay=2 (the expert with faults), policy.pt2 (a network
    by torch.export), ws://host:port (openpi's protocol), or your own as module:function or file.py:function (called
    with the environment). NAME=POLICY gives it another name. Several --policy are evaluated in turn and ranked."""
    real: Path | None = None
    """With several policies: their success on real robots, a JSON file. Adds MMRV and correlations."""
    map: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """With --real: what that file calls a policy or a task, and what it is called here: --map rt-1-x=mine. An empty
    name leaves one out: --map rt-2-x=."""
    convention: str | None = None
    """What the policy is shown and answers, where it is RT-1 or Octo: rt1-google, rt1-bridge, octo-google, octo-bridge,
    or octo-bridge:statistics.json to undo a normalization."""
    policy_seeds: tuple[int, ...] = ()
    """Seeds of a policy that draws random numbers. Each gives another run of the same episodes."""
    inference_ms: float = 0.0
    """Milliseconds that an answer takes. The world goes on meanwhile: the robot executes the rest of the last chunk, or
    stands still."""
    instructions: Path | None = None
    """A TOML file of other sentences for instructions: "pick up the cube" = ["take the cube", "lift the block"]. The
    episode's seed chooses one. The protocol then has another hash."""
    num_envs: int = 64
    """How many episodes run side by side; does not change the result."""
    device: Annotated[str, documented("device", "The report names it.")] = "cpu"
    out: Path | None = None
    """Folder for report.json and report.html; by default runs/eval-PROTOCOL-POLICY[-DEVICE]."""
    resume: bool = False
    """Go on with an evaluation that was interrupted or failed: what it finished is not run again."""
    execute: int | None = None
    """Actions of each chunk to execute before the policy is asked again; by default what the policy says, or all."""
    ensemble: float | None = None
    """Average overlapping chunks with weights exp(-m * i), i = 0 for the oldest; the value is m, for example 0.01. The
    policy is then asked in every step, or after --execute actions. Without both flags the policy's own choice holds."""
    pictures: int = 4
    """Of how many episodes per task the page shows pictures."""
    videos: bool = False
    """Write a film of each of these episodes: at least one of every way in which episodes succeed or fail."""
    renderer: Annotated[RendererWord, documented("renderer", "Of the report.")] = "auto"
    robot: str | None = None
    """The file of a robot of your own that the protocol names: my_arm.py, my_arm.urdf."""
    against: Path | None = None
    """A report.json of another policy under the same protocol: adds a paired comparison."""
    offline: Path | None = None
    """A recording: run no protocol. Rank the policies by the error of their actions on its demonstrations."""
    until: str | None = None
    """End each task once its answer is known: a rate such as 0.9 (is success more or less often?), or better (with
    --against: which of the two policies is?). A wrong answer is as rare as the protocol's confidence says."""
    plan: tuple[float, float] | None = None
    """Run nothing. Say how many episodes tell two success rates apart, for example --plan 0.7 0.8."""
    power: float = 0.8
    """With --plan: the chance that the test finds the difference."""
    correlation: float = 0.0
    """With --plan: between the outcomes of both policies in the same episode."""


def evaluate_one(options: EvalOptions, job: Job, folder: Path | None = None) -> int:
    """Evaluate one policy; ``folder`` is where its report goes."""
    from rich.markup import escape

    from manikin.env.registry import is_own
    from manikin.errors import DataError, ManikinError
    from manikin.eval.evaluation import evaluate
    from manikin.eval.journal import Journal
    from manikin.eval.pages.report import write_html
    from manikin.eval.protocol import task_of
    from manikin.eval.report import about_protocol, as_dict, compare, read_report, refuse_another, write_report
    from manikin.eval.runner import interruptible
    from manikin.eval.variants import shifts
    from manikin.policy.choices import policy_maker
    from manikin.render.api import make_renderer
    from manikin.sim import torch_device

    execution = chosen_execution(options)
    register_robot_file(options.robot)
    out, protocol = console(), chosen_protocol(options)
    maker = policy_maker(job.word, seed=job.seed, convention=options.convention)
    torch_device(options.device)
    for word in protocol.tasks:
        if is_own(task_of(word)):  # a file of one's own, which may not work
            load_task(task_of(word))
    other = read_report(options.against) if options.against else None
    if other is not None:
        refuse_another(about_protocol(protocol), other)
    until = _until(options, protocol, other)
    size = _size(protocol)
    out.print(f"protocol {protocol.name} {protocol.hash[:12]}: {size}")
    on = "" if options.device == "cpu" else f"-{options.device}"
    # of a policy's place only the end, the name of a file or a server
    called = job.label or job.word.rpartition("/")[2]
    folder = folder or options.out or Path("runs") / file_name(f"eval-{protocol.name}-{called}{on}")
    if options.resume and other is None and (healthy := _finished(options, job, protocol, folder)) is not None:
        out.print(f"{folder}: complete", soft_wrap=True)
        return OK if healthy else NOT_GOOD
    finished: list[Evaluation] = []

    def write(evaluation: Evaluation) -> None:
        """The report, also of a part."""
        finished.append(evaluation)
        if not evaluation.tasks:
            return
        evaluation = replace(evaluation, policy=job.label or evaluation.policy, policy_seed=job.seed)
        films = film_names(evaluation) if options.videos else {}
        report = as_dict(
            evaluation, command=_command(options, job), policy_sha256=_policy_file(job.word)[1], films=films
        )
        if options.variants is not None:
            told = {t["named"]: {e["episode_ix"]: e["success"] for e in t["per_episode"]} for t in report["per_task"]}
            found = shifts(options.variants, told, confidence=protocol.confidence)
            report["variants"] = {"set": options.variants, "per_task": found}
        if other is not None:
            report["comparison"] = compare(report, other)
        try:
            write_report(report, folder / "report.json")
            write_html(report, folder / "report.html", evaluation.reels)
            write_films(folder, evaluation, films)
        except OSError as error:
            raise DataError(f"cannot write the report in {folder}: {error.strerror}") from None
        remember(out, folder)
        show_table(out, rates_table(evaluation))
        for task in evaluation.tasks:
            if task.sequential:
                words = task.answer.words if task.answer else "not known after all episodes"
                out.print(f"{task.title}: {words}", soft_wrap=True)
        for row in report["variants"]["per_task"] if "variants" in report else []:
            _print_shifts(out, row)
        for row in report["comparison"] or []:
            _print_comparison(out, row)
        also = f" and {counted(len(films), 'film')}" if films else ""
        out.print(f"report: {folder / 'report.html'}{also}", soft_wrap=True)

    def save(evaluation: Evaluation) -> None:
        """The report of what an error left; that there is no room for it must not hide the error."""
        try:
            write(evaluation)
        except ManikinError as error:
            out.print(f"[red]no report: {escape(str(error))}[/]", soft_wrap=True)

    again = "go on with the same command and --resume"
    failed: Failed = {}
    if options.on is not None:
        found = _on_workers(out, options, job, protocol, folder)
        if found is None:
            return OK if options.on == "slurm-array" else INTERRUPTED
        failed = found
    settings = job_settings(options, job, protocol.hash)
    journal = Journal(folder / "episodes.jsonl", settings, resume=options.resume or options.on is not None)
    try:
        with interruptible() as stop, bar(out, "evaluating", protocol.trials - len(journal)) as advance:
            evaluation = evaluate(
                protocol,
                maker,
                num_envs=options.num_envs,
                execution=execution,
                device=options.device,
                **options.warp(),
                film=options.pictures,
                renderer=make_renderer(options.renderer, samples=2) if options.pictures else None,
                on_result=lambda task, result: advance(),
                on_error=save,
                stop=stop,
                journal=journal,
                until=until,
                inference_ms=options.inference_ms,
                whole_films=options.videos,
                without=failed,
            )
        if failed:
            words = "; ".join(why for episodes in failed.values() for why in episodes.values())
            evaluation = replace(evaluation, interrupted=True, error=words)
        write(evaluation)
        journal.close(remove=not evaluation.interrupted)
    except ManikinError as error:
        if not finished or not finished[-1].tasks:
            raise
        out.print(f"[red]stopped: {escape(str(error))}[/]", soft_wrap=True)
        out.print(f"only finished episodes are counted; {again}")
        return NOT_GOOD
    finally:
        # one without an episode has nothing to go on with
        journal.close(remove=not len(journal))
    if failed:
        out.print(f"[red]{counted(sum(map(len, failed.values())), 'episode')} failed[/]; {again}")
        return NOT_GOOD
    if evaluation.interrupted:
        if not evaluation.tasks:
            out.print("interrupted before the first episode ended")
        else:
            out.print(f"interrupted: only finished episodes are counted; {again}")
        return INTERRUPTED
    if not evaluation.healthy:
        out.print("[red]unhealthy episodes: these rates are not valid[/] (see Health in the report)")
        for task in evaluation.tasks:
            if task.advice:
                out.print(f"{task.title}: {escape(task.advice)}", soft_wrap=True)
        return NOT_GOOD
    return OK


def _on_workers(out: Console, options: EvalOptions, job: Job, protocol: Protocol, folder: Path) -> Failed | None:
    """Run what is left of an evaluation on workers; what failed, or None where it is not for this process to go on."""
    from manikin.errors import ConfigError

    if options.until is not None:
        raise ConfigError("--until decides after each episode whether to go on: leave out --on")
    settings = {"options": plain_options(replace(options, out=None, resume=False)), "job": vars(job)}
    return evaluate_on_workers(
        out,
        options,
        protocol,
        folder=folder,
        settings={**settings, "protocol": protocol.hash},
        same=job_settings(options, job, protocol.hash),
        num_envs=options.num_envs,
        device=options.device,
        resume=options.resume,
        files=[options.protocol, job.word, options.robot],
    )


def chosen_execution(options: EvalOptions) -> Execution | None:
    """How a policy's chunks are executed; None for its own choice."""
    from manikin.policy.chunk import Execution

    asked = options.execute is not None or options.ensemble is not None
    return Execution(options.execute, options.ensemble) if asked else None


def chosen_protocol(options: EvalOptions) -> Protocol:
    """The protocol, in the variants of ``--variants`` and the words of ``--instructions``."""
    from manikin.eval.protocol import load_protocol
    from manikin.eval.variants import vary

    assert options.protocol is not None
    protocol = load_protocol(options.protocol)
    if options.variants is not None:
        protocol = vary(protocol, options.variants)
    return protocol if options.instructions is None else _in_other_words(protocol, options.instructions)


def _in_other_words(protocol: Protocol, file: Path) -> Protocol:
    """The protocol with the paraphrases of a file."""
    import tomllib

    from manikin.errors import ConfigError

    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the instructions {file} cannot be read: {error}") from None
    return replace(protocol, paraphrases=read)


def film_names(evaluation: Evaluation) -> dict[tuple[str, int], str]:
    """The protocol's word for a task and the number of an episode -> its film, from the report's folder."""
    names = {}
    for task in evaluation.tasks:
        results = {result.number: result for result in task.results}
        for reel in evaluation.reels.get(task.task, ()):
            result = results[reel.number]
            won = result.success(evaluation.protocol.success, task.held_steps)
            mode = result.mode or ("success" if won else "failure")
            seed = f"{result.seed}-{result.index}" if result.index else str(result.seed)
            name = file_name(f"{task.title}-{mode}-{seed}.mp4".replace(", ", "-"))
            names[task.task, reel.number] = f"videos/{name}"
    return names


def write_films(folder: Path, evaluation: Evaluation, names: Mapping[tuple[str, int], str]) -> None:
    """Films of an evaluation's reels, one file each."""
    from manikin.eval.film import write_film

    rates = {task.task: float(task.fingerprint.get("control_hz") or 20.0) for task in evaluation.tasks}
    reels = {(task, reel.number): reel for task, of in evaluation.reels.items() for reel in of}
    for (task, number), name in names.items():
        write_film(folder / name, [reels[task, number]], rates[task])


def _size(protocol: Protocol) -> str:
    counts = {len(protocol.seeds_of(task)) for task in protocol.tasks}
    tasks = counted(len(protocol.tasks), "task")
    if len(counts) == 1:
        return f"{tasks}, {counted(counts.pop(), 'episode')} each"
    return f"{tasks}, {counted(protocol.trials, 'episode')} in all"


def _command(options: EvalOptions, job: Job) -> str:
    """The line that makes the report again."""
    policy = f"{job.label}={job.word}" if job.label else job.word
    words = ["manikin", "eval", str(options.protocol), "--policy", policy]
    words += ["--variants", options.variants] if options.variants is not None else []
    words += ["--execute", str(options.execute)] if options.execute is not None else []
    words += ["--ensemble", repr(options.ensemble)] if options.ensemble is not None else []
    words += ["--convention", options.convention] if options.convention is not None else []
    words += ["--policy-seeds", str(job.seed)] if job.seed is not None else []
    words += ["--inference-ms", f"{options.inference_ms:g}"] if options.inference_ms else []
    words += ["--instructions", str(options.instructions)] if options.instructions is not None else []
    words += ["--device", options.device] if options.device != "cpu" else []
    words += ["--budget", options.budget] if options.budget is not None else []
    words += ["--deterministic"] if options.deterministic else []
    words += ["--robot", options.robot] if options.robot is not None else []
    words += ["--until", options.until] if options.until is not None else []
    words += ["--against", str(options.against)] if options.until == "better" else []
    return shlex.join(words)


def _until(options: EvalOptions, protocol: Protocol, other: Mapping[str, Any] | None) -> Question | None:
    """What makes the sequential test of a task, by the word of ``--until``."""
    from manikin.errors import ConfigError
    from manikin.eval.report import outcomes
    from manikin.eval.sequential import Sequential

    if options.until is None:
        return None
    if options.until == "better":
        if other is None:
            raise ConfigError("--until better compares with another policy: give its report with --against")
        return lambda task: Sequential(against=outcomes(other, task), confidence=protocol.confidence)
    try:
        threshold = float(options.until)
    except ValueError:
        raise ConfigError(f"--until takes a success rate such as 0.9, or better; got {options.until!r}") from None
    Sequential(threshold=threshold)  # a rate that cannot be is refused before anything runs
    return lambda task: Sequential(threshold=threshold, confidence=protocol.confidence)


def _finished(options: EvalOptions, job: Job, protocol: Protocol, folder: Path) -> bool | None:
    """Whether a folder's finished evaluation is healthy; None where there is none, or it is to go on.

    Raises:
        DataError: it is of another protocol, of another policy, or made with other options.
    """
    from manikin.errors import DataError
    from manikin.eval.report import read_report

    file = folder / "report.json"
    if not file.is_file() or (folder / "episodes.jsonl").exists():
        return None
    report = read_report(file)
    if report["interrupted"]:
        return None
    words = [shlex.join(shlex.split(line)[3:]) for line in (report["command"], _command(options, job))]
    now = {
        "protocol": (report["protocol"]["hash"][:12], protocol.hash[:12]),
        "options": tuple(words),
        "SHA-256 of the policy": (report.get("policy_sha256"), _policy_file(job.word)[1]),
    }
    if said := [
        f"{name}: {then!r} in the report, {this!r} now"
        for name, (then, this) in now.items()
        if this is not None and then != this  # the file of a server's policy is known to the server alone
    ]:
        raise DataError(
            f"{file} is of another evaluation: {'; '.join(said)}. Write to another folder, or evaluate again without "
            "--resume"
        )
    return bool(report["healthy"])


def _policy_file(word: str) -> tuple[Path | None, str | None]:
    """The file that holds a policy, and its SHA-256; of a run's folder the network's."""
    from manikin.policy.choices import policy_file

    file = policy_file(word)
    return file, None if file is None else file_hash(file)


def job_settings(options: EvalOptions, job: Job, protocol: str) -> dict[str, Any]:
    """What must be the same where an evaluation is resumed. A policy in a file is the file's content."""
    file, sha256 = _policy_file(job.word)
    return {
        "protocol": protocol,
        "policy": job.word if file is None else job.word.replace(str(file), file.name),
        "file": sha256,
        "execute": options.execute,
        "ensemble": options.ensemble,
        "device": options.device,
        "deterministic": options.deterministic,
        "until": options.until,
        "convention": options.convention,
        "policy_seed": job.seed,
        "inference_ms": options.inference_ms or None,
    }


def _print_shifts(out: Console, row: Mapping[str, Any]) -> None:
    changes = ", ".join(
        f"{shift} {100 * change:.1f} \\[{100 * row['interval'][shift][0]:.1f}, {100 * row['interval'][shift][1]:.1f}]"
        for shift, change in row["delta_success"].items()
    )
    out.print(
        f"{row['task']}: {row['base']:.1%} as it is, {row['mean']:.1%} on average over {row['variants']} variants; "
        f"mean change by shift \\[points]: {changes}",
        soft_wrap=True,
    )


def _print_comparison(out: Console, row: Mapping[str, Any]) -> None:
    out.print(
        f"{row['task']}: {row['policies'][0]} - {row['policies'][1]} = {100 * row['difference']:+.1f} points "
        f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}] (bootstrap [{100 * row['resampled_low']:+.1f}, "
        f"{100 * row['resampled_high']:+.1f}]), McNemar p = {row['p_value']:.2g}"
    )
    if len(set(row["devices"])) > 1:
        out.print(f"{row['task']}: simulated on {' and '.join(row['devices'])}, whose physics rounds differently")
