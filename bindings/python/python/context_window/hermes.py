"""Hermes agent: a context engine that plans every request within the model's window.

    from agent.context_engine import ContextEngine

    class Engine(ContextWindowEngine, ContextEngine): ...

    def register(ctx):  # in the plugin; `context.engine: context-window` in config.yaml
        ctx.register_context_engine(Engine())

Hermes takes instances of its own `ContextEngine` alone. It is not imported here: messages are dicts of OpenAI Chat.
Made for its main branch; the newest release (0.19) has no `select_context` yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._core import Conversation, Manager, Plan
from ._history import Histories, History, manager_of
from .litellm import owned, prompt, replayed, wired

__all__ = ["ContextWindowEngine"]

#: What is not seen of a request (definitions of tools) is reckoned in steps, so that the budget stays for long.
STEP = 1024


class ContextWindowEngine:
    """Put before Hermes' `ContextEngine`. `manager` is a `Manager` or a model's name, by default the agent's model.

    Where the host asks for the messages of a request (`select_context`), they are planned and the transcript stays
    whole. Where it does not, the transcript is compacted past `threshold_tokens`, without a model. `prompt_budget` is the
    prompt's, in tokens, by default what the window leaves; the other arguments are those of `Manager.plan`.
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
        """The agent's model and its window in tokens."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
        if self._given is None:
            self._use(model)

    def update_from_response(self, usage: dict[str, Any]) -> None:
        """What the last request was billed for, in tokens."""
        self.last_prompt_tokens = usage.get("prompt_tokens") or 0
        self.last_completion_tokens = usage.get("completion_tokens") or 0
        self.last_total_tokens = usage.get("total_tokens") or 0
        if self.plan is not None and self.last_prompt_tokens:
            unseen = self.last_prompt_tokens - self.plan.estimated_tokens_total
            # Never more than half of the prompt: one request with images says little of the next.
            most = max(self.plan.prompt_budget // 2 // STEP, 1) * STEP
            self._unseen = min(max(-(-unseen // STEP) * STEP, 0), most)

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the transcript itself has to become shorter: never where the host selects for each request."""
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
        """The messages of one request in place of these; None where all of them are sent as they are."""
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
        """The transcript with what matters least left out: to 60 % of what it has or may have."""
        counted = self.manager.count_messages(list(messages))
        room = (self.threshold_tokens or counted) - max((current_tokens or 0) - counted, 0)
        asked = {**self._request, "prompt_budget": max(min(counted, room) * 6 // 10, 1), "focus": focus_topic}
        history = History(self.manager, wired)
        kept = prompt(history, history.plan(owned(messages, asked), **asked))
        self.compression_count += len(kept) < len(messages)
        return kept
