"""Where packages lie: a folder, a web server, or a repository of the Hugging Face hub."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from manikin.data.recording.durable import replace_file
from manikin.errors import AssetError, ConfigError, DataError

__all__ = ["INDEX", "KEY", "FolderShelf", "HubShelf", "Shelf", "WebShelf", "shelf_of"]

KEY = "MANIKIN_DEMOS_KEY"
"""Environment variable with the key that a web server asks for."""
INDEX = "index.json"
SMALL = 2**20  # [bytes] of a manifest or an index
TIMEOUT = 60.0  # [s] without a byte
_CHUNK = 2**20


class Shelf(Protocol):
    """Files by path. A path has forward slashes, and was checked by who asks."""

    def names(self) -> list[str] | None:
        """Names of the packages, sorted; None where the place keeps an index in a file."""

    def read(self, path: str) -> bytes:
        """A small file. Raises :class:`AssetError` where there is none."""

    def fetch(self, path: str, to: Path, size: int) -> None:
        """Write a file of ``size`` bytes to ``to``; of a longer one no more than that and a byte is read."""

    def store(self, path: str, source: Path | bytes) -> None:
        """Put a file there, replacing one of that path."""


def shelf_of(word: str) -> Shelf:
    """The place that a word names: ``https://host/shelf``, ``hf://USER/REPO``, or a folder.

    Raises:
        ConfigError: another kind of address, or huggingface_hub is not installed.
    """
    scheme, mark, rest = word.partition("://")
    if not mark:
        return FolderShelf(Path(word).expanduser())
    if scheme in ("http", "https"):
        return WebShelf(word)
    if scheme == "hf":
        return HubShelf(rest)
    raise ConfigError(f"{word!r} is no place for packages: give a folder, http://, https:// or hf://USER/REPO")


@contextmanager
def _writing(to: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {to}: {error.strerror or error}") from None


class FolderShelf:
    """A folder, which may lie on a shared disk, or be served by any web server as it is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        return sorted(path.parent.name for path in self.root.glob("*/manifest.json"))

    def read(self, path: str) -> bytes:
        try:
            with (self.root / path).open("rb") as file:
                return _small(file.read(SMALL + 1), str(self.root / path))
        except OSError as error:
            raise AssetError(f"cannot read {self.root / path}: {error.strerror}") from None

    def fetch(self, path: str, to: Path, size: int) -> None:
        try:
            with (self.root / path).open("rb") as source, _writing(str(to)), to.open("wb") as target:
                _copy(source, target, size)
        except FileNotFoundError:
            raise AssetError(f"{self.root / path} is not there") from None

    def store(self, path: str, source: Path | bytes) -> None:
        target = self.root / path
        with _writing(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                replace_file(target, source)
            else:
                temporary = target.with_name(target.name + ".part")
                shutil.copyfile(source, temporary)
                os.replace(temporary, target)


class WebShelf:
    """A web server: files by GET, and by PUT where it takes them. With MANIKIN_DEMOS_KEY set, requests carry that key.

    Raises:
        ConfigError: a key would go over an unencrypted connection to another machine.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        parts = urllib.parse.urlsplit(self.address)
        self.key = os.environ.get(KEY, "")
        if self.key and parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise ConfigError(f"{KEY} would be readable on the way to {parts.hostname}: use https://")

    def names(self) -> None:
        return None

    def read(self, path: str) -> bytes:
        with self._open(path) as answer:
            return _small(answer.read(SMALL + 1), f"{self.address}/{path}")

    def fetch(self, path: str, to: Path, size: int) -> None:
        with self._open(path) as answer, _writing(str(to)), to.open("wb") as target:
            _copy(answer, target, size)

    def store(self, path: str, source: Path | bytes) -> None:
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        if isinstance(source, bytes):
            with self._open(path, data=source, size=size):
                return
        with source.open("rb") as file, self._open(path, data=file, size=size):
            return

    def _open(self, path: str, data: Any = None, size: int = 0) -> Any:
        address = f"{self.address}/{urllib.parse.quote(path)}"
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if data is not None:
            headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        method = "GET" if data is None else "PUT"
        request = urllib.request.Request(address, data=data, headers=headers, method=method)
        try:
            return _OPENER.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                kind = AssetError if method == "GET" else DataError
                raise kind(f"{method} {address}: the server answers {error.code} {error.reason}") from None
        except OSError as error:
            raise AssetError(f"{method} {address}: {getattr(error, 'reason', error)}") from None


class _StayHere(urllib.request.HTTPRedirectHandler):
    """A redirect may not lead to another host: the key would go there."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            raise urllib.error.HTTPError(req.full_url, code, f"it leads to {new.scheme}://{new.netloc}", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_StayHere)


class HubShelf:
    """A dataset repository of the Hugging Face hub, with the login of ``hf auth login``; ``USER/REPO`` or
    ``USER/REPO@REVISION``.

    Raises:
        ConfigError: huggingface_hub is not installed.
    """

    def __init__(self, repository: str) -> None:
        try:
            import huggingface_hub
        except ImportError:
            raise ConfigError("hf:// needs the hub's library: pip install huggingface_hub") from None
        self.repository, _, revision = repository.partition("@")
        self.revision = revision or None
        self.hub: Any = huggingface_hub

    def names(self) -> list[str]:
        files = self._asked(self.hub.list_repo_files, self.repository, repo_type="dataset", revision=self.revision)
        return sorted(file.split("/")[0] for file in files if file.count("/") == 1 and file.endswith("/manifest.json"))

    def read(self, path: str) -> bytes:
        with Path(self._download(path)).open("rb") as file:
            return _small(file.read(SMALL + 1), f"hf://{self.repository}/{path}")

    def fetch(self, path: str, to: Path, size: int) -> None:
        with Path(self._download(path)).open("rb") as source, _writing(str(to)), to.open("wb") as target:
            _copy(source, target, size)

    def store(self, path: str, source: Path | bytes) -> None:
        self._asked(
            self.hub.upload_file,
            path_or_fileobj=source if isinstance(source, bytes) else str(source),
            path_in_repo=path,
            repo_id=self.repository,
            repo_type="dataset",
            revision=self.revision,
        )

    def _download(self, path: str) -> str:
        found = self._asked(
            self.hub.hf_hub_download, self.repository, path, repo_type="dataset", revision=self.revision
        )
        return str(found)

    def _asked(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # the hub's library has errors of its own, and of those below it
            raise AssetError(f"hf://{self.repository}: {type(error).__name__}: {error}") from error


def _small(content: bytes, where: str) -> bytes:
    if len(content) > SMALL:
        raise DataError(f"{where} is larger than {SMALL} bytes")
    return content


def _copy(source: Any, target: Any, size: int) -> None:
    """At most ``size`` bytes and one more, by which a longer file is told."""
    left = size + 1
    while left and (part := source.read(min(_CHUNK, left))):
        target.write(part)
        left -= len(part)
