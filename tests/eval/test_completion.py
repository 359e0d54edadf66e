"""Progressive completion of sequences, and the bound that counts subtasks on their own."""

from __future__ import annotations

import pytest

from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.stats import completion_rates, optimistic_bound, wilson


def test_completion_counts_episodes_that_did_the_first_k() -> None:
    found = completion_rates([0, 1, 3, 3], 3)
    assert [one.estimate for one in found] == [0.75, 0.5, 0.5]
    assert (found[0].low, found[0].high) == (wilson(3, 4).low, wilson(3, 4).high)


def test_a_sequence_needs_episodes_that_fit() -> None:
    for done in ([], [4]):
        with pytest.raises(ConfigError, match="3 subtasks"):
            completion_rates(done, 3)


def test_the_bound_is_the_published_one() -> None:
    """Of TidyHouse: 81.75 % of Pick and 65.77 % of Place make 4.49 % of five objects (MS-HAB, Table 1)."""
    found = optimistic_bound(("pick", "place") * 5, {"pick": 0.8175, "place": 0.6577})
    assert found[0] == 0.8175 and found[1] == pytest.approx(0.53767, abs=1e-5)
    assert found[-1] == pytest.approx(0.04493, abs=1e-5)
    with pytest.raises(UnknownNameError, match="pick"):
        optimistic_bound(("open",), {"pick": 1.0})
