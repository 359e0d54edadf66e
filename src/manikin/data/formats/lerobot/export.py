"""Episodes of a recording as frames of a LeRobot dataset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manikin.data.formats.lerobot.writer import OWN, LeRobotWriter
from manikin.data.recording.format import Header, RecordedEpisode, parted
from manikin.env.observe import column_names
from manikin.errors import DataError

__all__ = ["LeRobotExport"]

log = logging.getLogger("manikin.data")


class LeRobotExport:
    """Turns episodes with what was observed into frames of a LeRobot dataset.

    ``observation.state`` are the policy's numbers, in the order and by the names of ``observe="policy"``,
    ``observation.environment_state`` the privileged ones, ``observation.images.NAME`` a camera's pictures; ``next.*``
    is what a step led to. In the table of episodes ``manikin/...`` says which episode of the recording it is and how it
    went.

    Args:
        root, resume: as :class:`~manikin.data.formats.lerobot.writer.LeRobotWriter`.
        header: of the recording.
        source: what the dataset is made of, plain values; one made of something else is not resumed.
        columns: gives the name of each number of a flat observation, ``policy/qpos[0]``; asked where there is one.
    """

    def __init__(
        self,
        root: str | Path,
        header: Header,
        *,
        source: Mapping[str, Any],
        columns: Callable[[], Sequence[str]],
        resume: bool = False,
    ) -> None:
        self._root, self._header, self._resume = Path(root), header, resume
        self._source, self._columns = dict(source), columns
        self._writer: LeRobotWriter | None = None
        self._warned = False

    def finished(self) -> set[int]:
        """Numbers of the episodes that are safe, their videos included.

        Raises:
            DataError: there is nothing to resume, or it was made of another recording or observed in another way.
        """
        if not self._resume or not self._root.exists():
            return set()
        return set(LeRobotWriter.reopen(self._root, source=self._source).finished)

    def write(self, episode: RecordedEpisode, place: int) -> None:
        """Make one episode durable. Those of a dataset are in the order of their numbers, whatever the place.

        Raises:
            DataError: it holds no observations.
        """
        if not episode.observations:
            raise DataError(
                f"episode {episode.number} holds no observations; convert with what to observe (--observe state, "
                "--observe rgb), which plays the actions again"
            )
        frames, names = self._frames(episode)
        if self._writer is None:
            features = {
                key: ("video" if value.dtype == np.uint8 else str(value.dtype), value.shape[1:], names.get(key))
                for key, value in frames.items()
            }
            fps, robot = float(self._header.fingerprint["control_hz"]), str(self._header.fingerprint["robot"])
            self._writer = LeRobotWriter(
                self._root, fps=fps, robot=robot, features=features, source=self._source, resume=self._resume
            )
        about = {f"{OWN}{name}": value for name, value in episode.summary.items() if name != "instruction"}
        self._writer.write(episode.number, episode.instruction, frames, about)

    def _frames(self, episode: RecordedEpisode) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
        length = len(episode)
        seen = {k: v[:length] for k, v in (episode.observations or {}).items()}
        seen = parted(seen, self._columns, self._header.task)
        frames: dict[str, np.ndarray] = {}
        names: dict[str, list[str]] = {"action": list(self._header.fingerprint.get("action_names", ())) or None}  # type: ignore[dict-item]
        written = set[str]()
        for key, prefix in (("state", "policy/"), ("environment_state", "privileged/")):
            parts = {k: v.reshape(length, -1) for k, v in seen.items() if k.startswith(prefix)}
            written |= parts.keys()
            if parts:
                frames[f"observation.{key}"] = np.concatenate(list(parts.values()), 1, dtype=np.float32)
                names[f"observation.{key}"] = [n for k, v in parts.items() for n in column_names(k, v.shape[1])]
        for name, value in seen.items():
            if name.startswith("cameras/") and name.endswith("/rgb"):
                frames[f"observation.images.{name.split('/')[1]}"] = value
                written.add(name)
        left = [name for name in seen if name not in written and not name.endswith(("/K", "/T"))]
        if left and not self._warned:
            log.warning("LeRobot datasets hold numbers and rgb pictures; left out: %s", ", ".join(left))
            self._warned = True
        frames["action"] = episode.actions
        frames["next.reward"] = episode.rewards[:, None]
        frames["next.success"] = episode.succeeded[:, None]
        frames["next.done"] = (episode.terminated | episode.truncated)[:, None]
        return frames, names

    def close(self) -> None:
        """Join what was written. Raises :class:`DataError` when there is nothing."""
        if self._writer is None and self._resume and self._root.exists():
            self._writer = LeRobotWriter.reopen(self._root, source=self._source)  # all that was left is joining
        if self._writer is None:
            raise DataError("no episode was converted, so there is no dataset")
        self._writer.close()

    def abandon(self) -> None:
        """Leave what is finished, to be resumed."""
