"""Pydantic AI: a token budget for every request of an agent, and conversations in a store.

    agent = Agent("openai:gpt-5", capabilities=[ContextWindow("gpt-5", max_completion_tokens=4_000)])
    store = StoreConversations(Store("sqlite:conversations.db"))

The run's history stays complete: only the messages for the model are planned. Supports pydantic-ai 2.68.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_ai import RetryModelRequest, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from . import _wire
from ._calls import call_async
from ._core import Conversation, ItemMessage, Manager
from ._history import Histories, History, SentMessage, Turn, item_messages
from ._policy import OnOverflow, Planned, Policy, RequestOptions, check_options, manager_of, output_tool
from ._pydantic_ai_store import StoreConversations

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ContextWindow", "StoreConversations"]

#: A function that returns the `documents` argument of `Manager.plan` for a request.
Documents: TypeAlias = Callable[[RunContext[Any]], Iterable[Any] | Awaitable[Iterable[Any]]]

#: Parts without content of their own. They are sent with their request.
_PARTS_WITHOUT_CONTENT = (
    "tool-availability-delta",
    "capability-load-delta",
    "model-settings-delta",
    "instruction-baseline",
)


@dataclass(frozen=True)
class Unit:
    """The source of one message in the planner's log: a part of a request, or a whole response."""

    part: Any
    message: ModelMessage = field(compare=False)


def _is_result(part: Any) -> bool:
    return isinstance(part, ToolReturnPart) or getattr(part, "tool_name", None) is not None


def _units(messages: Iterable[ModelMessage]) -> list[Unit]:
    units: list[Unit] = []
    for one in messages:
        if isinstance(one, ModelResponse):
            units.append(Unit(one, one))
        else:
            # Results are sent first, whatever their position.
            parts = sorted(one.parts, key=lambda part: not _is_result(part))
            units.extend([Unit(part, one) for part in parts if part.part_kind not in _PARTS_WITHOUT_CONTENT])
    return units


def _to_wire(unit: Unit) -> list[dict[str, Any]]:
    part = unit.part
    if isinstance(part, ModelResponse):
        return [_response(part)]
    if part.part_kind in ("system-prompt", "instruction-delta"):
        return [{"role": "system", "content": part.content if part.part_kind == "system-prompt" else part.render()}]
    content: Any = part.model_response() if part.part_kind.startswith("retry-") else _part_content(part)
    if not isinstance(content, str):
        content = [_block(one) for one in content]
    if not _is_result(part):
        return [{"role": "user", "content": content}]
    if files := getattr(part, "files", None):
        content = [{"type": "text", "text": content}, *map(_block, files)]
    return [{"role": "tool", "tool_call_id": part.tool_call_id, "content": content}]


def _response(response: ModelResponse) -> dict[str, Any]:
    content, calls = list[Any](), list[Any]()
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            calls.append(_wire.call(part.tool_call_id, part.tool_name, part.args_as_json_str()))
        elif isinstance(part, ThinkingPart) and part.signature and part.provider_name in ("anthropic", "bedrock"):
            content.append({"type": "thinking", "thinking": part.content, "signature": part.signature})
        else:
            content.append(_block(part.content if part.part_kind == "file" else _part_content(part)))
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


def _part_content(part: Any) -> Any:
    """Returns the content of a part. Calls and results of the provider's own tools count as JSON."""
    if isinstance(part, ThinkingPart):
        # Reasoning without a provider's signature is sent back as text.
        return f"<think>\n{part.content}\n</think>"
    if part.part_kind == "builtin-tool-call":
        return f"{part.tool_name} {part.args_as_json_str()}"
    if part.part_kind.endswith("tool-return"):
        return part.model_response_str()
    return (part.transcript if part.part_kind == "speech" else part.content) or ""


def _block(content: Any) -> dict[str, Any]:
    """Converts text or media of a user. A file that is not an image counts as its name."""
    kind = getattr(content, "kind", "")
    if kind == "image-url" or (kind == "binary" and content.is_image):
        return {"type": "image_url", "image_url": {"url": content.url if kind == "image-url" else content.data_uri}}
    text = content if isinstance(content, str) else getattr(content, "content", getattr(content, "identifier", ""))
    return {"type": "text", "text": text}


