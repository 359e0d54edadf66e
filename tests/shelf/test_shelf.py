"""Packages go to a folder, a web server and a hub and come back as they were; what was changed is refused."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from manikin.cli import main
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.env.make import make
from manikin.errors import AssetError, ConfigError, DataError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.policy.shipped import FOLDER
from manikin.shelf import Package, describe, get, listing, push, read_manifest, shelf_of, verify
from manikin.shelf.places import KEY

POLICY = FOLDER / "ppo-PushCube-v2.safetensors"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "push.h5"
    env = make("PushCube-v2", 2, autoreset="disabled")
    recorder = Recorder(env, path, policy="expert")
    run_episodes(env, ExpertPolicy(env), range(3), observers=[recorder])
    recorder.close()
    env.close()
    return path


class Web(BaseHTTPRequestHandler):
    """Files by GET and PUT, for who has the key."""

    root: Path
    key = ""
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(f"GET {self.path}")
        if self.path.startswith("/away"):
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.2:9/manifest.json")
            self.end_headers()
            return
        path = self.root / self.path.lstrip("/")
        status = 401 if not self.allowed() else 200 if path.is_file() else 404
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.wfile.write(path.read_bytes())

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.allowed():
            path = self.root / self.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.send_response(201 if self.allowed() else 401)
        self.end_headers()

    def allowed(self) -> bool:
        return not self.key or self.headers["Authorization"] == f"Bearer {self.key}"

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Any]:
    handler = type("Handler", (Web,), {"root": tmp_path / "served", "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(address=f"http://127.0.0.1:{server.server_port}", handler=handler)
    server.shutdown()
    server.server_close()


class Hub:
    """huggingface_hub's three functions over a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.asked = root, []

    def list_repo_files(self, repo_id: str, *, repo_type: str, revision: str | None) -> list[str]:
        self.asked.append((repo_id, repo_type, revision))
        return [str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()]

    def hf_hub_download(self, repo_id: str, filename: str, *, repo_type: str, revision: str | None) -> str:
        if not (self.root / filename).is_file():
            raise FileNotFoundError(filename)
        return str(self.root / filename)

    def upload_file(self, *, path_or_fileobj, path_in_repo, repo_id, repo_type, revision) -> None:
        path = self.root / path_in_repo
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path_or_fileobj if isinstance(path_or_fileobj, bytes) else Path(path_or_fileobj).read_bytes()
        path.write_bytes(content)


@pytest.fixture(params=["folder", "web", "hub"])
def place(request: pytest.FixtureRequest, tmp_path: Path, web: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "hub":
        monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", Hub(tmp_path / "hub"))
    return shelf_of({"folder": str(tmp_path / "shelf"), "web": web.address, "hub": "hf://me/demos@main"}[request.param])


def test_what_is_pushed_comes_back(place: Any, recording: Path, tmp_path: Path) -> None:
    assert listing(place) == {}
    demos = describe(recording, licence="CC-BY-4.0", note="three pushes")
    policy = describe(POLICY, licence="Apache-2.0")
    push(place, policy, POLICY)
    digest = push(place, demos, recording)
    assert (demos.kind, demos.content, demos.task, demos.episodes) == ("expert", "demonstrations", "PushCube-v2", 3)
    assert (policy.kind, policy.content, policy.episodes) == ("policy", "policy", 512)
    assert demos.sha256 == hashlib.sha256(recording.read_bytes()).hexdigest() and demos.size == recording.stat().st_size
    assert listing(place) == {"ppo-PushCube-v2": policy, "push": demos}
    found = get(place, "push", tmp_path / "got", sha256=digest[:12])
    assert found == demos and (tmp_path / "got" / "push" / "push.h5").read_bytes() == recording.read_bytes()
    assert get(place, "push", tmp_path / "got") == demos  # it is there
    assert push(place, demos, recording) == digest  # the same again
    with pytest.raises(ConfigError, match="another package is called 'push' there"):
        push(place, describe(recording, licence="MIT"), recording)
    with pytest.raises(AssetError):
        get(place, "pull", tmp_path / "got")
    assert sorted(path.name for path in (tmp_path / "got").iterdir()) == ["push"]  # nothing half is left


def changed_byte(folder: Path) -> None:
    path = folder / "push.h5"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def longer(folder: Path) -> None:
    with (folder / "push.h5").open("ab") as file:
        file.write(b"x")


def gone(folder: Path) -> None:
    (folder / "push.h5").unlink()


def said(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_byte, r"is not the file that was pushed: it hashes to \w{12}, the manifest says"),
        (longer, "is not the file that was pushed: it has"),
        (gone, "push.h5 is not there|404"),
        (said(episodes=4), "does not describe push.h5: episodes 3, the manifest says 4"),
        (said(task="PickCube-v2"), "task 'PushCube-v2', the manifest says 'PickCube-v2'"),
        (said(file="../push.h5"), r"the file '../push.h5' must be of letters"),
        (said(file="push.pkl"), "cannot hold 'demonstrations'"),
        (said(file="push.pt2", content="policy"), "cannot hold 'policy'"),
        (said(name="else"), "is of another package, 'else'"),
        (said(kind="monkey"), "unknown kind 'monkey'.*Valid: expert, human, planner, policy"),
        (said(licence=""), "is no licence"),
        (said(sha256="0"), "no SHA-256"),
        (said(size=True), "of a wrong type: size"),
        (said(more=1), r"unknown: \['more'\]"),
        (said(schema="manikin.shelf/2"), "install a newer one"),
        (lambda folder: (folder / "manifest.json").write_text("["), "not JSON"),
        (lambda folder: (folder / "manifest.json").write_bytes(b" " * (2**20 + 1)), "is larger than"),
    ],
)
def test_what_was_changed_is_refused_and_leaves_nothing(
    change: Callable[[Path], None], message: str, recording: Path, tmp_path: Path, web: Any
) -> None:
    push(shelf_of(web.address), describe(recording, licence="CC-BY-4.0"), recording)
    change(tmp_path / "served" / "push")
    for place in (shelf_of(web.address), shelf_of(str(tmp_path / "served"))):
        with pytest.raises((DataError, AssetError), match=message):
            get(place, "push", tmp_path / "got")
        assert not (tmp_path / "got").exists() or not list((tmp_path / "got").iterdir())


