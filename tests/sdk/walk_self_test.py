"""Checks that the test of the SDKs' types detects every kind of damage.

A simulated planner replaces `plan-inspect` and returns its input body, damaged in one way.
Without damage, every sample of every union is identical.
"""

import re
from functools import partial

from spelling import read, written
from unions import all_unions
from walk import Walk, refused_by_types

SAID = "[A part of type x is left out here.]"


class Damaging:
    """A planner that returns its input body, damaged."""

    def __init__(self, damage, notices=()):
        self.damage, self.notices = damage, list(notices)

    def plan(self, body, wire_format, model=None):
        return self.damage(read(written(body))), self.notices


def rewritten(pattern, replacement, body):
    """Returns the body with its text changed at the first match, or None without one."""
    text, count = re.subn(pattern, replacement, written(body), count=1)
    return read(text) if count else None


def without(key, value, body):
    """Returns the body without the items or blocks that have the value under the key."""

    def kept(item):
        return not (isinstance(item, dict) and item.get(key) == value)

    def pruned(node):
        if isinstance(node, list):
            return [pruned(item) for item in node if kept(item)]
        if isinstance(node, dict):
            return {name: pruned(item) for name, item in node.items()}
        return node

    return pruned(body)


def swapped(key, value, body):
    """Returns the body with an item exchanged with the one before it."""
    for items in (body["input"],) if "input" in body else (m["content"] for m in body["messages"]):
        for at, item in enumerate(items):
            if at and isinstance(item, dict) and item.get(key) == value:
                items[at - 1 : at + 1] = [item, items[at - 1]]
                return body
    return None


def reordered(node):
    """Returns the value with the keys of every object in reverse order."""
    if isinstance(node, dict):
        return {key: reordered(item) for key, item in reversed(node.items())}
    return [reordered(item) for item in node] if isinstance(node, list) else node


def says(item, body):
    body[next(key for key in ("input", "messages", "contents") if key in body)].insert(2, item)
    return body


def chat_of(result, said, body):
    """Returns a body of Chat with a result and an assistant text."""
    return {
        "messages": [
            {"role": "user", "content": "Question 0?"},
            {"role": "assistant", "content": said},
            {"role": "tool", "content": result},
        ]
    }


# (name, union, type, label, damage of the output body)
RED = [
    ("keys in another order", "Responses items", "ShellCall", "all", reordered),
    (
        "a number spelt otherwise",
        "blocks",
        "ToolUseBlockParam",
        "",
        partial(rewritten, "1e2", "100.0"),
    ),
    (
        "a large number rounded",
        "Gemini parts",
        "functionCall",
        "args",
        partial(rewritten, r"12345678901234567890123", "1.2e22"),
    ),
    (
        "a field is gone",
        "Responses items",
        "ResponseFunctionToolCallParam",
        "namespace",
        partial(rewritten, r',"namespace":"[^"]*"', ""),
    ),
    (
        "null is gone",
        "Responses items",
        "ShellCall",
        "status=null",
        partial(rewritten, ',"status":null', ""),
    ),
    (
        "an item is gone",
        "Responses items",
        "ShellCall",
        "all",
        partial(without, "type", "shell_call"),
    ),
    (
        "its reasoning is gone",
        "Responses items",
        "ResponseFunctionWebSearchParam",
        "",
        partial(without, "type", "reasoning"),
    ),
    (
        "its result is gone",
        "Responses items",
        "ApplyPatchCall",
        "",
        partial(without, "type", "apply_patch_call_output"),
    ),
    (
        "an item changed its place",
        "Responses items",
        "McpCall",
        "",
        partial(swapped, "type", "mcp_call"),
    ),
    (
        "thinking moved to the front",
        "blocks",
        "ThinkingBlockParam",
        "",
        partial(swapped, "type", "text"),
    ),
    (
        "another type",
        "Responses items",
        "ResponseCustomToolCallParam",
        "",
        partial(rewritten, "custom_tool_call", "function_call"),
    ),
    (
        "words in its mouth",
        "Responses items",
        "ProgramOutput",
        "",
        partial(says, {"role": "assistant", "content": SAID}),
    ),
    (
        "words of the model",
        "Gemini parts",
        "toolCall",
        "",
        partial(says, {"role": "model", "parts": [{"text": SAID}]}),
    ),
    (
        "a key of a message",
        "beta messages",
        "BetaSystemMessageParam",
        "clear_at='never'",
        partial(rewritten, ',"clear_at":"never"', ""),
    ),
    (
        "another role",
        "beta blocks",
        "BetaRequestToolAdditionBlockParam",
        "",
        partial(rewritten, '"system"', '"user"'),
    ),
    (
        "a field of a tool",
        "Responses tools",
        "FunctionToolParam",
        "defer_loading=true",
        partial(rewritten, ',"defer_loading":true', ""),
    ),
    ("a tool is gone", "Gemini tools", "googleSearch", "", lambda body: {**body, "tools": []}),
    (
        "a marker is gone",
        "Chat messages",
        "ChatCompletionToolMessageParam",
        "",
        partial(rewritten, r"Answer \d\d+\.", ""),
    ),
]
GREEN = [
    (
        "a cache mark is moved",
        "blocks",
        "TextBlockParam",
        "cache_control=CacheControlEphemeralParam",
        partial(rewritten, r',"cache_control":\{[^}]*\}', ""),
    ),
    (
        "a cache mark is set",
        "blocks",
        "ToolUseBlockParam",
        "",
        partial(
            rewritten,
            r'"type":"tool_use"',
            '"type":"tool_use","cache_control":{"type":"ephemeral"}',
        ),
    ),
    ("spaces and escapes", "Responses items", "ShellCall", "all", lambda body: body),
]
TOOL = ("Responses tools", "FunctionToolParam", "defer_loading=true")
RESULT = ("Responses items", "FunctionCallOutput", "all")
# (name, parts of a body of Chat, notices, is_accepted)
OTHER = [
    ("the result is there", ("output_{n}", "Answer {n}."), (), True),
    ("the result is gone", ("", "Answer {n}."), (), False),
    ("the result is gone, with a notice", ("", "Answer {n}."), ("x: note: H6 m3: left out",), True),
    ("an item is gone", ("", "Answer 0."), (), False),
    ("words in another format", ("output_{n}", SAID), ("x: note: H6 m3: left out",), False),
    ("words beside its own", ("output_{n}", "Answer {n}. " + SAID), (), False),
]
# (name, fields of the tool in a body of Chat, notices, is_accepted)
TOOLS = [
    ("all fields are there", {"strict": True, "defer_loading": True}, (), True),
    ("a field is gone", {"strict": True}, (), False),
    ("a field is gone, with a notice", {"strict": True}, ("x: note: H7 tools: left out",), True),
    ("another value", {"strict": False, "defer_loading": True}, (), False),
]
# (name, types of the items left out, is_accepted)
PAIRS = [
    ("a pair is there", (), True),
    ("a pair is gone", ("reasoning", "image_generation_call"), True),
    ("a pair is parted", ("reasoning",), False),
]


