"""ONNX files of trained policies answer as the networks do, scaling included."""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pytest
import torch

from manikin.cli import main
from manikin.errors import ConfigError
from manikin.policy.files.onnx import INPUT, METADATA, example_observations, export_onnx, input_shapes, run_onnx
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks import build
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import save_trained

NEEDED = ("onnx", "onnxscript", "onnxruntime")
KINDS = {
    "gaussian": ("gaussian", {"hidden": [16, 8], "activation": "tanh"}),
    "tanh_gaussian": ("tanh_gaussian", {"hidden": [16], "norm": True}),
    "bc": ("bc", {"hidden": [16]}),
    "bc window": ("bc", {"hidden": [16], "window": 3}),
    "bc recurrent": ("bc", {"hidden": [8, 8], "window": 3, "recurrent": 8}),
    "mixture": ("bc_gmm", {"hidden": [16]}),
    "ddim": (
        "denoiser_mlp",
        {"width": 32, "blocks": 1, "time": 8, "predict": 4, "steps": 3, "prediction": "sample"},
    ),
    "ddpm": (
        "denoiser_mlp",
        {
            "width": 32,
            "blocks": 1,
            "time": 8,
            "predict": 4,
            "sampler": "ddpm",
            "train_steps": 4,
            "steps": 4,
            "prediction": "epsilon",
        },
    ),
    "flow": (
        "denoiser_unet",
        {
            "channels": [8, 16],
            "time": 8,
            "predict": 4,
            "sampler": "flow",
            "steps": 3,
            "window": 2,
            "prediction": "sample",
        },
    ),
    "act": ("act", {"width": 16, "heads": 2, "inner": 24, "predict": 4, "latent": 3}),
    "act window": ("act", {"width": 16, "heads": 2, "inner": 24, "predict": 4, "latent": 3, "window": 2}),
    "hidden column": ("bc", {"hidden": [16]}),
    "world model": (
        "world_model",
        {
            "latent": 16,
            "hidden": [16],
            "critics": 2,
            "iterations": 2,
            "samples": 8,
            "proposals": 2,
            "elites": 3,
            "plan": 2,
        },
    ),
}
SEEN = {  # by their options; two cameras whose pictures are unlike
    "keypoints": {"encoder": "keypoints", "channels": [4, 4]},
    "nature": {"encoder": "nature", "channels": [4, 4, 4], "features": 8},
}
SEES = {
    "gaussian": ("gaussian", {"hidden": [16]}, "keypoints"),
    "tanh_gaussian": ("tanh_gaussian", {"hidden": [16]}, "nature"),
    "bc window": ("bc", {"hidden": [16], "window": 2}, "keypoints"),
    "ddim": (
        "denoiser_mlp",
        {"width": 16, "blocks": 1, "time": 8, "predict": 4, "steps": 2, "prediction": "sample"},
        "keypoints",
    ),
}


@pytest.fixture
def onnx():
    """The library; without it there is nothing to compare."""
    for name in NEEDED:
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'manikin[onnx]'")
    return importlib.import_module("onnx")


def network(name):
    """A network with random weights, scales and spans, and the shape of its observations."""
    kind, options = KINDS[name]
    torch.manual_seed(0)
    module = build(kind, {"observations": 5, "actions": 3, **options}).eval()
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(0.5 * torch.randn_like(weight))
        module.scaling.mean.copy_(torch.linspace(-2, 2, 5))
        module.scaling.std.copy_(torch.linspace(0.1, 3, 5))
        if name == "hidden column":
            module.scaling.hide([1])
        if hasattr(module, "span"):
            module.span.shift.copy_(torch.tensor([0.1, -0.2, 0.0]))
            module.span.scale.copy_(torch.tensor([0.5, 0.9, 1.0]))
    return module, (options["window"], 5) if options.get("window", 1) > 1 else (5,)