def test_a_manifest_that_was_pinned_is_the_only_one_that_is_taken(recording: Path, tmp_path: Path) -> None:
    place = shelf_of(str(tmp_path / "shelf"))
    digest = push(place, describe(recording, licence="CC-BY-4.0"), recording)
    said(note="better")(tmp_path / "shelf" / "push")
    with pytest.raises(DataError, match=f"not to {digest[:12]}: it was changed"):
        get(place, "push", tmp_path / "got", sha256=digest)


def test_a_key_is_sent_to_its_server_alone(recording: Path, tmp_path: Path, web: Any, monkeypatch) -> None:
    web.handler.key = "secret"
    item = describe(recording, licence="CC-BY-4.0")
    with pytest.raises(AssetError, match="answers 401"):
        push(shelf_of(web.address), item, recording)
    monkeypatch.setenv(KEY, "secret")
    push(shelf_of(web.address), item, recording)
    assert get(shelf_of(web.address), "push", tmp_path / "got") == item
    with pytest.raises(AssetError, match=r"it leads to http://127\.0\.0\.2:9"):
        shelf_of(f"{web.address}/away").read("manifest.json")
    with pytest.raises(ConfigError, match=r"readable on the way to example\.org: use https"):
        shelf_of("http://example.org/shelf")
    for word in ("ftp://example.org", "s3://bucket"):
        with pytest.raises(ConfigError, match="is no place for packages"):
            shelf_of(word)


def test_only_files_that_run_nothing_can_be_pushed(tmp_path: Path, recording: Path) -> None:
    for name in ("policy.pt2", "demos.pkl", "weights.pt"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(ConfigError, match=r"neither a recording .* nor a trained policy"):
            describe(tmp_path / name, licence="MIT")
    (tmp_path / "text.h5").write_text("text")
    with pytest.raises(DataError):
        describe(tmp_path / "text.h5", licence="MIT")
    with pytest.raises(ConfigError, match="no licence"):
        describe(recording, licence="")
    with pytest.raises(ConfigError, match="unknown kind 'robot'"):
        describe(recording, licence="MIT", kind="robot")


def test_demonstrations_are_verified_by_playing_them_again(recording: Path, tmp_path: Path) -> None:
    item = describe(recording, licence="CC-BY-4.0")
    verdict = verify(item, recording.parent)
    assert verdict.good and "3 episodes" in verdict.said
    forged = tmp_path / "push.h5"
    forged.write_bytes(recording.read_bytes())
    import h5py

    with h5py.File(forged, "r+") as file:  # and described anew: only playing it again tells
        file["block_0/steps/actions"][5, 0] += 0.25
    with read_episodes(forged) as episodes:
        assert len(episodes) == 3
    assert not verify(describe(forged, licence="CC-BY-4.0"), tmp_path).good


def test_a_protocol_names_no_code_of_its_author(tmp_path: Path) -> None:
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    toml = f'format = 1\nname = "x"\ntasks = ["{evil}:Task"]\n[episodes]\nfirst_seed = 0\ncount = 1\n'
    item = describe(POLICY, licence="Apache-2.0", protocol=toml)
    with pytest.raises(DataError, match="names tasks that are not installed here"):
        verify(item, FOLDER)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ConfigError, match="names no protocol"):
        verify(describe(POLICY, licence="Apache-2.0"), FOLDER)


def test_the_command_pushes_lists_gets_and_verifies(recording: Path, tmp_path: Path, capsys) -> None:
    shelf, out = str(tmp_path / "shelf"), str(tmp_path / "out")
    assert main(["demos", "push", str(recording), "--at", shelf]) == 2
    assert "give --licence" in capsys.readouterr().err
    assert main(["demos", "push", str(recording), "--at", shelf, "--licence", "CC-BY-4.0", "--kind", "human"]) == 0
    assert main(["demos", "push", str(POLICY), "--at", shelf, "--licence", "Apache-2.0"]) == 0
    assert main(["demos", "list", "--at", shelf]) == 0
    said = capsys.readouterr().out
    assert "push  " in said and "human" in said and "3/3" in said and "Apache-2.0" in said
    assert main(["demos", "get", "push", "--at", shelf, "--out", out, "--verify", "--episodes", "1"]) == 0
    assert "1 episode" in capsys.readouterr().out
    words = ["demos", "get", "ppo-PushCube-v2", "--at", shelf, "--out", out, "--verify", "--episodes", "16"]
    assert main(words) == 0 and "as stated" in capsys.readouterr().out
    assert main(["demos", "get", "--at", shelf]) == 2 and main(["demos", "list", "x", "--at", shelf]) == 2


def test_an_item_is_what_its_manifest_says(recording: Path) -> None:
    item = describe(recording, licence="CC-BY-4.0")
    assert read_manifest(item.to_json(), "here") == item and isinstance(item, Package)
