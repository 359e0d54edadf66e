"""Room for contacts and constraints on Warp devices: counted on the CPU, kept on disk, flagged where too small."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.cli import main
from manikin.data.recording.read import read_episodes
from manikin.data.replay.environment import make_env
from manikin.data.replay.rerecord import rerecord
from manikin.data.replay.verify import replay
from manikin.env import budget as probing
from manikin.env.observe import Vision
from manikin.env.registry import task_class
from manikin.errors import ConfigError, DivergedError
from manikin.eval.evaluation import Evaluation, TaskResult
from manikin.eval.protocol import Protocol
from manikin.eval.report import read_report
from manikin.eval.runner import run_episodes
from manikin.sim.cpu import CpuWorld
from manikin.sim.health import Health
from manikin.spec.budget import Budget, Shortage, advice, read_budget
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import ExtraLights, Looks, Surface
from test_world import build

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
pytestmark = pytest.mark.xdist_group("warp")  # one worker compiles the kernels

from manikin.sim.budget import CONVEX_SPARE, Meter, room_for  # noqa: E402
from manikin.sim.warp.capacity import Capacity  # noqa: E402
from manikin.sim.warp.world import WarpWorld  # noqa: E402

ROBOT = {"robot": "panda", "control": "joint_delta_pos", "control_hz": 20.0, "physics_hz": 100.0}


def lying(kind, n=3, **room):
    """Row 0 has nothing on the ground but the robot, row 1 one cube, row 2 all three things."""
    b, arm, *parts = build()
    world = kind(b.compile(), n, **room)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    for k, part in enumerate(parts[:3]):
        z = np.full(n, 2.0 + k)
        z[1 + min(k, 1) :] = 0.029 if k == 1 else 0.049 if k == 2 else 0.019
        part.set_pose(np.stack([np.full(n, 0.05), np.full(n, 0.15 * k - 0.15), z], 1).astype(np.float32))
    world.forward()
    return world


def test_the_cpu_counts_what_warp_needs():
    cpu, warp = lying(CpuWorld), lying(WarpWorld)
    meter = Meter(cpu)
    meter.look()
    of = warp.mjw_data.contact.worldid.numpy()[: int(warp.mjw_data.nacon.numpy()[0])]
    in_rows = np.bincount(of, minlength=3)
    assert in_rows[2] > in_rows[1] > in_rows[0]
    assert np.array_equal(in_rows, cpu.read("ncon").numpy().ravel())
    assert meter.contacts == in_rows.max() and meter.constraints == int(warp.mjw_data.nefc.numpy().max())
    pairs = int(warp.mjw_data.ncollision.numpy()[0])  # of all rows
    assert pairs <= meter.pairs_near().sum() + 3 * meter.always_near <= 3 * pairs


def test_room_is_more_than_was_seen_in_few_sizes():
    sizes = [room_for(seen) for seen in range(1000)]
    assert all(size >= 1.5 * seen + 8 for seen, size in enumerate(sizes))
    assert len(set(sizes)) <= 14 and sizes == sorted(sizes)


def test_a_budget_is_found_once_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path))
    calls = []

    def counted(task, play, **options):
        calls.append(options)
        return manikin.Budget(nconmax=24, njmax=64)

    monkeypatch.setattr(probing, "probe", counted)
    kind = task_class("PickCube-v2")
    scene = manikin.make("PickCube-v2").scene
    found = [probing.task_budget(kind(), scene, manikin.Env, **ROBOT) for _ in range(2)]
    assert found == [manikin.Budget(nconmax=24, njmax=64)] * 2 and calls == [ROBOT]
    vision = Vision(cameras=[CameraSpec(name="more", pos=(1, 0, 1), target=(0, 0, 0))], size=(32, 24))
    surfaces = {"cube": Surface(textures=("noise",))}
    looking = manikin.make(
        "PickCube-v2", vision=vision, looks=Looks(extra_lights=ExtraLights(), surfaces=surfaces)
    ).scene
    assert looking.hash != scene.hash and looking.model.nlight > scene.model.nlight  # which physics does not see
    assert probing.task_budget(kind(), looking, manikin.Env, **ROBOT) == found[0] and len(calls) == 1
    (path,) = (tmp_path / "budgets").iterdir()
    path.write_text(path.read_text()[:20])  # damaged
    assert probing.task_budget(kind(), scene, manikin.Env, **ROBOT) == found[0] and len(calls) == 2
    probing.task_budget(kind({"goal_height": 0.2}), scene, manikin.Env, **ROBOT)
    probing.task_budget(kind(), scene, manikin.Env, **{**ROBOT, "control": "ee_delta_pose"})
    assert len(calls) == 4 and len(list((tmp_path / "budgets").iterdir())) == 3
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "file"))  # cannot be written: no error
    assert probing.task_budget(kind(), scene, manikin.Env, **ROBOT) == found[0]


def test_playing_finds_what_the_expert_needs(monkeypatch):
    """PickCube's expert makes 2 x 4 contacts of the cube: more than lying about does."""
    monkeypatch.setattr(probing, "STEPS", 30)
    env = manikin.make("PickCube-v2", num_envs=1)
    env.reset(seed=0)
    lying = Meter(env.world)
    lying.look()
    found = probing.probe(task_class("PickCube-v2")(), manikin.Env, **ROBOT)
    assert lying.contacts == 4 and found.nconmax > room_for(lying.contacts)
    assert found.njmax < 256 and found.nccdmax < found.nconmax


