"""Helpers of the adapters' tests: checks of requests, and comparison with the Rust tool."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from context_window import Manager, Plan

ROOT = Path(__file__).resolve().parents[3]


def tool() -> Path | None:
    """Returns the path of `plan-inspect` from this checkout, or None if it is not built."""
    named = os.environ.get("PLAN_INSPECT")
    built = [Path(named)] if named else [ROOT / "target" / kind / "plan-inspect" for kind in ("debug", "release")]
    found = [path for path in built if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime) if found else None


def rust_plan(session: str) -> str:
    """Returns the plan of a session file as the Rust tool prints it."""
    path = tool()
    assert path is not None, "plan-inspect is not built: cargo build -p plan-inspect --features full"
    ran = subprocess.run([path, "-", "--format", "json"], input=session, capture_output=True, text=True, timeout=60)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def same_as_rust(manager: Manager, log: Any, plan: Plan, **request: Any) -> None:
    """Checks that the plan has the same bytes as Rust's plan of this request. Call it before the reply is
    stored.
    """
    assert rust_plan(manager.session_json(log, **request)) == plan.json() + "\n"


def valid_openai(messages: list[dict[str, Any]]) -> None:
    """Checks the rules of OpenAI Chat: results follow their calls directly, no result lacks a call, and a
    user message exists.
    """
    assert messages and any(one["role"] == "user" for one in messages)
    open_calls: list[str] = []
    for at, one in enumerate(messages):
        if one["role"] == "tool":
            assert one["tool_call_id"] in open_calls, f"message {at}: a result without its call: {one}"
            open_calls.remove(one["tool_call_id"])
            continue
        assert not open_calls, f"message {at}: calls without results before it: {open_calls}"
        open_calls = [call["id"] for call in one.get("tool_calls") or []]
        for call in one.get("tool_calls") or []:
            json.loads(call["function"]["arguments"])
        assert one.get("content") or open_calls, f"message {at}: says nothing: {one}"
    assert not open_calls, f"calls without results at the end: {open_calls}"


def valid_anthropic(messages: list[dict[str, Any]]) -> None:
    """Checks the rules of Anthropic: a user message comes first, roles alternate, and the next message
    answers each call.
    """
    assert messages and messages[0]["role"] == "user"
    calls: set[str] = set()
    for at, one in enumerate(messages):
        assert at == 0 or one["role"] != messages[at - 1]["role"], f"message {at}: two of {one['role']}"
        content = one["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        assert blocks and all(block.get("text", "x").strip() for block in blocks), f"message {at}: says nothing"
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        assert results == calls, f"message {at}: results {results} for calls {calls}"
        calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    assert not calls and messages[-1]["role"] == "user"


def has_java() -> bool:
    return shutil.which("java") is not None
