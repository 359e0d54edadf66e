"""Rows with different joints: one World and one set of handles per layout, behind the interface of one environment.

A World never has two layouts. Here every layout of a task has its own :class:`manikin.Env`, a bucket, and the rows are
spread over the slots of the buckets. What the buckets give is put together again, padded with zeros where layouts
differ in shape, with a mask beside it.

An episode's layout is its seed modulo the number of layouts, so a seed is the same scene in any row and batch, and
seeds that follow one another fill the buckets evenly. Rows that go on without a new seed keep their layout. Where seeds
ask for more rows of a layout than there is room for, it gets another bucket; what runs stays where it is.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, cast

import gymnasium
import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.env.env import Env
from manikin.env.loop_device import DeviceLoop, step_together
from manikin.env.observe import STATE_WORDS, space_of
from manikin.env.slots import Bucket, Places, masks
from manikin.env.task import Task
from manikin.errors import ActionError, ClosedError, ConfigError, DataError
from manikin.rng import episode_seed_from_entropy
from manikin.sim.snapshot import Snapshot
from manikin.sim.world import row_numbers
from manikin.spec.budget import Budget, advice, largest
from manikin.spec.camera import CameraSpec

__all__ = ["BucketEnv", "BucketSnapshot", "batched"]


def batched(task: type[Task] | Task, **options: Any) -> Env:
    """The environment for a task: buckets where it declares layouts. Both speak the same interface."""
    valid = tuple(inspect.signature(Env).parameters)[1:]
    for name in options:
        arguments.one_of("option of an environment", name, valid)
    if isinstance(task, type) and task.layouts:
        return cast(Env, BucketEnv(task, **options))
    return Env(task, **options)


@dataclass
class BucketSnapshot:
    """Saved rows of several layouts.

    Attributes:
        n: how many rows.
        pieces: which of them, and their snapshot; each piece is of one layout.
        layouts: number of each piece's layout.
    """

    n: int
    pieces: list[tuple[np.ndarray, Snapshot]]
    layouts: list[int]

    def __len__(self) -> int:
        return self.n

    @property
    def extra(self) -> dict[str, np.ndarray]:
        """As of :class:`Snapshot`, the keys of the rows' episodes: seed and index (n,) int64."""
        joined = {name: np.zeros(self.n, np.int64) for name in ("seed", "index")}
        for name, values in joined.items():
            for rows, snapshot in self.pieces:
                values[rows] = snapshot.extra[name]
        return joined


