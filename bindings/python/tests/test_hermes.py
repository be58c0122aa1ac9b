"""Hermes: the engine in a stand-in for a host of its main branch, and in the released agent if it is
installed.
"""

from __future__ import annotations

import abc
import copy
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from context_window import Manager
from context_window.hermes import ContextWindowEngine
from context_window.litellm import owned
from support import same_as_rust, valid_openai

BUDGET = 2000
COUNT = Manager("gpt-4o").count_messages
TOOLS = [{"type": "function", "function": {"name": f"tool_{at}", "parameters": {"type": "object"}}} for at in range(20)]


class Released(abc.ABC):
    """The abstract methods of `agent.context_engine.ContextEngine` up to 0.19."""

    @property
    @abc.abstractmethod
    def name(self) -> str: ...
    @abc.abstractmethod
    def update_from_response(self, usage: dict[str, Any]) -> None: ...
    @abc.abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool: ...
    @abc.abstractmethod
    def compress(self, messages: list[Any], current_tokens: int | None = None) -> list[Any]: ...
    def update_model(self, model: str, context_length: int) -> None: ...


class Main(Released):
    """The additional method of its main branch."""

    def select_context(self, request_messages: list[Any], **_: Any) -> list[Any] | None:
        return None


class Engine(ContextWindowEngine, Main):  # type: ignore[misc,unused-ignore]
    pass


class OldEngine(ContextWindowEngine, Released):  # type: ignore[misc,unused-ignore]
    pass


class Host:
    """The agent's loop. A request is the system prompt and a clone of the transcript, as `select_context`
    receives it.
    """

    def __init__(self, engine: Any, system: str = "You are brief.") -> None:
        self.engine, self.system = engine, system
        self.transcript: list[dict[str, Any]] = []
        self.seen: list[list[Any]] = []
        self.given: list[list[Any]] = []

    def request(self) -> None:
        if self.engine.should_compress(self.engine.last_prompt_tokens):
            self.transcript = self.engine.compress(self.transcript, current_tokens=self.engine.last_prompt_tokens)
        given = copy.deepcopy([{"role": "system", "content": self.system}, *self.transcript])
        select = getattr(self.engine, "select_context", None) if isinstance(self.engine, Main) else None
        window = self.engine.context_length
        beside = {"conversation_messages": self.transcript, "incoming_message": None, "budget_tokens": window}
        told = select and select(given, **beside)
        self.given.append(given)
        self.seen.append(told or given)
        tokens = COUNT(self.seen[-1], tools=TOOLS)
        self.engine.update_from_response({"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5})

    def turn(self, at: int) -> None:
        call = {"id": f"c{at}", "type": "function", "function": {"name": "tool_1", "arguments": "{}"}}
        self.transcript.append({"role": "user", "content": f"Question {at}?"})
        self.request()
        self.transcript.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.transcript.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"found {at} " * 20})
        self.request()
        self.transcript.append({"role": "assistant", "content": f"Answer {at}."})


def made(engine: Any, window: int = 8000) -> Any:
    engine.update_model("gpt-4o", window, base_url="", api_key="", provider="", api_mode="")
    return engine


def check(host: Host, budget: int) -> None:
    for sent in host.seen:
        valid_openai(sent)
    # The size of the tools is unknown until the first answer, so the first request may exceed the budget.
    assert all(COUNT(sent, tools=TOOLS) <= budget for sent in host.seen[1:])


def test_60_turns_of_a_host_that_selects() -> None:
    host = Host(made(Engine(prompt_budget=BUDGET)))
    for at in range(60):
        host.turn(at)
    check(host, BUDGET)
    assert len(host.seen) == 120 and len(host.transcript) == 240 and not host.engine.should_compress(10**6)
    assert len(host.seen[-1]) < 60 and host.seen[0] is host.given[0]
    for sent, given in zip(host.seen, host.given):
        assert all(any(one is own for own in given) for one in sent)
    stays = [later[: len(sent)] == sent for sent, later in zip(host.seen, host.seen[1:])]
    assert 3 < stays.count(False) < 15
    # The last request again: the same result, and the same plan as Rust's.
    engine, budget = host.engine, host.engine.plan.prompt_budget
    assert engine.select_context(host.given[-1], budget_tokens=8000) == host.seen[-1]
    asked = {"model_context_len": 8000, "prompt_budget": budget}
    same_as_rust(engine.manager, engine._histories.of(owned(host.given[-1], asked)).log, engine.plan, **asked)


