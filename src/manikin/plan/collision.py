"""Does an arm touch anything? For many configurations of many rows at once, by MuJoCo's own collision detection.

A :class:`CollisionChecker` has a copy of the scene's model in which only what matters collides: the arm with itself,
the gripper and what it holds with the arm, and all of them with everything else, the latter already within ``margin``.
What is around the arm is where it is in the simulation at the moment of :meth:`CollisionChecker.look`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco import batch

from manikin.errors import ConfigError
from manikin.math import pose_inv, pose_mul
from manikin.scene.handles import Part, Robot
from manikin.sim.device import on_host, processors
from manikin.sim.world import World

__all__ = ["CollisionChecker"]

_NONE, _POS = int(mujoco.mjtStage.mjSTAGE_NONE), int(mujoco.mjtStage.mjSTAGE_POS)
_AROUND, _ARM = 1, 2  # bits of what collides: with the surroundings, with the arm itself
_SHAPES = ("geom_", "body_pos", "body_quat", "body_contype", "body_conaffinity", "bvh_aabb", "jnt_pos", "jnt_axis")
_NOT_SHAPES = ("geom_friction", "geom_sol", "geom_rgba", "geom_matid", "geom_group", "geom_margin", "geom_gap")
_SLOTS = 512  # configurations in one call, at least 8 and at most 64 of a row


class CollisionChecker:
    """Checks configurations of one robot among everything else in a scene.

    Args:
        world: whose rows are looked at.
        robot: the arm that moves.
        margin: [m] how near the arm, the gripper and what it holds may come to anything else. The arm is not to touch
            itself either, there without a margin.
        held: what the gripper holds, in every row; it moves with the TCP and may touch the gripper.
        ignore: parts that may be touched.
    """

    def __init__(
        self, world: World, robot: Robot, *, margin: float = 0.01, held: Part | None = None, ignore: Iterable[Part] = ()
    ) -> None:
        if margin < 0:
            raise ConfigError(f"margin must be at least 0 m, not {margin}")
        if held is not None and held.kind != "dynamic":
            raise ConfigError(f"{held.name} is a {held.kind} part; only a dynamic part can be held")
        self._world, self.robot, self.margin, self.held = world, robot, margin, held
        scene = world.scene.model
        joints = [int(scene.joint(robot.prefix + j).id) for j in robot.arm.joints]
        self._qadr = [int(scene.jnt_qposadr[j]) for j in joints]
        self._tcp = int(scene.body(robot.prefix + robot.model.tcp_body).id)
        self._held_adr = -1 if held is None else int(scene.jnt_qposadr[scene.body_jntadr[held.body_id]])
        self._ignored = {part.body_id for part in ignore}
        self._kind_of_body(scene)
        self._model = model = copy.copy(scene)
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY | mujoco.mjtDisableBit.mjDSBL_SENSOR)
        model.geom_margin[:] = 0.0
        # what is near is a contact that makes no force, and so costs nothing to prepare
        model.geom_gap[:] = np.where(self._around, margin, 0.0)
        model.body_margin[:] = margin  # what is farther is not looked at
        for field, value in self._bits({f: getattr(scene, f)[None] for f in _BITS}).items():
            getattr(model, field)[:] = value[0]
        self._slots = np.zeros(0, np.int64)
        self._batch: batch.Batch | None = None

    def _kind_of_body(self, model: mujoco.MjModel) -> None:
        """Sort bodies into arm, tool (the gripper and what is held or fixed to it) and surroundings."""
        robot = self.robot
        root = int(model.body(robot.prefix + robot.model.base_body).id)
        inside = np.zeros(model.nbody, bool)
        for b in range(1, model.nbody):
            inside[b] = b == root or inside[model.body_parentid[b]]
        own = {link.name for link in robot.arm.links} - {
            f.body for f in (robot.gripper.fingers if robot.gripper else ())
        }
        arm = np.array([inside[b] and model.body(b).name.removeprefix(robot.prefix) in own for b in range(model.nbody)])
        if not arm.any():  # a file that names its bodies otherwise: all of it is arm
            arm = inside.copy()
        if self.held is not None:
            inside[self.held.body_id] = True
        self._arm_body, self._tool_body = arm, inside & ~arm
        self._arm_geom, self._tool_geom = arm[model.geom_bodyid], self._tool_body[model.geom_bodyid]
        self._around = ~(self._arm_geom | self._tool_geom)

    def _bits(self, of: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What collides here, from what collides in the simulation; each (n, geoms) or (n, bodies)."""
        model = self._world.scene.model
        bodies = model.geom_bodyid
        there = (of["geom_contype"] | of["geom_conaffinity"]) != 0
        there &= ~np.isin(bodies, sorted(self._ignored))
        # surroundings count when they collide with anything of the robot
        moving = ~self._around
        type_, affinity = (np.bitwise_or.reduce(np.where(moving & there, of[f], 0), 1) for f in _BITS[:2])
        meets = (of["geom_contype"] & affinity[:, None]) | (of["geom_conaffinity"] & type_[:, None])
        there &= moving | (meets != 0)
        contype = np.where(there & moving, _AROUND | _ARM, 0)
        conaffinity = np.where(there, np.where(self._around, _AROUND, np.where(self._arm_geom, _ARM, 0)), 0)
        out = {"geom_contype": contype, "geom_conaffinity": conaffinity}
        for body_field, values in (("body_contype", contype), ("body_conaffinity", conaffinity)):
            whole = np.zeros((len(values), model.nbody), values.dtype)
            for geom, body in enumerate(bodies):
                whole[:, body] |= values[:, geom]
            out[body_field] = whole
        return out

    # ---- the rows that are looked at ---------------------------------------------------------------------------------

    def look(self, rows: np.ndarray) -> None:
        """Take the rows' surroundings as they are now; numbers of rows below are places in ``rows``."""
        n, world = len(rows), self._world
        self.of_row = max(8, min(64, _SLOTS // n))
        varied = sorted(f for f in world.varied if f.startswith(_SHAPES) and not f.startswith(_NOT_SHAPES))
        if self._batch is None or self._batch.nsim != n * self.of_row:
            self._batch = batch.Batch(self._model, n * self.of_row, processors())
            self._qpos = self._batch.bind("qpos")
            self._ncon = self._batch.bind("ncon").reshape(-1)
            self._batch.reset(stage=_NONE)
        slots = np.repeat(np.arange(n), self.of_row)
        places = world.places(np.asarray(rows))
        self._places = places
        self._rows = np.asarray(rows)
        self._base = places["qpos"].astype(np.float64)
        self._qpos[:] = self._base[slots]
        for field in ("mocap_pos", "mocap_quat"):
            if places[field].size:
                target = self._batch.bind(field)
                target[:] = places[field][slots].reshape(target.shape)
        fields = {f: np.asarray(world.model_field(f))[rows] for f in varied}
        if any(f in _BITS for f in varied):
            fields |= self._bits({f: np.asarray(world.model_field(f))[rows] for f in _BITS})
        for field, value in fields.items():
            target = self._batch.expand(field)
            target[:] = value[slots].reshape(target.shape)
        if self.held is not None:
            part, tcp = (pose.cpu()[self._rows].double() for pose in (self.held.pose, self.robot.tcp_pose))
            self._in_hand = pose_mul(pose_inv(tcp), part)

    def free(self, q: np.ndarray, which: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """(m, k) bool: no contact in configurations (m, k, joints) [rad] of the rows ``which`` (m,), ascending.

        With a mask (m, k) only those are looked at; the others count as free. ``of_row`` of a row fit into one call.
        """
        assert self._batch is not None, "look() first"
        m, k, _ = q.shape
        if k > self.of_row:
            parts = [slice(a, a + self.of_row) for a in range(0, k, self.of_row)]
            return np.concatenate([self.free(q[:, p], which, None if mask is None else mask[:, p]) for p in parts], 1)
        slots = (which[:, None] * self.of_row + np.arange(k)).reshape(-1)
        flat = q.reshape(m * k, -1)
        if mask is not None:
            chosen = mask.reshape(-1)
            slots, flat = slots[chosen], flat[chosen]
        out = np.ones(m * k, bool)
        if len(slots):
            self._put(flat, slots, slots // self.of_row)
            self._batch.forward(slots.astype(np.int32), stage=_POS)
            contact = self._ncon[slots] > 0
            if mask is None:
                out = ~contact
            else:
                out[chosen] = ~contact
        return out.reshape(m, k)

    def _put(self, q: np.ndarray, slots: np.ndarray, which: np.ndarray) -> None:
        self._qpos[slots[:, None], self._qadr] = q
        if self.held is not None:
            with on_host(self._world.device):
                found = self.robot.solver.chain.host.fk(torch.from_numpy(np.ascontiguousarray(q)))
            tcp = pose_mul(self.robot.base_pose.cpu().double().expand(len(q), 7), torch.cat(found, 1))
            pose = pose_mul(tcp, self._in_hand[torch.from_numpy(which)])
            self._qpos[slots, self._held_adr : self._held_adr + 7] = pose.numpy()

    def single(self, which: int) -> Callable[[np.ndarray], bool]:
        """The same question for one configuration (joints,) of a row at a time, for planners that ask one by one."""
        model, data = self._alone(which)
        held = None if self.held is None else self._in_hand[which].numpy()

        def free(q: np.ndarray) -> bool:
            data.qpos[self._qadr] = q
            mujoco.mj_kinematics(model, data)
            if held is not None:
                at, turn = np.zeros(3), np.zeros(4)
                mujoco.mju_mulPose(at, turn, data.xpos[self._tcp], data.xquat[self._tcp], held[:3], held[3:])
                data.qpos[self._held_adr : self._held_adr + 7] = (*at, *turn)
                mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            return int(data.ncon) == 0

        return free

    def _alone(self, which: int) -> tuple[Any, Any]:
        """The checker's model and state of one row, on their own."""
        assert self._batch is not None, "look() first"
        slot = which * self.of_row
        model = self._batch.get_model(slot) if self._world.varied else self._model
        data = mujoco.MjData(model)
        self._batch.get_data(slot, data)
        return model, data

    def touching(self, q: np.ndarray, which: int) -> list[tuple[str, str, float]]:
        """What touches or is within the margin in one configuration (joints,) of a row: (body, other, distance [m])."""
        self._put(q[None], np.array([which * self.of_row]), np.array([which]))
        model, data = self._alone(which)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        found: dict[tuple[str, str], float] = {}
        for contact in data.contact[: data.ncon]:
            names = sorted(
                (self._name(model, int(g)) for g in contact.geom), key=lambda s: not s.startswith(self.robot.prefix)
            )
            pair = (names[0], names[1])
            found[pair] = min(found.get(pair, np.inf), float(contact.dist))
        return [(*pair, distance) for pair, distance in sorted(found.items(), key=lambda item: item[1])]

    @staticmethod
    def _name(model: Any, geom: int) -> str:
        body = int(model.geom_bodyid[geom])
        return str(model.body(body).name if body else model.geom(geom).name or "the world")


_BITS = ("geom_contype", "geom_conaffinity", "body_contype", "body_conaffinity")
