"""Haystack: a chat generator with a token budget for an Agent's loop, a compactor and a token counter.

    generator = ContextWindowChatGenerator(OpenAIChatGenerator(model="gpt-4o"), "gpt-4o", prompt_budget=8_000)
    agent = Agent(chat_generator=generator, tools=tools)

The history stays complete: only the messages for the model are planned. Hooks of an Agent cannot do that,
because a `before_llm` hook changes the Agent's own state permanently. To load any of these classes from a
file, first call `allow_deserialization_module("context_window.haystack")`. Supports haystack-ai 3.4, in which
compaction is experimental.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from haystack import component, default_from_dict, default_to_dict
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import (
    ChatMessage,
    ChatRole,
    FileContent,
    ImageContent,
    ReasoningContent,
    StreamingCallbackT,
    TextContent,
    ToolCall,
)
from haystack.hooks.compaction.types import Compactor
from haystack.token_counters import TokenCounter
from haystack.tools import ToolsType, flatten_tools_or_toolsets
from haystack.utils.deserialization import deserialize_component_inplace

from . import _wire
from ._core import ItemMessage, Manager
from ._history import Histories, History, SentMessage, Turn, item_messages, known_usage
from ._policy import (
    DocumentOptions,
    OnOverflow,
    Planned,
    Policy,
    TargetOptions,
    check_options,
    manager_of,
    response_tool,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ContextWindowChatGenerator", "ContextWindowCompactor", "ContextWindowTokenCounter"]


def to_wire(message: ChatMessage, provider: str = "openai_chat") -> list[dict[str, Any]]:
    """Converts a message of Haystack to dicts for the planner. `provider` is the wire format for files."""
    if message.tool_call_results:
        # A list of results is several messages. A call without an id is identified by its tool's name.
        results = [(one.origin.id or one.origin.tool_name, one.result) for one in message.tool_call_results]
        return [{"role": "tool", "tool_call_id": id, "content": _content(one, provider)} for id, one in results]
    parts = [*message.reasonings, *map(TextContent, message.texts), *message.images, *message.files]
    wire: dict[str, Any] = {"role": message.role.value, "content": _content(parts, provider)}
    if message.name:
        wire["name"] = message.name
    if thoughts := [one.reasoning_text for one in message.reasonings if not one.extra]:
        wire["reasoning_content"] = "\n\n".join(thoughts)
    if message.tool_calls:
        texts = [json.dumps(one.arguments, ensure_ascii=False, default=str) for one in message.tool_calls]
        calls = zip(message.tool_calls, texts)
        wire["tool_calls"] = [_wire.call(one.id or one.tool_name, one.tool_name, text) for one, text in calls]
    return [wire]


def _content(given: Any, provider: str) -> Any:
    if isinstance(given, str):
        return given
    parts = [part for one in given for part in _parts(one, provider)]
    return parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts or ""


def _parts(one: Any, provider: str) -> list[dict[str, Any]]:
    if isinstance(one, TextContent):
        return [{"type": "text", "text": one.text}]
    if isinstance(one, ImageContent):
        detail = {"detail": one.detail} if one.detail else {}
        url = f"data:{one.mime_type or 'image/jpeg'};base64,{one.base64_image}"
        return [{"type": "image_url", "image_url": {"url": url, **detail}}]
    if isinstance(one, FileContent):
        mime = one.mime_type or "application/pdf"
        if provider == "anthropic":
            return [{"type": "document", "source": {"type": "base64", "media_type": mime, "data": one.base64_data}}]
        file = {"file_data": f"data:{mime};base64,{one.base64_data}", "filename": one.filename or "filename"}
        return [{"type": "file", "file": file}]
    if isinstance(one, ReasoningContent):
        return _signed_reasoning(one)
    return []


def _signed_reasoning(one: ReasoningContent) -> list[dict[str, Any]]:
    """Returns the signed reasoning of Anthropic and Bedrock. Signed reasoning of other providers is sent
    unchanged.
    """
    found: list[dict[str, Any]] = []
    for thought in one.extra.get("reasoning_contents") or []:
        content = thought.get("reasoning_content") or {}
        if text := content.get("reasoning_text"):
            found.append({"type": "thinking", "thinking": text.get("text", ""), "signature": text.get("signature", "")})
        elif data := content.get("redacted_thinking"):
            found.append({"type": "redacted_thinking", "data": data})
    return found


def apply_changes(own: ChatMessage, item: ItemMessage, provider: str = "openai_chat") -> ChatMessage:
    """Returns a copy with the planner's changes. The history's own message stays unchanged."""
    wire = item_messages(item)[0]
    content: list[Any] = list(own._content)
    # The planner may not know the format of other media, so only results are shortened.
    if result := own.tool_call_result:
        if "text" in item.changed and isinstance(wire["content"], str):
            result = replace(result, result=wire["content"])
        elif "text" in item.changed:
            given = [] if isinstance(result.result, str) else [(_parts(one, provider), one) for one in result.result]
            kept = [next((one for part, one in given if part == [sent]), None) for sent in wire["content"]]
            parts = [one or TextContent(sent.get("text", "")) for one, sent in zip(kept, wire["content"])]
            result = replace(result, result=parts)
        if "calls" in item.changed:
            result = replace(result, origin=replace(result.origin, id=item.tool_call_id))
        return replace(own, _content=[result, *content[1:]])
    if "reasoning" in item.changed:
        content = [
            one
            for one in content
            if not isinstance(one, ReasoningContent) or (one.extra and not _signed_reasoning(one))
        ]
    if "calls" in item.changed:
        ids = iter([call["id"] for call in wire.get("tool_calls", [])])
        content = [replace(one, id=next(ids)) if isinstance(one, ToolCall) else one for one in content]
    return replace(own, _content=content)


def build_prompt(
    sent: Iterable[SentMessage[ChatMessage]], given: Sequence[ChatMessage], provider: str
) -> list[ChatMessage]:
    """Returns the prompt as messages of Haystack. System texts from the planner are appended to the system
    message.
    """
    system = given[0] if given and given[0].is_from(ChatRole.SYSTEM) else None
    texts: list[str] = []
    messages: list[ChatMessage] = []
    for item, own in sent:
        if own is not None:
            messages.append(apply_changes(own, item, provider) if item.changed else own)
        elif item.role == "system" and all(one.is_from(ChatRole.SYSTEM) for one in messages):
            texts.append(item.text)
        elif item.tool_call_id is not None:
            origin = ToolCall(tool_name="", arguments={}, id=item.tool_call_id)
            messages.append(ChatMessage.from_tool(item.text, origin))
        else:
            messages.append(ChatMessage(ChatRole(item.role), [TextContent(item.text)]))
    if texts and system is None:
        system = ChatMessage.from_system("\n\n".join(texts))
    elif texts and system is not None:
        system = replace(system, _content=[TextContent("\n\n".join([system.text or "", *texts]))])
    return messages if system is None else [system, *messages]


def _tools(tools: ToolsType | None) -> dict[str, Any]:
    """Returns tools as an argument of `Manager.plan`."""
    all = flatten_tools_or_toolsets(tools) if tools else []
    return {"tools": [{"type": "function", "function": one.tool_spec} for one in all]} if all else {}


def split_system(given: Sequence[ChatMessage]) -> tuple[str | None, list[ChatMessage]]:
    """Splits messages into the system text at the beginning and the messages after it."""
    has = bool(given) and given[0].is_from(ChatRole.SYSTEM)
    return given[0].text if has else None, list(given[1:] if has else given)


@component
class ContextWindowChatGenerator(Planned):
    """A chat generator whose requests fit a token budget. Tool calls keep their results, and the question
    stays.

    `chat_generator` is the inner generator, and `manager` is a `Manager` or a model's name. The other
    arguments are those of `Manager.plan` (`prompt_budget` in tokens, `max_completion_tokens`, `focus`, ...).
    Tools and the schema of a `response_format` are counted. If the provider rejects a request as too long, a
    smaller one is planned and sent, at most `retries` times. If the required messages exceed the budget,
    `on_overflow` raises (`"raise"`), warns (`"warn"`) or sends them without a warning (`"send"`).

    One instance serves several conversations and keeps the `most` last used ones. `plan` is the plan of the
    newest request. Raises `BudgetError` if the budget is 0. If the required items do not fit, they are sent
    anyway and `plan.overflow` is set.
    """

    def __init__(
        self,
        chat_generator: ChatGenerator,
        manager: Manager | str,
        *,
        on_overflow: OnOverflow = "warn",
        retries: int = 2,
        most: int = 64,
        **request: Unpack[DocumentOptions],
    ) -> None:
        check_options(ContextWindowChatGenerator, request, DocumentOptions)
        self.chat_generator = chat_generator
        self.manager = manager_of(manager)
        self._policy = Policy(on_overflow)
        self._settings: dict[str, Any] = {"on_overflow": on_overflow, "retries": retries, "most": most, **request}
        self._retries, self._request = retries, request
        convert = partial(to_wire, provider=self.manager.wire_format)
        self._histories: Histories[ChatMessage] = Histories(self.manager, convert, most=most)

    def __getattr__(self, name: str) -> Any:
        # `warm_up`, `close` and similar attributes belong to the inner generator.
        if name.startswith("_") or name == "chat_generator":
            raise AttributeError(name)
        return getattr(self.chat_generator, name)

    def to_dict(self) -> dict[str, Any]:
        """Returns the component as a dict. The manager is represented by its model's name."""
        inner = component_to_dict(self.chat_generator, "chat_generator")
        return default_to_dict(self, chat_generator=inner, manager=self.manager.name, **self._settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ContextWindowChatGenerator:
        """Creates the component from a dict of `to_dict`."""
        deserialize_component_inplace(data["init_parameters"], key="chat_generator")
        return default_from_dict(cls, data)

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage] | str,
        generation_kwargs: dict[str, Any] | None = None,
        tools: ToolsType | None = None,
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """Calls the inner generator with the planned messages, and returns its result."""
        given = {"generation_kwargs": generation_kwargs, "tools": tools, "streaming_callback": streaming_callback}
        given = {key: value for key, value in given.items() if value is not None}
        turn = self._turn(messages, tools, generation_kwargs)
        while True:
            try:
                result = self.chat_generator.run(self._build_prompt(turn, messages), **given)
                break
            except Exception as error:
                turn.shrink(error)
        commit_response(turn, result)
        return result

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        generation_kwargs: dict[str, Any] | None = None,
        tools: ToolsType | None = None,
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """Calls the inner generator like `run`. Plans in a separate thread."""
        given = {"generation_kwargs": generation_kwargs, "tools": tools, "streaming_callback": streaming_callback}
        given = {key: value for key, value in given.items() if value is not None}
        run: Any = getattr(self.chat_generator, "run_async", None)
        run = run or partial(asyncio.to_thread, cast(Any, self.chat_generator).run)
        turn = await asyncio.to_thread(self._turn, messages, tools, generation_kwargs)
        while True:
            try:
                result = await run(self._build_prompt(turn, messages), **given)
                break
            except Exception as error:
                await asyncio.to_thread(turn.shrink, error)
        await asyncio.to_thread(commit_response, turn, result)
        return cast("dict[str, Any]", result)

    def _turn(
        self, messages: list[ChatMessage] | str, tools: ToolsType | None, settings: dict[str, Any] | None
    ) -> Turn[ChatMessage]:
        system, rest = split_system(_to_list(messages))
        settings = {**(getattr(self.chat_generator, "generation_kwargs", None) or {}), **(settings or {})}
        counted = _tools(tools)
        if output := response_tool(settings.get("response_format") or settings.get("text_format")):
            counted["tools"] = [*counted.get("tools", []), output]
        history, request = self._histories.get_or_create(rest), {**self._request, **counted}
        return Turn(history, rest, system, request, self._retries, self._policy)

    def _build_prompt(self, turn: Turn[ChatMessage], messages: list[ChatMessage] | str) -> list[ChatMessage]:
        return build_prompt(turn.sent, _to_list(messages), self.manager.wire_format)


