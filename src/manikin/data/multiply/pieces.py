"""Demonstrations cut into pieces, one per segment of the task, and a piece carried to where its frame is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin.data.recording.format import RecordedEpisode
from manikin.data.recording.read import EpisodeFile
from manikin.env.interface import SceneEnv
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.math import pose_inv, pose_mul
from manikin.spec.plan import GRIPPER, WORLD, Segment

__all__ = ["Piece", "bounds", "carried", "frame_poses", "read_pieces"]


@dataclass(frozen=True, eq=False)
class Piece:
    """One segment of one demonstration.

    Attributes:
        episode: number of the demonstration.
        tools: (K + 1, 7) float64 TCP poses in the world, before its first step and after each.
        grips: (K, G) what the grippers were told.
        frame: (7,) where the segment's frame was at its beginning.
        held: (7,) where what it moves was then, in the TCP's frame.
    """

    episode: int
    tools: Tensor
    grips: Tensor
    frame: Tensor
    held: Tensor


def carried(tools: Tensor, frame: Tensor, held: Tensor, frame_now: Tensor, held_now: Tensor) -> Tensor:
    """TCP poses (..., 7) that bring what is held now along the same path relative to the frame as it is now.

    With matrices: ``frame_now inverse(frame) tool held inverse(held_now)``.

    Args:
        tools: (..., 7) TCP poses of the demonstration.
        frame: (7,) its frame.
        held: (7,) what it moved, in its TCP's frame.
        frame_now: (7,) the frame now.
        held_now: (7,) what is moved, in the TCP's frame now.
    """
    shift, grip = pose_mul(frame_now, pose_inv(frame)), pose_mul(held, pose_inv(held_now))
    return pose_mul(pose_mul(shift.expand_as(tools), tools), grip.expand_as(tools))


def frame_poses(env: SceneEnv, segments: Sequence[Segment]) -> dict[str, Tensor]:
    """Where the frames of the segments are, and what they move: name -> (N, 7) float64 in the world, on the CPU.

    Raises:
        UnknownNameError: a segment names neither a part, nor ``world``, nor what ``Task.frames`` gives.
    """
    names = dict.fromkeys(name for one in segments for name in (one.frame, one.moves) if name)
    with torch.no_grad(), env.on_device():
        given = env.task.frames(env.h)
        found = {}
        for name in names:
            if name == WORLD:
                found[name] = torch.tensor([0.0, 0, 0, 1, 0, 0, 0]).expand(env.num_envs, 7)
                continue
            try:
                found[name] = given[name] if name in given else env.thing(name).pose
            except UnknownNameError as error:
                raise UnknownNameError("frame of a segment", name, [*error.valid, *given, WORLD]) from None
    return {name: value.double().cpu().clone() for name, value in found.items()}


def bounds(
    flags: Mapping[str, np.ndarray], grips: np.ndarray, segments: Sequence[Segment], control_hz: float
) -> list[tuple[int, int]]:
    """Of each segment its first step and the one after its last; empty where one does not come to its end.

    Args:
        flags: name -> (T,) of each step.
        grips: (T, G) what the grippers were told.
        segments: of the task.
        control_hz: steps per second.

    Raises:
        DataError: a flag that is not recorded.
    """
    start, found, length = 0, [], len(grips)
    for segment in segments:
        if start >= length:
            return []
        end = length
        if segment.until:
            if segment.until not in (GRIPPER, *flags):
                raise DataError(f"the recording has no flag {segment.until!r}; it has {', '.join(flags) or 'none'}")
            told = segment.until == GRIPPER
            up = (grips[start:] != grips[start]).any(1) if told else flags[segment.until][start:]
            if not up.any():
                return []
            end = min(length, start + int(up.argmax()) + 1 + round(segment.after_s * control_hz))
        found.append((start, end))
        start = end
    return found


def read_pieces(file: EpisodeFile, env: SceneEnv, *, most: int) -> list[list[Piece]]:
    """The pieces of the first ``most`` successful demonstrations, for each segment of the task a list.

    Recorded states are set, not simulated.

    Raises:
        ConfigError: the task declares no segments.
        DataError: states were not recorded, or no episode succeeded and has all segments.
    """
    segments = env.task.segments
    if not segments:
        raise ConfigError(
            f"{env.task.id} declares no segments, so nothing says what a demonstration is relative to; add "
            "segments = (Segment(PART, until=FLAG), ...) to the task"
        )
    found: list[list[Piece]] = [[] for _ in segments]
    for number in file.numbers:
        if len(found[0]) == most:
            break
        episode = file.episode(number, observations=False)
        grips = episode.actions[:, list(env.controller.card.grippers)]
        cuts = bounds(episode.flags, grips, segments, env.control_hz) if episode.success_once else []
        if not cuts:
            continue
        if episode.states is None:
            raise DataError(
                f"episode {number} of {file.path} has no recorded states: collect again without --no-states"
            )
        for pieces, piece in zip(found, _pieces(env, episode, cuts), strict=True):
            pieces.append(piece)
    if not found[0]:
        said = ", ".join(one.until or "the end" for one in segments)
        raise DataError(f"no episode of {file.path} succeeded and has all segments of {env.task.id} (until {said})")
    return found


def _pieces(env: SceneEnv, episode: RecordedEpisode, cuts: Sequence[tuple[int, int]]) -> list[Piece]:
    """One episode's pieces. All rows get its start, for what it varies; then its states are set in them."""
    assert episode.states is not None
    n, segments = env.num_envs, env.task.segments
    index = torch.full((n,), episode.index, dtype=torch.int64)
    env.reset(seed=[episode.seed] * n, options={**episode.options, "episode_index": index})
    tools: list[Tensor] = []
    frames: dict[str, list[Tensor]] = {}
    for first in range(0, len(episode.states), n):
        some = episode.states[first : first + n]
        env.put(list(some), np.arange(len(some)))
        tools.append(env.tcp_poses[: len(some), 0].double().cpu().clone())
        for name, value in frame_poses(env, segments).items():
            frames.setdefault(name, []).append(value[: len(some)])
    path, places = torch.cat(tools), {name: torch.cat(values) for name, values in frames.items()}
    columns = list(env.controller.card.grippers)
    made = []
    for segment, (start, end) in zip(segments, cuts, strict=True):
        moved = places[segment.moves][start] if segment.moves else path[start]
        made.append(
            Piece(
                episode=episode.number,
                tools=path[start : end + 1],
                grips=torch.from_numpy(episode.actions[start:end][:, columns]),
                frame=places[segment.frame][start],
                held=pose_mul(pose_inv(path[start]), moved),
            )
        )
    return made
