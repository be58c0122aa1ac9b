"""OpenAI Agents SDK: a token budget for every request of a run, and sessions in a store.

    planned = ContextWindowFilter("gpt-6-sol", max_completion_tokens=4_000)
    session = StoreSession(Store("sqlite:sessions.db"), "customer-17")
    await Runner.run(agent, "Hello", session=session, run_config=RunConfig(call_model_input_filter=planned))

The session stays complete: only the messages for the model are planned. Supports openai-agents 0.24.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents import Agent, FunctionTool, TResponseInputItem, handoff
from agents.agent_output import AgentOutputSchema, AgentOutputSchemaBase
from agents.handoffs import Handoff
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData

from . import _wire
from ._calls import call_async
from ._core import ConflictError, Conversation, Manager, Store
from ._history import Histories, SentMessage, item_messages
from ._policy import OnOverflow, Planned, Policy, RequestOptions, check_options, manager_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ContextWindowFilter", "StoreSession"]

#: The items of one message in the planner's log, and a function that returns the `documents` of a request.
Group: TypeAlias = tuple[TResponseInputItem, ...]
Documents: TypeAlias = Callable[[CallModelData[Any]], Iterable[Any] | Awaitable[Iterable[Any]]]

#: Item types that the planner knows as calls and results; the kinds of types without a `call_id`; and the
#: kinds that continue a message of each kind.
_FUNCTIONS = ("function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
_KINDS = {"reasoning": "reasoning", "mcp_approval_request": "call", "mcp_approval_response": "result"}
_CONTINUATIONS = {"reasoning": ("reasoning", "text", "call", "other"), "text": ("call",), "call": ("call",)}

#: The type of the log parts that contain a session's items.
_ITEM_KIND = "openai_agents_item"


def _plain(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else cast("dict[str, Any]", item.model_dump(exclude_unset=True))


def _kind(item: dict[str, Any]) -> str:
    kind = item.get("type") or "message"
    if kind == "message":
        return "text" if item.get("role") == "assistant" else "message"
    if item.get("call_id"):
        return "result" if kind.endswith("_output") else "call"
    return _KINDS.get(kind, "other")


def _call_id(item: dict[str, Any]) -> Any:
    return item.get("call_id") or item.get("approval_request_id") or item.get("id")


def group_items(items: Iterable[TResponseInputItem]) -> list[Group]:
    """Groups items of Responses into messages of the planner: reasoning, text and calls of one reply
    belong together.
    """
    groups: list[Group] = []
    last, has_reasoning = "", False
    for item in items:
        kind = _kind(_plain(item))
        # Reasoning stays with the items that follow from it, because a provider rejects one without the
        # other.
        is_continued = kind in _CONTINUATIONS.get(last, ()) or (has_reasoning and kind in ("text", "call", "other"))
        groups.append((*groups.pop(), item) if is_continued else (item,))
        has_reasoning = kind == "reasoning" or (has_reasoning and is_continued)
        last = kind
    return groups


def _to_function_item(item: dict[str, Any]) -> dict[str, Any]:
    """Converts an item for the planner. Calls and results of built-in tools become those of functions."""
    kind, id = _kind(item), _call_id(item)
    if kind not in ("call", "result") or item["type"] in _FUNCTIONS:
        return item
    content = item.get("output", {key: value for key, value in item.items() if key not in ("type", "id", "call_id")})
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=_wire.plain)
    if kind == "call":
        return {"type": "function_call", "call_id": id, "name": item["type"], "arguments": text}
    is_image = isinstance(content, dict) and "image_url" in content
    return {"type": "function_call_output", "call_id": id, "output": [content] if is_image else text}


def _to_wire(group: Group) -> list[dict[str, Any]]:
    return [_to_function_item(_plain(item)) for item in group]


def is_same_group(one: Group, other: Group) -> bool:
    """Compares two groups of items by content. The ids and states of items do not count, because a client that
    keeps its own history may not have them.
    """
    return one == other or [_content(item) for item in one] == [_content(item) for item in other]


def _content(item: TResponseInputItem) -> dict[str, Any]:
    plain = _plain(item)
    if _kind(plain) not in ("message", "text", "reasoning") and not plain.get("call_id"):
        return plain
    compared = {key: value for key, value in plain.items() if key not in ("id", "status", "type") and value is not None}
    content = compared.get("content")
    if isinstance(content, list) and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in content):
        compared["content"] = "".join(one["text"] for one in content)
    return compared


class _ServerCall(dict[str, Any]):
    """A call in a conversation that the server keeps. It is planned with its result, and never sent."""


def add_server_calls(groups: list[Group]) -> list[Group]:
    """Adds a call before results at the beginning whose calls the server keeps. The call is never sent.

    The planner excludes a result without a call. If the list has no item of the model, the calls are in a
    conversation on the server, so their results are required.
    """
    plain = [_plain(item) for group in groups for item in group]
    if any(_kind(item) in ("text", "call", "reasoning") for item in plain):
        return groups
    results = [_call_id(item) for item in takewhile(lambda item: _kind(item) == "result", plain)]
    calls = [_ServerCall(type="function_call", call_id=id, name="on_server", arguments="{}") for id in results]
    return [cast(Group, tuple(calls)), *groups] if calls else groups


class ContextWindowFilter(Planned):
    """A `call_model_input_filter`. The prompt fits its budget, tool calls keep their results, and the
    question stays.

    The same objects are sent, with the planner's additions. A shortened tool result is a copy of its item.
    Conversations are distinguished by the result of `key` for a request. Without `key`, they are
    distinguished by their items, which must not be changed in place.

    `documents` returns the retrieved documents for a request, sync or async. The other arguments are those of
    `Manager.plan` (`prompt_budget`, `max_completion_tokens`, `focus`, ...). The agent's function tools,
    handoffs and output schema are counted. Pass `tools` if it has others (hosted ones, MCP). If the server
    keeps the conversation (`conversation_id`, `previous_response_id`), only the new items of a request are
    planned, and results come without documents. Raises the errors of `Manager.plan`.

    If the required items exceed the budget, `on_overflow` raises (`"raise"`), warns (`"warn"`) or sends them
    without a warning (`"send"`).

    One instance serves several conversations from several threads. It keeps the `most` last used ones. `plan`
    is the plan of the newest request.
    """

    def __init__(
        self,
        manager: Manager | str,
        *,
        documents: Documents | None = None,
        key: Callable[[CallModelData[Any]], Hashable] | None = None,
        on_overflow: OnOverflow = "warn",
        most: int = 64,
        **request: Unpack[RequestOptions],
    ) -> None:
        check_options(ContextWindowFilter, request)
        self.manager = manager_of(manager)
        self._key = key
        self._policy = Policy(on_overflow)
        self._documents = documents
        self._request = request
        self._histories: Histories[Group] = Histories(self.manager, _to_wire, "openai_responses", most, is_same_group)

    def conversation(self, key: Hashable) -> Conversation:
        """Returns the planner's log of a conversation, by the result of `key`. Use it to pin notes. Call it
        again for each pin, because a log may be replaced.
        """
        return self._histories.get_named(key).log

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Plans in a separate thread."""
        documents = await call_async(self._documents, data) if self._documents is not None else None
        return await asyncio.to_thread(self._plan_input, data, documents)

    def _plan_input(self, data: CallModelData[Any], documents: Iterable[Any] | None) -> ModelInputData:
        given = data.model_data
        groups = add_server_calls(own := group_items(given.input))
        # A server that keeps the conversation has the documents of its question.
        is_kept = len(groups) > len(own)
        wanted = None if is_kept else documents
        extra: dict[str, Any] = {"tools": _tools(data.agent), "documents": wanted, **self._request}
        history = self._histories.get_or_create(groups, self._key(data) if self._key is not None else None)
        with history.lock:
            # The SDK has no hook for replies, so the last plan shows where the next prompt begins.
            plan = history.plan(groups, given.instructions, after_last=True, **extra)
            self._policy.accept(plan)
            return build_prompt(history.sent(plan), given)


