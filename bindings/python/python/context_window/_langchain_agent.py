"""The middleware of an agent. Only this module of the package imports `langchain.agents`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from ._calls import call_async, call_sync
from ._core import CompactionJob, Conversation, Manager
from ._history import Histories, History, Turn
from ._langchain_messages import build_prompt, is_same_message, to_document, to_wire
from ._policy import OnOverflow, Planned, Policy, RequestOptions, check_options, manager_of, output_tool, warn

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A function that returns the documents for a request, sync or async.
Documents: TypeAlias = Callable[[ModelRequest[Any]], Iterable[Any] | Awaitable[Iterable[Any]]]

#: A function that writes a summary, sync or async.
Summarise: TypeAlias = Callable[[CompactionJob], str | Awaitable[str]]


class ContextWindowMiddleware(Planned, AgentMiddleware[Any, Any, Any]):
    """Plans every request of an agent. The prompt fits its budget, tool calls keep their results, and the
    question stays.

    Conversations are distinguished by the result of `key` for a request, or by the `thread_id` of the agent's
    config. Without either, they are distinguished by the content of their messages. `documents` returns the
    retrieved documents for a request. `summarise` writes a summary for a `CompactionJob` when one is due. Both
    may be async functions for `ainvoke`. After a summary that failed or was refused, the next requests go
    without, with a warning. The other arguments are those of `Manager.plan` (`prompt_budget`,
    `max_completion_tokens`, `focus`, ...). Tools and the schema of a structured output are counted.

    If the required messages exceed the budget, `on_overflow` raises (`"raise"`), warns (`"warn"`) or sends them
    without a warning (`"send"`). If the provider rejects a request as too long, a smaller one is planned and
    sent, at most `retries` times.

    One instance serves several conversations from several threads. It keeps the `most` last used ones. `plan`
    is the plan of the newest request.
    """

    def __init__(
        self,
        manager: Manager | str,
        *,
        documents: Documents | None = None,
        key: Callable[[ModelRequest[Any]], Hashable] | None = None,
        summarise: Summarise | None = None,
        on_overflow: OnOverflow = "warn",
        retries: int = 2,
        most: int = 64,
        **request: Unpack[RequestOptions],
    ) -> None:
        super().__init__()
        check_options(ContextWindowMiddleware, request)
        for name, function in (("documents", documents), ("key", key), ("summarise", summarise)):
            if function is not None and not callable(function):
                raise TypeError(f"{name}: expected a function, not a {type(function).__name__}")
        self.manager = manager_of(manager)
        self._policy = Policy(on_overflow)
        self._documents = documents
        self._key = key
        self._summarise = summarise
        self._retries = retries
        self._request = request
        self._histories: Histories[BaseMessage] = Histories(self.manager, to_wire, most=most, is_same=is_same_message)
        self._tools = _Tools()

    def conversation(self, key: Hashable) -> Conversation:
        """Returns the planner's log of a conversation, by the thread's id or the result of `key`. Use it to
        pin notes. Call it again for each pin, because a log may be replaced.
        """
        return self._histories.get_named(key).log

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Sends the planned request instead of the whole history."""
        given = call_sync("documents", self._documents, request) if self._documents is not None else None
        parts = self._read_request(request, given)
        if (job := self._due_summary(parts)) is not None and self._summarise is not None:
            try:
                summary = call_sync("summarise", self._summarise, job)
            except Exception as error:
                self._postpone_summary(parts, error)
            else:
                self._apply_summary(parts, job, summary)
        turn = self._turn(parts)
        while True:
            try:
                response = handler(_override_messages(turn, request))
                break
            except Exception as error:
                turn.shrink(error)
        commit_response(turn, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Sends the planned request like `wrap_model_call`. Plans in a separate thread."""
        given = await call_async(self._documents, request) if self._documents is not None else None
        parts = await asyncio.to_thread(self._read_request, request, given)
        if self._summarise is not None and (job := await asyncio.to_thread(self._due_summary, parts)) is not None:
            try:
                summary = await call_async(self._summarise, job)
            except Exception as error:
                self._postpone_summary(parts, error)
            else:
                await asyncio.to_thread(self._apply_summary, parts, job, summary)
        turn = await asyncio.to_thread(self._turn, parts)
        while True:
            try:
                response = await handler(_override_messages(turn, request))
                break
            except Exception as error:
                await asyncio.to_thread(turn.shrink, error)
        # A thread of another task may hold the conversation's lock while it plans.
        await asyncio.to_thread(commit_response, turn, response)
        return response

    def _read_request(self, request: ModelRequest[Any], documents: Iterable[Any] | None) -> _RequestParts:
        extra: dict[str, Any] = dict(self._request)
        if tools := self._tools.wire(request):
            extra["tools"] = tools
        if documents is not None:
            extra["documents"] = [to_document(one, at) for at, one in enumerate(documents)]
        key = self._key(request) if self._key is not None else current_thread_id()
        # A server makes up a thread's id for each stateless request.
        history = self._histories.get_or_create(request.messages, key, is_made_up=self._key is None)
        system = request.system_message.text if request.system_message is not None else None
        return history, request.messages, system, extra

    def _turn(self, parts: _RequestParts) -> Turn[BaseMessage]:
        return Turn(*parts, self._retries, self._policy)

    def _due_summary(self, parts: _RequestParts) -> CompactionJob | None:
        """Returns the due summary, or None if none is due or the last one failed a short time ago."""
        history, messages, system, extra = parts
        if self._summarise is None:
            return None
        with history.lock:
            history.sync(messages, system)
            options = {name: value for name, value in extra.items() if name != "documents"}
            job = self.manager.compaction_due(history.log, **options)
            return job if job is not None and history.summaries.is_over() else None

    def _apply_summary(self, parts: _RequestParts, job: CompactionJob, summary: Any) -> None:
        # The lock is not held while the summary is written, because a model may take long. The summary is
        # checked against the log.
        history = parts[0]
        try:
            if not isinstance(summary, str):
                raise TypeError(f"summarise: expected a string, not a {type(summary).__name__}")
            self.manager.apply_summary(history.log, job, summary)
        except Exception as error:
            self._postpone_summary(parts, error)
        else:
            history.summaries.end()

    def _postpone_summary(self, parts: _RequestParts, error: Exception) -> None:
        """Warns of a failed summary. Nothing is archived, and the plan goes without."""
        pause = parts[0].summaries.extend()
        warn(f"no summary: {type(error).__name__}: {error}. The next one is requested after {pause} requests.")


#: The conversation of a request, its messages, its system text, and the arguments of its plan.
_RequestParts: TypeAlias = tuple[History[BaseMessage], Sequence[BaseMessage], str | None, dict[str, Any]]


def _override_messages(turn: Turn[BaseMessage], request: ModelRequest[Any]) -> ModelRequest[Any]:
    system, messages = build_prompt(turn.sent, request.system_message)
    return request.override(messages=cast("list[AnyMessage]", messages), system_message=system)


def current_thread_id() -> Hashable:
    """Returns the id of the thread that the agent runs in, or None outside of a run."""
    try:
        return cast("Hashable", get_config().get("configurable", {}).get("thread_id"))
    except RuntimeError:
        return None


def commit_response(turn: Turn[BaseMessage], response: Any) -> None:
    """Stores the reply with its plan."""
    answered: Any = getattr(response, "model_response", response)
    messages = [answered] if isinstance(answered, BaseMessage) else answered.result
    if messages and isinstance(messages[0], AIMessage):
        turn.commit(messages[0], usage(messages[0]))


def usage(reply: AIMessage) -> dict[str, Any] | None:
    """Returns the billed tokens of a reply in the format of OpenAI, in which cached tokens are part of the
    prompt's tokens.
    """
    reported = reply.usage_metadata
    if not reported:
        return None
    details = reported.get("input_token_details") or {}
    return {
        "prompt_tokens": reported["input_tokens"],
        "completion_tokens": reported["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": details.get("cache_read") or 0},
    }


class _Tools:
    """The tools as dicts, with the schema of a structured output. An agent passes the same objects with every
    request, so they are converted once.
    """

    def __init__(self) -> None:
        self._given: list[Any] = []
        self._wire: list[dict[str, Any]] = []

    def wire(self, request: ModelRequest[Any]) -> list[dict[str, Any]]:
        """Returns the tools of a request."""
        given, known = [*request.tools, request.response_format], self._given
        if len(given) != len(known) or any(one is not other for one, other in zip(given, known)):
            wire = [one if isinstance(one, dict) else convert_to_openai_tool(one) for one in request.tools]
            self._wire = wire + _output_tools(request.response_format)
            self._given = given
        return self._wire


def _output_tools(strategy: Any) -> list[dict[str, Any]]:
    """Returns the schemas of a structured output as tools. The agent binds them as tools or passes them to the
    provider, which bills both.
    """
    if strategy is None:
        return []
    if not isinstance(strategy, (ToolStrategy, ProviderStrategy)):
        strategy = ToolStrategy(getattr(strategy, "schema", strategy))
    specs = strategy.schema_specs if isinstance(strategy, ToolStrategy) else [strategy.schema_spec]
    return [output_tool(one.name, one.json_schema, one.description) for one in specs]
