"""A folder of episodes that are made one after another, in MS-HAB's layout.

``train/tidy_house/episode_0.json`` and so on have an episode each, ``train/tidy_house.json.gz`` all of them, and
``task_plans/tidy_house/SUBTASK/train/all.json`` the subtasks; the last two are there when all episodes are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manikin.data.formats.homes.words import habitat_episode, subtask_plans
from manikin.data.formats.rearrange import RearrangeEpisode, read_rearrange, write_plans, write_rearrange
from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.homes.episodes import LONG_TASKS, Rejections, generate, home_of, scene_names

__all__ = ["EpisodeFolder"]


@dataclass(frozen=True, kw_only=True)
class EpisodeFolder:
    """The episodes of a task and split.

    Attributes:
        path: the folder, which may have several tasks and splits.
        task: one of :data:`manikin.homes.episodes.LONG_TASKS`.
        split: ``train`` or ``val``.
        collection: ``apartments`` or ``replicacad``.
        seed: of the data set.
        count: how many episodes; a folder may be continued with more.
    """

    path: Path
    task: str
    split: str = "train"
    collection: str = "apartments"
    seed: int = 0
    count: int = 100

    def file(self, number: int) -> Path:
        """Where an episode is."""
        return self.path / self.split / self.task / f"episode_{number}.json"

    def plan_file(self, subtask: str) -> Path:
        """Where the plans of a subtask are, or of the whole task (``sequential``)."""
        return self.path / "task_plans" / self.task / subtask / self.split / "all.json"

    @property
    def missing(self) -> list[int]:
        """Numbers of the episodes that are not there."""
        return [number for number in range(self.count) if not self.file(number).is_file()]

    def open(self, *, resume: bool) -> None:
        """Say what the folder is to have, and see that nothing else is there.

        Raises:
            ConfigError: episodes are there and are not to be continued, or have another seed or other scenes; fewer
                than one episode.
            UnknownNameError: no such task, split or collection.
            AssetError: ReplicaCAD is not there.
            DataError: what the folder says about itself cannot be read.
        """
        if self.count < 1:
            raise ConfigError(f"a folder has at least 1 episode, not {self.count}")
        if self.task not in LONG_TASKS:
            raise UnknownNameError("long task", self.task, LONG_TASKS)
        scene_names(self.split, self.collection)
        about = {"task": self.task, "split": self.split, "collection": self.collection, "seed": self.seed}
        note = self.path / self.split / f"{self.task}.about.json"
        if note.exists():
            try:
                found = json.loads(note.read_text())
            except (OSError, ValueError) as error:
                raise DataError(f"{note}: cannot be read: {error}") from None
            if found != about:
                raise ConfigError(f"{self.path} has episodes of {found}, not of {about}; choose another folder")
            if not resume:
                raise ConfigError(
                    f"{self.path} has episodes of {self.task} already; continue them with --resume (in Python: "
                    "resume=True), or choose another folder"
                )
        else:
            write_file(note, json.dumps(about).encode())

    def make(self, *, rows: int = 8, rejections: Rejections | None = None) -> Iterator[int]:
        """Make what is missing, each on the disk as soon as it is made; then write what is made of all.

        Args:
            rows: how many are made side by side; does not change them.
            rejections: counts why attempts were given up.

        Yields:
            The number of each episode that is made.

        Raises:
            See :func:`manikin.homes.episodes.generate`; DataError: a file cannot be written.
        """
        homes = {}
        for episode in generate(
            self.task,
            self.missing,
            split=self.split,
            collection=self.collection,
            seed=self.seed,
            rows=rows,
            rejections=rejections,
        ):
            if episode.scene not in homes:
                homes = {episode.scene: home_of(episode.scene)}  # they come apartment by apartment
            write_rearrange(self.file(episode.number), habitat_episode(episode, homes[episode.scene]))
            yield episode.number
        self._gather()

    def read(self) -> list[RearrangeEpisode]:
        """All episodes, from their files.

        Raises:
            DataError: one is missing or damaged.
        """
        return [episode for number in range(self.count) for episode in read_rearrange(self.file(number))]

    def _gather(self) -> None:
        episodes = self.read()
        write_rearrange(self.path / self.split / f"{self.task}.json.gz", episodes)
        words = "".join(word.capitalize() for word in (*self.task.split("_"), self.split))
        dataset = ("ReplicaCAD" if self.collection == "replicacad" else "Apartments") + words
        for subtask, plans in subtask_plans(self.task, self.split, episodes, home_of).items():
            write_plans(self.plan_file(subtask), dataset, plans)
