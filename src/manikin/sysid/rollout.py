"""Recorded actions played open loop by many candidates at once: a row is one candidate on one trajectory.

The scene is the robot alone, without contact. It begins at rest where the recording begins. Each recorded action is
then applied for one control step, by the controller that tasks use.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.control import Chain, IkSolver, controller, torque_joints
from manikin.errors import ConfigError, DataError
from manikin.math import norm, pose_inv, pose_mul, quat_angle
from manikin.robots import robot as chosen_robot
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world, on_device, torch_device
from manikin.sim.world import World
from manikin.spec.control import Control, parse_control
from manikin.spec.physics import Physics
from manikin.sysid.parameters import Parameter, Space
from manikin.sysid.trajectories import Trajectories

log = logging.getLogger("manikin.sysid")

__all__ = ["ROWS", "Rollout", "Tracks"]

ROWS = 1200
"""Rows that run at once unless said otherwise; does not change any result."""

_NEAR, _TURNED = 0.02, 0.1  # [m], [rad] by how much a start may miss the recorded one


@dataclass(frozen=True)
class Tracks:
    """Where the tracked frame and the joints were before each action, float64.

    Attributes:
        pos: (k, E, T, 3) [m] in the robot's base frame. quat: (k, E, T, 4). qpos: (k, E, T, joints).
        diverged: (k, E) whether the simulation broke down.
    """

    pos: Tensor
    quat: Tensor
    qpos: Tensor
    diverged: np.ndarray


class Rollout:
    """Candidates of one search, simulated.

    Args:
        recorded: what is followed.
        parameters: what a candidate is made of.
        robot: a robot word; default the recordings'.
        control: a controller's word; default the recordings'.
        physics_hz: physics steps per second, a multiple of the recordings' rate.
        batch: candidates at a time; None for as many as make about :data:`ROWS` rows. Does not change any result.
        device: ``cpu``, ``warp:cpu`` or ``cuda``.
        threads: of the physics, 0 for all cores. Does not change any result.

    Attributes:
        space: the numbers that are searched for.
        lengths: (E,) steps of each trajectory.
        start_error: (E, 2) by how much the start misses the recorded one [m], [rad].

    Raises:
        ConfigError: rates that do not divide, a delay of a controller that acts at every physics step.
        DataError: the recordings are of another robot or controller: other joints or actions, a start out of reach.
        UnknownNameError: no such robot, controller or joint.
    """

    def __init__(
        self,
        recorded: Trajectories,
        parameters: list[Parameter],
        *,
        robot: str | None = None,
        control: str | None = None,
        physics_hz: float = 500.0,
        batch: int | None = None,
        device: str = "cpu",
        threads: int = 0,
    ) -> None:
        self.recorded, self.robot_word = recorded, robot or recorded.robot
        self.physics_hz, self.device_word = float(physics_hz), device
        steps = self.physics_hz / recorded.control_hz
        if not steps >= 1 or abs(steps - round(steps)) > 1e-6:
            raise ConfigError(
                f"physics_hz={physics_hz:g} must be a multiple of the recordings' control_hz={recorded.control_hz:g}"
            )
        self.substeps = round(steps)
        self._tool = torch.tensor(recorded.tool, dtype=torch.float64)
        self.lengths = np.array([len(one) for one in recorded.items])
        word = parse_control(control or recorded.control)
        if not isinstance(word, Control):
            raise ConfigError(f"a search takes one controller for the whole robot, not {word.word!r}")
        self.control = word
        chosen = chosen_robot(self.robot_word)
        self.spec = chosen.arm
        torque = torque_joints(word, chosen.arm)
        self.space = Space(parameters, chosen.arm, torque=bool(torque))
        if word.every_substep and "delay" in self.space.names:
            raise ConfigError(f"{word.name} acts at every physics step; a delay is of controllers that command once")
        self.batch = max(1, ROWS // len(recorded)) if batch is None else batch
        if self.batch < 1:
            raise ConfigError(f"batch must be at least 1, not {batch}")

        self._on = on_device(torch_device(device))
        builder = SceneBuilder([chosen], Physics(hz=self.physics_hz), [torque])
        with self._on:
            self.robot = builder.robot(pos=(0, 0, 0))
        builder.spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        if "friction" in self.space.kinds:  # a world on a device makes room only for joints that rub when compiled
            for name in self.spec.joints:
                builder.spec.joint(self.robot.prefix + name).frictionloss = 1e-6
        self._builder, self._scene, self._threads = builder, builder.compile(), threads
        self._worlds: dict[int, World] = {}  # by candidates
        self._size = 0  # of the one in use
        scene, prefix = self._scene, self.robot.prefix
        model = scene.model
        self._model, self.model_hash = model, scene.physics_hash
        self._dofs = [int(model.jnt_dofadr[model.joint(prefix + j).id]) for j in self.spec.joints]
        self._servos = [int(model.actuator(prefix + j).id) for j in self.spec.joints]
        with torch.no_grad(), self._on:
            self._take(1)
            chain = Chain(self.spec, self.robot.gripper, self.world.device)
            self._chain, self.robot.solver = chain, IkSolver(chain)
            self.controller = controller(word, self.robot, chain, recorded.control_hz)
            self._actions = self._commands()
            self._start = self._begin_at()
        self._turn = torch.tensor([0.0, 0.0, 0.0, *self.spec.base_quat], dtype=torch.float64)
        self.steps = 0  # physics steps of rows so far

    # ---- what was recorded, as the controller takes it --------------------------------------------------------------

    def _commands(self) -> Tensor:
        """(E, T, size) actions on the controller's scale; of those that end earlier the last one stays."""
        card, items = self.controller.card, self.recorded.items
        grippers = [k for k, dim in enumerate(card.dims) if dim.unit == "opening"]
        given = items[0].actions.shape[1]
        if given not in (card.size, card.size - len(grippers)):
            raise DataError(
                f"the recordings have {given} numbers per action, and {self.control.word} of {self.robot_word} has "
                f"{card.size - len(grippers)} without grippers: {', '.join(dim.name for dim in card.dims)}"
            )
        count = given
        card_units = self.recorded.units == "card"
        scale = np.array([dim.scale if card_units else 1.0 for dim in card.dims[:count]])
        offset = np.array([dim.offset if card_units else 0.0 for dim in card.dims[:count]])
        out = np.ones((len(items), self.lengths.max(), card.size), np.float32)  # grippers stay open
        for e, one in enumerate(items):
            scaled = (one.actions - offset) / scale
            out[e, : len(one), :count] = scaled
            out[e, len(one) :, :count] = scaled[-1]
        return torch.from_numpy(out).to(self.world.device)

    def _begin_at(self) -> Tensor:
        """(E, joints) where each trajectory begins."""
        items, joints = self.recorded.items, len(self.spec.joints)
        own = [one.start if one.start is not None else None if one.qpos is None else one.qpos[0] for one in items]
        self.start_error = np.zeros((len(items), 2))
        for one, start in zip(items, own, strict=True):
            if start is not None and len(start) != joints:
                raise DataError(
                    f"trajectory {one.name!r} has {len(start)} joints, and {self.robot_word} has {joints}: "
                    f"{', '.join(self.spec.joints)}; give the robot that was recorded"
                )
        if all(start is not None for start in own):
            begin = torch.from_numpy(np.stack([start for start in own if start is not None]))
            self._compare_start(begin)
            return begin
        if items[0].quat is None:
            missing = next(one.name for one, start in zip(items, own, strict=True) if start is None)
            raise DataError(f"trajectory {missing!r} says neither quat nor start, so its joints are not known")
        goal = pose_mul(self._first_poses(), pose_inv(self._tool).expand(len(items), 7)).to(self.world.device)
        rest = torch.tensor(self.spec.keyframes["rest"], dtype=torch.float64).to(goal)
        found = self.robot.solver.solve(
            goal[:, :3],
            goal[:, 3:],
            rest.expand(len(items), -1),
            restarts=24,
            pos_tolerance=1e-5,
            rot_tolerance=1e-4,
            posture=0.0,
        )
        self._compare_start(found.q.cpu())
        for one, (near, turned) in zip(items, self.start_error, strict=True):
            if near > _NEAR or turned > _TURNED:
                raise DataError(
                    f"trajectory {one.name!r} begins where {self.robot_word} cannot be: its tool comes no nearer than "
                    f"{1e3 * near:.0f} mm and {np.degrees(turned):.0f} degrees; give the robot that was recorded, or "
                    "the pose of the tracked frame in its TCP frame as tool"
                )
        return found.q.cpu()

    def _first_poses(self) -> Tensor:
        """(E, 7) of the tracked frame in the base frame; a turn that was not recorded is that of the base."""
        each = [(one.pos, one.quat) for one in self.recorded.items]
        still = np.array([1.0, 0.0, 0.0, 0.0])
        firsts = [np.concatenate([p[0], still if q is None else q[0]]) for p, q in each if p is not None]
        return torch.from_numpy(np.stack(firsts))

    def _compare_start(self, begin: Tensor) -> None:
        """How far the start (E, joints) is from where the recordings begin."""
        if "pos" not in self.recorded.tracks:
            return
        pos, quat = self._chain.fk(begin.to(self.world.device))
        there = torch.cat([pos, quat], 1).cpu()
        there, recorded = pose_mul(there, self._tool.expand_as(there)), self._first_poses()
        self.start_error[:, 0] = norm(there[:, :3] - recorded[:, :3]).numpy()
        if "quat" in self.recorded.tracks:
            self.start_error[:, 1] = quat_angle(there[:, 3:], recorded[:, 3:]).numpy()
        if (worst := self.start_error[:, 0].max()) > _NEAR:
            name = self.recorded.items[int(self.start_error[:, 0].argmax())].name
            log.warning("trajectory %r begins %.0f mm from where it was recorded", name, 1e3 * worst)

    # ---- playing ----------------------------------------------------------------------------------------------------

    def __call__(self, values: np.ndarray) -> Tracks:
        """Play candidates with ``values`` (k, P) in SI units."""
        values = np.atleast_2d(np.asarray(values, np.float64))
        parts = [self._play(values[at : at + self.batch]) for at in range(0, len(values), self.batch)]
        joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in ("pos", "quat", "qpos")}
        return Tracks(**joined, diverged=np.concatenate([part.diverged for part in parts]))

    def _take(self, candidates: int) -> int:
        """Have a world for so many candidates; returns for how many it is. There is one for each power of two."""
        size = min(self.batch, 1 << (candidates - 1).bit_length())
        if size not in self._worlds:
            rows = size * len(self.recorded)
            self._worlds[size] = make_world(self._scene, rows, device=self.device_word, threads=self._threads)
        if size != self._size:
            self.world, self._size = self._worlds[size], size
            self._builder.bind(self.world)
        return size

    def _play(self, values: np.ndarray) -> Tracks:
        """At most a batch; rows that are left over repeat the last candidate."""
        count, episodes = len(values), len(self.recorded)
        size = self._take(count)
        values = np.concatenate([values, np.repeat(values[-1:], size - count, 0)])
        rows = np.repeat(values, episodes, 0)
        actions = self._actions.repeat(size, 1, 1)
        lengths = np.tile(self.lengths, size)
        delay = self.space.delay(rows)
        lag = np.zeros(len(rows)) if delay is None else delay * self.physics_hz  # physics steps
        seen: list[tuple[Tensor, Tensor]] = []
        diverged = np.zeros(len(rows), bool)
        with torch.no_grad(), self._on:
            self._reset(rows)
            carry = self.controller.start(self.robot)
            commands = [self.robot.ctrl.clone()]
            for k in range(int(self.lengths.max())):
                seen.append((self.robot.tcp_pose.double().cpu().clone(), self.robot.arm_qpos.double().cpu().clone()))
                if k + 1 == self.lengths.max():
                    break  # where the last action leads is not recorded
                ctrl, carry = self.controller(carry, self.robot, actions[:, k])
                going = lengths > k + 1
                active = None if going.all() else going
                if delay is None:
                    self.robot._ctrl.write(ctrl)
                    drive = self.controller.drive(carry, None if active is None else np.flatnonzero(active))
                    bad = self.world.step(self.substeps, active, drive)
                    carry = carry if drive is None else drive.carry
                    diverged |= False if bad is None else bad
                else:
                    commands.append(ctrl.clone())
                    for substeps in self._segments(lag, k, commands):
                        bad = self.world.step(substeps, active)
                        diverged |= False if bad is None else bad
                self.steps += self.substeps * (len(rows) if active is None else int(going.sum()))
        pose = torch.stack([pose for pose, _ in seen], 1)
        qpos = torch.stack([q for _, q in seen], 1)
        if tuple(self.spec.base_quat) != (1, 0, 0, 0):
            pose = pose_mul(pose_inv(self._turn).expand_as(pose), pose)
        pose = pose_mul(pose, self._tool.expand_as(pose))
        shape = (size, episodes)
        pose, qpos = (x.unflatten(0, shape)[:count] for x in (pose, qpos))
        return Tracks(pose[..., :3], pose[..., 3:], qpos, diverged.reshape(shape)[:count])

    def _reset(self, rows: np.ndarray) -> None:
        """Every row at the start of its trajectory, at rest, with its own parameters (rows, P)."""
        self.world.reset()
        self.world.set_model(self.space.model_fields(rows, self._model, self._dofs, self._servos))
        start = self._start.repeat(self._size, 1).to(self.world.device)
        self.robot.set_qpos(start.float())
        self.world.forward()

    def _segments(self, lag: np.ndarray, k: int, commands: list[Tensor]) -> Iterator[int]:
        """Physics steps of the parts of control step k between which rows turn to another command, each written as it
        is asked for. In the physics step that a command enters midway, a row has the mean of the old and the new."""
        whole = np.floor(lag).astype(int)
        share = lag - whole  # of that physics step, with the old command
        enters = [(whole, True), (whole + 1, False)]
        times = sorted({0, *(t for at, _ in enters for t in (at % self.substeps).tolist())})
        for begin, end in itertools.pairwise([*times, self.substeps]):
            for at, midway in enters:
                for number in np.unique(k - at // self.substeps):
                    rows = np.flatnonzero((at % self.substeps == begin) & (k - at // self.substeps == number))
                    if number < 0 or not len(rows):
                        continue
                    index = torch.from_numpy(rows).to(commands[0].device)
                    value = commands[number + 1][index]
                    if midway:
                        old = torch.from_numpy(share[rows]).to(value)[:, None]
                        value = old * commands[number][index] + (1 - old) * value
                    self.robot._ctrl.write(value, rows.astype(np.int32))
            yield end - begin

    def recorded_tensors(self) -> dict[str, Tensor]:
        """What was recorded, (E, T, ...) float64; the last row stands for the steps that a shorter one lacks."""
        found = {}
        for key in self.recorded.tracks:
            each = [getattr(one, key) for one in self.recorded.items]
            most = int(self.lengths.max())
            found[key] = torch.from_numpy(
                np.stack([np.concatenate([a, a[-1:].repeat(most - len(a), 0)]) for a in each])
            )
        return found

    def close(self) -> None:
        """Free the simulations."""
        for world in self._worlds.values():
            world.close()
