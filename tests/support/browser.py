"""Opens a page in headless Chromium, which Qt brings along as a Python package; run as a process of its own.

`python -m tests.support.browser PAGE PICTURE` prints, as JSON, what a reader of the page would see.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ |= {
    "QT_QPA_PLATFORM": "offscreen",
    "QTWEBENGINE_DISABLE_SANDBOX": "1",  # where tests run as root
    "QTWEBENGINE_CHROMIUM_FLAGS": "--disable-gpu --no-sandbox",
    "QT_LOGGING_RULES": "*=false",
}

from PyQt6.QtCore import QTimer, QUrl
from PyQt6.QtWebEngineWidgets import QWebEngineView
from PyQt6.QtWidgets import QApplication

_LOOK = """
(() => JSON.stringify({
  title: document.title,
  headings: [...document.querySelectorAll('h1, h2, h3')].map(one => one.innerText),
  verdicts: [...document.querySelectorAll('.result')].map(one => one.innerText),
  cells: [...document.querySelectorAll('td')].map(one => one.innerText),
  bars: [...document.querySelectorAll('svg rect')].map(one => one.getBoundingClientRect().width),
  wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  loaded: performance.getEntriesByType('resource').map(one => one.name),
}))()
"""
_PAINTED_MS = 700
_LIMIT_MS = 60_000


def main(page: str, picture: str) -> None:
    """Open `page`, print what is in it, and save how it looks."""
    application = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.resize(900, 970)

    def painted() -> None:
        view.grab().save(picture, "PNG", 0)
        frame = view.page()
        assert frame is not None
        frame.runJavaScript(_LOOK, seen)

    def seen(found: str) -> None:
        print(json.dumps(json.loads(found)), flush=True)  # noqa: T201
        application.quit()

    view.loadFinished.connect(lambda _: QTimer.singleShot(_PAINTED_MS, painted))
    QTimer.singleShot(_LIMIT_MS, lambda: application.exit(1))
    view.load(QUrl.fromLocalFile(str(Path(page).absolute())))
    view.show()
    sys.exit(application.exec())


if __name__ == "__main__":
    main(*sys.argv[1:])
