"""The browser in which pages are checked: its arguments, and the messages that its pages must not have."""

import sys
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
INSTALL = (
    "python3 -m venv target/browser && "
    "target/browser/bin/pip install -r tests/browser/requirements.txt"
)


def give_up(message):
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(2)


try:
    from playwright.sync_api import sync_playwright as start
except ImportError as error:
    give_up(f"{error}; install with: {INSTALL}")


def watch(page, complain):
    """Calls `complain` with each message on the console, each error and each dialog of a page."""

    def dialog(one):
        complain(f"a dialog: {one.message}")
        one.dismiss()

    page.on("console", lambda one: complain(f"the console: {one.type} {one.text}"))
    page.on("pageerror", lambda error: complain(f"an error: {error}"))
    page.on("dialog", dialog)
