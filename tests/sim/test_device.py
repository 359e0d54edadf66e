"""Device words, and tensors made where the world lives."""

from __future__ import annotations

import contextlib
import importlib.util

import pytest
import torch

from manikin.errors import AssetError, ConfigError, UnknownNameError
from manikin.sim.device import OnDevice, on_host, torch_device
from manikin.sim.warp import library as warp_library

META = torch.device("meta")


def test_words(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert torch_device("cpu") == torch_device("warp:cpu") == torch.device("cpu")
    for wrong in ("gpu", "cuda:", "cuda:x", "warp:cuda", "mps"):
        with pytest.raises(UnknownNameError, match="Valid: cpu, cuda, cuda:0"):
            torch_device(wrong)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AssetError, match=r"'cuda' needs MuJoCo Warp.*manikin\[gpu\]' and a CUDA build of torch"):
        torch_device("cuda")
    with pytest.raises(AssetError, match=r"'warp:cpu' needs MuJoCo Warp.*manikin\[gpu\]'; or use device='cpu'"):
        torch_device("warp:cpu")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with pytest.raises(ConfigError, match="without CUDA"):
        torch_device("cuda")
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match="finds no CUDA GPU"):
        torch_device("cuda:1")


def test_the_current_gpu_and_others_by_number(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)  # what torchrun's torch.cuda.set_device(2) does
    assert torch_device("cuda") == torch.device("cuda:2") and torch_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ConfigError, match="cuda:0 to cuda:3"):
        torch_device("cuda:4")


def test_a_gpu_that_warp_does_not_see_is_said():
    """Warp's builds need a newer driver than torch's: then Warp has the CPU alone."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    if warp_library.modules()[0].get_cuda_device_count():
        pytest.skip("Warp sees a GPU")
    assert str(warp_library.warp_device(torch.device("cpu"))) == "cpu"
    with pytest.raises(ConfigError, match=r"'cuda:0': torch sees this GPU, Warp .* built with CUDA \d+\.\d+: update"):
        warp_library.warp_device(torch.device("cuda", 0))


def test_tensors_are_made_on_the_device():
    with OnDevice(META):
        made = [torch.zeros(2), torch.full((2,), 1.0), torch.arange(3), torch.eye(2), torch.tensor([1.0, 2.0])]
        made += [torch.as_tensor((1, 2)), torch.tensor([1, 2], dtype=torch.float32)]
        assert all(t.device == META for t in made)
        assert torch.zeros(2, device="cpu").device.type == "cpu"
        inside = torch.ones(3, device="cpu")
        assert torch.as_tensor(inside) is inside
    assert torch.zeros(2).device.type == "cpu"


def test_numbers_are_chosen_where_the_others_are():
    """``where`` takes a single number of the processor's to the device, but only beside tensors that are there."""
    here, number = torch.ones(3), torch.tensor(0.0)
    there = torch.ones(3, device=META)
    with OnDevice(META):
        assert torch.where(there > 0, there, number).device == META
        assert there.where(there > 0, number).device == META
        for context in (contextlib.nullcontext(), on_host(META)):
            with context:
                assert torch.where(here > 0, number, here).tolist() == [0, 0, 0]
                assert here.where(here < 0, number).tolist() == [0, 0, 0]


def test_constants_are_uploaded_once_and_are_not_shared():
    mode = OnDevice(torch.device("cpu"))
    with mode:
        first = torch.tensor([1.0, 2.0])
        first += 1
        again = torch.tensor([1.0, 2.0])
        whole, flags = torch.tensor([1, 2]), torch.tensor([True, False])
    assert again.tolist() == [1.0, 2.0] and len(mode.uploaded) == 3
    assert (whole.dtype, flags.dtype) == (torch.int64, torch.bool)
    single, half = torch.zeros(2), torch.zeros(2, dtype=torch.float16)
    with mode:
        like = [single.new_tensor([1, 2]), single.new_tensor(data=[1, 2]), half.new_tensor([1, 2])]
        other = single.new_tensor([1, 2], dtype=torch.int32)
    assert [t.dtype for t in (*like, other)] == [torch.float32, torch.float32, torch.float16, torch.int32]
    assert all(t.tolist() == [1, 2] for t in (*like, other)) and len(mode.uploaded) == 6
    with mode:
        again = single.new_tensor([1, 2])
    assert again.data_ptr() != like[0].data_ptr() and len(mode.uploaded) == 6