class ContextWindow(Planned, AbstractCapability[Any]):
    """Plans every request of an agent. The prompt fits its budget, tool calls keep their results, and the
    question stays.

    The history's own messages are sent. A request without some of its parts, or with a shortened result, is a
    copy. Responses are complete: the model's class decides if their reasoning is sent back.

    `documents` returns the retrieved documents for a request, sync or async. The other arguments are those of
    `Manager.plan` (`prompt_budget`, `max_completion_tokens`, `focus`, ...). Instructions, function tools,
    output tools and the schema of an output are counted. Pass a `safety_buffer` for native tools. Place this
    capability last, so that it sees the additions of the others.

    If the required messages exceed the budget, `on_overflow` raises (`"raise"`), warns (`"warn"`) or sends them
    without a warning (`"send"`). If the provider rejects a request as too long, a smaller one is planned and
    sent, at most `retries` times.

    One instance serves several conversations and keeps the `most` last used ones. A conversation with a new id,
    which Pydantic AI makes up for a history without one, is recognized by its content. `plan` is the plan of the
    newest request. Raises the errors of `Manager.plan`.
    """

    def __init__(
        self,
        manager: Manager | str,
        *,
        documents: Documents | None = None,
        on_overflow: OnOverflow = "warn",
        retries: int = 2,
        most: int = 64,
        **request: Unpack[RequestOptions],
    ) -> None:
        check_options(ContextWindow, request)
        self.manager = manager_of(manager)
        self._policy = Policy(on_overflow)
        self._documents, self._retries, self._most, self._request = documents, retries, most, request
        self._histories: Histories[Unit] = Histories(self.manager, _to_wire, most=most)
        #: The current request of each run.
        self._turns: dict[str | None, _Turn] = {}

    def conversation(self, conversation_id: str) -> Conversation:
        """Returns the planner's log of a conversation. Use it to pin notes. Call it again for each pin, because
        a log may be replaced.
        """
        return self._histories.get_named(conversation_id).log

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Sends the planned messages instead of the whole history. Plans in a separate thread."""
        given = await call_async(self._documents, ctx) if self._documents is not None else None
        extra = {"documents": given, **self._request}
        turn = await asyncio.to_thread(self._turn, ctx, request_context, extra)
        return replace(request_context, messages=turn.messages())

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Sends the smaller messages after a rejection."""
        turn = self._turns.get(ctx.run_id)
        if turn is None or not turn.is_shrunk:
            return request_context
        return replace(request_context, messages=turn.messages_after(request_context.messages))

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Plans a smaller prompt if the error reports an overflow."""
        if (turn := self._turns.get(ctx.run_id)) is None:
            raise error
        await asyncio.to_thread(turn.shrink, error)
        turn.is_shrunk = True
        raise RetryModelRequest from error

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Stores the reply, with the provider's report."""
        if (turn := self._turns.pop(ctx.run_id, None)) is not None:
            # A thread of another task may hold the conversation's lock while it plans.
            await asyncio.to_thread(turn.commit, Unit(response, response), _usage(response))
        return response

    def _turn(self, ctx: RunContext[Any], context: ModelRequestContext, extra: dict[str, Any]) -> _Turn:
        given = context.model_request_parameters
        shown = [one for one in given.function_tools if not one.defer_loading or one.name in ctx.discovered_tool_names]
        tools = [
            {"name": one.name, "description": one.description or "", "parameters": one.parameters_json_schema}
            for one in [*shown, *given.output_tools]
        ]
        wire = [{"type": "function", "function": one} for one in tools]
        if (output := given.output_object) is not None and given.output_mode in ("native", "prompted"):
            wire.append(output_tool(output.name or "output", output.json_schema, output.description or ""))
        extra.setdefault("tools", wire)
        units, system = _units(context.messages), InstructionPart.join(given.instruction_parts or [])
        history = self._histories.get_or_create(units, ctx.conversation_id, is_made_up=True)
        turn = self._turns[ctx.run_id] = _Turn(history, units, system, extra, self._retries, self._policy)
        turn.tail = context.messages[-1]
        # A failed run leaves its turn behind, so the oldest turns are dropped.
        while len(self._turns) > self._most:
            del self._turns[next(iter(self._turns))]
        return turn


