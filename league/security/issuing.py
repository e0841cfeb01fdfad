"""Makes the certificates of `league.security.certificates`: a CA, a server's, clients'."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from league.errors import AlreadyExists, DataCorrupt, InvalidInput
from league.runs.files import write_whole
from league.security.certificates import CA, CA_KEY, CLIENT, SERVER, SERVER_KEY

HOSTS = ("localhost", "127.0.0.1", "::1")
DAYS = 365
MOST_DAYS = 825  # the longest that some systems accept of a server
EARLY = timedelta(hours=1)  # for clocks that are a little late
_CLIENT_NAME = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.-]{1,64}")
_UNUSED = (
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "encipher_only",
    "decipher_only",
)
"""Uses of a key that no certificate here has."""
_HOST = re.compile(r"[A-Za-z0-9_.*-]{1,253}")


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
    _make(folder)
    made: list[Path] = []
    if not (folder / CA).exists():
        made += _issue(folder, "ca", "kumite test CA", days)
    if not (folder / SERVER).exists():
        made += _issue(folder, "server", "kumite server", days, folder, names)
    elif hosts:
        raise AlreadyExists(
            f"{folder / SERVER} is there already: remove it and {SERVER_KEY} to make another"
        )
    if not (folder / CLIENT).exists():
        made += _issue(folder, "client", "kumite client", days, folder)
    for client in clients:
        _make(folder / client)
        write_whole(folder / client / CA, (folder / CA).read_bytes())
        made += [folder / client / CA, *_issue(folder / client, "client", client, days, folder)]
    if not made:
        raise AlreadyExists(
            f"{folder} holds all certificates already: --client NAME adds one for a client"
        )
    return made


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder} can't be made ({error.strerror}): name another folder"
        ) from None


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
    folder: Path,
    stem: str,
    name: str,
    days: int,
    ca_folder: Path | None = None,
    hosts: Sequence[x509.GeneralName] = (),
) -> list[Path]:
    """Writes STEM.pem and STEM.key: a CA's without `ca_folder`, a server's with `hosts`, else a
    client's.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    is_ca = ca_folder is None
    issuer, ca_key = (subject, key) if ca_folder is None else _read_ca(ca_folder)
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=not is_ca,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        **dict.fromkeys(_UNUSED, False),
    )
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), True),
        (usage, True),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
    ]
    if not is_ca:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        extensions += [
            (x509.ExtendedKeyUsage([purpose]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False),
        ]
    if hosts:
        extensions.append((x509.SubjectAlternativeName(list(dict.fromkeys(hosts))), False))
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - EARLY,
        not_valid_after=now + timedelta(days=days),
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    certificate = builder.sign(ca_key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files = folder / f"{stem}.pem", folder / f"{stem}.key"
    write_whole(files[1], private, private=True)
    write_whole(files[0], certificate.public_bytes(pem))
    return list(files)


def _read_ca(folder: Path) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    """The CA's name and key."""
    try:
        certificate = x509.load_pem_x509_certificate((folder / CA).read_bytes())
        key = serialization.load_pem_private_key((folder / CA_KEY).read_bytes(), password=None)
        certificate.verify_directly_issued_by(certificate)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{CA_KEY} holds another kind of key")
        if key.public_key() != certificate.public_key():
            raise ValueError(f"{CA_KEY} is another CA's")
    except (OSError, ValueError, TypeError, InvalidSignature) as error:
        raise DataCorrupt(
            f"the CA in {folder} can't sign ({error}): {CA} and {CA_KEY} must belong together; "
            "in an empty folder a new one is made"
        ) from None
    return certificate.subject, key
