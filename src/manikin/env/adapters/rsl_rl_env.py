"""For rsl_rl: rows as its ``VecEnv``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from manikin.env.adapters.trainers import leaves, missing_library, restarting
from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError

try:
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict
except ImportError as error:
    raise missing_library("rsl_rl", "rsl-rl-lib", error) from error

__all__ = ["RslRlEnv"]


class RslRlEnv(VecEnv):  # type: ignore[misc]
    """Rows of a task for rsl_rl: ``OnPolicyRunner(RslRlEnv(manikin.make("PushCube-v2", 64)), config)``.

    - A flat observation is the group ``policy``. With ``observe="state_dict"`` there are the groups ``policy`` and
      ``privileged``, for an actor and a critic that see different things.
    - ``extras["time_outs"]`` is True where only time ran out. rsl_rl then adds the value of the observation *before*
      the last step, so it needs no final observation.
    - A row whose ``episode_length_buf`` reaches the horizon restarts and counts as out of time. rsl_rl sets that buffer
      to random lengths with ``init_at_random_ep_len=True``, so that not all rows end together.
    - ``extras["log"]`` has the share of success of the episodes that ended.

    Args:
        env: from ``manikin.make(TASK, N)``, on any device.
        seed: of the first reset, row i with ``seed + i``; None draws one.

    Attributes:
        batched: the environment.

    Raises:
        ConfigError: rows do not restart in the same step, or the observation has pictures.
    """

    def __init__(self, env: BatchEnv, *, seed: int | None = None) -> None:
        self.batched = restarting(env, "rsl_rl")
        self.num_envs, self.num_actions = env.num_envs, env.single_action_space.shape[0]
        self.max_episode_length, self.device = env.horizon, env.device
        self.cfg: dict[str, Any] = env.fingerprint()
        self.episode_length_buf = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
        self._groups = self._grouped(env.reset(seed=seed)[0])

    def get_observations(self) -> TensorDict:
        """Groups (N, D) of where rows are now."""
        return self._groups

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """Advance by one control step with actions (N, A), cut to [-1, 1]: groups, rewards (N,), dones (N,), extras."""
        with torch.inference_mode(False), torch.no_grad():  # else the environment's tensors could not be changed later
            observation, reward, terminated, truncated, info = self.batched.step(actions.clone())
            self.episode_length_buf = self.episode_length_buf + 1
            ended = terminated | truncated
            early = (self.episode_length_buf >= self.max_episode_length) & ~ended
            if bool(early.any()):
                observation, _ = self.batched.reset(options={"reset_mask": early})
            extras: dict[str, Any] = {"time_outs": (truncated & ~terminated) | early}
            if "final_info" in info:
                extras["log"] = {"/success": info["final_info"]["success"][ended].float().mean()}
            ended = ended | early
            self.episode_length_buf = self.episode_length_buf.masked_fill(ended, 0)
            self._groups = self._grouped(observation)
        return self._groups, reward, ended.long(), extras

    def close(self) -> None:
        """Free the simulation."""
        self.batched.close()

    def _grouped(self, observation: Any) -> TensorDict:
        if not isinstance(observation, Mapping):
            observation = {"policy": {"all": observation}}
        groups = {}
        for name, part in observation.items():
            columns = list(leaves(part).values()) if isinstance(part, Mapping) else [part]
            if any(one.ndim > 2 for one in columns):
                raise ConfigError(
                    "rsl_rl's adapter takes flat observations: observe='state', 'policy' or 'state_dict', not "
                    f"{self.batched.observe!r}"
                )
            groups[name] = torch.cat([one.float().view(self.num_envs, -1) for one in columns], 1)
        return TensorDict(groups, batch_size=[self.num_envs])
