"""A real Chromium, driven over its debugging pipe: what a page asks for, says and shows.

Fixture:  browser    one Chromium for all tests, with a context of the test's own: no cookie and no
                     cached file of another test. Skips, and says so, where none is installed
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)


def viewports(wide: int = 1280, narrow: int = 390, *, only: str = "") -> list[Any]:
    """(width, colour scheme) of a page's pictures: each of both once; with --deep, all four.

    only: "wide" or "narrow", for tests of many pages: the other look is left to --deep. Half of
    these tests take one, half the other.
    """
    ordinary = {"wide": (wide, "light"), "narrow": (narrow, "dark")}
    every = [*ordinary.values(), (wide, "dark"), (narrow, "light")]
    kept = [ordinary[only]] if only else [*ordinary.values()]
    deep = [pytest.param(*look, marks=pytest.mark.deep) for look in every if look not in kept]
    return [*kept, *deep]


# What a press of a key sends: its code, its number, and the text that it types.
KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    " ": ("Space", 32, " "),
    "PageUp": ("PageUp", 33, ""),
    "PageDown": ("PageDown", 34, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "/": ("Slash", 191, "/"),
    "?": ("Slash", 191, "?"),
    **{letter: (f"Key{letter.upper()}", ord(letter.upper()), letter) for letter in "ajknt"},
}
# A promise of "" once the expression is true: evaluated at each change of the document, and every
# 50 ms for what changes nothing there (a value, a scroll). Of what is wrong when the time is over.
WAIT = """new Promise((resolve) => {{
  let fault = "it is false";
  const finish = (found) => {{
    observer.disconnect(); clearInterval(timer); clearTimeout(limit); resolve(found);
  }};
  const check = () => {{
    try {{ if ({script}) finish(""); }} catch (error) {{ fault = String(error); }}
  }};
  const observer = new MutationObserver(check);
  const timer = setInterval(check, 50);
  const limit = setTimeout(() => finish(fault), {milliseconds});
  observer.observe(document, {{
    subtree: true, childList: true, attributes: true, characterData: true,
  }});
  check();
}})"""
# Whether an element has kept its place for 40 ms on a page that has loaded.
STEADY = """(() => {{
  const found = document.querySelector({selector});
  if (!found || document.readyState !== "complete") return false;
  found.scrollIntoView({{block: "center", behavior: "instant"}});
  const place = JSON.stringify(found.getBoundingClientRect());
  if (place !== window.lastPlace) {{
    window.lastPlace = place;
    window.lastPlaceSince = performance.now();
  }}
  return performance.now() - window.lastPlaceSince >= 40;
}})()"""
# The middle of an element. What moves there before the button is pressed, or before the button is
# released, is not clicked instead.
AIM = """(() => {{
  const found = document.querySelector({selector});
  if (!found) return null;
  const place = found.getBoundingClientRect();
  const point = {{x: place.x + place.width / 2, y: place.y + place.height / 2}};
  const aim = document.elementFromPoint(point.x, point.y);
  window.clickMissed = false;
  const check = (event) => {{
    if (aim !== null && event.target !== aim) {{
      if (event.type === "mousedown" || (event.type === "mouseup" && aim.isConnected)) {{
        window.clickMissed = true;
      }}
    }}
    if (!window.clickMissed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }};
  for (const name of ["mousedown", "mouseup", "click"]) {{
    document.addEventListener(name, check, {{capture: true, once: true}});
  }}
  return point;
}})()"""
# What the protocol says when a page goes on to another address while it is asked.
LEFT = ("Cannot find context", "Execution context was destroyed", "navigated or closed",
        "Promise was collected")  # fmt: skip
SILENCE = 120  # seconds, more than any wait
FLAGS = (
    "--headless=new",
    "--accept-lang=en-GB",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-pipe",
)


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


SHIFTED_DATE = """
{{
  const RealDate = Date, shift = {milliseconds}, now = () => RealDate.now() + shift;
  Date = class extends RealDate {{
    constructor(...given) {{ given.length ? super(...given) : super(now()); }}
    static now() {{ return now(); }}
  }};
}}
"""


class Page:
    """A page that has been opened, and what happened on it.

    requests    the addresses of everything that was asked for
    failures    what could not be had
    complaints  console errors and warnings, uncaught exceptions, breaches of the page's policy
    presses     how many keys were pressed, but for typed text
    """

    def __init__(self, browser: "Browser", session: str) -> None:
        self.browser = browser
        self.session = session
        self.requests: list[str] = []
        self.failures: list[str] = []
        self.complaints: list[str] = []
        self.presses = 0

    def send(self, method: str, **params: Any) -> Any:
        return self.browser.send(method, params, self.session)

    def note(self, event: dict[str, Any]) -> None:
        name, params = event["method"], event["params"]
        if name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif name == "Network.loadingFailed":
            self.failures.append(f"{params['requestId']}: {params['errorText']}")
        elif name == "Network.responseReceived" and params["response"]["status"] >= 400:
            self.failures.append(f"{params['response']['url']}: {params['response']['status']}")
        elif name == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:1000])
        elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"])[:1000])
        elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])

    def evaluate(self, script: str) -> Any:
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        return found["result"].get("value")

    def evaluate_promise(self, script: str) -> Any:
        """What the promise resolves to."""
        found = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        return found["result"].get("value")

    def wait_for(self, script: str, seconds: float = 60) -> None:
        """Until the expression is true, here or on the page that follows."""
        deadline, fault = time.monotonic() + seconds, ""
        while (left := deadline - time.monotonic()) > 0:
            expression = WAIT.format(script=script, milliseconds=left * 1000)
            try:
                found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True)
            except BrowserError as error:
                if not any(words in str(error) for words in LEFT):
                    raise
                continue
            assert "exceptionDetails" not in found, found["exceptionDetails"]
            fault = found["result"]["value"]
            if not fault:
                return
        raise AssertionError((script, fault, self.complaints, self.failures))

    def press(self, key: str) -> None:
        """A key of KEYS, down and up again."""
        self.presses += 1
        code, number, text = KEYS[key]
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Into whatever has the focus."""
        self.send("Input.insertText", text=text)

    def type_into(self, selector: str, text: str) -> None:
        """In place of what stands in a field, once the page has loaded: one that is still loading
        may move the focus to the field that it names first."""
        field = f"document.querySelector({selector!r})"
        self.wait_for(f"document.readyState === 'complete' && !!{field}")
        self.evaluate(f"{field}.focus(), {field}.select()")
        self.type(text)
        self.wait_for(f"{field}.value === {text!r}")

    def tab_to(self, selector: str, most: int = 80) -> int:
        """By the Tab key alone, as far as what the selector finds. Returns the count of presses."""
        for count in range(most):
            if self.evaluate(f"document.activeElement.matches({selector!r})"):
                return count
            self.press("Tab")
        raise AssertionError(f"{selector} is not reached by Tab")

    def click(self, selector: str, times: int = 1) -> None:
        """In the middle of the first that the selector finds, once its place is steady."""
        point, missed = None, True
        while point is None or missed:
            self.wait_for(STEADY.format(selector=repr(selector)))
            point = self.evaluate(AIM.format(selector=repr(selector)))
            if point is None:
                continue
            event = {**point, "button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type="mousePressed", **event)
            self.send("Input.dispatchMouseEvent", type="mouseReleased", **event)
            missed = self.has_missed()
        for count in range(2, times + 1):
            event["clickCount"] = count
            self.send("Input.dispatchMouseEvent", type="mousePressed", **event)
            self.send("Input.dispatchMouseEvent", type="mouseReleased", **event)

    def has_missed(self) -> bool:
        """Whether the latest click met another element; never after the page was left."""
        try:
            return self.evaluate("window.clickMissed === true")
        except BrowserError as error:
            if not any(words in str(error) for words in LEFT):
                raise
            return False

    def box(self, selector: str) -> dict[str, float]:
        """x, y, width, height of an element on the screen, scrolled to where that can be seen."""
        self.wait_for(f"!!document.querySelector({selector!r})")
        return self.evaluate(
            f"(() => {{ const one = document.querySelector({selector!r});"
            " one.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});"
            " return one.getBoundingClientRect().toJSON(); })()"
        )

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 10) -> None:
        """Press at one point, move in steps, let go at the other."""
        event: dict[str, Any] = {"button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=start[0], y=start[1])
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=start[0], y=start[1], **event)
        for step in range(1, steps + 1):
            x, y = (a + (b - a) * step / steps for a, b in zip(start, end, strict=True))
            self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, buttons=1, **event)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=end[0], y=end[1], **event)

    def texts(self, selector: str) -> list[str]:
        """What a person reads of all that the selector finds."""
        found = f"[...document.querySelectorAll({selector!r})]"
        return self.evaluate(f"{found}.map(one => one.innerText.trim())")

    def save_screenshot(self, name: str, *, whole: bool = False) -> None:
        """A screenshot for a person to look at, if SCREENSHOTS names a folder: what is in the
        window; `whole`: as far as the page goes.
        """
        if folder := os.environ.get("SCREENSHOTS"):
            # Chromium moves a page of a wide window, from right to left, if it shows all of it.
            fits = whole and self.evaluate("document.dir !== 'rtl' || innerWidth < 600")
            shot = self.send("Page.captureScreenshot", captureBeyondViewport=fits)
            (Path(folder) / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))


