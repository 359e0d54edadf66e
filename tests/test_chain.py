"""Kinematics in torch, for devices, held to MuJoCo's; inverse kinematics without branches held to the one with."""

from __future__ import annotations

import pytest
import torch

from manikin.control.chain import TorchKinematics
from manikin.control.ik import Chain, IkSolver
from manikin.rng import EpisodeRng
from manikin.robots import robot

ARMS = ("panda", "ur5e", "xarm7", "so101")


def some(chain, n=16):
    seed = torch.arange(n)
    share = EpisodeRng(seed, torch.zeros_like(seed)).uniform("q", 0.1, 0.9, (chain.size,)).double()
    low, high = chain.limits.unbind(1)
    return low + share * (high - low)


@pytest.mark.parametrize("name", ARMS)
def test_forward_kinematics_and_jacobian_are_mujocos(name):
    arm, gripper, _ = robot(name)
    chain = Chain(arm, gripper)
    q = some(chain)
    theirs = chain.fk_jacobian(q)
    chain._torch = TorchKinematics(chain._model, chain._joints, chain._tcp, chain.device)
    for mine, other in zip((*chain.fk_jacobian(q), *chain.fk(q)), (*theirs, *theirs[:2]), strict=True):
        assert torch.allclose(mine, other, atol=1e-12), (mine - other).abs().max()


@pytest.mark.parametrize("name", ["panda", "so101"])
def test_solving_all_rows_together_gives_the_same_solutions(name):
    """Some poses are out of reach; restarts and joint limits take part."""
    arm, gripper, _ = robot(name)
    chain = Chain(arm, gripper)
    solver, q = IkSolver(chain, rotation_weight=0.2 if chain.size >= 6 else 0.0), some(chain, 12)
    pos, quat = chain.fk(q)
    pos[::4] *= 2.0
    start = chain.rest.expand(len(q), -1)
    rows = solver.solve(pos, quat, start, iterations=25, restarts=2)
    every = solver._solve_all(pos, quat, start, 25, 2, 1e-4, 1e-3, 0.02)
    assert rows.reached.any() and not rows.reached.all()
    assert torch.equal(rows.reached, every.reached)
    for field in ("q", "pos_error", "rot_error"):
        assert torch.allclose(getattr(rows, field), getattr(every, field), atol=1e-9), field
