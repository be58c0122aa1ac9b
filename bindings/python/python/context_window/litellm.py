"""LiteLLM: a token budget for every chat request of its SDK, router and proxy, and a planned `trim_messages`.

    from litellm.integrations.custom_logger import CustomLogger

    litellm.callbacks = [hook(CustomLogger, prompt_budget=8_000)]

LiteLLM calls only instances of its own `CustomLogger`, and `hook` creates one. This module does not import
LiteLLM. Messages and tools are dicts of OpenAI Chat, or objects with a `model_dump`. It supports litellm
1.110.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _wire
from ._core import Conversation, ItemMessage, Manager, Plan
from ._history import Histories, History

__all__ = ["ContextWindowHook", "hook", "trim_messages"]

#: The call types whose `messages` have the format of OpenAI Chat.
CHAT = ("completion", "acompletion")

#: The maximum number of models with conversations. Clients of a proxy may send any model name.
MODELS = 64

_decode = json.JSONDecoder().raw_decode


class Own(str):
    """A message as JSON, together with the caller's object. Dicts may be edited in place, so identity is not
    enough.

    The JSON is followed by a hash of the other inputs of the plan. A conversation under other settings is
    another one.
    """

    message: Any

    def wire(self) -> dict[str, Any]:
        """Returns the message as a new dict."""
        found: dict[str, Any] = _decode(self)[0]
        return found


def owned(messages: Sequence[Any], request: Mapping[str, Any]) -> list[Own]:
    """Converts the messages of one request."""
    settings = json.dumps(request, default=_said, sort_keys=True).encode()
    behind = "\n" + hashlib.blake2b(settings, digest_size=8).hexdigest()
    given = [Own(json.dumps(one, default=_wire.plain) + behind) for one in messages]
    for own, one in zip(given, messages):
        own.message = one
    return given


def _said(value: Any) -> Any:
    try:
        return _wire.plain(value)
    except TypeError:
        return repr(value)


def wired(own: Own) -> list[dict[str, Any]]:
    return [own.wire()]


def replayed(history: History[Own], given: list[Own], request: Mapping[str, Any]) -> Plan:
    """Plans a list of messages. The result depends only on the list and the request.

    Earlier prompts, and the processes that sent them, are unknown. So each reply in the list is stored with a
    plan of the messages before it. If a list continues an earlier one, only its new messages are planned.
    """
    # A previous prompt of another list must not influence this plan.
    asked = {**request, "previous": None}
    with history.lock:
        known = history.known(given)
        if known < len(history):
            history.reset()
            known = 0
        replies = [at for at in range(max(known, 1), len(given)) if given[at].wire().get("role") == "assistant"]
        if known == 0 and replies:
            # If everything fits, storing the newest reply has the same effect as storing all of them.
            if _whole(history.plan(given[: replies[-1]], **asked)):
                replies = replies[-1:]
            else:
                history.reset()
        for at in replies:
            history.commit(history.plan(given[:at], **asked), given[at])
        return history.plan(given, **asked)


def _whole(plan: Plan) -> bool:
    return not plan.excluded and plan.overflow is None and not any(one.changed for one in plan.by_item())


def prompt(history: History[Own], plan: Plan) -> list[Any]:
    """Returns the messages to send: the caller's own objects, copies of changed ones, and dicts for added
    ones.
    """
    messages: list[Any] = []
    for one in history.sent(plan):
        if one.own is None:
            messages.extend(one.item.messages("openai"))
        else:
            messages.append(_altered(one.own, one.item) if one.item.changed else one.own.message)
    return messages


def _altered(own: Own, item: ItemMessage) -> dict[str, Any]:
    copy, sent = own.wire(), item.messages("openai")[0]
    if "role" in item.changed:
        copy["role"] = sent["role"]
    if "text" in item.changed:
        copy["content"] = sent.get("content")
    if "calls" in item.changed:
        copy.update({name: sent[name] for name in ("tool_calls", "tool_call_id") if name in sent})
    if "reasoning" in item.changed:
        for name in ("reasoning_content", "thinking_blocks", "reasoning"):
            copy.pop(name, None)
    return copy


class _Models:
    """The conversations of each model, and a function that creates its manager."""

    def __init__(self, manager_for: Callable[[str], Manager] | None, most: int) -> None:
        self._manager_for = manager_for or Manager
        self._most = most
        self._lock = threading.Lock()
        self._all: dict[str, Histories[Own]] = {}

    def of(self, model: str) -> Histories[Own]:
        with self._lock:
            found = self._all.pop(model, None) or Histories(self._manager_for(model), wired, most=self._most)
            self._all[model] = found
            if len(self._all) > MODELS:
                del self._all[next(iter(self._all))]
            return found


class ContextWindowHook:
    """Plans every chat request. The prompt fits its budget, tool calls keep their results, and the question
    stays.

    `manager_for` creates the `Manager` for a model's name (default: `Manager` itself). `prompt_budget` is the
    prompt budget in tokens (default: the rest of the model's window). The other arguments are those of
    `Manager.plan`.

    A request is planned once. By default this happens after its deployment is chosen
    (`async_pre_call_deployment_hook`). With `before_routing=True` it happens earlier, for the model name from
    the proxy's client (`async_pre_call_hook`). Equal messages give equal prompts, in any process and after
    any restart. Only asynchronous chat calls are planned; use `messages` for others. For each model, `most`
    conversations are cached, of which only new messages are read.

    To register the hook, add LiteLLM's base class: `class Hook(ContextWindowHook, CustomLogger)`, or use
    `hook`.
    """

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        # The proxy calls this method only if the class itself defines it, not if it is inherited.
        cls.async_pre_call_hook = cls.async_pre_call_hook  # type: ignore[method-assign]

    def __init__(
        self,
        manager_for: Callable[[str], Manager] | None = None,
        prompt_budget: int | None = None,
        *,
        before_routing: bool = False,
        most: int = 64,
        **request: Any,
    ) -> None:
        super().__init__()
        self.prompt_budget = prompt_budget
        self.before_routing = before_routing
        self.plan: Plan | None = None
        self._request = request
        self._models = _Models(manager_for, most)

    def messages(
        self, model: str, messages: Sequence[Any], tools: Sequence[Any] | None = None, **request: Any
    ) -> list[Any]:
        """Returns the messages to send instead of these, and sets `plan`. Raises the errors of
        `Manager.plan`.
        """
        asked: dict[str, Any] = {
            "prompt_budget": self.prompt_budget,
            "tools": tools or None,
            **self._request,
            **request,
        }
        given = owned(messages, asked)
        history = self._models.of(model).of(given)
        with history.lock:
            self.plan = plan = replayed(history, given, asked)
            return prompt(history, plan)

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Returns the call's arguments with planned messages, or None if nothing changes."""
        return None if self.before_routing else await self._planned(kwargs, call_type)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Returns the proxy's request with planned messages, or None if nothing changes."""
        return await self._planned(data, call_type) if self.before_routing else None

    async def _planned(self, call: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        messages = call.get("messages")
        # If the model is passed by position, only the call's own record contains it.
        model = call.get("model") or getattr(call.get("litellm_logging_obj"), "model", None)
        if getattr(call_type, "value", call_type) not in CHAT or not messages or not isinstance(model, str):
            return None
        most = call.get("max_completion_tokens") or call.get("max_tokens")
        request = {} if self.prompt_budget is not None or most is None else {"max_completion_tokens": most}
        planned = await asyncio.to_thread(self.messages, model, messages, call.get("tools"), **request)
        return {**call, "messages": planned}


def hook(base: type, *arguments: Any, **settings: Any) -> Any:
    """Creates a `ContextWindowHook` that is also a `base`, which is LiteLLM's `CustomLogger`. The
    arguments are those of the hook.
    """
    return type("ContextWindowHook", (ContextWindowHook, base), {})(*arguments, **settings)


_trimmers = _Models(None, 64)


def trim_messages(
    messages: Sequence[Any],
    model: str | None = None,
    trim_ratio: float = 0.75,
    return_response_tokens: bool = False,
    max_tokens: int | None = None,
) -> Any:
    """Trims messages like `litellm.utils.trim_messages`, with a plan: whole messages are dropped, and tool
    calls keep their results.

    `max_tokens` is the prompt budget in tokens (default: `trim_ratio` of the model's window). Returns the
    list, or with `return_response_tokens` a pair of the list and the remaining tokens of the budget. The
    messages are the caller's own. If the last exchange alone is too long, a shortened copy replaces one of
    them. Without `max_tokens` and a known model, all messages are returned.
    """
    name = model or "gpt-4o"
    histories = _trimmers.of(name)
    if max_tokens is None:
        usage = histories.manager.usage(Conversation())
        unknown = any(one["code"] == "unknown_model" for one in histories.manager.plan(Conversation()).notices)
        if model is None or unknown:
            return (list(messages), 0) if return_response_tokens else list(messages)
        max_tokens = int(usage["context_len"] * trim_ratio)
    given = owned(messages, {"prompt_budget": max_tokens})
    history = histories.of(given)
    with history.lock:
        plan = replayed(history, given, {"prompt_budget": max_tokens})
        kept = prompt(history, plan)
    return (kept, max_tokens - plan.estimated_tokens_total) if return_response_tokens else kept
