"""Demonstrations of a task, all in memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manikin.data.dataset import Dataset
from manikin.data.recording.read import EpisodeFile
from manikin.env.interface import BatchEnv
from manikin.env.observe import Observation, Vision
from manikin.errors import ConfigError, UnknownNameError
from manikin.learn.common.pictures import PictureConfig, inputs_of
from manikin.learn.common.seeds import check_unseen
from manikin.learn.common.tree import mapped
from manikin.policy.networks.pictures import NUMBERS, kept_picture
from manikin.policy.pushes import Pushes
from manikin.policy.trained import SEEN

__all__ = ["Demonstrations", "check_file", "check_recording", "load_demonstrations", "unstacked"]

_AT_ONCE = 65_536  # frames
_PICTURES_AT_ONCE = 1_024
KEEP = "success"  # what is imitated
_SAME = ("task", "robot", "control", "control_hz")


@dataclass(frozen=True)
class Demonstrations:
    """Frames of episodes that succeeded.

    Attributes:
        frames: all that was recorded, as a network's ``scaling.take`` gives it: (K, D) float32, or with pictures a
            dictionary.
        windows: (F, window) int64, which of them are seen together, oldest first, as a ``Stack`` of the environment has
            them.
        actions: (F, chunk, A) float32, from the present on.
        padded: (F, chunk) bool, behind the end of the episode, where the last action is repeated.
        pushed: (F, chunk) bool, from a push on that the demonstrator did not want (see
            :class:`~manikin.policy.pushes.Pushes`). No frame is itself pushed: those are left out.
        episodes: how many. there: of how many in the recording. digest: SHA-256 of the frames.
    """

    frames: Any
    windows: Tensor
    actions: Tensor
    padded: Tensor
    pushed: Tensor
    episodes: int
    there: int
    digest: str

    def __len__(self) -> int:
        return len(self.actions)

    def batch(self, frames: Tensor) -> tuple[Any, Tensor, Tensor, Tensor]:
        """Observations (B, window, ...), actions, padding and pushes of these frames (B,)."""
        windows = self.windows[frames]
        seen = mapped(lambda one: one[windows], self.frames)
        return seen, self.actions[frames], self.padded[frames], self.pushed[frames]

    @property
    def observations(self) -> Any:
        """Of all frames, (F, window, ...)."""
        return mapped(lambda one: one[self.windows], self.frames)

    @property
    def present(self) -> Any:
        """The last of each window, (F, ...)."""
        return mapped(lambda one: one[self.windows[:, -1]], self.frames)


def load_demonstrations(
    path: str | Path,
    env: BatchEnv,
    config: PictureConfig | None = None,
    *,
    chunk: int = 1,
    most: int = 0,
    labels: Sequence[str] = (),
    after_success: int = -1,
    least_action: float = 0.0,
) -> Demonstrations:
    """The successful episodes of a recording, those of the lowest numbers first.

    Args:
        path: made with ``manikin collect ... --observations``, or with pictures; with the observation of ``env`` but
            for its stack.
        env: what the policy is for.
        config: says which numbers are taken beside pictures.
        chunk: actions per frame.
        most: take at most so many episodes; 0 for all.
        labels: take only episodes with one of these labels, which are of success; () for all.
        after_success: of each episode, frames up to so many after its first success; -1 for all. Their chunks may reach
            beyond.
        least_action: frames in which every part of the action is smaller are left out, see :func:`_sizes`; 0 for none.

    Raises:
        UnknownNameError: the task has no such mode of success.
        ConfigError: no frame is left. Demonstrations of another task, robot, controller, control rate, observation or
            action size, or an observation that is neither flat nor has pictures; or of validation or test episodes.
        DataError: no recording, damaged, without observations, or no episode in it succeeded.
    """
    window, inputs = inputs_of(env, config or PictureConfig())
    valid = [mode.name for mode in env.task.labels.success]
    if unknown := [name for name in labels if name not in valid]:
        raise UnknownNameError(f"mode of success of {env.task.id}", unknown[0], valid)
    with EpisodeFile(path) as file:
        header = file.needed_header()
        there = check_file(path, file, env, labels=labels)
        keys = {
            number: (int(block.table["seed"][k]), int(block.table["index"][k]))
            for block, ks in file.blocks()
            for number, k in ((int(block.table["number"][k]), k) for k in ks)
        }
    names = ["value"] if isinstance(inputs, int) else [*inputs["numbers"], *inputs["pictures"]]
    keep = f"label:{','.join(labels)}" if labels else KEEP
    at_once = _AT_ONCE if isinstance(inputs, int) else _PICTURES_AT_ONCE
    with Dataset(path, batch_size=at_once, chunk=chunk, keep=keep, observations=names, shuffle=False) as data:
        parts = [_taken(part, inputs) for part in data]
    joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    actions, padded, episode, step = (joined.pop(name) for name in ("actions", "padded", "episode", "step"))
    frames: Any = joined
    if isinstance(inputs, int):
        frames = joined["value"]
        _check_size(path, env, "numbers per observation", frames.shape[1], inputs)
    _check_size(path, env, "numbers per action", actions.shape[2], env.single_action_space.shape[0])
    numbers = episode.unique()
    if most and len(numbers) > most:
        numbers = numbers[:most]
        kept = torch.isin(episode, numbers)
        frames = mapped(lambda one: one[kept], frames)
        actions, padded, episode, step = (one[kept] for one in (actions, padded, episode, step))
    # the first frame of an episode stands for those before it
    back = torch.minimum(step[:, None], torch.arange(window - 1, -1, -1))
    windows, pushed = torch.arange(len(step))[:, None] - back, torch.zeros_like(padded)
    if (pushes := Pushes.of(header.recorded)) is not None:
        seed, index = torch.tensor([keys[number] for number in numbers.tolist()]).unbind(1)
        when, _ = pushes.begins(seed, index, int(step.max()) + chunk)
        pushed = when[torch.searchsorted(numbers, episode).unsqueeze(1), step.unsqueeze(1) + torch.arange(chunk)]
        pushed = pushed.cumsum(1) > 0
    kept = ~pushed[:, 0]
    if after_success >= 0:
        last = _first_successes(path, numbers) + after_success
        kept &= step <= last[torch.searchsorted(numbers, episode)]
    if least_action > 0:
        kept &= (_sizes(env, actions[:, 0], step) >= least_action).any(1)
    if not kept.any():
        why = f"least_action={least_action} may be too large" if least_action > 0 else "all were pushed or late"
        raise ConfigError(f"no frame of {path} is left: {why}")
    windows, actions, padded, pushed = (one[kept] for one in (windows, actions, padded, pushed))
    digest = hashlib.sha256()
    # flat frames as they are seen together
    shown = [frames[windows]] if isinstance(inputs, int) else [*frames.values(), windows]
    for tensor in (*shown, actions, padded, *([pushed] if pushes else [])):
        digest.update(tensor.contiguous().numpy().tobytes())
    device = env.device
    return Demonstrations(
        frames=mapped(lambda one: one.to(device), frames),
        windows=windows.to(device),
        actions=actions.to(device),
        padded=padded.to(device),
        pushed=pushed.to(device),
        episodes=len(numbers),
        there=there,
        digest=digest.hexdigest(),
    )


def _sizes(env: BatchEnv, actions: Tensor, step: Tensor) -> Tensor:
    """(F, A) how much actions (F, A) in [-1, 1] ask for. Of what is absolute, but for speeds and forces, that is the
    change since the frame before, and 0 in an episode's first: of the opening of a hand, say."""
    whole = ("m/s", "rad/s", "N", "N m")
    absolute = [dim.reference == "absolute" and dim.unit not in whole for dim in env.controller.card.dims]
    before = torch.where((step == 0).unsqueeze(1), actions, actions.roll(1, 0))
    return torch.where(torch.tensor(absolute), actions - before, actions).abs()


