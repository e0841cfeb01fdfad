"""Makes the certificates of `league.security.certificates`: a CA, a server's, clients'."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from league.errors import AlreadyExists, DataCorrupt, InvalidInput
from league.runs.files import write_whole
from league.security.certificates import CA, CA_KEY, CLIENT, CLIENT_KEY, SERVER, SERVER_KEY

HOSTS = ("localhost", "127.0.0.1", "::1")
DAYS = 365
MOST_DAYS = 825  # what some systems take from a server at the most
EARLY = timedelta(hours=1)  # for clocks that go a little behind
Issuer = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def make_folder(
    folder: Path, hosts: Sequence[str] = (), clients: Sequence[str] = (), days: int = DAYS
) -> list[Path]:
    """Makes what is missing in `folder` and returns what it made; never changes what is there.

    Args:
        hosts: names and addresses that the server is reached by, beside those of this machine.
        clients: each gets a folder of its own inside, ready to be handed over.
        days: for how long the certificates hold.

    Raises:
        AlreadyExists: nothing is missing.
        InvalidInput: a name, an address or a number of days that can't be used.
        DataCorrupt: the CA that is there can't be read.
    """
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"certificates can't hold for {days} days: from 1 to {MOST_DAYS}")
    _make(folder)
    made: list[Path] = []
    if not (folder / CA).exists():
        made += _issue_ca(folder, days)
    issuer = _read_issuer(folder)
    if not (folder / SERVER).exists():
        names = [*dict.fromkeys([*HOSTS, socket.gethostname(), *hosts])]
        made += _issue(issuer, folder, (SERVER, SERVER_KEY), "kumite server", names, days)
    elif hosts:
        raise AlreadyExists(
            f"{folder / SERVER} is there already: remove it and {SERVER_KEY} to make another"
        )
    if not (folder / CLIENT).exists():
        made += _issue(issuer, folder, (CLIENT, CLIENT_KEY), "kumite client", [], days)
    for name in clients:
        made += _issue_for(issuer, folder / _folder_name(name), name, days)
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


def _folder_name(name: str) -> str:
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not (0 < len(name) <= 64 and plain.isalnum() and name.isascii()):
        raise InvalidInput(f"{name[:80]!r} can't name a client: up to 64 letters, digits, _ . -")
    return name


def _issue_for(issuer: Issuer, folder: Path, name: str, days: int) -> list[Path]:
    if (folder / CLIENT).exists():
        raise AlreadyExists(f"{folder} is there already: choose another name for the client")
    _make(folder)
    write_whole(folder / CA, _pem(issuer[0]))
    return [folder / CA, *_issue(issuer, folder, (CLIENT, CLIENT_KEY), name, [], days)]


def _issue_ca(folder: Path, days: int) -> list[Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("kumite test CA")
    builder = (
        _builder(name, name, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return _write(folder, (CA, CA_KEY), builder.sign(key, hashes.SHA256()), key)


def _issue(
    issuer: Issuer, folder: Path, files: tuple[str, str], name: str, hosts: Iterable[str], days: int
) -> list[Path]:
    """A server's certificate where there are hosts, else a client's."""
    ca, ca_key = issuer
    key = ec.generate_private_key(ec.SECP256R1())
    names = [_general_name(host) for host in hosts]
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(_name(name), ca.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _write(folder, files, builder.sign(ca_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host.strip("[]")))
    except ValueError:
        pass
    if (
        not host.isascii()
        or not 0 < len(host) <= 253
        or any(c.isspace() or c in ":/" for c in host)
    ):
        raise InvalidInput(
            f"{host[:80]!r} is no name or address of a machine: leave port and scheme out"
        )
    return x509.DNSName(host)


def _write(
    folder: Path,
    files: tuple[str, str],
    certificate: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
) -> list[Path]:
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_whole(folder / files[1], text, private=True)
    write_whole(folder / files[0], _pem(certificate))
    return [folder / name for name in files]


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _read_issuer(folder: Path) -> Issuer:
    try:
        certificate = x509.load_pem_x509_certificate((folder / CA).read_bytes())
        key = serialization.load_pem_private_key((folder / CA_KEY).read_bytes(), password=None)
        certificate.verify_directly_issued_by(certificate)
    except (OSError, ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm) as error:
        raise DataCorrupt(
            f"the CA in {folder} can't sign ({error}): {CA} and {CA_KEY} must belong together; in an empty "
            f"folder a new one is made"
        ) from None
    if (
        not isinstance(key, ec.EllipticCurvePrivateKey)
        or key.public_key() != certificate.public_key()
    ):
        raise DataCorrupt(f"{CA_KEY} in {folder} is not the key of {CA}: bring the right one back")
    return certificate, key
