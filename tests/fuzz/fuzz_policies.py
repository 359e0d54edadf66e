"""Policy files that are damaged, or say something else than a network."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import torch
from fuzz_values import Case, Draw, changed_bytes, changed_json, chosen

from manikin.policy.files.checkpoint import load_policy

ROWS = 3


class Sees(torch.nn.Module):
    """A picture and joints to a chunk of actions."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
        self.body = torch.nn.Sequential(torch.nn.Linear(11, 8), torch.nn.LayerNorm(8), torch.nn.Tanh())
        self.scale = torch.tensor([0.5, 2.0])

    def forward(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
        picture = self.eye(seen["rgb"].permute(0, 3, 1, 2).float() / 255).mean((2, 3))
        return torch.cat([self.body(torch.cat([seen["qpos"], picture], 1)), picture * self.scale[0]], 1).view(-1, 2, 6)


class Policies:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "policy.pt2"
        torch.manual_seed(0)
        self.seen = {"rgb": torch.zeros(ROWS, 9, 9, 3, dtype=torch.uint8), "qpos": torch.rand(ROWS, 7)}
        torch.export.save(torch.export.export(Sees().eval(), (self.seen,)), self.path)
        self.whole = self.path.read_bytes()
        with zipfile.ZipFile(self.path) as archive:
            self.parts = {name: archive.read(name) for name in archive.namelist()}
        (graph,) = (name for name in self.parts if name.endswith("models/model.json"))
        content = json.loads(self.parts[graph])
        for node in content["graph_module"]["graph"]["nodes"]:
            node["metadata"] = {}  # which nobody reads, and which is most of the file
        self.parts[graph] = json.dumps(content).encode()
        self.use()

    def case(self, draw: Draw) -> Case:
        if draw.random() < 0.2:
            words, content = changed_bytes(draw, self.whole)
            return words, lambda: self.use(content)
        parts = dict(self.parts)
        name = chosen(
            draw, [n for n in parts if n.endswith(".json")] + [n for n in parts if n.endswith("model.json")] * 4
        )
        if draw.random() < 0.1:
            words = "gone"
            del parts[name]
        else:
            words, text = changed_json(draw, parts[name].decode())
            parts[name] = text.encode("utf-8", "surrogatepass")
        return f"{name.partition('/')[2]}: {words}", lambda: self.use(parts)

    def use(self, content: bytes | dict[str, bytes] | None = None) -> None:
        """Load a file, and act twice."""
        if isinstance(content, dict):
            with zipfile.ZipFile(self.path, "w") as archive:
                for name, part in content.items():
                    archive.writestr(name, part)
        elif content is not None:
            self.path.write_bytes(content)
        policy = load_policy(self.path)
        for rows in (1, ROWS):
            policy.act({name: value[:rows] for name, value in self.seen.items()}, [""] * rows)