class BucketEnv(gymnasium.vector.VectorEnv):
    """N rows of a task whose rows may have different joints. ``manikin.make`` returns it for a task with ``layouts``.

    Options, ``reset``, ``step``, ``save`` and ``load`` are those of :class:`manikin.Env`. ``info["layout"]`` says which
    of ``task.layouts`` each row has. An observation whose shape differs between layouts is padded with zeros and has
    ``<name>_mask`` beside it, 1 where it is real.

    Attributes:
        buckets: the environments: one of each layout, in the order of ``task.layouts``, then those added for more room.
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

        count = len(task.layouts)
        room = -(-self.num_envs // count)

        def bucket(layout: int) -> Bucket:
            return Bucket(Env(task(config, arm=arm, layout=task.layouts[layout]), num_envs=room, **inner), layout)

        self._new, self._layouts = bucket, count
        self._buckets = [bucket(layout) for layout in range(count)]
        first = self.buckets[0]
        self.task, self.robot, self.robots, self.controller = first.task, first.robot, first.robots, first.controller
        self.robot_word, self.device, self.device_word = word, first.device, first.device_word
        self.horizon, self.control_hz, self.physics_hz = first.horizon, first.control_hz, first.physics_hz
        self.autoreset, self.terminates, self.render_mode = first.autoreset, first.terminates, first.render_mode
        self.reward_mode, self.observe, self.metadata = first.reward_mode, self._word, first.metadata
        self._bucket = np.full(self.num_envs, -1)
        self._slot = np.full(self.num_envs, -1)
        self._entropy: int | None = None
        self._closed = False
        self._masks = masks([e.single_observation_space for e in self.buckets], self.device)
        rows = np.arange(self.num_envs)  # placed for the shapes only; reset places them
        self._places: Places | None = Places(dict(enumerate(self._buckets)), rows % count, 0 * rows, self.device)
        with torch.no_grad():
            sample = self._where.joined({k: b.env._observer() for k, b in enumerate(self._buckets)})
        self.observation_names = self._names(sample) if self._flat else []
        self.single_observation_space = space_of(self._finish(sample))
        self._places = None
        self.single_action_space = first.single_action_space
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)

    @property
    def buckets(self) -> tuple[Env, ...]:
        """The environments behind this one; their rows are slots, see :meth:`slots`."""
        return tuple(b.env for b in self._buckets)

    @property
    def layout(self) -> Tensor:
        """(N,) int64 which of ``task.layouts`` each row has; -1 before the first reset."""
        return self._where.layout.clone()

    @property
    def instruction(self) -> list[str]:
        """What each row is asked to do, in words."""
        return [self._buckets[max(k, 0)].env.task.instruction for k in self._bucket]

    @property
    def budget(self) -> Budget | None:
        """Room that is enough for every layout: of each number the largest; None on the CPU, which needs none."""
        given = [env.budget for env in self.buckets if env.budget is not None]
        return largest(given) if given else None

    @property
    def h(self) -> Any:
        """There is none.

        Raises:
            AttributeError: every layout has handles of its own; says where.
        """
        names = ", ".join(f"{k}: {layout}" for k, layout in enumerate(self.task.layouts))
        raise AttributeError(
            f"rows of {self.task.id} have different joints, so every layout has handles of its own: env.buckets[k].h, "
            f"with k of {names}; env.slots(rows) says where rows are"
        )

    # ---- Gymnasium -------------------------------------------------------------------------------------------------

    @cached_property
    def observation_space(self) -> gymnasium.Space:  # type: ignore[override]
        """As :attr:`manikin.Env.observation_space`."""
        return gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)

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
            if value is None and self._bucket[row] < 0:
                if self._entropy is None:
                    self._entropy = episode_seed_from_entropy()
                value = given[row] = self._entropy + row
            if value is not None:
                self._move(row, value % self._layouts)
        seen, infos = {}, {}
        for k, bucket in enumerate(self._buckets):
            mine = bucket.rows.tolist()
            mask = np.array([row in given for row in mine])
            if not bucket.used.any():
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
        if (self._bucket < 0).any():
            raise ClosedError("call reset() before the first step")
        check = (self.num_envs, self.controller.card)
        refuse = self.buckets[0].out_of_range == "refuse"
        later = self.device_word != "cpu" and isinstance(actions, Tensor)  # on the device, without waiting for it
        if later:
            arguments.action_shape(actions, *check)
        else:
            arguments.actions(actions, *check, refuse)
        action = torch.as_tensor(actions, dtype=torch.float32, device=self.device).detach()
        going = None if active is None else arguments.mask_on(active, self.num_envs, "active", self.device)
        used = dict(self._in_use())
        if self.device_word == "cpu":
            steps = [b.env.step(b.slotwise(action), active=b.moving(going)) for b in used.values()]
        else:
            loops = [cast(DeviceLoop, b.env._loop) for b in used.values()]
            moves = [None if going is None else b.slotwise(going) for b in used.values()]
            try:
                with torch.no_grad(), self.buckets[0]._on:
                    steps = step_together(loops, [b.slotwise(action) for b in used.values()], moves)
            except ActionError:
                arguments.actions(actions, *check, refuse)  # which names rows, and not slots
                raise
        seen, rewards, *ends, infos = (dict(zip(used, each, strict=True)) for each in zip(*steps, strict=True))
        terminated, truncated = map(self._joined, ends)
        return self._observed(seen), self._joined(rewards), terminated, truncated, self._informed(infos)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One (H, W, 3) uint8 image of each row; None without ``render_mode``."""
        return None if self.render_mode is None else tuple(self.image(row) for row in range(self.num_envs))

    def image(self, row: int = 0, **options: Any) -> np.ndarray:
        """One picture of a row, as :meth:`manikin.Env.image`."""
        env, slot = self._place(row)
        return env.image(slot, **options)

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras, as :attr:`manikin.Env.cameras`; every layout has them."""
        return self.buckets[0].cameras

    def camera(self, name: str) -> CameraSpec:
        """A camera, as :meth:`manikin.Env.camera`, in the scene of the first layout."""
        return self.buckets[0].camera(name)

    def model_data(self, row: int = 0) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Model and state of a row, as :meth:`manikin.Env.model_data`; rows of other layouts have other models."""
        env, slot = self._place(row)
        return env.model_data(slot)

    @property
    def arm_qpos(self) -> Tensor:
        """(N, joints) of the arm [rad or m]."""
        return self.each(lambda env: env.arm_qpos)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """As :attr:`manikin.Env.joint_names`."""
        return self.buckets[0].joint_names

    @property
    def joints(self) -> Tensor:
        """(N, joints) as :attr:`manikin.Env.joints`."""
        return self.each(lambda env: env.joints)

    @property
    def force_names(self) -> tuple[str, ...]:
        """As :attr:`manikin.Env.force_names`."""
        return self.buckets[0].force_names

    @property
    def forces(self) -> Tensor:
        """(N, 1 + links) [N] as :attr:`manikin.Env.forces`."""
        return self.each(lambda env: env.forces)

    def towards(self, joints: Tensor, *, within: float | None = None) -> Tensor:
        """(N, A) actions, as :meth:`manikin.Env.towards`."""
        return self._joined({k: b.env.towards(b.slotwise(joints), within=within) for k, b in self._in_use()})

    @property
    def arm_command(self) -> Tensor:
        """(N, joints) what the arm was commanded last."""
        return self.each(lambda env: env.arm_command)

    @property
    def tcp_poses(self) -> Tensor:
        """(N, robots, 7) of the tool centre points in the world."""
        return self.each(lambda env: env.tcp_poses)

    def reward_of(self, actions: Tensor) -> Tensor:
        """(N,) reward of the present states, as :meth:`manikin.Env.reward_of`."""
        return self._joined({k: b.env.reward_of(b.slotwise(actions)) for k, b in self._in_use()})

    def close_extras(self, **kwargs: Any) -> None:
        """Free the simulations."""
        self._closed = True
        for env in self.buckets:
            env.close()

    # ---- state -----------------------------------------------------------------------------------------------------

    def save(self, rows: Any = None) -> BucketSnapshot:
        """Everything that later steps of the rows depend on."""
        index = row_numbers(rows, self.num_envs)
        pieces, layouts = [], []
        for k, which in self._split(index):
            pieces.append((which, self.buckets[k].save(self._slot[index[which]])))
            layouts.append(self._buckets[k].layout)
        return BucketSnapshot(len(index), pieces, layouts)

    def load(self, snapshot: BucketSnapshot, rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows where the snapshot was (as many rows, or one for all); returns observations and info of all rows."""
        self._check_open()
        index = row_numbers(rows, self.num_envs)
        if len(snapshot) not in (1, len(index)):
            raise DataError(f"a snapshot of {len(snapshot)} rows cannot be loaded into {len(index)}")
        for (_, piece), layout in zip(snapshot.pieces, snapshot.layouts, strict=True):
            world = self.buckets[layout].world
            piece.index_for(len(piece), world.scene.physics_hash, world.kind)  # refused before any row has moved
        for (which, piece), layout in zip(snapshot.pieces, snapshot.layouts, strict=True):
            targets = index if len(snapshot) == 1 else index[which]
            for row in targets.tolist():
                self._move(row, layout)
            for k, at in self._split(targets):
                self._buckets[k].ready()
                part = piece if len(piece) == 1 else piece.rows(at)
                self.buckets[k].load(part, self._slot[targets[at]])
        return self.reset(options={"reset_mask": np.zeros(self.num_envs, bool)})

    def put(self, states: Sequence[np.ndarray], rows: Any = None) -> tuple[Any, dict[str, Any]]:
        """Put rows into physics states of their layouts, as :meth:`manikin.Env.put`."""
        index = row_numbers(rows, self.num_envs)
        for k, which in self._split(index):
            self.buckets[k].put([states[i] for i in which.tolist()], self._slot[index[which]])
        return self.reset(options={"reset_mask": np.zeros(self.num_envs, bool)})

    def state_hash(self, rows: Any = None) -> Tensor:
        """(n,) int64: a 64-bit hash of each row's physics state, exact to the bit."""
        index = row_numbers(rows, self.num_envs)
        found = torch.zeros(len(index), dtype=torch.int64)
        for k, which in self._split(index):
            found[torch.from_numpy(which)] = self.buckets[k].state_hash(self._slot[index[which]])
        return found

    def physics_states(self, rows: Any = None) -> list[np.ndarray]:
        """One vector per row, as :meth:`manikin.Env.physics_states`; each as long as its layout needs."""
        index = row_numbers(rows, self.num_envs)
        found: dict[int, np.ndarray] = {}
        for k, which in self._split(index):
            found |= zip(which.tolist(), self.buckets[k].physics_states(self._slot[index[which]]), strict=True)
        return [found[i] for i in range(len(index))]

    def fingerprint(self) -> dict[str, Any]:
        """As :meth:`manikin.Env.fingerprint`; the model's hash is over all layouts."""
        hashes = {name: env.scene.hash for name, env in zip(self.task.layouts, self.buckets, strict=False)}
        whole = hashlib.sha256("".join(hashes.values()).encode()).hexdigest()[:16]
        same = {**self.buckets[0].fingerprint(), "observe": self._word, "model_hash": whole, "layouts": hashes}
        return {**same, "budget": None if self.budget is None else asdict(self.budget)}

    def budget_advice(self) -> str:
        """As :meth:`manikin.Env.budget_advice`: a budget with room for every layout."""
        found = ((b.env.budget, b.env.world.shortages(), b.rows.tolist()) for b in self._buckets)
        return "" if self.device_word == "cpu" else advice(found)

    # ---- putting together ------------------------------------------------------------------------------------------

    def each(self, function: Callable[[Env], Tensor]) -> Tensor:
        """(N, ...) what ``function`` gives for the rows of each bucket's environment, padded."""
        return self._joined({k: function(b.env) for k, b in self._in_use()})

    def slots(self, rows: Any = None) -> dict[int, np.ndarray]:
        """Number of a bucket -> slots of the rows in it."""
        index = row_numbers(rows, self.num_envs)
        return {k: self._slot[index[which]] for k, which in self._split(index)}

    def _in_use(self) -> list[tuple[int, Bucket]]:
        return [(k, b) for k, b in enumerate(self._buckets) if b.used.any()]

    def _split(self, index: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Numbers of buckets, and which of the rows ``index`` each has."""
        if (self._bucket[index] < 0).any():
            raise ClosedError("call reset() first: rows have no layout yet")
        return [(k, np.flatnonzero(self._bucket[index] == k)) for k in np.unique(self._bucket[index]).tolist()]

    def _place(self, row: int) -> tuple[Env, int]:
        """The environment and slot of a row; before the first reset some row of the first layout."""
        self._check_open()
        row = arguments.row_number(row, self.num_envs)
        return self.buckets[max(int(self._bucket[row]), 0)], max(int(self._slot[row]), 0)

    def _move(self, row: int, layout: int) -> None:
        """Give a row a slot of that layout; where none is free, a new bucket."""
        if self._bucket[row] >= 0:
            now = self._buckets[self._bucket[row]]
            if now.layout == layout:
                return
            now.put(self._slot[row], -1)
        room = [k for k, b in enumerate(self._buckets) if b.layout == layout and not b.used.all()]
        if not room:
            self._buckets.append(self._new(layout))
        k = room[0] if room else len(self._buckets) - 1
        slot = int(np.flatnonzero(~self._buckets[k].used)[0])
        self._buckets[k].put(slot, row)
        self._bucket[row], self._slot[row], self._places = k, slot, None

    @property
    def _where(self) -> Places:
        """Made anew when a row has moved."""
        if self._places is None:
            self._places = Places(dict(self._in_use()), self._bucket, self._slot, self.device)
        return self._places

    def _joined(self, found: Mapping[int, Tensor]) -> Tensor:
        joined: Tensor = self._where.joined(found)
        return joined

    def _observed(self, found: Mapping[int, Any]) -> Any:
        return self._finish(self._where.joined(found))

    def _finish(self, named: dict[str, Any]) -> Any:
        """Masks added; flat where the observation word is."""
        at = self._where.layout
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
        out = []
        for group in STATE_WORDS[self._word]:
            for name, value in named[group].items():
                for word in (name, f"{name}_mask") if (group, name) in self._masks else (name,):
                    width = value[0].numel()
                    out += [f"{group}/{word}"] if width == 1 else [f"{group}/{word}[{i}]" for i in range(width)]
        return out

    def _informed(self, infos: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        for info in infos.values():
            info.pop("entropy", None)
        joined: dict[str, Any] = self._where.joined(infos)
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
