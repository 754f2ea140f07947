"""The machine's certificates as a Java trust store, for a Java that did not come with the machine.

The runtime from PyPI trusts the public authorities of its day and no company's own; Python trusts
what the machine trusts. The format is JKS: a header, the certificates, a keyed SHA-1 over both.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

PASSWORD = "changeit"  # Java's own customary one: the file holds public certificates only
MAGIC, VERSION, TRUSTED = 0xFEEDFEED, 2, 2


def trust_options(folder: Path) -> tuple[str, ...]:
    """The options that make Java trust what this machine trusts; none when nothing is known."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return ()
    store = folder / "trust.jks"
    store.write_bytes(trust_store(certificates))
    return (
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    )


def trust_store(certificates: Sequence[bytes]) -> bytes:
    """A JKS trust store of DER certificates."""
    body = struct.pack(">III", MAGIC, VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", TRUSTED) + _text(str(number)) + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    keyed = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(keyed, usedforsecurity=False).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
