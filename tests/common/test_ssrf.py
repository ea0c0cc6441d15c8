"""Which addresses and URLs may be called: the policy, without any network."""

import os
import subprocess
import sys
from ipaddress import ip_address, ip_network

import pytest

from common.net.ssrf import (
    UrlRefused,
    UrlTarget,
    address_problem,
    addresses_problem,
    parse_url_target,
    url_problem,
)
from tests.services import ROOT

PRIVATE = "Must be a public address."
FORM = "Must be an http or https address."
PORT = "The port must be one of 80, 443, 8443."
LOOPBACK = [ip_network("127.0.0.0/8"), ip_network("::1/128")]

NOT_PUBLIC_V4 = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.1.2.3",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.170",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
]
NOT_PUBLIC_V6 = [
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:4:112::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2620:4f:8000::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "168.63.129.17",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2003::1",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
    "2620:fe::fe",
]


@pytest.mark.parametrize("text", [*NOT_PUBLIC_V4, *NOT_PUBLIC_V6])
def test_non_public_addresses_are_refused(text):
    assert address_problem(ip_address(text)) == PRIVATE


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text):
    assert address_problem(ip_address(text)) is None


@pytest.mark.parametrize(
    ("text", "allowed", "problem"),
    [
        ("10.1.2.3", "10.0.0.0/8", None),
        ("::ffff:10.1.2.3", "10.0.0.0/8", None),
        ("10.1.2.3", "::/0", PRIVATE),
        ("fd00::1", "fd00::/8", None),
        ("127.0.0.1", "10.0.0.0/8", PRIVATE),
        ("8.8.8.8", "10.0.0.0/8", None),
    ],
)
def test_allowed_networks(text, allowed, problem):
    assert address_problem(ip_address(text), [ip_network(allowed)]) == problem


@pytest.mark.parametrize(
    ("texts", "port", "problem"),
    [
        (["8.8.8.8"], 443, None),
        (["8.8.8.8"], 22, PORT),
        (["8.8.8.8", "2606:4700:4700::1111"], 80, None),
        (["8.8.8.8", "10.0.0.1"], 80, PRIVATE),
        (["10.0.0.1", "8.8.8.8"], 80, PRIVATE),
        (["127.0.0.1"], 22, None),
        (["127.0.0.1", "::1"], 9000, None),
        (["127.0.0.1", "8.8.8.8"], 80, None),
        (["127.0.0.1", "8.8.8.8"], 22, PORT),
        ([], 22, PORT),
    ],
)
def test_every_address_of_a_host_is_checked(settings, texts, port, problem):
    settings.WEBHOOK_ALLOWED_NETWORKS = LOOPBACK

    assert addresses_problem([ip_address(text) for text in texts], port) == problem


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://example.com", None),
        ("http://example.com/hook?a=b&c=%20#", "May not have a fragment."),
        ("https://example.com/#part", "May not have a fragment."),
        ("HTTPS://EXAMPLE.COM:8443/x", None),
        ("https://example.com./x", None),
        ("https://bücher.example/größe?ä=ö", None),
        ("https://xn--bcher-kva.example/", None),
        ("https://a_b.example/", None),
        ("https://8.8.8.8/", None),
        ("https://134744072/", None),
        ("https://[2606:4700:4700::1111]:443/", None),
        ("https://example.com:0443/", None),
        ("https://example.com:22/", PORT),
        ("https://example.com:0/", FORM),
        ("https://example.com:65536/", FORM),
        ("https://example.com:+80/", FORM),
        ("https://example.com:x/", FORM),
        ("https://user@example.com/", FORM),
        ("https://user:word@example.com/", FORM),
        ("https://example.com@127.0.0.1/", FORM),
        ("https://@example.com/", FORM),
        ("ftp://example.com/", FORM),
        ("file:///etc/passwd", FORM),
        ("gopher://example.com:80/_x", FORM),
        ("//example.com/", FORM),
        ("example.com", FORM),
        ("https:/example.com", FORM),
        ("https://", FORM),
        ("https:///x", FORM),
        ("https://./", FORM),
        ("https://a..b/", FORM),
        ("https://.a/", FORM),
        ("https://-a.example/", FORM),
        ("https://" + "a" * 64 + ".example/", FORM),
        ("https://" + "a." * 127 + "example/", FORM),
        ("https://exa mple.com/", FORM),
        ("https://example.com\\@127.0.0.1/", FORM),
        ("https://example.com/\x00", FORM),
        ("https://example.com/\r\nX: y", FORM),
        ("https://example.com/\x85", FORM),
        ("https://example.com/\u2028", FORM),
        ("https://127%2e0.0.1/", FORM),
        ("https://exa%6dple.com/", FORM),
        ("https://example。com/", None),
        ("https://example.com／x/", FORM),
        ("https://☃.example/", FORM),
        ("https://\ud800.example/", FORM),
        ("https://[::1/", FORM),
        ("https://[::1]x/", FORM),
        ("https://[fe80::1%25eth0]/", FORM),
        ("https://[v1.x]/", FORM),
        ("https://[8.8.8.8]/", FORM),
        ("https://4294967296/", FORM),
        ("https://8.8.8.256/", FORM),
        ("https://1.2.3.4.5/", FORM),
        ("https://0x100000000/", FORM),
        ("https://example.08/", FORM),
        ("https://example.com/" + "x" * 2028, None),
        ("https://example.com/" + "x" * 2029, "Must be at most 2,048 characters."),
        ("https://localhost/", PRIVATE),
        ("https://LOCALHOST./", PRIVATE),
        ("https://a.localhost/", PRIVATE),
        ("https://ⓛocalhost/", PRIVATE),
        ("https://127.0.0.1/", PRIVATE),
        ("https://127.0.0.1./", PRIVATE),
        ("https://127.1/", PRIVATE),
        ("https://127.0.1/", PRIVATE),
        ("https://2130706433/", PRIVATE),
        ("https://017700000001/", PRIVATE),
        ("https://0177.0.0.1/", PRIVATE),
        ("https://0x7f000001/", PRIVATE),
        ("https://0X7F.1/", PRIVATE),
        ("https://0x7f.0.0.0x1/", PRIVATE),
        ("https://0/", PRIVATE),
        ("https://１２７.０.０.１/", PRIVATE),
        ("https://127。0。0。1/", PRIVATE),
        ("https://①②⑦.0.0.1/", PRIVATE),
        ("https://[::]/", PRIVATE),
        ("https://[::ffff:127.0.0.1]/", PRIVATE),
        ("https://[::ffff:7f00:1]/", PRIVATE),
        ("https://[0:0:0:0:0:0:0:1]/", PRIVATE),
        ("https://10.0.0.1:22/", PRIVATE),
    ],
)  # fmt: skip
def test_url_problems(settings, url, problem):
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    settings.WEBHOOK_HTTPS_ONLY = False

    assert url_problem(url) == problem


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://localhost:9000/x", None),
        ("http://127.0.0.1:9000/x", None),
        ("http://[::1]:9000/x", None),
        ("http://receiver.internal:9000/x", None),
        ("http://10.0.0.1:9000/x", PRIVATE),
        ("http://8.8.8.8:9000/x", PORT),
    ],
)
def test_url_problems_with_loopback_allowed(settings, url, problem):
    """A name may turn out to be allowed: only the call knows."""
    settings.WEBHOOK_ALLOWED_NETWORKS = LOOPBACK
    settings.WEBHOOK_HTTPS_ONLY = False

    assert url_problem(url) == problem


