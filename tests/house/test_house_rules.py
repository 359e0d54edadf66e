"""Rules of the house that no off-the-shelf linter knows, read from the source.

A line may be excused with ``# house: <rule>, <reason>``, for example ``# house: random, entropy drawn once``.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "manikin"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 500  # lines of a file that can be read in one sitting
MOST = 14  # files of a folder that can be seen at a glance; shelves of like things may have more
SHELVES = {
    *("src/manikin/cli", "src/manikin/grippers", "src/manikin/robots", "src/manikin/learn/recipes"),
    *("benchmarks", "benchmarks/results", "docs", "docs/images", "docs/images/tasks"),
}

# Calls whose result depends on a tensor's size or stride on the CPU (measured), so on the batch a row is in.
BATCH_DEPENDENT = {"atan2", "arctan2", "atan2_", "sigmoid", "sigmoid_", "logsigmoid", "expit"}
# Calls that read a generator shared by the whole process.
GLOBAL_RANDOM_TORCH = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli"),
    *("multinomial", "poisson", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state"),
}
GLOBAL_RANDOM_METHODS = {"uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_"}
# An absolute path into somebody's machine; hosts of package registries. Brackets keep this file from naming them.
PRIVATE = re.compile(
    r"(?<![\w.~}])/(?:work|root|tmp|home)/\w|py[p]i\.org|python[h]osted\.org|deb\.[d]ebian\.org|npm[j]s\.(?:org|com)"
)


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for an attribute chain, the part that is known otherwise."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def whole_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and float(node.value).is_integer()


def findings(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """(rule, line, what) for everything in a module that a rule speaks about."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = [alias.name for alias in node.names]
            if "random" in named and isinstance(node, ast.Import):
                yield "random", line, "import random"
            if isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
                yield "random", line, f"from {node.module}"
        if isinstance(node, ast.Attribute) and dotted(node) in ("np.random", "numpy.random"):
            yield "random", line, dotted(node)
        match node:
            case ast.BinOp(op=ast.Pow(), left=left, right=ast.Constant(value=exponent)):
                if not isinstance(left, ast.Constant) and not whole_number(node.right):
                    yield "batch", line, f"** {exponent} (use sqrt, or exp of log)"
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name
        if name == "print":
            yield "print", line, "print"
        if last in BATCH_DEPENDENT and not name.startswith(("math.", "np.", "numpy.", "quat.")) and name != "atan2":
            yield "batch", line, f"{name or last} (manikin.math has one that does not depend on the batch)"
        if last == "pow" and name != "pow" and not name.startswith("math."):
            exponent = node.args[-1] if node.args else None
            if exponent is None or not whole_number(exponent):
                yield "batch", line, f"{name or last} with an exponent that is no whole number"
        if any(keyword.arg == "generator" for keyword in node.keywords):
            continue
        if name.split(".")[0] == "torch" and last in GLOBAL_RANDOM_TORCH:
            yield "random", line, name
        if isinstance(node.func, ast.Attribute) and last in GLOBAL_RANDOM_METHODS:
            yield "random", line, f".{last}()"


def broken(path: Path, rule: str) -> list[str]:
    text = path.read_text()
    lines = text.splitlines()
    return [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for found, line, what in findings(ast.parse(text))
        if found == rule and f"# house: {rule}," not in lines[line - 1]
    ]


def within(path: Path, *folders: str) -> bool:
    return path.relative_to(SOURCE).parts[0] in folders


def test_the_library_never_prints() -> None:
    assert not [hit for path in MODULES if not within(path, "cli") for hit in broken(path, "print")]


def test_no_operation_whose_bits_depend_on_the_batch() -> None:
    assert not [hit for path in MODULES if not within(path, "math") for hit in broken(path, "batch")]


def test_no_global_random_state() -> None:
    assert not [hit for path in MODULES for hit in broken(path, "random")]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("print", "print(x)"),
        ("batch", "y = torch.atan2(a, b)"),
        ("batch", "y = a.atan2(b)"),
        ("batch", "y = torch.nn.functional.sigmoid(a)"),
        ("batch", "y = a.pow(0.5)"),
        ("batch", "y = torch.pow(a, b)"),
        ("batch", "y = a ** 1.5"),
        ("random", "import random"),
        ("random", "from numpy.random import default_rng"),
        ("random", "y = np.random.rand(3)"),
        ("random", "y = torch.randn(3)"),
        ("random", "y = a.uniform_(-1, 1)"),
    ],
)
def test_the_rules_notice(rule: str, code: str) -> None:
    assert [found for found, _, _ in findings(ast.parse(code))] == [rule]


