"""Runs the tests of LangChain's `trim_messages` with the drop-in of this package, and the session tests of the
OpenAI Agents SDK with `StoreSession`.

    python benches/their_tests.py [FOLDER]

The test files are fetched with pip into a scratch folder and are no part of this repository. LangChain's tests
count with functions and models, so the drop-in passes each call on after its own checks; `tests/test_langchain.py`
compares both with one counter. A test of the SDK that reads `SQLiteSession`'s own tables or attributes fails here.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SOURCES = ("langchain-core==1.8.3", "openai-agents==0.24.0")

LANGCHAIN = """
from context_window.langchain import trim_messages
import langchain_core.messages, langchain_core.messages.utils

langchain_core.messages.trim_messages = langchain_core.messages.utils.trim_messages = trim_messages
"""

OPENAI = """
import tempfile
from pathlib import Path

import agents, agents.memory, agents.memory.sqlite_session
from context_window import Store
from context_window.openai_agents import StoreSession


class Session(StoreSession):
    def __init__(self, session_id, db_path=":memory:", *tables, session_settings=None, **more):
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "sessions.db" if str(db_path) == ":memory:" else db_path
        super().__init__(Store(f"sqlite:{path}"), session_id, session_settings=session_settings)

    def close(self):
        pass


agents.SQLiteSession = agents.memory.SQLiteSession = agents.memory.sqlite_session.SQLiteSession = Session
"""


def fetch_sources(folder: Path) -> list[Path]:
    """Returns the unpacked sources of both packages."""
    for source in SOURCES:
        if not list(folder.glob(f"{source.split('=')[0].replace('-', '_')}*/")):
            given = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), source]
            subprocess.run([sys.executable, "-m", "pip", "download", *given], check=True)
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        archive.unlink()
    return [next(folder.glob(f"{source.split('=')[0].replace('-', '_')}*/")) for source in SOURCES]


def run(folder: Path, setup: str, tests: list[str], *options: str) -> None:
    """Runs tests of a package after `setup`, and prints their result."""
    (folder / "context_window_swap.py").write_text(setup)
    given = ["-q", "-p", "context_window_swap", "-p", "no:cacheprovider", "-o", "addopts=", "--tb=line", "--no-header"]
    print(f"\n{folder.name}: {' '.join(tests)}", flush=True)
    subprocess.run([sys.executable, "-m", "pytest", *given, *options, *tests], cwd=folder)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    langchain, openai = fetch_sources(folder)
    run(langchain, LANGCHAIN, ["tests/unit_tests/messages/test_utils.py"], "-k", "trim_messages", "--noconftest")
    run(
        openai,
        OPENAI,
        ["tests/memory/test_session.py", "tests/memory/test_session_limit.py"],
        "-o",
        "asyncio_mode=auto",
    )


if __name__ == "__main__":
    main()