def build_prompt(sent: Iterable[SentMessage[Group]], given: ModelInputData) -> ModelInputData:
    """Returns the prompt for the SDK. System texts at its beginning become part of the instructions."""
    texts = [given.instructions] if given.instructions else []
    items: list[TResponseInputItem] = []
    for one in sent:
        item = one.item
        if one.own is not None and isinstance(one.own[0], _ServerCall):
            continue
        if one.own is not None:
            items.extend(apply_changes(one.own, one) if item.changed else one.own)
        elif item.role in ("system", "developer") and not items:
            texts.append(item.text)
        else:
            items.extend(cast("list[TResponseInputItem]", item_messages(item, "openai_responses")))
    return ModelInputData(items, "\n\n".join(texts) if texts else given.instructions)


def apply_changes(own: Group, sent: SentMessage[Group]) -> Iterator[TResponseInputItem]:
    """Returns the items, with copies of shortened ones. Reasoning stays, because the provider rejects its
    items without it.
    """
    wire = item_messages(sent.item, "openai_responses")
    ids = iter([one["call_id"] for one in wire if "call_id" in one])
    for item in own:
        plain, update = _plain(item), dict[str, Any]()
        if "calls" in sent.item.changed and _kind(plain) in ("call", "result"):
            # Calls without a `call_id`, such as requests for an approval, have one in the log, too.
            id = next(ids)
            if "call_id" in plain:
                update["call_id"] = id
        if "text" in sent.item.changed and _kind(plain) == "result" and isinstance(plain.get("output"), (str, list)):
            update["output"] = wire[0]["output"]
        yield cast(TResponseInputItem, {**plain, **update}) if update else item


