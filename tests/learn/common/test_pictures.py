"""Parts that learn from pictures against their formulas, and trainers that see."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from manikin import make
from manikin.data.recorder import Recorder
from manikin.env.observe import Vision
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.learn import bc, diffusion
from manikin.learn.common.data.demonstrations import load_demonstrations
from manikin.learn.common.data.frames import Frames
from manikin.learn.common.pictures import PictureConfig, augmented, inputs_of
from manikin.learn.ppo import PPO, Config
from manikin.learn.run.recipe import ALGORITHMS, Recipe
from manikin.learn.run.train import train
from manikin.policy.expert import ExpertPolicy
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks.pictures import KeypointCNN, NamedScaling, PictureEncoder, SpatialSoftmax
from manikin.policy.trained import export_program, read_about
from manikin.sense.stack import Stack
from manikin.spec.camera import CameraSpec

NEAR = CameraSpec(name="near", pos=(0.6, 0.0, 0.4), target=(0.08, 0.0, 0.0), fovy=0.8)
TASK = "PushCube-v2"
PATH = "cameras/near/rgb"


def _env(rows=3, *, observe="rgb", size=(40, 36), **given):
    return make(TASK, num_envs=rows, observe=observe, vision=Vision(cameras=[NEAR], size=size), **given)


# ---- networks --------------------------------------------------------------------------------------------------------


def test_the_spatial_softmax_is_the_mean_place_of_its_formula():
    generator = np.random.default_rng(0)
    values, temperature = generator.normal(size=(2, 3, 5, 4)) * 3, 0.7
    layer = SpatialSoftmax(5, 4)
    with torch.no_grad():
        layer.log_temperature.fill_(np.log(temperature))
    found = layer(torch.tensor(values, dtype=torch.float32)).detach().numpy()
    for b in range(2):
        for c in range(3):
            chance = np.exp(values[b, c] / temperature)
            chance /= chance.sum()
            x = sum(chance[i, j] * (2 * j / 3 - 1) for i in range(5) for j in range(4))
            y = sum(chance[i, j] * (2 * i / 4 - 1) for i in range(5) for j in range(4))
            np.testing.assert_allclose(found[b, [c, 3 + c]], [x, y], atol=1e-6)


def test_a_thing_that_moves_across_the_picture_moves_the_answer_across_and_not_down():
    torch.manual_seed(0)
    network = KeypointCNN(64, 64, channels=(8, 16, 16), features=0)
    pictures = torch.zeros(2, 3, 64, 64)
    pictures[0, :, 24:32, 24:32] = pictures[1, :, 24:32, 32:40] = 1.0
    here, there = network(pictures).detach()
    across, down = (there - here).abs().split(16)
    assert across.max() > 1e-3 and down.max() < 1e-5
    # one cell of the last channels, which are a quarter as wide, where a channel knows nothing else
    peak = torch.full((2, 1, 16, 16), -50.0)
    peak[0, 0, 6, 6] = peak[1, 0, 6, 8] = 50.0
    moved = SpatialSoftmax(16, 16)(peak).detach()
    torch.testing.assert_close(moved[1] - moved[0], torch.tensor([2 * 2 / 15, 0.0]))


def test_each_camera_has_a_network_and_numbers_go_round_them():
    options = {
        "numbers": {"policy/a": 2, "policy/b": 1},
        "pictures": {"cameras/x/rgb": (40, 36), "cameras/y/rgb": (8, 8)},
    }
    encoder = PictureEncoder(**options, channels=(4, 6))
    scaling = NamedScaling(options["numbers"], options["pictures"])
    with torch.no_grad():
        scaling.mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
        scaling.std.copy_(torch.tensor([1.0, 2.0, 4.0]))
    observation = {
        "policy": {"b": torch.tensor([7.0, 3.0]), "a": torch.tensor([[1.0, 4.0], [2.0, 2.0]]), "other": torch.ones(2)},
        "cameras": {
            name: {"rgb": torch.randint(0, 256, (2, h, w, 3), dtype=torch.uint8)}
            for name, h, w in (("x", 40, 36), ("y", 8, 8))
        },
    }
    seen = encoder(scaling(observation))
    assert seen.shape == (2, 3 + 2 * 6 + 2 * 6) == (2, encoder.columns)
    torch.testing.assert_close(seen[:, :3], torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]))
    observation["cameras"]["y"]["rgb"] = 255 - observation["cameras"]["y"]["rgb"]
    changed = (encoder(scaling(observation)) != seen).any(0)
    assert not changed[:15].any() and changed[15:].all()
    # what is kept for training is what was seen
    assert torch.equal(encoder(scaling(scaling.take(observation))), encoder(scaling(observation)))


@pytest.mark.parametrize(
    "given, words",
    [
        ({"encoder": "resnet"}, "keypoints"),
        ({"encoder": "nature", "channels": (4, 4, 4)}, "36 x 36"),
        ({"encoder": "nature", "channels": (4, 4), "pictures": {"x": (40, 40)}}, "three numbers of channels"),
        ({"pictures": {}}, "needs a picture"),
    ],
)
def test_an_encoder_that_cannot_be_says_what_can(given, words):
    with pytest.raises((ConfigError, UnknownNameError), match=words):
        PictureEncoder(**{"numbers": {"a": 1}, "pictures": {"x": (20, 20)}, **given})


# ---- what the network is told ----------------------------------------------------------------------------------------


def test_the_network_is_told_pictures_and_what_a_robot_knows_and_nothing_privileged():
    env = _env(observe="rgb+state")
    window, inputs = inputs_of(env, PictureConfig())
    assert window == 1 and inputs["pictures"] == {PATH: [36, 40]}
    assert inputs["numbers"] == {"policy/qpos": 9, "policy/qvel": 9, "policy/tcp_pose": 7, "policy/goal_pos": 3}
    _, fewer = inputs_of(env, PictureConfig(numbers=("tcp_pose", "qpos")))
    assert list(fewer["numbers"]) == ["policy/tcp_pose", "policy/qpos"]
    for observe, config, words in (
        ("state_dict", {}, "flat observations or from pictures"),
        ("segmentation", {}, "observe='state', 'policy', 'rgb' or 'depth'"),
        ("rgb", {"numbers": ("cube_pose",)}, "'cube_pose'"),
        (["rgb", Stack(2, ("policy",))], {}, "a Stack must take all pictures"),
        (["rgb", Stack(2, ("cameras",))], {}, "pictures and numbers alike"),
        ("rgb", {"jitter": 1.5}, "jitter must be 0 or more and below 1"),
        ("rgb", {"saturation": 1.5}, "saturation must be from 0 to 1"),
    ):
        with pytest.raises((ConfigError, UnknownNameError), match=words):
            inputs_of(_env(1, observe=observe), PictureConfig(**config))


def test_a_shift_is_a_crop_of_the_picture_with_its_border_repeated():
    pictures = torch.randint(0, 256, (200, 6, 5, 3), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    taken = {"numbers": torch.ones(200, 2), PATH: pictures}
    out = augmented(taken, PictureConfig(shift=2), torch.Generator().manual_seed(1))
    assert torch.equal(out["numbers"], taken["numbers"])
    found = set()
    for before, after in zip(pictures.numpy(), out[PATH].numpy(), strict=True):
        wide = np.pad(before, ((2, 2), (2, 2), (0, 0)), mode="edge")
        crops = {(i, j): wide[i : i + 6, j : j + 5] for i in range(5) for j in range(5)}
        found |= {place for place, crop in crops.items() if (crop == after).all()}
        assert any((crop == after).all() for crop in crops.values())
    assert len(found) == 25


def test_a_jitter_scales_brightness_contrast_and_channels_within_its_bounds():
    even = torch.full((2000, 4, 4, 3), 100, dtype=torch.uint8)
    out = augmented({PATH: even}, PictureConfig(jitter=0.2), torch.Generator().manual_seed(0))[PATH].float()
    assert out.std((1, 2)).max() == 0  # contrast is about the mean of each channel
    assert 64 <= out.min() < 68 and 140 < out.max() <= 144  # brightness times a channel's factor
    tint = out[:, 0, 0, 0] / out[:, 0, 0, 2]
    assert 0.8 / 1.2 - 0.01 < tint.min() < 0.7 and 1.43 < tint.max() < 1.2 / 0.8 + 0.02
    halves = even.clone()
    halves[:, :2], halves[:, 2:] = 60, 140
    out = augmented({PATH: halves}, PictureConfig(jitter=0.2), torch.Generator().manual_seed(0))[PATH].float()
    ratio = (out[:, 3, 0] - out[:, 0, 0]) / out.mean((1, 2)) / (80 / 100)
    assert 0.78 < ratio.min() < 0.83 and 1.17 < ratio.max() < 1.22


def test_saturation_changes_colours_and_no_brightness():
    """Of a grey picture nothing; of a coloured one the distance from its grey (ITU-R BT.601), by 1 - saturation to 1 +
    saturation."""
    grey = torch.full((50, 4, 4, 3), 90, dtype=torch.uint8)
    config = PictureConfig(saturation=0.5)
    assert torch.equal(augmented({PATH: grey}, config, torch.Generator().manual_seed(0))[PATH], grey)
    colour = torch.tensor([120, 90, 60], dtype=torch.uint8).expand(2000, 4, 4, 3).contiguous()
    out = augmented({PATH: colour}, config, torch.Generator().manual_seed(0))[PATH][:, 0, 0].double()
    middle = (299 * 120 + 587 * 90 + 114 * 60) / 1000
    factor = (out[:, 0] - middle) / (120 - middle)
    assert 0.45 < factor.min() < 0.55 and 1.45 < factor.max() < 1.55
    bright = (299 * out[:, 0] + 587 * out[:, 1] + 114 * out[:, 2]) / 1000
    assert (bright - middle).abs().max() < 0.6  # of rounding
    lost = augmented({PATH: colour}, PictureConfig(saturation=1.0), torch.Generator().manual_seed(0))[PATH]
    assert int((lost.amax(-1) - lost.amin(-1)).min()) == 0  # some have no colour left


def test_frames_are_the_newest_and_go_on_from_their_state():
    frames, count = Frames(5), iter(range(100))
    rows = [torch.tensor([[next(count)] for _ in range(3)]) for _ in range(4)]
    for some in rows:
        frames.add({"a": {"b": some}, "c": some.to(torch.uint8)})
    drawn = frames.sample(500, torch.Generator().manual_seed(0))
    assert len(frames) == 5 and set(drawn["a"]["b"].flatten().tolist()) == {7, 8, 9, 10, 11}
    assert torch.equal(drawn["a"]["b"], drawn["c"].long())
    other = Frames(5)
    other.load_state_dict(frames.state_dict())
    for one in (frames, other):
        one.add({"a": {"b": torch.tensor([[50]])}, "c": torch.tensor([[50]], dtype=torch.uint8)})
    again = [one.sample(50, torch.Generator().manual_seed(1))["c"] for one in (frames, other)]
    assert torch.equal(*again) and 50 in again[0] and 7 not in again[0]
    with pytest.raises(ConfigError, match="at least one frame"):
        Frames(0)
    with pytest.raises(ConfigError, match=r"frames need .* GB, and .* GB are free on cpu: keep at most"):
        Frames(10**12).add(torch.zeros(2, 3))


# ---- trainers --------------------------------------------------------------------------------------------------------


def _ppo(config, iterations, seed=3):
    trainer = PPO(_env(4, horizon=6), config, seed)
    return trainer, [trainer.iterate() for _ in range(iterations)]


SMALL = Config(num_steps=4, epochs=2, minibatches=2, hidden=(8,), critic_hidden=(8,), channels=(4, 4))


@pytest.mark.parametrize("given", [{}, {"encoder": "nature", "channels": (4, 4, 4), "features": 8, "shift": 2}])
def test_ppo_sees_and_goes_on_to_the_same_bits(given):
    config = type(SMALL)(**{**vars(SMALL), **given})
    whole, numbers = _ppo(config, 3)
    half, first = _ppo(config, 1)
    rest, _ = _ppo(config, 0)
    begun = [p.detach().clone() for p in rest.actor.encoder.parameters()]
    rest.load_state_dict(half.state_dict())
    assert [rest.iterate(), rest.iterate()] == numbers[1:] and first == numbers[:1]
    for one, other in zip(whole.actor.parameters(), rest.actor.parameters(), strict=True):
        assert torch.equal(one, other)
    assert any(not torch.equal(a, b) for a, b in zip(begun, whole.actor.encoder.parameters(), strict=True))
    with pytest.raises(ConfigError, match="one observation at a time"):
        PPO(_env(1, observe=["rgb", Stack(2)]), SMALL, 0)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    path = tmp_path_factory.mktemp("seen") / "a.h5"
    env = _env(4, autoreset="disabled")
    with Recorder(env, path, observations=True, states=False, keep="success", first_seed=0) as recorder:
        run_episodes(env, ExpertPolicy(env), range(4), observers=[recorder])
    return path


def test_a_window_of_recorded_pictures_is_the_stack_that_the_environment_shows(demos):
    env = _env(1, observe=["rgb", Stack(2)], autoreset="disabled")
    data = load_demonstrations(demos, env)
    scaling = NamedScaling(inputs_of(env, PictureConfig())[1]["numbers"], {PATH: (36, 40)})
    observation, _ = env.reset(seed=0)
    for at in range(5):
        seen, taken = data.batch(torch.tensor([at]))[0], scaling.take(observation)
        assert torch.equal(seen["numbers"], taken["numbers"]) and torch.equal(seen[PATH], taken[PATH])
        observation, *_ = env.step(data.actions[at])


@pytest.mark.parametrize("name", ["bc", "bc window", "diffusion"])
def test_imitation_sees_and_its_program_answers_as_it_does(name, demos, tmp_path):
    env = _env(5, observe=["rgb", Stack(2)] if "window" in name else "rgb")
    small = {"updates": 3, "batch_size": 8, "channels": (4, 4), "shift": 1, "jitter": 0.1}

    def trainer(seed=1):
        if name == "diffusion":
            return diffusion.Diffusion(env, diffusion.Config(**small, width=16, steps=2), seed, demos)
        return bc.BC(env, bc.Config(**small, hidden=(8,)), seed, demos)

    whole, half, rest = trainer(), trainer(), trainer()
    numbers = [whole.iterate() for _ in range(2)]
    half.iterate()
    rest.load_state_dict(half.state_dict())
    assert rest.iterate() == numbers[1] and trainer(2).iterate() != numbers[0]
    observation, _ = env.reset(seed=0)
    policy = NetworkPolicy(whole.actor)
    export_program(whole.actor, tmp_path / "policy.pt2", observation, width=5)
    from manikin.policy.files.checkpoint import load_policy

    ours, theirs = policy.act(observation, [""] * 5), load_policy(tmp_path / "policy.pt2").act(observation, [""] * 5)
    torch.testing.assert_close(ours, theirs)
    assert not torch.equal(ours[0], ours[1])


def test_a_run_records_the_expert_with_the_recipe_s_camera_and_sees_with_it(tmp_path):
    camera = {"name": "near", "pos": [0.6, 0.0, 0.4], "target": [0.08, 0.0, 0.0], "fovy": 0.8}
    recipe = Recipe(
        algorithm="bc",
        task=TASK,
        env={
            "observe": ["rgb", {"kind": "Stack", "frames": 2}],
            "cameras": [camera],
            "size": [36, 36],
            "renderer": "rays",
        },
        settings={"demonstrations": 2, "updates": 2, "batch_size": 8, "hidden": [8], "channels": [4, 4]},
        steps=2,
        minutes=0,
        validation_episodes=2,
    )
    said = []
    train(recipe, folder=tmp_path, seed=1, say=said.append)
    assert said[-1] == "2 demonstrations, verified by replay"
    about = read_about(tmp_path)
    assert about["shapes"][PATH] == [2, 36, 36, 3] and about["demonstrations"]["episodes"] == 2


def test_demonstrations_through_another_camera_are_refused(demos):
    with pytest.raises(ConfigError, match=r"size .*40, 36.*, here .*36, 36"):
        load_demonstrations(demos, _env(1, size=(36, 36)))
    with pytest.raises(ConfigError, match="observe 'rgb', here 'state'"):
        load_demonstrations(demos, make(TASK))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_algorithm_gives_a_setting_of_the_encoder_another_meaning(algorithm):
    """The channels of diffusion's U-Net once were those of its encoder, too: seventeen times the work."""
    kind = type(Recipe(algorithm=algorithm, task="PickCube-v2").config)
    if not issubclass(kind, PictureConfig):
        pytest.skip("it takes no pictures")
    names = {one.name for one in dataclasses.fields(PictureConfig)}
    assert {"channels", "features", "encoder"} <= names
    assert {one.name: one.default for one in dataclasses.fields(kind) if one.name in names} == {
        one.name: one.default for one in dataclasses.fields(PictureConfig)
    }
    assert not set(kind.__annotations__) & names