def _usage(response: ModelResponse) -> dict[str, Any] | None:
    usage = response.usage
    if not usage.input_tokens:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
    }


class _Turn(Turn[Unit]):
    """A request in progress."""

    tail: ModelMessage
    is_shrunk = False

    def __init__(self, history: History[Unit], units: list[Unit], *given: Any) -> None:
        super().__init__(history, units, *given)
        self._planned = {id(unit.part) for unit in units}
        self._made: list[ModelMessage] = []

    def messages(self) -> list[ModelMessage]:
        """Returns the prompt as messages of Pydantic AI."""
        made: list[ModelMessage] = []
        for _, run in groupby(self.sent, lambda one: id(one.own.message) if one.own is not None else None):
            made.extend(self._join_parts(list(run)))
        # The run may end with a request without a prompt, or with a response to continue. Either must come
        # last.
        if isinstance(self.tail, ModelResponse) or not any(id(part) in self._planned for part in self.tail.parts):
            made = [*(one for one in made if one is not self.tail), self.tail]
        self._made.extend(made)
        return made

    def messages_after(self, refused: list[ModelMessage]) -> list[ModelMessage]:
        """Returns the smaller prompt, with the run's own additions to the previous one."""
        known, there = {id(one) for one in self._made}, {id(one) for one in refused}
        made = [one for one in self.messages() if id(one) in there or id(one) not in known]
        return [*made, *(one for one in refused if id(one) not in known)]

    def _join_parts(self, run: list[SentMessage[Unit]]) -> Iterator[ModelMessage]:
        own = run[0].own
        if own is None:
            # The run itself completes a call without a result.
            yield from (_to_message(one.item) for one in run if one.item.role != "tool")
        elif isinstance(own.message, ModelResponse):
            yield _apply_changes(own.part, run[0].item)
        else:
            kept = {id(one.own.part): _apply_changes(one.own.part, one.item) for one in run if one.own is not None}
            parts = list(own.message.parts)
            planned = [id(part) for part in parts if id(part) in self._planned]
            # Parts without content of their own, and parts that were added since, stay with the last part.
            rest = {id(part) for part in parts if planned[-1] in kept and id(part) not in planned}
            parts = [kept.get(id(part), part) for part in parts if id(part) in kept or id(part) in rest]
            same = len(parts) == len(own.message.parts) and all(map(operator.is_, parts, own.message.parts))
            yield own.message if same else replace(own.message, parts=parts)


def _to_message(item: ItemMessage) -> ModelMessage:
    if item.role == "assistant":
        return ModelResponse([TextPart(item.text)])
    return ModelRequest([UserPromptPart(item.text) if item.role == "user" else SystemPromptPart(item.text)])


def _apply_changes(own: Any, item: ItemMessage) -> Any:
    """Returns a copy with the planner's changes of call ids or results. Returns the history's own object
    if nothing changed.
    """
    update: dict[str, Any] = {}
    if "calls" in item.changed and isinstance(own, ModelResponse):
        ids = iter([call["id"] for call in item_messages(item)[0].get("tool_calls", [])])
        renamed = [replace(one, tool_call_id=next(ids)) for one in own.parts if isinstance(one, ToolCallPart)]
        update["parts"] = [renamed.pop(0) if isinstance(one, ToolCallPart) else one for one in own.parts]
    elif "calls" in item.changed:
        update["tool_call_id"] = item.tool_call_id
    if "text" in item.changed and isinstance(own, ToolReturnPart):
        update["content"] = [item.text, *own.files] if own.files else item.text
    return replace(own, **update) if update else own
