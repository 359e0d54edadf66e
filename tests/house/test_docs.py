"""Every ```python block of README.md and docs/ runs as it stands, and every example checks its own result.

The blocks of one page run in order in one process, as a reader would paste them. A block that cannot run has a line
``<!-- not run: <reason> -->`` above it.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from alone import FORKS, run_code

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"(?P<skip><!-- not run: .+? -->\n)?^```python[^\n]*\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL)
MINUTES = 5


def snippets(page: Path) -> str:
    """The page's runnable blocks as one script; line numbers are those of the page."""
    text, script = page.read_text(), ""
    for match in BLOCK.finditer(text):
        if match["skip"]:
            continue
        line = text[: match.start("code")].count("\n")
        script += "\n" * (line - script.count("\n")) + match["code"]
    return script


PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if snippets(p).strip()]


def run(path: Path, code: str, folder: Path) -> None:
    said = folder.parent / f"{folder.name}.txt"
    process = FORKS.Process(target=run_code, args=(str(path), code, str(folder), str(said)))
    process.start()
    process.join(60 * MINUTES)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0, f"{path} (exit status {process.exitcode})\n{said.read_text()}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_snippets_run(page: Path, tmp_path: Path) -> None:
    run(page, snippets(page), tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs_and_checks_itself(example: Path, tmp_path: Path) -> None:
    code = example.read_text()
    assert "assert " in code, f"{example.name} checks nothing"
    run(example, code, tmp_path)


def test_a_page_that_fails_is_told_with_what_it_printed(tmp_path: Path) -> None:
    for code, said in (
        ("print('so far')\n1 / 0", r"so far[\s\S]*ZeroDivisionError"),
        ("raise SystemExit(3)", "status 3"),
    ):
        with pytest.raises(AssertionError, match=said):
            run(ROOT / "README.md", code, tmp_path)


def test_readme_shows_code() -> None:
    assert ROOT / "README.md" in PAGES


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not re.match(r"\w+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "reference").glob("*.md")), ids=lambda p: p.stem)
def test_the_reference_names_what_users_can_import(page: Path) -> None:
    names = re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    assert names and len(set(names)) == len(names)
    for name in names:
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last)
        assert found.__doc__, f"{name} on {page.name} has no docstring"


def test_every_page_is_in_the_navigation() -> None:
    shown = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(shown) == sorted(pages)


def test_version_is_the_same_everywhere() -> None:
    from manikin import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
