"""Shared by the tests of policies: servers that answer as a test says, closed after it."""

from __future__ import annotations

import pytest

from policy_server import Server


@pytest.fixture
def server():
    made = []

    def make(answer, **options):
        made.append(Server(answer, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
