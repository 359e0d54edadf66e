"""math/: against scipy, group axioms, limits, gradients, and bit-equality over batch sizes and strides."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from torch.utils._python_dispatch import TorchDispatchMode

import manikin.math as mm

F32, F64 = torch.float32, torch.float64


def rand(*shape, seed=0, dtype=F64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


def rand_quat(n, seed=0, dtype=F64):
    return mm.quat_normalize(rand(n, 4, seed=seed)).to(dtype)


def rand_pose(n, seed=0, dtype=F64):
    return mm.pose(rand(n, 3, seed=seed), rand_quat(n, seed + 1)).to(dtype)


def to_scipy(q):
    return Rotation.from_quat(q.numpy(), scalar_first=True)


def close(a, b, tol=1e-12):
    torch.testing.assert_close(torch.as_tensor(np.asarray(a)), torch.as_tensor(np.asarray(b)), rtol=0, atol=tol)


def same_rotation(a, b, tol=1e-12):
    close(mm.quat_standardize(a), mm.quat_standardize(torch.as_tensor(b)), tol)


# ---- against scipy -------------------------------------------------------------------------------------------------


def test_products_and_rotations_match_scipy():
    a, b, v = rand_quat(500), rand_quat(500, 1), rand(500, 3, seed=2)
    ra, rb = to_scipy(a), to_scipy(b)
    same_rotation(mm.quat_mul(a, b), (ra * rb).as_quat(scalar_first=True))
    close(mm.quat_rotate(a, v), ra.apply(v.numpy()))
    close(mm.quat_rotate_inv(a, v), ra.inv().apply(v.numpy()))
    close(mm.quat_to_matrix(a), ra.as_matrix())
    close(mm.quat_angle(a, b), (ra.inv() * rb).magnitude())
    same_rotation(mm.quat_from_matrix(torch.as_tensor(ra.as_matrix())), a)


def test_rotation_vectors_and_euler_angles_match_scipy():
    q, v, rpy = rand_quat(500), rand(500, 3, seed=3), rand(500, 3, seed=4)
    close(mm.quat_to_rotvec(q), to_scipy(q).as_rotvec())
    same_rotation(mm.quat_from_rotvec(v), Rotation.from_rotvec(v.numpy()).as_quat(scalar_first=True))
    same_rotation(mm.quat_from_euler(rpy), Rotation.from_euler("xyz", rpy.numpy()).as_quat(scalar_first=True))
    close(mm.quat_to_euler(q), to_scipy(q).as_euler("xyz"))
    axis, angle = rand(500, 3, seed=5), rand(500, seed=6)
    unit = (axis / axis.norm(dim=-1, keepdim=True)) * angle[:, None]
    same_rotation(mm.quat_from_axis_angle(axis, angle), Rotation.from_rotvec(unit.numpy()).as_quat(scalar_first=True))
    flat = torch.stack((angle + 1, angle * angle), -1)
    whole = torch.cat((flat, angle[..., None]), -1)
    by_quaternion = mm.quat_rotate(mm.quat_from_yaw(angle), whole)
    torch.testing.assert_close(mm.yaw_rotate(whole, angle), by_quaternion)
    torch.testing.assert_close(mm.yaw_rotate(flat, angle), by_quaternion[..., :2])
    same_rotation(mm.quat_from_yaw(angle), mm.quat_from_rotvec(torch.stack((0 * angle, 0 * angle, angle), -1)))


def test_slerp_matches_scipy_and_takes_the_short_way():
    from scipy.spatial.transform import Slerp

    a, b = rand_quat(40), rand_quat(40, 1)
    for t in (0.0, 0.25, 0.9, 1.0):
        both = [Slerp([0, 1], Rotation.concatenate([to_scipy(a[i]), to_scipy(b[i])]))([t])[0] for i in range(40)]
        want = Rotation.concatenate(both).as_quat(scalar_first=True)
        same_rotation(mm.quat_slerp(a, b, t), want, 1e-11)
        same_rotation(mm.quat_slerp(a, -b, torch.full((40,), t, dtype=F64)), want, 1e-11)


# ---- axioms and round trips ----------------------------------------------------------------------------------------


def test_group_axioms():
    a, b, c, v = rand_quat(200), rand_quat(200, 1), rand_quat(200, 2), rand(200, 3, seed=3)
    one = torch.tensor([1.0, 0, 0, 0], dtype=F64)
    close(mm.quat_mul(mm.quat_mul(a, b), c), mm.quat_mul(a, mm.quat_mul(b, c)))
    close(mm.quat_mul(a, mm.quat_conj(a)), one.expand(200, 4))
    close(mm.quat_mul(a, one), a)
    close(mm.quat_rotate(mm.quat_mul(a, b), v), mm.quat_rotate(a, mm.quat_rotate(b, v)))
    close(mm.quat_rotate_inv(a, mm.quat_rotate(a, v)), v)
    close(mm.quat_to_matrix(mm.quat_mul(a, b)), mm.quat_to_matrix(a) @ mm.quat_to_matrix(b))


def test_poses_match_homogeneous_matrices():
    a, b, points = rand_pose(200), rand_pose(200, 2), rand(200, 3, seed=4)
    ma, mb = mm.pose_to_matrix(a), mm.pose_to_matrix(b)
    close(mm.pose_to_matrix(mm.pose_mul(a, b)), ma @ mb)
    close(mm.pose_to_matrix(mm.pose_inv(a)), torch.linalg.inv(ma), 1e-11)
    close(mm.pose_apply(a, points), (ma[:, :3, :3] @ points[..., None])[..., 0] + ma[:, :3, 3])
    cloud = rand(200, 5, 3, seed=5)
    close(mm.pose_apply(a[:, None], cloud)[:, 2], mm.pose_apply(a, cloud[:, 2]))
    back = mm.pose_from_matrix(ma)
    close(back[:, :3], a[:, :3])
    same_rotation(back[:, 3:], a[:, 3:])
    close(mm.pose(points)[:, 3:], torch.tensor([1.0, 0, 0, 0], dtype=F64).expand(200, 4))
    assert mm.pose(points, a[0, 3:]).shape == (200, 7)


@pytest.mark.parametrize("dtype, tol", [(F32, 2e-6), (F64, 1e-13)])
def test_round_trips(dtype, tol):
    q = mm.quat_standardize(rand_quat(2000, dtype=dtype))
    assert (q[:, 0] >= 0).all()
    for there, back in (
        (mm.quat_to_matrix, mm.quat_from_matrix),
        (mm.quat_to_rotvec, mm.quat_from_rotvec),
        (mm.quat_to_euler, mm.quat_from_euler),
    ):
        assert mm.quat_angle(back(there(q)), q).max() < tol
        assert there(q).dtype == dtype


def test_from_matrix_at_every_half_turn():
    axes = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, -1], [0, 1, 1], [1, 1, 1]], dtype=F32)
    q = mm.quat_from_axis_angle(axes, torch.full((7,), math.pi))
    assert mm.quat_angle(mm.quat_from_matrix(mm.quat_to_matrix(q)), q).max() < 1e-6
    close(mm.norm(mm.quat_to_rotvec(q)), torch.full((7,), math.pi), 1e-6)


@pytest.mark.parametrize("pitch", [math.pi / 2, -math.pi / 2, math.pi / 2 - 1e-4, -math.pi / 2 + 1e-6])
def test_euler_at_gimbal_lock_recomposes(pitch):
    rpy = rand(300, 3)
    rpy[:, 1] = pitch
    q = mm.quat_from_euler(rpy).to(F32)
    back = mm.quat_to_euler(q)
    assert mm.quat_angle(mm.quat_from_euler(back), q).max() < 2e-6
    close(back[:, 1].double(), rpy[:, 1], 1e-6)


def test_small_angles_keep_their_digits():
    for size in (1e-3, 1e-7, 1e-15, 0.0):
        v = torch.tensor([[size, -2 * size, 0.5 * size]], dtype=F32)
        torch.testing.assert_close(mm.quat_to_rotvec(mm.quat_from_rotvec(v)), v, rtol=3e-7, atol=0)
        q = mm.quat_from_rotvec(v)
        torch.testing.assert_close(mm.quat_angle(q, torch.tensor([1.0, 0, 0, 0])), mm.norm(v), rtol=3e-7, atol=1e-30)


def test_heading_of_a_tilted_frame():
    yaw, tilt = rand(200), 0.3 * rand(200, seed=1)
    q = mm.quat_from_euler(torch.stack((0 * yaw, tilt, yaw), -1))
    close(mm.quat_to_yaw(q), (yaw + math.pi).remainder(2 * math.pi) - math.pi)


def test_wrap_to_pi():
    x = 20 * rand(2000)
    w = mm.wrap_to_pi(x)
    assert w.abs().max() <= math.pi
    close(w.sin(), x.sin(), 1e-12)
    close(w.cos(), x.cos(), 1e-12)


# ---- scalars -------------------------------------------------------------------------------------------------------


def test_atan2_is_that_of_the_c_library():
    y, x = rand(4000), rand(4000, seed=1)
    np.testing.assert_allclose(mm.atan2(y, x), np.arctan2(y.numpy(), x.numpy()), rtol=1e-15, atol=5e-16)
    y32, x32 = y.float(), x.float()
    want = np.arctan2(y32.double().numpy(), x32.double().numpy())
    np.testing.assert_array_max_ulp(mm.atan2(y32, x32).numpy(), want.astype(np.float32), maxulp=1)
    special = [0.0, -0.0, 1.0, -1.0, 1e-38, -1e-38, 1e-45, 3e38, -3e38]
    y, x = (torch.tensor(v, dtype=F32) for v in np.array(np.meshgrid(special, special)).reshape(2, -1))
    got, want = mm.atan2(y, x).numpy(), np.arctan2(y.double().numpy(), x.double().numpy()).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=2e-7)
    assert (np.signbit(got) == np.signbit(want)).all()
    assert mm.atan2(torch.tensor([math.nan]), torch.tensor([1.0])).isnan().all()


def test_norm_dot_lerp():
    a, b = rand(300, 7), rand(300, 7, seed=1)
    np.testing.assert_allclose(mm.norm(a), np.linalg.norm(a.numpy(), axis=-1), rtol=1e-14)
    close(mm.dot(a, b), np.einsum("ni,ni->n", a, b))
    assert torch.equal(mm.lerp(a, b, 0.0), a)
    assert torch.equal(mm.lerp(a, b, 1.0), b)
    close(mm.lerp(a, b, torch.full((300, 1), 0.25, dtype=F64)), 0.75 * a + 0.25 * b)


@pytest.mark.parametrize("shape", ["gaussian", "exponential", "long_tail", "linear"])
def test_tolerance(shape):
    x = torch.tensor([-3.0, 0.0, 0.5, 1.0, 1.5, 2.0, 9.0], dtype=F64)
    value = mm.tolerance(x, 0.0, 1.0, margin=1.0, value_at_margin=0.2, shape=shape)
    assert (value[1:4] == 1).all()
    close(value[5], 0.2)
    assert value[4] > value[5] > value[6] >= 0
    assert torch.equal(mm.tolerance(x, 0.0, 1.0), torch.tensor([0.0, 1, 1, 1, 0, 0, 0], dtype=F64))


@pytest.mark.parametrize(
    "bad", [{"shape": "round"}, {"margin": -1.0}, {"value_at_margin": 0.0}, {"low": 2.0, "high": 1.0}]
)
def test_tolerance_refuses(bad):
    with pytest.raises(ValueError, match="tolerance"):
        mm.tolerance(torch.zeros(1), **{"margin": 1.0} | bad)


# ---- gradients -----------------------------------------------------------------------------------------------------


def test_gradients_where_the_formulas_are_singular():
    v = torch.zeros(3, 3, dtype=F64, requires_grad=True)
    mm.quat_from_rotvec(v).sum().backward()
    close(v.grad, torch.full((3, 3), 0.5, dtype=F64))
    q = torch.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]], dtype=F64, requires_grad=True)
    mm.quat_to_rotvec(q).sum().backward()
    close(q.grad, torch.tensor([[0.0, 2, 2, 2], [0, -2, -2, -2]], dtype=F64))
    half = torch.tensor([[0.0, 0, 1, 0]], dtype=F32, requires_grad=True)
    mm.quat_to_rotvec(half).sum().backward()
    assert half.grad.isfinite().all()
    zero = torch.zeros(2, 3, requires_grad=True)
    mm.norm(zero).sum().backward()
    assert (zero.grad == 0).all()
    y, x = torch.tensor([1.0, 0.0], requires_grad=True), torch.zeros(2, requires_grad=True)
    mm.atan2(y, x).sum().backward()
    close(y.grad, torch.zeros(2))
    close(x.grad, torch.tensor([-1.0, 0.0]))
    identity = torch.tensor([[1.0, 0, 0, 0]], requires_grad=True)
    for function in (mm.quat_to_matrix, mm.quat_to_euler, mm.quat_standardize, mm.quat_normalize):
        (gradient,) = torch.autograd.grad(function(identity).sum(), identity)
        assert gradient.isfinite().all()


@pytest.mark.parametrize("size", [1e-3, 1.0, 3.0])
def test_gradients_match_finite_differences(size):
    v = (size * mm.quat_normalize(rand(5, 4))[:, :3]).requires_grad_()
    q = mm.quat_from_rotvec(v).detach().requires_grad_()
    y, x = rand(6).requires_grad_(), rand(6, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(mm.quat_from_rotvec, (v,))
    assert torch.autograd.gradcheck(lambda a: mm.quat_to_rotvec(mm.quat_normalize(a)), (q,), atol=1e-4)
    assert torch.autograd.gradcheck(mm.quat_mul, (q, q.detach().flip(0).requires_grad_()))
    assert torch.autograd.gradcheck(mm.quat_rotate, (q, v))
    assert torch.autograd.gradcheck(mm.atan2, (y, x))


def test_constants_made_under_inference_serve_training():
    code = (
        "import torch, manikin.math as mm\n"
        "q = torch.tensor([[1.0, 0, 0, 0]])\n"
        "with torch.inference_mode():\n    mm.quat_mul(q, q); mm.quat_to_rotvec(q)\n"
        "q.requires_grad_(); mm.quat_to_rotvec(mm.quat_mul(q, q)).sum().backward(); assert q.grad.isfinite().all()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- bit-equality --------------------------------------------------------------------------------------------------

_Q, _V, _P, _S, _M = (4,), (3,), (7,), (), (3, 3)
CASES = {
    "quat_mul": (mm.quat_mul, _Q, _Q),
    "quat_conj": (mm.quat_conj, _Q),
    "quat_rotate": (mm.quat_rotate, _Q, _V),
    "quat_rotate_inv": (mm.quat_rotate_inv, _Q, _V),
    "quat_normalize": (mm.quat_normalize, _Q),
    "quat_standardize": (mm.quat_standardize, _Q),
    "quat_from_axis_angle": (mm.quat_from_axis_angle, _V, _S),
    "quat_from_rotvec": (mm.quat_from_rotvec, _V),
    "quat_to_rotvec": (mm.quat_to_rotvec, _Q),
    "quat_from_euler": (mm.quat_from_euler, _V),
    "quat_to_euler": (mm.quat_to_euler, _Q),
    "quat_to_matrix": (mm.quat_to_matrix, _Q),
    "quat_from_matrix": (mm.quat_from_matrix, _M),
    "quat_angle": (mm.quat_angle, _Q, _Q),
    "quat_slerp": (mm.quat_slerp, _Q, _Q, _S),
    "quat_from_yaw": (mm.quat_from_yaw, _S),
    "quat_to_yaw": (mm.quat_to_yaw, _Q),
    "yaw_rotate": (mm.yaw_rotate, _V, _S),
    "pose": (mm.pose, _V, _Q),
    "pose_mul": (mm.pose_mul, _P, _P),
    "pose_inv": (mm.pose_inv, _P),
    "pose_apply": (mm.pose_apply, _P, _V),
    "pose_to_matrix": (mm.pose_to_matrix, _P),
    "pose_from_matrix": (mm.pose_from_matrix, (4, 4)),
    "atan2": (mm.atan2, _S, _S),
    "wrap_to_pi": (mm.wrap_to_pi, _S),
    "lerp": (mm.lerp, _P, _P, (1,)),
    "dot": (mm.dot, _P, _P),
    "norm": (mm.norm, _V),
    **{f"norm of {k}": (mm.norm, (k,)) for k in (2, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33, 64)},
    **{f"dot of {k}": (mm.dot, (k,), (k,)) for k in (2, 3, 4, 5, 8, 9, 16, 33, 64)},
    **{
        f"tolerance {s}": (lambda x, s=s: mm.tolerance(x, 0, 0.1, margin=1.0, shape=s), _S)
        for s in ("gaussian", "exponential", "long_tail", "linear")
    },
}


def test_every_function_is_covered():
    assert set(mm.__all__) - {"Constant"} <= {name.split()[0] for name in CASES}


def layouts(x):
    """The same values laid out in memory in four other ways."""
    apart = torch.zeros(*x.shape, 3, dtype=x.dtype)
    apart[..., 1] = x
    rows = torch.zeros(2 * len(x), *x.shape[1:], dtype=x.dtype)
    rows[::2] = x
    wide = torch.zeros(len(x), 5, *x.shape[1:], dtype=x.dtype)
    wide[:, 3] = x
    yield from (x.clone(), apart[..., 1], rows[::2], wide[:, 3])
    yield x.transpose(0, -1).contiguous().transpose(0, -1)


def bits(x):
    return x.contiguous().view(torch.int32 if x.dtype == F32 else torch.int64)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", CASES)
def test_bits_do_not_depend_on_batch_size_or_strides(name, dtype):
    function, *shapes = CASES[name]
    inputs = [rand(1024, *s, seed=i, dtype=dtype) for i, s in enumerate(shapes)]
    alone = bits(torch.cat([function(*(x[i : i + 1] for x in inputs)) for i in range(1024)]))
    for n in (1, 2, 7, 16, 33, 256, 1024):
        for start in {0, 1024 - n}:
            for arguments in zip(*(layouts(x[start : start + n]) for x in inputs), strict=True):
                assert torch.equal(bits(function(*arguments)), alone[start : start + n]), (n, start)


@pytest.mark.parametrize("capability", ["default", "avx2"])
def test_bits_on_lesser_processors(capability):
    if os.environ.get("ATEN_CPU_CAPABILITY"):
        pytest.skip("this is the inner run")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    inner = subprocess.run(
        [*command, "-k", "bits_do_not_depend"],
        env=os.environ | {"ATEN_CPU_CAPABILITY": capability},
        capture_output=True,
        text=True,
    )
    assert inner.returncode == 0, inner.stdout[-3000:]


# ---- cost ----------------------------------------------------------------------------------------------------------


class Count(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "name, most",
    [
        ("quat_mul", 7),
        ("quat_rotate", 7),
        ("quat_to_rotvec", 13),
        ("quat_from_rotvec", 7),
        ("pose_mul", 20),
        ("norm", 1),
    ],
)
def test_number_of_torch_calls(name, most):
    function, *shapes = CASES[name]
    inputs = [rand(1, *s, dtype=F32) for s in shapes]
    function(*inputs)
    with torch.inference_mode(), Count() as count:
        function(*inputs)
    assert count.calls <= most
