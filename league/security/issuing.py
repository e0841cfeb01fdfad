"""Makes the certificates of `league.security.credentials`: for a CA, a server and clients."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from league.errors import AlreadyExists, DataCorrupt, InvalidInput
from league.runs.files import private_folder, write_whole
from league.security.credentials import CA, CLIENT, SERVER

HOSTS = ("localhost", "127.0.0.1", "::1")
VALID = timedelta(days=365)
EARLY = timedelta(hours=1)  # for clocks that are slightly slow
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
_Authority = tuple[x509.Name, ec.EllipticCurvePrivateKey]


def make_folder(folder: Path, hosts: Sequence[str] = (), clients: Sequence[str] = ()) -> list[Path]:
    """Makes missing certificates and returns their files. It never changes existing files.

    Args:
        folder: the folder of certificates.
        hosts: further names and addresses of the server, in addition to this machine's.
        clients: names of clients. Each client gets its own folder inside this folder, ready to be
            handed over.

    Raises:
        AlreadyExists: nothing is missing.
        InvalidInput: a name or an address can't be used.
        DataCorrupt: the CA in the folder can't sign.
    """
    for client in clients:
        if not _CLIENT_NAME.fullmatch(client):
            raise InvalidInput(
                f"{client[:80]!r} can't name a client: up to 64 letters, digits, _ . -"
            )
        if (folder / client / CLIENT).exists():
            raise AlreadyExists(f"{folder / client} is there already: choose another name")
    if hosts and (folder / SERVER).exists():
        raise AlreadyExists(
            f"{folder / SERVER} is there already: remove it and its key to make another"
        )
    names = [_general_name(host) for host in (*HOSTS, socket.gethostname(), *hosts)]
    private_folder(folder)
    made: list[Path] = []
    if not (folder / CA).exists():
        made += _issue(folder / CA, None, "kumite test CA")
    authority = _read_ca(folder)
    if not (folder / SERVER).exists():
        made += _issue(folder / SERVER, authority, "kumite server", names)
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
    file: Path, authority: _Authority | None, name: str, hosts: Sequence[x509.GeneralName] = ()
) -> list[Path]:
    """Writes a certificate and its key.

    Without `authority`, the certificate is for a CA. With `hosts`, it is for a server. Otherwise,
    it is for a client.
    """
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing = authority or (subject, key)
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - EARLY,
        not_valid_after=now + VALID,
    ).add_extension(
        x509.BasicConstraints(ca=authority is None, path_length=None if authority else 0), True
    )
    if authority is None:
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(_SIGNS_CERTIFICATES, True).add_extension(identifier, False)
    else:
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), False)
        builder = builder.add_extension(signer, False)
    if hosts:
        names = x509.SubjectAlternativeName(list(dict.fromkeys(hosts)))
        builder = builder.add_extension(names, False)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    write_whole(file.with_suffix(".key"), private, private=True)
    write_whole(file, builder.sign(signing, hashes.SHA256()).public_bytes(pem))
    return [file, file.with_suffix(".key")]


def _read_ca(folder: Path) -> _Authority:
    try:
        certificate = x509.load_pem_x509_certificate((folder / CA).read_bytes())
        content = (folder / CA).with_suffix(".key").read_bytes()
        key = serialization.load_pem_private_key(content, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("ca.key holds another kind of key")
        if key.public_key() != certificate.public_key():
            raise ValueError("ca.key is another CA's")
    except (OSError, ValueError, TypeError) as error:
        raise DataCorrupt(
            f"the CA in {folder} can't sign ({error}): {CA} and ca.key must belong together; "
            "in an empty folder a new one is made"
        ) from None
    return certificate.subject, key