def _tools(agent: Agent[Any]) -> list[dict[str, Any]]:
    """Returns the agent's function tools, handoffs and output schema as tools of the request."""
    functions = [one for one in agent.tools if isinstance(one, FunctionTool) and one.is_enabled is not False]
    others: list[Handoff[Any, Any]] = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    tools = [(one.name, one.description, one.params_json_schema) for one in functions]
    tools += [(one.tool_name, one.tool_description, one.input_json_schema) for one in others]
    if agent.output_type is not None:
        output = agent.output_type
        schema = output if isinstance(output, AgentOutputSchemaBase) else AgentOutputSchema(output, False)
        if not schema.is_plain_text():
            tools.append((schema.name(), "", schema.json_schema()))
    return [{"type": "function", "name": name, "description": text, "parameters": form} for name, text, form in tools]


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
        # A call for many items is twice as fast as a call for each.
        arrays = self._store._newest_arrays(self.session_id, limit=limit, kind=_ITEM_KIND)
        return [item for array in arrays for item in json.loads(array)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends all items or none."""
        texts = [json.dumps(_plain(item), default=_wire.plain) for item in items]
        if texts:
            await asyncio.to_thread(self._store.push_items, self.session_id, texts, kind=_ITEM_KIND)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item and returns it. Returns None if there is none."""
        text = await asyncio.to_thread(self._store.pop_item, self.session_id, kind=_ITEM_KIND)
        return None if text is None else cast(TResponseInputItem, json.loads(text))

    async def clear_session(self) -> None:
        """Removes all items. Later items begin a new list."""
        await asyncio.to_thread(self._clear)

    def _clear(self) -> None:
        while self._store.newest_items(self.session_id, limit=1, kind=_ITEM_KIND):
            log, revision = self._store.load(self.session_id)
            log.start_fresh()
            try:
                self._store.save(self.session_id, log, revision)
            except ConflictError:
                pass  # Another writer was first: once more, after what that one wrote.
            else:
                return
