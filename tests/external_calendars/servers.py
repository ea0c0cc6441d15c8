"""Real CalDAV servers for tests, each a process of its own behind a Front: Radicale, Xandikos, and
Cyrus (Debian's `cyrus-caldav`), the only one that carries invitations and answers to other users.

Our calls go to the Front (`server.url`), where they are counted and may be answered otherwise;
"another client" speaks to the server behind it, and is not counted.
"""

import contextlib
import grp
import imaplib
import itertools
import os
import pwd
import shutil
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import requests
from dulwich import porcelain

from external_calendars.providers.base import CalendarAccess
from tests.external_calendars.front import Front
from tests.services import Server, free_port, unprivileged_user

PASSWORD = "correct horse"
READER = "reader"  # on Radicale: may read what others have, and write nothing there
MKCALENDAR = """<?xml version="1.0" encoding="utf-8"?>
<C:mkcalendar xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><set><prop>
<displayname>{name}</displayname>
<C:supported-calendar-component-set>{kinds}</C:supported-calendar-component-set>
</prop></set></C:mkcalendar>"""

RADICALE_CONFIG = """
[server]
hosts = 127.0.0.1:{port}
[auth]
type = htpasswd
htpasswd_filename = {folder}/users
htpasswd_encryption = plain
delay = 0
[rights]
type = from_file
file = {folder}/rights
[storage]
filesystem_folder = {folder}/store
# Of files, whose age is real where TEST_CLOCK shifts the time.
max_sync_token_age = 3153600000
[logging]
level = warning
"""
# Like owner_only, and one that reads.
RADICALE_RIGHTS = """
[root]
user: .+
collection:
permissions: R
[reader]
user: reader
collection: [^/]+(/[^/]+)?
permissions: Rr
[principal]
user: .+
collection: {user}
permissions: RW
[calendars]
user: .+
collection: {user}/[^/]+
permissions: rw
"""


CYRUS = "/usr/lib/cyrus/bin/{}"
CYRUS_DOMAIN = "cyrus.example"
CYRUS_SETTINGS = """
configdirectory: {folder}/conf
defaultpartition: default
partition-default: {folder}/mail
proc_path: {folder}/proc
mboxname_lockpath: {folder}/lock
idlesocket: {folder}/idle
notifysocket: {folder}/notify
lmtpsocket: {folder}/lmtp
cyrus_user: {user}
cyrus_group: {group}
admins: {admin}
servername: {domain}
calendar_user_address_set: {domain}
virtdomains: off
unixhierarchysep: on
altnamespace: on
httpmodules: caldav
caldav_create_default: no
allowplaintext: yes
sasl_mech_list: PLAIN
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: {folder}/passwords
"""
# The services get the file by name: without it they read /etc/imapd.conf.
CYRUS_SERVICES = """
START {{
recover cmd="ctl_cyrusdb -C {settings} -r"
}}
SERVICES {{
imap cmd="imapd -C {settings}" listen="127.0.0.1:{imap_port}" prefork=0
http cmd="httpd -C {settings}" listen="127.0.0.1:{port}" prefork=1 maxchild=20
}}
EVENTS {{
}}
"""


class CalendarServer(Server):
    """`server.make_calendar()` is a new collection of a new user, and of nobody else."""

    name: str

    def __init__(self) -> None:
        super().__init__()
        self.user = None  # nothing here refuses to run as root
        self.front = Front(self.port)
        self.numbers = itertools.count(1)

    def answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=2).close()
        except urllib.error.HTTPError as answer:
            answer.close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self.front.stop()
        super().stop()

    @property
    def url(self) -> str:
        return self.front.url

    @abstractmethod
    def add_user(self, user: str) -> None: ...

    @abstractmethod
    def home(self, user: str) -> str:
        """The path of the collections of a user."""

    def make_user(self) -> str:
        user = f"user{next(self.numbers)}"
        self.add_user(user)
        return user

    def make_calendar(
        self, user: str = "", name: str = "home", kinds: Iterable[str] = ("VEVENT",)
    ) -> "Collection":
        """An empty collection `name` of `user`, or of a new user."""
        user = user or self.make_user()
        collection = Collection(self, user, f"{self.home(user)}{name}/")
        held = "".join(f'<C:comp name="{kind}"/>' for kind in kinds)
        body = MKCALENDAR.format(name=name.title(), kinds=held)
        headers = {"Content-Type": "application/xml; charset=utf-8"}
        collection.request("MKCALENDAR", data=body, headers=headers).raise_for_status()
        return collection

    @abstractmethod
    def as_user(self, user: str) -> dict[str, Any]:
        """What `requests` needs to speak to the server itself as a user."""

    @abstractmethod
    def fill(self, collection: "Collection", texts: Mapping[str, str]) -> None:
        """Many objects at once, name -> text, faster than by as many requests."""