def _to_list(messages: list[ChatMessage] | str) -> list[ChatMessage]:
    return [ChatMessage.from_user(messages)] if isinstance(messages, str) else messages


def commit_response(turn: Turn[ChatMessage], result: dict[str, Any]) -> None:
    """Stores the reply if there is exactly one."""
    replies = result.get("replies") or []
    if len(replies) == 1:
        turn.commit(replies[0], known_usage(replies[0].meta.get("usage")))


class ContextWindowTokenCounter(TokenCounter):
    """Exact counts of messages and tools, for a `CompactionHook` and other users of a `TokenCounter`."""

    def __init__(self, manager: Manager | str) -> None:
        self.manager = manager_of(manager)

    def count(self, messages: list[ChatMessage], tools: ToolsType | None = None) -> int:
        """Returns the tokens of messages and of the tools sent with them. Returns 0 if there are neither."""
        if not messages and not tools:
            return 0
        wire = [one for message in messages for one in to_wire(message, self.manager.wire_format)]
        return self.manager.count_messages(wire, **_tools(tools))

    def to_dict(self) -> dict[str, Any]:
        """Returns the counter as a dict. The manager is represented by its model's name."""
        return default_to_dict(self, manager=self.manager.name)


class ContextWindowCompactor(Planned, Compactor):
    """Compacts the messages of an Agent: drops the least important messages instead of the oldest.

    The history does not stay complete. `CompactionHook` writes the result into the Agent's state. Dropped
    messages are missing for the rest of the run and in the `messages` that the Agent returns. Use a
    `ContextWindowChatGenerator` instead to keep everything. The arguments after `manager` are those of
    `Manager.plan` except `prompt_budget`, which is the hook's target. If the required messages exceed the
    target, `on_overflow` raises (`"raise"`), warns (`"warn"`) or returns them without a warning (`"send"`).
    """

    def __init__(
        self, manager: Manager | str, *, on_overflow: OnOverflow = "warn", **request: Unpack[TargetOptions]
    ) -> None:
        check_options(ContextWindowCompactor, request, TargetOptions)
        self.manager = manager_of(manager)
        self._policy = Policy(on_overflow)
        self._settings: dict[str, Any] = {"on_overflow": on_overflow, **request}
        self._request = request

    def compact(
        self, messages: list[ChatMessage], target_tokens: int, token_counter: TokenCounter
    ) -> list[ChatMessage] | None:
        """Returns the messages within `target_tokens`, counted by `token_counter`. Returns None if the
        result would not be smaller.
        """
        if not messages:
            return None
        before = token_counter.count(messages)
        exact = ContextWindowTokenCounter(self.manager).count(messages)
        # The target is in tokens of another counter, so it is converted by the ratio of both counts.
        budget = max(1, target_tokens * exact // max(1, before))
        history: History[ChatMessage] = History(self.manager, partial(to_wire, provider=self.manager.wire_format))
        system, rest = split_system(messages)
        request: dict[str, Any] = {**self._request, "prompt_budget": budget}
        plan = history.plan(rest, system, **request)
        self._policy.accept(plan, "They are returned nevertheless.")
        kept = build_prompt(history.sent(plan), messages, self.manager.wire_format)
        return kept if kept and token_counter.count(kept) < before else None

    async def compact_async(
        self, messages: list[ChatMessage], target_tokens: int, token_counter: TokenCounter
    ) -> list[ChatMessage] | None:
        """Compacts like `compact`, in a separate thread."""
        return await asyncio.to_thread(self.compact, messages, target_tokens, token_counter)

    def to_dict(self) -> dict[str, Any]:
        """Returns the compactor as a dict. The manager is represented by its model's name."""
        return default_to_dict(self, manager=self.manager.name, **self._settings)
