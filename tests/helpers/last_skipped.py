"""``pytest --last-skipped`` runs only what skipped before: after an extra was installed, or a folder of data was named.

As pytest does with what failed, it keeps in its cache what skipped, until that runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

KEPT = "manikin/skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--last-skipped", action="store_true", help="run only what skipped the last time")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "cache"):
        config.pluginmanager.register(LastSkipped(config), "last-skipped-list")
    elif config.option.last_skipped:
        raise pytest.UsageError("--last-skipped needs pytest's cache; leave out -p no:cacheprovider")


class LastSkipped:
    """Of one run; with several workers each selects, and the main process alone remembers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.skipped = set(config.cache.get(KEPT, []))  # ids of tests, and of files that skipped as a whole

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """A file in which nothing skipped is not even imported."""
        if not self.config.option.last_skipped or collection_path.suffix != ".py":
            return None
        name = collection_path.relative_to(self.config.rootpath).as_posix()
        return None if any(kept.partition("::")[0] == name for kept in self.skipped) else True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.config.option.last_skipped:
            wanted = [item for item in items if {item.nodeid, item.nodeid.partition("::")[0]} & self.skipped]
            self.config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
            items[:] = wanted

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.skipped.add(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.add(report.nodeid)
        elif report.when == "call" or report.failed:
            self.skipped -= {report.nodeid, report.nodeid.partition("::")[0]}

    def pytest_sessionfinish(self) -> None:
        if not hasattr(self.config, "workerinput"):
            self.config.cache.set(KEPT, sorted(self.skipped))
