"""Device words, and making tensors on the device that a world lives on."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from manikin.errors import AssetError, ConfigError, UnknownNameError

__all__ = ["DEVICES", "OnDevice", "on_device", "on_host", "processors", "torch_device"]

DEVICES = ("cpu", "cuda", "cuda:0", "cuda:1", "warp:cpu")  # and so on for further GPUs

_INSTALL = "pip install 'manikin[gpu]' and a CUDA build of torch (https://pytorch.org/get-started)"


CORES_VARIABLE = "MANIKIN_CORES"


def processors() -> int:
    """How many processor threads manikin takes: those that this process may use, or fewer by the environment variable
    ``MANIKIN_CORES``. Where other work runs beside it, one thread is faster than two that wait for each other.

    Raises:
        ConfigError: the variable is no whole number of 1 or more.
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    asked = os.environ.get(CORES_VARIABLE, "")
    if asked and not (asked.isdecimal() and int(asked) >= 1):
        raise ConfigError(f"{CORES_VARIABLE} must be a whole number of cores, 1 or more; got {asked!r}")
    return min(here, int(asked)) if asked else here


def torch_device(word: str) -> torch.device:
    """The torch device of a device word, with its number: ``cuda`` is the process's current GPU.

    Raises:
        UnknownNameError: not a device word.
        AssetError: what it needs is not installed; says how to get it.
        ConfigError: this machine has no such GPU; says what it has.
    """
    if isinstance(word, str) and word == "cpu":
        return torch.device("cpu")
    if not isinstance(word, str) or not re.fullmatch(r"cuda(:\d+)?|warp:cpu", word):
        raise UnknownNameError("device", word, DEVICES)
    if importlib.util.find_spec("mujoco_warp") is None:
        how = "pip install 'manikin[gpu]'" if word == "warp:cpu" else _INSTALL
        raise AssetError(f"device {word!r} needs MuJoCo Warp, which is not installed: {how}; or use device='cpu'")
    if word == "warp:cpu":
        return torch.device("cpu")
    if not torch.backends.cuda.is_built():
        raise ConfigError(
            f"device {word!r}: this torch ({torch.__version__}) is built without CUDA: {_INSTALL}; or use device='cpu'"
        )
    found = torch.cuda.device_count()
    if not found:
        raise ConfigError(f"device {word!r}: torch {torch.__version__} finds no CUDA GPU; use device='cpu'")
    number = torch.cuda.current_device() if word == "cuda" else int(word.removeprefix("cuda:"))
    if number >= found:
        raise ConfigError(f"device {word!r}: this machine has cuda:0 to cuda:{found - 1}")
    return torch.device("cuda", number)


_MAKERS = frozenset(
    (
        torch.arange,
        torch.empty,
        torch.eye,
        torch.full,
        torch.linspace,
        torch.ones,
        torch.scalar_tensor,
        torch.tril_indices,
        torch.triu_indices,
        torch.zeros,
    )
)
_HOST = torch.device("cpu")
_CHOOSERS = frozenset((torch.where, torch.Tensor.where))
_WRAPPERS = frozenset((torch.tensor, torch.as_tensor, torch.asarray))


class OnDevice(TorchFunctionMode):
    """Inside, tensors made without naming a device are made on this one: task code need not know where it runs.

    A tensor made from Python numbers, by ``new_tensor`` too, is uploaded the first time and copied on the device
    afterwards: an upload waits for the device and cannot be part of a CUDA graph. So is a single number on the
    processor that ``torch.where`` chooses beside tensors of the device: arithmetic and comparisons take it by value,
    ``where`` would upload it.
    """

    _most = 4096  # a graph reads what it was recorded with, so nothing is ever thrown out

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.uploaded: dict[tuple[str, torch.dtype | None], torch.Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _WRAPPERS and kwargs.get("device") in (None, self.device):
            data = args[0] if args else kwargs.get("data")
            if isinstance(data, torch.Tensor):
                return func(*args, **kwargs)
            if len(args) == 1 and not kwargs.get("requires_grad") and _plain(data):
                return self._constant(data, kwargs.get("dtype")).clone()
            kwargs["device"] = self.device
        elif func is torch.Tensor.new_tensor and kwargs.get("device", args[0].device) == self.device:
            data = args[1] if len(args) > 1 else kwargs["data"]
            if not kwargs.get("requires_grad") and _plain(data):
                return self._constant(data, kwargs.get("dtype") or args[0].dtype).clone()
        elif func in _MAKERS and kwargs.get("device") is None:
            kwargs["device"] = self.device
        elif func in _CHOOSERS and any(self._is_here(value) for value in (*args, *kwargs.values())):
            args, kwargs = tuple(map(self._here, args)), {k: self._here(v) for k, v in kwargs.items()}
        return func(*args, **kwargs)

    def _constant(self, data: Any, dtype: torch.dtype | None) -> torch.Tensor:
        """Of the device, to be read only."""
        key = (repr(data), dtype)
        found = self.uploaded.get(key)
        if found is None:
            with torch.inference_mode(False):
                found = torch.tensor(data, dtype=dtype, device=_HOST).to(self.device)
            if len(self.uploaded) < self._most:
                self.uploaded[key] = found
        return found

    def _is_here(self, value: Any) -> bool:
        return self.device != _HOST and isinstance(value, torch.Tensor) and value.device == self.device

    def _here(self, value: Any) -> Any:
        """A single number on the processor as one on the device, anything else as it is."""
        if isinstance(value, torch.Tensor) and value.dim() == 0 and value.device == _HOST:
            return self._constant(value.item(), value.dtype)
        return value


def _plain(data: Any) -> bool:
    """Python numbers, or lists and tuples of them."""
    if isinstance(data, list | tuple):
        return all(map(_plain, data))
    return isinstance(data, bool | int | float | np.bool_ | np.number)


def on_device(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """A context in which tensors are made on the device. On the CPU, where torch makes them anyway, it does nothing."""
    return contextlib.nullcontext() if device.type == "cpu" else OnDevice(device)


def on_host(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """For work on the CPU inside of :func:`on_device`: a context in which tensors are made on the CPU again."""
    return contextlib.nullcontext() if device.type == "cpu" else OnDevice(_HOST)