class BrowserError(Exception):
    """What Chromium answers to a command that it refuses."""


class Browser:
    def __init__(self, program: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="booking-test-browser-")
        to_read, self.out = os.pipe()
        self.inn, to_write = os.pipe()

        def place_pipe() -> None:
            # Chromium reads commands from descriptor 3 and writes answers to 4.
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.folder}"],
            preexec_fn=place_pipe,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.pages: dict[str, Page] = {}
        self.context_id = ""

    def send(self, method: str, params: dict[str, Any], session: str | None = None) -> Any:
        """A command and its answer; what happens meanwhile is noted on its page."""
        self.number += 1
        command: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                if "error" in message:
                    raise BrowserError(message["error"]["message"])
                return message["result"]
            page = self.pages.get(message.get("sessionId", ""))
            if page and "method" in message:
                page.note(message)

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inn], [], [], SILENCE)
            assert ready, f"the browser has said nothing for {SILENCE} s"
            piece = os.read(self.inn, 1 << 20)
            assert piece, "the browser is gone"
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(
        self,
        url: str,
        *,
        width: int = 1280,
        height: int = 900,
        zone: str = "",
        scheme: str = "",
        now: str = "",
        language: str = "",
        cookies: Mapping[str, str] | None = None,
    ) -> Page:
        """A page in a window of its own; `zone`, `scheme`, `language`, `now`: the visitor's time
        zone, colours, language ("pt-BR") and clock ("2026-11-30T02:30Z"), which begins there with
        each page."""
        where = {"url": "about:blank", "browserContextId": self.context_id}
        target = self.send("Target.createTarget", where)["targetId"]
        attached = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = self.pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Network", "Runtime", "Log", "Page"):
            page.send(f"{domain}.enable")
        page.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        if zone:
            page.send("Emulation.setTimezoneOverride", timezoneId=zone)
        if language:
            agent = self.send("Browser.getVersion", {})["userAgent"]
            page.send("Network.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
        if scheme:
            media = {"name": "prefers-color-scheme", "value": scheme}
            page.send("Emulation.setEmulatedMedia", features=[media])
        if now or "TEST_CLOCK_SHIFT" in os.environ:
            run = f"1000 * {os.environ.get('TEST_CLOCK_SHIFT')}"
            shift = f"Date.parse({now!r}) - Date.now()" if now else run
            source = SHIFTED_DATE.format(milliseconds=shift)
            page.send("Page.addScriptToEvaluateOnNewDocument", source=source)
        for name, value in (cookies or {}).items():
            page.send("Network.setCookie", name=name, value=value, url=url)
        page.send("Page.navigate", url=url)
        return page

    @contextmanager
    def context(self) -> Iterator["Browser"]:
        """Pages that are opened meanwhile share cookies and cache with each other alone."""
        self.context_id = self.send("Target.createBrowserContext", {})["browserContextId"]
        yield self
        self.pages.clear()
        self.send("Target.disposeBrowserContext", {"browserContextId": self.context_id})

    def stop(self) -> None:
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.inn)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("Chromium is not installed")
    started = Browser(program)
    yield started
    started.stop()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    with chromium.context():
        yield chromium