@pytest.mark.parametrize(
    "code",
    [
        "from manikin.math import atan2\ny = atan2(a, b)",
        "y = a ** 2 + 2 ** -0.5 + a.pow(3)",
        "y = torch.randn(3, generator=g)",
        "y = rng.uniform('x', 0, 1)",
        "self.print(x)",
    ],
)
def test_the_rules_leave_good_code_alone(code: str) -> None:
    assert not list(findings(ast.parse(code)))


def test_math_and_random_streams_stand_on_torch_alone() -> None:
    allowed = {"torch", "manikin", *sys.stdlib_module_names}
    for path in [*(SOURCE / "math").rglob("*.py"), *SOURCE.glob("rng.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
                assert not (node.module or "").startswith("manikin") or node.module.startswith("manikin.math"), path
            for module in modules:
                assert module.split(".")[0] in allowed, f"{path.name} imports {module}"


def test_nothing_imports_the_top_level_package() -> None:
    """It stands for everything, so importing it from inside would hide a dependency from the layers. Tasks show how a
    task of one's own is written, so they may, what lies below them."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    places = {
        a.name: node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for a in node.names
    }
    rooms = ("manikin.env.", "manikin.errors", "manikin.scene.", "manikin.spec.")
    below = {name for name, module in places.items() if module.startswith(rooms)}
    for path in MODULES:
        if path == SOURCE / "__init__.py":
            continue
        if within(path, "tasks"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "manikin":
                    assert {alias.name for alias in node.names} <= below, path
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "manikin" not in [alias.name for alias in node.names], path
            if isinstance(node, ast.ImportFrom) and node.module == "manikin":
                folders = {p.stem for p in SOURCE.iterdir()}
                assert {alias.name for alias in node.names} <= folders, path


PRIVATE_NAME = re.compile(r"_[a-zA-Z]\w*")
OF_OTHERS = ("torch", "mujoco", "MjModel", "warp", "wp")  # compat names what is used of them; tests look at it


def private_uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything private of the library that a test uses: attributes, imports, and names of what it
    replaces. What a class of a test keeps in ``self`` is its own."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls" | "super")):
                pass
            case ast.Attribute(attr=name) if PRIVATE_NAME.fullmatch(name) and name != "_replace":  # of named tuples
                if dotted(node.value).split(".")[-1] not in OF_OTHERS and not dotted(node).startswith(OF_OTHERS):
                    yield node.lineno, name
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("manikin"):
                for name in (*module.split("."), *(alias.name for alias in names)):
                    if PRIVATE_NAME.fullmatch(name) and name != "_version":
                        yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=args):
                for arg in args[:2]:
                    if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                        name = arg.value.split(".")[-1]
                        if PRIVATE_NAME.fullmatch(name):
                            yield node.lineno, name


def test_tests_use_public_names() -> None:
    hits, excused = [], 0
    for path in sorted((ROOT / "tests").rglob("*.py")):
        lines = path.read_text().splitlines()
        for line, name in private_uses(ast.parse("\n".join(lines))):
            if "# house: private," in lines[line - 1] or "# house: private," in lines[line - 2]:
                excused += 1
            else:
                hits.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert not hits
    assert excused < 30, "most of these can be tested through what users see"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("env._loop.carry", ["_loop"]),
        ("from manikin.env.env import _find_budget", ["_find_budget"]),
        ("patch.setattr(world, '_run', None)", ["_run"]),
        ("patch.setattr('manikin.sim.cpu._evenly', None)", ["_evenly"]),
        ("self._own = robot._replace(arm=None); torch._C.thing; env.loop", []),
    ],
)
def test_private_names_are_noticed(code: str, names: list[str]) -> None:
    assert [name for _, name in private_uses(ast.parse(code))] == names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_file_can_be_read_in_one_sitting(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines < LONGEST


def crowded(files: list[str]) -> dict[str, int]:
    """Folders with more than ``MOST`` files, shelves aside, and how many they have."""
    counts = Counter(str(Path(file).parent) for file in files)
    return {folder: count for folder, count in counts.items() if count > MOST and folder not in SHELVES}


def test_a_folder_can_be_seen_at_a_glance() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    files = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    assert not crowded(files)
    assert not [folder for folder in SHELVES if not (ROOT / folder).is_dir()]


def test_crowded_folders_are_told_from_shelves() -> None:
    shelf = [f"src/manikin/robots/{n}.py" for n in range(40)]
    assert not crowded([*shelf, *(f"src/manikin/env/{n}.py" for n in range(MOST))])
    assert crowded([*shelf, *(f"src/manikin/env/{n}.py" for n in range(MOST + 1))]) == {"src/manikin/env": MOST + 1}


# Each trainer is one file that reads by itself: ``ppo.Config`` are PPO's settings.
IN_EACH_FILE = {"Config"}


def shared_names(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Public classes of one name, and the files that have them."""
    files: dict[str, list[str]] = {}
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, []).append(file)
    return {name: where for name, where in files.items() if len(where) > 1 and name not in IN_EACH_FILE}


def test_no_two_classes_share_a_name() -> None:
    """Tasks are named by their ids, and a task's handles by the task that they are of."""
    trees = {str(path): ast.parse(path.read_text()) for path in MODULES if not within(path, "tasks")}
    assert not shared_names(trees)
    assert shared_names({"a": ast.parse("class A: ..."), "b": ast.parse("class A: ...\nclass B: ...")}) == {
        "A": ["a", "b"]
    }


def kinds_of_environments(tree: ast.AST) -> list[str]:
    """Where code asks which kind of environment it has, casts, or takes an environment of no type."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
                if {"LayoutEnv", "BucketEnv"} & {dotted(part).split(".")[-1] for part in ast.walk(kind)}:
                    found.append(f"{node.lineno}: isinstance")
            case ast.ImportFrom(module="typing", names=names) if "cast" in [alias.name for alias in names]:
                found.append(f"{node.lineno}: cast")
            case ast.arg(arg="env" | "envs" | "environment", annotation=ast.Name(id="Any")):
                found.append(f"{node.lineno}: {node.arg}")
    return found


def test_all_environments_are_one_interface() -> None:
    hits = [
        f"{path.relative_to(ROOT)}:{hit}"
        for path in MODULES
        for hit in kinds_of_environments(ast.parse(path.read_text()))
    ]
    assert not hits


@pytest.mark.parametrize("code", ["isinstance(e, (LayoutEnv, int))", "from typing import cast", "def f(env: Any): ..."])
def test_an_environment_of_another_kind_is_noticed(code: str) -> None:
    assert len(kinds_of_environments(ast.parse(code))) == 1


OTHERS = re.compile("lerobot|robomimic|maniskill|robosuite", re.IGNORECASE)


def names_of_others(tree: ast.AST) -> list[str]:
    """Names, imports, arguments and texts that name another project. What an error tells its reader may name one."""
    told = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Raise) for part in ast.walk(node)}
    words = []
    for node in ast.walk(tree):
        if id(node) in told:
            continue
        for _, value in ast.iter_fields(node):
            words += [value] if isinstance(value, str) else []
    return [word for word in words if OTHERS.search(word)]


def test_the_format_rooms_alone_know_other_projects() -> None:
    hits = {}
    for path in (SOURCE / "data").rglob("*.py"):
        if not path.is_relative_to(SOURCE / "data" / "formats") and (
            found := names_of_others(ast.parse(path.read_text()))
        ):
            hits[str(path.relative_to(SOURCE))] = found
    assert not hits


@pytest.mark.parametrize(
    "code",
    ["import lerobot", "from manikin.data.formats import robomimic", "def to_maniskill(): pass", "x = 'RoboSuite'"],
)
def test_a_name_of_another_project_is_noticed(code: str) -> None:
    assert names_of_others(ast.parse(code))


def committed_text() -> Iterator[tuple[Path, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file():
            try:
                yield path, path.read_text()
            except UnicodeDecodeError:
                continue  # a picture


def test_no_path_of_a_machine_and_no_registry_host_in_the_tree() -> None:
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path, text in committed_text()
        for number, line in enumerate(text.splitlines(), 1)
        for match in PRIVATE.finditer(line)
    ]
    assert not hits


def test_private_paths_are_told_from_harmless_ones() -> None:
    folder = "/" + "work"
    assert PRIVATE.search(f"open('{folder}/main/x')")
    assert not PRIVATE.search("see tasks/home/close_drawer.py and ~/work/x and https://example.org/a")
