"""Compares the prompts of each adapter with the framework's own trimming: the share of the last prompt that
begins the next one, and the share of the budget that is used.

    CONTEXT_WINDOW_DATA=DIRECTORY python benches/prefix.py [BUDGET ...]

The directory has `conv_*.jsonl` files with a conversation in the format of OpenAI Chat in each line. Each
session has 60 requests, one before each reply. `kept` is the number of tokens at the beginning of a prompt that
equal those of the last prompt, divided by the tokens of the last prompt. `used` is the median share of the
budget among the prompts that do not hold the whole history. `over` is the number of prompts above the budget,
and `orphans` the number of prompts with a tool result without its call, or a call without its result.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from context_window import Manager

DATA = ("conv_taubench", "conv_claudecode", "conv_miniswe")
REQUESTS, SESSIONS = 60, 3
MANAGER = Manager("gpt-4o")
BASE = MANAGER.count_messages([])

Message = dict[str, Any]
#: A function from the messages of a request, and its reply, to the messages that are sent. It keeps the state of
#: one session.
Trim = Callable[[list[Message], Message], list[Message]]


def lines(name: str) -> Iterator[Any]:
    folder = Path(os.environ.get("CONTEXT_WINDOW_DATA", "."))
    path = folder / f"{name}.jsonl"
    with path.open() if path.exists() else gzip.open(f"{path}.gz", "rt") as file:
        yield from map(json.loads, file)


def sessions(name: str) -> list[list[Message]]:
    """Returns the longest conversations of a file, joined to sessions of at least `REQUESTS` replies."""
    found = sorted((one["messages"] for one in lines(name)), key=replies, reverse=True)
    joined: list[list[Message]] = []
    for given in found:
        messages = [cleaned(one) for one in given]
        if joined and replies(joined[-1]) < REQUESTS:
            joined[-1].extend(one for one in messages if one["role"] != "system")
        elif len(joined) == SESSIONS:
            break
        else:
            joined.append(messages)
    return joined


def replies(messages: list[Message]) -> int:
    return sum(one["role"] == "assistant" for one in messages)


def cleaned(message: Message) -> Message:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(one.get("text", "") for one in content)
    if not text and message["role"] == "tool":
        text = "(empty)"  # as Haystack demands
    kept = {key: message[key] for key in ("role", "tool_calls", "tool_call_id") if message.get(key)}
    return {**kept, "content": text}


_sizes: dict[str, int] = {}


def size(message: Message) -> int:
    key = json.dumps(message, sort_keys=True)
    if key not in _sizes:
        _sizes[key] = MANAGER.count_messages([message]) - BASE
    return _sizes[key]


def ours_langchain(budget: int, *, is_stateless: bool = False) -> Trim:
    from context_window import _wire
    from context_window.langchain import ContextWindowMiddleware
    from langchain.agents.middleware import ModelRequest
    from langchain_core.messages import convert_to_messages

    planner = ContextWindowMiddleware(MANAGER, prompt_budget=budget)
    known: list[Any] = []
    model: Any = SimpleNamespace()

    def trim(messages: list[Message], reply: Message) -> list[Message]:
        if is_stateless:
            known.clear()
        known.extend(convert_to_messages(messages[len(known) :]))
        sent: list[Any] = []
        [answer] = convert_to_messages([reply])
        request: Any = ModelRequest(model=model, messages=list(known))
        planner.wrap_model_call(request, lambda one: sent.extend(one.messages) or answer)  # type: ignore[arg-type,return-value,func-returns-value]
        known.append(answer)
        return [cleaned(_wire.langchain(one)) for one in sent]

    return trim


def stateless_langchain(budget: int) -> Trim:
    return ours_langchain(budget, is_stateless=True)


def langchain_drop_in(budget: int, *, is_theirs: bool = False) -> Trim:
    from context_window import _wire
    from context_window.langchain import TokenCounter, trim_messages
    from langchain_core.messages import convert_to_messages
    from langchain_core.messages import trim_messages as theirs

    counter, known = TokenCounter(MANAGER), list[Any]()
    settings: Any = {"max_tokens": budget, "token_counter": counter, "include_system": True}

    def trim(messages: list[Message], reply: Message) -> list[Message]:
        known.extend(convert_to_messages(messages[len(known) :]))
        sent = theirs(known, start_on="human", **settings) if is_theirs else trim_messages(known, **settings)
        return [cleaned(_wire.langchain(one)) for one in sent]

    return trim


def langchain_itself(budget: int) -> Trim:
    return langchain_drop_in(budget, is_theirs=True)


def litellm_hook(budget: int) -> Trim:
    from context_window.litellm import ContextWindowHook

    hook = ContextWindowHook(lambda model: MANAGER, budget)
    return lambda messages, reply: hook.messages("gpt-4o", messages)


def litellm_drop_in(budget: int) -> Trim:
    from context_window.litellm import trim_messages

    return lambda messages, reply: trim_messages(messages, "gpt-4o", max_tokens=budget)  # type: ignore[no-any-return]


def litellm_itself(budget: int) -> Trim:
    from litellm.utils import trim_messages

    return lambda messages, reply: trim_messages(
        [dict(one) for one in messages], "gpt-4o", max_tokens=budget, trim_ratio=1.0
    )


def openai_agents(budget: int) -> Trim:
    from agents import Agent
    from agents.models.chatcmpl_converter import Converter
    from agents.run_config import CallModelData, ModelInputData
    from context_window.openai_agents import ContextWindowFilter

    planner, agent, known = ContextWindowFilter(MANAGER, prompt_budget=budget), Agent("a"), list[Any]()
    read = [0]

    def trim(messages: list[Message], reply: Message) -> list[Message]:
        for one in messages[read[0] :]:
            if one["role"] == "tool":
                known.append({"type": "function_call_output", "call_id": one["tool_call_id"], "output": one["content"]})
                continue
            if one["content"] or not one.get("tool_calls"):
                known.append({"role": one["role"], "content": one["content"]})
            for call in one.get("tool_calls") or []:
                known.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        read[0] = len(messages)
        made = asyncio.run(planner(CallModelData(ModelInputData(list(known), None), agent, None)))
        sent: list[Message] = []
        for one in map(cleaned, map(dict, Converter.items_to_messages(made.input))):
            # The text and the calls of one reply are two items, and one message of Chat.
            if sent and one.get("tool_calls") and sent[-1]["role"] == "assistant" and not sent[-1].get("tool_calls"):
                one = {**one, "content": sent.pop()["content"]}
            sent.append(one)
        return sent

    return trim


def pydantic_ai(budget: int) -> Trim:
    from context_window.pydantic_ai import ContextWindow, Unit, _to_wire
    from pydantic_ai import messages as pa
    from pydantic_ai.models import ModelRequestParameters

    planner, known, read = ContextWindow(MANAGER, prompt_budget=budget), list[Any](), [0]
    ctx: Any = SimpleNamespace(run_id="r", conversation_id="c", discovered_tool_names=set())

    def trim(messages: list[Message], reply: Message) -> list[Message]:
        for one in [*messages[read[0] :], reply]:
            text = one["content"]
            if one["role"] == "assistant":
                calls = [call["function"] | {"id": call["id"]} for call in one.get("tool_calls") or []]
                parts: list[Any] = [pa.TextPart(text)] if text or not calls else []
                parts += [pa.ToolCallPart(call["name"], call["arguments"], tool_call_id=call["id"]) for call in calls]
                known.append(pa.ModelResponse(parts))
            elif one["role"] == "tool":
                known.append(pa.ModelRequest([pa.ToolReturnPart("tool", text, tool_call_id=one["tool_call_id"])]))
            else:
                part = pa.SystemPromptPart(text) if one["role"] == "system" else pa.UserPromptPart(text)
                known.append(pa.ModelRequest([part]))
        read[0] = len(messages) + 1
        given = SimpleNamespace(messages=known[:-1], model_request_parameters=ModelRequestParameters())
        turn = planner._turn(ctx, given, {"prompt_budget": budget})  # type: ignore[arg-type]
        turn.commit(Unit(known[-1], known[-1]))
        units = [part for one in turn.messages() for part in (one.parts if isinstance(one, pa.ModelRequest) else [one])]
        return [cleaned(wire) for part in units for wire in _to_wire(SimpleNamespace(part=part))]  # type: ignore[arg-type]

    return trim


def llama_index(budget: int, *, is_theirs: bool = False) -> Trim:
    from context_window._llama_index_messages import to_wire
    from context_window.llama_index import ContextWindowLLM
    from llama_index.core.base.llms import types as li
    from llama_index.core.llms.mock import MockFunctionCallingLLM
    from llama_index.core.memory import ChatMemoryBuffer

    known, seen = list[Any](), list[Any]()
    model = MockFunctionCallingLLM(
        response_generator=lambda given, **_: seen.append(given) or known[-1].model_copy()  # type: ignore[func-returns-value]
    )
    llm = ContextWindowLLM(model, MANAGER, prompt_budget=budget)

    def trim(messages: list[Message], reply: Message) -> list[Message]:
        for one in [*messages[len(known) :], reply]:
            calls = [call["function"] | {"id": call["id"]} for call in one.get("tool_calls") or []]
            blocks: list[Any] = [li.TextBlock(text=one["content"])] if one["content"] or not calls else []
            for call in calls:
                blocks.append(
                    li.ToolCallBlock(tool_call_id=call["id"], tool_name=call["name"], tool_kwargs=call["arguments"])
                )
            said = {"tool_call_id": one["tool_call_id"]} if one["role"] == "tool" else {}
            known.append(li.ChatMessage(role=one["role"], blocks=blocks, additional_kwargs=said))
        if is_theirs:
            memory = ChatMemoryBuffer.from_defaults(known[:-1], token_limit=budget, tokenizer_fn=tokens)
            return [cleaned(wire) for one in memory.get() for wire in to_wire(one)]
        llm.chat(known[:-1])
        return [cleaned(wire) for one in seen[-1] for wire in to_wire(one)]

    return trim


def tokens(text: str) -> list[int]:
    return [0] * MANAGER.count(text)


def llama_index_itself(budget: int) -> Trim:
    return llama_index(budget, is_theirs=True)


def haystack(budget: int, *, is_theirs: bool = False) -> Trim:
    from context_window.haystack import ContextWindowChatGenerator, ContextWindowTokenCounter, to_wire
    from haystack import component
    from haystack.dataclasses import ChatMessage
    from haystack.hooks.compaction import SlidingWindowCompactor

    known, seen, read = list[Any](), list[Any](), [0]

    @component
    class Model:
        @component.output_types(replies=list[ChatMessage])
        def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
            seen.append(messages)
            return {"replies": [known[-1]]}

    generator = ContextWindowChatGenerator(Model(), MANAGER, prompt_budget=budget)
    counter, compactor = ContextWindowTokenCounter(MANAGER), SlidingWindowCompactor()

    def trim(messages: list[Message], reply: Message) -> list[Message]:
        for one in [*messages[read[0] :], reply]:
            wire = {**one, "content": one["content"] or None} if one.get("tool_calls") else one
            known.append(ChatMessage.from_openai_dict_format(wire))
        read[0] = len(messages) + 1
        if is_theirs:
            # The defaults of its hook: it compacts at 70 % of a window to 40 %.
            if counter.count(known[:-1]) > budget:
                known[:-1] = compactor.compact(known[:-1], budget * 4 // 7, counter) or known[:-1]
            return [cleaned(wire) for one in known[:-1] for wire in to_wire(one)]
        generator.run(known[:-1])
        return [cleaned(wire) for one in seen[-1] for wire in to_wire(one)]

    return trim


def haystack_itself(budget: int) -> Trim:
    return haystack(budget, is_theirs=True)


LANES: dict[str, Callable[[int], Trim]] = {
    "LangChain: ContextWindowMiddleware": ours_langchain,
    "LangChain: the same, dicts without a thread": stateless_langchain,
    "LangChain: trim_messages of this package": langchain_drop_in,
    "LangChain: its own trim_messages": langchain_itself,
    "LiteLLM: ContextWindowHook": litellm_hook,
    "LiteLLM: trim_messages of this package": litellm_drop_in,
    "LiteLLM: its own trim_messages": litellm_itself,
    "OpenAI Agents: ContextWindowFilter": openai_agents,
    "PydanticAI: ContextWindow": pydantic_ai,
    "LlamaIndex: ContextWindowLLM": llama_index,
    "LlamaIndex: its own ChatMemoryBuffer": llama_index_itself,
    "Haystack: ContextWindowChatGenerator": haystack,
    "Haystack: its own SlidingWindowCompactor": haystack_itself,
}


def has_orphans(sent: list[Message]) -> bool:
    called = [call["id"] for one in sent for call in one.get("tool_calls") or []]
    return sorted(called) != sorted(one["tool_call_id"] for one in sent if one["role"] == "tool")


def measured(make: Callable[[int], Trim], budget: int, given: list[list[Message]]) -> dict[str, Any]:
    same = before = over = orphans = requests = 0
    used: list[float] = []
    start = time.process_time()
    for messages in given:
        trim, last = make(budget), list[Message]()
        ends = [at for at, one in enumerate(messages) if one["role"] == "assistant" and at][:REQUESTS]
        for at in ends:
            sent = trim(messages[:at], messages[at])
            sizes, total = list(map(size, sent)), BASE + sum(map(size, sent))
            requests += 1
            over += total > budget
            orphans += has_orphans(sent) and not has_orphans(messages[:at])
            if BASE + sum(map(size, messages[:at])) > budget:
                used.append(total / budget)
            if last:
                before += sum(map(size, last))
                kept = next((n for n, (one, other) in enumerate(zip(sent, last)) if one != other), None)
                same += sum(sizes[: min(len(sent), len(last)) if kept is None else kept])
            last = sent
    seconds = time.process_time() - start
    share = statistics.median(used) if used else float("nan")
    return {
        "kept": same / max(before, 1),
        "used": share,
        "over": over,
        "orphans": orphans,
        "ms": seconds * 1e3 / requests,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    for budget in [int(one) for one in sys.argv[1:]] or [2_000, 8_000]:
        for name in DATA:
            given = sessions(name)
            print(f"\n{name}, {len(given)} sessions, budget {budget:,}: kept, used, over, orphans, CPU ms a request")
            for lane, make in LANES.items():
                try:
                    of = measured(make, budget, given)
                except Exception as error:  # A framework that is not installed, or that fails at these messages.
                    print(f"{lane:44} failed: {type(error).__name__}: {str(error)[:120]}")
                    continue
                print(
                    f"{lane:44} {of['kept']:5.2f} {of['used']:5.2f} {of['over']:4} {of['orphans']:4} {of['ms']:8.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
