"""A memory of LlamaIndex within a token budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, field_serializer
from llama_index.core.llms.llm import LLM
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY, BaseChatStoreMemory
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llama_index.core.storage.chat_store.loading import load_chat_store

from ._core import Conversation, Manager, Plan
from ._llama_index_llm import ContextWindowLLM
from ._llama_index_turn import Managed, MemoryOptions, PlannedTurn, Planner, StoredMemoryOptions, split_fields
from ._policy import OnOverflow, Policy

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ContextWindowMemory(BaseChatStoreMemory):
    """A memory that returns the messages within a budget, and keeps the whole history in its chat store.

    The arguments after `manager` are those of `Manager.plan` (`prompt_budget` in tokens, ...). The budget
    applies to the memory only: it does not include messages that an agent adds in its tool loop. With a
    `ContextWindowLLM` as `llm`, the memory returns everything (`planned=False`), because that model plans the
    whole request. If the required messages exceed the budget, `on_overflow` raises (`"raise"`), warns (`"warn"`)
    or returns them without a warning (`"send"`).

    Chat engines with retrieval measure the prompt against `metadata.context_window` before the model sees it. Use
    `planned=True` and a budget for them.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    manager: Managed
    planned: bool = True
    on_overflow: OnOverflow = "warn"
    request: dict[str, Any] = Field(default_factory=dict)
    _planner: Planner = PrivateAttr()
    _policy: Policy = PrivateAttr()

    def __init__(self, manager: Manager | str, **given: Unpack[MemoryOptions]) -> None:
        if isinstance(given.get("chat_store"), dict):
            given["chat_store"] = load_chat_store(given["chat_store"])
        super().__init__(**{**split_fields(type(self), dict(given)), "manager": manager})
        self._planner = Planner(self.manager, 1)
        self._policy = Policy(self.on_overflow)

    @classmethod
    def class_name(cls) -> str:
        return "ContextWindowMemory"

    @classmethod
    def from_defaults(  # type: ignore[override]
        cls,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        chat_store: BaseChatStore | None = None,
        chat_store_key: str = DEFAULT_CHAT_STORE_KEY,
        manager: Manager | str | None = None,
        **request: Unpack[StoredMemoryOptions],
    ) -> ContextWindowMemory:
        """Creates a memory for `llm`, or for the model that `manager` names. Raises `TypeError` if neither
        is given.
        """
        if manager is None and llm is None:
            raise TypeError("from_defaults: expected manager or llm")
        if isinstance(llm, ContextWindowLLM):
            request.setdefault("planned", False)
            manager = manager or llm.manager
        store = chat_store or SimpleChatStore()
        if chat_history is not None:
            store.set_messages(chat_store_key, list(chat_history))
        manager = manager or cast(LLM, llm).metadata.model_name
        return cls(manager, chat_store=store, chat_store_key=chat_store_key, **request)

    @field_serializer("chat_store")
    def serialize_courses_in_order(self, chat_store: BaseChatStore) -> dict[str, Any]:
        # With pydantic 2.14, a SimpleChatStore with messages cannot be dumped by its own method.
        if not isinstance(chat_store, SimpleChatStore):
            return {**chat_store.model_dump(), "class_name": chat_store.class_name()}
        store = {key: [one.model_dump(mode="json") for one in all] for key, all in chat_store.store.items()}
        return {"store": store, "class_name": chat_store.class_name()}

    @property
    def plan(self) -> Plan | None:
        """The plan of the newest `get`, or None before the first one."""
        return self._policy.plan

    @property
    def tokenizer_fn(self) -> Callable[[str], Sequence[int]]:
        """Chat engines use the length of its result to measure their additions: the `initial_token_count`
        of `get`.
        """
        return lambda text: range(self.manager.count(text))

    def get(self, input: str | None = None, initial_token_count: int = 0, **kwargs: Any) -> list[ChatMessage]:
        """Returns the messages to send. Reserves `initial_token_count` tokens of the budget for one
        message of the caller.
        """
        return self._plan_messages(self.get_all(), initial_token_count)

    async def aget(self, input: str | None = None, initial_token_count: int = 0, **kwargs: Any) -> list[ChatMessage]:
        return await asyncio.to_thread(self._plan_messages, await self.aget_all(), initial_token_count)

    def _plan_messages(self, messages: list[ChatMessage], reserved: int) -> list[ChatMessage]:
        if not self.planned or not messages:
            return list(messages)
        extra = dict(self.request)
        if reserved:
            frame = [self.manager.count_messages(one) for one in ([{"role": "system", "content": "x"}], [])]
            budget = self.manager.plan(Conversation(), **extra).prompt_budget
            extra["prompt_budget"] = max(1, budget - reserved - frame[0] + frame[1])
        # A copy is planned, because an agent with a state writes that state into the newest message in place.
        newest, read = messages[-1], messages[-1].model_copy(deep=True)
        turn = PlannedTurn(self._planner, [*messages[:-1], read], extra, self._policy, key="memory")
        return [newest if one is read else one for one in turn.messages]
