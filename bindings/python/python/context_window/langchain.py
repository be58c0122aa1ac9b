"""LangChain: a token budget for an agent's requests, counts for its own middlewares, and two drop-in
replacements.

    agent = create_agent(model, tools, middleware=[ContextWindowMiddleware("gpt-4o")])

The agent's history stays complete: only the messages for the model are planned. Supports langchain 1.5 and
langchain-core 1.8.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, convert_to_messages
from langchain_core.messages import trim_messages as _trim_messages
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from . import _wire
from ._core import Conversation, Manager
from ._core import Document as Retrieved
from ._history import SYSTEM, Histories, Sent, manager_of

if TYPE_CHECKING:
    from ._langchain_agent import ContextWindowMiddleware

__all__ = ["ContextWindowCompressor", "ContextWindowMiddleware", "TokenCounter", "digest", "trim_messages"]


def __getattr__(name: str) -> Any:
    # Only the middleware needs `langchain`. The rest needs `langchain-core` alone, which imports in half the
    # time.
    if name == "ContextWindowMiddleware":
        from . import _langchain_agent

        return _langchain_agent.ContextWindowMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def wired(message: BaseMessage) -> list[dict[str, Any]]:
    return [_wire.langchain(message)]


def framed(
    sent: Iterable[Sent[BaseMessage]], system: SystemMessage | None
) -> tuple[SystemMessage | None, list[BaseMessage]]:
    """Returns the prompt for LangChain: one system message from the system texts at the beginning, and the
    other messages.
    """
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
    """Returns a copy with the planner's changes. The history's own message stays unchanged."""
    item, update = sent.item, dict[str, Any]()
    # The integration decides about content in parts, except for a shortened tool result.
    if "text" in item.changed and (isinstance(own.content, str) or own.type == "tool"):
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
    """Converts a LangChain document to one of the planner's. Without a score, its position determines one."""
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


class TokenCounter:
    """Exact counts for LangChain's own middlewares: `SummarizationMiddleware(model,
    token_counter=TokenCounter("gpt-4o"))`.

    Accepts a list of messages, and `tools`. Counts of messages are cached, so a longer history costs only its
    new messages.
    """

    def __init__(self, manager: Manager | str, *, kept: int = 20_000) -> None:
        self.manager = manager_of(manager)
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
        # The message is kept with its count. Otherwise another message could get its address and its count.
        known = self._counts.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        tokens = self.manager.count_messages(wired(message)) - self._base
        self._counts[id(message)] = (message, tokens)
        if len(self._counts) > self._kept:
            self._counts.popitem(last=False)
        return tokens


def digest(manager: Manager | str) -> Callable[[Any], str]:
    """Returns a `summarizer` for `SummarizationMiddleware` that needs no model. Its summary contains
    requests, actions and answers in brief.
    """
    planner = manager_of(manager)

    def summarise(messages: Sequence[BaseMessage]) -> str:
        log = Conversation()
        ids = log.push([_wire.langchain(one) for one in convert_to_messages(messages)])
        if not ids:
            return ""
        job = planner.compaction_due(log, first=ids[0], last=ids[-1])
        return job.digest() if job is not None else "\n".join(one.text for one in convert_to_messages(messages))

    return summarise


#: The maximum number of counters with conversations. The last used ones are kept.
_TRIMMERS = 16
_trimmers: dict[Any, Histories[BaseMessage]] = {}
_trimmers_lock = threading.Lock()


def _trimmer(counter: Any) -> Histories[BaseMessage] | None:
    """Returns the conversations that are trimmed with this counter, or None for a counter of another
    package.
    """
    if isinstance(counter, TokenCounter):
        counter = counter.manager
    if not isinstance(counter, (str, Manager)) or counter == "approximate":
        return None
    with _trimmers_lock:
        found = _trimmers.pop(counter, None) or Histories(manager_of(counter), wired)
        _trimmers[counter] = found
        if len(_trimmers) > _TRIMMERS:
            del _trimmers[next(iter(_trimmers))]
        return found


def trim_messages(
    messages: Any = None, *, max_tokens: int | None = None, token_counter: Any = None, **settings: Any
) -> Any:
    """Trims messages like `langchain_core.messages.trim_messages`, with a plan: drops the least important
    messages instead of the oldest.

    `token_counter` is a model's name, a `Manager` or a `TokenCounter`. `max_tokens` is the prompt budget in
    tokens. `include_system`, `start_on` and `end_on` have the same meaning as in LangChain. All other
    settings (`strategy="first"`, `allow_partial=True`, a function as counter) are passed to LangChain.
    Without messages, returns a runnable.
    """
    if messages is None:
        later = partial(trim_messages, max_tokens=max_tokens, token_counter=token_counter, **settings)
        return RunnableLambda(later, name="trim_messages")
    if max_tokens is None:
        raise TypeError("trim_messages: max_tokens is missing; expected the prompt's budget in tokens")
    histories = _trimmer(token_counter)
    theirs = (
        settings.get("strategy", "last") != "last" or settings.get("allow_partial") or settings.get("text_splitter")
    )
    if histories is None or theirs:
        counter = TokenCounter(token_counter) if isinstance(token_counter, Manager) else token_counter
        if isinstance(counter, str) and counter != "approximate":
            counter = TokenCounter(counter)
        return _trim_messages(messages, max_tokens=max_tokens, token_counter=counter, **settings)
    given = messages.to_messages() if hasattr(messages, "to_messages") else messages
    # Objects that are messages already stay the same objects.
    whole: list[BaseMessage] = convert_to_messages(given)
    if settings.get("end_on"):
        while whole and not _is_one_of(whole[-1], settings["end_on"]):
            whole.pop()
    if not whole:
        return []
    sent = _fitting(histories, whole, max_tokens)
    if not settings.get("include_system") and any(one.own is None or one.item.changed for one in sent) | (
        len(sent) < len(whole)
    ):
        # Not everything fits, and without `include_system` the system messages are dropped first, as the
        # oldest ones.
        sent = _fitting(histories, [one for one in whole if not isinstance(one, SystemMessage)], max_tokens)
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


def _fitting(histories: Histories[BaseMessage], messages: list[BaseMessage], budget: int) -> list[Sent[BaseMessage]]:
    if not messages:
        return []
    history = histories.of(messages)
    with history.lock:
        return history.sent(history.plan(messages, prompt_budget=budget))


def _is_one_of(message: BaseMessage, kinds: Any) -> bool:
    kinds = [kinds] if isinstance(kinds, (str, type)) else kinds
    return any(message.type == kind if isinstance(kind, str) else isinstance(message, kind) for kind in kinds)


class ContextWindowCompressor(BaseDocumentCompressor):
    """Whole documents within a token budget, the best first, for a `ContextualCompressionRetriever`.

    The score is the document's `relevance_score` or `score`. Without either, its position in the list
    determines the score.
    """

    manager: Any
    budget: int

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        planner = manager_of(self.manager)
        log = Conversation([{"role": "user", "content": query}])
        own: dict[str, Document] = {}
        items: list[Any] = []
        for at, document in enumerate(documents):
            item = retrieved(document, at)
            # Two documents with the same id would count as one.
            if item.id in own:
                item = Retrieved(f"{item.id}#{at}", item.score, item.text, item.source)
            own[item.id] = document
            items.append(item)
        question = planner.plan(log).estimated_tokens_total
        plan = planner.plan(log, documents=items, prompt_budget=question + self.budget)
        return [own[item.id] for item in plan.included if item.kind == "document"]
