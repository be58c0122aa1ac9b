"""LlamaIndex: a language model with a token budget for every step of a tool loop, a memory, and a node
postprocessor.

    llm = ContextWindowLLM(OpenAI("gpt-4o"), "gpt-4o", prompt_budget=8_000)
    memory = ContextWindowMemory.from_defaults(llm=llm)
    await FunctionAgent(llm=llm, tools=tools).run("How long do refunds take?", memory=memory)

The history stays complete: only the messages for the model are planned. An agent sends its memory, followed
by the calls and results of the run. So only the language model sees the whole request. LlamaIndex's own
memories cut the history earlier, by a limit of their own. Supports llama-index-core 0.14.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, cast

from llama_index.core.base.llms import types as li
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    MessageRole,
)
from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SerializeAsAny, field_serializer
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY, BaseChatStoreMemory
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llama_index.core.storage.chat_store.loading import load_chat_store
from llama_index.core.tools import BaseTool
from pydantic import BeforeValidator, PlainSerializer

from . import _wire
from ._core import Conversation, Document, ItemMessage, Manager, Plan
from ._history import SYSTEM, Histories, Sent, Turn, known_usage

__all__ = ["ContextWindowLLM", "ContextWindowMemory", "ContextWindowPostprocessor"]

#: A manager, or a model's name. In JSON it is the name; a pickle contains the whole manager.
Managed = Annotated[
    Manager,
    BeforeValidator(lambda given: Manager(given) if isinstance(given, str) else given),
    PlainSerializer(lambda manager: manager.name),
]

Messages = Sequence[ChatMessage]
Call = Callable[[list[ChatMessage]], Any]

_SYSTEM = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
_ROLES = {MessageRole.CHATBOT: "assistant", MessageRole.MODEL: "assistant"}
_IDS = ("call_id", "id", "tool_id", "toolUseId")


def wired(message: ChatMessage, provider: str = "openai_chat") -> list[dict[str, Any]]:
    """Converts a message of LlamaIndex to dicts for the planner. `provider` is the wire format for
    documents.
    """
    said = message.additional_kwargs
    wire: dict[str, Any] = {"role": _ROLES.get(message.role, message.role.value)}
    if message.role in _SYSTEM:
        return [{**wire, "content": message.content or ""}]
    parts = [part for block in message.blocks for part in _parts(block, provider)]
    wire["content"] = parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts or ""
    thoughts = [_thought(block) for block in message.blocks if _thought(block) and not _signature(block)]
    if thoughts:
        wire["reasoning_content"] = "\n\n".join(thoughts)
    if calls := _calls(message):
        wire["tool_calls"] = calls
    if message.role is MessageRole.TOOL and said.get("tool_call_id"):
        wire["tool_call_id"] = said["tool_call_id"]
    return [wire | {key: said[key] for key in ("name", "function_call") if said.get(key)}]


def _parts(block: Any, provider: str) -> list[dict[str, Any]]:
    """Returns the content parts of a block. Tool calls are separate from the content, and cache marks have
    none.
    """
    if isinstance(block, li.TextBlock):
        return [{"type": "text", "text": block.text}]
    if isinstance(block, (li.CitableBlock, li.CitationBlock)):
        return [part for inner in block.nested_blocks for part in _parts(inner, provider)]
    if _thought(block) and _signature(block):
        return [{"type": "thinking", "thinking": block.content, "signature": _signature(block)}]
    if isinstance(block, li.ImageBlock):
        detail = {"detail": block.detail} if block.detail else {}
        return [{"type": "image_url", "image_url": {"url": _url(block, block.image, block.image_mimetype), **detail}}]
    if isinstance(block, li.AudioBlock):
        data = _url(block, block.audio, None).rpartition(",")[2]
        return [{"type": "input_audio", "input_audio": {"data": data, "format": block.format or "wav"}}]
    if isinstance(block, li.VideoBlock):
        return [{"type": "video_url", "video_url": {"url": _url(block, block.video, block.video_mimetype)}}]
    if isinstance(block, li.DocumentBlock):
        url = _url(block, block.data, block.document_mimetype)
        if provider != "anthropic":
            return [{"type": "file", "file": {"filename": block.title or "document", "file_data": url}}]
        head, _, data = url.partition(";base64,")
        inline = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
        return [{"type": "document", "source": inline if data else {"type": "url", "url": url}}]
    return []


def _url(block: Any, data: Any, mime: str | None) -> str:
    # The content behind a URL is not read.
    if isinstance(data, bytes):
        return f"data:{mime or 'application/octet-stream'};base64,{data.decode()}"
    return str(block.url) if block.url and data is None else str(block.inline_url())


def _signature(block: Any) -> Any:
    return block.additional_information.get("signature")


def _thought(block: Any) -> str:
    """Returns reasoning that the planner can read. Returns an empty string for reasoning that is signed in
    another way, which is sent unchanged.
    """
    readable = isinstance(block, li.ThinkingBlock) and (_signature(block) or not block.additional_information)
    return (block.content or "") if readable else ""


def _calls(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = [block for block in message.blocks if isinstance(block, li.ToolCallBlock)]
    # Integrations whose provider has no call ids identify a call by its tool's name.
    told = [(one.tool_call_id or one.tool_name, one.tool_name, one.tool_kwargs) for one in blocks]
    if not blocks:
        given = message.additional_kwargs.get("tool_calls") or []
        told = [_legacy(one if isinstance(one, dict) else _wire.plain(one)) for one in given]
    text = partial(json.dumps, ensure_ascii=False, default=str)
    return [_wire.call(id, name, args if isinstance(args, str) else text(args)) for id, name, args in told]


def _legacy(call: dict[str, Any]) -> tuple[str, str, Any]:
    """Parses a call in `additional_kwargs`, from OpenAI, Anthropic or Bedrock, or a `ToolSelection`."""
    function = {**call, **(call.get("function") or {})}
    name = function.get("name") or function.get("tool_name") or ""
    arguments: Any = next((function[key] for key in ("arguments", "input", "tool_kwargs") if function.get(key)), {})
    return next((call[key] for key in _IDS if call.get(key)), name), name, arguments


def altered(own: ChatMessage, item: ItemMessage, provider: str = "openai_chat") -> ChatMessage:
    """Returns a copy with the planner's changes. The history's own message stays unchanged."""
    said, blocks = dict(own.additional_kwargs), list[Any](own.blocks)
    # The planner may not know the format of other media, so only results are shortened.
    if "text" in item.changed and own.role in (MessageRole.TOOL, MessageRole.FUNCTION):
        content = item.messages("openai")[0]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        mine = [(part, block) for block in blocks for part in _parts(block, provider)]
        kept = [next((block for part, block in mine if part == one), None) for one in parts]
        blocks = [block or li.TextBlock(text=one.get("text", "")) for block, one in zip(kept, parts)]
    if "reasoning" in item.changed:
        blocks = [block for block in blocks if not _thought(block)]
    if "calls" in item.changed and item.tool_call_id is not None:
        said["tool_call_id"] = item.tool_call_id
    elif "calls" in item.changed:
        ids = iter([call["id"] for call in item.messages("openai")[0].get("tool_calls", [])])
        for at, block in enumerate(blocks):
            if isinstance(block, li.ToolCallBlock):
                blocks[at] = block.model_copy(update={"tool_call_id": next(ids)})
        if left := list(ids):
            said["tool_calls"] = [_renamed(call, id) for call, id in zip(said["tool_calls"], left)]
    return own.model_copy(update={"blocks": blocks, "additional_kwargs": said})


def _renamed(call: Any, id: str) -> Any:
    key = next((key for key in _IDS if (call.get(key) if isinstance(call, dict) else getattr(call, key, None))), "id")
    return {**call, key: id} if isinstance(call, dict) else call.model_copy(update={key: id})


def framed(sent: Iterable[Sent[ChatMessage]], given: Messages, provider: str) -> list[ChatMessage]:
    """Returns the prompt as messages of LlamaIndex. System texts from the planner are appended to the
    system message.
    """
    system = given[0] if given and given[0].role in _SYSTEM else None
    texts: list[li.TextBlock] = []
    messages: list[ChatMessage] = []
    for item, own in sent:
        if item.kind == "note" and item.ids == [SYSTEM]:
            continue
        if own is not None:
            messages.append(altered(own, item, provider) if item.changed else own)
        elif item.role == "system" and all(one.role in _SYSTEM for one in messages):
            texts.append(li.TextBlock(text=item.text))
        else:
            said = {"tool_call_id": item.tool_call_id} if item.tool_call_id else {}
            messages.append(ChatMessage(role=MessageRole(item.role), content=item.text, additional_kwargs=said))
    if texts:
        told = system or ChatMessage(role=MessageRole.SYSTEM)
        system = told.model_copy(update={"blocks": [*told.blocks, *texts]})
    return messages if system is None else [system, *messages]


def headed(given: Messages) -> tuple[str | None, list[ChatMessage]]:
    """Splits messages into the system text at the beginning and the messages after it."""
    has = bool(given) and given[0].role in _SYSTEM
    return given[0].content if has else None, list(given[1:] if has else given)


def usage(response: ChatResponse) -> dict[str, Any] | None:
    """Returns the billed tokens of a reply, or None if the integration does not report them."""
    told = response.raw.get("usage") if isinstance(response.raw, dict) else getattr(response.raw, "usage", None)
    told = told.model_dump(exclude_none=True) if isinstance(told, BaseModel) else told
    report = known_usage(told) or known_usage(response.additional_kwargs)
    return {key: value for key, value in report.items() if isinstance(value, (int, dict))} if report else None


class _Planner(Histories[ChatMessage]):
    """The planned conversations. A pickle contains none of them: they are read again."""

    def __init__(self, manager: Manager, most: int) -> None:
        super().__init__(manager, partial(wired, provider=manager.wire_format), most=most)

    def __reduce__(self) -> Any:
        return type(self), (self.manager, self._most)


class _Turn(Turn[ChatMessage]):
    """A request of LlamaIndex in progress. A pickle contains None instead."""

    def __init__(
        self, planner: _Planner, given: Messages, extra: dict[str, Any], retries: int = 0, key: Any = None
    ) -> None:
        self._given = given
        system, said = headed(given)
        super().__init__(planner.of(said, key), said, system, extra, retries)

    @property
    def messages(self) -> list[ChatMessage]:
        """The messages to send."""
        return framed(self.sent, self._given, self.history.manager.wire_format)

    def answered(self, response: ChatResponse) -> ChatResponse:
        """Stores the reply and returns the response."""
        # A copy is stored, because chat engines write the whole text into the last message of a stream.
        self.commit(response.message.model_copy(deep=True), usage(response))
        return response

    def __reduce__(self) -> Any:
        return type(None), ()


def _fields(of: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    """Splits arguments into the fields of a class and the arguments of a request, which become the field
    `request`.
    """
    own = {key: given.pop(key) for key in list(given) if key in of.model_fields}
    return {**own, "request": {**own.get("request", {}), **given}}


class ContextWindowLLM(FunctionCallingLLM):
    """A language model whose chat requests fit a token budget. Tool calls keep their results, and the
    question stays.

    `llm` is the inner model, and `manager` is a `Manager` or a model's name. The other arguments are those of
    `Manager.plan` (`prompt_budget` in tokens, `max_completion_tokens`, `focus`, ...). Tools are counted. If
    the provider rejects a request as too long, a smaller one is planned and sent, at most `retries` times. A
    stream that has begun is not repeated. Everything except chat (`complete`, attributes) is passed to the
    inner model.

    One instance serves several conversations and keeps the `most` last used ones. `plan` is the plan of the
    newest request. Raises `BudgetError` if the budget is 0. If the required items do not fit, they are sent
    anyway and `plan.overflow` is set.
    """

    llm: SerializeAsAny[LLM]
    manager: Managed
    retries: int = 2
    most: int = 64
    request: dict[str, Any] = Field(default_factory=dict)
    _planner: _Planner = PrivateAttr()
    _tools: tuple[list[Any], list[dict[str, Any]]] = PrivateAttr(default=([], []))
    _last: _Turn | None = PrivateAttr(default=None)

    def __init__(self, llm: LLM, manager: Manager | str, **given: Any) -> None:
        # Prompts and programs read these fields of a model, so they equal those of the inner model.
        alike = {key: getattr(llm, key) for key in LLM.model_fields}
        super().__init__(**{**alike, **_fields(type(self), given), "llm": llm, "manager": manager})
        self._planner = _Planner(self.manager, self.most)

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_" or "llm" not in self.__dict__:
            return super().__getattr__(name)  # type: ignore[misc]
        return getattr(self.llm, name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("callback_manager", "rate_limiter"):
            setattr(self.llm, name, value)

    @classmethod
    def class_name(cls) -> str:
        return "ContextWindowLLM"

    @property
    def plan(self) -> Plan | None:
        return self._last.plan if self._last is not None else None

    @property
    def metadata(self) -> li.LLMMetadata:
        return self.llm.metadata

    def chat(self, messages: Messages, **kwargs: Any) -> ChatResponse:
        return self._sent(messages, kwargs.get("tools"), lambda planned: self.llm.chat(planned, **kwargs))

    async def achat(self, messages: Messages, **kwargs: Any) -> ChatResponse:
        return await self._asent(messages, kwargs.get("tools"), lambda planned: self.llm.achat(planned, **kwargs))

    def stream_chat(self, messages: Messages, **kwargs: Any) -> ChatResponseGen:
        return self._streamed(messages, kwargs.get("tools"), lambda planned: self.llm.stream_chat(planned, **kwargs))

    async def astream_chat(self, messages: Messages, **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astreamed(messages, kwargs.get("tools"), lambda planned: self.llm.astream_chat(planned, **kwargs))

    def chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponse:
        return self._sent(*_asked(self._calling.chat_with_tools, tools, *args, **kwargs))

    async def achat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponse:
        return await self._asent(*_asked(self._calling.achat_with_tools, tools, *args, **kwargs))

    def stream_chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponseGen:
        return self._streamed(*_asked(self._calling.stream_chat_with_tools, tools, *args, **kwargs))

    async def astream_chat_with_tools(self, tools: Sequence[Any], *args: Any, **kwargs: Any) -> ChatResponseAsyncGen:
        return self._astreamed(*_asked(self._calling.astream_chat_with_tools, tools, *args, **kwargs))

    def complete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponse:
        return self.llm.complete(prompt, *args, **kwargs)

    async def acomplete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponse:
        return await self.llm.acomplete(prompt, *args, **kwargs)

    def stream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponseGen:
        return self.llm.stream_complete(prompt, *args, **kwargs)

    async def astream_complete(self, prompt: str, *args: Any, **kwargs: Any) -> li.CompletionResponseAsyncGen:
        return await self.llm.astream_complete(prompt, *args, **kwargs)

    def get_tool_calls_from_response(self, *args: Any, **kwargs: Any) -> list[ToolSelection]:
        return self._calling.get_tool_calls_from_response(*args, **kwargs)

    def _prepare_chat_with_tools(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self._calling._prepare_chat_with_tools(*args, **kwargs)

    @property
    def _calling(self) -> FunctionCallingLLM:
        if not hasattr(self.llm, "chat_with_tools"):
            raise TypeError(f"{type(self.llm).__name__} calls no tools; expected a FunctionCallingLLM")
        return cast(FunctionCallingLLM, self.llm)

    def _turn(self, given: Messages, tools: Any) -> _Turn:
        extra = dict(self.request)
        if isinstance(tools, (list, tuple)) and tools:
            known, wire = self._tools
            if len(known) != len(tools) or any(one is not other for one, other in zip(known, tools)):
                counted = (one for one in tools if isinstance(one, (BaseTool, dict)))
                wire = [one if isinstance(one, dict) else one.metadata.to_openai_tool(True) for one in counted]
                self._tools = (list(tools), wire)
            extra["tools"] = wire
        self._last = _Turn(self._planner, given, extra, self.retries)
        return self._last

    def _sent(self, given: Messages, tools: Any, call: Call) -> ChatResponse:
        turn = self._turn(given, tools)
        while True:
            try:
                response = call(turn.messages)
            except Exception as error:
                turn.shrink(error)
            else:
                return turn.answered(response)

    async def _asent(self, given: Messages, tools: Any, call: Call) -> ChatResponse:
        turn = await asyncio.to_thread(self._turn, given, tools)
        while True:
            try:
                response = await call(turn.messages)
            except Exception as error:
                await asyncio.to_thread(turn.shrink, error)
            else:
                return await asyncio.to_thread(turn.answered, response)

    def _streamed(self, given: Messages, tools: Any, call: Call) -> ChatResponseGen:
        turn, last = self._turn(given, tools), None
        while last is None:
            try:
                for last in call(turn.messages):
                    yield last
                break
            except Exception as error:
                if last is not None:
                    raise
                turn.shrink(error)
        if last is not None:
            turn.answered(last)

    async def _astreamed(self, given: Messages, tools: Any, call: Call) -> ChatResponseAsyncGen:
        turn, last = await asyncio.to_thread(self._turn, given, tools), None
        while last is None:
            try:
                async for last in await call(turn.messages):
                    yield last
                break
            except Exception as error:
                if last is not None:
                    raise
                await asyncio.to_thread(turn.shrink, error)
        if last is not None:
            await asyncio.to_thread(turn.answered, last)


def _asked(
    call: Any, tools: Sequence[Any], user_msg: Any = None, chat_history: Any = None, *args: Any, **kwargs: Any
) -> tuple[list[ChatMessage], Sequence[Any], Call]:
    """Returns the arguments for a request with tools: all messages, the tools, and a function that calls
    the model with other messages.
    """
    last = ChatMessage(content=user_msg) if isinstance(user_msg, str) and user_msg else user_msg
    given = [*(chat_history or []), *([last] if last else [])]
    return given, tools, lambda planned: call(tools, None, planned, *args, **kwargs)


class ContextWindowMemory(BaseChatStoreMemory):
    """A memory that returns the messages within a budget, and keeps the whole history in its chat store.

    The arguments after `manager` are those of `Manager.plan` (`prompt_budget` in tokens, ...). The budget
    applies to the memory only: it does not include messages that an agent adds in its tool loop. With a
    `ContextWindowLLM` as `llm`, the memory returns everything (`planned=False`), because that model plans the
    whole request. Chat engines with retrieval measure the prompt against `metadata.context_window` before the
    model sees it. Use `planned=True` and a budget for them.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    manager: Managed
    planned: bool = True
    request: dict[str, Any] = Field(default_factory=dict)
    _planner: _Planner = PrivateAttr()
    _last: _Turn | None = PrivateAttr(default=None)

    def __init__(self, manager: Manager | str, **given: Any) -> None:
        if isinstance(given.get("chat_store"), dict):
            given["chat_store"] = load_chat_store(given["chat_store"])
        super().__init__(**{**_fields(type(self), given), "manager": manager})
        self._planner = _Planner(self.manager, 1)

    @classmethod
    def class_name(cls) -> str:
        return "ContextWindowMemory"

    @classmethod
    def from_defaults(
        cls,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        chat_store: BaseChatStore | None = None,
        chat_store_key: str = DEFAULT_CHAT_STORE_KEY,
        manager: Manager | str | None = None,
        **request: Any,
    ) -> ContextWindowMemory:
        """Creates a memory for `llm`, or for the model that `manager` names. Raises `TypeError` if neither
        is given.
        """
        if manager is None and llm is None:
            raise TypeError("from_defaults: expected manager or llm")
        if isinstance(llm, ContextWindowLLM):
            request = {"planned": False, **request}
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
        """The plan of the newest `get`."""
        return self._last.plan if self._last is not None else None

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
        return self._to_send(self.get_all(), initial_token_count)

    async def aget(self, input: str | None = None, initial_token_count: int = 0, **kwargs: Any) -> list[ChatMessage]:
        return await asyncio.to_thread(self._to_send, await self.aget_all(), initial_token_count)

    def _to_send(self, messages: list[ChatMessage], taken: int) -> list[ChatMessage]:
        if not self.planned or not messages:
            return list(messages)
        extra = dict(self.request)
        if taken:
            frame = [self.manager.count_messages(one) for one in ([{"role": "system", "content": "x"}], [])]
            budget = self.manager.plan(Conversation(), **extra).prompt_budget
            extra["prompt_budget"] = max(1, budget - taken - frame[0] + frame[1])
        # A copy is planned, because an agent with a state writes that state into the newest message in place.
        newest, read = messages[-1], messages[-1].model_copy(deep=True)
        self._last = _Turn(self._planner, [*messages[:-1], read], extra, key="memory")
        return [newest if one is read else one for one in self._last.messages]


class ContextWindowPostprocessor(BaseNodePostprocessor):
    """Whole nodes within `budget` tokens, the highest scores first. Duplicate texts are included once.

    A node without a score gets one from its position in the list.
    """

    manager: Managed
    budget: int

    def __init__(self, manager: Manager | str, budget: int, **given: Any) -> None:
        super().__init__(**{**given, "manager": manager, "budget": budget})

    @classmethod
    def class_name(cls) -> str:
        return "ContextWindowPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        scores = [node.score if node.score is not None else 1 / (1 + at) for at, node in enumerate(nodes)]
        texts = [node.get_content(MetadataMode.LLM) for node in nodes]
        documents = [Document(f"{at}", score, text) for at, (score, text) in enumerate(zip(scores, texts))]
        log = Conversation([{"role": "user", "content": query_bundle.query_str if query_bundle else "?"}])
        plan = self.manager.plan(
            log, documents=documents, prompt_budget=self.manager.plan(log).estimated_tokens_total + self.budget
        )
        return [nodes[int(item.id)] for item in plan.included if item.kind == "document"]
