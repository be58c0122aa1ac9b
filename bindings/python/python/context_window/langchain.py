"""LangChain: an agent's requests within a token budget, counts for its own middlewares, and two drop-ins.

    agent = create_agent(model, tools, middleware=[ContextWindowMiddleware("gpt-4o")])

The agent's history stays whole: only what is sent to the model is planned. Made for langchain 1.5 and langchain-core 1.8.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, convert_to_messages
from langchain_core.messages import trim_messages as _trim_messages
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from . import _wire
from ._core import Conversation, Manager, Plan, is_context_overflow
from ._core import Document as Retrieved
from ._history import SYSTEM, Histories, History, Sent

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
except ImportError:  # langchain-core alone has all but the middleware
    AgentMiddleware = object  # type: ignore[assignment,misc]

__all__ = ["ContextWindowCompressor", "ContextWindowMiddleware", "TokenCounter", "digest", "trim_messages"]

#: What a request may bring beside the messages: what `Manager.plan` takes.
Extra = Callable[[Any], Iterable[Any]]


def _wired(message: BaseMessage) -> list[dict[str, Any]]:
    return [_wire.langchain(message)]


def _manager(given: Manager | str) -> Manager:
    return given if isinstance(given, Manager) else Manager(given)


class ContextWindowMiddleware(AgentMiddleware):  # type: ignore[type-arg,misc,unused-ignore]
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
        self.manager = _manager(manager)
        self.plan: Plan | None = None
        self._documents = documents
        self._summarise = summarise
        self._retries = retries
        self._request = request
        self._histories: Histories[BaseMessage] = Histories(self.manager, _wired, most=most)
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


def framed(sent: Iterable[Sent[BaseMessage]], system: SystemMessage | None) -> tuple[SystemMessage | None, list[BaseMessage]]:
    """The prompt as LangChain has it: system texts at its head are one system message, the rest are messages."""
    texts: list[str] = []
    messages: list[BaseMessage] = []
    for one in sent:
        item = one.item
        if item.kind == "note" and item.ids == [SYSTEM]:
            continue
        if one.own is None and item.role == "system" and not messages:
            texts.append(item.text)
        elif one.own is None:
            messages.extend(convert_to_messages(item.messages("openai")))
        else:
            messages.append(altered(one.own, one) if item.changed else one.own)
    if texts:
        said = [system.text, *texts] if system is not None else texts
        system = SystemMessage("\n\n".join(said))
    return system, messages


def altered(own: BaseMessage, sent: Sent[BaseMessage]) -> BaseMessage:
    """A copy with what the planner changed; the history's own message stays as it is."""
    item, update = sent.item, dict[str, Any]()
    if "text" in item.changed:
        update["content"] = item.text
    if "reasoning" in item.changed and isinstance(own.content, list):
        thoughts = ("thinking", "redacted_thinking", "reasoning")
        update["content"] = [one for one in own.content if not (isinstance(one, dict) and one.get("type") in thoughts)]
    if "reasoning" in item.changed:
        update["additional_kwargs"] = {k: v for k, v in own.additional_kwargs.items() if k != "reasoning_content"}
    if "calls" in item.changed and isinstance(own, AIMessage):
        ids = [call["id"] for call in item.messages("openai")[0].get("tool_calls", [])]
        update["tool_calls"] = [{**call, "id": id} for call, id in zip(own.tool_calls, ids)]
    elif "calls" in item.changed:
        update["tool_call_id"] = item.tool_call_id
    return own.model_copy(update=update)


def retrieved(document: Any, at: int) -> Any:
    """A LangChain document as one of the planner's. Without a score of its own its place says how good it is."""
    if not isinstance(document, Document):
        return document
    meta = document.metadata
    score = meta.get("relevance_score", meta.get("score"))
    id = document.id or meta.get("id") or f"document-{at}"
    source = meta.get("source")
    return Retrieved(
        str(id),
        float(score) if score is not None else 1.0 / (1 + at),
        document.page_content,
        str(source) if source is not None else None,
    )


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


class TokenCounter:
    """Exact counts for LangChain's own middlewares: `SummarizationMiddleware(model, token_counter=TokenCounter("gpt-4o"))`.

    Takes a list of messages, and `tools`. Counts of messages are kept, so that a longer history costs what is new of it.
    """

    def __init__(self, manager: Manager | str, *, kept: int = 20_000) -> None:
        self.manager = _manager(manager)
        self._kept = kept
        self._counts: OrderedDict[int, tuple[BaseMessage, int]] = OrderedDict()
        self._base = self.manager.count_messages([])
        self._lock = threading.Lock()

    def __call__(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None) -> int:
        with self._lock:
            total = self._base + sum(map(self._count, messages))
        if tools:
            wire = [one if isinstance(one, dict) else convert_to_openai_tool(one) for one in tools]
            total += self.manager.count_messages([], tools=wire) - self._base
        return total

    def _count(self, message: BaseMessage) -> int:
        # The message is kept beside its count: otherwise another one could get its address.
        known = self._counts.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        tokens = self.manager.count_messages(_wired(message)) - self._base
        self._counts[id(message)] = (message, tokens)
        if len(self._counts) > self._kept:
            self._counts.popitem(last=False)
        return tokens


