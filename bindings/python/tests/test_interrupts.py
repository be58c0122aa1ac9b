"""Ctrl-C during long calls: they end at once, and no conversation is left half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a child process")

#: The time from the signal to the exception, in seconds.
ANSWER = 0.1

SETUP = """
import json, sys, time
import context_window as cw
from context_window import Conversation, Manager

def text(words):
    return " ".join(f"{at * 2654435761 % 2**32:x}" for at in range(words))

def talk(messages, words):
    whole = text(words)
    return Conversation([{"role": "user", "content": f"{at} {whole}"} for at in range(messages)])

manager, large = Manager("gpt-4o"), {"prompt_budget": 90_000_000, "model_context_len": 100_000_000}
"""

AROUND = """
print("ready", flush=True)
try:
    CALL
    print("ended", time.time())
except KeyboardInterrupt:
    print("interrupted", time.time())
"""

CALLS = {
    "count": ("whole = text(8_000_000)", "cw.count(whole)", ""),
    "Manager.count": ("whole = text(8_000_000)", "manager.count(whole)", ""),
    "a plan of 100 MB": (
        "log = talk(1_100, 10_000); before = log.event_count()",
        "manager.plan(log, **large)",
        "assert log.event_count() == before and len(log.messages()) == 1_100",
    ),
    "usage": ("log = talk(1_100, 10_000)", "manager.usage(log, **large)", ""),
    "explain_all": (
        "log = talk(6_000, 3); plan = manager.plan(log, prompt_budget=20_000)",
        "[plan.explain_all() for _ in range(200)]",
        "",
    ),
    "compact_if_due": (
        "log = talk(1_100, 10_000); before = log.event_count()",
        "[manager.compact_if_due(log, model_context_len=200_000) or manager.plan(log, **large) for _ in range(9)]",
        "assert log.event_count() in (before, before + 1) and len(log) == 1_100",
    ),
    "replay_batch": (
        "import pyarrow as pa; log = talk(1_500, 12)\n"
        "session = json.dumps({'messages': log.messages(), 'model': 'gpt-4o'})\n"
        "batch = pa.record_batch({'session': [session] * 2_000})",
        "cw.replay_batch(batch, threads=2)",
        "",
    ),
    "Recall": ("log = talk(1_100, 10_000)", "cw.Recall(log)", "assert len(log) == 1_100"),
    "evaluate": (
        "asked = {'messages': talk(1_500, 12).messages(), 'questions': [{'text': 'Why?', 'evidence': ['m9']}]}\n"
        "session = json.dumps(asked)",
        "cw.evaluate([session] * 2_000)",
        "",
    ),
    "evaluate_batch": (
        "import pyarrow as pa; asked = {'messages': talk(1_500, 12).messages(), 'questions': [{'text': 'Why?'}]}\n"
        "batch = pa.record_batch({'session': [json.dumps(asked)] * 2_000})",
        "cw.evaluate_batch(batch, threads=2)",
        "",
    ),
}


def send_signal_during_call(lines: list[str], number: signal.Signals, delay: float) -> tuple[list[bytes], float]:
    """Runs a program, and sends it a signal `delay` seconds after its call began. Returns the words that it
    printed, and the time of the signal.
    """
    command = [sys.executable, "-c", "\n".join([SETUP, *lines])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None and ran.stdout.readline() == b"ready\n"
        time.sleep(delay)
        sent = time.time()
        ran.send_signal(number)
        out, errors = ran.communicate(timeout=120)
    assert ran.returncode == 0, errors.decode()[-2000:]
    return out.split(), sent


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    setup, call, after = CALLS[name]
    if "pyarrow" in setup:
        pytest.importorskip("pyarrow")
    # The call takes seconds.
    (outcome, at), sent = send_signal_during_call([setup, AROUND.replace("CALL", call), after], signal.SIGINT, 0.3)
    assert outcome == b"interrupted"
    assert float(at) - sent < ANSWER


def test_other_handlers_of_signals_run_and_the_call_goes_on() -> None:
    lines = [
        "import signal; seen = []; signal.signal(signal.SIGUSR1, lambda *given: seen.append(time.time()))",
        "whole = text(1_500_000)",
        AROUND.replace("CALL", "n = cw.count(whole); assert n > 1_000_000"),
        "assert len(seen) == 1; print(seen[0])",
    ]
    (outcome, _, handled), sent = send_signal_during_call(lines, signal.SIGUSR1, 0.1)
    assert outcome == b"ended" and float(handled) - sent < ANSWER


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    # A thread of the parent does not exist in the child: work that is handed to it would never be done.
    program = "\n".join(
        [
            SETUP,
            "import os; whole = text(60_000)",
            "n = cw.count(whole); child = os.fork()",
            "if child == 0: os._exit(0 if cw.count(whole) == n else 1)",
            "raise SystemExit(os.waitpid(child, 0)[1])",
        ]
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)