def test_changes_and_two_agents() -> None:
    shared = made(Engine(prompt_budget=BUDGET))
    one, other = (Host(copy.deepcopy(shared), system) for system in ("One.", "Other."))
    assert one.engine.manager is not other.engine.manager and one.engine.context_length == 8000
    for at in range(20):
        one.turn(at)
        other.turn(at)
    one.system = "Changed."
    del one.transcript[20:]
    one.turn(99)
    check(one, BUDGET)
    check(other, BUDGET)
    assert one.seen[-1][0]["content"] == "Changed." and len(other.seen[-1]) < 60
    # Without a budget, the model's window counts. A request that fits stays unchanged.
    wide = made(Engine(), 4000)
    assert wide.select_context([{"role": "user", "content": "Hi."}], budget_tokens=4000) is None
    assert wide.plan.prompt_budget < 4000 and wide.plan.model == "gpt-4o"
    assert Engine("gpt-4.1").manager.name == "gpt-4.1" == made(Engine("gpt-4.1")).manager.name


def test_60_turns_of_a_host_that_compacts() -> None:
    host = Host(made(OldEngine(), 2000))
    assert not host.engine.should_compress(1499) and host.engine.should_compress(1500)
    for at in range(60):
        host.turn(at)
    # One exchange may be added before the next check.
    check(host, 2000)
    assert 3 < host.engine.compression_count < 30 and len(host.transcript) < 100
    assert host.transcript[-1]["content"] == "Answer 59."
    before = copy.deepcopy(host.transcript)
    kept = host.engine.compress(host.transcript)
    assert host.transcript == before and all(any(one is own for own in host.transcript) for one in kept)
    assert COUNT(kept) <= 0.6 * COUNT(host.transcript)
    # Tokens that only the host counts also reduce the budget.
    kept = host.engine.compress(host.transcript, current_tokens=COUNT(host.transcript) + 900)
    assert COUNT(kept) <= 0.6 * (1500 - 900)


def test_the_released_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = {"HERMES_HOME": str(tmp_path), "NO_PROXY": "127.0.0.1", "HTTPS_PROXY": "http://127.0.0.1:9"}
    for name, value in apart.items():
        monkeypatch.setenv(name, value)
    run_agent: Any = pytest.importorskip("run_agent")
    base: Any = pytest.importorskip("agent.context_engine")
    seen: list[list[Any]] = []

    class Provider(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "messages" not in asked:
                return self.send_error(404)
            seen.append(asked["messages"])
            said = {"role": "assistant", "content": f"Answer {len(seen)}. " + "word " * 100}
            tokens = {"prompt_tokens": COUNT(asked["messages"]), "completion_tokens": 100, "total_tokens": 0}
            chunk = {"id": "x", "created": 1, "model": "gpt-4o", "object": "chat.completion.chunk", "usage": tokens}
            chunk["choices"] = [{"index": 0, "delta": said, "message": said, "finish_reason": "stop"}]
            told = json.dumps(chunk)
            if asked.get("stream"):
                told = f"data: {told}\n\ndata: [DONE]\n\n"
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if asked.get("stream") else "application/json")
            self.end_headers()
            self.wfile.write(told.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agent = run_agent.AIAgent(
        base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none-" * 5, model="gpt-4o", provider="custom",
        api_mode="chat_completions", quiet_mode=True, enabled_toolsets=[], skip_context_files=True, skip_memory=True,
    )  # fmt: skip
    engine = type("Engine", (ContextWindowEngine, base.ContextEngine), {})()
    agent.context_compressor = made(copy.deepcopy(engine))
    history: list[Any] = []
    for at in range(40):
        history = agent.run_conversation(f"Question {at}?", conversation_history=history)["messages"]
    server.shutdown()
    assert len(seen) == 40 and max(map(COUNT, seen)) < 8000 and "Question 39?" in seen[-1][-1]["content"]
    for sent in seen:
        valid_openai(sent)
    if not hasattr(base.ContextEngine, "select_context"):
        assert agent.context_compressor.compression_count > 0 and len(seen[-1]) < 60
