"""`manikin sysid`: the parameters with which the simulator follows recorded motions."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from manikin.cli.common.terminal import INTERRUPTED, OK, bar, console
from manikin.cli.spread.options import SpreadOptions
from manikin.cli.spread.search import shared_search
from manikin.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.spread.blackboard import Blackboard
    from manikin.sysid import Identified, Trajectories

__all__ = ["SysidOptions", "main", "run", "searched"]


@dataclass(frozen=True, kw_only=True)
class SysidOptions(SpreadOptions):
    """Options of `manikin sysid`."""

    source: tyro.conf.Positional[Path]
    """File of trajectories (.json, .npz, .h5), a recording of manikin, a recording of your own (a folder with
    recording.toml, or .h5), a pickle of SIMPLER's; or the word bridge or collins for what MANIKIN_DATA holds."""
    vary: tuple[str, ...] = ()
    """What may change, with its range: kp=600:1400 kd/waist=100:500 friction=0:2:tied armature=0.001:1:log
    delay=0:0.3."""
    kind: Literal["trajectories", "recording", "own", "simpler", "bridge", "collins"] | None = None
    """What the file is; by default as its ending and content say."""
    robot: str | None = None
    """A robot word; default the one that was recorded."""
    control: str | None = None
    """The controller; default the one that was recorded."""
    control_hz: float | None = None
    """Rate of the recordings [Hz]; another one in the file is an error. A pickle of SIMPLER's does not say it."""
    physics_hz: float = 500.0
    """Physics steps per second of the simulator that is to follow."""
    loss: Literal["pose", "position", "joints"] | None = None
    """pose: metres plus half radians, as SIMPLER. Default the first for which everything is recorded."""
    methods: tuple[Literal["anneal", "cma", "squares"], ...] = ("anneal", "squares")
    """Ways to search, one after the other."""
    rounds: int = 3
    """Rounds of annealing; each has narrower ranges."""
    candidates: int = 400
    """Candidates of a round, or in all of cma."""
    trajectories: tuple[str, ...] = ()
    """Names of the trajectories to follow; default all."""
    seed: int = 0
    """Of the search."""
    batch: int | None = None
    """Candidates at a time; does not change the result."""
    device: str = "cpu"
    """cpu, cuda, or warp:cpu for tests."""
    threads: int = 0
    """Physics threads, 0 for all cores; does not change the result."""
    out: Path = Path("identified")
    """Folder for identified.toml, which is a robot word, and index.html."""
    resume: bool = False
    """Go on with a search that was interrupted."""


def main(options: Annotated[SysidOptions, tyro.conf.arg(name="")]) -> int:
    """Find gains, friction, armature and delay with which the simulator follows recorded motions."""
    return run(options)


def run(options: SysidOptions) -> int:
    """Search; 0 done, 1 workers failed, 130 interrupted."""
    options.check_spread()
    out = console()
    recorded = _recorded(options)
    out.print(
        f"{len(recorded)} trajector{'y' if len(recorded) == 1 else 'ies'} of {recorded.robot} under "
        f"{recorded.control} at {recorded.control_hz:g} Hz",
        soft_wrap=True,
    )
    if options.on is None:
        return _search(out, options)
    return shared_search(
        out,
        options,
        work="manikin.cli.workers.searching:SysidWork",
        made="identified.toml",
        finish=lambda board: _search(out, options, board),
        files=[options.source, options.robot],
    )


def _search(out: Console, options: SysidOptions, board: Blackboard | None = None) -> int:
    """Search, and write what was found."""
    from manikin.sysid.result import save

    chains = _chains(options)
    totals = {"anneal": options.rounds * (options.candidates // chains) * chains, "cma": options.candidates}
    total = 1 + sum(totals.get(name, 0) for name in options.methods)
    try:
        with bar(out, "searching", total) as advance:

            def count(candidates: int) -> None:
                for _ in range(candidates):
                    advance()

            found = searched(options, board, count)
    except KeyboardInterrupt:
        out.print("interrupted; repeat the command with --resume")
        return INTERRUPTED
    path = save(found, options.out)
    out.print(found.summary(), soft_wrap=True, markup=False)
    out.print(f"page: {options.out / 'index.html'}\nuse it: --robot {shlex.quote(str(path))}", soft_wrap=True)
    return OK


def searched(options: SysidOptions, board: Blackboard | None, on_candidates: Callable[[int], None]) -> Identified:
    """What the options search for; with a board, together with others who search for the same."""
    from manikin.sysid import Anneal, Cma, Squares, identify
    from manikin.sysid.methods import Method

    ways: dict[str, Method] = {
        "anneal": Anneal(rounds=options.rounds, candidates=options.candidates, chains=_chains(options)),
        "cma": Cma(candidates=options.candidates),
        "squares": Squares(),
    }
    return identify(
        _recorded(options),
        options.vary,
        robot=options.robot,
        control=options.control,
        control_hz=options.control_hz,
        physics_hz=options.physics_hz,
        loss=options.loss,
        methods=[ways[name] for name in options.methods],
        seed=options.seed,
        batch=options.batch,
        device=options.device,
        threads=options.threads,
        folder=options.out if board is None else None,
        resume=options.resume,
        board=board,
        on_candidates=on_candidates,
    )


def _chains(options: SysidOptions) -> int:
    return max(1, min(40, options.candidates // 10))


def _recorded(options: SysidOptions) -> Trajectories:
    """The trajectories that the options name.

    Raises:
        ConfigError: a pickle of SIMPLER's without the options that it lacks. DataError: it cannot be read.
    """
    found = _read(options)
    return found.some(options.trajectories) if options.trajectories else found


def _read(options: SysidOptions) -> Trajectories:
    from manikin.fidelity.recordings.motions import collins, own_motions
    from manikin.sysid import importers, read_trajectories

    source, kind = options.source, options.kind or _kind(options.source)
    if kind == "bridge":
        return importers.bridge(None if str(source) == "bridge" else source)
    if kind == "collins":
        return collins()
    if kind == "recording":
        return importers.recording(source)
    if kind == "own":
        return own_motions(source)
    if kind == "trajectories":
        return read_trajectories(source)
    if options.robot is None or options.control is None or options.control_hz is None:
        raise ConfigError(
            "a file of SIMPLER's says neither robot nor controller nor rate; give --robot, --control, --control-hz"
        )
    return importers.simpler(
        source,
        robot=options.robot,
        control=options.control,
        control_hz=options.control_hz,
        euler="widowx" in options.robot,
    )


def _kind(source: Path) -> str:
    """What a file is, by its name and, of HDF5, its content."""
    ending = source.suffix.lower()
    if str(source) in ("bridge", "collins"):
        return str(source)
    if ending in (".pkl", ".pickle"):
        return "simpler"
    if ".tfrecord" in source.name:
        return "bridge"
    if source.is_dir():
        return "own"
    kinds = {"manikin-episodes": "recording", "manikin-recording": "own"}
    return kinds.get(_format(source), "trajectories") if ending in (".h5", ".hdf5") else "trajectories"


def _format(path: Path) -> str:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return str(file.attrs.get("format"))
    except OSError:
        return ""
