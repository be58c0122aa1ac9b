"""Token counts and summaries for LangChain's own middlewares."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.utils.function_calling import convert_to_openai_tool

from . import _wire
from ._core import Conversation, Manager
from ._langchain_messages import to_wire
from ._policy import manager_of


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
        tokens = self.manager.count_messages(to_wire(message)) - self._base
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
