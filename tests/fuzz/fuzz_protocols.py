"""Protocols of evaluation that say something else, or are no protocols."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from fuzz_values import Case, Draw, any_value, changed_bytes, changed_tree, chosen, shown

from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol, load_protocol
from manikin.policy.random_policy import RandomPolicy

FULL = Protocol(
    name="short",
    description="two starts",
    tasks=("PushCube-v2",),
    seeds=(1_000_000, 1_000_001),
    config={"PushCube-v2": {"goal_radius": 0.1}},
)
RUN = 0.02  # share of the trials that also evaluate


class Protocols:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = FULL.to_toml()
        assert tomllib.loads(self.text)["episodes"]

    def case(self, draw: Draw) -> Case:
        kind = chosen(draw, ["bytes", "tree", "tree", "tree", "object", "name"])
        run = bool(draw.random() < RUN)
        if kind == "object":
            field = chosen(draw, list(Protocol.__dataclass_fields__))
            value = any_value(draw)
            options = {"name": "x", "tasks": ("PushCube-v2",), "seeds": (1,)} | {field: value}
            return f"Protocol({field}={shown(value)})", lambda: self._use(Protocol(**options), run)
        if kind == "name":
            value = any_value(draw)
            word = value if isinstance(value, str | Path) else shown(value)
            return f"load_protocol({shown(word)})", lambda: load_protocol(word)
        path = self.folder / "protocol.toml"
        if kind == "bytes":
            words, content = changed_bytes(draw, self.text.encode())
        else:
            words, tree = changed_tree(draw, tomllib.loads(self.text))
            content = _toml(tree).encode("utf-8", "surrogatepass")

        def use() -> None:
            path.write_bytes(content)
            self._use(load_protocol(path), run)

        return words, use

    def _use(self, protocol: Protocol, run: bool) -> None:
        again = Protocol.from_toml(protocol.to_toml())
        if again.hash != protocol.hash:
            raise AssertionError(f"{protocol} is another one once it is written and read: {again}")
        if run and len(protocol.seeds) < 3:
            evaluate(protocol, RandomPolicy, num_envs=2)


def _toml(value: Any, top: bool = True) -> str:
    """TOML of any tree, and what is no TOML for what it has not."""
    if isinstance(value, dict):
        lines = [f"{_key(k)} = {_toml(v, False)}" for k, v in value.items()]
        return "\n".join(lines) if top else "{" + ", ".join(lines) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v, False) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _key(value) if isinstance(value, str) else repr(value)


def _key(word: Any) -> str:
    escaped = str(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
