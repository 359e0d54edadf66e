"""SIMPLER's published drive law, integrated on its own: NumPy and SciPy, without MuJoCo.

SAPIEN drives a joint in "force" mode (Li et al. 2024, arXiv 2405.05941, and its released code):

    tau = clip(stiffness * (target - q) - damping * qd, -limit, limit)

and applies forces that cancel gravity and the products of velocities; joints have no friction. So the arm obeys
M(q) qdd = tau, with M from masses, centres and inertias of the links. Targets stay for a control step. Joints that are
not driven (fingers) stay at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from manikin.spec.links import Link
from manikin.spec.robot import ArmSpec
from manikin.sysid import Trajectories, Trajectory

__all__ = ["DriveLaw", "motions_of"]


@dataclass(frozen=True, kw_only=True)
class DriveLaw:
    """An arm under that law.

    Attributes:
        links: of the robot, hinges alone. joints: names of the J joints that are driven.
        stiffness, damping, limit: (J,) of each [N m/rad], [N m s/rad], [N m].
    """

    links: tuple[Link, ...]
    joints: tuple[str, ...]
    stiffness: np.ndarray
    damping: np.ndarray
    limit: np.ndarray

    @classmethod
    def of(cls, arm: ArmSpec) -> DriveLaw:
        """Of one of SIMPLER's robots: links, stiffness, damping and limits, which are the published ones."""
        kp, kd, limit = (np.array(x, float) for x in (arm.gains.kp, arm.gains.kd, arm.effort))
        return cls(links=arm.links, joints=arm.joints, stiffness=kp, damping=kd, limit=limit)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """(J, J) [kg m^2] at joint positions (J,): the sum over links of m Jv' Jv + Jw' I Jw."""
        at: dict[str, tuple[np.ndarray, np.ndarray, list[tuple[int, np.ndarray, np.ndarray]]]] = {}
        M = np.zeros((len(self.joints),) * 2)
        for link in self.links:
            pos, turn, above = at[link.parent] if link.parent is not None else (np.zeros(3), np.eye(3), [])
            pos, turn, above = pos + turn @ link.pos, turn @ _matrix(link.quat), list(above)
            for joint in link.joints:
                assert joint.type == "hinge" and joint.pos == (0, 0, 0)
                if joint.name in self.joints:
                    axis = np.array(joint.axis, float)
                    number = self.joints.index(joint.name)
                    above.append((number, pos, turn @ axis))
                    turn = turn @ Rotation.from_rotvec(axis * q[number]).as_matrix()
            at[link.name] = pos, turn, above
            centre, inertia = pos + turn @ link.com, _inertia(link)
            Jv, Jw = np.zeros((3, len(self.joints))), np.zeros((3, len(self.joints)))
            for number, where, axis in above:
                Jv[:, number], Jw[:, number] = np.cross(axis, centre - where), axis
            M += link.mass * Jv.T @ Jv + Jw.T @ (turn @ inertia @ turn.T) @ Jw
        return M

    def torque(self, target: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """(J,) [N m]."""
        return np.clip(self.stiffness * (target - q) - self.damping * qd, -self.limit, self.limit)

    def follow(self, start: Sequence[float], targets: np.ndarray, hz: float) -> np.ndarray:
        """(T, J) joint positions before each of T targets (T, J), from rest at ``start``; ``hz`` targets per second."""
        n = len(self.joints)

        def slope(_: float, state: np.ndarray, target: np.ndarray) -> np.ndarray:
            q, qd = state[:n], state[n:]
            return np.concatenate([qd, np.linalg.solve(self.mass_matrix(q), self.torque(target, q, qd))])

        state, found = np.concatenate([np.asarray(start, float), np.zeros(n)]), []
        for target in targets:
            found.append(state[:n])
            solved = solve_ivp(slope, (0.0, 1.0 / hz), state, "Radau", args=(target,), rtol=1e-5, atol=1e-7)
            assert solved.success, solved.message
            state = solved.y[:, -1]
        return np.array(found)


def motions_of(
    law: DriveLaw,
    word: str,
    start: Sequence[float],
    hz: float,
    *,
    size: float = 0.3,
    seconds: float = 4.0,
    joints: Sequence[str] = (),
) -> Trajectories:
    """What each joint does when it alone is told to step by ``size`` [rad] and back, and to swing so far once: first
    the steps of all joints, then the waves, under ``joint_pos``.

    Args:
        law: of the arm. word: of the robot. start: (J,) [rad] where all begin. hz: targets per second.
        size: [rad], towards the middle of the joint's range. seconds: that each takes. joints: these alone.
    """
    steps, ranges = round(seconds * hz), {j.name: j.range for link in law.links for j in link.joints}
    time = np.arange(steps) / hz
    shapes = {"step": (time < seconds / 2).astype(float), "wave": np.sin(2 * np.pi * time / seconds)}
    items = []
    for shape, course in shapes.items():
        for joint in joints or law.joints:
            number = law.joints.index(joint)
            low, high = ranges[joint] or (-np.inf, np.inf)
            targets = np.tile(np.asarray(start, float), (steps, 1))
            targets[:, number] += size * course * (1 if start[number] < (low + high) / 2 else -1)
            targets[:, number] = targets[:, number].clip(low, high)
            items.append(Trajectory(name=f"{shape} of {joint}", actions=targets, qpos=law.follow(start, targets, hz)))
    return Trajectories(robot=word, control="joint_pos", control_hz=hz, items=items, source="the published drive law")


def _matrix(quat: Sequence[float]) -> np.ndarray:
    matrix: np.ndarray = Rotation.from_quat(np.roll(np.array(quat, float), -1)).as_matrix()
    return matrix


def _inertia(link: Link) -> np.ndarray:
    """(3, 3) about the centre of mass, along the link's axes."""
    if len(link.inertia) == 3:
        turn = _matrix(link.com_quat)
        return turn @ np.diag(link.inertia) @ turn.T
    xx, yy, zz, xy, xz, yz = link.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
