"""What of a recording a replay computes again, what it cannot, and what the recording says against itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manikin.data.recording.format import RESIDUALS, Header, RecordedEpisode
from manikin.data.recording.labels import Keep
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.compare import GIVEN, EpisodeReplay

__all__ = ["contradictions", "left_out", "not_compared"]


def left_out(header: Header, now: Mapping[str, Any]) -> dict[str, str]:
    """Parts of an episode that the environment of this fingerprint does not compute as they were computed then."""
    then, how = header.fingerprint, header.source.get("how")

    def others(*keys: str) -> list[str]:
        return [key for key in keys if then.get(key) != now.get(key)]

    found: dict[str, str] = {}
    if others("reward"):
        found |= dict.fromkeys(("rewards", "reward_terms"), "another reward is given now")
    if different := others("observe", "vision", "sensors", "looks"):
        found["observations"] = f"{', '.join(different)} {'is another' if len(different) == 1 else 'are others'} now"
    if others("sensors"):
        found["initial/extra/sensors"] = "other sensors remember other things"
    if how == "states":
        anew = header.source.get("anew", ("observations", "rewards"))
        found |= dict.fromkeys(anew, "made anew in the recorded states, one by one")
    if how == "control":
        names = ("source_step", *(f"residual_{name}" for name in RESIDUALS))
        found |= dict.fromkeys((f"flags/{name}" for name in names), "of the conversion to this controller")
    if how == "multiply":
        found |= dict.fromkeys(("flags/segment", "flags/source_episode"), "of the demonstration that was carried over")
    return found


def not_compared(header: Header, file: EpisodeFile, done: Sequence[EpisodeReplay]) -> dict[str, str]:
    """What of a recording was not computed again and compared, and why."""
    found = dict(GIVEN)
    for one in done:
        found |= one.left_out
    found |= {name: "nothing to compute it from" for name in ("policy", "created", "source") if getattr(header, name)}
    if not header.recorded:
        found["recorded"] = "not recorded"
    if "first_seed" not in header.recorded:
        found["number"] = "the recording says of no number which seed it has"
    if file.dropped:
        found["dropped"] = "these episodes were not kept"
    if more := len(file.numbers) - len(done):
        found[f"{more} more {'episode' if more == 1 else 'episodes'}"] = "not played"
    return found


def contradictions(header: Header, episode: RecordedEpisode) -> list[str]:
    """What the recording says of all its episodes that this one is not."""
    said, name, found = header.recorded, f"episode {episode.number}", []
    if "first_seed" in said and episode.seed != said["first_seed"] + episode.number:
        found.append(f"{name} has the seed {episode.seed}, and episode 0 the seed {said['first_seed']}")
    for part in ("states", "observations"):
        there = getattr(episode, part) is not None
        if said.get(part, there) is not there:
            found.append(
                f"{part} were{'' if said[part] else ' not'} kept, and {name} has {'some' if there else 'none'}"
            )
    keep = said.get("keep", "all")
    if not Keep(keep, {episode.mode, *keep.partition(":")[2].split(",")})(episode.success_once, episode.mode):
        found.append(f"only {keep} was kept, and {name} is none: {episode.mode or 'no label'}")
    return found
