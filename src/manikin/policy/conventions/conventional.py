"""A policy that is shown and answers what RT-1 or Octo do, on manikin's tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ActionError, ConfigError, UnknownNameError
from manikin.policy.api import Observation, Policy
from manikin.policy.chunk import ChunkPolicy, Execution
from manikin.policy.conventions.actions import (
    StickyGripper,
    octo_bridge,
    octo_google,
    rt1_bridge,
    rt1_google,
    unnormalized,
)
from manikin.policy.conventions.images import lanczos, resized_with_pad

__all__ = ["CONVENTIONS", "Convention", "ConventionalPolicy", "read_convention"]

NUMBERS = 7


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How one family of policies is asked on one robot.

    Attributes:
        name: its word.
        picture: makes the pictures that it is shown, (N, H, W, 3) uint8.
        key: the picture's name in a request.
        frames: of the history; 1 for the present picture alone, without a dimension of time.
        physical: answers (N, 7) to metres, axis-angle and gripper, see :mod:`manikin.policy.conventions.actions`.
        execution: of its chunks.
        relative: the gripper number says by what share of its way the gripper closes; else +1 is open and -1 closed.
        sticky: the gripper number is an opening, for :class:`StickyGripper`, which makes it relative.
        ends: the eighth number of an answer, where there is one, says above 0 that the policy has finished.
        statistics: mean and std of actions, where its answers are normalized.
    """

    name: str
    picture: Callable[[Tensor], Tensor]
    key: str
    frames: int
    physical: Callable[[Tensor], Tensor]
    execution: Execution
    relative: bool = False
    sticky: bool = False
    ends: bool = False
    statistics: Mapping[str, Sequence[float]] | None = None

    def adapt(self, request: dict[str, Any]) -> dict[str, Any]:
        """A row's request as a server gets it: of a history only the pictures that are there."""
        if self.frames == 1:
            return request
        there = np.asarray(request["pad_mask"], bool)
        return {**request, self.key: np.asarray(request[self.key])[there], "pad_mask": np.ones(int(there.sum()), bool)}


_OCTO = {"picture": lanczos, "key": "image_primary", "frames": 2, "execution": Execution(1, 0.0)}
_RT1 = {"picture": resized_with_pad, "key": "image", "frames": 1, "execution": Execution(1), "ends": True}
CONVENTIONS: dict[str, Convention] = {
    "rt1-google": Convention(name="rt1-google", physical=rt1_google, relative=True, **_RT1),  # type: ignore[arg-type]
    "rt1-bridge": Convention(name="rt1-bridge", physical=rt1_bridge, **_RT1),  # type: ignore[arg-type]
    "octo-google": Convention(
        name="octo-google",
        physical=octo_google,
        relative=True,
        sticky=True,
        **_OCTO,  # type: ignore[arg-type]
    ),
    "octo-bridge": Convention(name="octo-bridge", physical=octo_bridge, **_OCTO),  # type: ignore[arg-type]
}
"""By word. Octo averages its last four chunks with equal weights and is asked in every step."""


def read_convention(word: str) -> Convention:
    """The convention of a word: ``octo-bridge``, or ``octo-bridge:statistics.json`` with mean and std of actions, as
    Octo's ``dataset_statistics.json`` has them under ``action``.

    Raises:
        UnknownNameError: no such convention.
        ConfigError: the file cannot be read, or holds no mean and std of 7 numbers.
    """
    name, _, file = word.partition(":")
    if name not in CONVENTIONS:
        raise UnknownNameError("convention", name, CONVENTIONS)
    found = CONVENTIONS[name]
    if not file:
        return found
    try:
        read = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"the statistics {file} cannot be read: {error}") from None
    statistics = read.get("action", read) if isinstance(read, dict) else read
    unnormalized(torch.zeros(1, NUMBERS), statistics)
    return replace(found, statistics=statistics)


