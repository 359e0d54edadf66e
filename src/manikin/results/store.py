"""A folder of results: Parquet files that are only ever added, and DuckDB to ask them.

    FOLDER/runs/ID.parquet, FOLDER/episodes/ID.parquet, FOLDER/metrics/ID.parquet
    FOLDER/pages/ID/index.html, FOLDER/pages/ID/videos/NAME.mp4

A file is written under a temporary name and renamed, and that of ``runs`` comes last: whoever reads sees whole results
only, and any number of processes and machines may write at once, without a server. ``ID`` is a hash of the result, so
that adding one twice leaves one.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manikin.errors import ConfigError, DataError
from manikin.results.schema import COLUMNS, TABLES, VERSION, Result, arrow_schema

__all__ = ["Store", "Tables"]

_NEEDED = ("run", "schema_version", "kind", "task")
"""Columns of any export; others came with a later version, or are empty."""


class Store:
    """The results in a folder, which is made with the first of them."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def add(self, result: Result, name: str | None = None) -> str:
        """Add a result, and return its id. Of one that is there already only what it lacks is added: one that was
        imported has no page.

        Args:
            result: to be added.
            name: the id that it has in another store.

        Raises:
            DataError: it cannot be written, or the id is none.
        """
        name = result.id if name is None else name
        if not re.fullmatch("[0-9a-f]{64}", name):
            raise DataError(f"{name!r} is not the id of a result")
        before = _table(self._file("runs", name)).to_pylist()[0] if self._file("runs", name).exists() else None
        page = (before or {}).get("page") or (f"pages/{name}/index.html" if result.page is not None else "")
        run = {**result.run, "run": name, "schema_version": VERSION, "page": page}
        rows = {"episodes": result.episodes, "metrics": result.metrics}
        lacking = {table: found for table, found in rows.items() if found and not self._file(table, name).exists()}
        if before is not None and not lacking and page == (before["page"] or ""):
            return name
        try:
            if result.page is not None:
                for place, film in result.films.items():
                    self._write((self.folder / page).parent / place, film)
                self._write(self.folder / page, result.page)
            for table, found in {**lacking, "runs": [run]}.items():
                if found:
                    whole = pa.Table.from_pylist([{**row, "run": name} for row in found], schema=arrow_schema(table))
                    self._write(self._file(table, name), whole)
        except OSError as error:
            raise DataError(f"cannot write the results in {self.folder}: {error.strerror or error}") from None
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"a result does not fit the columns of the store: {error}") from None
        return name

    def read(self) -> Tables:
        """All rows as they are now, for several questions.

        Raises:
            DataError: a file is damaged, or was written by a newer manikin.
        """
        return Tables({table: self._read(table) for table in TABLES})

    def runs(self) -> list[dict[str, Any]]:
        """All runs, the newest first. Raises as :meth:`read`."""
        return self.read().runs()

    def files(self, run: Mapping[str, Any]) -> list[str]:
        """The page of a run, if it has one, and the films beside it, by their names from the store's folder."""
        if not run["page"]:
            return []
        films = sorted((self.folder / run["page"]).parent.glob("videos/*.mp4"))
        return [run["page"], *(film.relative_to(self.folder).as_posix() for film in films)]

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """One question: as :meth:`Tables.query`. Raises also as :meth:`read`."""
        return self.read().query(sql, values)

    def export(self, path: str | Path) -> None:
        """Write everything but the pages into one file, ``.parquet`` or ``.csv``: a row per episode with the columns of
        its run, one for a run without episodes, and then a row per number of ``metrics`` with the ``run`` alone.

        Raises:
            ConfigError: another suffix.
            DataError: it cannot be written.
        """
        path = Path(path)
        _check_suffix(path, "exported as")
        whole = self.read().table(
            "SELECT runs.*, episodes.* EXCLUDE (run) FROM runs LEFT JOIN episodes USING (run) "
            "UNION ALL BY NAME SELECT run, name AS metric, step, value FROM metrics "
            "ORDER BY metric IS NOT NULL, created, run, named, seed, episode_index, metric, step"
        )
        try:
            if path.suffix == ".parquet":
                self._write(path, whole)
            else:
                import pyarrow.csv

                sink = pa.BufferOutputStream()
                pyarrow.csv.write_csv(whole, sink)
                self._write(path, sink.getvalue().to_pybytes())
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror or error}") from None

    def take_in(self, path: str | Path) -> int:
        """Add what another store exported as ``.parquet`` or ``.csv``. Returns how many runs. A page comes when the
        result itself is added.

        Raises:
            ConfigError: another suffix.
            DataError: the file cannot be read, is no export, or was written by a newer manikin.
        """
        whole = _exported(Path(path))
        missing = [name for name in _NEEDED if name not in whole.column_names]
        if missing:
            raise DataError(f"{path} is not an export of results: it lacks {', '.join(missing)}")
        _check_version(whole, path)
        of: dict[str, list[dict[str, Any]]] = {}
        try:
            found = _fitted(whole, _export_schema()).to_pylist()
        except pa.ArrowException as error:
            raise DataError(f"{path} is not an export of results: {error}") from None
        for row in found:
            of.setdefault(str(row["run"]), []).append(row)
        for name, rows in of.items():
            about = next((row for row in rows if row["schema_version"] is not None), None)
            if about is None:
                raise DataError(f"{path} has numbers of the run {name[:8]} and no row that says what it is")
            run = {key: about[key] for key in COLUMNS["runs"] if key not in ("run", "schema_version", "page")}
            keys = [key for key in COLUMNS["episodes"] if key != "run"]
            episodes = [{key: row[key] for key in keys} for row in rows if row["task"] is not None]
            metrics = [
                {"name": row["metric"], "step": row["step"], "value": row["value"]}
                for row in rows
                if row["metric"] is not None
            ]
            self.add(Result(run, episodes, metrics), name)
        return len(of)

    def _file(self, table: str, name: str) -> Path:
        return self.folder / table / f"{name}.parquet"

    def _read(self, table: str) -> pa.Table:
        """All rows of a table of which the run is there, in the present columns."""
        schema, parts = arrow_schema(table), []
        there = {file.name for file in (self.folder / "runs").glob("*.parquet")}
        for file in sorted((self.folder / table).glob("*.parquet")):
            if file.name not in there:
                continue  # its run was not finished
            found = _table(file)
            if table == "runs":
                _check_version(found, file)
            parts.append(_fitted(found, schema))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _write(self, path: Path, content: pa.Table | bytes) -> None:
        """A file that is there whole or not at all, whoever else writes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}")
        try:
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            else:
                pq.write_table(content, temporary, compression="zstd")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


class Tables:
    """The rows of a store when it was read, in memory.

    Args:
        tables: by name.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        import duckdb

        self._connection = duckdb.connect()
        for name, rows in tables.items():
            self._connection.register("read", rows)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read")
            self._connection.unregister("read")
        self._connection.execute("SET enable_external_access = false")

    def runs(self) -> list[dict[str, Any]]:
        """All runs, the newest first."""
        return self.query("SELECT * FROM runs ORDER BY created DESC, run")

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """Rows of a question in SQL about the tables ``runs``, ``episodes`` and ``metrics``.

        Args:
            sql: DuckDB's. It sees the three tables and no file.
            values: for its question marks.

        Raises:
            ConfigError: the question is wrong.
        """
        return list(self.table(sql, values).to_pylist())

    def table(self, sql: str, values: Sequence[Any] = ()) -> pa.Table:
        """As :meth:`query`, as a table of Arrow."""
        import duckdb

        try:
            found = self._connection.sql(sql, params=list(values))
            if found is None:
                raise ConfigError("the store only answers questions: SELECT ...")
            return found.to_arrow_table()
        except duckdb.Error as error:
            columns = "; ".join(f"{table}: {', '.join(of)}" for table, of in COLUMNS.items())
            raise ConfigError(f"the question cannot be answered: {error}\ntables and columns: {columns}") from None


