"""A tiny vision-language-action model, from an export to a number: trained on a LeRobot dataset that manikin wrote, and
evaluated behind the server. It reads the dataset as a stranger would, with pyarrow and PyAV alone."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
import torch

import manikin
from manikin.cli import main
from manikin.data.formats.convert import to_lerobot
from manikin.data.recording.format import flatten
from manikin.env.observe import Vision
from manikin.eval.runner import run_episodes
from manikin.policy.remote.client import RemotePolicy
from manikin.policy.remote.server import PolicyServer

pq = pytest.importorskip("pyarrow.parquet", reason="needs manikin[data]")
av = pytest.importorskip("av", reason="needs manikin[data]")
pytest.importorskip("websockets", reason="needs manikin[remote]")
pytest.importorskip("msgpack", reason="needs manikin[remote]")

TASK, CAMERA, CHUNK = "PushCube-v2", "base_camera", 4
STATE, IMAGE = "observation.state", f"observation.images.{CAMERA}"
SEEN = {"observe": "rgb", "vision": Vision(cameras=(CAMERA,), size=(32, 24), renderer="rays")}


class TinyVla(torch.nn.Module):
    """A picture, a state and a sentence to a chunk of actions (B, CHUNK, A) in [-1, 1]."""

    stateless, name = True, "tiny-vla"

    def __init__(self, state, actions):
        super().__init__()
        self.actions = actions
        layers = torch.nn.Conv2d(3, 8, 5, 4), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2), torch.nn.Flatten()
        self.eye = torch.nn.Sequential(*layers, torch.nn.LazyLinear(16))
        self.words = torch.nn.EmbeddingBag(64, 16)
        self.body = torch.nn.Sequential(torch.nn.Linear(state, 16), torch.nn.Tanh())
        self.head = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(48, 64), torch.nn.ReLU())
        self.last = torch.nn.Linear(64, CHUNK * actions)

    def forward(self, state, picture, prompts):
        read = [torch.tensor([zlib.crc32(word.encode()) % 64 for word in prompt.split()]) for prompt in prompts]
        words = torch.cat([self.words(one[None]) for one in read])
        eye = self.eye(picture.float().permute(0, 3, 1, 2) / 255)
        flat = self.last(self.head(torch.cat([eye, words, self.body(state)], 1)))
        return flat.tanh().unflatten(1, (CHUNK, self.actions))

    def reset(self, rows):
        pass

    @torch.no_grad()
    def act(self, observation, instruction):
        return self(observation[STATE], observation[IMAGE], instruction)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Two episodes of the expert, as a LeRobot dataset with small pictures."""
    folder = tmp_path_factory.mktemp("vla")
    assert main(["collect", TASK, "--episodes", "2", "--num-envs", "2", "--out", str(folder / "run.h5")]) == 0
    return to_lerobot(folder / "run.h5", folder / "set", num_envs=2, **SEEN)


def read(root):
    """States, pictures, chunks of actions and sentences of all frames, and the names of a state's numbers."""
    info = json.loads((root / "meta/info.json").read_text())
    rows = pq.read_table(root / "data/chunk-000/file-000.parquet").to_pydict()
    sentences = pq.read_table(root / "meta/tasks.parquet").to_pydict()["task"]
    with av.open(str(root / f"videos/{IMAGE}/chunk-000/file-000.mp4")) as video:
        pictures = np.stack([frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)])
    actions, episodes = np.array(rows["action"], np.float32), np.array(rows["episode_index"])
    chunks = []
    for k, episode in enumerate(episodes):
        last = int(np.flatnonzero(episodes == episode)[-1])
        chunks.append(actions[np.minimum(np.arange(k, k + CHUNK), last)])
    states = torch.tensor(rows[STATE], dtype=torch.float32)
    prompts = [sentences[i] for i in rows["task_index"]]
    return (
        states,
        torch.from_numpy(pictures),
        torch.from_numpy(np.stack(chunks)),
        prompts,
        info["features"][STATE]["names"],
    )


def adapted(names):
    """Turns a row of manikin's observation into what the dataset calls it."""

    def adapt(row):
        state = []
        for name in names:
            leaf, _, place = name.partition("[")
            state.append(np.ravel(row[leaf])[int(place.rstrip("]"))] if place else float(row[leaf]))
        picture = row[f"cameras/{CAMERA}/rgb"]
        return {STATE: np.array(state, np.float32), IMAGE: picture, "prompt": row["prompt"]}

    return adapt


def small_model(states, actions):
    torch.manual_seed(0)
    model = TinyVla(states.shape[1], actions.shape[2])
    model.act(
        {STATE: states[:1], IMAGE: torch.zeros(1, 24, 32, 3, dtype=torch.uint8)}, ["a"]
    )  # sizes of the lazy layer
    return model


def test_what_is_trained_on_is_what_is_served(dataset):
    states, pictures, _, prompts, names = read(dataset)
    env = manikin.make(TASK, 1, autoreset="disabled", **SEEN)
    observation, _ = env.reset(seed=0)
    row = {name: value[0].numpy() for name, value in flatten(observation).items()} | {"prompt": env.instruction[0]}
    env.close()
    found = adapted(names)(row)
    np.testing.assert_allclose(found[STATE], states[0], atol=1e-6)
    assert np.abs(found[IMAGE].astype(int) - pictures[0].numpy()).mean() < 6  # the video is compressed
    assert found["prompt"] == prompts[0]


def test_a_model_learns_from_the_export_and_acts_behind_the_server(dataset):
    states, pictures, chunks, prompts, names = read(dataset)
    assert len(states) == len(pictures) == len(chunks) == len(prompts)
    model = small_model(states, chunks)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-3), []
    for _ in range(60):
        loss = (model(states, pictures, prompts) - chunks).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    seen = {STATE: states[:1], IMAGE: pictures[:1]}
    assert not torch.equal(model.act(seen, prompts[:1]), model.act(seen, ["do something else"]))

    adapt = adapted(names)

    class Local:
        """The same model without a server, asked row by row as the server is."""

        stateless, name = True, "local"

        def reset(self, rows):
            pass

        def act(self, observation, instruction):
            rows = [{k: v[i].numpy() for k, v in flatten(observation).items()} for i in range(len(instruction))]
            told = [adapt(row | {"prompt": words}) for row, words in zip(rows, instruction, strict=True)]
            one = [{k: torch.from_numpy(np.array(row[k]))[None] for k in (STATE, IMAGE)} for row in told]
            return torch.cat([model.act(row, [t["prompt"]]) for row, t in zip(one, told, strict=True)])

    shapes = {STATE: states.shape[1:], IMAGE: pictures.shape[1:]}
    with PolicyServer(model, shapes, port=0) as server:
        remote = RemotePolicy(server.url, adapt=adapt)
        results = []
        for policy in (remote, Local()):
            env = manikin.make(TASK, 2, horizon=6, autoreset="disabled", **SEEN)
            results.append(run_episodes(env, policy, range(1_000_000, 1_000_003)).results)
            env.close()
        remote.close()
    assert results[0] == results[1] and len(results[0]) == 3 and all(r.length == 6 for r in results[0])
