"""A framework's list of messages, synchronized with a conversation of the planner.

Frameworks pass the whole history with every request, and only its new messages are read. Earlier messages are
recognized by identity, or by content if the framework created new objects. Ids and times that a framework makes
up for a message are not part of its content.
"""

from __future__ import annotations

import json
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from ._core import Conversation, InputError, ItemMessage, Manager, Plan, is_context_overflow
from ._policy import Backoff, Policy, manager_of

T = TypeVar("T")

__all__ = ["SYSTEM", "Histories", "History", "SentMessage", "Turn", "item_messages", "known_usage", "manager_of"]

#: The id of the note that contains a framework's system text.
SYSTEM = "system"

#: The maximum number of versions of a conversation that its log keeps.
VERSIONS = 4

#: The length in messages of a conversation that counts as small.
SMALL = 64


@dataclass(frozen=True)
class SentMessage(Generic[T]):
    """A message of a prompt: the planner's item, and the framework's own object if the message comes from
    one.
    """

    item: ItemMessage
    own: T | None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.item, self.own))


class History(Generic[T]):
    """A conversation. `to_wire` converts one of the framework's objects to a list of messages as dicts,
    usually a single one. `is_same` compares the contents of two objects (default: their dicts).

    A changed message and its followers replace the earlier ones, which are archived. A log of more than
    `VERSIONS` conversations of this length is replaced by a new one with the same pins.
    """

    def __init__(
        self,
        manager: Manager,
        to_wire: Callable[[T], list[dict[str, Any]]],
        wire_format: Any = "openai",
        is_same: Callable[[T, T], bool] | None = None,
    ) -> None:
        self.manager = manager
        self.log = Conversation()
        self.lock = threading.RLock()
        #: The pause after a summary that failed.
        self.summaries = Backoff()
        #: The positions of replies, for plans that depend only on the messages.
        self.replies: list[int] = []
        self._is_same = is_same or self._is_same_content
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

    def count_known(self, messages: Sequence[T]) -> int:
        """Returns the number of messages at the beginning that are the same as before."""
        seen = self._seen
        if len(messages) >= len(seen) and all(map(operator.is_, seen, messages)):
            return len(seen)
        for at, (one, other) in enumerate(zip(seen, messages)):
            if one is not other and not self._is_same(one, other):
                return at
        return min(len(seen), len(messages))

    def is_continued_by(self, messages: Sequence[T]) -> bool:
        """Checks if a list continues this conversation, by the newest message that both have."""
        # Another thread may plan this conversation meanwhile. It only appends to this list.
        seen = self._seen
        last = len(seen) - 1
        if last < 0 or len(messages) <= last:
            return False
        return seen[last] is messages[last] or self._is_same(seen[last], messages[last])

    def _is_same_content(self, one: T, other: T) -> bool:
        return bool(one == other) or self._to_wire(one) == self._to_wire(other)

    def sync(self, messages: Sequence[T], system: str | None = None) -> None:
        """Synchronizes the conversation with the list. If earlier messages differ, it is rewound to before
        them.
        """
        with self.lock:
            known = self.count_known(messages)
            if known < len(self._seen):
                if len(self._owners) > VERSIONS * max(len(messages), SMALL):
                    self._renew(messages, known)
                    known = len(self._seen)
                else:
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

    def plan_smaller(self, refused: Plan, **request: Any) -> Plan:
        """Plans a smaller prompt, after the provider rejected one as too long."""
        with self.lock:
            self._last = self.manager.plan_after_overflow(self.log, refused, **request)
            return self._last

    def sent(self, plan: Plan) -> list[SentMessage[T]]:
        """Returns the messages of the prompt in order, each with the framework's object if it comes from
        one. The framework's system text is not among them.
        """
        with self.lock:
            found: list[SentMessage[T]] = []
            last = None
            for item in plan.by_item():
                if item.kind == "note" and item.ids == [SYSTEM]:
                    continue
                owner = None if item.position is None else self._owners[item.position]
                if owner is None:
                    found.append(SentMessage(item, None))
                elif owner != last:
                    found.append(SentMessage(item, self._seen[owner]))
                last = owner
            return found

    def commit(self, plan: Plan, reply: T, response: Any = None) -> None:
        """Stores the reply with its plan. The framework passes the same object with the next request."""
        with self.lock:
            wire = self._to_wire(reply)
            try:
                report = known_usage(response) if isinstance(response, dict) and "usage" not in response else response
                stored = self.log.push_reply(
                    plan, wire if len(wire) > 1 else wire[0], report, wire_format=self._wire_format
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
            self._seen, self._ids, self._owners, self.replies = [], [], [], []

    def _push(self, messages: Sequence[T]) -> None:
        wire = [self._to_wire(one) for one in messages]
        if not wire:
            return
        if all(len(one) == 1 for one in wire) and not any(map(_has_tool_results, wire)):
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
        self._seen, self._ids = self._seen[:known], self._ids[:known]
        return known

    def _renew(self, messages: Sequence[T], known: int) -> None:
        """Replaces the log by a new one with these messages and the pins of the old one. The first `known`
        objects are those of before.
        """
        notes, pins = _read_pins(self.log)
        kept = {id: at for at, id in enumerate(self._ids[:known])}
        self.log, self._last = Conversation(), None
        self._seen, self._ids, self._owners = [], [], []
        for position, event in notes:
            # A note keeps its place, because the turns of its TTL count from there.
            while len(self.log) < position and len(self._seen) < len(messages):
                self._push(messages[len(self._seen) : len(self._seen) + 1])
            self.log.apply_event(event)
        self._push(messages[len(self._seen) :])
        for name, priority in pins.items():
            if name in kept:
                self.log.pin_message(self._ids[kept[name]], priority=priority)


def _read_pins(log: Conversation) -> tuple[list[tuple[int, str]], dict[str, Any]]:
    """Returns the events of a log's notes, each with the number of messages before it, and the priorities of
    its pinned messages by id.
    """
    notes: list[tuple[int, str]] = []
    pins: dict[str, Any] = {}
    live: list[str] = []
    number = 0
    for line in log.events():
        entry: dict[str, Any] = json.loads(line)["entry"]
        value: Any
        if "message" in entry:
            live.append(entry["message"].get("id") or f"m{number}")
            number += 1
            continue
        event: dict[str, Any] = entry["event"] if isinstance(entry["event"], dict) else {entry["event"]: None}
        kind, value = next(iter(event.items()))
        if kind == "rewound" and value["before"] in live:
            del live[live.index(value["before"]) :]
        elif kind == "message_pinned":
            pins[value["id"]] = value["priority"]
        elif kind == "unpinned" and value in pins:
            del pins[value]
        elif (
            kind in ("pinned", "unpinned", "ttl_set", "rule_dropped") or kind == "rule_kept" and "message" not in value
        ):
            notes.append((len(live), line))
    return notes, pins


class Turn(Generic[T]):
    """A request in progress: its plan, the messages to send, and the reply.

    Another conversation with the same beginning may use this history in the meantime. So each step
    synchronizes with the request's own messages first.
    """

    plan: Plan
    sent: list[SentMessage[T]]

    def __init__(
        self,
        history: History[T],
        messages: Sequence[T],
        system: str | None,
        request: dict[str, Any],
        retries: int = 0,
        policy: Policy | None = None,
    ) -> None:
        self.history = history
        self._policy = policy or Policy("send")
        self._messages, self._system, self._request, self._retries_left = messages, system, request, retries
        with history.lock:
            self._set_plan(history.plan(messages, system, **request))

    def shrink(self, error: Exception) -> None:
        """Plans a smaller prompt if the error reports an overflow. Raises the error otherwise."""
        if not self._retries_left or not is_context_overflow(str(error)):
            raise error
        self._retries_left -= 1
        with self.history.lock:
            self.history.sync(self._messages, self._system)
            self._set_plan(self.history.plan_smaller(self.plan, **self._request))

    def commit(self, reply: T, response: Any = None) -> None:
        """Stores the reply, with the provider's report."""
        with self.history.lock:
            self.history.sync(self._messages, self._system)
            self.history.commit(self.plan, reply, response)

    def _set_plan(self, plan: Plan) -> None:
        self.plan, self.sent = plan, self.history.sent(plan)
        self._policy.accept(plan)


def item_messages(item: ItemMessage, wire_format: Any = "openai") -> list[dict[str, Any]]:
    """Returns the messages of an item of a prompt as dicts."""
    messages: list[dict[str, Any]] = item.messages(wire_format)
    return messages


def known_usage(given: Any) -> dict[str, Any] | None:
    """Returns a usage report that the planner can read, or None."""
    if not isinstance(given, dict):
        return None
    report = cast("dict[str, Any]", given)
    return report if isinstance(report.get("prompt_tokens", report.get("input_tokens")), int) else None


def _has_tool_results(wire: list[dict[str, Any]]) -> bool:
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

    Without a key, a list belongs to the conversation that it continues, by content. This also applies to a key
    that may be made up for each request (`is_made_up`), if it is new.
    """

    def __init__(
        self,
        manager: Manager,
        to_wire: Callable[[T], list[dict[str, Any]]],
        wire_format: Any = "openai",
        most: int = 64,
        is_same: Callable[[T, T], bool] | None = None,
    ) -> None:
        self.manager = manager
        self._to_wire = to_wire
        self._is_same = is_same
        self._wire_format = wire_format
        self._most = most
        self._lock = threading.Lock()
        #: The conversations by key, the last used one at the end.
        self._all: dict[Any, History[T]] = {}
        #: The keys of conversations that may have pins of the application.
        self._named: set[Any] = set()
        self._unnamed_count = 0

    def get_or_create(self, messages: Sequence[T], key: Any = None, *, is_made_up: bool = False) -> History[T]:
        """Returns the conversation with this key, or the one that the list continues. Creates it if
        necessary.
        """
        with self._lock:
            name = key
            if key is None or (is_made_up and key not in self._all):
                name = self._find(messages)
            history = self._all.pop(name, None) if name is not None else None
            if history is None:
                history = History(self.manager, self._to_wire, self._wire_format, self._is_same)
            if key is None and name is None:
                self._unnamed_count += 1
                name = ("unnamed", self._unnamed_count)
            self._all[key if key is not None else name] = history
            while len(self._all) > self._most:
                dropped = next(iter(self._all))
                del self._all[dropped]
                self._named.discard(dropped)
            return history

    def get_named(self, key: Any) -> History[T]:
        """Returns the conversation with this key for its pins. Requests without a key never continue it."""
        history = self.get_or_create((), key)
        self._named.add(key)
        return history

    def _find(self, messages: Sequence[T]) -> Any:
        """Returns the key of the conversation that the list continues, or None."""
        for name, history in reversed(self._all.items()):
            if name not in self._named and history.is_continued_by(messages):
                return name
        return None