def digest(manager: Manager | str) -> Callable[[Any], str]:
    """A `summarizer` for `SummarizationMiddleware` that asks no model: what was asked, done and answered, in few words."""
    planner = _manager(manager)

    def summarise(messages: Sequence[BaseMessage]) -> str:
        log = Conversation()
        ids = log.push([_wire.langchain(one) for one in convert_to_messages(messages)])
        if not ids:
            return ""
        job = planner.compaction_due(log, first=ids[0], last=ids[-1])
        return job.digest() if job is not None else "\n".join(one.text for one in convert_to_messages(messages))

    return summarise


_trimmers: dict[Any, Histories[BaseMessage]] = {}
_trimmers_lock = threading.Lock()


def _trimmer(counter: Any) -> Histories[BaseMessage] | None:
    """The conversations that are trimmed with this counter; None for a counter that is not ours."""
    if isinstance(counter, TokenCounter):
        counter = counter.manager
    if not isinstance(counter, (str, Manager)) or counter == "approximate":
        return None
    with _trimmers_lock:
        found = _trimmers.get(counter)
        if found is None:
            found = _trimmers[counter] = Histories(_manager(counter), _wired)
        return found


def trim_messages(messages: Any = None, *, max_tokens: int | None = None, token_counter: Any = None, **settings: Any) -> Any:
    """`langchain_core.messages.trim_messages`, planned: in place of the oldest messages it leaves out what matters least.

    `token_counter` is a model's name, a `Manager` or a `TokenCounter`; `max_tokens` the prompt's budget in tokens.
    `include_system`, `start_on` and `end_on` mean what they do there. Anything else (`strategy="first"`,
    `allow_partial=True`, a counter that is a function) is left to LangChain. Without messages it is a runnable.
    """
    if messages is None:
        later = partial(trim_messages, max_tokens=max_tokens, token_counter=token_counter, **settings)
        return RunnableLambda(later, name="trim_messages")
    if max_tokens is None:
        raise TypeError("trim_messages: max_tokens is missing; expected the prompt's budget in tokens")
    histories = _trimmer(token_counter)
    theirs = settings.get("strategy", "last") != "last" or settings.get("allow_partial") or settings.get("text_splitter")
    if histories is None or theirs:
        counter = TokenCounter(token_counter) if isinstance(token_counter, Manager) else token_counter
        if isinstance(counter, str) and counter != "approximate":
            counter = TokenCounter(counter)
        return _trim_messages(messages, max_tokens=max_tokens, token_counter=counter, **settings)
    given = messages.to_messages() if hasattr(messages, "to_messages") else messages
    # What are messages already stay the objects that they are.
    whole: list[BaseMessage] = convert_to_messages(given)
    if not settings.get("include_system"):
        whole = [one for one in whole if not isinstance(one, SystemMessage)]
    if settings.get("end_on"):
        while whole and not _is_one_of(whole[-1], settings["end_on"]):
            whole.pop()
    if not whole:
        return []
    history = histories.of(whole)
    with history.lock:
        sent = history.sent(history.plan(whole, budget=max_tokens))
    kept: list[BaseMessage] = []
    for one in sent:
        if one.own is not None:
            kept.append(altered(one.own, one) if one.item.changed else one.own)
        else:
            kept.extend(convert_to_messages(one.item.messages("openai")))
    if settings.get("start_on"):
        head = [one for one in kept if isinstance(one, SystemMessage)]
        rest = [one for one in kept if not isinstance(one, SystemMessage)]
        while rest and not _is_one_of(rest[0], settings["start_on"]):
            rest.pop(0)
        kept = head + rest
    return kept


def _is_one_of(message: BaseMessage, kinds: Any) -> bool:
    kinds = [kinds] if isinstance(kinds, (str, type)) else kinds
    return any(message.type == kind if isinstance(kind, str) else isinstance(message, kind) for kind in kinds)


class ContextWindowCompressor(BaseDocumentCompressor):
    """Whole documents within a token budget, the best first: for a `ContextualCompressionRetriever`.

    The score is the document's `relevance_score` or `score`; without one its place in the list says how good it is.
    """

    manager: Any
    budget: int

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> Sequence[Document]:
        planner = _manager(self.manager)
        log = Conversation([{"role": "user", "content": query}])
        own: dict[str, Document] = {}
        items: list[Any] = []
        for at, document in enumerate(documents):
            item = retrieved(document, at)
            # Two documents of one id would be taken for one.
            if item.id in own:
                item = Retrieved(f"{item.id}#{at}", item.score, item.text, item.source)
            own[item.id] = document
            items.append(item)
        question = planner.plan(log).total
        plan = planner.plan(log, documents=items, budget=question + self.budget)
        return [own[item.id] for item in plan.included if item.kind == "document"]
