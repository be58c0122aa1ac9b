"""LiteLLM: a token budget for every chat request of its SDK, router and proxy, and a planned `trim_messages`.

    from litellm.integrations.custom_logger import CustomLogger

    litellm.callbacks = [hook(CustomLogger, prompt_budget=8_000)]

LiteLLM calls only instances of its own `CustomLogger`, and `hook` creates one. It has no hook that changes a
synchronous request: use `ContextWindowHook.wrap` for `completion`. This module does not import LiteLLM.
Messages and tools are dicts of OpenAI Chat, or objects with a `model_dump`. It supports litellm 1.110.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from . import _wire
from ._core import Conversation, ItemMessage, Manager, Plan
from ._history import Histories, History, item_messages
from ._policy import (
    OnOverflow,
    Planned,
    Policy,
    TargetOptions,
    check_options,
    check_overflow,
    manager_of,
    refuse_unknown,
    response_tool,
    warn,
)
from ._replay import replay

if TYPE_CHECKING:
    from typing_extensions import Never, Unpack

R = TypeVar("R")

__all__ = ["ContextWindowHook", "hook", "trim_messages"]

#: The call types whose `messages` have the format of OpenAI Chat.
CHAT = ("completion", "acompletion")

#: The maximum number of models with conversations. Clients of a proxy may send any model name.
MODELS = 64

#: True within a call of a function of `ContextWindowHook.wrap`.
_is_wrapped: ContextVar[bool] = ContextVar("is_wrapped", default=False)

_decode = json.JSONDecoder().raw_decode


class EncodedMessage(str):
    """A message as JSON, together with the caller's object. Dicts may be edited in place, so identity is not
    enough.

    The JSON is followed by a hash of the other inputs of the plan. A conversation under other settings is
    another one.
    """

    message: Any

    def to_dict(self) -> dict[str, Any]:
        """Returns the message as a new dict."""
        found: dict[str, Any] = _decode(self)[0]
        return found


def encode_messages(messages: Sequence[Any], request: Mapping[str, Any]) -> list[EncodedMessage]:
    """Converts the messages of one request."""
    settings = json.dumps(request, default=_plain_or_repr, sort_keys=True).encode()
    suffix = "\n" + hashlib.blake2b(settings, digest_size=8).hexdigest()
    given = [EncodedMessage(json.dumps(one, default=_wire.plain) + suffix) for one in messages]
    for own, one in zip(given, messages):
        own.message = one
    return given


def _plain_or_repr(value: Any) -> Any:
    try:
        return _wire.plain(value)
    except TypeError:
        return repr(value)


def to_wire(own: EncodedMessage) -> list[dict[str, Any]]:
    return [own.to_dict()]


def replay_messages(history: History[EncodedMessage], given: list[EncodedMessage], request: Mapping[str, Any]) -> Plan:
    """Plans a list of messages. The result depends only on the list and the request."""
    return replay(history, given, request, lambda own: own.to_dict().get("role") == "assistant")


def build_prompt(history: History[EncodedMessage], plan: Plan, *, reasoning: bool = False) -> list[Any]:
    """Returns the messages to send: the caller's own objects, copies of changed ones, and dicts for added
    ones. With `reasoning`, reasoning that the model's provider does not accept stays.
    """
    messages: list[Any] = []
    for one in history.sent(plan):
        if one.own is None:
            messages.extend(item_messages(one.item))
        else:
            kept = ["reasoning"] if reasoning else []
            is_changed = any(change not in kept for change in one.item.changed)
            messages.append(_apply_changes(one.own, one.item, reasoning) if is_changed else one.own.message)
    return messages


def _apply_changes(own: EncodedMessage, item: ItemMessage, reasoning: bool) -> dict[str, Any]:
    copy, sent = own.to_dict(), item_messages(item)[0]
    if "role" in item.changed:
        copy["role"] = sent["role"]
    if "text" in item.changed:
        copy["content"] = sent.get("content")
    if "calls" in item.changed:
        copy.update({name: sent[name] for name in ("tool_calls", "tool_call_id") if name in sent})
    if "reasoning" in item.changed and not reasoning:
        for name in ("reasoning_content", "thinking_blocks", "reasoning"):
            copy.pop(name, None)
    return copy


class _Models:
    """The conversations of each model, and a function that creates its manager."""

    def __init__(self, manager_for: Callable[[str], Manager] | None, most: int) -> None:
        self._manager_for = manager_for or manager_of
        self._most = most
        self._lock = threading.Lock()
        self._all: dict[str, Histories[EncodedMessage]] = {}

    def get_or_create(self, model: str) -> Histories[EncodedMessage]:
        with self._lock:
            found = self._all.pop(model, None) or Histories(
                self._manager_for(model), to_wire, most=self._most, is_same=operator.eq
            )
            self._all[model] = found
            if len(self._all) > MODELS:
                del self._all[next(iter(self._all))]
            return found


class ContextWindowHook(Planned):
    """Plans every chat request. The prompt fits its budget, tool calls keep their results, and the question
    stays.

    `manager_for` creates the `Manager` for a model's name (default: `Manager` itself). `prompt_budget` is the
    prompt budget in tokens (default: the rest of the model's window). The other arguments are those of
    `Manager.plan`.

    A request is planned once. By default this happens after its deployment is chosen
    (`async_pre_call_deployment_hook`). With `before_routing=True` it happens earlier, for the model name from
    the proxy's client (`async_pre_call_hook`). Equal messages give equal prompts, in any process and after
    any restart. For each model, `most` conversations are cached, of which only new messages are read. Tools and
    the JSON schema of a `response_format` are counted.

    LiteLLM has no hook for the messages of a synchronous `completion`. `wrap` plans them; other synchronous
    requests are sent unchanged, with a warning. If the required messages exceed the budget, `on_overflow` raises
    (`"raise"`), warns (`"warn"`) or sends them without a warning (`"send"`).

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
        on_overflow: OnOverflow = "warn",
        most: int = 64,
        **request: Unpack[TargetOptions],
    ) -> None:
        super().__init__()
        check_options(ContextWindowHook, request, TargetOptions)
        self.prompt_budget = prompt_budget
        self.before_routing = before_routing
        self._policy = Policy(on_overflow)
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
        given = encode_messages(messages, asked)
        history = self._models.get_or_create(model).get_or_create(given)
        with history.lock:
            plan = replay_messages(history, given, asked)
            self._policy.accept(plan)
            return build_prompt(history, plan)

    def wrap(self, function: Callable[..., R]) -> Callable[..., R]:
        """Returns `litellm.completion`, or `completion` of a router, with planned messages. Raises `TypeError` for
        an asynchronous function, whose requests the hook itself plans. Pass the messages by
        keyword. A model's name that is no model of a deployment is planned like `before_routing=True`.
        """

        if inspect.iscoroutinefunction(function):
            raise TypeError("wrap: expected a synchronous function; the registered hook plans asynchronous requests")

        @functools.wraps(function)
        def planned(*arguments: Any, **call: Any) -> R:
            model = arguments[0] if arguments else call.get("model")
            if len(arguments) > 1:
                model, call["messages"] = arguments[0], arguments[1]
                arguments = (model, *arguments[2:]) if len(arguments) > 2 else (model,)
                if len(arguments) > 1:
                    raise TypeError("wrap: pass the arguments after the messages by keyword")
            messages = call.get("messages")
            if messages and isinstance(model, str):
                call["messages"] = self.messages(model, messages, **self._limits(call))
            token = _is_wrapped.set(True)
            try:
                return function(*arguments, **call)
            finally:
                _is_wrapped.reset(token)

        return planned

    def log_pre_api_call(self, model: str, messages: Any, kwargs: Any) -> None:
        """Warns of a synchronous chat request that `wrap` did not plan."""
        call = kwargs if isinstance(kwargs, dict) else {}
        if call.get("call_type") == "completion" and not _is_wrapped.get():
            warn(f"a synchronous request to {model} was not planned: call ContextWindowHook.wrap(litellm.completion)")

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Returns the call's arguments with planned messages, or None if nothing changes."""
        return None if self.before_routing else await self._plan_call(kwargs, call_type)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Returns the proxy's request with planned messages, or None if nothing changes."""
        return await self._plan_call(data, call_type) if self.before_routing else None

    async def _plan_call(self, call: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        messages = call.get("messages")
        # If the model is passed by position, only the call's own record contains it.
        model = call.get("model") or getattr(call.get("litellm_logging_obj"), "model", None)
        if getattr(call_type, "value", call_type) not in CHAT:
            return None
        if not messages or not isinstance(model, str):
            if getattr(call.get("litellm_logging_obj"), "messages", None):
                warn("a request was not planned: pass its messages by keyword")
            return None
        planned = await asyncio.to_thread(self.messages, model, messages, **self._limits(call))
        return {**call, "messages": planned}

    def _limits(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments of a plan that a call's own arguments determine."""
        limits: dict[str, Any] = {"tools": call.get("tools")}
        most = call.get("max_completion_tokens") or call.get("max_tokens")
        if self.prompt_budget is None and most is not None:
            limits["max_completion_tokens"] = most
        if output := response_tool(call.get("response_format")):
            limits["tools"] = [*(call.get("tools") or []), output]
        return limits


def hook(base: type, *arguments: Any, **settings: Any) -> Any:
    """Creates a `ContextWindowHook` that is also a `base`, which is LiteLLM's `CustomLogger`. The
    arguments are those of the hook.
    """
    return type("ContextWindowHook", (ContextWindowHook, base), {})(*arguments, **settings)


class _TrimMessages(Planned):
    """Trims messages like `litellm.utils.trim_messages`, with a plan: whole messages are dropped, and tool
    calls keep their results.

    `max_tokens` is the prompt budget in tokens (default: `trim_ratio` of the model's window). Returns the list,
    or with `return_response_tokens` a pair of the list and the remaining tokens of the budget. The messages are
    the caller's own. If the last exchange alone is too long, a copy with a shortened tool result replaces one
    of them. Without `max_tokens` and a known model, all messages are returned, with a warning.

    The result never has more than `max_tokens`. If the newest messages do not fit, the result is the system
    messages alone, or an empty list. `on_overflow` then raises (`"raise"`), warns (`"warn"`) or does neither
    (`"send"`). `trim_messages.plan` is the plan of the newest call.
    """

    __name__ = __qualname__ = "trim_messages"

    def __init__(self) -> None:
        self._policy = Policy()
        self._models = _Models(None, 64)

    def __reduce__(self) -> str:
        return "trim_messages"

    def __call__(
        self,
        messages: Sequence[Any],
        model: str | None = None,
        trim_ratio: float = 0.75,
        return_response_tokens: bool = False,
        max_tokens: int | None = None,
        *,
        on_overflow: OnOverflow = "warn",
        **unknown: Never,
    ) -> Any:
        refuse_unknown("trim_messages", unknown, (), _OPTIONS)
        policy = Policy(check_overflow(on_overflow))
        histories = self._models.get_or_create(model or "gpt-4o")
        manager = histories.manager
        if max_tokens is None:
            if model is None or not manager.known:
                self._policy.plan = None
                warn("trim_messages: neither max_tokens nor a known model is given, so all messages are returned")
                return (list(messages), 0) if return_response_tokens else list(messages)
            max_tokens = int(manager.usage(Conversation())["context_len"] * trim_ratio)
        given = encode_messages(messages, {"prompt_budget": max_tokens})
        history = histories.get_or_create(given)
        with history.lock:
            plan = replay_messages(history, given, {"prompt_budget": max_tokens})
            self._policy.plan = plan
            kept = build_prompt(history, plan, reasoning=True)
            tokens = _tokens(manager, kept)
            if tokens > max_tokens:
                kept = build_prompt(history, plan)
                tokens = _tokens(manager, kept)
        if tokens > max_tokens or plan.overflow is not None:
            needed = max(tokens, plan.estimated_tokens_total)
            kept = [one for one, own in zip(messages, given) if own.to_dict().get("role") in ("system", "developer")]
            tokens = _tokens(manager, kept)
            if tokens > max_tokens:
                kept, tokens = [], 0
            result = "The system messages alone are" if kept else "An empty list is"
            policy.report(needed, max_tokens, f"{result} returned.", plan)
        return (kept, max_tokens - tokens) if return_response_tokens else kept


#: The arguments of `trim_messages`.
_OPTIONS = ("messages", "model", "trim_ratio", "return_response_tokens", "max_tokens", "on_overflow")


def _tokens(manager: Manager, messages: list[Any]) -> int:
    wire = [one if isinstance(one, dict) else _wire.plain(one) for one in messages]
    return manager.count_messages(wire) if wire else 0


trim_messages = _TrimMessages()
