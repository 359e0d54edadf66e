"""A certificate for pages on a machine of one's own: browsers give a headset's poses to encrypted pages only."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

from manikin.assets.paths import cache_root, keep
from manikin.errors import ConfigError
from manikin.view.site import is_loopback

__all__ = ["address_in_network", "certificate_for", "encrypted", "fingerprint", "tls_context"]

DAYS = 365
LEFT = 7 * 24 * 3600  # [s] before its end it is made anew
SOMEWHERE = ("192.0.2.1", 9)  # of RFC 5737, where nothing is; nothing is sent there


def address_in_network() -> str:
    """The address by which other machines reach this one; 127.0.0.1 where there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(OSError):
        asking.connect(SOMEWHERE)
        name: str = asking.getsockname()[0]
        return name
    return "127.0.0.1"


def certificate_for(host: str) -> Path:
    """A PEM file with a key and a certificate signed by itself, for pages served on ``host``. It is made once, by the
    command ``openssl``, and kept in ``~/.cache/manikin/certificates``, for its owner alone to read.

    Raises:
        ConfigError: there is no ``openssl``, or it fails, or the folder cannot be written.
    """
    names = sorted({"localhost", "127.0.0.1", socket.gethostname(), _reached(host)})
    key = hashlib.sha256(",".join(names).encode()).hexdigest()[:8]
    path = cache_root() / "certificates" / f"{re.sub('[^0-9A-Za-z.-]', '_', host)}-{key}.pem"
    program = shutil.which("openssl")
    if program is None:
        raise ConfigError(
            "a headset needs an encrypted page beyond this machine, and there is no openssl to make a certificate; "
            "install openssl, give a PEM file of your own with --certificate, or leave out --host and open the page "
            "through a tunnel to localhost"
        )
    if path.is_file() and _run(program, "x509", "-noout", "-checkend", str(LEFT), "-in", str(path)).returncode == 0:
        return path
    try:
        keep(path, lambda partial: _make(program, names, partial))
    except OSError as error:
        raise ConfigError(f"cannot write the certificate {path}: {error}") from None
    return path


def _reached(host: str) -> str:
    return address_in_network() if host in ("0.0.0.0", "::", "") else host


def _make(program: str, names: list[str], partial: Path) -> None:
    """Write key and certificate of these names and addresses."""
    alternatives = ",".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in names)
    certificate = partial.with_suffix(".crt")
    try:
        done = _run(
            *(program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", str(DAYS), "-subj", "/CN=manikin", "-addext", f"subjectAltName={alternatives}"),
            *("-keyout", str(partial), "-out", str(certificate)),
        )
        if done.returncode:
            raise ConfigError(f"openssl made no certificate: {done.stderr.strip().splitlines()[-1:] or ['no reason']}")
        partial.chmod(0o600)
        with partial.open("ab") as file:
            file.write(certificate.read_bytes())
    finally:
        certificate.unlink(missing_ok=True)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def tls_context(path: str | os.PathLike[str]) -> ssl.SSLContext:
    """What encrypts a page, from a PEM file with a key and a certificate.

    Raises:
        ConfigError: it is no such file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(path)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{path} is no PEM file with a key and its certificate: {error}") from None
    return context


def fingerprint(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a certificate as browsers show it: ``AB:CD:...``."""
    text = Path(path).read_text(encoding="ascii", errors="replace")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = text.find(begin)
    if start < 0 or end not in text[start:]:
        raise ConfigError(f"{path} holds no certificate")
    pem = text[start : text.index(end, start) + len(end)]
    return ":".join(f"{byte:02X}" for byte in hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem + "\n")).digest())


def encrypted(host: str, own: Path | None) -> Path | None:
    """The PEM file that a page on ``host`` needs: one's ``own``, else one that is made; None on this machine alone,
    where browsers trust plain HTTP."""
    if own is not None:
        return own
    return None if is_loopback(host) else certificate_for(host)