class Collection:
    """One collection as another client sees and changes it."""

    def __init__(self, server: CalendarServer, user: str, path: str) -> None:
        self.server, self.user, self.path = server, user, path

    @property
    def url(self) -> str:
        """As we reach it."""
        return self.server.url + self.path

    @property
    def access(self) -> CalendarAccess:
        return CalendarAccess(self.url, self.user, PASSWORD)

    def request(self, method: str, name: str = "", **given: Any) -> requests.Response:
        url = f"http://127.0.0.1:{self.server.port}{self.path}{name}"
        signed = self.server.as_user(self.user)
        # Cyrus makes the ETag of a compressed answer a weak one.
        plain = {"Accept-Encoding": "identity"}
        headers = {**plain, **signed.pop("headers", {}), **given.pop("headers", {})}
        return requests.request(method, url, headers=headers, **{"timeout": 60, **signed, **given})

    def put(self, name: str, text: str, etag: str = "") -> str:
        """Writes the object `name` ("a.ics"), with `etag` only over that one; its new etag."""
        headers = {"Content-Type": "text/calendar; charset=utf-8"}
        headers |= {"If-Match": etag} if etag else {}
        answer = self.request("PUT", name, data=text.encode(), headers=headers)
        answer.raise_for_status()
        # None where the server has changed the object, as Cyrus does to invite (RFC 4791, 5.3.4).
        return answer.headers.get("ETag") or self.etag(name)

    def get(self, name: str) -> str | None:
        """The text of the object, None where there is none."""
        answer = self.request("GET", name)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return answer.content.decode()

    def etag(self, name: str) -> str:
        return self.request("GET", name).headers["ETag"]

    def delete(self, name: str) -> None:
        self.request("DELETE", name).raise_for_status()

    def names(self) -> list[str]:
        """Of all objects, sorted."""
        answer = self.request("PROPFIND", headers={"Depth": "1"})
        answer.raise_for_status()
        parts = answer.text.replace(">", "<").split("<")
        paths = {part for part in parts if part.startswith(self.path) and part != self.path}
        return sorted(path.removeprefix(self.path) for path in paths)

    def fill(self, texts: Mapping[str, str]) -> None:
        self.server.fill(self, texts)


class Radicale(CalendarServer):
    name = "radicale"

    def __init__(self) -> None:
        super().__init__()
        config = RADICALE_CONFIG.format(port=self.port, folder=self.folder)
        (self.folder / "config").write_text(config)
        (self.folder / "rights").write_text(RADICALE_RIGHTS)
        (self.folder / "users").write_text(f"{READER}:{PASSWORD}\n")

    def command(self) -> list[str]:
        return [sys.executable, "-m", "radicale", "--config", str(self.folder / "config")]

    def add_user(self, user: str) -> None:
        with open(self.folder / "users", "a") as users:
            users.write(f"{user}:{PASSWORD}\n")

    def home(self, user: str) -> str:
        return f"/{user}/"

    def as_user(self, user: str) -> dict[str, Any]:
        return {"auth": (user, PASSWORD)}

    def fill(self, collection: Collection, texts: Mapping[str, str]) -> None:
        folder = self.folder / "store" / "collection-root" / collection.path.strip("/")
        for name, text in texts.items():
            (folder / name).write_bytes(text.encode())
        # It reads each object once, 3 ms each, and keeps what it found; as after 5,000 PUTs.
        collection.request("PROPFIND", headers={"Depth": "1"}, timeout=600).raise_for_status()


