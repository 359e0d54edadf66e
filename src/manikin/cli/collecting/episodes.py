"""An environment and a policy whose episodes are recorded, as the options of `manikin collect` say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import ROBOT_FILES, On, PictureOptions, TaskOptions, WarpOptions, file_name, load_task
from manikin.cli.spread.options import SpreadOptions
from manikin.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.data.recorder import Recorder
    from manikin.eval.runner import Run

__all__ = ["CollectOptions", "Collecting", "recording_path", "tell_how_to_verify"]


@dataclass(frozen=True, kw_only=True)
class CollectOptions(TaskOptions, WarpOptions, PictureOptions, SpreadOptions):
    """Options of `manikin collect`."""

    task: tyro.conf.Positional[str]
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    episodes: int = 100
    """How many episodes."""
    num_envs: int = 16
    """How many run in parallel; does not change what is collected."""
    policy: str = "expert"
    """expert, planner, random, policy.pt2 (a network by torch.export), ws://host:port (openpi's protocol), or your own
    as module:function or file.py:function."""
    out: Path | None = None
    """The recording; by default runs/TASK-POLICY.h5."""
    seed: int = 0
    """Episode k has the seed SEED + k. Evaluation protocols use seeds from 1,000,000."""
    keep: str = "all"
    """all, success (at any time), failure, or label:MODE,MODE with modes of the task (see manikin info)."""
    pushes: float = 0.0
    """Chance per step that the arm is pushed off its way for 3 steps. Such recordings teach a policy to come back."""
    observations: bool = False
    """Also record flat observations. Observations with names are recorded without this."""
    pictures: On = True
    """Leave out camera pictures. `manikin replay --observe` can render them again."""
    states: On = True
    """Leave out the physics state of every step. The file is smaller, but a failed replay cannot say how far it
    deviates."""
    resume: bool = False
    """Continue a recording that was interrupted."""
    shard: str | None = None
    """I/K: run every K-th episode from the I-th (0/4, 1/4, ...), one process each, into one recording."""
    control: Annotated[str | None, documented("control")] = None
    observe: Annotated[
        str | None, documented("observe", "By default what a trained policy was trained with, else state.")
    ] = None
    reward: Annotated[str | None, documented("reward")] = None
    control_hz: Annotated[float | None, documented("control_hz")] = None
    check_disk: On = True
    """Begin even where the disk has no room for episodes that all last to the horizon."""
    device: Annotated[str | None, documented("device")] = None
    physics_hz: Annotated[float | None, documented("physics_hz")] = None
    horizon: Annotated[int | None, documented("horizon")] = None


class Collecting:
    """An environment and a policy for it, which recordings are made with.

    Args:
        options: of the command.

    Attributes:
        env: the environment. name: the policy's. seeds: of all episodes.

    Raises:
        ManikinError: they cannot be made; says why.
    """

    def __init__(self, options: CollectOptions) -> None:
        from manikin.env.make import make
        from manikin.env.observe import Observation
        from manikin.env.task import Task
        from manikin.policy.choices import observation_options, policy_maker
        from manikin.policy.pushes import PushedPolicy, Pushes

        self._options, maker = options, policy_maker(options.policy)
        task, told = load_task(options.task), {} if options.observe else observation_options(options.policy)
        observation = Observation.of(told.get("observe") or (options.observe or "state").replace(",", "+"))
        if (vision := options.vision()) is not None and not observation.needs:
            raise ConfigError(
                f"--camera, --size and --renderer need pictures, but --observe is {observation.plain!r}; write for "
                "example --observe rgb"
            )
        if "vision" in told:
            vision = told["vision"] if vision is None else vision.over(told["vision"])
        named = options.pictures if observation.needs else not observation.flat
        self.shown = options.observations or named
        settings = options.env_options(
            task,
            num_envs=min(options.num_envs, options.episodes),
            observe=observation,
            reward=options.reward or ("sparse" if task.reward is Task.reward else "normalized_dense"),
            vision=vision,
            autoreset="disabled",
        )
        self.env = make(task, options=settings)
        try:
            self.policy: Any = maker(self.env)
            self._about: dict[str, Any] = {}
            if options.pushes:
                pushes = Pushes(options.pushes)
                self.policy, self._about = PushedPolicy(self.policy, self.env, pushes), {"pushes": pushes.plain}
        except BaseException:
            self.env.close()
            raise
        self.name = str(getattr(self.policy, "name", options.policy))
        self.seeds = range(options.seed, options.seed + options.episodes)

    def check_room(self, path: Path, episodes: int) -> None:
        """Refuse a recording for which the disk may have no room. Raises :class:`DataError`."""
        from manikin.data.recorder import largest_episode
        from manikin.data.recording.write import check_room

        # the parts, and beside them for a moment the file they are merged into
        check_room(path, 2 * largest_episode(self.env, observations=self.shown, states=self._options.states) * episodes)

    def recorder(self, path: Path, *, resume: bool) -> Recorder:
        """Writes episodes into a recording. Raises as :class:`~manikin.data.recorder.Recorder`."""
        from manikin.data.recorder import Recorder

        return Recorder(
            self.env,
            path,
            policy=self.name,
            observations=self.shown,
            states=self._options.states,
            keep=self._options.keep,
            first_seed=self._options.seed,
            resume=resume,
            about=self._about,
        )

    def record(self, recorder: Recorder, numbers: Sequence[int], **watched: Any) -> Run:
        """Run those of the episodes that the recorder has not got; ``watched`` as ``on_result`` and ``stop`` of
        :func:`~manikin.eval.runner.run_episodes`."""
        from manikin.eval.runner import run_episodes

        missing = [n for n in numbers if n not in recorder.finished]
        return run_episodes(self.env, self.policy, self.seeds, numbers=missing, observers=[recorder], **watched)


def recording_path(options: CollectOptions, name: str) -> Path:
    """Where the recording goes; ``name`` is the policy's."""
    return options.out or Path("runs") / f"{file_name(f'{load_task(options.task).id}-{name}')}.h5"


def tell_how_to_verify(out: Console, options: CollectOptions, path: Path) -> None:
    """Print the command that verifies the recording."""
    from manikin.assets.python_file import class_place

    more = f" --task {shlex.quote(options.task)}" if class_place(load_task(options.task)) else ""
    file = (options.robot or "").partition("+")[0]
    more += f" --robot {shlex.quote(file)}" if file.lower().endswith(ROBOT_FILES) else ""
    out.print(f"verify: manikin replay {shlex.quote(str(path))} --check{more}", soft_wrap=True)
