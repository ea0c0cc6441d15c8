"""URLs by which somebody might reach what is not public, made from tables.

`python -m tests.common.hostile_servers` writes them to hostile_urls.txt, one a line:

    kind         what the name resolves to, look-up by look-up   the URL (+ where it redirects to)
"""

from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

from tests.common.test_ssrf import NOT_PUBLIC_V4, NOT_PUBLIC_V6

CORPUS = Path(__file__).with_name("hostile_urls.txt")
PUBLIC = "93.184.216.34"
REDIRECTS = (301, 302, 303, 307, 308)
SPELLED = ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0", "168.63.129.16")
TARGETS = (
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://localhost:8000/admin/",
    "https://good.example/",
    "//10.0.0.1/",
)
FORMS = """
http://localhost/ http://LOCALHOST/ http://localhost./ http://a.localhost/ http://ⓛocalhost/
http://localhost:22/ https://localhost:6379/ http://good.example@127.0.0.1/
http://127.0.0.1@good.example/ http://good.example:80@127.0.0.1/ http://127.0.0.1#good.example/
http://127.0.0.1\\@good.example/ http://good.example\\@127.0.0.1/ http://127%2e0%2e0%2e1/
http://%31%32%37.0.0.1/ http://[::1%25lo]/ http://[fe80::1%25eth0]/ http://[::1]good.example/
http://[127.0.0.1]/ http://127.0.0.1:80:80/ http://good.example:22/ http://good.example:25/
http://good.example:3306/ http://good.example:5432/ http://good.example:6379/
http://good.example:11211/ http://good.example:0/ http://good.example:65616/
file:///etc/passwd gopher://127.0.0.1:6379/_INFO ftp://127.0.0.1/ dict://127.0.0.1:11211/stat
ldap://127.0.0.1/ unix:/var/run/docker.sock http+unix://%2Fvar%2Frun%2Fdocker.sock/ http:///x
http:127.0.0.1 //127.0.0.1/ http://4294967296/ http://0x100000000/ http://127.0.0.256/
http://0x7f.1.2.3.4/ http:// http://./ http://..127.0.0.1/
"""


class Case(NamedTuple):
    kind: str
    url: str
    lookups: tuple[tuple[str, ...], ...] = ()  # the answers of each look-up of the name
    location: str = ""

    @property
    def line(self) -> str:
        answers = " then ".join(",".join(answer) for answer in self.lookups) or "-"
        return f"{self.kind:<13}{answers:<52}{self.url}{self.location and f'  ->  {self.location}'}"


def in_brackets(text: str) -> str:
    return f"[{text}]" if ":" in text else text


def spellings(text: str) -> Iterator[str]:
    """Other ways to write an IPv4 address that some resolver or library reads."""
    number = int(IPv4Address(text))
    parts = [int(part) for part in text.split(".")]
    first, rest = parts[0], number & 0xFFFFFF
    yield str(number)
    yield f"{number:#x}"
    yield f"{number:#X}"
    yield f"0{number:o}"
    yield ".".join(f"0{part:o}" for part in parts)
    yield ".".join(f"{part:#x}" for part in parts)
    yield ".".join(f"{part:04o}" for part in parts)
    yield f"{first}.{rest}"
    yield f"{first:#x}.{rest}"
    yield f"{first}.{parts[1]}.{number & 0xFFFF}"
    yield f"{text}."
    yield text.translate({ord(str(digit)): ord("０") + digit for digit in range(10)})
    yield text.replace(".", "。")
    yield text.replace(".", "．")
    yield text.replace(".", "%2e")
    yield f"[::ffff:{text}]"
    yield f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]"
    yield f"[::{text}]"
    yield f"[64:ff9b::{text}]"
    yield f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]"


def cases() -> Iterator[Case]:
    not_public = [*NOT_PUBLIC_V4, *NOT_PUBLIC_V6]
    for text in not_public:
        for scheme, port in (("http", ""), ("https", ""), ("http", ":8443"), ("http", ":8080")):
            yield Case("literal", f"{scheme}://{in_brackets(text)}{port}/")
    for text in SPELLED:
        for spelling in spellings(text):
            yield Case("spelling", f"http://{spelling}/")
    for form in FORMS.split():
        yield Case("form", form, ((PUBLIC,),))
    for text in not_public:
        yield Case("name", "http://evil.example/", ((text,),))
        yield Case("mixed", "http://evil.example/", ((PUBLIC, text),))
        yield Case("mixed", "https://evil.example/", ((text, PUBLIC),))
    for text in not_public:
        yield Case("rebinding", "http://evil.example/", ((PUBLIC,), (text,)))
    for status in REDIRECTS:
        for location in TARGETS:
            yield Case(f"redirect {status}", "http://evil.example/", ((PUBLIC,),), location)


def corpus() -> str:
    return "".join(f"{case.line}\n" for case in cases())


if __name__ == "__main__":
    CORPUS.write_text(corpus())
