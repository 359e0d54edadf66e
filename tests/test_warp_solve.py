"""The kernel that solves small positive systems on a GPU, on Warp's CPU device, against torch's own."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")

from manikin.control.law import operational
from manikin.sim import warp_solve


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
    whitened, solved = warp_solve.whiten(matrix, given), warp_solve.solve(matrix, given)
    assert whitened.shape == solved.shape == given.shape and whitened.dtype == solved.dtype == kind
    lower = torch.linalg.cholesky(matrix.double())
    for ours, theirs in (
        (whitened, torch.linalg.solve_triangular(lower, given.double(), upper=False)),
        (solved, torch.linalg.solve(matrix.double(), given.double())),
    ):
        assert (ours - theirs).abs().max() <= tol * theirs.abs().max()
    assert torch.equal(matrix, before[0]) and torch.equal(given, before[1])


def test_what_is_not_positive_spoils_its_own_row_alone():
    matrix, given = system((3,), 4, 2, torch.float32)
    matrix[1] = -matrix[1]
    for function in (warp_solve.whiten, warp_solve.solve):
        out = function(matrix, given)
        assert torch.isfinite(out).flatten(1).all(1).tolist() == [True, False, True]


def test_operational_space_by_it(monkeypatch):
    """The law that a GPU runs with this kernel gives what it gives with torch's factorizations."""
    inertia, _ = system((6,), 7, 1, torch.float64)
    jacobian = torch.randn(6, 6, 7, generator=torch.Generator().manual_seed(0)).double()
    eye = torch.eye(6).double().expand(6, 6, 6)
    for uncouple in (False, True):
        theirs = operational(jacobian, inertia, eye, uncouple=uncouple)
        with monkeypatch.context() as patch:
            patch.setattr("manikin.control.law.whiten", warp_solve.whiten)
            ours = operational(jacobian, inertia, eye, uncouple=uncouple)
        for a, b in zip(ours, theirs, strict=True):
            assert (a - b).abs().max() <= 1e-9 * b.abs().max()
