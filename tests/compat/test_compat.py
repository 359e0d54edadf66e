"""compat/: every private part of another library is as manikin uses it.

A failure here means that the library has changed; its message says which file of ``manikin.compat`` to look at.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
import inspect
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mujoco import batch

import manikin.compat as folder
from manikin.compat import gl, mujoco_warp
from manikin.compat import mujoco as mujoco_parts
from manikin.compat import torch as torch_parts
from manikin.compat import warp as warp_parts

SOURCE = Path(folder.__file__).resolve().parents[1]
PENDULUM = "<mujoco><worldbody><body><joint name='j'/><geom size='.1' pos='0 0 .5'/></body></worldbody></mujoco>"


def look_at(name: str, what: str) -> str:
    return f"{what} is not as manikin uses it; see src/manikin/compat/{name}.py"


def needs(*modules: str) -> None:
    for module in modules:
        pytest.importorskip(module, reason=f"{module} is not installed")


# ---- the rule --------------------------------------------------------------------------------------------------------

OTHERS = {"mujoco", "mujoco_warp", "mjw", "warp", "wp", "torch", "gymnasium", "OpenGL", "pygame", "web_server"}
LIBRARIES = {"mujoco", "mujoco_warp", "warp", "torch", "gymnasium", "OpenGL", "pygame", "h5py", "av", "pyarrow"}


def private_parts(code: str) -> list[str]:
    """Imports of private modules of other libraries, and their private attributes where they are read or set by a
    library's name."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            names = [f"{module}.{a.name}" for module in modules for a in node.names]
            found += [n for n in names if n.split(".")[0] in LIBRARIES and any(p.startswith("_") for p in n.split("."))]
        if isinstance(node, ast.Attribute):
            path = ast.unparse(node).removeprefix("self.")
            root = path.split(".")[0].lstrip("_")
            if root in OTHERS and "." in path:
                if node.attr.startswith("_") and not node.attr.startswith("__"):
                    found.append(path)
                elif isinstance(node.ctx, ast.Store) and "config" not in path.split("."):
                    found.append(f"{path} =")
    return found


def test_private_parts_of_other_libraries_are_used_in_compat_alone() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE / "compat"]
    assert not [f"{path.relative_to(SOURCE)}: {part}" for path in files for part in private_parts(path.read_text())]


@pytest.mark.parametrize(
    "code",
    [
        "import mujoco\nx = mujoco.MjModel._setconst_inputs",
        "x = self._wp._src.context",
        "from mujoco_warp._src import types",
        "from pygame._sdl2 import controller",
        "from torch.utils._python_dispatch import TorchDispatchMode",
        "web_server.serve = mine",
    ],
)
def test_the_rule_notices(code: str) -> None:
    assert private_parts(code)


def test_the_rule_leaves_public_names_alone() -> None:
    assert not private_parts(
        "import torch\nself._wp.launch(self._kernel)\nwarp.config.log_level = 3\ntorch.__version__"
    )


# ---- MuJoCo ----------------------------------------------------------------------------------------------------------


def test_inputs_of_constants_are_fields_of_the_model() -> None:
    """``tests/env/state/test_snapshot.py`` holds ``DERIVED_FIELDS`` to what MuJoCo derives from each of them."""
    inputs = mujoco_parts.SET_CONST_INPUTS
    assert {"body_mass", "body_inertia", "qpos0", "dof_armature"} <= inputs, look_at("mujoco", "_setconst_inputs")
    assert all(hasattr(mujoco.MjModel, field) for field in inputs), look_at("mujoco", "_setconst_inputs")
    assert set(mujoco_parts.DERIVED_FIELDS) <= set(batch.MODEL_FIELDS), look_at("mujoco", "batch.MODEL_FIELDS")


def test_a_bound_state_field_is_a_view_of_the_state() -> None:
    rows = batch.Batch(mujoco.MjModel.from_xml_string(PENDULUM), 3, 1, True)
    rows.state[...] = np.arange(rows.state.size).reshape(rows.state.shape)
    for field in ("time", "qpos", "qvel", "qacc_warmstart"):
        bound = rows.bind(field)
        columns = mujoco_parts.columns_in_state(rows.state, bound)
        assert np.shares_memory(bound, rows.state), look_at("mujoco", f"Batch.bind({field!r})")
        assert np.array_equal(bound.reshape(3, -1), rows.state[:, columns]), look_at("mujoco", f"Batch.bind({field!r})")


def test_a_leaked_batch_is_never_freed() -> None:
    class Kept:
        pass

    for leak, alive in ((False, False), (True, True)):
        thing = Kept()
        seen = weakref.ref(thing)
        if leak:
            mujoco_parts.leak(thing)
        del thing
        gc.collect()
        assert (seen() is not None) is alive, look_at("mujoco", "Py_IncRef")


