"""OpenAI Agents SDK: a token budget for every request of a run, and sessions in a store.

    planned = ContextWindowFilter("gpt-6-sol", max_completion_tokens=4_000)
    session = StoreSession(Store("sqlite:sessions.db"), "customer-17")
    await Runner.run(agent, "Hello", session=session, run_config=RunConfig(call_model_input_filter=planned))

The session stays complete: only the messages for the model are planned. Supports openai-agents 0.24.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from agents import Agent, FunctionTool, TResponseInputItem, handoff
from agents.handoffs import Handoff
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData

from . import _wire
from ._core import ConflictError, Conversation, Manager, Plan, Store
from ._history import SYSTEM, Histories, Sent, manager_of

__all__ = ["ContextWindowFilter", "StoreSession"]

#: The items of one message in the planner's log, and a function that returns the `documents` of a request.
Group: TypeAlias = tuple[TResponseInputItem, ...]
Documents: TypeAlias = Callable[[CallModelData[Any]], Iterable[Any] | Awaitable[Iterable[Any]]]

#: Item types that the planner knows as calls and results; the kinds of types without a `call_id`; and the
#: kinds that continue a message of each kind.
_FUNCTIONS = ("function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
_KINDS = {"reasoning": "reasoning", "mcp_approval_request": "call", "mcp_approval_response": "result"}
_GOES_ON = {"reasoning": ("reasoning", "said", "call", "other"), "said": ("call",), "call": ("call",)}

#: The type of the log parts that contain a session's items.
_HELD = "openai_agents_item"


def _plain(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else cast("dict[str, Any]", item.model_dump(exclude_unset=True))


def _kind(item: dict[str, Any]) -> str:
    kind = item.get("type") or "message"
    if kind == "message":
        return "said" if item.get("role") == "assistant" else "message"
    if item.get("call_id"):
        return "result" if kind.endswith("_output") else "call"
    return _KINDS.get(kind, "other")


def _call_id(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item.get("approval_request_id") or item.get("id")


def grouped(items: Iterable[TResponseInputItem]) -> list[Group]:
    """Groups items of Responses into messages of the planner: reasoning, text and calls of one reply
    belong together.
    """
    groups: list[Group] = []
    last, thinks = "", False
    for item in items:
        kind = _kind(_plain(item))
        # Reasoning stays with the items that follow from it, because a provider rejects one without the
        # other.
        goes_on = kind in _GOES_ON.get(last, ()) or (thinks and kind in ("said", "call", "other"))
        groups.append((*groups.pop(), item) if goes_on else (item,))
        thinks = kind == "reasoning" or (thinks and goes_on)
        last = kind
    return groups


def _told(item: dict[str, Any]) -> dict[str, Any]:
    """Converts an item for the planner. Calls and results of built-in tools become those of functions."""
    kind, id = _kind(item), _call_id(item)
    if kind not in ("call", "result") or item["type"] in _FUNCTIONS:
        return item
    told = item.get("output", {key: value for key, value in item.items() if key not in ("type", "id", "call_id")})
    text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, default=_wire.plain)
    if kind == "call":
        return {"type": "function_call", "call_id": id, "name": item["type"], "arguments": text}
    is_image = isinstance(told, dict) and "image_url" in told
    return {"type": "function_call_output", "call_id": id, "output": [told] if is_image else text}


def _wired(group: Group) -> list[dict[str, Any]]:
    return [_told(_plain(item)) for item in group]


def _is_a_rest(items: Sequence[TResponseInputItem]) -> bool:
    """Checks if results answer calls that are missing here. Then the server keeps the conversation, and
    these items are only the new ones.
    """
    kinds = [(_kind(item), _call_id(item)) for item in map(_plain, items)]
    calls = {id for kind, id in kinds if kind == "call"}
    return any(kind == "result" and id not in calls for kind, id in kinds)


class ContextWindowFilter:
    """A `call_model_input_filter`. The prompt fits its budget, tool calls keep their results, and the
    question stays.

    The same objects are sent, with the planner's additions. A shortened tool result is a copy of its item.
    Conversations are distinguished by the result of `key` for a request. Without `key`, they are
    distinguished by their items, which must not be changed in place.

    `documents` returns the retrieved documents for a request, sync or async. The other arguments are those of
    `Manager.plan` (`prompt_budget`, `max_completion_tokens`, `focus`, ...). The agent's function tools and
    handoffs are counted. Pass `tools` if it has others (hosted ones, MCP), and a `safety_buffer` for the
    schema of an output. If the server keeps the conversation (`conversation_id`, `previous_response_id`), the
    request is sent unchanged. Raises the errors of `Manager.plan`.

    One instance serves several conversations from several threads. It keeps the `most` last used ones. `plan`
    is the plan of the newest request.
    """

    def __init__(
        self,
        manager: Manager | str,
        *,
        documents: Documents | None = None,
        key: Callable[[CallModelData[Any]], Hashable] | None = None,
        most: int = 64,
        **request: Any,
    ) -> None:
        self.manager = manager_of(manager)
        self._key = key
        self.plan: Plan | None = None
        self._documents = documents
        self._request = request
        self._histories: Histories[Group] = Histories(self.manager, _wired, "openai_responses", most)

    def conversation(self, key: Hashable) -> Conversation:
        """Returns the planner's log of a conversation, by the result of `key`. Use it to pin notes."""
        return self._histories.of((), key).log

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Plans in a separate thread."""
        given: Any = await asyncio.to_thread(self._documents, data) if self._documents is not None else None
        documents = await given if inspect.isawaitable(given) else given
        return await asyncio.to_thread(self._planned, data, documents)

    def _planned(self, data: CallModelData[Any], documents: Iterable[Any] | None) -> ModelInputData:
        given = data.model_data
        if _is_a_rest(given.input):
            return given
        extra = {"tools": _tools(data.agent), "documents": documents, **self._request}
        key = self._key(data) if self._key is not None else None
        history = self._histories.of(groups := grouped(given.input), key)
        with history.lock:
            # The SDK has no hook for replies, so the last plan shows where the next prompt begins.
            self.plan = plan = history.plan(groups, given.instructions, after_last=True, **extra)
            return framed(history.sent(plan), given)


def framed(sent: Iterable[Sent[Group]], given: ModelInputData) -> ModelInputData:
    """Returns the prompt for the SDK. System texts at its beginning become part of the instructions."""
    texts = [given.instructions] if given.instructions else []
    items: list[TResponseInputItem] = []
    for one in (one for one in sent if one.item.ids != [SYSTEM]):
        item = one.item
        if one.own is not None:
            items.extend(altered(one.own, one) if item.changed else one.own)
        elif item.role in ("system", "developer") and not items:
            texts.append(item.text)
        else:
            items.extend(cast("list[TResponseInputItem]", item.messages("openai_responses")))
    return ModelInputData(items, "\n\n".join(texts) if texts else given.instructions)


def altered(own: Group, sent: Sent[Group]) -> Iterator[TResponseInputItem]:
    """Returns the items, with copies of shortened ones. Reasoning stays, because the provider rejects its
    items without it.
    """
    wire = sent.item.messages("openai_responses")
    ids = iter([one["call_id"] for one in wire if "call_id" in one])
    for item in own:
        plain, update = _plain(item), dict[str, Any]()
        if "calls" in sent.item.changed and "call_id" in plain:
            update["call_id"] = next(ids)
        if "text" in sent.item.changed and _kind(plain) == "result" and isinstance(plain.get("output"), (str, list)):
            update["output"] = wire[0]["output"]
        yield cast(TResponseInputItem, {**plain, **update}) if update else item


def _tools(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Returns the agent's function tools and handoffs as tools of the request."""
    functions = [one for one in agent.tools if isinstance(one, FunctionTool) and one.is_enabled is not False]
    others: list[Handoff[Any, Any]] = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    told = [(one.name, one.description, one.params_json_schema) for one in functions]
    told += [(one.tool_name, one.tool_description, one.input_json_schema) for one in others]
    return [{"type": "function", "name": name, "description": text, "parameters": form} for name, text, form in told]