def _first_successes(path: str | Path, numbers: Tensor) -> Tensor:
    """(E,) int64 the step of the first success of episodes that succeeded, by their numbers (E,)."""
    with EpisodeFile(path) as file:
        found = [file.episode(number, observations=False).succeeded.argmax() for number in numbers.tolist()]
    return torch.tensor([int(step) for step in found])


def _taken(part: Mapping[str, Any], inputs: int | Mapping[str, Any]) -> dict[str, Tensor]:
    """A part of the data with observations as a network's ``scaling.take`` gives them."""
    seen = {name: value[:, 0] for name, value in part["observations"].items()}
    rest = {name: part[name] for name in ("actions", "padded", "episode", "step")}
    if isinstance(inputs, int):
        return {"value": seen["value"], **rest}
    numbers = [seen[path].float().reshape(len(rest["step"]), -1) for path in inputs["numbers"]]
    return {
        NUMBERS: torch.cat(numbers, 1),
        **{path: kept_picture(path, seen[path]) for path in inputs["pictures"]},
        **rest,
    }


def _check_size(path: str | Path, env: BatchEnv, what: str, found: int, needed: int) -> None:
    if found != needed:
        raise ConfigError(f"{path} has {found} {what}, the environment {needed}. {_advice(env)}")


def unstacked(observe: Any) -> Observation:
    """What a recording shows of what ``observe`` asks for: all but stacks."""
    return replace(Observation.of(observe), stacks=())


