"""native.py and operational_code.py: the same bits from machine code, Python's floats and NumPy's vectors."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile

import numpy as np
import pytest

from manikin.control.numerics import native as native_module
from manikin.control.numerics.law import operational, operational_torque, orientation_error, task_jacobian
from manikin.control.numerics.native import compiler, native
from manikin.control.numerics.operational_code import OperationalProgram, written_program


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache, and nothing loaded before."""
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    native_module.loaded.cache_clear()
    written_program.cache_clear()
    yield tmp_path
    native_module.loaded.cache_clear()
    written_program.cache_clear()


def needs_compiler():
    if compiler() is None:
        pytest.skip("no C compiler here")


def arm(n, m, seed=0):
    """Numbers like an arm's: motion axes, offset, half of a mass matrix, state and goal."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, m, m)) * 0.3 + np.eye(m)
    inertia = root @ root.swapaxes(1, 2)
    turns = np.linalg.qr(rng.normal(size=(2 * n, 3, 3)))[0]
    turns *= np.linalg.det(turns)[:, None, None]
    axes, offset, q, qvel, compensation, posture = (rng.normal(size=(n, k)) for k in (6 * m, 3, m, m, m, m))
    pos, to = rng.normal(size=(2, n, 3)) * 0.1
    kp = rng.uniform(50, 300, (n, 6))
    lower = inertia[(slice(None), *np.tril_indices(m))]
    given = (axes, offset, lower), (q, qvel, compensation, pos, turns[:n].reshape(n, 9))
    return inertia, given, (posture, kp, 2 * np.sqrt(kp), to, turns[n:].reshape(n, 9))


@pytest.mark.parametrize(("m", "uncouple", "every"), [(7, True, 1), (7, False, 5), (6, True, 5), (6, False, 1)])
def test_all_ways_to_compute_the_law_give_the_same_bits_and_the_matrices_numbers(monkeypatch, m, uncouple, every):
    n = 16  # more than what is computed with floats
    inertia, (configuration, state), goal = arm(n, m)
    found = {}
    for mode, rows in (("native", n), ("vectors", n), ("floats", 1)):
        monkeypatch.setenv("MANIKIN_CC", "off") if mode != "native" else needs_compiler()
        written_program.cache_clear()
        result = []
        for first in range(0, n, rows):
            part = slice(first, first + rows)
            program = OperationalProgram(rows, m, uncouple=uncouple, posture=10.0, every=every)
            pieces = [[x[part] for x in group] for group in (configuration, state, goal)]
            result.append(program.torque(0, lambda p=pieces: tuple(p[0]), *pieces[1], *pieces[2]).copy())
        found[mode] = np.concatenate(result)
    written_program.cache_clear()
    np.testing.assert_array_equal(found["native"], found["vectors"])
    np.testing.assert_array_equal(found["native"], found["floats"])
    jacobian = task_jacobian(configuration[0].reshape(n, m, 6), configuration[1])
    q, qvel, compensation, pos, turn = state
    posture, kp, kd, to, want = goal
    turned = orientation_error(turn.reshape(n, 3, 3), want.reshape(n, 3, 3))
    operators = operational(jacobian, inertia, np.tile(np.eye(6), (n, 1, 1)), uncouple=uncouple)
    wanted = compensation + operational_torque(operators, jacobian, to - pos, turned, qvel, kp, kd, posture - q, 10.0)
    np.testing.assert_allclose(found["native"], wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())


LINES, FOUND = ["v0 = x0 * x1"], ["v0", "(v0 - x1)"]


def test_code_is_tied_to_arrays_and_kept_by_content(fresh):
    needs_compiler()
    given, out = np.array([[1.0, 2.0], [3.0, 5.0]]), np.empty((2, 2))
    run = native(2, LINES, FOUND)(given, out)
    run()
    np.testing.assert_array_equal(out, [[2, 0], [15, 10]])
    given[0] = 4, 0.5  # not to what they held
    run()
    np.testing.assert_array_equal(out[0], [2, 1.5])
    (library,) = (fresh / "cache" / "native").iterdir()  # and no partial file beside it
    stamp = library.stat().st_mtime_ns
    native_module.loaded.cache_clear()
    assert native(2, LINES, FOUND) is not None
    assert library.stat().st_mtime_ns == stamp


def kept(fresh):
    """The libraries of the cache, after all were forgotten."""
    native_module.loaded.cache_clear()
    return sorted((fresh / "cache" / "native").glob("*.so"))


def computed():
    """What the code gives for 3 and 5, loaded anew."""
    native_module.loaded.cache_clear()
    out = np.zeros((1, 2))
    native(2, LINES, FOUND)(np.array([[3.0, 5.0]]), out)()
    return out.tolist()


def other_code(library):
    """Put a library in the place of another that gives other numbers."""
    made = library.with_name("other.so")
    text = made.with_suffix(".c")
    text.write_text("void run(long long n, const double *in, double *out) { out[0] = out[1] = 666; }\n")
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", str(made), str(text)], check=True)
    text.unlink()
    made.chmod(0o700)
    made.replace(library)


def test_a_damaged_library_is_made_again(fresh):
    needs_compiler()
    computed()
    (library,) = kept(fresh)
    content = library.read_bytes()
    library.unlink()  # a file that is loaded must not be written to
    library.write_bytes(content[:-100])
    library.chmod(0o700)
    assert computed() == [[15, 10]] and kept(fresh)[0].read_bytes() == content


def test_other_code_under_a_librarys_name_is_not_run(fresh):
    """By its content; and, where that fits, by who may have put it there."""
    needs_compiler()
    computed()
    (library,) = kept(fresh)
    other_code(library)
    assert computed() == [[15, 10]] and [p.name for p in kept(fresh)] == [library.name]

    # under a name that fits
    other_code(library)
    digest = hashlib.sha256(library.read_bytes()).hexdigest()[:32]
    fitting = library.replace(library.with_name(f"{library.stem.partition('-')[0]}-{digest}.so"))
    assert computed() == [[666, 666]]  # whoever may write to the folder of this user is this user
    fitting.chmod(0o770)
    assert computed() == [[15, 10]] and fitting not in kept(fresh)

    other_code(fitting)
    fitting.parent.chmod(0o777)
    assert computed() == [[15, 10]] and fitting not in kept(fresh)
    assert stat.S_IMODE(fitting.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("place", ["another user's", "a link"])
def test_a_folder_that_is_not_this_users_is_not_used(fresh, monkeypatch, place):
    needs_compiler()
    computed()
    (library,) = kept(fresh)
    other_code(library)
    library.rename(library.with_name(f"{library.stem[:32]}-{hashlib.sha256(library.read_bytes()).hexdigest()[:32]}.so"))
    if place == "a link":
        library.parent.rename(fresh / "elsewhere")
        (fresh / "cache" / "native").symlink_to(fresh / "elsewhere")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: fresh.stat().st_uid + 1)
    before = [p.name for p in kept(fresh)]
    assert computed() == [[15, 10]]
    assert [p.name for p in kept(fresh)] == before  # nothing added, nothing removed


@pytest.mark.parametrize("trouble", ["off", "none there", "fails", "wrong", "no place"])
def test_without_a_working_compiler_the_law_is_computed_all_the_same(fresh, monkeypatch, trouble):
    word = {"off": "off", "none there": "no-such-compiler"}.get(trouble)
    if trouble == "fails":
        word = str(fresh / "cc")
        (fresh / "cc").write_text("#!/bin/sh\nexit 1\n")
        (fresh / "cc").chmod(stat.S_IRWXU)
    if trouble == "wrong":  # one that contracts, reorders, or what not: here all it makes are other signs
        needs_compiler()
        word = str(fresh / "cc")
        (fresh / "cc").write_text(
            f'#!/bin/sh\nfor f; do :; done\nsed -i "s/out\\[0\\] = /out[0] = -/" "$f"\n{compiler()} "$@"\n'
        )
        (fresh / "cc").chmod(stat.S_IRWXU)
    if trouble == "no place":
        (fresh / "cache").write_text("a file")
        monkeypatch.setattr(tempfile, "tempdir", str(fresh / "nowhere"))
    if word is not None:
        monkeypatch.setenv("MANIKIN_CC", word)
    _, (configuration, state), goal = arm(1, 6)
    program = OperationalProgram(1, 6, uncouple=True, posture=10.0, every=1)
    assert not program.native
    got = program.torque(0, lambda: configuration, *state, *goal).copy()
    monkeypatch.setenv("MANIKIN_CC", "off")
    written_program.cache_clear()
    again = OperationalProgram(1, 6, uncouple=True, posture=10.0, every=1)
    np.testing.assert_array_equal(got, again.torque(0, lambda: configuration, *state, *goal))
