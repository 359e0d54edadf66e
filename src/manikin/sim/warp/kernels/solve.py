"""Cholesky's factors of small matrices on a GPU, each by one thread: one call of a kernel in a CUDA graph.

torch's own go through cuSOLVER and cuBLAS, which choose routines by the number of matrices, take several calls each and
may set themselves up when they first meet a recording's stream.
"""

from __future__ import annotations

from typing import Any

import torch
import warp as wp
from torch import Tensor

from manikin.sim.warp.library import launch_rows, modules

__all__ = ["whiten"]

modules()  # kernels are kept in manikin's folder
wp.set_module_options({"enable_backward": False})


@wp.kernel
def _whiten(a: wp.array3d[Any], x: wp.array3d[Any]) -> None:
    """Cholesky's L in place of ``a``, L^-1 X in place of ``x``."""
    i = wp.tid()
    k = a.shape[1]
    for j in range(k):
        for r in range(j, k):
            t = a[i, r, j]
            for p in range(j):
                t -= a[i, r, p] * a[i, j, p]
            if r == j:
                a[i, j, j] = wp.sqrt(t)
            else:
                a[i, r, j] = t / a[i, j, j]
    for c in range(x.shape[2]):
        for j in range(k):
            t = x[i, j, c]
            for p in range(j):
                t -= a[i, j, p] * x[i, p, c]
            x[i, j, c] = t / a[i, j, j]


for _kind in (wp.float32, wp.float64):  # both now: a kernel that is added later has the others loaded anew
    wp.overload(_whiten, {name: wp.array3d(dtype=_kind) for name in ("a", "x")})


def whiten(matrix: Tensor, columns: Tensor) -> Tensor:
    """L^-1 X (..., k, c) of ``matrix`` L L^T (..., k, k) and ``columns`` X, both float32 or both float64; NaN where the
    matrix is not positive."""
    k, c = columns.shape[-2:]
    a, x = (t.clone(memory_format=torch.contiguous_format) for t in (matrix, columns))
    arrays = [wp.from_torch(t.view(-1, k, n)) for t, n in ((a, k), (x, c))]
    launch_rows(_whiten, arrays[1].shape[0], arrays, x.device)
    return x