def test_opengl_has_the_shapes_in_the_known_order() -> None:
    """Eight lists: sphere open and closed, hemisphere, cylinder with and without lids, cone, box, disk.
    ``tests/render/test_render_lists.py`` compares pictures of them."""
    from manikin.render.backends.gl import probe

    platform, why = probe()
    if platform is None:
        pytest.skip(f"no OpenGL here: {why}")
    context = gl.make_context(platform, 32, 32)
    context.make_current()
    drawer = mujoco.MjrContext(mujoco.MjModel.from_xml_string(PENDULUM), int(mujoco.mjtFontScale.mjFONTSCALE_100))
    assert drawer.rangeBuiltin == 8, look_at("mujoco", "MjrContext.rangeBuiltin")
    found = [mujoco_parts.builtin_list(drawer, n) for n in (mujoco_parts.CYLINDER_LIST, mujoco_parts.TUBE_LIST)]
    assert found == [drawer.baseBuiltin + 3, drawer.baseBuiltin + 4]
    drawer.free()
    context.free()


def test_elements_of_a_spec_are_of_the_known_kinds() -> None:
    spec = mujoco.MjSpec.from_string(PENDULUM)
    geom = spec.geoms[0]
    kinds = {type(spec).__name__, type(spec.option).__name__, type(spec.stat).__name__}
    assert kinds == {"MjSpec", "MjOption", "MjStatistic"} <= set(mujoco_parts.SPEC_STRUCTS), look_at("mujoco", "MjSpec")
    kinds = {type(getattr(geom, name)).__name__ for name in dir(geom) if not name.startswith("__")}
    vectors = {kind for kind in kinds if kind.endswith("Vec")}
    known = {*mujoco_parts.SPEC_NUMBERS, *mujoco_parts.SPEC_SEQUENCES}
    assert vectors <= known, look_at("mujoco", f"the kinds {vectors - known}")
    assert {"id", "info", "parent", "classname"} <= set(dir(geom)) & mujoco_parts.SPEC_NOT_CONTENT


def test_a_spec_forgets_which_options_it_set() -> None:
    spec = mujoco.MjSpec.from_string("<mujoco><option timestep='.001'/></mujoco>")
    marks = lambda: [getattr(spec.authored, f) for f in dir(spec.authored) if not f.startswith("_")]  # noqa: E731
    assert any(marks()), look_at("mujoco", "MjSpec.authored")
    mujoco_parts.forget_authored(spec)
    assert not any(marks())


