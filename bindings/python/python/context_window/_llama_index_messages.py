"""Conversion between LlamaIndex's messages and those of the planner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from llama_index.core.base.llms import types as li
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from . import _wire
from ._core import ItemMessage
from ._history import SentMessage, item_messages

Messages = Sequence[ChatMessage]

_SYSTEM = (MessageRole.SYSTEM, MessageRole.DEVELOPER)
_ROLES = {MessageRole.CHATBOT: "assistant", MessageRole.MODEL: "assistant"}
_IDS = ("call_id", "id", "tool_id", "toolUseId")


def to_wire(message: ChatMessage, provider: str = "openai_chat") -> list[dict[str, Any]]:
    """Converts a message of LlamaIndex to dicts for the planner. `provider` is the wire format for
    documents.
    """
    kwargs = message.additional_kwargs
    wire: dict[str, Any] = {"role": _ROLES.get(message.role, message.role.value)}
    if message.role in _SYSTEM:
        return [{**wire, "content": message.content or ""}]
    parts = [part for block in message.blocks for part in _parts(block, provider)]
    wire["content"] = parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts or ""
    thoughts = [
        _readable_reasoning(block) for block in message.blocks if _readable_reasoning(block) and not _signature(block)
    ]
    if thoughts:
        wire["reasoning_content"] = "\n\n".join(thoughts)
    if calls := _calls(message):
        wire["tool_calls"] = calls
    if message.role is MessageRole.TOOL and kwargs.get("tool_call_id"):
        wire["tool_call_id"] = kwargs["tool_call_id"]
    return [wire | {key: kwargs[key] for key in ("name", "function_call") if kwargs.get(key)}]


def _parts(block: Any, provider: str) -> list[dict[str, Any]]:
    """Returns the content parts of a block. Tool calls are separate from the content, and cache marks have
    none.
    """
    if isinstance(block, li.TextBlock):
        return [{"type": "text", "text": block.text}]
    if isinstance(block, (li.CitableBlock, li.CitationBlock)):
        return [part for inner in block.nested_blocks for part in _parts(inner, provider)]
    if _readable_reasoning(block) and _signature(block):
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


def _readable_reasoning(block: Any) -> str:
    """Returns reasoning that the planner can read. Returns an empty string for reasoning that is signed in
    another way, which is sent unchanged.
    """
    readable = isinstance(block, li.ThinkingBlock) and (_signature(block) or not block.additional_information)
    return (block.content or "") if readable else ""


def _calls(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = [block for block in message.blocks if isinstance(block, li.ToolCallBlock)]
    # Integrations whose provider has no call ids identify a call by its tool's name.
    calls = [(one.tool_call_id or one.tool_name, one.tool_name, one.tool_kwargs) for one in blocks]
    if not blocks:
        given = message.additional_kwargs.get("tool_calls") or []
        calls = [_parse_call(one if isinstance(one, dict) else _wire.plain(one)) for one in given]
    text = partial(json.dumps, ensure_ascii=False, default=str)
    return [_wire.call(id, name, args if isinstance(args, str) else text(args)) for id, name, args in calls]


def _parse_call(call: dict[str, Any]) -> tuple[str, str, Any]:
    """Parses a call in `additional_kwargs`, from OpenAI, Anthropic or Bedrock, or a `ToolSelection`."""
    function = {**call, **(call.get("function") or {})}
    name = function.get("name") or function.get("tool_name") or ""
    arguments: Any = next((function[key] for key in ("arguments", "input", "tool_kwargs") if function.get(key)), {})
    return next((call[key] for key in _IDS if call.get(key)), name), name, arguments


def apply_changes(own: ChatMessage, item: ItemMessage, provider: str = "openai_chat") -> ChatMessage:
    """Returns a copy with the planner's changes. The history's own message stays unchanged."""
    kwargs, blocks = dict(own.additional_kwargs), list[Any](own.blocks)
    # The planner may not know the format of other media, so only results are shortened.
    if "text" in item.changed and own.role in (MessageRole.TOOL, MessageRole.FUNCTION):
        content = item_messages(item)[0]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        mine = [(part, block) for block in blocks for part in _parts(block, provider)]
        kept = [next((block for part, block in mine if part == one), None) for one in parts]
        blocks = [block or li.TextBlock(text=one.get("text", "")) for block, one in zip(kept, parts)]
    if "reasoning" in item.changed:
        blocks = [block for block in blocks if not _readable_reasoning(block)]
    if "calls" in item.changed and item.tool_call_id is not None:
        kwargs["tool_call_id"] = item.tool_call_id
    elif "calls" in item.changed:
        ids = iter([call["id"] for call in item_messages(item)[0].get("tool_calls", [])])
        for at, block in enumerate(blocks):
            if isinstance(block, li.ToolCallBlock):
                blocks[at] = block.model_copy(update={"tool_call_id": next(ids)})
        if left := list(ids):
            kwargs["tool_calls"] = [_rename_call(call, id) for call, id in zip(kwargs["tool_calls"], left)]
    return own.model_copy(update={"blocks": blocks, "additional_kwargs": kwargs})


def _rename_call(call: Any, id: str) -> Any:
    key = next((key for key in _IDS if (call.get(key) if isinstance(call, dict) else getattr(call, key, None))), "id")
    return {**call, key: id} if isinstance(call, dict) else call.model_copy(update={key: id})


def build_prompt(sent: Iterable[SentMessage[ChatMessage]], given: Messages, provider: str) -> list[ChatMessage]:
    """Returns the prompt as messages of LlamaIndex. System texts from the planner are appended to the
    system message.
    """
    system = given[0] if given and given[0].role in _SYSTEM else None
    texts: list[li.TextBlock] = []
    messages: list[ChatMessage] = []
    for item, own in sent:
        if own is not None:
            messages.append(apply_changes(own, item, provider) if item.changed else own)
        elif item.role == "system" and all(one.role in _SYSTEM for one in messages):
            texts.append(li.TextBlock(text=item.text))
        else:
            kwargs = {"tool_call_id": item.tool_call_id} if item.tool_call_id else {}
            messages.append(ChatMessage(role=MessageRole(item.role), content=item.text, additional_kwargs=kwargs))
    if texts:
        own = system or ChatMessage(role=MessageRole.SYSTEM)
        system = own.model_copy(update={"blocks": [*own.blocks, *texts]})
    return messages if system is None else [system, *messages]


def split_system(given: Messages) -> tuple[str | None, list[ChatMessage]]:
    """Splits messages into the system text at the beginning and the messages after it."""
    has = bool(given) and given[0].role in _SYSTEM
    return given[0].content if has else None, list(given[1:] if has else given)
