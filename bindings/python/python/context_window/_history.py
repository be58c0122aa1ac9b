"""A framework's list of messages, synchronized with a conversation of the planner.

Frameworks pass the whole history with every request, and only its new messages are read. Earlier messages are
recognized by identity, or by equality if the framework created new objects.
"""

from __future__ import annotations

import json
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from ._core import Conversation, InputError, ItemMessage, Manager, Plan, is_context_overflow

T = TypeVar("T")

#: The id of the note that contains a framework's system text.
SYSTEM = "system"


@dataclass(frozen=True)
class Sent(Generic[T]):
    """A message of a prompt: the planner's item, and the framework's own object if the message comes from
    one.
    """

    item: ItemMessage
    own: T | None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.item, self.own))


class History(Generic[T]):
    """A conversation. `to_wire` converts one of the framework's objects to a list of messages as dicts,
    usually a single one.
    """

    def __init__(
        self, manager: Manager, to_wire: Callable[[T], list[dict[str, Any]]], wire_format: Any = "openai"
    ) -> None:
        self.manager = manager
        self.log = Conversation()
        self.lock = threading.RLock()
        self._to_wire = to_wire
        self._wire_format = wire_format
        self._seen: list[T] = []
        #: The id of the first message of each object.
        self._ids: list[str] = []
        #: The index of the source object for each message of the log.
        self._owners: list[int] = []
        self._system: str | None = None
        self._last: Plan | None = None
        self._committed = False

    def known(self, messages: Sequence[T]) -> int:
        """Returns the number of messages at the beginning that are the same as before."""
        seen = self._seen
        if len(messages) >= len(seen) and all(map(operator.is_, seen, messages)):
            return len(seen)
        for at, (one, other) in enumerate(zip(seen, messages)):
            if one is not other and one != other:
                return at
        return min(len(seen), len(messages))

    def goes_on_with(self, messages: Sequence[T]) -> bool:
        """Checks if a list continues this conversation, by the newest message that both have."""
        last = len(self._seen) - 1
        if last < 0 or len(messages) <= last:
            return False
        same = self._seen[last], messages[last]
        return same[0] is same[1] or bool(same[0] == same[1])

    def sync(self, messages: Sequence[T], system: str | None = None) -> None:
        """Synchronizes the conversation with the list. If earlier messages differ, it is rewound to before
        them.
        """
        with self.lock:
            known = self.known(messages)
            if known < len(self._seen):
                known = self._rewind(known)
            if system != self._system:
                if system:
                    # Without a TTL, the note could be dropped although the framework sends it. An unlimited
                    # TTL makes it required.
                    self.log.pin(SYSTEM, system)
                    self.log.set_ttl(SYSTEM, None)
                else:
                    self.log.unpin(SYSTEM)
                self._system = system
            self._push(messages[known:])
            # Equal objects from the new list replace the earlier ones, so that the next comparison is by
            # identity.
            self._seen[:known] = messages[:known]

    def plan(
        self, messages: Sequence[T], system: str | None = None, *, after_last: bool = False, **request: Any
    ) -> Plan:
        """Plans the next prompt. `after_last` means that the last plan was sent although no reply was
        stored.
        """
        with self.lock:
            self.sync(messages, system)
            if after_last and self._last is not None and not self._committed:
                request.setdefault("previous", self._last.anchor())
            self._committed = False
            self._last = self.manager.plan(self.log, **request)
            return self._last

    def smaller(self, refused: Plan, **request: Any) -> Plan:
        """Plans a smaller prompt, after the provider rejected one as too long."""
        with self.lock:
            self._last = self.manager.plan_after_overflow(self.log, refused, **request)
            return self._last

    def sent(self, plan: Plan) -> list[Sent[T]]:
        """Returns the messages of the prompt in order, each with the framework's object if it comes from
        one.
        """
        with self.lock:
            found: list[Sent[T]] = []
            last = None
            for item in plan.by_item():
                owner = None if item.position is None else self._owners[item.position]
                if owner is None:
                    found.append(Sent(item, None))
                elif owner != last:
                    found.append(Sent(item, self._seen[owner]))
                last = owner
            return found

    def commit(self, plan: Plan, reply: T, response: Any = None) -> None:
        """Stores the reply with its plan. The framework passes the same object with the next request."""
        with self.lock:
            wire = self._to_wire(reply)
            try:
                told = known_usage(response) if isinstance(response, dict) and "usage" not in response else response
                stored = self.log.push_reply(
                    plan, wire if len(wire) > 1 else wire[0], told, wire_format=self._wire_format
                )
            except InputError:
                return  # It is several messages: they come with the next request.
            self._owners.append(len(self._seen))
            self._seen.append(reply)
            self._ids.append(stored.id)
            self._committed = True

    def __len__(self) -> int:
        return len(self._seen)

    def reset(self) -> None:
        """Starts with an empty log. All pins and sent prompts are forgotten."""
        with self.lock:
            self.log, self._last, self._system = Conversation(), None, None
            self._seen, self._ids, self._owners = [], [], []

    def _push(self, messages: Sequence[T]) -> None:
        wire = [self._to_wire(one) for one in messages]
        if not wire:
            return
        if all(len(one) == 1 for one in wire) and not any(map(_may_part, wire)):
            ids = self.log.push([one[0] for one in wire], self._wire_format)
            self._owners.extend(range(len(self._seen), len(self._seen) + len(ids)))
            self._seen.extend(messages)
            self._ids.extend(ids)
            return
        for message, one in zip(messages, wire):
            ids = self.log.push(one, self._wire_format)
            self._owners.extend([len(self._seen)] * len(ids))
            self._seen.append(message)
            self._ids.extend(ids[:1])

    def _rewind(self, known: int) -> int:
        """Archives messages that are no longer in the list. Returns the number of objects that remain.
        Pins stay.
        """
        self.log.rewind_before(self._ids[known])
        # Tool calls are archived with their results, so the rewind may begin earlier than requested.
        entry: dict[str, Any] = json.loads(self.log.events(self.log.event_count() - 1)[0])["entry"]
        position = self.log.position(entry["event"]["rewound"]["before"])
        known = known if position is None else self._owners[position]
        del self._seen[known:], self._ids[known:]
        return known


