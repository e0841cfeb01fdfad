"""Makes the certificates of `league.security.certificates`: a CA, a server's, clients'."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from league.errors import AlreadyExists, DataCorrupt, InvalidInput
from league.runs.files import private_folder, write_whole
from league.security.certificates import CA, CA_KEY, CLIENT, SERVER, SERVER_KEY

HOSTS = ("localhost", "127.0.0.1", "::1")
DAYS = 365
MOST_DAYS = 825  # the longest that some systems accept of a server
EARLY = timedelta(hours=1)  # for clocks that are a little late
_CLIENT_NAME = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.-]{1,64}")
_HOST = re.compile(r"[A-Za-z0-9_.*-]{1,253}")
_SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class _Authority(NamedTuple):
    """Who signs: its name, its key, and for how many days."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    days: int


def make_folder(
    folder: Path, hosts: Sequence[str] = (), clients: Sequence[str] = (), days: int = DAYS
) -> list[Path]:
    """Makes what is missing in `folder` and returns what it made; never changes what is there.

    Args:
        hosts: further names and addresses of the server, next to those of this machine.
        clients: each gets a folder inside, ready to be handed over.
        days: for how long the certificates hold.

    Raises:
        AlreadyExists: nothing is missing.
        InvalidInput: a name, an address or a number of days that can't be used.
        DataCorrupt: the CA in the folder can't sign.
    """
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"certificates can't hold for {days} days: from 1 to {MOST_DAYS}")
    for client in clients:
        if not _CLIENT_NAME.fullmatch(client):
            raise InvalidInput(
                f"{client[:80]!r} can't name a client: up to 64 letters, digits, _ . -"
            )
        if (folder / client / CLIENT).exists():
            raise AlreadyExists(f"{folder / client} is there already: choose another name")
    names = [_general_name(host) for host in (*HOSTS, socket.gethostname(), *hosts)]
    private_folder(folder)
    made: list[Path] = []
    if not (folder / CA).exists():
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("kumite test CA")
        made += _issue(folder / CA, _Authority(name, key, days), "kumite test CA", None, key)
    authority = _read_ca(folder, days)
    if not (folder / SERVER).exists():
        made += _issue(folder / SERVER, authority, "kumite server", names)
    elif hosts:
        raise AlreadyExists(
            f"{folder / SERVER} is there already: remove it and {SERVER_KEY} to make another"
        )
    if not (folder / CLIENT).exists():
        made += _issue(folder / CLIENT, authority, "kumite client")
    for client in clients:
        private_folder(folder / client)
        write_whole(folder / client / CA, (folder / CA).read_bytes())
        made += [folder / client / CA, *_issue(folder / client / CLIENT, authority, client)]
    if not made:
        raise AlreadyExists(
            f"{folder} holds all certificates already: --client NAME adds one for a client"
        )
    return made


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        if _HOST.fullmatch(host):
            return x509.DNSName(host)
    raise InvalidInput(
        f"{host[:80]!r} is no name or address of a machine: leave port and scheme out"
    )


def _issue(
    file: Path,
    authority: _Authority,
    name: str,
    hosts: Sequence[x509.GeneralName] | None = (),
    key: ec.EllipticCurvePrivateKey | None = None,
) -> list[Path]:
    """Writes a certificate and its key: a server's with `hosts`, a CA's with None, a client's."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    signer, now = authority.key.public_key(), datetime.now(UTC)
    extensions: list[tuple[x509.ExtensionType, bool]]
    if hosts is None:
        extensions = [
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (_SIGNS_CERTIFICATES, True),
            (x509.SubjectKeyIdentifier.from_public_key(signer), False),
        ]
    else:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        extensions = [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.ExtendedKeyUsage([purpose]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), False),
        ]
    if hosts:
        extensions.append((x509.SubjectAlternativeName(list(dict.fromkeys(hosts))), False))
    builder = x509.CertificateBuilder(
        issuer_name=authority.name,
        subject_name=_name(name),
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - EARLY,
        not_valid_after=now + timedelta(days=authority.days),
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    write_whole(file.with_suffix(".key"), private, private=True)
    write_whole(file, builder.sign(authority.key, hashes.SHA256()).public_bytes(pem))
    return [file, file.with_suffix(".key")]


def _read_ca(folder: Path, days: int) -> _Authority:
    try:
        certificate = x509.load_pem_x509_certificate((folder / CA).read_bytes())
        key = serialization.load_pem_private_key((folder / CA_KEY).read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{CA_KEY} holds another kind of key")
        if key.public_key() != certificate.public_key():
            raise ValueError(f"{CA_KEY} is another CA's")
    except (OSError, ValueError, TypeError) as error:
        raise DataCorrupt(
            f"the CA in {folder} can't sign ({error}): {CA} and {CA_KEY} must belong together; "
            "in an empty folder a new one is made"
        ) from None
    return _Authority(certificate.subject, key, days)
