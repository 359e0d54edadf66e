"""Demonstrations for reinforcement learning: recorded episodes as steps to draw from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.data.formats.demonstrations import holds_demos, read_demos
from manikin.data.formats.playback import played_episodes
from manikin.data.recording.format import RecordedEpisode
from manikin.data.recording.read import EpisodeFile
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.data.demonstrations import check_file, check_recording
from manikin.learn.common.data.replay import Replay
from manikin.learn.common.rollout import worth_after

__all__ = ["recorded_steps"]

_SAME_TOO = ("config",)  # rewards follow from it
_OBSERVATION = "value"  # what a recording calls an observation that is one row of numbers


def recorded_steps(
    path: str | Path, env: BatchEnv, *, gamma: float, n_step: int, bootstrap_at_success: bool
) -> tuple[Replay, str]:
    """All steps of a recording, with the rewards of ``env``, and a hash of them.

    The sparse reward and the ends of episodes follow from the recorded success and fail, so the recording may have
    been made with another reward. Where ``env`` ends episodes at success, what was recorded after it is left out.

    Args:
        path: the recording, with flat observations: ``manikin collect TASK --observations``. Or demonstrations of
            robosuite, robomimic or ManiSkill, which are observed state by state.
        env: where the policy learns.
        gamma: as of :class:`~manikin.learn.common.data.replay.Replay`.
        n_step: as there.
        bootstrap_at_success: as of :func:`~manikin.learn.common.rollout.worth_after`.

    Raises:
        ConfigError: the demonstrations are of another task, robot, controller, observation or reward, have no flat
            observations, or another number of them or of actions; or they are validation or test episodes.
        DataError: no such recording, or it is damaged.
    """
    if holds_demos(path):
        fingerprint, episodes = played_episodes(read_demos(path))
        check_recording(path, fingerprint, env, also=_SAME_TOO)
        cut = _cut(path, fingerprint, episodes, env)
    else:
        with EpisodeFile(path) as file:
            check_file(path, file, env, also=_SAME_TOO)
            cut = _cut(path, file.needed_header().fingerprint, file, env)
    joined = {name: np.concatenate([one[name] for one in cut]) for name in cut[0]}
    digest = hashlib.sha256()
    for value in joined.values():
        digest.update(np.ascontiguousarray(value).tobytes())
    steps = {name: torch.from_numpy(value).to(env.device) for name, value in joined.items()}
    terminated, truncated = steps.pop("terminated"), steps.pop("truncated")
    final = {"success": steps.pop("success"), "fail": steps.pop("fail")}
    steps["ended"] = terminated | truncated
    worth = worth_after(terminated, truncated, final, bootstrap_at_success=bootstrap_at_success)
    steps["kept"] = worth | ~steps["ended"]
    count, columns = steps["seen"].shape
    replay = Replay(
        rows=1,
        steps=count,
        observations=columns,
        actions=steps["actions"].shape[1],
        gamma=gamma,
        n_step=n_step,
        device=env.device,
    )
    for t in range(count):
        replay.add(**{name: value[t : t + 1] for name, value in steps.items()})
    return replay, digest.hexdigest()


def _cut(
    path: str | Path, recorded: Mapping[str, Any], episodes: Iterable[RecordedEpisode], env: BatchEnv
) -> list[dict[str, np.ndarray]]:
    """Arrays of each episode's steps, of an environment with this fingerprint."""
    sparse = env.reward_mode == "sparse"
    if not sparse and recorded.get("reward") != env.reward_mode:
        raise ConfigError(
            f"{path} has rewards {recorded.get('reward')!r}, and the environment {env.reward_mode!r}: "
            "collect it with that reward, or learn from reward='sparse', which any recording has"
        )
    shape = env.single_observation_space.shape or (0,)
    columns, actions = int(shape[0]), int(env.single_action_space.shape[0])
    return [_steps(path, episode, columns, actions, sparse, env.terminates) for episode in episodes]


def _steps(
    path: str | Path, episode: RecordedEpisode, columns: int, actions: int, sparse: bool, terminates: bool
) -> dict[str, np.ndarray]:
    """Arrays of an episode's steps up to its end by the environment's rule."""
    seen = (episode.observations or {}).get(_OBSERVATION)
    if seen is None:
        raise ConfigError(f"the demonstrations in {path} hold no flat observations: collect them with --observations")
    if seen.shape[1:] != (columns,) or episode.actions.shape[1:] != (actions,):
        raise ConfigError(
            f"the demonstrations in {path} have {seen.shape[1:]} numbers in an observation and "
            f"{episode.actions.shape[1:]} in an action, the environment ({columns},) and ({actions},)"
        )
    over = episode.success | episode.fail
    count = int(np.argmax(over)) + 1 if terminates and over.any() else len(episode)
    last = np.arange(count) == count - 1
    success, fail = episode.success[:count], episode.fail[:count]
    terminated = last & over[:count] & terminates
    return {
        "seen": seen[:count].astype(np.float32),
        "following": seen[1 : count + 1].astype(np.float32),
        "actions": np.clip(episode.actions[:count], -1.0, 1.0),
        "rewards": success.astype(np.float32) - fail if sparse else episode.rewards[:count],
        "terminated": terminated,
        "truncated": last & ~terminated,
        "success": success,
        "fail": fail,
    }