@pytest.mark.parametrize("name", KINDS)
def test_a_file_answers_as_its_network(name, onnx, tmp_path):
    module, shape = network(name)
    export_onnx(module, tmp_path / "policy.onnx", shape, about={})
    seen = example_observations(module, shape, 200)
    beyond = ((seen - module.scaling.mean) / module.scaling.std).abs() > module.scaling.limit
    assert beyond.any() and not beyond.all()
    with torch.no_grad():
        ours = module(seen)
    assert ours.std() > 0.01  # it does something
    for rows in (1, 7, 200):
        torch.testing.assert_close(run_onnx(tmp_path / "policy.onnx", seen[:rows]), ours[:rows], atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", SEES)
def test_a_file_with_pictures_has_an_input_for_each_and_one_for_the_numbers(name, onnx, tmp_path):
    kind, options, encoder = SEES[name]
    numbers, pictures = {"policy/qpos": 3, "extra/goal": 2}, {"cameras/top/rgb": [36, 48], "cameras/hand/rgb": [40, 36]}
    seen = {"numbers": numbers, "pictures": pictures, **SEEN[encoder]}
    torch.manual_seed(0)
    module = build(kind, {"observations": seen, "actions": 3, **options}).eval()
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        module.scaling.mean.copy_(torch.linspace(-2, 2, 5))
        module.scaling.std.copy_(torch.linspace(0.1, 3, 5))
    shapes = input_shapes({"observations": seen, **options})
    first = (2,) if name == "bc window" else ()
    assert shapes == {
        "numbers": (*first, 5),
        "cameras/top/rgb": (*first, 36, 48, 3),
        "cameras/hand/rgb": (*first, 40, 36, 3),
    }
    export_onnx(module, tmp_path / "policy.onnx", shapes, about={})
    given = onnx.load(tmp_path / "policy.onnx").graph.input
    assert [one.name for one in given] == list(shapes)
    seen = example_observations(module, shapes, 20)
    nested = {"policy": {"qpos": seen["numbers"][..., :3]}, "extra": {"goal": seen["numbers"][..., 3:]}}
    nested["cameras"] = {name: {"rgb": seen[f"cameras/{name}/rgb"]} for name in ("top", "hand")}
    with torch.no_grad():
        ours = module(nested)  # as the environment shows it
    assert ours.std() > 0.01
    for rows in (1, 7, 20):
        some = {name: value[:rows] for name, value in seen.items()}
        torch.testing.assert_close(run_onnx(tmp_path / "policy.onnx", some), ours[:rows], atol=2e-5, rtol=0)


def test_a_network_that_sees_voxels_is_refused_by_name(tmp_path, capsys):
    goal = {"frame": "base", "pos": 1.0, "rot": 1.0, "straight": False, "base": [0.0] * 7, "rest": [0.0] * 7}
    grid = {"low": [-0.2, -0.2, 0.0], "high": [0.2, 0.2, 0.2], "resolution": [8, 8, 8]}
    seen = {"grid": grid, "source": "voxels", "tool": "policy/tcp_pose", "told": {"policy/qpos": [0, 9]}}
    acts = {"goal": goal, "gripper": True, "predict": 2, "reach": 0.02, "turn": 0.1}
    options = {**seen, **acts, "bins": 8, "width": 4}
    network = {"kind": "voxel", "options": options}
    save_trained(
        tmp_path / "policy.safetensors", build("voxel", options), network=network, about={"task": "PushCube-v2"}
    )
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "policy.onnx")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a network of the kind 'voxel', which ONNX files are not made for: use its policy.pt2" in said


def test_a_file_computes_what_is_written_down(onnx, tmp_path):
    """``clip(W tanh(V clip((x - mean) / std, -10, 10) + v) + w, -1, 1)`` in NumPy."""
    module, shape = network("gaussian")
    export_onnx(module, tmp_path / "policy.onnx", shape, about={})
    seen = example_observations(module, shape, 50)
    x = np.clip((seen.numpy() - module.scaling.mean.numpy()) / module.scaling.std.numpy(), -10, 10)
    layers = [one for one in module.mean if isinstance(one, torch.nn.Linear)]
    for k, one in enumerate(layers):
        x = x @ one.weight.detach().numpy().T + one.bias.detach().numpy()
        x = np.tanh(x) if k < len(layers) - 1 else np.clip(x, -1, 1)
    np.testing.assert_allclose(run_onnx(tmp_path / "policy.onnx", seen).numpy(), x, atol=2e-5)


def test_the_file_says_what_it_is_for(onnx, tmp_path):
    module, shape = network("bc window")
    export_onnx(module, tmp_path / "policy.onnx", shape, about={"task": "PickCube-v2"})
    model = onnx.load(tmp_path / "policy.onnx")
    said = {one.key: one.value for one in model.metadata_props}
    assert json.loads(said[METADATA]) == {"task": "PickCube-v2"}
    (given,) = model.graph.input
    sizes = [one.dim_value or one.dim_param for one in given.type.tensor_type.shape.dim]
    assert given.name == INPUT and sizes == ["rows", 3, 5]


def test_a_network_that_fixes_the_rows_is_refused(onnx, tmp_path):
    class Fixed(torch.nn.Module):
        def forward(self, seen):
            return seen + torch.arange(len(seen)).unsqueeze(1)

    with pytest.raises(ConfigError, match="Fixed fixes how many rows"):
        export_onnx(Fixed(), tmp_path / "policy.onnx", (5,), about={})


def test_command_exports_and_compares(onnx, tmp_path, capfd):
    name, out = next(iter(shipped_policies())), tmp_path / "policy.onnx"
    assert main(["export", name, "--out", str(out)]) == 0
    said = capfd.readouterr()
    assert "differ from the network's by at most" in said.out and said.err == ""
    about = json.loads({one.key: one.value for one in onnx.load(out).metadata_props}[METADATA])
    assert about["task"] in name and about["observation"][0].startswith("policy/")


def test_command_says_what_is_missing(tmp_path, capsys, monkeypatch):
    for missing in NEEDED:
        monkeypatch.setitem(sys.modules, missing, None)
    name = next(iter(shipped_policies()))
    assert main(["export", name, "--out", str(tmp_path / "policy.onnx")]) == 2
    assert "pip install 'manikin[onnx]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="onnxruntime"):
        run_onnx(tmp_path / "policy.onnx", torch.zeros(1, 5))
    assert main(["export", str(tmp_path)]) == 2
    assert "no trained policy" in capsys.readouterr().err


def test_actions_of_a_policy_have_a_horizon():
    """What the command compares: the network's chunk and the file's actions have the same numbers."""
    module, shape = network("gaussian")
    assert NetworkPolicy(module).act(torch.zeros(2, *shape), [""] * 2).shape == (2, 1, 3)
