"""Pydantic AI's conversations in a `Store`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter

from ._core import ConflictError, Conversation, Store

#: The types of the log parts that contain a conversation.
_ENTRY, _RECORD = "pydantic_ai_entry", "pydantic_ai_record"
_RECORDS = TypeAdapter(ConversationRecord)


class StoreConversations(ConversationStore):
    """Pydantic AI's `ConversationStore` in a `Store`. Each conversation is a session, and each write is
    complete or absent.

    Messages are stored as `ModelMessagesTypeAdapter` writes them. A fork copies its shared entries, so that
    `delete` erases a conversation with all its entries. A session's name is `prefix` and the conversation's
    id, and a list reads all sessions with this prefix. Raises `StoreError` if the database fails.
    """

    def __init__(self, store: Store, *, prefix: str = "pydantic-ai/") -> None:
        self._store, self._prefix = store, prefix
        #: The conversation in which an entry was last seen, by entry id.
        self._locations: dict[str, str] = {}

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return (await asyncio.to_thread(self._load, conversation_id)).record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        found = await asyncio.to_thread(lambda: [one.record for one in self._all()])
        records = [one for one in found if one is not None and scope in (None, one.scope)]
        return sorted(records, key=lambda one: one.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await asyncio.to_thread(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await asyncio.to_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        return await asyncio.to_thread(self._history, head_id, limit)

    def _history(self, head_id: str | None, limit: int | None = None) -> list[ConversationEntry]:
        """Returns the entries up to this one, or the last `limit` of them. Raises `LookupError` if an
        entry is missing.
        """
        if head_id is None or limit == 0:
            return []
        stored = self._load(self._locations.get(head_id, ""))
        if head_id not in stored.entries:
            stored = next((one for one in self._all() if head_id in one.entries), stored)
        return stored.history(head_id, limit)

    def _all(self) -> Iterator[_StoredConversation]:
        ids = [one["id"] for one in self._store.list(limit=2**32 - 1)]
        return (self._load(id.removeprefix(self._prefix)) for id in ids if id.startswith(self._prefix))

    def _load(self, conversation_id: str) -> _StoredConversation:
        stored = _StoredConversation(*self._store.load_or_new(self._prefix + conversation_id))
        if stored.record is not None:
            self._locations.update(
                dict.fromkeys([stored.record.head_id or "", *stored.record.branches], conversation_id)
            )
        return stored

    def _write(self, record: ConversationRecord, new: list[ConversationEntry], expected: str | None) -> None:
        stored = self._load_expected(record.conversation_id, expected)
        if record.head_id is not None and record.head_id not in {*stored.entries, *(one.id for one in new)}:
            try:
                new = [*self._history(record.head_id), *new]
            except LookupError:
                raise ConversationConflict(record.conversation_id) from None
        parts: list[dict[str, Any]] = []
        for one in new:
            text = ModelMessagesTypeAdapter.dump_json([one.message]).decode()
            parts.append({"type": _ENTRY, "id": one.id, "parent_id": one.parent_id, "message": text})
        parts.append({"type": _RECORD, "record": _RECORDS.dump_json(record).decode()})
        stored.log.push(parts, "openai_responses")
        self._save(record.conversation_id, stored)
        self._forget(record.conversation_id)
        self._locations[record.head_id or ""] = record.conversation_id

    def _delete(self, conversation_id: str, expected: str) -> None:
        stored = self._load_expected(conversation_id, expected)
        # Recorded in the log first, so that a writer that loaded the session earlier gets a conflict.
        stored.log.start_fresh()
        self._save(conversation_id, stored)
        self._store.delete(self._prefix + conversation_id)
        self._forget(conversation_id)

    def _forget(self, conversation_id: str) -> None:
        """Forgets where the entries of a conversation were last seen. Later look-ups search the store."""
        for head in [head for head, found in self._locations.items() if found == conversation_id]:
            del self._locations[head]

    def _load_expected(self, conversation_id: str, expected: str | None) -> _StoredConversation:
        stored = self._load(conversation_id)
        if (stored.record.revision if stored.record is not None else None) != expected:
            raise ConversationConflict(conversation_id)
        return stored

    def _save(self, conversation_id: str, stored: _StoredConversation) -> None:
        try:
            self._store.save(self._prefix + conversation_id, stored.log, stored.revision)
        except ConflictError:
            raise ConversationConflict(conversation_id) from None


class _StoredConversation:
    """A conversation's content in a session's log: its newest record, and its entries as JSON."""

    def __init__(self, log: Conversation, revision: int) -> None:
        self.log, self.revision = log, revision
        self.record: ConversationRecord | None = None
        self.entries: dict[str, dict[str, Any]] = {}
        record = None
        for entry in (json.loads(event)["entry"] for event in log.events()):
            for part in entry.get("message", {}).get("parts", ()):
                value = json.loads(part["opaque"]["json"]) if "opaque" in part else {}
                if value.get("type") == _ENTRY:
                    self.entries[value["id"]] = value
                elif value.get("type") == _RECORD:
                    record = value["record"]
            if "compacted" in entry.get("event", {}):
                record, self.entries = None, {}
        if record is not None:
            self.record = _RECORDS.validate_json(record)

    def history(self, head_id: str, limit: int | None) -> list[ConversationEntry]:
        found: list[ConversationEntry] = []
        at: str | None = head_id
        while at is not None and (limit is None or len(found) < limit):
            parent, message = self.entries[at]["parent_id"], self.entries[at]["message"]
            [message] = ModelMessagesTypeAdapter.validate_json(message)
            found.append(ConversationEntry(id=at, parent_id=parent, message=message))
            at = parent
        return found[::-1]
