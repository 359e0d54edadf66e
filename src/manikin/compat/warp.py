"""Private parts of Warp: its native library, as ``warp._src`` loads it."""

from __future__ import annotations

from typing import Any

__all__ = ["peak_bytes", "trim_graph_memory"]


def native_library() -> Any:
    import warp

    return warp._src.context.runtime.core


def trim_graph_memory(ordinal: int) -> None:
    """Give back what GPU number ``ordinal`` reserves for recorded graphs that are gone."""
    native_library().wp_cuda_device_graph_mem_trim(ordinal)


def peak_bytes() -> int:
    """The most bytes that Warp had allocated at once, inside a ``warp.ScopedMemoryTracker`` since its ``clear()``."""
    return int(native_library().wp_alloc_tracker_get_peak_bytes())
