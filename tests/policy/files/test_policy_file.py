"""Policies in files: they act as torch's own loader says, and nothing in a file runs but torch's operators."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import manikin
from manikin.errors import ActionError, AssetError, ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.choices import policy_maker
from manikin.policy.files.checkpoint import load_policy
from manikin.policy.files.operators import OPERATORS, operator_named


def exported(path: Path, module: torch.nn.Module, observation: Any, **options: Any) -> Path:
    torch.export.save(torch.export.export(module.eval(), (observation,), **options), path)
    return path


def linear(path: Path) -> Path:
    torch.manual_seed(0)
    return exported(path, torch.nn.Linear(3, 2), torch.rand(4, 3))


def test_an_exported_network_acts_as_the_module_did(tmp_path: Path) -> None:
    env = manikin.make("PickCube-v2", 5, autoreset="disabled")
    observation, _ = env.reset(seed=0)
    size = env.controller.card.size
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(observation.shape[1], 16), torch.nn.Tanh(), torch.nn.Linear(16, size))
    exported(tmp_path / "net.pt2", module, torch.rand(4, observation.shape[1]))
    policy = policy_maker(str(tmp_path / "net.pt2"))(env)
    assert (policy.width, policy.name) == (4, "net")
    with torch.no_grad():
        expected = module(observation)
    torch.testing.assert_close(policy.act(observation, [""] * 5)[:, 0], expected)
    assert len(run_episodes(env, policy, range(5)).results) == 5


class Everything(torch.nn.Module):
    """Pictures and joints through what policies are made of."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.see = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.GroupNorm(2, 8), nn.MaxPool2d(2)
        )
        self.mix = nn.Linear(9 + 8 + 4, 8)
        self.attend = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
        )
        self.place = nn.Embedding(4, 8)
        self.out = nn.Sequential(nn.LayerNorm(8), nn.GELU(approximate="tanh"), nn.Dropout(0.5), nn.Linear(8, 7))
        self.register_buffer("mean", torch.rand(9))
        self.scale = torch.tensor([1.0, float("inf")])

    def forward(self, seen: dict[str, Any]) -> torch.Tensor:
        images = seen["cameras"]["rgb"].permute(0, 3, 1, 2).float() / 255
        images = torch.nn.functional.interpolate(images, scale_factor=2.0, mode="bilinear")
        picture = self.see(images).mean((2, 3))
        joints = (seen["policy"]["qpos"] - self.mean).clamp(-1, 1)
        time = torch.arange(2) * 0.3
        waves = torch.cat([time.sin(), time.cos()]).expand(joints.shape[0], -1)
        token = torch.nn.functional.silu(self.mix(torch.cat([joints, picture, waves], 1)))
        tokens = token[:, None] + self.place(torch.arange(4))
        tokens = self.attend(tokens)
        left, right = self.out(tokens).chunk(2, dim=-1)
        best, _ = right.max(dim=-1, keepdim=True)
        bent = torch.where(left > best, torch.minimum(left, self.scale[1]), left * self.scale[0])
        return torch.tanh(torch.cat([bent, right], -1).masked_fill(torch.isnan(right.sum(-1, keepdim=True)), 0.0))


def observed(rows: int) -> dict[str, Any]:
    pictures = torch.randint(0, 255, (rows, 20, 20, 3), dtype=torch.uint8)
    return {"policy": {"qpos": torch.randn(rows, 9)}, "cameras": {"rgb": pictures}}