class Turn(Generic[T]):
    """A request in progress: its plan, the messages to send, and the reply.

    Another conversation with the same beginning may use this history in the meantime. So each step
    synchronizes with the request's own messages first.
    """

    plan: Plan
    sent: list[Sent[T]]

    def __init__(
        self, history: History[T], messages: Sequence[T], system: str | None, request: dict[str, Any], retries: int = 0
    ) -> None:
        self.history = history
        self._messages, self._system, self._request, self._left = messages, system, request, retries
        with history.lock:
            self._take(history.plan(messages, system, **request))

    def shrink(self, error: Exception) -> None:
        """Plans a smaller prompt if the error reports an overflow. Raises the error otherwise."""
        if not self._left or not is_context_overflow(str(error)):
            raise error
        self._left -= 1
        with self.history.lock:
            self.history.sync(self._messages, self._system)
            self._take(self.history.smaller(self.plan, **self._request))

    def commit(self, reply: T, response: Any = None) -> None:
        """Stores the reply, with the provider's report."""
        with self.history.lock:
            self.history.sync(self._messages, self._system)
            self.history.commit(self.plan, reply, response)

    def _take(self, plan: Plan) -> None:
        self.plan, self.sent = plan, self.history.sent(plan)


def manager_of(given: Manager | str) -> Manager:
    """Returns the given manager, or creates one for a model's name."""
    if isinstance(given, (Manager, str)):
        return given if isinstance(given, Manager) else Manager(given)
    raise TypeError(f"expected a Manager or a model's name, not a {type(given).__name__}")


def known_usage(told: Any) -> dict[str, Any] | None:
    """Returns a usage report that the planner can read, or None."""
    if not isinstance(told, dict):
        return None
    report = cast("dict[str, Any]", told)
    return report if isinstance(report.get("prompt_tokens", report.get("input_tokens")), int) else None


def _may_part(wire: list[dict[str, Any]]) -> bool:
    """Checks if a message becomes several: a user message may contain tool results."""
    content: Any = wire[0].get("content")
    if not isinstance(content, list):
        return False
    blocks = content
    return any(
        isinstance(block, dict) and cast("dict[str, Any]", block).get("type") == "tool_result" for block in blocks
    )


class Histories(Generic[T]):
    """The conversations that an adapter serves: the last used ones. A conversation that was dropped is
    read again.
    """

    def __init__(
        self,
        manager: Manager,
        to_wire: Callable[[T], list[dict[str, Any]]],
        wire_format: Any = "openai",
        most: int = 64,
    ) -> None:
        self.manager = manager
        self._to_wire = to_wire
        self._wire_format = wire_format
        self._most = most
        self._lock = threading.Lock()
        #: The conversations by key, the last used one at the end.
        self._all: dict[Any, History[T]] = {}
        self._made = 0

    def of(self, messages: Sequence[T], key: Any = None) -> History[T]:
        """Returns the conversation with this key, or the one that the list continues. Creates it if
        necessary.
        """
        with self._lock:
            name = key if key is not None else self._like(messages)
            history = self._all.pop(name, None)
            if history is None:
                history = History(self.manager, self._to_wire, self._wire_format)
            self._all[name] = history
            while len(self._all) > self._most:
                del self._all[next(iter(self._all))]
            return history

    def _like(self, messages: Sequence[T]) -> Any:
        for name, history in reversed(self._all.items()):
            if history.goes_on_with(messages):
                return name
        self._made += 1
        return ("unnamed", self._made)
