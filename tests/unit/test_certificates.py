"""Certificates of our own making: good for what they say, for nothing else, and never
overwritten.
"""

from __future__ import annotations

import re
import shutil
import stat
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from league.errors import AlreadyExists, DataCorrupt, InvalidInput
from league.security.credentials import Credentials, read_server
from league.security.issuing import make_folder


def loaded(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "certs"
    make_folder(path, hosts=["league.example", "10.1.2.3"], clients=["bob"])
    return path


def test_the_server_is_verified_for_its_names_alone(folder: Path) -> None:
    store, server = Store([loaded(folder / "ca.pem")]), loaded(folder / "server.pem")
    for name in (
        x509.DNSName("league.example"),
        x509.DNSName("localhost"),
        x509.IPAddress(ip_address("127.0.0.1")),
        x509.IPAddress(ip_address("::1")),
        x509.IPAddress(ip_address("10.1.2.3")),
    ):
        PolicyBuilder().store(store).build_server_verifier(name).verify(server, [])
    for name in (x509.DNSName("other.example"), x509.IPAddress(ip_address("10.1.2.4"))):
        with pytest.raises(VerificationError):
            PolicyBuilder().store(store).build_server_verifier(name).verify(server, [])


def test_a_clients_certificate_is_no_servers(folder: Path) -> None:
    for path, name in (
        (folder / "client.pem", "kumite client"),
        (folder / "bob" / "client.pem", "bob"),
    ):
        certificate = loaded(path)
        certificate.verify_directly_issued_by(loaded(folder / "ca.pem"))
        (purpose,) = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert purpose == ExtendedKeyUsageOID.CLIENT_AUTH
        assert certificate.subject.rfc4514_string() == f"CN={name}"
        assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_keys_are_their_owners_and_the_cas_is_not_handed_on(folder: Path) -> None:
    keys = sorted(folder.rglob("*.key"))
    assert [str(path.relative_to(folder)) for path in keys] == [
        "bob/client.key",
        "ca.key",
        "client.key",
        "server.key",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}
    assert (folder / "bob" / "ca.pem").read_bytes() == (folder / "ca.pem").read_bytes()
    read_server(folder, mutual=True)
    Credentials(tls=folder / "bob").channel("127.0.0.1:1").close()


def test_nothing_that_is_there_is_changed(folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(folder, tmp_path / "certs")
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    with pytest.raises(AlreadyExists, match=str(folder)):
        make_folder(folder)
    with pytest.raises(AlreadyExists, match="bob"):
        make_folder(folder, clients=["bob"])
    with pytest.raises(AlreadyExists, match=r"server\.pem"):
        make_folder(folder, hosts=["other.example"])
    made = make_folder(folder, clients=["eve"])
    assert {path.parent.name for path in made} == {"eve"}
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"hosts": ["https://league"]},
        {"hosts": ["a b"]},
        {"clients": ["../bob"]},
        {"clients": [""]},
        {"clients": [".."]},
    ],
)
def test_what_can_not_be_certified_is_told(tmp_path: Path, arguments: dict[str, list[str]]) -> None:
    ((name,),) = arguments.values()
    with pytest.raises(InvalidInput, match=re.escape(repr(name))):
        make_folder(tmp_path / "certs", **arguments)  # type: ignore[arg-type]


def test_a_ca_without_its_key_signs_nothing(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataCorrupt, match="bob"):
        make_folder(folder / "bob", clients=["carl"])
    make_folder(tmp_path / "other")
    (tmp_path / "other" / "ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    with pytest.raises(DataCorrupt, match=r"ca\.key"):
        make_folder(tmp_path / "other", clients=["carl"])