@pytest.mark.parametrize("free", [False, True])
def test_the_graph_gives_the_bits_of_torchs_own_program(tmp_path: Path, free: bool) -> None:
    """One fixed number of rows, and a free one, where sizes are computed too."""
    torch.manual_seed(0)
    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    shapes = {"dynamic_shapes": ({"policy": {"qpos": rows}, "cameras": {"rgb": rows}},)} if free else {}
    program = torch.export.export(Everything().eval(), (observed(4),), **shapes)
    torch.export.save(program, tmp_path / "net.pt2")
    reference, module = program.module(), load_policy(tmp_path / "net.pt2").module
    with torch.no_grad():
        for count in (2, 4, 9) if free else (4,):
            seen = observed(count)
            found = module(seen)
            assert found.shape == (count, 4, 7) and torch.equal(found, reference(seen))
            assert torch.equal(found, module(dict(reversed(seen.items()))))  # by name, not by place


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.even = torch.nn.BatchNorm1d(5)
        self.even.running_mean = torch.rand(5)
        self.remember = torch.nn.LSTM(3, 4, num_layers=2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.remember(self.even(x))[0]


def test_recurrent_layers_are_run_as_what_they_are_made_of(tmp_path: Path) -> None:
    """torch trusts the sizes of their states and writes outside of memory where these lie."""
    module, seen = Recurrent().eval(), torch.rand(4, 5, 3)
    program = torch.export.export(module, (seen,))
    torch.export.save(program, tmp_path / "whole.pt2")
    with pytest.raises(DataError, match=r"operator 'torch\.ops\.aten\.lstm\.input'.*run_decompositions"):
        load_policy(tmp_path / "whole.pt2")
    torch.export.save(program.run_decompositions(), tmp_path / "parts.pt2")
    with torch.no_grad():
        torch.testing.assert_close(load_policy(tmp_path / "parts.pt2").module(seen), module(seen))


def test_operators_take_tensors_and_numbers_only() -> None:
    """None has a file, a storage or a stream among its arguments, and words only choose a way to compute."""
    plain = {"Tensor", "int", "float", "bool", "number", "Device", "Generator"}
    words = {
        "approximate",
        "equation",
        "indexing",
        "interpolation",
        "mode",
        "ord",
        "padding",
        "reduce",
        "rounding_mode",
    }
    found = set()
    for full in torch._C._dispatch_get_all_op_names():
        base, _, overload = full.removeprefix("aten::").partition(".")
        try:
            run = operator_named(f"torch.ops.aten.{base}.{overload or 'default'}")
        except DataError:
            continue
        if not isinstance(run, torch._ops.OpOverload):  # one of ours that checks first
            continue
        found.add(base.removesuffix("_"))
        for argument in run._schema.arguments:  # house: private, torch's
            kind = re.sub(r"Optional\[|List\[|\]", "", str(argument.type))
            assert kind in plain or (kind == "str" and argument.name in {*words, "assert_msg"}), (full, argument)
    assert found == {name.removesuffix("_") for name in OPERATORS}  # all of them exist


# ---- files that would run something ----------------------------------------------------------------------------------


class Command:
    """Pickled, it makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (self.folder,)


def saved(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def crafted(path: Path, changes: dict[str, Any]) -> None:
    """Write an archive again with other parts: other bytes, JSON that a function changes, or further ones."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    folder = next(iter(parts)).partition("/")[0]
    for end, change in changes.items():
        name = f"{folder}/{end}"
        if callable(change):
            content = json.loads(parts[name])
            change(content)
            change = json.dumps(content).encode()
        parts[name] = change
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def first(content: dict[str, Any]) -> dict[str, Any]:
    return next(iter(content["config"].values()))


def hostile(kind: str, folder: Path) -> dict[str, Any]:
    """Changes to an archive of a linear layer that make ``folder`` when they are believed."""
    code = f"__import__('os').mkdir({str(folder)!r})"
    weights, graph = "data/weights/model_weights_config.json", "models/model.json"

    def size(content: dict[str, Any]) -> None:
        content["graph_module"]["graph"]["tensor_values"]["input"]["sizes"][0] = {
            "as_expr": {"expr_str": code, "hint": {"as_int": 4}}
        }

    def target(word: str) -> Callable[[dict[str, Any]], None]:
        def change(content: dict[str, Any]) -> None:
            node = content["graph_module"]["graph"]["nodes"][0]
            node["target"] = word
            node["inputs"] = [{"name": "path", "arg": {"as_string": str(folder)}, "kind": 1}]

        return change

    def kept(content: dict[str, Any]) -> None:
        content["config"]["thing"] = {
            "path_name": "opaque_obj_0",
            "is_param": False,
            "use_pickle": True,
            "tensor_meta": None,
        }

    return {
        "sample inputs": {"data/sample_inputs/model.pt": saved(((Command(folder),), {}))},
        "a weight": {
            weights: lambda c: first(c).update(use_pickle=True),
            "data/weights/weight_0": saved(Command(folder)),
        },
        "all weights": {"data/weights/model.pt": saved({"weight": Command(folder)})},
        "a constant": {
            "data/constants/model_constants_config.json": kept,
            "data/constants/opaque_obj_0": pickle.dumps(Command(folder)),
        },
        "a size": {graph: size},
        "a guard": {graph: lambda c: c.update(guards_code=[f"{code} is None"])},
        "an operator of Python": {graph: target("torch.os.mkdir")},
        "an operator that saves": {graph: target("torch.ops.aten.save.default")},
        "an operator that maps files": {graph: target("torch.ops.aten.from_file.default")},
        "compiled code": {"data/aotinductor/model/x.so": b"\x7fELF"},
    }[kind]


HARMLESS = ("sample inputs", "a size", "a guard")  # never read, so nothing has to be refused


@pytest.mark.parametrize("kind", [*HARMLESS, "a weight", "all weights", "a constant"])
def test_nothing_in_a_file_is_unpickled_or_evaluated(tmp_path: Path, kind: str) -> None:
    """Each archive is valid: torch's own loader does what it says."""
    path, folder = linear(tmp_path / "net.pt2"), tmp_path / "made"
    expected = load_policy(path).act(torch.ones(2, 3), [""] * 2)
    crafted(path, hostile(kind, folder))
    if kind in HARMLESS:
        assert torch.equal(load_policy(path).act(torch.ones(2, 3), [""] * 2), expected)
    else:
        with pytest.raises(DataError, match=r"net\.pt2 is not loaded, because it holds .*file\.py:function"):
            load_policy(path)
    assert not folder.exists()
    with contextlib.suppress(Exception):  # most of them fail afterwards
        torch.export.load(path).module()(torch.ones(4, 3))
    assert folder.is_dir()


@pytest.mark.parametrize(
    "kind", ["an operator of Python", "an operator that saves", "an operator that maps files", "compiled code"]
)
def test_what_is_no_operator_of_networks_is_refused(tmp_path: Path, kind: str) -> None:
    path, folder = linear(tmp_path / "net.pt2"), tmp_path / "made"
    crafted(path, hostile(kind, folder))
    with pytest.raises(DataError, match=r"because it holds (the operator|compiled code)"):
        load_policy(path)
    assert not folder.exists()
    for word in ("torch.ops.aten._unsafe_index.Tensor", "torch.ops.aten.relu.out", "torch.ops.aten.add.out", 3):
        with pytest.raises(DataError, match="the operator"):
            operator_named(word)


def test_weights_outside_their_file_and_broken_graphs_are_refused(tmp_path: Path) -> None:
    def stretched(content: dict[str, Any]) -> None:
        first(content)["tensor_meta"]["sizes"][0]["as_int"] = 10**6

    def unknown(content: dict[str, Any]) -> None:
        content["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = "elsewhere"

    def huge(content: dict[str, Any]) -> None:
        content["graph_module"]["graph"]["nodes"][0]["inputs"][1]["arg"] = {"as_ints": [2**63 - 1]}

    def twice(content: dict[str, Any]) -> None:
        content["graph_module"]["signature"]["output_specs"] *= 2

    for changes, said in (
        ({"data/weights/model_weights_config.json": stretched}, r"not written by torch\.export\.save \(RuntimeError\)"),
        ({"models/model.json": unknown}, "'elsewhere', which nothing computes"),
        ({"models/model.json": huge}, "aten.linear.default of weight .9223372036854775807., more than 2147483648"),
        ({"models/model.json": twice}, "must give one tensor of actions"),
        ({"models/model.json": b"["}, r"not written by torch\.export\.save"),
        ({"byteorder": b"middle"}, "another byte order"),
    ):
        path = linear(tmp_path / "net.pt2")
        crafted(path, changes)
        with pytest.raises(DataError, match=said):
            load_policy(path)


def test_weights_of_older_files_are_read_without_running_them(tmp_path: Path) -> None:
    path = linear(tmp_path / "net.pt2")
    state = torch.export.load(path).state_dict
    expected = load_policy(path).act(torch.ones(2, 3), [""] * 2)
    crafted(path, {"data/weights/model.pt": saved({k: v * 2 for k, v in state.items()})})
    assert torch.equal(load_policy(path).act(torch.ones(2, 3), [""] * 2), expected * 2)


# ---- files of other networks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 4])
def test_bits_of_a_row_do_not_depend_on_the_others(tmp_path: Path, width: int) -> None:
    """Ten networks with sizes whose products answer with other bits in other places of a batch."""
    seeds = torch.Generator().manual_seed(0)
    for _ in range(10):
        network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        for p in network.parameters():
            p.data = torch.randn(p.shape, generator=seeds)
        policy = load_policy(exported(tmp_path / "net.pt2", network, torch.zeros(width, 5)))
        seen, order = torch.randn(33, 5, generator=seeds), torch.randperm(33, generator=seeds)
        together = policy.act(seen, [""] * 33)
        assert torch.equal(torch.cat([policy.act(seen[k : k + 1], [""]) for k in range(33)]), together)
        assert torch.equal(policy.act(seen[order], [""] * 33), together[order])


def test_a_network_that_mixes_rows_is_fed_copies_of_one_row(tmp_path: Path) -> None:
    """An exported network takes one size of batch only, also where rows must be fed one by one."""

    class Mixing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2] - x[:, :2].mean(0)

    policy = load_policy(exported(tmp_path / "mixing.pt2", Mixing(), torch.rand(4, 3)))
    # each is the mean of its copies
    torch.testing.assert_close(policy.act(torch.rand(6, 3), [""] * 6), torch.zeros(6, 1, 2))


def test_an_operator_that_fails_is_named(tmp_path: Path) -> None:
    class Picks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.eye(3)[x.long()]

    policy = load_policy(exported(tmp_path / "picks.pt2", Picks(), torch.zeros(4)))
    with pytest.raises(ActionError, match=r"picks\.pt2: torch\.ops\.aten\.index\.Tensor failed: index 7"):
        policy.act(torch.full((4,), 7.0), [""] * 4)


def test_what_is_no_exported_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="no file"):
        load_policy(tmp_path / "none.pt2")
    (tmp_path / "bad.pt2").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"bad\.pt2 was not written by torch\.export\.save"):
        load_policy(tmp_path / "bad.pt2")
    two = torch.nn.Bilinear(2, 2, 2).eval()
    torch.export.save(torch.export.export(two, (torch.rand(4, 2), torch.rand(4, 2))), tmp_path / "two.pt2")
    with pytest.raises(DataError, match=r"two\.pt2.*must take one observation"):
        load_policy(tmp_path / "two.pt2")
    policy = load_policy(exported(tmp_path / "net.pt2", torch.nn.Linear(9, 8), torch.rand(4, 9)))
    said = r"net\.pt2 expects the observation \(B, 9\) float32, but this environment gives "
    for shown, words in (
        (torch.zeros(3, 7), r"\(B, 7\) float32"),
        (torch.zeros(3, 9).double(), r"\(B, 9\) float64"),
        ({"policy": {"qpos": torch.zeros(3, 9)}}, r"policy/qpos \(B, 9\) float32"),
    ):
        with pytest.raises(ConfigError, match=said + words):
            policy.act(shown, [""] * 3)
    with pytest.raises(UnknownNameError, match="ws://host:port"):
        policy_maker("clever")
