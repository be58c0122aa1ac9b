"""The unions of the official Python SDKs, and the samples of their types."""

from dataclasses import dataclass, field

from anthropic.types import ContentBlockParam, MessageParam, ToolUnionParam
from anthropic.types.beta import (
    BetaContentBlockParam,
    BetaMessageParam,
    BetaToolUnionParam,
)
from google.genai import types as genai
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam

import check
from conversations import (
    Anthropic,
    AnthropicMessages,
    Chat,
    Gemini,
    OneTool,
    Responses,
    Tools,
)
from samples import MARK, PNG, Samples, fill, members_of

# wire format: a model that accepts reasoning of any turn, so that none is left out
MODELS = {
    "openai-responses": "gpt-6.2-sol",
    "openai": "gpt-6.2-sol",
    "anthropic": "claude-opus-5-5",
    "gemini": "gemini-3-pro-preview",
}
# Fields of Google's parts with metadata of a medium.
OF_MEDIA = (
    "mediaResolution",
    "videoMetadata",
    "mediaProcessing",
    "audioTranscription",
    "documentMetadata",
    "spreadsheetMetadata",
    "audioMetadata",
)


@dataclass
class SdkUnion:
    """A union of one SDK, and the way its samples are sent."""

    package: str
    name: str
    members: dict
    wire: object
    is_tool: bool = False
    samples: list = field(default_factory=list)

    def build(self, walked):
        self.smallest = {}
        for name, hint in self.members.items():
            for label, value in Samples(walked).of(hint):
                if not self.wire.takes(value):
                    continue
                number = len(self.samples) + 1
                self.samples.append(Sample(self, name, label, number, fill(value, number)))
                kind = value.get("type")
                if not label and kind and kind not in self.smallest:
                    self.smallest[kind] = value

    def smallest_for(self, number):
        """Returns a function from a `type` to the smallest sample of that type."""

        def smallest(kind):
            value = self.smallest.get(kind)
            return value and fill(value, f"{number}b")

        return smallest


@dataclass
class Sample:
    union: SdkUnion
    kind: str
    label: str
    number: int
    value: dict
    difference: str = ""
    is_equal: bool = False  # except the order of keys and the spelling of numbers
    is_invented: bool = False  # there is an invented assistant text
    tried: int = 0  # other wire formats that it was sent to
    foreign: dict = field(default_factory=dict)  # wire format -> fault

    def key(self):
        return self.union.name, self.kind, self.label

    def turn(self):
        wire, smallest = self.union.wire, self.union.smallest_for(self.number)
        return wire.turn(self.kind, fill(self.value, self.number), self.number, smallest)

    def is_alone(self):
        wire = self.union.wire
        return isinstance(wire, OneTool) or self.value.get("type") in wire.alone


def chat_function(name):
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def responses_function(name):
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "name": name, "parameters": parameters, "strict": False}


def anthropic_function(name):
    return {"name": name, "input_schema": {"type": "object"}}


def all_unions():
    responses = Responses("openai-responses", MODELS["openai-responses"])
    chat = Chat("openai", MODELS["openai"])
    claude = Anthropic("anthropic", MODELS["anthropic"])
    messages = AnthropicMessages("anthropic", MODELS["anthropic"])
    beta = Anthropic("anthropic-beta", MODELS["anthropic"])
    beta_messages = AnthropicMessages("anthropic-beta", MODELS["anthropic"])
    gemini = Gemini("gemini", MODELS["gemini"])

    def tools(wire, function):
        return Tools(wire.provider, wire.model, wire, function)

    listed = [
        ("openai", "Responses items", ResponseInputItemParam, responses),
        ("openai", "Responses tools", ToolParam, tools(responses, responses_function)),
        ("openai", "Chat messages", ChatCompletionMessageParam, chat),
        ("openai", "Chat tools", ChatCompletionToolUnionParam, tools(chat, chat_function)),
        ("anthropic", "blocks", ContentBlockParam, claude),
        ("anthropic", "messages", MessageParam, messages),
        ("anthropic", "tools", ToolUnionParam, tools(claude, anthropic_function)),
        ("anthropic", "beta blocks", BetaContentBlockParam, beta),
        ("anthropic", "beta messages", BetaMessageParam, beta_messages),
        ("anthropic", "beta tools", BetaToolUnionParam, tools(beta, anthropic_function)),
        ("google-genai", "Gemini parts", genai.Part, gemini),
        ("google-genai", "Gemini tools", genai.Tool, OneTool("gemini", gemini.model, gemini, None)),
    ]
    walks = [
        SdkUnion(package, name, members_of(union), wire) for package, name, union, wire in listed
    ]
    walked = {hint for walk in walks for hint in walk.members.values()}
    for walk in walks:
        walk.is_tool = isinstance(walk.wire, Tools)
        if walk.package == "google-genai":
            split_by_field(walk, walked)
        else:
            walk.build(walked)
    return walks


def split_by_field(walk, walked):
    """Builds samples of Google's parts and tools, one type with a field for each kind of thing.

    A part has one kind of data and its metadata; a tool has any number of kinds.
    """
    (hint,) = walk.members.values()
    held = set(check.GEMINI_DATA)
    walk.members, walk.smallest = {}, {}
    image = {"inlineData": {"data": PNG, "mimeType": "image/png"}}
    for label, value in Samples(walked - {hint}).of(hint):
        name = label.partition("=")[0]
        if not walk.is_tool and (not name or name in ("all", "reversed")):
            continue
        if not walk.is_tool and name not in held:
            said = image if name in OF_MEDIA else {"text": f"text_{MARK}"}
            value = {**said, **value}
        walk.members[name] = hint
        number = len(walk.samples) + 1
        walk.samples.append(
            Sample(walk, name, label.partition("=")[2], number, fill(value, number))
        )