class ConventionalPolicy:
    """Shows a policy the pictures of a convention, and turns its answers into actions.

    The policy is given ``image`` (N, 256, 320, 3) by RT-1's convention; by Octo's ``image_primary`` (N, 2, 256, 256, 3)
    with the oldest picture first and ``pad_mask`` (N, 2), False where an episode has no such picture yet. It answers
    with (N, H, 7 or more). RT-1's eighth number says that it has finished; further numbers are left out. Where a row's
    instruction changes, the row begins anew, as in the original: no picture and no command of before remains.

    Args:
        policy: of that convention; a policy server, for example.
        env: whose episodes are played. Its observations hold pictures; its controller moves the tool by metres and an
            axis-angle vector. What its gripper number means is read from its action card.
        convention: what it expects.
        camera: whose pictures; needed where the observation has several.

    Attributes:
        finished: (N,) bool of the last ``act``, see :class:`~manikin.policy.api.Policy`; None where the convention has
            no number for it.

    Raises:
        ConfigError: no picture is observed, there are several cameras, or the controller takes other actions.
    """

    def __init__(self, policy: Policy, env: BatchEnv, convention: Convention, *, camera: str | None = None) -> None:
        self.env, self.convention, self._camera = env, convention, camera
        self.name = f"{getattr(policy, 'name', type(policy).__name__)}"
        card = env.controller.card
        units = [dim.unit for dim in card.dims]
        if len(units) != NUMBERS or units[:6] != ["m"] * 3 + ["rad"] * 3 or card.grippers != (6,):
            raise ConfigError(
                f"the convention {convention.name} answers with a displacement of the tool and a gripper number; "
                f"{card.controller} takes {len(units)} numbers in {', '.join(units)}. Use a controller such as "
                "ee_delta_pose"
            )
        self._grip = card.dims[6]
        reference = "commanded" if convention.relative else "absolute"
        if (self._grip.unit, self._grip.reference) != ("opening", reference):
            says, such = (
                ("by how much the gripper closes", "relative, such as ee_delta_pose_planned")
                if convention.relative
                else ("whether the gripper is to be open", "an absolute opening, such as ee_delta_pose")
            )
            raise ConfigError(
                f"the convention {convention.name} says {says}; the gripper number of {card.controller} is "
                f"{self._grip.reference}, in {self._grip.unit}. Use a controller whose gripper number is {such}"
            )
        self._scale = torch.tensor([dim.scale for dim in card.dims[:6]])
        n = env.num_envs
        size = NUMBERS + 1 if convention.ends else NUMBERS
        self._policy = ChunkPolicy(_Cut(policy, size), n, size, execution=convention.execution)
        self.finished: Tensor | None = None
        self._told: list[str | None] = [None] * n
        self._gripper = StickyGripper(n)
        self._frames: Tensor | None = None  # (N, frames, H, W, 3)
        self._there = torch.zeros(n, convention.frames, dtype=torch.bool)

    def reset(self, rows: Tensor) -> None:
        """The rows begin a new episode: no picture is remembered, no gripper command lasts."""
        rows = rows.cpu()
        for row in rows.tolist():
            self._told[row] = None
        self._there[rows] = False
        self._gripper.reset(rows)
        self._policy.reset(rows)

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        """(N, 1, A)."""
        self._follow(instruction)
        picture = self.convention.picture(self._seen(observation).cpu())
        answer = self._policy.act(self._shown(picture), instruction)[:, 0].cpu()
        if self.convention.ends:
            answer, self.finished = answer[:, :NUMBERS], answer[:, NUMBERS] > 0
        if self.convention.statistics is not None:
            answer = unnormalized(answer, self.convention.statistics)
        action = self.convention.physical(answer.float())
        if self.convention.sticky:
            action[:, 6] = self._gripper(action[:, 6])
        opening = -action[:, 6] if self.convention.relative else (action[:, 6] + 1.0) / 2.0
        action[:, 6] = (opening - self._grip.offset) / self._grip.scale
        action[:, :6] = action[:, :6] / self._scale
        return action.clamp(-1.0, 1.0)[:, None]

    def _follow(self, instruction: Sequence[str]) -> None:
        """Rows that are told something else begin anew."""
        changed = [row for row, said in enumerate(instruction) if self._told[row] not in (None, said)]
        if changed:
            self.reset(torch.tensor(changed))
        self._told = list(instruction)

    def _seen(self, observation: Observation) -> Tensor:
        cameras = observation.get("cameras", {}) if isinstance(observation, Mapping) else {}
        seen = {name: streams["rgb"] for name, streams in cameras.items() if "rgb" in streams}
        if self._camera is None and len(seen) == 1:
            return next(iter(seen.values()))
        if self._camera not in seen:
            raise ConfigError(
                f"the convention {self.convention.name} needs the pictures of one camera; observed are those of "
                f'{", ".join(seen) or "none"}. Say observe = "rgb" and cameras = [NAME] in the protocol'
            )
        return seen[self._camera]

    def _shown(self, picture: Tensor) -> dict[str, Tensor]:
        if self.convention.frames == 1:
            return {self.convention.key: picture}
        if self._frames is None:
            self._frames = picture[:, None].repeat(1, self.convention.frames, 1, 1, 1)
        self._frames = torch.cat([self._frames[:, 1:], picture[:, None]], 1)
        self._there = torch.cat([self._there[:, 1:], torch.ones_like(self._there[:, :1])], 1)
        return {self.convention.key: self._frames, "pad_mask": self._there.clone()}


class _Cut:
    """The first ``size`` numbers of a policy's answers; one that is not there is 0."""

    def __init__(self, policy: Policy, size: int) -> None:
        self._policy, self._size = policy, size
        self.stateless = bool(getattr(policy, "stateless", False))

    def reset(self, rows: Tensor) -> None:
        self._policy.reset(rows)

    def act(self, observation: Observation, instruction: Sequence[str]) -> Tensor:
        answer = self._policy.act(observation, instruction)
        if answer.ndim != 3 or answer.shape[2] < NUMBERS:
            raise ActionError(f"a policy of this convention answers with (N, H, 7 or more), not {tuple(answer.shape)}")
        missing = max(0, self._size - answer.shape[2])
        return torch.nn.functional.pad(answer[:, :, : self._size], (0, missing))