def _export_schema() -> pa.Schema:
    """Of a file with everything: names are unique, so that a number's is called ``metric``."""
    runs, episodes, metrics = (list(arrow_schema(table)) for table in TABLES)
    return pa.schema([*runs, *episodes[1:], pa.field("metric", pa.string()), *metrics[2:]])


def _check_suffix(path: Path, words: str) -> None:
    if path.suffix not in (".parquet", ".csv"):
        raise ConfigError(f"results are {words} .parquet or .csv; not {path.name}")


def _exported(path: Path) -> pa.Table:
    """A file with everything."""
    _check_suffix(path, "imported from")
    if path.suffix == ".parquet":
        return _table(path)
    import pyarrow.csv

    texts = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}  # "" is a text
    try:
        return pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(column_types=_export_schema(), **texts),
        )
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def _check_version(found: pa.Table, place: str | Path) -> None:
    """Refuse rows that a newer manikin wrote."""
    versions = [one for one in found["schema_version"].to_pylist() if one is not None]
    if any(not isinstance(one, int) for one in versions):
        raise DataError(f"{place} is damaged: schema_version holds {versions[0]!r}")
    if max(versions, default=0) > VERSION:
        raise DataError(f"{place} was written by a newer manikin; this one knows version {VERSION} of the store")


def _fitted(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """In the present columns: those that came later are empty."""
    columns: Iterable[Any] = (
        found[name].cast(kind) if name in found.column_names else pa.nulls(len(found), kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    )
    return pa.Table.from_arrays(list(columns), schema=schema)


def _table(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
