"""The graph of a policy file, run operator by operator.

``torch.export.load`` is not used. It unpickles, evaluates text of the file as Python (symbolic sizes, guards) and
writes Python source from the graph's names. Here names are keys of a dictionary and operators come from a list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from manikin.compat.torch import DTYPES, FORMATS, LAYOUTS
from manikin.errors import ActionError, DataError
from manikin.policy.files.operators import SIZES, operator_named

__all__ = ["Program"]

_LARGEST = 2**31  # whole number: beyond it some of torch's operators overflow, and crash
_KEPT = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}


@dataclass(frozen=True)
class _Name:
    """A value computed before."""

    word: str


@dataclass(frozen=True)
class _Step:
    run: Any
    said: str  # for errors
    args: Sequence[Any]
    options: Mapping[str, Any]
    outputs: Any
    done: list[str]  # values that nothing uses any more


class Program:
    """A network: one observation in, one tensor out.

    Args:
        written: the file's ``model.json``.
        tensors: its parameters, buffers and constants by name.
        name: for errors.

    Attributes:
        takes: the observation that it was exported with, one tensor or nested dictionaries of them, without contents.

    Raises:
        DataError: it holds something else than operators, weights and sizes; says what.
        KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError: it is broken.
    """

    def __init__(self, written: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], name: str) -> None:
        module = written["graph_module"]
        graph, signature = module["graph"], module["signature"]
        self._name = name
        self._kept: dict[str, torch.Tensor] = {}
        given: list[str] = []
        for spec in signature["input_specs"]:
            ((kind, content),) = spec.items()
            if kind == "user_input":
                given.append(content["arg"]["as_tensor"]["name"])
            elif kind in _KEPT:
                self._kept[content["arg"]["name"]] = tensors[content[_KEPT[kind]]]
            else:
                raise DataError(f"an input of the kind {kind!r}")
        self._layout = _layout(module["module_call_graph"][0]["signature"]["in_spec"], iter(given))
        self.takes = _map(lambda word: _example(graph["tensor_values"][word]), self._layout)
        self._output = _only_output(signature["output_specs"])
        self._steps = _steps(graph["nodes"], {*self._kept, *given}, self._output)

    def __call__(self, observation: Any) -> torch.Tensor:
        """The output for an observation like ``takes``.

        Raises:
            ActionError: an operator failed.
        """
        values: dict[str, Any] = dict(self._kept)
        _take(self._layout, observation, values)
        for step in self._steps:
            try:
                found = step.run(*_filled(step.args, values), **_filled(step.options, values))
            except (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError) as error:
                raise ActionError(f"{self._name}: {step.said} failed: {error}") from None
            _bind(step.outputs, found, values)
            for word in step.done:
                del values[word]
        result: torch.Tensor = values[self._output]
        return result


def _layout(text: str, names: Any) -> Any:
    """Where each input is in the observation: a name, or nested dictionaries of names."""
    version, spec = json.loads(text)
    arguments, options = spec["children_spec"]
    if version != 1 or len(arguments["children_spec"]) != 1 or options["children_spec"]:
        raise DataError("a network of several inputs; it must take one observation")

    def place(node: Mapping[str, Any]) -> Any:
        if node["type"] is None:
            return next(names)
        if node["type"] != "builtins.dict":
            raise DataError(f"an observation of {node['type']}; it must be a tensor or nested dictionaries")
        keys = json.loads(node["context"])
        return {str(key): place(child) for key, child in zip(keys, node["children_spec"], strict=True)}

    return place(arguments["children_spec"][0])


def _example(meta: Mapping[str, Any]) -> torch.Tensor:
    sizes = [size["as_int"] if "as_int" in size else size["as_expr"]["hint"]["as_int"] for size in meta["sizes"]]
    return torch.empty(sizes, dtype=DTYPES[meta["dtype"]], device="meta")


def _only_output(specs: Sequence[Mapping[str, Any]]) -> str:
    kinds = [kind for spec in specs for kind in spec]
    if kinds != ["user_output"] or "as_tensor" not in specs[0]["user_output"]["arg"]:
        said = ", ".join(kinds) or "nothing"
        raise DataError(f"a network that gives {said}; it must give one tensor of actions and change no buffer")
    word: str = specs[0]["user_output"]["arg"]["as_tensor"]["name"]
    return word


def _steps(nodes: Sequence[Mapping[str, Any]], known: set[str], output: str) -> list[_Step]:
    steps: list[_Step] = []
    for node in nodes:
        args, options = [], {}
        run = operator_named(node["target"])
        for argument in node["inputs"]:
            value = _argument(argument["arg"])
            if argument["name"] != "end" and any(abs(n) > _LARGEST for n in _whole(value)):  # slices end at 2^63 - 1
                raise DataError(f"{node['target']} of {argument['name']} {value}, more than {_LARGEST}")
            if node["target"] in SIZES:
                args.append(value)
            else:
                options[argument["name"]] = value
        if missing := {*_names(args), *_names(options)} - known:
            raise DataError(f"{node['target']} of {min(missing)!r}, which nothing computes")
        outputs = [_argument(one) for one in node["outputs"]]
        known.update(_names(outputs))
        bound = outputs[0] if len(outputs) == 1 else outputs
        steps.append(_Step(run, str(node["target"]), args, options, bound, []))
    if output not in known:
        raise DataError(f"the output {output!r}, which nothing computes")
    needed = {output}
    for step in reversed(steps):
        words = {*_names(step.args), *_names(step.options), *_names(step.outputs)}
        step.done.extend(words - needed)
        needed |= words
    return steps


def _argument(written: Mapping[str, Any]) -> Any:
    """A value of the file: a constant, a name, or a list of them."""
    ((kind, value),) = written.items()
    if kind in ("as_tensor", "as_none", "as_tensors", "as_optional_tensor", "as_optional_tensors"):
        return _tensor(kind, value)
    if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
        ((how, word),) = value.items()
        return _Name(word) if how == "as_name" else word
    if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
        return [_argument({kind[:-1]: one}) for one in value]
    if kind == "as_float":
        return float(value)  # infinities are words
    if kind == "as_floats":
        return [float(one) for one in value]
    if kind in ("as_int", "as_ints", "as_bool", "as_bools", "as_string"):
        return value
    if kind == "as_device":
        return torch.device(value["type"], value["index"] or 0) if value["type"] != "cpu" else torch.device("cpu")
    tables: dict[str, Mapping[int, Any]]
    tables = {"as_scalar_type": DTYPES, "as_layout": LAYOUTS, "as_memory_format": FORMATS}
    if kind in tables and value in tables[kind]:
        return tables[kind][value]
    raise DataError(f"an argument of the kind {kind!r}")


def _tensor(kind: str, value: Any) -> Any:
    if kind == "as_none":
        return None
    if kind == "as_tensor":
        return _Name(value["name"])
    if kind == "as_tensors":
        return [_Name(one["name"]) for one in value]
    return [_argument(one) for one in value] if kind == "as_optional_tensors" else _argument(value)


def _whole(value: Any) -> list[int]:
    """The whole numbers of an argument."""
    return [one for one in (value if isinstance(value, list) else [value]) if type(one) is int]


def _names(tree: Any) -> set[str]:
    if isinstance(tree, _Name):
        return {tree.word}
    parts = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()
    return {word for part in parts for word in _names(part)}


def _filled(tree: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(tree, _Name):
        return values[tree.word]
    if isinstance(tree, dict):
        return {key: _filled(value, values) for key, value in tree.items()}
    return [_filled(value, values) for value in tree] if isinstance(tree, list) else tree


def _bind(place: Any, found: Any, values: dict[str, Any]) -> None:
    """Give what an operator returned its names."""
    if isinstance(place, _Name):
        values[place.word] = found
    elif isinstance(place, list):
        for one, part in zip(place, found or (), strict=True):
            _bind(one, part, values)


def _take(layout: Any, observation: Any, values: dict[str, Any]) -> None:
    if isinstance(layout, dict):
        for key, child in layout.items():
            _take(child, observation[key], values)
    else:
        values[layout] = observation


def _map(function: Any, tree: Any) -> Any:
    return {key: _map(function, value) for key, value in tree.items()} if isinstance(tree, dict) else function(tree)
