"""The middleware of an agent. Only this module of the package imports `langchain.agents`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from ._core import CompactionError, Conversation, Manager, Plan
from ._history import Histories, History, Turn, manager_of
from .langchain import framed, retrieved, wired

#: A function that returns extra arguments of `Manager.plan` for a request.
Extra = Callable[[Any], Iterable[Any]]


class ContextWindowMiddleware(AgentMiddleware[Any, Any, Any]):
    """Plans every request of an agent. The prompt fits its budget, tool calls keep their results, and the
    question stays.

    Conversations are distinguished by the `thread_id` of the agent's config, or by the result of `key` for a
    request. Without either, they are distinguished by their messages. `documents` returns the retrieved
    documents for a request. `summarise` writes a summary for a `CompactionJob` when one is due. The other
    arguments are those of `Manager.plan` (`prompt_budget`, `max_completion_tokens`, `focus`, ...). If the
    provider rejects a request as too long, a smaller one is planned and sent, at most `retries` times.

    One instance serves several conversations from several threads. It keeps the `most` last used ones. `plan`
    is the plan of the newest request.
    """

    def __init__(
        self,
        manager: Manager | str,
        *,
        documents: Extra | None = None,
        key: Callable[[ModelRequest[Any]], Hashable] | None = None,
        summarise: Callable[[Any], str] | None = None,
        retries: int = 2,
        most: int = 64,
        **request: Any,
    ) -> None:
        super().__init__()
        if documents is not None and not callable(documents):
            raise TypeError("documents: expected a function from a request to documents")
        self.manager = manager_of(manager)
        self.plan: Plan | None = None
        self._documents = documents
        self._key = key or thread
        self._summarise = summarise
        self._retries = retries
        self._request = request
        self._histories: Histories[BaseMessage] = Histories(self.manager, wired, most=most)
        self._tools = _Tools()

    def conversation(self, key: Hashable) -> Conversation:
        """Returns the planner's log of a conversation, by the thread's id or the result of `key`. Use it
        to pin notes.
        """
        return self._histories.of((), key).log

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Sends the planned request instead of the whole history."""
        turn = self._turn(request)
        while True:
            try:
                response = handler(self._planned(turn, request))
                break
            except Exception as error:
                turn.shrink(error)
        commit(turn, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Sends the planned request like `wrap_model_call`. Plans in a separate thread."""
        turn = await asyncio.to_thread(self._turn, request)
        while True:
            try:
                response = await handler(self._planned(turn, request))
                break
            except Exception as error:
                await asyncio.to_thread(turn.shrink, error)
        # A thread of another task may hold the conversation's lock while it plans.
        await asyncio.to_thread(commit, turn, response)
        return response

    def _turn(self, request: ModelRequest[Any]) -> Turn[BaseMessage]:
        extra = dict(self._request)
        if request.tools:
            extra["tools"] = self._tools.of(request.tools)
        if self._documents is not None:
            extra["documents"] = [retrieved(one, at) for at, one in enumerate(self._documents(request))]
        history = self._histories.of(request.messages, self._key(request))
        system = request.system_message.text if request.system_message is not None else None
        if self._summarise is not None:
            self._compact(history, request.messages, system, extra)
        return Turn(history, request.messages, system, extra, self._retries)

    def _planned(self, turn: Turn[BaseMessage], request: ModelRequest[Any]) -> ModelRequest[Any]:
        self.plan = turn.plan
        system, messages = framed(turn.sent, request.system_message)
        return request.override(messages=cast("list[AnyMessage]", messages), system_message=system)

    def _compact(
        self, history: History[BaseMessage], messages: Sequence[BaseMessage], system: str | None, extra: dict[str, Any]
    ) -> None:
        asked = {name: value for name, value in extra.items() if name != "documents"}
        with history.lock:
            history.sync(messages, system)
            log = history.log
            job = self.manager.compaction_due(log, **asked)
        if job is None or self._summarise is None:
            return
        # The lock is not held during the call, because a model may take long. The summary is checked against
        # the log.
        summary = self._summarise(job)
        try:
            self.manager.apply_summary(log, job, summary)
        except CompactionError:
            pass  # Nothing was archived, and the plan goes without.


def thread(request: ModelRequest[Any]) -> Hashable:
    """Returns the id of the thread that the agent runs in, or None outside of a run."""
    try:
        return cast("Hashable", get_config().get("configurable", {}).get("thread_id"))
    except RuntimeError:
        return None


def commit(turn: Turn[BaseMessage], response: Any) -> None:
    """Stores the reply with its plan."""
    answered: Any = getattr(response, "model_response", response)
    messages = [answered] if isinstance(answered, BaseMessage) else answered.result
    if messages and isinstance(messages[0], AIMessage):
        turn.commit(messages[0], usage(messages[0]))


def usage(reply: AIMessage) -> dict[str, Any] | None:
    """Returns the billed tokens of a reply in the format of OpenAI, in which cached tokens are part of the
    prompt's tokens.
    """
    told = reply.usage_metadata
    if not told:
        return None
    details = told.get("input_token_details") or {}
    return {
        "prompt_tokens": told["input_tokens"],
        "completion_tokens": told["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": details.get("cache_read") or 0},
    }


class _Tools:
    """The tools as dicts. An agent passes the same objects with every request, so they are converted once."""

    def __init__(self) -> None:
        self._given: list[Any] = []
        self._wire: list[dict[str, Any]] = []

    def of(self, tools: Sequence[Any]) -> list[dict[str, Any]]:
        given = self._given
        if len(given) != len(tools) or any(one is not other for one, other in zip(given, tools)):
            self._wire = [one if isinstance(one, dict) else convert_to_openai_tool(one) for one in tools]
            self._given = list(tools)
        return self._wire