class Xandikos(CalendarServer):
    """It takes the user's name from a trusted server before it, as it is meant to be run: the Front
    asks for the password."""

    name = "xandikos"

    def __init__(self) -> None:
        super().__init__()
        self.front.passwords = {}

    def command(self) -> list[str]:
        options = ["-d", str(self.folder / "store"), "-l", "127.0.0.1", "-p", str(self.port)]
        options += ["--state-dir", str(self.folder / "state")]
        options += ["--trust-x-remote-user-from", "127.0.0.1", "--no-detect-systemd"]
        return [sys.executable, "-m", "xandikos", "multi-user", *options]

    def add_user(self, user: str) -> None:
        assert self.front.passwords is not None
        self.front.passwords[user] = PASSWORD
        # It makes a principal when it is first asked for it.
        first = requests.request(
            "PROPFIND", f"http://127.0.0.1:{self.port}/{user}/", timeout=60, **self.as_user(user)
        )
        first.raise_for_status()

    def home(self, user: str) -> str:
        return f"/{user}/calendars/"

    def as_user(self, user: str) -> dict[str, Any]:
        return {"headers": {"X-Remote-User": user}}

    def fill(self, collection: Collection, texts: Mapping[str, str]) -> None:
        folder = self.folder / "store" / collection.path.strip("/")
        for name, text in texts.items():
            (folder / name).write_bytes(text.encode())
        with porcelain.open_repo_closing(folder) as repo:
            porcelain.add(repo, [str(folder / name) for name in texts])
            porcelain.commit(repo, message=b"filled", author=b"x <x@example.com>", sign=False)


class Cyrus(CalendarServer):
    """Runs as an ordinary user, whom its settings have to name. The test answers for saslauthd:
    each user has the one password. A user's mailboxes are made by IMAP.
    """

    name = "cyrus"
    admin = "admin"

    def __init__(self) -> None:
        super().__init__()
        self.user = unprivileged_user()
        self.imap_port = free_port()
        self.settings = self.folder / "imapd.conf"
        values = {
            "folder": self.folder,
            "user": self.user or pwd.getpwuid(os.geteuid()).pw_name,
            "group": grp.getgrgid(os.getegid()).gr_name,
            "admin": self.admin,
            "domain": CYRUS_DOMAIN,
        }
        self.settings.write_text(CYRUS_SETTINGS.format(**values))
        services = CYRUS_SERVICES.format(
            settings=self.settings, port=self.port, imap_port=self.imap_port
        )
        (self.folder / "cyrus.conf").write_text(services)
        self.passwords = PasswordCheck(self.folder / "passwords")
        for name in ("conf", "mail", "proc", "lock"):
            (self.folder / name).mkdir()
        if self.user:
            for path in (self.folder, *self.folder.iterdir()):
                shutil.chown(path, self.user)

    def command(self) -> list[str]:
        files = ["-C", self.settings, "-M", self.folder / "cyrus.conf", "-p", self.folder / "pid"]
        return [CYRUS.format("master"), *map(str, files)]

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends it with its services, which are processes of its group."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            self.process.wait(30)

    def stop(self) -> None:
        super().stop()
        self.passwords.stop()

    def add_user(self, user: str) -> None:
        with imaplib.IMAP4("127.0.0.1", self.imap_port, timeout=60) as connection:
            connection.login(self.admin, PASSWORD)
            ended, _ = connection.create(f"user/{user}")
            assert ended == "OK"

    def home(self, user: str) -> str:
        return f"/dav/calendars/user/{user}/"

    def as_user(self, user: str) -> dict[str, Any]:
        return {"auth": (user, PASSWORD)}

    def fill(self, collection: Collection, texts: Mapping[str, str]) -> None:
        with requests.Session() as session:
            for name, text in texts.items():
                url = f"http://127.0.0.1:{self.port}{collection.path}{name}"
                headers = {"Content-Type": "text/calendar; charset=utf-8"}
                put = session.put(
                    url, text.encode(), headers=headers, timeout=60, **self.as_user(collection.user)
                )
                put.raise_for_status()


class PasswordCheck:
    """What Cyrus asks in place of saslauthd: a socket that takes name, password, service and realm,
    each after its length in two bytes, and answers in the same way.
    """

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(50)
        threading.Thread(target=self._answer_all, daemon=True).start()

    def _answer_all(self) -> None:
        with contextlib.suppress(OSError):  # the socket is closed
            while True:
                connection, _ = self.socket.accept()
                with connection, connection.makefile("rb") as asked:
                    words = [asked.read(int.from_bytes(asked.read(2))) for _ in range(4)]
                    answer = b"OK" if words[1] == PASSWORD.encode() else b"NO"
                    connection.sendall(len(answer).to_bytes(2) + answer)

    def stop(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


SERVERS = {server.name: server for server in (Radicale, Xandikos, Cyrus)}
