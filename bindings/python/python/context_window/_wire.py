"""Conversion of objects of Python libraries to the dicts that the planner reads. It imports none of these
libraries: attributes identify the objects.
"""

from __future__ import annotations

import json
from typing import Any

ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
    "developer": "developer",
}


def plain(value: Any) -> Any:
    """Converts an object that `json.dumps` cannot serialize, with the object's own dump method. Raises
    `TypeError` if it has none.
    """
    for name in ("model_dump", "to_dict", "dict"):
        dump = getattr(value, name, None)
        if callable(dump):
            return dump(exclude_none=True) if name == "model_dump" else dump()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"an object of type {type(value).__name__} cannot be converted to JSON")


def messages(given: Any) -> Any:
    """Converts a message or a list of messages to dicts in a provider's format."""
    if isinstance(given, (list, tuple)):
        return [message(one) for one in given]
    return message(given)


def message(given: Any) -> Any:
    """Converts a message to a dict: a LangChain message by its attributes, an object of an SDK by its dump.

    For a whole response of OpenAI Chat, returns the message of its first choice.
    """
    if not isinstance(given, (dict, str, bytes)) and callable(getattr(given, "model_dump", None)):
        if not hasattr(given, "additional_kwargs"):
            given = plain(given)
    if isinstance(given, dict):
        if "role" not in given and isinstance(given.get("choices"), list) and given["choices"]:
            given = given["choices"][0]
        return given["message"] if "role" not in given and isinstance(given.get("message"), dict) else given
    if hasattr(given, "type") and hasattr(given, "content") and hasattr(given, "additional_kwargs"):
        return langchain(given)
    return given


def langchain(message: Any) -> dict[str, Any]:
    """Converts a LangChain message, including chunks and subclasses."""
    kind = str(message.type).removesuffix("MessageChunk").lower()
    wire: dict[str, Any] = {"role": ROLES.get(kind, getattr(message, "role", kind))}
    if kind == "system" and message.additional_kwargs.get("__openai_role__") == "developer":
        wire["role"] = "developer"
    content = message.content
    wire["content"] = content if isinstance(content, str) else [block(one) for one in content]
    if message.name and kind != "tool":
        wire["name"] = message.name
    calls = getattr(message, "tool_calls", None) or []
    invalid = getattr(message, "invalid_tool_calls", None) or []
    if calls or invalid:
        wire_calls = [call(one["id"], one["name"], json.dumps(one["args"], ensure_ascii=False)) for one in calls]
        wire_calls += [call(one["id"], one["name"] or "", one["args"] or "") for one in invalid]
        wire["tool_calls"] = wire_calls
        # Anthropic's own blocks repeat the same calls.
        if isinstance(content, list):
            wire["content"] = [one for one in wire["content"] if one.get("type") not in ("tool_use", "tool_call")]
    if kind == "tool":
        wire["tool_call_id"] = message.tool_call_id
    reasoning = message.additional_kwargs.get("reasoning_content")
    if isinstance(reasoning, str):
        wire["reasoning_content"] = reasoning
    return wire


def block(given: Any) -> Any:
    """Converts a block of content to a provider's format. LangChain's own media blocks become those of
    OpenAI.
    """
    if isinstance(given, str):
        return {"type": "text", "text": given}
    if not isinstance(given, dict):
        return given
    kind, data, mime = given.get("type"), given.get("base64") or given.get("data"), given.get("mime_type")
    if kind == "image" and (isinstance(data, str) or isinstance(given.get("url"), str)):
        url = given["url"] if not isinstance(data, str) else f"data:{mime or 'image/png'};base64,{data}"
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "audio" and isinstance(data, str):
        return {"type": "input_audio", "input_audio": {"data": data, "format": str(mime or "audio/wav").split("/")[-1]}}
    if kind == "file" and isinstance(data, str):
        return {"type": "file", "file": {"file_data": f"data:{mime or 'application/pdf'};base64,{data}"}}
    return given


def call(id: str | None, name: str, arguments: str) -> dict[str, Any]:
    """Returns a tool call in the format of OpenAI Chat."""
    wire: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    if id:
        wire["id"] = id
    return wire
