"""A Warp world without numbers: torch's ``meta`` device computes shapes alone, so whatever would wait for a GPU, or mix
its tensors with the processor's, is an error here, without a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from manikin.sim.warp.capacity import Capacity
from manikin.sim.warp.library import modules
from manikin.sim.warp.world import WarpWorld
from manikin.sim.world import STATE

META = torch.device("meta")


class MetaModel:
    """Fields of a model as meta tensors."""

    def __init__(self, model, n):
        self._model, self.count, self.layout, self.varied = model, n, 0, set()
        self.variable = frozenset(f for f in dir(model) if isinstance(getattr(model, f), np.ndarray)) - {"bvh_aabb"}
        self.ids = {}

    def place_fixed(self, d):
        """What stands still has no poses here."""

    def view(self, field):
        self.varied.add(field)
        shape = getattr(self._model, field).shape
        return torch.empty(self.count, *shape, device=META)

    def read(self, field):
        return self.view(field).double()

    def numpy(self, field):
        return np.broadcast_to(getattr(self._model, field), (self.count, *getattr(self._model, field).shape))


class MetaWorld(WarpWorld):
    """Everything of a :class:`WarpWorld` but the physics."""

    def memory_per_row(self):
        return 0

    def __init__(self, scene, num_worlds):
        _, self._mjw = modules()
        from manikin.sim.warp.kernels import contacts as warp_contacts

        self._checked = warp_contacts
        self._wp, self._wp_device = SimpleNamespace(to_torch=lambda t: t), None
        self.scene, self.num_worlds, self.version, self.device = scene, num_worlds, 0, META
        self._mjm, self._closed = scene.model, False
        data = mujoco.MjData(scene.model)
        self._data = {f: np.asarray(getattr(data, f)) for f in dir(data) if not f.startswith("_") and f != "bind"
                      and isinstance(getattr(data, f), (np.ndarray, float))}  # fmt: skip
        one = torch.zeros(1, dtype=torch.int32, device=META)
        rows = torch.zeros(num_worlds, dtype=torch.int32, device=META)
        self.mjw_data, self._counters = SimpleNamespace(qacc=None), [one.clone(), one.clone()]
        self._views, self._reads, self.dots, self._model = {}, {}, {}, MetaModel(scene.model, num_worlds)
        self._model.write = lambda writes, mask: _write(self._model, writes, mask)
        self._health, self._wanted = rows.clone(), rows.clone()
        self._room = Capacity({"njmax": 256}, num_worlds, META, self._mjw.OverflowType)
        self._acc = torch.arange(scene.model.nsensordata, device=META)
        self._before, self._before_forces, self._last = self._state(), self._served(), self._state()
        self.set_home()

    def flat(self, field):
        if field not in self._views:
            kind = torch.int32 if field in ("nefc", "overflow") else torch.float32
            width = 1 if field in ("nefc", "overflow", "time") else self._width(field)
            self._views[field] = torch.zeros(self.num_worlds, width, dtype=kind, device=META)
        return self._views[field]

    def _width(self, field):
        if field in ("xquat", "site_xquat", "geom_xquat"):
            count = {"xquat": self._mjm.nbody, "site_xquat": self._mjm.nsite, "geom_xquat": self._mjm.ngeom}[field]
            return 4 * count
        assert field in self._data or field in STATE, field
        return self._data[field].size

    def _run(self, function):
        self.version += 1


def _write(model, writes, mask):
    from manikin.sim.warp.channel import merged

    for field, ids, value in writes:
        view = model.view(field)
        at = model.ids.setdefault(np.asarray(ids).tobytes(), torch.arange(len(ids), device=META))
        new = value.to(view.dtype).reshape(model.count, len(ids), *view.shape[2:])
        view[:, at] = merged(mask, new, view[:, at])
    return True


BY_VALUE = {"add", "sub", "mul", "div", "ge", "gt", "le", "lt", "eq", "ne"}
"""Functions whose kernels take a single number of the processor's by value; others upload it."""


class OnlyMeta(TorchDispatchMode):
    """Refuses the processor's tensors beside the device's, except single numbers in plain arithmetic, and uploads."""

    def __enter__(self):
        self._numbers = NoNumbers()
        self._numbers.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._numbers.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [a for a in _leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        by_value = func.name().removeprefix("aten::").split(".")[0].rstrip("_") in BY_VALUE
        here = [t for t in tensors if t.device.type == "cpu" and not (t.dim() == 0 and by_value)]
        there = any(t.device == META for t in tensors) or kwargs.get("device") == META
        if here and there:
            raise RuntimeError(f"{func} mixes the processor's tensor of shape {tuple(here[0].shape)} with the device's")
        return func(*args, **kwargs)


class NoNumbers(TorchFunctionMode):
    """Refuses to make a tensor of the device from numbers of the processor: torch does not say so on ``meta``, but on a
    GPU it is an upload, which waits and cannot be recorded."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor):
            method = func is torch.Tensor.new_tensor
            data = kwargs["data"] if "data" in kwargs else args[method]
            device = kwargs.get("device") or (args[0].device if method else None)
            if device == META and not isinstance(data, torch.Tensor):
                raise RuntimeError(f"{func.__name__} uploads {data}")
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__) and args[0].device == META:
            for part in args[1] if isinstance(args[1], tuple) else args[1:2]:
                if isinstance(part, list | range | np.ndarray):
                    raise RuntimeError(f"an index uploads {part}")
        return func(*args, **kwargs)


def _leaves(tree):
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _leaves(item)
    elif isinstance(tree, dict):
        yield from _leaves(list(tree.values()))
    else:
        yield tree
