"""Runs the command-line tool `context-window`, which is the tool `plan-inspect` under the name of the package."""

import signal
import sys

from context_window._core import _run_tool


def main() -> int:
    """Runs the tool with the arguments of the process and returns its exit code."""
    # The tool handles Ctrl-C itself. Python's handler would only set a flag that nobody reads.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _run_tool(["plan-inspect", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