def without_kinds(kinds, body):
    for kind in kinds:
        body = without("type", kind, body)
    return body


def tool_of(fields, body):
    """Returns a body of Chat with a tool."""
    tool = {"type": "function", "function": {"name": "a", **fields}}
    return {"messages": [], "tools": [tool]}


def find(walks, union, kind, label):
    for walk in walks:
        if walk.name == union:
            for sample in walk.samples:
                if (sample.kind, sample.label) == (kind, label):
                    return sample
    raise LookupError(f"no sample of {union} / {kind} / {label}")


def self_test():
    """Returns the number of examples, and the failures."""
    failures, examples = [], 0
    walks = all_unions()
    failures += refused_by_types(walks)
    Walk(Damaging(lambda body: body)).run(walks, others=False)
    for walk in walks:
        different = [sample for sample in walk.samples if sample.difference]
        failures += [f"undamaged: {' / '.join(s.key())}: {s.difference}" for s in different]
    for name, union, kind, label, damage in RED + GREEN:
        examples += 1
        sample = find(walks, union, kind, label)
        sample.difference = ""
        damaged = []

        def damage_once(body):
            damaged.append(damage(body))
            return damaged[-1] or body

        Walk(Damaging(damage_once)).own([sample])
        if damaged[-1] is None:
            failures.append(f"{name}: there is nothing to damage")
        elif bool(sample.difference) != ((name, union, kind, label, damage) in RED):
            failures.append(f"{name}: {sample.difference or 'was not seen'}")
    for name, (result, said), notices, is_held in OTHER:
        sample = find(walks, *RESULT)
        texts = (text.format(n=sample.number) for text in (result, said))
        planned = partial(chat_of, *texts)
        failures += wrongly_judged(name, sample, planned, notices, is_held)
    for name, tool, notices, is_held in TOOLS:
        planned = partial(tool_of, tool)
        failures += wrongly_judged(name, find(walks, *TOOL), planned, notices, is_held)
    for name, kinds, is_held in PAIRS:
        examples += 1
        sample = find(walks, "Responses items", "ImageGenerationCall", "")
        sample.foreign.clear()
        Walk(Damaging(partial(without_kinds, kinds))).pairs([sample])
        if bool(sample.foreign) == is_held:
            failures.append(f"{name}: {sample.foreign or 'was not seen'}")
    examples += len(OTHER) + len(TOOLS)
    return examples, failures


def wrongly_judged(name, sample, planned, notices, is_held):
    sample.foreign.clear()
    Walk(Damaging(planned, notices)).other([sample], "openai")
    if bool(sample.foreign) == is_held:
        yield f"{name}: {sample.foreign or 'was not seen'}"
