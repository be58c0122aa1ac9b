"""Hermes agent: a context engine that plans every request within the model's window.

    from agent.context_engine import ContextEngine

    class Engine(ContextWindowEngine, ContextEngine): ...

    def register(ctx):  # in the plugin; `context.engine: context-window` in config.yaml
        ctx.register_context_engine(Engine())

Hermes accepts only instances of its own `ContextEngine`. This module does not import it: messages are dicts
of OpenAI Chat. It supports the main branch of Hermes; the newest release (0.19) has no `select_context` yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core import Conversation, Manager, Plan
from ._history import Histories, History, manager_of
from .litellm import owned, prompt, replayed, wired

__all__ = ["ContextWindowEngine"]

#: The step in tokens for the invisible part of a request (tool definitions). Steps keep the budget stable.
STEP = 1024


class ContextWindowEngine:
    """A base class to put before Hermes' `ContextEngine`. `manager` is a `Manager` or a model's name
    (default: the agent's model).

    If the host requests the messages of each request (`select_context`), they are planned and the transcript
    stays complete. Otherwise, the transcript is compacted beyond `threshold_tokens`, without a model.
    `prompt_budget` is the prompt budget in tokens (default: the rest of the window). The other arguments are
    those of `Manager.plan`.
    """

    name = "context-window"
    context_length = 0
    threshold_tokens = 0
    threshold_percent = 0.75
    compression_count = 0
    last_prompt_tokens = 0
    last_completion_tokens = 0
    last_total_tokens = 0

    def __init__(
        self, manager: Manager | str | None = None, *, prompt_budget: int | None = None, **request: Any
    ) -> None:
        super().__init__()
        self._given, self._budget, self._request = manager, prompt_budget, request
        self._use(manager if manager is not None else "")

    def _use(self, manager: Manager | str) -> None:
        self.manager = manager_of(manager)
        self._unseen = 0
        self.plan: Plan | None = None
        self._histories = Histories(self.manager, wired)

    def __deepcopy__(self, memo: dict[int, Any]) -> ContextWindowEngine:
        # Each agent gets a copy of the registered engine.
        copy = type(self)(self._given, prompt_budget=self._budget, **self._request)
        copy.context_length, copy.threshold_tokens = self.context_length, self.threshold_tokens
        return copy

    def update_model(self, model: str, context_length: int, *_: Any, **__: Any) -> None:
        """Sets the agent's model and its window in tokens."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
        if self._given is None:
            self._use(model)

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """Records the billed tokens of the last request."""
        self.last_prompt_tokens = usage.get("prompt_tokens") or 0
        self.last_completion_tokens = usage.get("completion_tokens") or 0
        self.last_total_tokens = usage.get("total_tokens") or 0
        if self.plan is not None and self.last_prompt_tokens:
            unseen = self.last_prompt_tokens - self.plan.estimated_tokens_total
            # At most half of the prompt, because one request with images does not predict the next.
            most = max(self.plan.prompt_budget // 2 // STEP, 1) * STEP
            self._unseen = min(max(-(-unseen // STEP) * STEP, 0), most)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Checks if the transcript must become shorter. Always False if the host selects messages for each
        request.
        """
        if hasattr(super(), "select_context"):
            return False
        tokens = self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        return 0 < self.threshold_tokens <= tokens

    def select_context(
        self,
        request_messages: Sequence[Any],
        *,
        conversation_messages: Sequence[Any] | None = None,
        incoming_message: Any = None,
        budget_tokens: int = 0,
    ) -> list[Any] | None:
        """Returns the messages to send instead of these, or None if all of them are sent unchanged."""
        window: dict[str, Any] = {"model_context_len": budget_tokens} if budget_tokens > 0 else {}
        budget = self._budget or self.manager.usage(Conversation(), **window)["budget"]
        asked = {**window, **self._request, "prompt_budget": max(budget - self._unseen, 1)}
        given = owned(request_messages, asked)
        history = self._histories.of(given)
        with history.lock:
            self.plan = plan = replayed(history, given, asked)
            sent = prompt(history, plan)
        same = len(sent) == len(request_messages) and all(map(lambda one, own: one is own, sent, request_messages))
        return None if same or not sent else sent

    def compress(
        self,
        messages: Sequence[Any],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Any]:
        """Returns the transcript without its least important messages. It is reduced to 60 % of its current
        or its permitted tokens, whichever is smaller.
        """
        counted = self.manager.count_messages(list(messages))
        room = (self.threshold_tokens or counted) - max((current_tokens or 0) - counted, 0)
        asked = {**self._request, "prompt_budget": max(min(counted, room) * 6 // 10, 1), "focus": focus_topic}
        history = History(self.manager, wired)
        kept = prompt(history, history.plan(owned(messages, asked), **asked))
        self.compression_count += len(kept) < len(messages)
        return kept
