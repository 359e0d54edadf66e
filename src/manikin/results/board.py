"""The leaderboard: one page of what is in a store, as a file, or served."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError
from manikin.eval.stats import count_pairs, mcnemar_exact, newcombe_paired
from manikin.results.compare import RunRate, rates
from manikin.results.store import Store, Tables
from manikin.view.site import Answer, Handler, Site, is_loopback

__all__ = ["Board", "board_data", "render_board", "write_board"]

_SHOWN = 400  # points of a curve


def board_data(store: Store) -> dict[str, Any]:
    """What the page shows: the rates, each beside the best of its protocol and task, and the curves of trainings."""
    tables = store.read()
    found = rates(tables)
    best: dict[tuple[str, str], RunRate] = {}
    for rate in found:  # the highest comes first
        best.setdefault((rate.run["protocol_hash"], rate.task), rate)
    played = _played(tables)
    rows = []
    for rate in found:
        run, top = rate.run, best[rate.run["protocol_hash"], rate.task]
        rows.append(
            {
                "run": run["run"],
                "protocol": run["name"],
                "hash": run["protocol_hash"],
                "task": rate.task,
                "policy": run["policy"],
                "device": run["device"],
                "created": run["created"],
                "healthy": run["healthy"] and run["complete"],
                "successes": rate.successes,
                "episodes": rate.episodes,
                "rate": rate.interval.estimate,
                "low": rate.interval.low,
                "high": rate.interval.high,
                "failures": rate.failures,
                "page": run["page"],
                "films": len(store.files(run)[1:]),
                "command": run["command"],
                "paired": None if rate is top else _beside(played, rate, top),
            }
        )
    return {"rates": rows, "curves": _curves(tables)}


def _played(tables: Tables) -> dict[tuple[str, str], dict[tuple[int, int], bool]]:
    """By run and task: which episodes succeeded."""
    out: dict[tuple[str, str], dict[tuple[int, int], bool]] = {}
    for row in tables.query("SELECT run, named, seed, episode_index, success FROM episodes"):
        out.setdefault((row["run"], row["named"]), {})[row["seed"], row["episode_index"]] = row["success"]
    return out


def _beside(played: dict[Any, dict[Any, bool]], rate: RunRate, top: RunRate) -> dict[str, Any] | None:
    """A run minus the best one, on the episodes that both played."""
    mine, other = played[rate.run["run"], rate.task], played[top.run["run"], top.task]
    both = sorted(mine.keys() & other.keys())
    if not both:
        return None
    counts = count_pairs([mine[k] for k in both], [other[k] for k in both])
    d = newcombe_paired(*counts)
    return {
        "best": top.run["policy"],
        "difference": d.estimate,
        "low": d.low,
        "high": d.high,
        "p": mcnemar_exact(counts[1], counts[2]),
        "episodes": len(both),
    }


def _curves(tables: Tables) -> list[dict[str, Any]]:
    """Validated success over steps of each training."""
    rows = tables.query(
        "SELECT runs.run AS run, policy, policy_seed, page, step, value FROM metrics JOIN runs USING (run) "
        "WHERE kind = 'training' AND metrics.name = 'validated_success' ORDER BY policy, policy_seed, run, step"
    )
    out: dict[str, dict[str, Any]] = {}
    for row in rows:
        one = {"run": row["run"], "policy": row["policy"], "seed": row["policy_seed"], "page": row["page"]}
        out.setdefault(row["run"], {**one, "points": []})["points"].append([row["step"], row["value"]])
    for one in out.values():
        points = one["points"]
        one["points"] = points[:: max(1, len(points) // _SHOWN)]
    return list(out.values())


def render_board(store: Store, *, nonce: str = "") -> str:
    """The page, whole: no file beside it but the pages of results that it links to."""
    text = (resources.files("manikin.results") / "board.html").read_text(encoding="utf-8")
    theme = (resources.files("manikin.view") / "pages" / "theme.css").read_text(encoding="utf-8")
    data = json.dumps(board_data(store)).replace("<", "\\u003c")  # no word in it ends the script
    for word, value in (("theme", theme.rstrip()), ("nonce", nonce), ("data", data)):
        text = text.replace("{{" + word + "}}", value)
    return text


def write_board(store: Store, folder: str | Path) -> Path:
    """Write the page into a folder, as ``index.html``, for any web host; pages of results and their films lie beside.

    Raises:
        DataError: it cannot be written.
    """
    folder = Path(folder)
    for run in store.runs():
        for name in store.files(run):
            write_file(folder / name, (store.folder / name).read_bytes())
    write_file(folder / "index.html", render_board(store).encode())
    return folder / "index.html"


class Board(Site):
    """Serves the leaderboard of a store, made anew for every request.

    Args:
        store: what is shown.
        host: address to listen on.
        port: 0 is the first free one from 8080 on.
        key: that the address has to end in; needed where others can reach it.

    Raises:
        ConfigError: the port is taken, or others can reach it and there is no key.
    """

    def __init__(self, store: Store, *, host: str = "127.0.0.1", port: int = 0, key: str | None = None) -> None:
        if key is None and not is_loopback(host):
            raise ConfigError(f"--host {host} can be reached from other machines: set MANIKIN_RESULTS_KEY to a key")
        self.store = store
        super().__init__("", host=host, port=port, handler=Handler, key=key)

    def page(self, path: str = "/") -> bytes | None:
        """The leaderboard."""
        return render_board(self.store, nonce=self._nonce).encode() if path == "/" else None

    def get(self, path: str, query: dict[str, str]) -> Answer | None:
        """Pages of results, and their films."""
        names = {f"/{name}" for run in self.store.runs() for name in self.store.files(run)}
        if path not in names:
            return None
        kind = "video/mp4" if path.endswith(".mp4") else "text/html; charset=utf-8"
        return 200, (self.store.folder / path.removeprefix("/")).read_bytes(), kind

    def policy_for(self, path: str) -> str:
        """Pages of results have their style and pictures in them and films beside, and run no script."""
        if path.startswith("/pages/"):
            # without the same origin the page could not load its films
            return (
                "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src 'self'; "
                "sandbox allow-same-origin"
            )
        return self.policy
