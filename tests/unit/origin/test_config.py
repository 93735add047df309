"""The configurations, as checked by nginx and dnsmasq themselves."""

import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from mplab.base.browser.chromium import nss_database
from mplab.base.programs import CERTUTIL, DNSMASQ, NGINX
from mplab.drivers.origin.certificates import LabAuthority
from mplab.drivers.origin.config import dnsmasq_conf, nginx_argv, nginx_conf, records, version_tuple
from mplab.drivers.origin.origin import Origin
from mplab.format.sites import SiteIndex


def render(index: SiteIndex, certificates: dict[str, Path], version: str) -> str:
    return nginx_conf(
        prefix=Path("/prefix"),
        index=index,
        files=Path("/cache/files"),
        certificates=certificates,
        version=version,
    )


@pytest.mark.parametrize("version", ["1.18.0", "1.22.1", "1.25.0"])
def test_old_nginx_switches_http2_by_listen(index: SiteIndex, certificates: dict[str, Path], version: str) -> None:
    text = render(index, certificates, version)
    assert text.count("listen 0.0.0.0:443 ssl http2;") == 100
    assert "http2 on;" not in text


@pytest.mark.parametrize("version", ["1.25.1", "1.26.0", "1.28.0"])
def test_new_nginx_switches_http2_by_directive(index: SiteIndex, certificates: dict[str, Path], version: str) -> None:
    text = render(index, certificates, version)
    assert text.count("http2 on;") == 100
    assert "ssl http2;" not in text


def test_http1_hosts_have_addresses_without_http2(index: SiteIndex, certificates: dict[str, Path]) -> None:
    text = render(index, certificates, "1.22.1")
    assert "listen 10.65.10.129:443 ssl;" in text
    assert "listen 10.65.42.228:443 ssl;" in text
    assert text.count(":443 ssl;") == 2 * sum(len(site.hosts) for site in index) + 2 * 25


def test_nginx_writes_below_its_prefix_alone(index: SiteIndex, certificates: dict[str, Path]) -> None:
    text = render(index, certificates, "1.22.1")
    for directive in ("pid", "error_log", "access_log", "client_body_temp_path", "proxy_temp_path"):
        assert f"{directive} /prefix/" in text


def test_early_errors_of_nginx_go_to_the_prefix_where_it_can() -> None:
    assert "-e" not in nginx_argv("/usr/sbin/nginx", Path("/prefix"), "1.18.0")
    assert "-e" in nginx_argv("/usr/sbin/nginx", Path("/prefix"), "1.22.1")
    assert version_tuple("1.22.1-9+deb12u3") == (1, 22, 1)


def test_every_name_of_the_lab_is_in_the_dns(index: SiteIndex) -> None:
    pairs = dict(records(index))
    assert pairs["dl.lab"] == "10.65.0.2"
    assert pairs["dl.lab"] == pairs["video.lab"] == pairs["store.lab"] == pairs["messages.lab"]
    assert pairs["echo.lab"] == "10.65.0.7"
    assert pairs["img1.wiki.h1.lab"] == "10.65.10.131"
    text = dnsmasq_conf(index)
    assert text.count("host-record=") == len(pairs) == 5 + 8 * sum(len(site.hosts) for site in index)


@pytest.mark.skipif(NGINX.find() is None or DNSMASQ.find() is None, reason="nginx or dnsmasq is missing")
def test_both_programs_accept_their_configuration(tmp_path: Path, cache: Path) -> None:
    origin = Origin(tmp_path, cache=cache)
    origin.prepare()
    for name, argv in origin.checks().items():
        result = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{name}: {result.stderr}"
        assert "warn" not in result.stderr


def test_before_prepare_there_is_nothing_to_ask_for(tmp_path: Path) -> None:
    origin = Origin(tmp_path)
    with pytest.raises(RuntimeError, match="prepare"):
        _ = origin.index
    with pytest.raises(RuntimeError, match="prepare"):
        _ = origin.ca_pem


def test_certificates_are_for_a_month_and_all_hosts(tmp_path: Path) -> None:
    path = LabAuthority(tmp_path).issue("wiki", ["*.wiki.lab", "*.wiki.h1.lab"])
    certificate = x509.load_pem_x509_certificates(path.read_bytes())[0]
    names = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    assert isinstance(names, x509.SubjectAlternativeName)
    assert names.get_values_for_type(x509.DNSName) == ["*.wiki.lab", "*.wiki.h1.lab"]
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days == 31
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(CERTUTIL.find() is None, reason="certutil is missing")
def test_the_browser_database_trusts_the_authority(tmp_path: Path) -> None:
    authority = LabAuthority(tmp_path / "certificates")
    database = nss_database(tmp_path / "home" / ".pki" / "nssdb", authority.ca_pem)
    listed = subprocess.run(
        [str(CERTUTIL.path()), "-L", "-d", f"sql:{database}"], capture_output=True, text=True, check=True
    )
    assert "mplab lab authority" in listed.stdout
    assert "C,," in listed.stdout
