"""Verified replay: simulate recorded actions again and compare everything that is recorded, bit for bit.

Exact on the kind of machine that recorded. Another kind of processor or device rounds differently, and contacts amplify
that; replay then reports how far the two part, step by step, and does not call it an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manikin.data.recording.format import Header, flatten
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.compare import Comparison, EpisodeReplay
from manikin.data.replay.environment import make_env
from manikin.data.replay.health import advice_for, unhealthy_words
from manikin.data.replay.play import Follow, batches, play
from manikin.data.replay.scope import contradictions, left_out, not_compared
from manikin.errors import DataError

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["EpisodeReplay", "ReplayReport", "replay", "source_of"]


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """The comparison of a whole recording.

    Attributes:
        path: the recording.
        episodes: one entry per episode.
        recorded_on, replayed_on: kinds of processor, and the device where it is not the CPU.
        changed: what is different between the recorded environment and this one (versions, model, ...), in words.
        not_compared: part of the recording that was not computed again and compared -> why.
        contradictions: what the recording says of its episodes that they are not, in words.
        repeatable: whether what recorded and what replayed give the same bits in any batch: processors do, GPUs do not.
        advice: which budget to raise to what, where contacts or constraints found no room now; else "".
    """

    path: Path
    episodes: tuple[EpisodeReplay, ...]
    recorded_on: str
    replayed_on: str
    changed: tuple[str, ...]
    not_compared: Mapping[str, str] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()
    repeatable: bool = True
    advice: str = ""

    @property
    def exact(self) -> bool:
        return all(e.exact for e in self.episodes) and not self.contradictions

    @property
    def compared(self) -> tuple[str, ...]:
        """Which parts of the episodes were computed again and compared."""
        return tuple(dict.fromkeys(part for e in self.episodes for part in e.compared))

    @property
    def same_processor(self) -> bool:
        return self.recorded_on == self.replayed_on

    @property
    def promised(self) -> bool:
        """Whether the same bits are promised: on the same kind of processor; not on a GPU, where other rows beside an
        episode may change its last bits, also with ``deterministic=True``."""
        return self.same_processor and self.repeatable

    @property
    def unhealthy(self) -> tuple[EpisodeReplay, ...]:
        """In which the physics broke down or found no room now, whether or not it did when they were recorded."""
        return tuple(e for e in self.episodes if e.health[1])

    @property
    def ok(self) -> bool:
        """Healthy, without contradictions, and exact or different only where the same bits are not promised."""
        consistent = not self.contradictions and not any(e.contradictions for e in self.episodes)
        return consistent and not self.unhealthy and (self.exact or not self.promised)

    @property
    def survived(self) -> tuple[int, int]:
        """How many episodes succeeded when recorded, and how many of these do now."""
        then = [e for e in self.episodes if e.success[0]]
        return len(then), sum(e.success[1] for e in then)

    def divergence(self, instants: Sequence[int] = (1, 5, 10, 25, 50, 100, 200)) -> list[tuple[int, int, np.ndarray]]:
        """How far apart the episodes are after so many steps, as long as there are any.

        Returns:
            per instant: itself, the number of episodes that are as long, and (2, 3): of positions [rad or m] and of
            the tool centre point [m] the median, the 95 % quantile and the largest. Empty if states were not recorded.
        """
        rows = []
        for t in instants:
            pairs = [
                (e.positions[t], e.tcp[t])
                for e in self.episodes
                if e.tcp is not None and len(e.tcp) > t and e.positions is not None
            ]
            if pairs:
                rows.append((t, len(pairs), np.quantile(np.array(pairs), (0.5, 0.95, 1.0), axis=0).T))
        return rows

    def summary(self) -> str:
        """A few lines for people."""
        wrong = [e for e in self.episodes if not e.exact]
        lines = [f"{len(self.episodes) - len(wrong)} of {len(self.episodes)} episodes reproduced bit for bit"]
        lines += [f"compared: {', '.join(self.compared)}"] if self.compared else []
        if self.not_compared:
            lines.append("not compared: " + "; ".join(f"{part} ({why})" for part, why in self.not_compared.items()))
        lines += [f"the recording contradicts itself: {words}" for words in self.contradictions]
        shown = 10 if self.promised else 0
        told = wrong[:shown] or [e for e in wrong if e.contradictions][:10]
        lines += [f"  {e}" for e in told]
        if len(wrong) > shown > 0:
            lines.append(f"  and {len(wrong) - shown} more")
        if wrong and not self.promised:
            where = f"recorded on {self.recorded_on}, replayed on {self.replayed_on}"
            if self.same_processor:
                where = f"on {self.recorded_on}, in a batch of other rows"
            lines += [f"{where}: some divergence is expected", *self._apart()]
        if wrong:
            then, now = self.survived
            lines.append(f"{then} succeeded when recorded, {now} of these do now")
        if mended := [(e.seed, e.health[0]) for e in wrong if e.health[0] and not e.health[1]]:
            lines.append("of those that differ, " + unhealthy_words(mended, aside="when recorded"))
        if self.changed:
            lines += ["changed since the recording:", *(f"  {c}" for c in self.changed)]
        return "\n".join([*lines, *([self.unhealthy_words()] if self.unhealthy else [])])

    def unhealthy_words(self) -> str:
        """How many episodes were not healthy, what went wrong in which, and what to do."""
        then = sum(bool(e.health[0]) for e in self.unhealthy)
        bad = [(e.seed, e.health[1]) for e in self.unhealthy]
        return unhealthy_words(bad, self.advice, aside=f"({then} of these when recorded)")

    def _apart(self) -> list[str]:
        table = self.divergence()
        if not table:
            return ["how far they part is unknown: states were not recorded"]
        lines = ["steps  episodes  positions: median, 95 %, largest   tool (mm): median, 95 %, largest"]
        for t, count, (positions, tcp) in table:
            ours = "  ".join(f"{value:8.2g}" for value in positions)
            tool = "  ".join(f"{1e3 * value:8.2g}" for value in tcp)
            lines.append(f"{t:5}  {count:8}   {ours}          {tool}")
        return lines


def source_of(path: str | Path, header: Header, *, how: str, **more: Any) -> dict[str, Any]:
    """What a recording made of another says of it, for its header.

    Args:
        path: the recording that was played.
        header: its header.
        how: ``actions``, ``states``, ``control`` or ``multiply``.
        **more: what else there is to say, plain values.
    """
    about = {"file": Path(path).name, "created": header.created, "policy": header.policy, "how": how, **more}
    return about | ({"source": dict(header.source)} if header.source else {})


def replay(
    path: str | Path,
    env: BatchEnv | None = None,
    *,
    check: bool = True,
    num_envs: int = 16,
    trust: bool = False,
    numbers: Iterable[int] | None = None,
    observers: Sequence[Any] = (),
    on_episode: Callable[[EpisodeReplay], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> ReplayReport:
    """Play recorded actions again from the recorded seeds and compare.

    Args:
        path: the recording.
        env: where to replay (autoreset "disabled"); None builds it from the file.
        check: compare; False only plays (for pictures).
        num_envs: rows side by side when ``env`` is None. Never changes the result.
        trust: when ``env`` is None, run the file of a task of one's own that the recording names.
        numbers: which episodes; None for all.
        observers: see every step, as in the evaluation runner.
        on_episode: called after each episode.
        stop: asked once per control step; True returns what is finished.

    Raises:
        DataError: the file cannot be read, has no such episode, or was recorded with another task, version or robot.
    """
    with EpisodeFile(path) as file:
        header = file.needed_header()
        given, then = env, header.fingerprint
        wanted = list(file.numbers if numbers is None else numbers)
        env = make_env(then, max(1, min(num_envs, len(wanted))), trust=trust) if given is None else given
        try:
            now = env.fingerprint()
            _refuse_other(path, then, now)
            aside, against = left_out(header, now), list[str]()
            done: list[EpisodeReplay] = []
            for batch in batches(file, wanted, env.num_envs):
                tables = [file.attributes(e.number) for e in batch]
                compared = Comparison(env, batch, tables, check=check, left_out=aside)
                play(env, batch, Follow(), [compared, *observers], stop)
                for result in compared.reports():
                    done.append(result)
                    if on_episode is not None:
                        on_episode(result)
                if check:
                    against += [words for e in batch for words in contradictions(header, e)]
                if stop():
                    break
            advice = advice_for(env, (e.health[1] for e in done))
        finally:
            if given is None:
                env.close()
        return ReplayReport(
            path=Path(path),
            episodes=tuple(done),
            recorded_on=_where(then),
            replayed_on=_where(now),
            changed=_changes(then, now),
            not_compared=not_compared(header, file, done) if check else {},
            contradictions=tuple(against),
            repeatable=_repeatable(then) and _repeatable(now),
            advice=advice,
        )


def _refuse_other(path: str | Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Actions mean something to the robot and the task that they were recorded with, and to no others."""
    for what in ("task", "robot"):
        recorded, here = (str(made.get(what, "")) for made in (then, now))
        if recorded.split(":")[0] != here.split(":")[0]:  # a maker's meshes are another look of the same robot
            raise DataError(f"{path} was recorded with {what} {recorded!r} and cannot be played with {here!r}")


def _where(fingerprint: Mapping[str, Any]) -> str:
    """What the bits depend on: the kind of processor, and what simulated."""
    machine = fingerprint.get("machine", {})
    processor = str(machine.get("gpu") or machine.get("processor", ""))
    device = str(fingerprint.get("device", "cpu")).split(":")
    word = device[0] if device[0] == "cuda" else ":".join(device)
    return processor if word == "cpu" else f"{processor} with {word}"


def _repeatable(fingerprint: Mapping[str, Any]) -> bool:
    """Whether another batch there gives the same bits."""
    return not str(fingerprint.get("device", "cpu")).startswith("cuda")


def _changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """In words. Options of Warp devices count on the same device, if both say them: that the CPU has none follows."""
    other = then.get("device") != now.get("device")
    none = {key for key in ("budget", "deterministic") if other or key not in then or key not in now}
    a, b = (flatten({k: v for k, v in made.items() if k not in none}) for made in (then, now))
    return tuple(f"{k}: {a.get(k)!r} recorded, {b.get(k)!r} here" for k in sorted(a | b) if a.get(k) != b.get(k))
