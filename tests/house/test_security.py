"""Read from the source: nothing listens beyond this machine unless asked, and nothing from elsewhere is unpickled."""

from __future__ import annotations

import ast
import inspect
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from manikin.errors import ConfigError
from manikin.policy.remote.server import PolicyServer
from manikin.results.board import Board
from manikin.view.recording import RecordingViewer
from manikin.view.site import is_loopback
from manikin.view.stream import StreamViewer
from manikin.view.studio import StudioViewer

SOURCE = Path(__file__).resolve().parents[2] / "src" / "manikin"
MODULES = sorted(SOURCE.rglob("*.py"))
UNPICKLERS = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
REASONS = {  # file -> what it may do that others may not, and why
    "policy/files/archive.py": {"pickle": "names the error of torch.load(weights_only=True)"},
    "sysid/importers.py": {"pickle": "an unpickler that makes nothing but arrays and plain values"},
    "control/numerics/operational_code.py": {"exec": "code that manikin itself writes"},
    "spread/ledger.py": {"everywhere": "the name of the machine that did a shard, by default none; nothing listens"},
    "view/site.py": {"listens": "the pages; called with the host that was asked for"},
    "policy/remote/server.py": {"listens": "policies; called with the host that was asked for"},
    "compat/studio.py": {"listens": "wraps the server of MuJoCo Studio, which is given a socket of view/site.py"},
}
SERVERS = (PolicyServer, Board, RecordingViewer, StreamViewer, StudioViewer)


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_everywhere(node: ast.AST) -> bool:
    """An address of other machines, or of all of this machine's networks."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_loopback(node.value)


def risks(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, kind) of everything that needs a reason."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Import(names=names):
                yield from ((line, "pickle") for alias in names if alias.name.split(".")[0] in UNPICKLERS)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in UNPICKLERS:
                yield line, "pickle"
            case ast.AnnAssign(target=ast.Name(id="host"), value=default) if default and is_everywhere(default):
                yield line, "everywhere"
            case ast.FunctionDef(args=given):
                plain, named = [*given.posonlyargs, *given.args], given.kwonlyargs
                defaults = [*zip(plain[len(plain) - len(given.defaults) :], given.defaults, strict=True)]
                defaults += [(arg, value) for arg, value in zip(named, given.kw_defaults, strict=True) if value]
                hosts = [value for arg, value in defaults if arg.arg in ("host", "address", "dashboard_host")]
                yield from ((line, "everywhere") for value in hosts if is_everywhere(value) and ast.literal_eval(value))
            case ast.Call(func=func, args=args, keywords=keywords):
                yield from of_call(line, dotted(func), args, {word.arg: word.value for word in keywords})


def of_call(line: int, name: str, args: list[ast.expr], words: dict[str | None, ast.expr]) -> Iterator[tuple[int, str]]:
    last = name.split(".")[-1]

    def says(word: str, value: object) -> bool:
        return isinstance(words.get(word), ast.Constant) and words[word].value is value

    if name == "torch.load" and not says("weights_only", True):
        yield line, "pickle"
    if (
        last == "load"
        and name.startswith(("np.", "numpy."))
        and "allow_pickle" in words
        and not says("allow_pickle", False)
    ):
        yield line, "pickle"
    if name in ("yaml.load", "yaml.unsafe_load", "torch.export.load", "torch.jit.load"):
        yield line, "pickle"
    if name in ("eval", "exec"):
        yield line, "exec"
    if name == "os.system" or ("shell" in words and not says("shell", False)):
        yield line, "shell"
    if last in ("HTTPServer", "ThreadingHTTPServer", "create_server", "start_server", "Listener", "add_insecure_port"):
        yield line, "listens"
    if name == "serve" or (last == "serve" and "websockets" in name):
        yield line, "listens"
    if last == "bind" and args and isinstance(args[0], ast.Tuple):
        yield line, "listens"
        yield from ((line, "everywhere") for part in args[0].elts[:1] if is_everywhere(part))
    hosts = [words[word] for word in ("host", "dashboard_host", "node_ip_address") if word in words]
    yield from ((line, "everywhere") for value in hosts if is_everywhere(value))


def test_no_file_does_anything_of_risk_without_a_reason() -> None:
    found = {}
    for path in MODULES:
        name = str(path.relative_to(SOURCE))
        if hits := [hit for hit in risks(ast.parse(path.read_text())) if hit[1] not in REASONS.get(name, {})]:
            found[name] = hits
    assert not found


def test_every_reason_is_still_needed() -> None:
    for name, reasons in REASONS.items():
        kinds = {kind for _, kind in risks(ast.parse((SOURCE / name).read_text()))}
        assert reasons.keys() <= kinds, name


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import pickle", "pickle"),
        ("from cloudpickle import loads", "pickle"),
        ("torch.load(file)", "pickle"),
        ("torch.load(file, weights_only=False)", "pickle"),
        ("np.load(file, allow_pickle=True)", "pickle"),
        ("yaml.load(text)", "pickle"),
        ("exec(text)", "exec"),
        ("os.system('ls')", "shell"),
        ("subprocess.run('ls', shell=True)", "shell"),
        ("HTTPServer(('', 80), H)", "listens"),
        ("serve(answer, host, port)", "listens"),
        ("class A:\n host: str = '0.0.0.0'", "everywhere"),
        ("def f(host='::'): ...", "everywhere"),
        ("def f(*, host='10.0.0.1'): ...", "everywhere"),
        ("ray.init(dashboard_host='0.0.0.0')", "everywhere"),
    ],
)
def test_risks_are_noticed(code: str, kind: str) -> None:
    assert [found for _, found in risks(ast.parse(code))] == [kind]


@pytest.mark.parametrize(
    "code",
    [
        "torch.load(file, weights_only=True)",
        "np.load(file, allow_pickle=False)",
        "module.eval()",
        "handle.bind(model)",
        "def f(*, host='127.0.0.1', port=0): ...",
        "name in ('0.0.0.0', '::')",
        "subprocess.run(['ls'])",
    ],
)
def test_what_is_harmless_is_left_alone(code: str) -> None:
    assert not list(risks(ast.parse(code)))


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.__name__)
def test_every_server_listens_on_this_machine_by_default(server: type) -> None:
    assert is_loopback(inspect.signature(server).parameters["host"].default)


def test_a_policy_server_is_reached_from_this_machine_alone() -> None:
    class Nothing:
        stateless = True

        def reset(self, rows: object) -> None: ...

        def act(self, observation: object, instruction: object) -> None: ...

    with PolicyServer(Nothing(), {"state": (1,)}, port=0) as server:
        others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for address in others - {"127.0.0.1"}:
            if not is_loopback(address):
                with pytest.raises(OSError):
                    socket.create_connection((address, server.port), timeout=2).close()
        socket.create_connection(("127.0.0.1", server.port), timeout=2).close()


def test_beyond_this_machine_a_server_of_results_needs_a_key(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    from manikin.results import Store

    with pytest.raises(ConfigError, match="set MANIKIN_RESULTS_KEY to a key"):
        Board(Store(tmp_path), host="0.0.0.0")
