"""Tensors that behave as on a graphics card, without one: they have numbers, but do not become NumPy arrays by
themselves and do not mix with the processor's."""

from __future__ import annotations

import torch


class Card(torch.Tensor):
    """On the card; ``cpu()`` gives what is there as an ordinary tensor, ``to(other)`` follows the other tensor."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in ("numpy", "__array__"):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")
        with torch._C.DisableTorchFunctionSubclass():
            stays = name not in ("cpu", "to") or (name == "to" and isinstance(args[1], Card | torch.dtype))
            mixed = list(_leaves((args, kwargs or {})))
            if name in ("__getitem__", "__setitem__"):  # rows may be named by the processor's numbers
                mixed = [args[0], *args[2:]]
            if name not in ("cpu", "to") and any(not isinstance(t, Card) and t.dim() for t in mixed):
                raise RuntimeError(f"{name}: expected all tensors on the same device, but found cuda:0 and cpu")
            out = func(*args, **(kwargs or {}))
            return _map(out, Card if stays else torch.Tensor)


def _map(value, kind):
    if isinstance(value, torch.Tensor):
        return value.as_subclass(kind)
    return type(value)(_map(v, kind) for v in value) if type(value) in (list, tuple) else value


def _leaves(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, tuple | list | dict):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(value)


def on_card(tree):
    """All tensors of nested dicts and tuples, on the card."""
    if isinstance(tree, dict):
        return {key: on_card(value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(on_card(value) for value in tree)
    return tree.clone().as_subclass(Card) if isinstance(tree, torch.Tensor) else tree
