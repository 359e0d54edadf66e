"""Private parts of torch: its dispatcher, its layer of gradients, and the numbers of its export format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["BATCH_NORM", "DTYPES", "FORMATS", "LAYOUTS", "DispatchMode", "WithoutGradients", "aten_operator"]

BATCH_NORM = "torch.ops.aten._native_batch_norm_legit_no_training.default"
"""What ``torch.export`` writes for batch normalization in evaluation."""

# The numbers that torch.export writes for types, layouts and memory formats.
DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    12: torch.bool,
    13: torch.bfloat16,
}
LAYOUTS = {7: torch.strided}
FORMATS = {1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d, 4: torch.preserve_format}


class DispatchMode(TorchDispatchMode):
    """torch's ``TorchDispatchMode``, for code that nobody compiles: to keep its compiler out, torch would import it,
    which takes more than a second."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class WithoutGradients:
    """A context as ``torch.no_grad()`` in which calls do not even pass the layer that records gradients.

    At one row that layer takes a tenth of a control step. Unlike ``torch.inference_mode`` the tensors made inside are
    ordinary ones: they can be changed and trained on later. ``torch.enable_grad()`` alone has no effect inside;
    ``torch.inference_mode(False)`` brings the layer back.
    """

    __slots__ = ("_before", "_guard")

    def __enter__(self) -> None:
        self._before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        self._guard = torch._C._AutoDispatchBelowAutograd()
        self._guard.__enter__()

    def __exit__(self, *error: object) -> None:
        self._guard.__exit__(*error)
        torch._C._set_grad_enabled(self._before)


def aten_operator(name: str, overload: str) -> Callable[..., Any] | None:
    """The operator ``torch.ops.aten.NAME.OVERLOAD``. None where there is none, where only TorchScript has it, and
    where it writes into a given output."""
    found: Any = getattr(getattr(torch.ops.aten, name, None), overload, None)
    # TorchScript adds overloads to torch.ops that the dispatcher does not have
    if not isinstance(found, torch._ops.OpOverload) or not torch._C._dispatch_has_kernel(found.name()):
        return None
    if any(argument.is_out for argument in found._schema.arguments):
        return None
    operator: Callable[..., Any] = found
    return operator
