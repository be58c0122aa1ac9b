"""Conversion between LangChain's messages and documents and those of the planner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, convert_to_messages

from . import _wire
from ._core import Document as Retrieved
from ._history import SentMessage, item_messages


def to_wire(message: BaseMessage) -> list[dict[str, Any]]:
    return [_wire.langchain(message)]


def build_prompt(
    sent: Iterable[SentMessage[BaseMessage]], system: SystemMessage | None
) -> tuple[SystemMessage | None, list[BaseMessage]]:
    """Returns the prompt for LangChain: one system message from the system texts at the beginning, and the
    other messages.
    """
    texts: list[str] = []
    messages: list[BaseMessage] = []
    for one in sent:
        if one.own is not None:
            messages.append(apply_changes(one.own, one))
        elif one.item.role == "system" and not messages:
            texts.append(one.item.text)
        else:
            messages.extend(convert_to_messages(item_messages(one.item)))
    if texts and system is None:
        system = SystemMessage("\n\n".join(texts))
    elif texts and system is not None:
        # Blocks may have cache marks and media, so they stay as they are.
        content = system.content
        blocks = [{"type": "text", "text": text} for text in texts]
        added = "\n\n".join([content, *texts]) if isinstance(content, str) else [*content, *blocks]
        system = system.model_copy(update={"content": added})
    return system, messages


def apply_changes(own: BaseMessage, sent: SentMessage[BaseMessage], *, reasoning: bool = False) -> BaseMessage:
    """Returns a copy with the planner's changes, or the message itself if nothing changes. With `reasoning`,
    its reasoning stays.
    """
    item, update = sent.item, dict[str, Any]()
    # The integration decides about content in parts, except for a shortened tool result.
    if "text" in item.changed and (isinstance(own.content, str) or own.type == "tool"):
        update["content"] = item.text
    dropped = "reasoning" in item.changed and not reasoning
    if dropped and isinstance(own.content, list):
        thoughts = ("thinking", "redacted_thinking", "reasoning")
        update["content"] = [one for one in own.content if not (isinstance(one, dict) and one.get("type") in thoughts)]
    if dropped:
        update["additional_kwargs"] = {k: v for k, v in own.additional_kwargs.items() if k != "reasoning_content"}
    if "calls" in item.changed and isinstance(own, AIMessage):
        ids = [call["id"] for call in item_messages(item)[0].get("tool_calls", [])]
        update["tool_calls"] = [{**call, "id": id} for call, id in zip(own.tool_calls, ids)]
    elif "calls" in item.changed:
        update["tool_call_id"] = item.tool_call_id
    return own.model_copy(update=update) if update else own


def is_same_message(one: BaseMessage, other: BaseMessage) -> bool:
    """Compares two messages by content. Their ids do not count, because LangGraph makes up new ones for
    messages that a client passes as dicts.
    """
    return (
        one.type == other.type
        and one.name == other.name
        and (one.content == other.content or _join_text(one.content) == _join_text(other.content))
        and getattr(one, "tool_call_id", None) == getattr(other, "tool_call_id", None)
        and _list_calls(one) == _list_calls(other)
        and all(one.additional_kwargs.get(key) == other.additional_kwargs.get(key) for key in _COMPARED_KWARGS)
    )


#: The entries of `additional_kwargs` that the planner reads.
_COMPARED_KWARGS = ("reasoning_content", "__openai_role__")


def _join_text(content: Any) -> Any:
    """Returns content of only text blocks as a string, and other content unchanged."""
    if isinstance(content, str) or not all(isinstance(one, str) or one.get("type") == "text" for one in content):
        return content
    return "".join(one if isinstance(one, str) else one["text"] for one in content)


def _list_calls(message: BaseMessage) -> list[tuple[Any, ...]]:
    calls = getattr(message, "tool_calls", None) or []
    invalid = getattr(message, "invalid_tool_calls", None) or []
    return [(one["id"], one["name"], one["args"]) for one in (*calls, *invalid)]


def to_document(document: Any, at: int) -> Any:
    """Converts a LangChain document to one of the planner's. Without a score, its position determines one."""
    if not isinstance(document, Document):
        return document
    meta = document.metadata
    score = meta.get("relevance_score", meta.get("score"))
    id = document.id or meta.get("id") or f"document-{at}"
    source = meta.get("source")
    return Retrieved(
        str(id),
        float(score) if score is not None else 1.0 / (1 + at),
        document.page_content,
        str(source) if source is not None else None,
    )
