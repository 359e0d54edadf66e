"""Rows with different joints: one World and one set of handles per layout, behind the interface of one environment.

A World never has two layouts. Here every layout of a task has its own :class:`manikin.Env`, a bucket, and the rows are
spread over the slots of the buckets. What the buckets give is put together again, padded with zeros where layouts
differ in shape, with a mask beside it.

An episode's layout is its seed modulo the number of layouts, so a seed is the same scene in any row and batch, and
seeds that follow one another fill the buckets evenly. Rows that go on without a new seed keep their layout. A bucket
grows when seeds ask for more of its layout than it has room for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.env.env import Env
from manikin.env.observe import STATE_WORDS, space_of
from manikin.env.task import Task
from manikin.errors import ClosedError, ConfigError, DataError
from manikin.rng import episode_seed_from_entropy
from manikin.sim.snapshot import Snapshot

__all__ = ["BucketEnv", "BucketSnapshot", "batched"]


def batched(task: type[Task] | Task, **options: Any) -> Env:
    """The environment for a task: buckets where it declares layouts. Both speak the same interface."""
    if isinstance(task, type) and task.layouts:
        return cast(Env, BucketEnv(task, **options))
    return Env(task, **options)


@dataclass
class BucketSnapshot:
    """Saved rows of several layouts: layout -> (which of the n rows, their snapshot)."""

    n: int
    parts: dict[int, tuple[np.ndarray, Snapshot]]

    def __len__(self) -> int:
        return self.n


class _Bucket:
    """The environment of one layout; ``rows`` (slots,) says which row is in each slot, -1 for none."""

    def __init__(self, make: Callable[[int], Env], slots: int) -> None:
        self._make, self.env = make, make(slots)
        self.rows = np.full(slots, -1)
        self.started = False

    def take(self, row: int) -> int:
        """A free slot for the row; the bucket grows where there is none."""
        free = np.flatnonzero(self.rows < 0)
        slot = int(free[0]) if len(free) else len(self.rows)
        if not len(free):
            old, kept = self.env, self.env.save() if self.started else None
            self.env = self._make(2 * len(self.rows))
            self.rows = np.concatenate([self.rows, np.full(len(self.rows), -1)])
            if kept is not None:
                self.start([0] * len(self.rows), np.ones(len(self.rows), bool), {})
                self.env.load(kept, np.arange(slot))
            old.close()
        self.rows[slot] = row
        return slot

    def start(
        self, seeds: list[int | None], mask: np.ndarray, options: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Restart the slots of the mask; the first time also those that no row is in, so that all have a state."""
        if not self.started:
            seeds, mask = [0 if s is None else s for s in seeds], np.ones(len(self.rows), bool)
        self.started = True
        chosen = [s for s, m in zip(seeds, mask, strict=True) if m]
        return self.env.reset(seed=chosen, options={**options, "reset_mask": mask})