@pytest.mark.parametrize(
    ("room", "rows", "word"),
    [({"nconmax": 24, "njmax": 12}, [False, True, False], "njmax"), ({"nconmax": 1}, [True] * 3, "nconmax")],
)
def test_an_environment_takes_the_room_it_is_given_and_flags_what_does_not_fit(room, rows, word):
    """The cube lies in row 1 alone, with 4 contacts of 3 constraint rows; one is for the fingers. Constraint rows are
    each row's own, contacts are of all rows together."""
    budget = manikin.Budget(**room)
    env = manikin.make("PickCube-v2", num_envs=3, device="warp:cpu", budget=budget)
    assert env.budget is budget and env.budget_advice() == ""
    env.reset(seed=0)
    pos = env.h.cube.pos.clone()
    pos[[0, 2], 2] = 1.0
    env.h.cube.set_pose(pos)
    env.world.forward()
    info = env.step(np.zeros((3, 8), np.float32))[4]
    assert (info["health"] & int(Health.OVERFLOW)).bool().tolist() == rows
    assert f"{word} to at least" in env.budget_advice()
    env.close()


def together(n, kind=WarpWorld, **room):
    """A can stands in a cube in rows 0 and 2, a pair of convex shapes; in row 1 they are apart."""
    b, arm, cube, ball, can, _ = build()
    world = kind(b.compile(), n, **room)
    b.bind(world)
    arm.set_qpos(arm.keyframe())
    cube.set_pose((0.05, 0.0, 0.5))
    ball.set_pose((0.05, 0.15, 0.5))
    x = np.full(n, 0.095)
    x[1] = 0.3
    can.set_pose(np.stack([x, 0 * x, 0 * x + 0.5], 1).astype(np.float32))
    if kind is WarpWorld:
        world.flat("overflow").zero_()  # from when all lay in one place
    world.forward()
    return world


def contacts(world):
    """(rows,) how many each row has."""
    kept = world.mjw_data.contact.worldid.numpy()[: min(int(world.mjw_data.nacon.numpy()[0]), world.mjw_data.naconmax)]
    return np.bincount(kept, minlength=world.num_worlds).tolist()