class StoreSession:
    """A `Session` of the SDK in a `Store`. Several writers may use it, and every item is stored as it was
    added. Reading, adding and removing the newest items does not read the others.

    The log contains items as JSON that only this class reads. Items removed by `pop_item` and `clear_session`
    are archived. `session_settings` may be a dict of its fields. Raises `StoreError` if the database fails.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        store: Store,
        session_id: str,
        *,
        session_settings: SessionSettings | Mapping[str, int | None] | None = None,
    ) -> None:
        self.session_id = session_id
        if session_settings is None or isinstance(session_settings, Mapping):
            session_settings = SessionSettings(**(session_settings or {}))
        self.session_settings = session_settings
        self._store = store

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns all items, or the newest `limit` of them, in chronological order."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        # The SDK's own sessions return all items for a negative limit.
        newest = None if limit is None or limit < 0 else limit
        return await asyncio.to_thread(self._newest, newest)

    def _newest(self, limit: int | None) -> list[TResponseInputItem]:
        texts = self._store.newest_items(self.session_id, limit=limit, kind=_HELD)
        # One call for all items is twice as fast as a call for each.
        return cast("list[TResponseInputItem]", json.loads(f"[{','.join(texts)}]"))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends all items or none."""
        texts = [json.dumps(_plain(item), default=_wire.plain) for item in items]
        if texts:
            await asyncio.to_thread(self._store.push_items, self.session_id, texts, kind=_HELD)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item and returns it. Returns None if there is none."""
        text = await asyncio.to_thread(self._store.pop_item, self.session_id, kind=_HELD)
        return None if text is None else cast(TResponseInputItem, json.loads(text))

    async def clear_session(self) -> None:
        """Removes all items. Later items begin a new list."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        while self._store.newest_items(self.session_id, limit=1, kind=_HELD):
            log, revision = self._store.load(self.session_id)
            log.start_fresh()
            try:
                self._store.save(self.session_id, log, revision)
            except ConflictError:
                pass  # Another writer was first: once more, after what that one wrote.
            else:
                return