class BucketEnv(gymnasium.vector.VectorEnv):
    """N rows of a task whose rows may have different joints. ``manikin.make`` returns it for a task with ``layouts``.

    Options, ``reset``, ``step``, ``save`` and ``load`` are those of :class:`manikin.Env`. ``info["layout"]`` says which
    of ``task.layouts`` each row has. An observation whose shape differs between layouts is padded with zeros and has
    ``<name>_mask`` beside it, 1 where it is real.

    Attributes:
        buckets: the environment of each layout, in the order of ``task.layouts``.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        task: type[Task],
        *,
        num_envs: int = 1,
        robot: str | Sequence[str] | None = None,
        config: Any = None,
        **options: Any,
    ) -> None:
        if not task.layouts:
            raise ConfigError(f"{task.id} declares no layouts; use manikin.Env")
        self.num_envs = arguments.positive_int("num_envs", num_envs)
        self._word = options.pop("observe", "state")
        self._flat = self._word in ("state", "policy")
        word, chosen = arguments.robots(task, robot)
        arm = ",".join(one.arm.name for one in chosen)
        inner = {**options, "robot": word, "observe": "state_dict" if self._flat else self._word}

        def maker(layout: str) -> Callable[[int], Env]:
            return lambda slots: Env(task(config, arm=arm, layout=layout), num_envs=slots, **inner)

        count = len(task.layouts)
        room = -(-self.num_envs // count)
        self._buckets = [_Bucket(maker(layout), room) for layout in task.layouts]
        first = self.buckets[0]
        self.task, self.robot, self.robots, self.controller = first.task, first.robot, first.robots, first.controller
        self.robot_word, self.device, self.device_word = word, first.device, first.device_word
        self.horizon, self.control_hz, self.physics_hz = first.horizon, first.control_hz, first.physics_hz
        self.autoreset, self.terminates, self.render_mode = first.autoreset, first.terminates, first.render_mode
        self.reward_mode, self.observe, self.metadata = first.reward_mode, self._word, first.metadata
        self._layout = np.full(self.num_envs, -1)
        self._slot = np.full(self.num_envs, -1)
        self._entropy: int | None = None
        self._closed = False
        self._masks: dict[tuple[str, str], Tensor] = {}
        if not {"rgb", "depth", "segmentation", "normals", "pointcloud", "voxel"} & set(self._word.split("+")):
            self._masks = _masks([e.single_observation_space for e in self.buckets])
        self._layout[:] = np.arange(self.num_envs) % count  # for the shapes only; reset places the rows
        with torch.no_grad():
            sample = self._padded({k: b.env._observer() for k, b in enumerate(self._buckets)})
        self.observation_names = self._names(sample) if self._flat else []
        self.single_observation_space = space_of(self._finish(sample))
        self._layout[:] = -1
        self.single_action_space = first.single_action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)

    @property
    def buckets(self) -> tuple[Env, ...]:
        """The environment of each layout. Those that grow are replaced by larger ones."""
        return tuple(b.env for b in self._buckets)

    @property
    def layout(self) -> Tensor:
        """(N,) int64 which of ``task.layouts`` each row has; -1 before the first reset."""
        return torch.from_numpy(self._layout.copy())

    @property
    def instruction(self) -> list[str]:
        """What each row is asked to do, in words."""
        return [self.buckets[max(k, 0)].task.instruction for k in self._layout]

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes, as :meth:`manikin.Env.reset`."""
        self._check_open()
        options = dict(options or {})
        rows = np.flatnonzero(arguments.mask(options.pop("reset_mask", None), self.num_envs)).astype(np.int32)
        index = options.pop("episode_index", None)
        numbers = None if index is None else arguments.indices(index, rows, self.num_envs)
        given = dict(zip(rows.tolist(), arguments.seeds(seed, rows, self.num_envs), strict=True))
        for row, value in given.items():
            if value is None and self._layout[row] < 0:
                if self._entropy is None:
                    self._entropy = episode_seed_from_entropy()
                value = given[row] = self._entropy + row
            if value is not None:
                self._move(row, value % len(self._buckets))
        seen, infos = {}, {}
        for k, bucket in enumerate(self._buckets):
            mine = bucket.rows.tolist()
            mask = np.array([row in given for row in mine])
            if not (bucket.rows >= 0).any():
                continue
            more = dict(options)
            if numbers is not None:
                at = dict(zip(rows.tolist(), numbers.tolist(), strict=True))
                wanted = mask if bucket.started else np.ones(len(mask), bool)
                more["episode_index"] = [at.get(row, 0) for row, w in zip(mine, wanted, strict=True) if w]
            seen[k], infos[k] = bucket.start([given.get(row) for row in mine], mask, more)
        return self._observed(seen), self._informed(infos)

    def step(
        self, actions: Tensor | np.ndarray, *, active: Tensor | np.ndarray | None = None
    ) -> tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]:
        """Advance by one control step, as :meth:`manikin.Env.step`."""
        self._check_open()
        if (self._layout < 0).any():
            raise ClosedError("call reset() before the first step")
        action = torch.as_tensor(actions, dtype=torch.float32)
        size = self.controller.card.size
        if tuple(action.shape) != (self.num_envs, size):
            raise ConfigError(f"actions must have shape ({self.num_envs}, {size}), got {tuple(action.shape)}")
        going = None if active is None else arguments.mask(active, self.num_envs, "active")
        seen, infos = {}, {}
        rewards, ends = {}, {}
        for k, bucket in enumerate(self._buckets):
            used = bucket.rows >= 0
            if not used.any():
                continue
            row = np.where(used, bucket.rows, 0)
            moves = used if going is None else used & going[row]
            seen[k], rewards[k], terminated, truncated, infos[k] = bucket.env.step(
                action[torch.from_numpy(row)] * torch.from_numpy(used)[:, None], active=None if moves.all() else moves
            )
            ends[k] = {"terminated": terminated, "truncated": truncated}
        over = self._padded(ends)
        reward = self._padded({k: {"r": r} for k, r in rewards.items()})["r"]
        return self._observed(seen), reward, over["terminated"], over["truncated"], self._informed(infos)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One (H, W, 3) uint8 image of each row; None without ``render_mode``."""
        if self.render_mode is None:
            return None
        return tuple(self.image(row) for row in range(self.num_envs))

    def image(self, row: int = 0, **options: Any) -> np.ndarray:
        """One picture of a row, as :meth:`manikin.Env.image`."""
        self._check_open()
        return self.buckets[max(self._layout[row], 0)].image(max(int(self._slot[row]), 0), **options)

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations."""
        self._closed = True
        for env in self.buckets:
            env.close()

    # ---- state -----------------------------------------------------------------------------------------------------

    def save(self, rows: Any = None) -> BucketSnapshot:
        """Everything that later steps of the rows depend on."""
        index = arguments.row_numbers(rows, self.num_envs)
        parts = {}
        for k in np.unique(self._layout[index]).tolist():
            which = np.flatnonzero(self._layout[index] == k)
            parts[k] = (which, self.buckets[k].save(self._slot[index[which]]))
        return BucketSnapshot(len(index), parts)

    def load(self, snapshot: BucketSnapshot, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows where the snapshot was (as many rows, or one for all); returns observations and info of all rows."""
        self._check_open()
        index = arguments.row_numbers(rows, self.num_envs)
        if len(snapshot) not in (1, len(index)):
            raise DataError(f"a snapshot of {len(snapshot)} rows cannot be loaded into {len(index)}")
        for k, (which, part) in snapshot.parts.items():
            targets = index if len(snapshot) == 1 else index[which]
            for row in targets.tolist():
                self._move(row, k)
            if not self._buckets[k].started:
                slots = len(self._buckets[k].rows)
                self._buckets[k].start([0] * slots, np.ones(slots, bool), {})
            self.buckets[k].load(part, self._slot[targets])
        return self.reset(options={"reset_mask": np.zeros(self.num_envs, bool)})

    def state_hash(self, rows: Any = None) -> Tensor:
        """(n,) int64: a 64-bit hash of each row's physics state, exact to the bit."""
        index = arguments.row_numbers(rows, self.num_envs)
        whole = self.each(lambda env: env.state_hash())
        return whole[torch.from_numpy(index)]

    def fingerprint(self) -> dict[str, Any]:
        """As :meth:`manikin.Env.fingerprint`; the model's hash is over all layouts."""
        hashes = {name: env.scene.hash for name, env in zip(self.task.layouts, self.buckets, strict=True)}
        whole = hashlib.sha256("".join(hashes.values()).encode()).hexdigest()[:16]
        return {**self.buckets[0].fingerprint(), "observe": self._word, "layouts": hashes, "model_hash": whole}

    # ---- putting together ------------------------------------------------------------------------------------------

    def each(self, function: Callable[[Env], Tensor]) -> Tensor:
        """(N, ...) what ``function`` gives for the rows of each layout's environment, padded."""
        found = {k: {"x": function(b.env)} for k, b in enumerate(self._buckets) if (b.rows >= 0).any()}
        return self._padded(found)["x"]

    def slots(self, rows: Any = None) -> dict[int, np.ndarray]:
        """Layout -> slots of the rows in that layout's environment."""
        index = arguments.row_numbers(rows, self.num_envs)
        return {k: self._slot[index][self._layout[index] == k] for k in np.unique(self._layout[index]).tolist()}

    def _move(self, row: int, layout: int) -> None:
        if self._layout[row] == layout:
            return
        if self._layout[row] >= 0:
            self._buckets[self._layout[row]].rows[self._slot[row]] = -1
        self._slot[row] = self._buckets[layout].take(row)
        self._layout[row] = layout

    def _padded(self, found: Mapping[int, Any]) -> Any:
        """Values (slots, ...) per layout as one (N, ...): rows in their places, the rest of a shape zero."""
        some = next(iter(found.values()))
        if isinstance(some, Mapping):
            keys = dict.fromkeys(key for value in found.values() for key in value)
            return {key: self._padded({k: v[key] for k, v in found.items() if key in v}) for key in keys}
        tensors = {k: torch.as_tensor(v) for k, v in found.items()}
        first = next(iter(tensors.values()))
        shape = [max(t.shape[i] for t in tensors.values()) for i in range(1, first.ndim)]
        out = torch.zeros((self.num_envs, *shape), dtype=first.dtype, device=first.device)
        for k, value in tensors.items():
            rows = torch.from_numpy(np.flatnonzero(self._layout == k))
            slots = torch.from_numpy(self._slot[self._layout == k]).clamp_min(0)
            place: Any = (rows, *(slice(0, s) for s in value.shape[1:]))
            out[place] = value[slots]
        return out

    def _observed(self, found: Mapping[int, Any]) -> Any:
        return self._finish(self._padded(found))

    def _finish(self, named: dict[str, Any]) -> Any:
        """Masks added; flat where the observation word is."""
        at = torch.from_numpy(self._layout)
        for (group, name), table in self._masks.items():
            if group in named:
                whole = {}
                for key, value in named[group].items():
                    whole[key] = value
                    if key == name:  # as wide as the widest layout, in a row or not
                        whole[key] = value.new_zeros(self.num_envs, *table.shape[1:])
                        place: Any = (slice(None), *(slice(0, s) for s in value.shape[1:]))
                        whole[key][place] = value
                        whole[f"{name}_mask"] = table[at]
                named[group] = whole
        if not self._flat:
            return named
        columns = [v.reshape(self.num_envs, -1) for g in STATE_WORDS[self._word] for v in named[g].values()]
        return torch.cat(columns, 1)

    def _names(self, named: dict[str, Any]) -> list[str]:
        masked = {(g, n) for g, n in self._masks}
        out = []
        for group in STATE_WORDS[self._word]:
            for name, value in named[group].items():
                for word in (name, f"{name}_mask") if (group, name) in masked else (name,):
                    width = value[0].numel()
                    out += [f"{group}/{word}"] if width == 1 else [f"{group}/{word}[{i}]" for i in range(width)]
        return out

    def _informed(self, infos: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        for info in infos.values():
            info.pop("entropy", None)
        joined: dict[str, Any] = self._padded(infos)
        joined["layout"] = self.layout
        if "final_obs" in joined:
            joined["final_obs"] = self._finish(joined["final_obs"])
            joined["final_info"]["layout"] = self.layout
        if self._entropy is not None:
            joined["entropy"] = self._entropy
        return joined

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this environment is closed")


def _masks(spaces: Sequence[gymnasium.Space]) -> dict[tuple[str, str], Tensor]:
    """(group, name) -> (layouts, *shape) float32, of the observations whose shape is not the same everywhere."""
    out = {}
    for group, inner in spaces[0].items():  # type: ignore[attr-defined]
        for name in inner:
            shapes = [tuple(space[group][name].shape) for space in spaces]  # type: ignore[index]
            if len(set(shapes)) > 1:
                most = [max(s[i] for s in shapes) for i in range(len(shapes[0]))]
                table = torch.zeros(len(spaces), *most)
                for k, shape in enumerate(shapes):
                    place: Any = (k, *(slice(0, s) for s in shape))
                    table[place] = 1.0
                out[group, name] = table
    return out