def test_a_row_may_need_more_than_its_share_and_only_what_is_lost_is_flagged():
    """Contacts share their room, so that one row may fill more than its part; convex pairs too, and there the rows are
    flagged in which some were lost. (Constraint rows, each row's own: the test above.)"""
    roomy = lying(WarpWorld)
    needs, pairs = contacts(roomy), int(roomy.mjw_data.ncollision.numpy()[0])
    part = -(-max(sum(needs), pairs) // 3)
    assert max(needs) > part
    pooled = lying(lambda scene, n: WarpWorld(scene, n, nconmax=part))
    assert contacts(pooled) == needs
    pooled.step(1)
    assert not pooled.health().any()
    whole, tight = together(3), together(3)
    assert contacts(whole)[0] == contacts(whole)[2] > contacts(whole)[1] == 0
    tight.mjw_data.naccdmax = 1  # room for one of the two pairs
    tight.step(1)
    lost = [have < want for have, want in zip(contacts(tight), contacts(whole), strict=True)]
    assert sum(lost) == 1 and (tight.health() & int(Health.OVERFLOW)).astype(bool).tolist() == lost


def test_room_for_convex_pairs_is_its_own_and_flags_the_rows_that_lost_some():
    meter = Meter(together(3, CpuWorld))
    meter.look()
    assert meter.convex == 1 and meter.pairs >= 1
    room = meter.budget()
    assert room.nccdmax == 1 + CONVEX_SPARE < room.nconmax
    small, large = together(3, nconmax=room.nconmax, nccdmax=room.nccdmax), together(3)
    none = together(3, nccdmax=0)
    assert contacts(small) == contacts(large) and contacts(none)[0] < contacts(large)[0]
    for world in (small, none):
        world.step(1)
    assert not small.health().any()
    assert (none.health() & int(Health.OVERFLOW)).astype(bool).tolist() == [True, False, True]
    assert none.shortages() == {"nccdmax": Shortage(needed=None, room=0, rows=(0, 2))} and not small.shortages()
    env = manikin.make("CartpoleBalance-v1", num_envs=1)
    empty = Meter(env.world)
    assert empty.convex is None and empty.budget().nccdmax == 0


def test_what_a_step_takes_and_gives_back_is_measured_and_changes_nothing():
    """A place for a convex pair has, among others, 80 vertices and 181 faces of the polytope, of 16 and 20 bytes."""
    few, many = together(2, nccdmax=2), together(2, nccdmax=12)
    many.step(3)
    before, forces = many.state_hash(), many.read("sensordata").clone()
    found = many.scratch_per_row()
    assert np.array_equal(many.state_hash(), before) and torch.equal(many.read("sensordata"), forces)
    each = (found - few.scratch_per_row()) / 10
    assert 80 * 16 + 181 * 20 + 24 * 4 <= each < 8000
    assert not many.health().any()


def test_rows_of_constraints_beyond_the_room_are_counted_and_not_read():
    """MuJoCo Warp's kernels go up to its count; where it is larger than the room they read what is not theirs."""
    cpu, tight, whole = lying(CpuWorld), lying(WarpWorld, njmax=12), lying(WarpWorld)
    meter = Meter(cpu)
    meter.look()
    for world in (tight, whole):
        world.step(1)
    wanted = whole.flat("nefc")[:, 0]
    assert wanted.tolist() == whole.flat("rows_wanted")[:, 0].tolist() and int(wanted.max()) == meter.constraints > 12
    assert tight.flat("nefc")[:, 0].tolist() == wanted.clamp_max(12).tolist()
    assert tight.usage()["njmax"] == whole.usage()["njmax"] == meter.constraints
    over = (tight.health() & int(Health.OVERFLOW)).astype(bool)
    assert over.tolist() == (wanted > 12).tolist() and not whole.health().any()


def test_evaluation_refuses_rows_that_did_not_fit():
    class Still:
        chunk = 1

        def reset(self, rows):
            """Remembers nothing."""

        def act(self, observation, instruction):
            return torch.zeros(2, 1, 8)

    env = manikin.make(
        "PickCube-v2", 2, device="warp:cpu", autoreset="disabled", horizon=2, budget=manikin.Budget(njmax=12)
    )
    run = run_episodes(env, Still(), [0, 1])
    assert [r.seed for r in run.unhealthy] == [0, 1]
    assert all(r.health & int(Health.OVERFLOW) for r in run.results)
    done = TaskResult(
        task="PickCube-v2", results=run.results, fingerprint=env.fingerprint(), held_steps=1, confidence=0.95,
        seconds=1.0, env_steps=run.env_steps, advice=run.advice,
    )  # fmt: skip
    whole = Evaluation(protocol=None, policy="still", tasks=(done,), interrupted=False, created="")
    assert not whole.healthy
    needed = env.world.usage()["njmax"]
    room = rf"njmax to at least {needed} \(now 12; rows \[0, 1\]\): budget=Budget\(nconmax=64, njmax={needed}, "
    with pytest.raises(DivergedError, match=rf"2 episodes were not healthy: seed 0 \(.*overflow.*; raise {room}"):
        whole.raise_if_unhealthy()
    env.close()


def test_what_was_too_little_is_said_with_a_budget_that_has_room_for_all():
    """Of two layouts; slot 1 of the first is row 5, slot 0 of the second is in nobody's use."""
    found = [
        (Budget(nconmax=24, njmax=48, nccdmax=16), {"njmax": Shortage(needed=60, room=48, rows=(1,))}, [2, 5]),
        (
            Budget(nconmax=48, njmax=96),
            {"njmax": Shortage(needed=99, room=96, rows=(0,)), "nconmax": Shortage(needed=50, room=48)},
            [-1, 7],
        ),
    ]
    assert advice(found) == (
        "raise njmax to at least 99 (now 48; rows [5]) and nconmax to at least 50 (now 48; shared by all rows): "
        "budget=Budget(nconmax=50, njmax=99, nccdmax=48)"
    )
    # of convex pairs it is not known how many there were; more of them need as much room for contacts
    few = {"nccdmax": Shortage(needed=None, room=16, rows=(0,)), "njmax": Shortage(needed=60, room=48, rows=(1,))}
    assert advice([(Budget(nconmax=24, njmax=48, nccdmax=16), few, [4, 3])]) == (
        "raise nccdmax to at least 17 (now 16; rows [4]) and njmax to at least 60 (now 48; rows [3]): "
        "budget=Budget(nconmax=32, njmax=60, nccdmax=32)"
    )
    assert advice([(Budget(nccdmax=0), {}, [0])]) == ""  # all had room
    fixed = {"contact_match": Shortage(needed=None, room=0, rows=(1,))}
    said = "a contact sensor had more matches than MuJoCo Warp sorts (rows [7]), which no budget changes"
    assert advice([(Budget(), fixed, [6, 7])]) == said
    both = advice([(Budget(nconmax=24, njmax=48, nccdmax=16), few | fixed, [4, 3])])
    assert both == f"{advice([(Budget(nconmax=24, njmax=48, nccdmax=16), few, [4, 3])])}; {said.replace('7', '3')}"


def test_every_kind_of_overflow_is_said():
    """What Warp can drop of the shapes and sensors of this project; no more than one of a kind at a time."""
    from mujoco_warp import OverflowType as Kind

    cases = {
        Kind.NJMAX_NNZ: "raise njmax to at least 257",
        Kind.CCD: "raise nccdmax to at least 65",
        Kind.CONTACT_MATCH: "a contact sensor",
        Kind.EPA_HORIZON: "two convex shapes",
    }
    budget = Budget()
    for kind, words in cases.items():
        room = Capacity({"nconmax": 64, "njmax": 256, "nccdmax": 64}, 3, torch.device("cpu"), Kind)
        room.lose(torch.tensor([0, int(kind), 0], dtype=torch.int32))
        said = advice([(budget, room.shortages(), range(3))])
        assert (
            said.startswith(words)
            and "rows [1]" in said
            and said.count(" to at least ") == words.count(" to at least ")
        )


def test_an_environment_of_several_layouts_calls_its_rows_by_their_numbers(monkeypatch):
    class Two(task_class("OpenCabinetDrawer-v2")):
        id = "Two-v1"
        layouts = ("one_drawer", "three_drawers")

    env = manikin.make(Two, 4, reward="none")
    env.reset(seed=[1, 0, 3, 2])  # the layout is the seed modulo 2
    assert env.budget_advice() == ""  # the CPU has none
    few = {"njmax": Shortage(needed=60, room=48, rows=(0, 1))}
    for seed, short in ((0, few), (1, {})):
        inside = env.env_for(seed)
        monkeypatch.setattr(inside.world, "shortages", lambda short=short: short)
        inside.budget = Budget(njmax=48)
    env.device_word = "warp:cpu"
    assert "njmax to at least 60 (now 48; rows [1, 3])" in env.budget_advice()


@pytest.mark.parametrize("deterministic", ["yes", 1, None])
def test_options_of_the_wrong_kind_are_refused(deterministic):
    with pytest.raises(ConfigError, match="deterministic must be True or False"):
        manikin.make("PickCube-v2", 1, deterministic=deterministic)
    with pytest.raises(
        ConfigError, match=r"a manikin.Budget\(nconmax=..., njmax=..., nccdmax=...\), not {'nconmax': 64}"
    ):
        manikin.make("PickCube-v2", 1, device="warp:cpu", budget={"nconmax": 64})
    for flag in ("graphs", "terminate"):
        with pytest.raises(ConfigError, match=f"{flag} must be True or False, not 'no'"):
            manikin.make("PickCube-v2", 1, **{flag: "no"})


def test_a_budget_in_words():
    assert read_budget("nconmax=48, njmax=192") == Budget(nconmax=48, njmax=192)
    for wrong in ("48", "room=3", "njmax=many", "", "njmax=1,"):
        with pytest.raises(ConfigError, match="NAME=NUMBER with a name of nconmax, njmax, nccdmax"):
            read_budget(wrong)


def test_evaluating_on_a_device_names_it_and_says_what_to_raise(tmp_path, capsys, monkeypatch):
    """Two episodes on Warp with too little room, then on the CPU: the numbers say where they come from."""
    monkeypatch.setenv("COLUMNS", "200")
    words = dict(tasks=("PickCube-v2",), seeds=(1_000_000, 1_000_001), horizon=2)
    file = tmp_path / "protocol.toml"
    file.write_text(Protocol(name="short", **words).to_toml())
    here, there = tmp_path / "cpu", tmp_path / "warp"
    run = ["eval", str(file), "--policy", "random"]
    assert main([*run, "--pictures", "0", "--out", str(here)]) == 0
    capsys.readouterr()
    device = ["--device", "warp:cpu", "--budget", "njmax=12", "--deterministic"]
    against = ["--against", str(here / "report.json")]
    assert main([*run, *device, *against, "--pictures", "1", "--renderer", "rays", "--out", str(there)]) == 1
    said = capsys.readouterr().out
    assert "PickCube-v2: raise njmax to at least" in said
    assert "PickCube-v2: simulated on warp:cpu and cpu, whose physics rounds differently" in said
    report = read_report(there / "report.json")
    assert report["device"] == report["per_task"][0]["fingerprint"]["device"] == "warp:cpu"
    assert report["per_task"][0]["advice"].startswith("raise njmax") and "--device warp:cpu" in report["command"]
    assert report["per_task"][0]["fingerprint"]["deterministic"] and "--deterministic" in report["command"]
    assert read_report(here / "report.json")["device"] == "cpu"
    assert report["protocol"]["hash"] == read_report(here / "report.json")["protocol"]["hash"]
    page = (there / "report.html").read_text()
    assert "on <b>warp:cpu</b>" in page and "raise njmax to at least" in page
    assert "on <b>" not in (here / "report.html").read_text()


def test_collecting_says_what_to_raise(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["collect", "PickCube-v2", "--policy", "random", "--episodes", "2", "--horizon", "2"]
    words += ["--device", "warp:cpu", "--budget", "njmax=12", "--out", str(tmp_path / "run.h5")]
    assert main(words) == 1
    assert "raise njmax to at least" in capsys.readouterr().out


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    """Two episodes on Warp with room for all, with an option that the CPU does not have."""
    path = tmp_path_factory.mktemp("roomy") / "run.h5"
    words = ["collect", "PickCube-v2", "--episodes", "2", "--horizon", "3", "--out", str(path)]
    assert main([*words, "--device", "warp:cpu", "--budget", "nconmax=48,njmax=96", "--deterministic"]) == 0
    return path


def test_a_replay_takes_the_room_that_was_recorded_and_says_where_there_is_too_little(
    roomy, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("manikin.env.env.task_budget", lambda *task, **options: Budget(njmax=12))
    with read_episodes(roomy) as episodes:
        then = episodes.needed_header().fingerprint
    assert then["budget"] == {"nconmax": 48, "njmax": 96, "nccdmax": None} and then["deterministic"] is True
    for rows in (1, 2):
        report = replay(roomy, num_envs=rows)
        assert report.exact and report.ok and not report.unhealthy
        assert all(word.startswith("budget/") for word in report.changed)
    assert main(["replay", str(roomy), "--check"]) == 0

    capsys.readouterr()
    assert main(["replay", str(roomy), "--budget", "njmx=5"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "'njmx=5' is not NAME=NUMBER" in said.err
    few, out = ["replay", str(roomy), "--budget", "njmax=12"], tmp_path / "few.h5"
    assert main([*few, "--check"]) == 1
    said = capsys.readouterr().out
    assert "2 episodes were not healthy (0 of these when recorded): seed 0 (overflow" in said
    assert "; raise njmax to at least" in said and "budget/njmax: 96 recorded, 12 here" in said
    for words in (few, [*few, "--out", str(out)]):  # not compared; into a new recording
        assert main(words) == 1
        assert "; raise njmax to at least" in capsys.readouterr().out
    with read_episodes(out) as episodes:
        assert all(episodes[n].health & Health.OVERFLOW for n in (0, 1))
        assert episodes.needed_header().fingerprint["budget"]["njmax"] == 12
    assert main([*few, "--control", "joint_pos", "--out", str(tmp_path / "converted.h5")]) == 1
    assert "converted, 2 episodes were not healthy: seed 0 (overflow" in capsys.readouterr().out


def test_there_is_room_for_what_was_recorded_where_it_is_for_the_same_physics(roomy, monkeypatch):
    """And for what is found: contacts share their room, and what was enough for many rows may be too little for one."""
    monkeypatch.setattr("manikin.env.env.task_budget", lambda *task, **options: Budget(njmax=88))
    with read_episodes(roomy) as episodes:
        then = dict(episodes.needed_header().fingerprint)
    old = {k: v for k, v in then.items() if k not in ("budget", "deterministic")}  # which older recordings lack
    of_cpu = {**then, "device": "cpu", "budget": None, "deterministic": None}
    for made, overrides, njmax, exact in (
        (then, {}, 96, True),
        (then, {"reward": "none", "observe": "policy"}, 96, True),
        ({**then, "budget": {"nconmax": 10, "njmax": 20, "nccdmax": 0}}, {}, 88, True),
        (then, {"control": "joint_pos"}, 88, True),
        (then, {"budget": Budget(njmax=77), "deterministic": False}, 77, False),
        (then, {"budget": None}, 88, True),
        (old, {}, 88, False),
        (of_cpu, {"device": "warp:cpu"}, 88, False),
    ):
        env = make_env(made, 1, **overrides)
        assert env.budget.njmax == njmax and env.budget.nconmax == 64
        assert env.fingerprint()["deterministic"] is exact
        assert bool(env.world.mjw_model.opt.deterministic) is exact
        env.close()
    for made in (then, old, of_cpu):
        env = make_env(made, 1, device="cpu")
        assert env.budget is None and env.fingerprint() | {"machine": 0} == of_cpu | {"machine": 0}
        env.close()


def test_what_another_device_lacks_is_no_change_and_states_stay_those_of_the_recording(roomy, tmp_path):
    report = replay(roomy, make_env(_fingerprint(roomy), 2, device="cpu"))
    assert report.changed == ("device: 'warp:cpu' recorded, 'cpu' here",)
    rerecord(roomy, tmp_path / "states.h5", way="states", device="cpu", reward="sparse")
    for name in ("device", "budget", "deterministic"):
        assert _fingerprint(tmp_path / "states.h5")[name] == _fingerprint(roomy)[name]


def _fingerprint(path):
    with read_episodes(path) as episodes:
        return dict(episodes.needed_header().fingerprint)


def test_devices_that_cannot_be_are_refused_before_anything_is_done(capsys):
    if not torch.cuda.is_available():
        for words in (["bench"], ["eval", "pick-cube"], ["warmup", "PickCube-v2"]):
            assert main([*words, "--device", "cuda"]) == 2
            assert f"manikin {words[0]}: device 'cuda'" in capsys.readouterr().err
    assert main(["warmup", "PickCube-v2", "--device", "cpu"]) == 2
    assert "nothing is compiled for the CPU; warm up cuda, cuda:1 or warp:cpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        *({"njmax": value} for value in (1.5, True, None, "64")),
        *({"nconmax": 0}, {"nccdmax": -1}, {"nconmax": 8, "nccdmax": 9}),
    ],
)
def test_room_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"nconmax|njmax|nccdmax"):
        manikin.Budget(**wrong)