def _advice(env: BatchEnv) -> str:
    return f"Collect demonstrations of {env.fingerprint()['task']} as it is trained here"


def check_file(
    path: str | Path, file: EpisodeFile, env: BatchEnv, *, also: Sequence[str] = (), labels: Sequence[str] = ()
) -> int:
    """:func:`check_recording` of an open recording, whose episodes may also be none that validate or test. Returns how
    many of them succeeded, with one of these labels if any are given."""
    check_recording(path, file.needed_header().fingerprint, env, also=also)
    there = [(block.table, k) for block, ks in file.blocks() for k in ks]
    check_unseen(path, [int(table["seed"][k]) for table, k in there])
    won = [(table, k) for table, k in there if table["success_once"][k]]
    return len(won) if not labels else sum(str(table["mode"][k]) in labels for table, k in won)


def check_recording(path: str | Path, recorded: Mapping[str, Any], env: BatchEnv, *, also: Sequence[str] = ()) -> None:
    """Refuse demonstrations of another environment.

    Args:
        path: of the recording, for the error.
        recorded: its fingerprint.
        env: where the policy learns; its observation may be a stack of the recorded one.
        also: what has to be the same besides task, robot, controller, control rate and observation.

    Raises:
        ConfigError: names what differs.
    """
    here = env.fingerprint()
    names = (*_SAME, *also)
    other = [f"{name} {recorded.get(name)!r}, here {here[name]!r}" for name in names if _other(recorded, here, name)]
    shown = Observation.of(recorded.get("observe") or "state")
    wanted = unstacked(env.observe)
    if shown.plain != wanted.plain:
        other.append(f"observe {shown.plain!r}, here {wanted.plain!r}")
    if env.observation.needs:
        theirs, ours = Vision.of(recorded.get("vision")).describe(), env.vision.describe()
        other += [
            f"{name} {theirs.get(name)!r:.200}, here {ours.get(name)!r:.200}"
            for name in SEEN
            if theirs.get(name) != ours.get(name)
        ]
    if other:
        said = "; ".join(other)
        raise ConfigError(f"the demonstrations in {path} are of another environment: {said}. {_advice(env)}")


def _other(recorded: Any, here: Any, name: str) -> bool:
    ours, theirs = here[name], recorded.get(name)
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return not math.isclose(ours, theirs)
    return bool(ours != theirs)