def test_https_only_setting(settings):
    settings.WEBHOOK_HTTPS_ONLY = True

    assert url_problem("http://example.com/") == "Must be an https address."
    assert url_problem("https://example.com/") is None


def test_ports_setting(settings):
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    settings.WEBHOOK_PORTS = [443]

    assert url_problem("https://example.com:8443/") == "The port must be one of 443."


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://Example.com", UrlTarget("http", "example.com", 80, "/")),
        (
            "https://Bücher.example:8443/a;b?c=d",
            UrlTarget("https", "xn--bcher-kva.example", 8443, "/a;b?c=d"),
        ),
        ("https://[2606:4700:0::1111]?x", UrlTarget("https", "2606:4700::1111", 443, "/?x")),
    ],
)
def test_target_of_a_url(url, target):
    assert parse_url_target(url) == target


def test_refusal_has_the_error_message():
    with pytest.raises(UrlRefused, match=FORM):
        parse_url_target("mailto:ada@example.com")


def settings_of(*names: str, **environment: str) -> str:
    """What the settings file makes of an environment, or its last word."""
    program = f"from django.conf import settings as s; print(*(getattr(s, n) for n in {names!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "scheduling.settings", **environment},
        capture_output=True,
        text=True,
    )
    return (done.stdout or done.stderr).strip().splitlines()[-1]


OUTBOUND = ("WEBHOOK_ALLOWED_NETWORKS", "WEBHOOK_PORTS", "WEBHOOK_HTTPS_ONLY")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PUBLIC_URL": "http://here.example"}, "[] [80, 443, 8443] False"),
        ({"PUBLIC_URL": "https://here.example"}, "[] [80, 443, 8443] True"),
        (
            {
                "PUBLIC_URL": "https://here.example",
                "WEBHOOK_HTTPS_ONLY": "no",
                "WEBHOOK_PORTS": "443, 9443",
                "WEBHOOK_ALLOWED_NETWORKS": "10.0.0.0/8, ::1/128",
            },
            "[IPv4Network('10.0.0.0/8'), IPv6Network('::1/128')] [443, 9443] False",
        ),
        (
            {"WEBHOOK_ALLOWED_NETWORKS": "10.0.0.1/8"},
            "django.core.exceptions.ImproperlyConfigured: WEBHOOK_ALLOWED_NETWORKS must be"
            " networks such as 10.0.0.0/8: 10.0.0.1/8 has host bits set",
        ),
        (
            {"WEBHOOK_PORTS": "443,web"},
            "django.core.exceptions.ImproperlyConfigured: WEBHOOK_PORTS must be"
            " ports such as 80,443,8443, not ['443', 'web']",
        ),
    ],
)
def test_settings_from_the_environment(environment, said):
    assert settings_of(*OUTBOUND, **environment) == said


def test_short_encryption_keys_are_refused():
    said = settings_of("ENCRYPTION_KEYS", ENCRYPTION_KEYS="x" * 32 + ",short")

    assert said == (
        "django.core.exceptions.ImproperlyConfigured:"
        " ENCRYPTION_KEYS must have at least 32 characters each"
    )
