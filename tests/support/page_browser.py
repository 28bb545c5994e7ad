"""A headless Chromium as a process of its own, which opens pages, runs scripts in them and takes pictures.

`Browser` starts `python -m tests.support.page_browser`, which reads one command a line as JSON and answers each.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_ANSWER_S: Final = 30.0
_LISTENING: Final = """
window.pageErrors = [];
const noted = (kind, text) => addEventListener(kind, (event) => pageErrors.push(`${kind}: ${text(event)}`), true);
noted("error", (event) => event.message || event.target.src || event.target.href);
noted("unhandledrejection", (event) => event.reason);
noted("securitypolicyviolation", (event) => `${event.violatedDirective} ${event.blockedURI}`);
"""


def is_installed() -> bool:
    """Whether the browser is there: `make test` installs it."""
    return importlib.util.find_spec("PyQt6") is not None


def pictures() -> Path:
    """Return the folder of pictures: `$MIRRORLESS_PICTURES`, or one that is forgotten."""
    folder = Path(os.environ.get("MIRRORLESS_PICTURES") or tempfile.gettempdir())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Browser:
    """One window; a context closes it.

    The browser's own processes inherit its output, and may outlive it: an answer is waited for with a limit, not until
    the output ends, and all of them are ended together.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.page_browser"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._pending = bytearray()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes its pipes
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def open(self, url: str, *, width: int = 1280, height: int = 860) -> None:
        """Open an address in a window of this size."""
        self.resize(width, height)
        self._do(do="open", url="about:blank")  # another fragment alone would load nothing
        self._do(do="open", url=url)

    def resize(self, width: int, height: int) -> None:
        """Set the window's size."""
        self._do(do="resize", width=width, height=height)

    def run(self, script: str) -> Any:  # noqa: ANN401 -- whatever JSON can hold
        """Return the value of an expression."""
        answer = self._do(do="run", script=f"JSON.stringify({script})")
        return None if not answer else json.loads(answer)

    def shown(self) -> tuple[str, str]:
        """Return address and title of the page; `run` runs nothing in a page whose policy is `sandbox`."""
        address, title = self._do(do="shown")
        return address, title

    def load_script(self, file: Path) -> None:
        """Run a whole file in the page."""
        self._do(do="run", script=f"{file.read_text()};''")

    def wait_for(self, script: str, *, seconds: float = 15) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > until:
                raise AssertionError(f"not true after {seconds:.0f} s: {script}\n{self.run('document.body.innerText')}")
            time.sleep(0.05)

    def key(self, key: str, selector: str | None = None) -> None:
        """Press a key, in an element or where the focus is."""
        where = "document.activeElement" if selector is None else f"document.querySelector({json.dumps(selector)})"
        event = f"new KeyboardEvent('keydown', {{key: {json.dumps(key)}, bubbles: true, cancelable: true}})"
        self.run(f"{where}.dispatchEvent({event})")

    def type(self, text: str, selector: str) -> None:
        """Set the content of a box."""
        box = f"document.querySelector({json.dumps(selector)})"
        self.run(f"({box}.value = {json.dumps(text)}, {box}.dispatchEvent(new Event('input', {{bubbles: true}})))")

    def click(self, selector: str) -> None:
        """Click the first element that matches."""
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, file: Path) -> Path:
        """Save how the window looks."""
        self._do(do="picture", file=str(file))
        return file

    def errors(self) -> list[str]:
        """Return errors of scripts and refused loads since the page was opened."""
        found: list[str] = self.run("window.pageErrors")
        return found

    def _do(self, **command: object) -> Any:  # noqa: ANN401 -- whatever JSON can hold
        until = time.monotonic() + _ANSWER_S
        try:
            self._send(json.dumps(command).encode() + b"\n", until)
            return json.loads(self._line(until))
        except (OSError, TimeoutError) as error:
            self._kill()
            raise AssertionError(f"the browser {error or 'has ended'} at {str(command)[:1_000]}") from error

    def _send(self, command: bytes, until: float) -> None:
        """Write a command, which may be longer than what the pipe holds."""
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        os.set_blocking(pipe, False)
        left = memoryview(command)
        while left:
            if not select.select([], [pipe], [], max(0.0, until - time.monotonic()))[1]:
                raise TimeoutError("took no command in time")
            left = left[os.write(pipe, left[: 1 << 12]) :]

    def _line(self, until: float) -> bytes:
        """Return the next line of the output."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            if not select.select([output], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("did not answer in time")
            part = os.read(output, 1 << 16)
            if not part:
                raise BrokenPipeError("has ended")
            self._pending.extend(part)
        line, _, rest = bytes(self._pending).partition(b"\n")
        self._pending[:] = rest
        return line


def main() -> None:
    """Do what standard input says until it ends."""
    os.environ |= {
        "QT_QPA_PLATFORM": "offscreen",
        "QTWEBENGINE_DISABLE_SANDBOX": "1",  # where tests run as root
        "QTWEBENGINE_CHROMIUM_FLAGS": "--disable-gpu --no-sandbox",
        "QT_LOGGING_RULES": "*=false",
    }
    from PyQt6.QtCore import QSocketNotifier  # noqa: PLC0415 -- only where the browser runs
    from PyQt6.QtWebEngineWidgets import QWebEngineView  # noqa: PLC0415 -- before there is an application
    from PyQt6.QtWidgets import QApplication  # noqa: PLC0415

    application = QApplication(sys.argv[:1])
    do = _commands(QWebEngineView())
    pending = bytearray()

    def came() -> None:
        part = os.read(0, 1 << 20)
        if not part:
            application.quit()
        pending.extend(part)
        while b"\n" in pending:
            line, _, rest = bytes(pending).partition(b"\n")
            pending[:] = rest
            do(json.loads(line))

    stdin: Any = 0
    notifier = QSocketNotifier(stdin, QSocketNotifier.Type.Read)
    notifier.activated.connect(came)
    sys.exit(application.exec())


def _commands(view: Any) -> Callable[[dict[str, Any]], None]:  # noqa: ANN401 -- a window of Qt
    """Open the window and return what does a command."""
    from PyQt6.QtCore import QTimer, QUrl  # noqa: PLC0415
    from PyQt6.QtWebEngineCore import QWebEngineScript  # noqa: PLC0415

    page = view.page()
    listening = QWebEngineScript()
    listening.setSourceCode(_LISTENING)
    listening.setInjectionPoint(QWebEngineScript.InjectionPoint.DocumentCreation)
    listening.setWorldId(QWebEngineScript.ScriptWorldId.MainWorld)
    page.scripts().insert(listening)
    view.show()

    def opened(ok: bool) -> None:
        page.loadFinished.disconnect(opened)
        _answer(ok)

    def painted(file: str) -> None:
        view.grab().save(file, "PNG", 80)
        _answer(None)

    def do(command: dict[str, Any]) -> None:
        match command["do"]:
            case "open":
                page.loadFinished.connect(opened)
                page.load(QUrl(command["url"]))
            case "resize":
                view.resize(command["width"], command["height"])
                _answer(None)
            case "run":
                page.runJavaScript(command["script"], _answer)
            case "shown":
                _answer([page.url().toString(), page.title()])
            case "picture":
                QTimer.singleShot(400, lambda: painted(command["file"]))

    return do


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
