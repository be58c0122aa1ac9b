"""The middleware of an agent: `langchain.agents` is imported here, and by nothing else of this package."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from ._core import Conversation, Manager, Plan, is_context_overflow
from ._history import Histories, History
from .langchain import framed, manager_of, retrieved, wired

#: What a request may bring beside the messages: what `Manager.plan` takes.
Extra = Callable[[Any], Iterable[Any]]


class ContextWindowMiddleware(AgentMiddleware[Any, Any, Any]):
    """Plans every request of an agent: what is sent fits the budget, tool calls keep their results, the question stays.

    `documents` gives retrieved documents for a request; `summarise` writes a summary of a `CompactionJob` when one is due;
    the other arguments are those of `Manager.plan` (`budget`, `max_completion`, `focus`, ...). A request that the provider
    refuses as too long is planned smaller and sent again, `retries` times at the most.

    One instance serves many conversations, from several threads: it keeps the `most` ones that were used last.
    `plan` is the plan of the newest request.
    """

    def __init__(
        self,
        manager: Manager | str,
        *,
        documents: Extra | None = None,
        summarise: Callable[[Any], str] | None = None,
        retries: int = 2,
        most: int = 64,
        **request: Any,
    ) -> None:
        super().__init__()
        self.manager = manager_of(manager)
        self.plan: Plan | None = None
        self._documents = documents
        self._summarise = summarise
        self._retries = retries
        self._request = request
        self._histories: Histories[BaseMessage] = Histories(self.manager, wired, most=most)
        self._tools = _Tools()

    def conversation(self, messages: Sequence[BaseMessage]) -> Conversation:
        """The planner's log of a conversation: pin notes in it, or keep it in a store."""
        history = self._histories.of(messages)
        history.sync(messages)
        return history.log

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Sends the planned request in place of the whole history."""
        turn = self._turn(request)
        for _ in range(self._retries):
            try:
                return turn.commit(handler(turn.request()))
            except Exception as error:
                if not is_context_overflow(str(error)):
                    raise
                turn.shrink()
        return turn.commit(handler(turn.request()))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`; plans in a thread of its own."""
        turn = await asyncio.to_thread(self._turn, request)
        for _ in range(self._retries):
            try:
                return turn.commit(await handler(turn.request()))
            except Exception as error:
                if not is_context_overflow(str(error)):
                    raise
                await asyncio.to_thread(turn.shrink)
        return turn.commit(await handler(turn.request()))

    def _turn(self, request: ModelRequest[Any]) -> _Turn:
        extra = dict(self._request)
        if request.tools:
            extra["tools"] = self._tools.of(request.tools)
        if self._documents is not None:
            extra["documents"] = [retrieved(one, at) for at, one in enumerate(self._documents(request))]
        history = self._histories.of(request.messages)
        system = request.system_message.text if request.system_message is not None else None
        with history.lock:
            history.sync(request.messages, system)
            if self._summarise is not None:
                self._compact(history, extra)
            turn = _Turn(self, history, request, extra, history.plan(request.messages, system, **extra))
        self.plan = turn.plan
        return turn

    def _compact(self, history: History[BaseMessage], extra: dict[str, Any]) -> None:
        asked = {name: value for name, value in extra.items() if name != "documents"}
        job = self.manager.compaction_due(history.log, **asked)
        if job is not None and self._summarise is not None:
            self.manager.apply_summary(history.log, job, self._summarise(job))


class _Turn:
    """One request on its way: its plan, and what becomes of it."""

    def __init__(
        self, of: ContextWindowMiddleware, history: History[BaseMessage], given: Any, extra: dict[str, Any], plan: Plan
    ) -> None:
        self._of = of
        self._history = history
        self._given = given
        self._extra = extra
        self.plan = plan

    def request(self) -> Any:
        system, messages = framed(self._history.sent(self.plan), self._given.system_message)
        return self._given.override(messages=messages, system_message=system)

    def shrink(self) -> None:
        self.plan = self._of.plan = self._history.smaller(self.plan, **self._extra)

    def commit(self, response: ModelResponse[Any]) -> ModelResponse[Any]:
        answered: Any = getattr(response, "model_response", response)
        messages = [answered] if isinstance(answered, BaseMessage) else answered.result
        if messages and isinstance(messages[0], AIMessage):
            self._history.commit(self.plan, messages[0], usage(messages[0]))
        return response


def usage(reply: AIMessage) -> dict[str, Any] | None:
    """What a reply was billed for, in the form of OpenAI: cached tokens are part of the prompt's."""
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
    """Tools as dicts. An agent hands the same ones over with every request."""

    def __init__(self) -> None:
        self._given: list[Any] = []
        self._wire: list[dict[str, Any]] = []

    def of(self, tools: Sequence[Any]) -> list[dict[str, Any]]:
        given = self._given
        if len(given) != len(tools) or any(one is not other for one, other in zip(given, tools)):
            self._wire = [one if isinstance(one, dict) else convert_to_openai_tool(one) for one in tools]
            self._given = list(tools)
        return self._wire
