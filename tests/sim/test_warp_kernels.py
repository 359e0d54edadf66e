"""Warp's kernels that a GPU takes where a processor takes torch and MuJoCo: on Warp's CPU device against these, and as
CUDA's code, which Warp makes without a GPU."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")

import warp as wp

from manikin.control.ik import Chain, IkSolver
from manikin.control.numerics.law import operational
from manikin.rng import EpisodeRng
from manikin.robots import robot
from manikin.sim.warp.kernels import arm as warp_arm
from manikin.sim.warp.kernels import contacts as warp_contacts
from manikin.sim.warp.kernels import solve as warp_solve

ARMS = ("panda", "ur5e", "xarm7", "so101", "floating", "fetch")


@pytest.mark.parametrize("arch", [75, 90])
@pytest.mark.parametrize("module", [warp_arm, warp_contacts, warp_solve])
def test_as_cuda_code(module, arch, tmp_path):
    wp.compile_aot_module(module, arch=arch, module_dir=tmp_path, use_ptx=True)
    (code,) = tmp_path.glob(f"*.sm{arch}.ptx")
    kernels = [k for k in vars(module).values() if isinstance(k, wp.Kernel)]
    made = code.read_bytes()
    assert kernels and all(f".entry {kernel.key}_".encode() in made for kernel in kernels)


def system(shape, k, columns, kind):
    """A well-conditioned positive matrix (*shape, k, k) and columns, as slices of something larger."""
    rng = torch.Generator().manual_seed(k)
    half = torch.randn(*shape, k, k, generator=rng, dtype=torch.float64)
    matrix = half @ half.mT + 0.5 * torch.eye(k, dtype=torch.float64)
    return matrix.to(kind), torch.randn(*shape, k, 2 * columns, generator=rng, dtype=torch.float64).to(kind)[..., ::2]


@pytest.mark.parametrize(("kind", "tol"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("shape", [(1,), (5,), (4, 2)])
@pytest.mark.parametrize(("k", "columns"), [(1, 1), (3, 10), (6, 8), (9, 2)])
def test_against_torch(kind, tol, shape, k, columns):
    matrix, given = system(shape, k, columns, kind)
    before = matrix.clone(), given.clone()
    whitened = warp_solve.whiten(matrix, given)
    assert whitened.shape == given.shape and whitened.dtype == kind
    theirs = torch.linalg.solve_triangular(torch.linalg.cholesky(matrix.double()), given.double(), upper=False)
    assert (whitened - theirs).abs().max() <= tol * theirs.abs().max()
    assert torch.equal(matrix, before[0]) and torch.equal(given, before[1])


def test_what_is_not_positive_spoils_its_own_row_alone():
    matrix, given = system((3,), 4, 2, torch.float32)
    matrix[1] = -matrix[1]
    out = warp_solve.whiten(matrix, given)
    assert torch.isfinite(out).flatten(1).all(1).tolist() == [True, False, True]


def test_operational_space_by_it(monkeypatch):
    """The law that a GPU runs with this kernel gives what it gives with torch's factorizations."""
    inertia, _ = system((6,), 7, 1, torch.float64)
    jacobian = torch.randn(6, 6, 7, generator=torch.Generator().manual_seed(0)).double()
    eye = torch.eye(6).double().expand(6, 6, 6)
    for uncouple in (False, True):
        theirs = operational(jacobian, inertia, eye, uncouple=uncouple)
        with monkeypatch.context() as patch:
            patch.setattr("manikin.control.numerics.law.whiten", warp_solve.whiten)
            ours = operational(jacobian, inertia, eye, uncouple=uncouple)
        for a, b in zip(ours, theirs, strict=True):
            assert (a - b).abs().max() <= 1e-9 * b.abs().max()


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
    chain.on_device = chain.warp()
    for mine, other in zip((*chain.fk_jacobian(q), *chain.fk(q)), (*theirs, *theirs[:2]), strict=True):
        assert torch.allclose(mine, other, atol=1e-12), (mine - other).abs().max()


@pytest.mark.parametrize("posture", [0.0, 0.02])
@pytest.mark.parametrize("name", ["panda", "so101", "floating", "fetch"])
def test_the_kernel_gives_the_same_solutions(name, posture):
    """Some poses are out of reach; restarts and joint limits take part."""
    arm, gripper, _ = robot(name)
    chain = Chain(arm, gripper)
    solver, q = IkSolver(chain, rotation_weight=0.2 if chain.size >= 6 else 0.0), some(chain, 12)
    q = torch.where(chain.moved, q, chain.rest)  # a mobile base stands
    pos, quat = chain.fk(q)
    pos[::4] *= 2.0
    start = chain.rest.expand(len(q), -1)
    asked = {"iterations": 25, "posture": posture}
    here = solver.solve(pos, quat, start, restarts=2, **asked), solver.solutions(pos, quat, start, count=3, **asked)
    chain.on_device = chain.warp()
    there = solver.solve(pos, quat, start, restarts=2, **asked), solver.solutions(pos, quat, start, count=3, **asked)
    for ours, theirs in zip(there, here, strict=True):
        assert theirs.reached.any() and not theirs.reached.all()
        assert torch.equal(ours.reached, theirs.reached)
        for field in ("q", "pos_error", "rot_error"):
            assert torch.allclose(getattr(ours, field), getattr(theirs, field), atol=1e-9), field