def test_calls_are_counted_without_torchs_compiler() -> None:
    """To import it takes more than a second."""
    code = (
        "import sys, torch\nfrom manikin.author.under_test import CountCalls\n"
        "with CountCalls() as calls:\n    torch.zeros(3) + 1\n"
        "print(calls.count, 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "2 False\n", f"{look_at('torch', 'TorchDispatchMode')}: {done.stdout}{done.stderr[-500:]}"


def test_filament_is_where_it_was() -> None:
    code = (
        "from manikin.compat.mujoco import load_filament\nrf = load_filament()\n"
        "for name in 'Context ContextConfig GraphicsApi ModelResources ModelLights ModelRenderables SceneParams Camera "
        "RenderRequest ReadRequest RenderTargetConfig PixelFormat DrawMode Rect'.split():\n    getattr(rf, name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    if "No module named 'mujoco.studio'" in done.stderr:
        pytest.skip("this MuJoCo has no Studio")
    assert done.returncode == 0, f"{look_at('mujoco', 'mujoco.mjrf')}: {done.stderr[-500:]}"


# ---- OpenGL ----------------------------------------------------------------------------------------------------------


def test_what_is_registered_later_is_freed_before_the_display() -> None:
    """MuJoCo closes EGL's display by ``atexit``, registered when its first context is made."""
    source = importlib.util.find_spec("mujoco.egl")
    assert source is not None and source.origin is not None
    text = Path(source.origin).read_text()
    assert "atexit.register(" in text, look_at("gl", "mujoco.egl, which closed its display at exit,")
    code = (
        "import atexit, weakref\nfrom manikin.compat.gl import free_before_platform\n"
        "class Thing: pass\nthing = Thing()\natexit.register(print, 'display')\n"
        "free_before_platform(weakref.finalize(thing, print, 'ours'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["ours", "display"], done.stderr


# ---- Warp and MuJoCo Warp --------------------------------------------------------------------------------------------


@pytest.mark.xdist_group("warp")
def test_warps_native_library_has_what_is_called() -> None:
    needs("warp")
    from manikin.sim.warp.library import modules

    wp, _ = modules()
    native = warp_parts.native_library()
    for name in ("wp_cuda_device_graph_mem_trim", "wp_alloc_tracker_get_peak_bytes"):
        assert hasattr(native, name), look_at("warp", name)
    tracker = wp.ScopedMemoryTracker("test", print=False)
    with tracker:
        tracker.clear()
        held = wp.zeros(1 << 20, dtype=wp.uint8, device="cpu")
        peak = warp_parts.peak_bytes()
    assert held.capacity <= peak < 2 * held.capacity, look_at("warp", "wp_alloc_tracker_get_peak_bytes")


def test_warps_render_context_has_the_known_fields() -> None:
    """``tests/render/test_render_warp.py`` compares its pictures with other renderers'."""
    needs("mujoco_warp")
    from mujoco_warp import RenderContext

    fields = set(RenderContext.__dataclass_fields__)
    used = (
        "nrender total_rays cam_res cam_id_map ray ray_offset rgb_data depth_data seg_data rgb_adr depth_adr seg_adr "
        "render_rgb render_depth render_seg geom_ray_types zfar znear headlight_active light_attenuation_is_default "
        "has_spot_lights bvh_ngeom bvh_nflexgeom lower upper group _megakernel"
    ).split()
    assert set(used) <= fields, look_at("mujoco_warp", f"RenderContext without {sorted(set(used) - fields)}")
    assert RenderContext.__dataclass_fields__["_megakernel"].default is None


@pytest.mark.xdist_group("warp")
def test_pairs_of_geoms_are_those_that_may_collide() -> None:
    needs("mujoco_warp")
    from manikin.sim.warp.library import modules

    wp, mjw = modules()
    xml = (
        "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/>"
        "<body><freejoint/><geom name='a' size='.1'/></body><body><freejoint/><geom name='b' size='.1'/></body>"
        "<body><freejoint/><geom name='c' size='.1' contype='0' conaffinity='0'/></body></worldbody>"
        "<sensor><distance geom1='a' geom2='c' cutoff='1'/></sensor></mujoco>"
    )
    with wp.ScopedDevice("cpu"):
        pairs, always = mujoco_warp.geom_pairs(mjw.put_model(mujoco.MjModel.from_xml_string(xml)))
    assert {tuple(p) for p in pairs[~always].tolist()} == {(0, 1), (0, 2), (1, 2)}, look_at("mujoco_warp", "geom pairs")
    assert [tuple(p) for p in pairs[always].tolist()] == [(1, 3)], look_at("mujoco_warp", "pairs of sensors")


def test_which_pairs_take_the_general_algorithm_is_as_warp_has_it() -> None:
    needs("mujoco_warp")
    from mujoco_warp._src.collision_driver import MJ_COLLISION_TABLE

    for (a, b), kind in MJ_COLLISION_TABLE.items():
        wanted = kind.name == "CONVEX" and not a.name == b.name == "BOX"  # boxes are left to their own formula
        found = mujoco_warp.takes_general_algorithm(int(a), int(b))
        assert found is wanted, look_at("mujoco_warp", f"MJ_COLLISION_TABLE[{a.name}, {b.name}]")


# ---- torch -----------------------------------------------------------------------------------------------------------


def test_operators_of_the_dispatcher_are_told_from_torchscripts() -> None:
    add = torch_parts.aten_operator("add", "Tensor")
    assert add is torch.ops.aten.add.Tensor, look_at("torch", "torch._ops.OpOverload")
    assert torch_parts.aten_operator("add", "out") is None, look_at("torch", "OpOverload._schema")
    assert torch_parts.aten_operator("add", "str") is None, look_at("torch", "torch._C._dispatch_has_kernel")
    assert torch_parts.aten_operator("add", "nothing") is None and torch_parts.aten_operator("nothing", "x") is None
    assert torch_parts.aten_operator("add", "__class__") is None


def test_a_dispatch_mode_sees_every_call() -> None:
    seen = []

    class Watch(torch_parts.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    a = torch.ones(2)
    with Watch():
        a + a
    assert seen == ["aten.add.Tensor"], look_at("torch", "TorchDispatchMode")


def test_without_gradients_nothing_is_recorded_and_what_is_made_is_ordinary() -> None:
    weight = torch.ones(2, requires_grad=True)
    look = look_at("torch", "torch._C._AutoDispatchBelowAutograd")
    with torch_parts.WithoutGradients():
        assert not torch.is_grad_enabled()
        with torch_parts.WithoutGradients():
            inner = weight * 2
        with torch.enable_grad():  # the layer is not there to record
            made = weight * 3
        with torch.inference_mode(False), torch.enable_grad():
            recorded = weight * 4
        after = weight * 5
    assert not (inner.requires_grad or made.requires_grad or after.requires_grad), look
    assert recorded.requires_grad and not made.is_inference(), look
    assert torch.is_grad_enabled() and (weight * 2).requires_grad, look
    made += 1  # can be changed, and trained on
    (made * weight).sum().backward()
    assert torch.equal(weight.grad, torch.full((2,), 4.0))


def test_without_gradients_ends_with_an_error_and_leaves_no_grad_as_it_was() -> None:
    weight = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        with pytest.raises(KeyError), torch_parts.WithoutGradients():
            raise KeyError
        assert not torch.is_grad_enabled()
    assert (weight * 2).requires_grad, look_at("torch", "torch._C._set_grad_enabled")


def test_batch_normalization_is_exported_under_the_known_name() -> None:
    network = torch.nn.BatchNorm1d(3).eval()
    graph = torch.export.export(network, (torch.zeros(2, 3),)).run_decompositions().graph
    names = [f"torch.ops.{node.target}" for node in graph.nodes if node.op == "call_function"]
    assert torch_parts.BATCH_NORM in names, look_at("torch", f"{names}, the export of BatchNorm1d,")


def test_the_numbers_of_the_export_format_are_torchs() -> None:
    from torch._export.serde import serialize

    for ours, name in (
        (torch_parts.DTYPES, "_SERIALIZE_TO_TORCH_DTYPE"),
        (torch_parts.LAYOUTS, "_SERIALIZE_TO_TORCH_LAYOUT"),
        (torch_parts.FORMATS, "_SERIALIZE_TO_TORCH_MEMORY_FORMAT"),
    ):
        theirs = getattr(serialize, name)
        assert ours == {key: theirs[key] for key in ours}, look_at("torch", name)


# ---- Studio and pygame -----------------------------------------------------------------------------------------------


def test_studio_starts_its_server_as_known() -> None:
    """``tests/view/test_view.py`` asks a running one as pages of other sites would."""
    needs("mujoco.studio", "manikin.compat.studio")
    from mujoco.studio import ux, web_viewer
    from mujoco.studio.web import web_server

    from manikin.compat import studio

    assert getattr(web_server.serve, "checked", False), look_at("studio", "web_server.serve")
    source = inspect.getsource(web_server)
    assert "await serve(" in source and "process_request=process_request" in source, look_at("studio", "web_server")
    source = inspect.getsource(web_viewer.WebViewer)
    for part in ("self._host = ", "self._http_sock = ", "self._start_server()"):
        assert part in source, look_at("studio", f"WebViewer, which had {part!r},")
    assert isinstance(ux.TUMBLE_CAMERA_IDX, int) and ux.TUMBLE_CAMERA_IDX < 0, look_at("studio", "TUMBLE_CAMERA_IDX")
    kind = studio.guarded_viewer("127.0.0.1", Watch())
    assert kind.address == "127.0.0.1" and issubclass(kind, web_viewer.WebViewer)


class Watch:
    """Refuses one path, and sets a cookie for another."""

    def refusal(self, address: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        return (421, f"{address} {headers['Host']}") if path == "/no" else None

    def cookie(self, path: str) -> str | None:
        return "a=b" if path == "/first" else None


def test_only_guarded_sockets_are_watched() -> None:
    needs("mujoco.studio")
    from manikin.compat import studio

    calls = []
    start = studio.checked_serve(lambda *args, **options: calls.append(options["process_request"]))

    class Connection:
        def respond(self, status: int, text: str) -> tuple[int, str]:
            return status, text

    class Exchange:  # a request, and the answer to it
        def __init__(self, path: str) -> None:
            self.path, self.headers = path, {"Host": "elsewhere.example"}

    with socket.socket() as plain, socket.socket() as guarded:
        for sock in (plain, guarded):
            sock.bind(("127.0.0.1", 0))
        studio.guards[guarded] = Watch()
        for sock in (plain, guarded):
            start(sock=sock, process_request=lambda connection, request: Exchange("answered"))
    assert calls[0](Connection(), Exchange("/no")).path == "answered"
    assert calls[1](Connection(), Exchange("/no")) == (421, "127.0.0.1 elsewhere.example")
    assert "Set-Cookie" not in calls[1](Connection(), Exchange("/next")).headers
    assert calls[1](Connection(), Exchange("/first")).headers["Set-Cookie"] == "a=b"


def test_pygame_has_its_controllers() -> None:
    needs("pygame")
    from manikin.compat.pygame import load_controllers

    controller = load_controllers()
    for name in ("init", "get_count", "is_controller", "Controller"):
        assert hasattr(controller, name), look_at("pygame", f"pygame._sdl2.controller.{name}")
