"""The drop-in replacement of LangChain's `trim_messages`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, overload

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    MessageLikeRepresentation,
    SystemMessage,
    convert_to_messages,
)
from langchain_core.messages import trim_messages as _trim_as_langchain
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from ._core import Conversation, Manager, Plan
from ._history import Histories, SentMessage, item_messages
from ._langchain_counter import TokenCounter
from ._langchain_messages import apply_changes, is_same_message, to_wire
from ._policy import OnOverflow, Planned, Policy, check_overflow, refuse_unknown
from ._replay import replay

if TYPE_CHECKING:
    from typing_extensions import Never, Required, Unpack

Messages: TypeAlias = Iterable[MessageLikeRepresentation] | PromptValue
Counter: TypeAlias = (
    str
    | Manager
    | TokenCounter
    | BaseLanguageModel[Any]
    | Callable[[list[BaseMessage]], int]
    | Callable[[BaseMessage], int]
)
Kinds: TypeAlias = str | type[BaseMessage] | Sequence[str | type[BaseMessage]] | None
Splitter: TypeAlias = Callable[[str], list[str]] | Any


class TrimOptions(TypedDict, total=False):
    """The keyword arguments of `trim_messages`."""

    max_tokens: Required[int]
    token_counter: Required[Counter]
    strategy: Literal["first", "last"]
    allow_partial: bool
    end_on: Kinds
    start_on: Kinds
    include_system: bool
    text_splitter: Splitter
    on_overflow: OnOverflow


class _TrimMessages(Planned):
    """Trims messages like `langchain_core.messages.trim_messages`, with a plan: drops the least important
    messages instead of the oldest.

    `token_counter` is a model's name, a `Manager` or a `TokenCounter`. `max_tokens` is the prompt budget in
    tokens. `include_system`, `start_on` and `end_on` have the same meaning as in LangChain. `strategy="first"`,
    `allow_partial=True`, a language model and a function as counter are passed to LangChain. Without messages,
    returns a runnable.

    The result never has more than `max_tokens`. If the newest messages do not fit, the result is the system
    message alone (with `include_system`) or an empty list. `on_overflow` then raises (`"raise"`), warns
    (`"warn"`) or does neither (`"send"`). The result depends only on the arguments, so the same list gives the
    same prompt, and a longer list keeps its beginning. `trim_messages.plan` is the plan of the newest call, or
    None if LangChain trimmed.
    """

    __name__ = __qualname__ = "trim_messages"

    def __init__(self) -> None:
        self._policy = Policy()

    def __reduce__(self) -> str:
        return "trim_messages"

    @overload
    def __call__(
        self, messages: None = None, **options: Unpack[TrimOptions]
    ) -> Runnable[Messages, list[BaseMessage]]: ...

    @overload
    def __call__(self, messages: Messages, **options: Unpack[TrimOptions]) -> list[BaseMessage]: ...

    def __call__(
        self,
        messages: Any = None,
        *,
        max_tokens: int | None = None,
        token_counter: Any = None,
        strategy: Literal["first", "last"] = "last",
        allow_partial: bool = False,
        end_on: Kinds = None,
        start_on: Kinds = None,
        include_system: bool = False,
        text_splitter: Splitter = None,
        on_overflow: OnOverflow = "warn",
        **unknown: Never,
    ) -> Any:
        refuse_unknown("trim_messages", unknown, (), TrimOptions.__annotations__)
        for name, value in (("max_tokens", max_tokens), ("token_counter", token_counter)):
            if value is None:
                raise TypeError(f"trim_messages: {name} is missing")
        assert max_tokens is not None
        policy = Policy(check_overflow(on_overflow))
        counter = _find_counter(token_counter)
        settings: dict[str, Any] = {"end_on": end_on, "start_on": start_on, "include_system": include_system}
        if counter is None or strategy != "last" or allow_partial or text_splitter is not None:
            settings |= {"strategy": strategy, "allow_partial": allow_partial, "text_splitter": text_splitter}
            trim_as_langchain = partial(
                _trim_as_langchain, max_tokens=max_tokens, token_counter=counter or token_counter, **settings
            )
            return trim_as_langchain() if messages is None else self._call_langchain(trim_as_langchain, messages)
        trim: Callable[[Any], list[BaseMessage]] = partial(
            self._trim, counter=counter, budget=max_tokens, policy=policy, **settings
        )
        return RunnableLambda(trim, name="trim_messages") if messages is None else trim(messages)

    def _call_langchain(self, trim_as_langchain: Callable[[Any], Any], messages: Any) -> Any:
        self._policy.plan = None
        return trim_as_langchain(messages)

    def _trim(
        self,
        messages: Any,
        counter: TokenCounter,
        budget: int,
        policy: Policy,
        end_on: Kinds,
        start_on: Kinds,
        include_system: bool,
    ) -> list[BaseMessage]:
        given = messages.to_messages() if hasattr(messages, "to_messages") else messages
        # Objects that are messages already stay the same objects.
        candidates: list[BaseMessage] = convert_to_messages(given)
        while end_on and candidates and not _is_one_of(candidates[-1], end_on):
            candidates.pop()
        if not candidates:
            return []
        plan, sent = _plan_messages(counter.manager, candidates, budget)
        if not include_system and not _is_complete(plan, sent, candidates):
            # Without `include_system`, the system messages are dropped first, as the oldest ones.
            rest = [one for one in candidates if not isinstance(one, SystemMessage)]
            if len(rest) < len(candidates):
                plan, sent = _plan_messages(counter.manager, rest, budget)
        self._policy.plan = plan
        kept = _drop_before(_to_messages(sent, reasoning=True), start_on)
        if counter(kept) > budget:
            # The counter's provider refuses this reasoning, so the plan did not count it.
            kept = _drop_before(_to_messages(sent, reasoning=False), start_on)
        needed = max(counter(kept), plan.estimated_tokens_total if plan.overflow else 0)
        if needed > budget:
            kept = [one for one in candidates[:1] if include_system and isinstance(one, SystemMessage)]
            kept = kept if counter(kept) <= budget else []
            result = "The system message alone" if kept else "An empty list"
            policy.report(needed, budget, f"{result} is returned.", plan)
        return kept


def _is_complete(plan: Plan, sent: list[SentMessage[BaseMessage]], candidates: list[BaseMessage]) -> bool:
    """Checks if every message is in the prompt with its text."""
    own = sum(one.own is not None and "text" not in one.item.changed for one in sent)
    return plan.overflow is None and own == len(candidates)


def _to_messages(sent: list[SentMessage[BaseMessage]], reasoning: bool) -> list[BaseMessage]:
    kept: list[BaseMessage] = []
    for one in sent:
        if one.own is None:
            kept.extend(convert_to_messages(item_messages(one.item)))
        else:
            kept.append(apply_changes(one.own, one, reasoning=reasoning))
    return kept


def _drop_before(messages: list[BaseMessage], start_on: Kinds) -> list[BaseMessage]:
    """Drops the messages before the first one of these kinds, except system messages."""
    if not start_on:
        return messages
    head = [one for one in messages if isinstance(one, SystemMessage)]
    rest = [one for one in messages if not isinstance(one, SystemMessage)]
    while rest and not _is_one_of(rest[0], start_on):
        rest.pop(0)
    return head + rest


def _is_one_of(message: BaseMessage, kinds: Kinds) -> bool:
    several = [kinds] if isinstance(kinds, (str, type)) else kinds or ()
    return any(message.type == kind if isinstance(kind, str) else isinstance(message, kind) for kind in several)


#: The maximum number of counters, and of pairs of a manager and a budget with their conversations. The last
#: used ones are kept.
_MAX_ENTRIES = 16
_counters: dict[Any, TokenCounter] = {}
_histories: dict[Any, Histories[BaseMessage]] = {}
_lock = threading.Lock()


def _find_counter(given: Any) -> TokenCounter | None:
    """Returns the counter for a model's name or a manager, or None for a counter of another package. Raises
    `ValueError` for an unknown name.
    """
    if isinstance(given, TokenCounter):
        return given
    if not isinstance(given, (str, Manager)) or given == "approximate":
        return None
    with _lock:
        found = _counters.pop(given, None)
        if found is None:
            found = TokenCounter(Manager(given) if isinstance(given, str) else given)
            if isinstance(given, str) and not found.manager.known:
                raise ValueError(
                    f"Invalid token_counter shortcut '{given}': it names no known model; expected a model's name, "
                    "'approximate', a Manager, or a function"
                )
        _store_newest(_counters, given, found)
        return found


def _plan_messages(
    manager: Manager, messages: list[BaseMessage], budget: int
) -> tuple[Plan, list[SentMessage[BaseMessage]]]:
    if not messages:
        return manager.plan(Conversation(), prompt_budget=budget), []
    with _lock:
        name = (manager, budget)
        histories = _histories.pop(name, None) or Histories(manager, to_wire, is_same=is_same_message)
        _store_newest(_histories, name, histories)
    history = histories.get_or_create(messages)
    with history.lock:
        plan = replay(history, messages, {"prompt_budget": budget}, lambda one: isinstance(one, AIMessage))
        return plan, history.sent(plan)


def _store_newest(all: dict[Any, Any], name: Any, value: Any) -> None:
    all[name] = value
    while len(all) > _MAX_ENTRIES:
        del all[next(iter(all))]


trim_messages = _TrimMessages()
