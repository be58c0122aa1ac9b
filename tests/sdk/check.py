"""Check request bodies against the types of the official Python SDKs.

    python3 -m venv target/sdk
    target/sdk/bin/pip install -r tests/sdk/requirements.txt
    target/sdk/bin/python tests/sdk/check.py FILE...
    target/sdk/bin/python tests/sdk/check.py < FILE
    target/sdk/bin/python tests/sdk/check.py --self-test

Every line of the input is one JSON object:

    {"provider": "openai" | "openai-responses" | "anthropic" | "gemini",
     "name": "where the body came from", "body": {...}}

The first three bodies are checked as the SDK's own parameters of
`chat.completions.create`, `responses.create` and `messages.create`, where `model` and
`max_tokens` may be absent and `input` may not; a Gemini body is checked part by part,
since google-genai has no type for a whole body. Nothing goes over the network.

The types alone are lenient, so they are made stricter:

* a key that the type does not name is refused, at every depth;
* lists declared as `Iterable` in the SDK are checked item by item; pydantic would not
  read them;
* nothing is converted: "1" is not a number;
* in Anthropic content only the request types are valid, not the response classes that
  the SDK also accepts and that allow unknown keys;
* in Gemini bodies keys are in camelCase, enum values exist, and the rules hold that only
  the SDK's documentation states: fields described as "Required." are present, a role is
  "user" or "model", a part has exactly one kind of data.

Values of the SDK type `object` are not checked: JSON schemas of tools (except Gemini's
`parameters`), arguments of calls. Base64 is checked for Gemini only.

Prints the refused bodies, each with the place and the reason of its first error, and a
line per provider. Exit: 0 all accepted, 1 some refused, 2 bad usage, bad input or
missing packages.
"""

import json
import sys
from importlib.metadata import version
from typing import List, Optional

INSTALL = (
    "python3 -m venv target/sdk && "
    "target/sdk/bin/pip install -r tests/sdk/requirements.txt"
)


def give_up(message):
    print(f"check.py: {message}", file=sys.stderr)
    sys.exit(2)


try:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from google.genai import types as genai
    from openai.types.chat.completion_create_params import (
        CompletionCreateParamsNonStreaming,
    )
    from openai.types.responses.response_create_params import (
        ResponseCreateParamsNonStreaming,
    )
    from pydantic import BaseModel, ConfigDict, TypeAdapter
    from pydantic.alias_generators import to_camel
    from pydantic_core import SchemaValidator, ValidationError
except ImportError as error:
    give_up(f"{error}; install with: {INSTALL}")


class GeminiBody(BaseModel):
    """The body of generateContent, built from the SDK's types."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    contents: List[genai.Content]
    system_instruction: Optional[genai.Content] = None
    tools: Optional[List[genai.Tool]] = None
    tool_config: Optional[genai.ToolConfig] = None
    safety_settings: Optional[List[genai.SafetySetting]] = None
    generation_config: Optional[genai.GenerationConfig] = None
    cached_content: Optional[str] = None


# provider: (package, type of the body, keys that may be absent, keys that may not)
PROVIDERS = {
    "openai": ("openai", CompletionCreateParamsNonStreaming, ("model",), ()),
    "openai-responses": ("openai", ResponseCreateParamsNonStreaming, (), ("input",)),
    "anthropic": (
        "anthropic",
        MessageCreateParamsNonStreaming,
        ("model", "max_tokens"),
        (),
    ),
    "gemini": ("google-genai", GeminiBody, (), ()),
}


# ---------------------------------------------------------------- the strict schema


def inside(node, *wrappers):
    """Returns the schema inside a chain of wrapping schemas."""
    while node["type"] in wrappers:
        node = node["schema"]
    return node


def strict(node, definitions):
    """Returns a copy of a pydantic core schema with the strict rules above.

    Core schemas are dicts with a "type" and further schemas in them, the same for all
    ways of writing a type, so that no `Iterable` and no TypedDict can be overlooked.
    """
    if isinstance(node, (list, tuple)):
        return type(node)(strict(item, definitions) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not isinstance(kind, str):  # a mapping of names to fields
        return {name: strict(field, definitions) for name, field in node.items()}

    node = dict(node)
    if kind == "typed-dict":
        # One type explicitly allows additional keys: a JSON schema.
        if node.get("extra_behavior") != "allow":
            node["extra_behavior"] = "forbid"
    elif kind == "generator":
        node["type"] = "list"
    elif kind == "union":
        choices = node["choices"]
        requests = [c for c in choices if not is_response(c, definitions)]
        node["choices"] = requests or choices  # no tag: it is inside a response class
        node["mode"] = "left_to_right"  # accepts the same as "smart", and is faster
    elif kind == "function-before":
        # The only one of google-genai logs and returns its input, but a Python function in
        # between makes pydantic forget that it reads JSON, where bytes are base64.
        if "_check_field_type_mismatches" not in repr(node["function"]):
            give_up(f"unknown validator in the SDK: {node['function']}")
        return strict(node["schema"], definitions)
    elif kind == "enum":
        # google-genai creates a member for an unknown value, and ignores case.
        values = [member.value for member in node["cls"]]
        values += [value.lower() for value in values if value.lower() not in values]
        node["type"], node["expected"] = "literal", values
    elif kind == "model":
        # Only the fields: pydantic uses a model's own lenient validator unchanged, and
        # `Part` has an __init__ that accepts more than JSON.
        fields = inside(node["schema"], "function-before")["fields"]
        node = {
            "type": "model-fields",
            "extra_behavior": "forbid",
            "fields": {
                name: required(field, node["cls"].model_fields[name])
                for name, field in fields.items()
            },
            **({"ref": node["ref"]} if "ref" in node else {}),
        }
    return {
        key: value if key in ("metadata", "serialization") else strict(value, definitions)
        for key, value in node.items()
    }


def required(field, info):
    """Returns the field without default and null, if its description requires it."""
    if (info.description or "").startswith("Required."):
        field = {**field, "schema": inside(field["schema"], "default", "nullable")}
    return field


def is_response(choice, definitions):
    """Returns True if a member of a union is a pydantic model, or a union of such.

    In the SDKs made of TypedDicts, a model is the parsed form of a response. A plain
    dict is no model, but read from JSON it would be accepted as one. google-genai has
    no unions.
    """
    if isinstance(choice, tuple):
        choice = choice[0]
    if choice["type"] == "definition-ref":
        choice = definitions[choice["schema_ref"]]
    if choice["type"] == "union":
        return all(is_response(member, definitions) for member in choice["choices"])
    return choice["type"] == "model"


def validator(body_type, optional, needed):
    schema = TypeAdapter(body_type).core_schema
    definitions = {d["ref"]: d for d in schema.get("definitions", ())}
    schema = strict(schema, definitions)
    body = inside(schema, "definitions")
    for keys, value in ((optional, False), (needed, True)):
        for key in keys:
            body["fields"][key]["required"] = value
    return SchemaValidator(schema, {"val_json_bytes": "base64"})  # the form in google-genai


# ----------------------------------------------------------------- checking one body


class Checker:
    """Checks bodies of one provider."""

    def __init__(self, provider):
        self.package, body_type, optional, needed = PROVIDERS[provider]
        self.further = gemini_rules if provider == "gemini" else lambda body: None
        self.validator = validator(body_type, optional, needed)

    def first_error(self, body):
        """Returns (path, message), or None if the body is accepted."""
        try:
            self.validator.validate_json(
                json.dumps(body), strict=True, by_alias=True, by_name=False
            )
        except ValidationError as error:
            return first_error(body, error.errors(include_url=False))
        return self.further(body)


GEMINI_DATA = (
    "text inlineData fileData functionCall functionResponse executableCode "
    "codeExecutionResult toolCall toolResponse"
).split()


def gemini_rules(body):
    """Checks the rules for `Content.role` and `Part` that google-genai only documents."""
    places = [(("contents", i), content) for i, content in enumerate(body["contents"])]
    for place, content in places:
        if content.get("role") not in (None, "user", "model"):
            return dotted((*place, "role")), "must be either 'user' or 'model'"
    places.append((("systemInstruction",), body.get("systemInstruction") or {}))
    for place, content in places:
        for i, part in enumerate(content.get("parts") or ()):
            held = [key for key in GEMINI_DATA if part.get(key) is not None]
            if len(held) != 1:
                found = " and ".join(held) or "nothing"
                path = dotted((*place, "parts", i))
                return path, f"a part holds exactly one thing, this one {found}"
    return None


def first_error(body, errors):
    """Selects the error to show from those that pydantic reports for the members of unions.

    Only the first message or item with an error is examined. Members excluded by their
    `type` or `role` are ignored. Of the rest, a missing key is preferred, and then the
    deepest error.
    """
    if not errors[0]["loc"]:  # not an object, or JSON that only Python can read
        return "body", errors[0]["msg"]
    found = [(path_in(body, error), error) for error in errors]
    first = next((path[:2] for path, _ in found if len(path) > 1), found[0][0])
    found = [(path, error) for path, error in found if path[:2] == first]

    tags = [(path, e) for path, e in found if e["loc"][-1] in ("type", "role")]
    out = {e["loc"][:-1] for _, e in tags if e["type"] in ("literal_error", "missing")}
    lacking = {e["loc"][:-1] for _, e in found if e["type"] == "missing"}
    out |= lacking & {e["loc"][:-1] for _, e in tags if e["type"] == "extra_forbidden"}

    def under_one_out(loc):
        return any(loc[:end] in out for end in range(len(loc)))

    live = [(path, e) for path, e in found if not under_one_out(e["loc"])]
    tags = [(path, e) for path, e in tags if not under_one_out(e["loc"][:-1])]

    def telling(item):
        path, error = item
        return error["type"] == "missing" and item in live, len(path)

    path, error = max(live + tags, key=telling)  # the first of equal errors
    if error["type"] == "literal_error":
        # All values that a member would have accepted here.
        same = [e for p, e in live + tags if p == path and e["type"] == error["type"]]
        values = dict.fromkeys(e["ctx"]["expected"] for e in same)
        message = f"{error['input']!r} is not {' or '.join(values)}"
    elif error["type"] == "extra_forbidden":
        message = "unknown key"
    else:
        message = error["msg"]
    return dotted(path), message if len(message) <= 200 else message[:197] + "..."


def path_in(body, error):
    """Returns an error's path without the type names that pydantic inserts."""
    path = []
    here = body
    for step in error["loc"]:
        if isinstance(here, dict) and step in here:
            here = here[step]
            path.append(step)
        elif isinstance(here, list) and isinstance(step, int):
            here = here[step]
            path.append(step)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def dotted(path):
    return ".".join(map(str, path))


# ------------------------------------------------------------------------- the input


def lines_of(files):
    """Yields (place, line) for every line that is not empty."""
    if not files:
        if sys.stdin.isatty():
            give_up("usage: check.py [--self-test | FILE...], or the lines on stdin")
        files = ["-"]
    for file in files:
        try:
            opened = sys.stdin.buffer if file == "-" else open(file, "rb")
            with opened:
                for number, line in enumerate(opened, 1):
                    if line.strip():
                        yield f"{file}:{number}", line
        except OSError as error:
            give_up(error)


def check(files):
    checkers = {}
    bodies = dict.fromkeys(PROVIDERS, 0)
    refused = dict.fromkeys(PROVIDERS, 0)
    for place, line in lines_of(files):
        try:
            entry = json.loads(line)
            provider, name, body = entry["provider"], entry["name"], entry["body"]
        except (ValueError, KeyError, TypeError) as error:
            give_up(f"{place}: no JSON object with provider, name and body: {error!r}")
        if provider not in list(PROVIDERS):
            give_up(f"{place}: {provider!r} is none of {', '.join(PROVIDERS)}")
        if provider not in checkers:
            checkers[provider] = Checker(provider)
        bodies[provider] += 1
        error = checkers[provider].first_error(body)
        if error:
            refused[provider] += 1
            print(f"refused: {provider}: {name}: {error[0]}: {error[1]}")
    if not checkers:
        give_up("no bodies in the input")
    for provider, checker in checkers.items():
        print(
            f"{provider} {version(checker.package)}: "
            f"{bodies[provider]} bodies, {refused[provider]} refused"
        )
    return 1 if any(refused.values()) else 0


# ------------------------------------------------------------------------- self-test

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
EPHEMERAL = {"type": "ephemeral"}
BREAKPOINT = {"mode": "explicit", "ttl": "30m"}


def chat(*messages, **more):
    return {"messages": list(messages), **more}


def responses(*items, **more):
    return {"input": list(items), **more}


def gemini(*contents, **more):
    return {"contents": list(contents), **more}


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def parts(role, *items):
    return {"role": role, "parts": list(items)}


def chat_call(call_id, **more):
    function = {"name": "weather", "arguments": '{"city":"Bern"}'}
    return {"id": call_id, "type": "function", "function": function, **more}


def chat_tool(**more):
    function = {"name": "weather", "description": "d", "parameters": SCHEMA, **more}
    return {"type": "function", "function": function}


CHAT_TEXT = {"type": "text", "text": "hi"}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}

INPUT_TEXT = {"type": "input_text", "text": "hi"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"}
CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "fine"}
FUNCTION = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": None}
OUTPUT_TEXT = {"type": "output_text", "text": "hi", "annotations": []}
OUTPUT_MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [OUTPUT_TEXT],
}

TEXT = {"type": "text", "text": "hi"}
BASE64 = {"type": "base64", "media_type": "image/png", "data": PNG}
IMAGE = {"type": "image", "source": BASE64}
TOOL_USE = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bern"}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "fine"}
TOOL = {"name": "weather", "description": "d", "input_schema": SCHEMA}

INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
FUNCTION_CALL = {"functionCall": {"name": "weather", "args": {"city": "Bern"}}}
FUNCTION_RESPONSE = {"functionResponse": {"name": "weather", "response": {"output": 1}}}
DECLARATION = {
    "name": "weather",
    "description": "d",
    "parameters": {
        "type": "OBJECT",
        "properties": {"city": {"type": "STRING", "enum": ["Bern"]}},
        "required": ["city"],
    },
}

# provider, name, body
SOUND = [
    (
        "openai",
        "all roles",
        chat(
            {"role": "developer", "content": "be kind"},
            {"role": "system", "content": [CHAT_TEXT], "name": "s"},
            {"role": "user", "content": "hi", "name": "u"},
            {"role": "assistant", "content": "hello"},
        ),
    ),
    (
        "openai",
        "multi-part content with images and breakpoints",
        chat(
            user(
                {**CHAT_TEXT, "prompt_cache_breakpoint": BREAKPOINT},
                {**CHAT_IMAGE, "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
                {"type": "file", "file": {"file_id": "f"}},
                {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            ),
            assistant(CHAT_TEXT, {"type": "refusal", "refusal": "no"}),
        ),
    ),
    (
        "openai",
        "parallel tool calls with results",
        chat(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [chat_call("c1"), chat_call("c2")],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "fine"},
            {"role": "tool", "tool_call_id": "c2", "content": [CHAT_TEXT]},
            tools=[chat_tool(strict=True), chat_tool()],
        ),
    ),
    ("openai", "model and parameters", chat(user(CHAT_TEXT), model="m", temperature=1)),
    (
        "openai-responses",
        "messages",
        responses(
            {"role": "developer", "content": "be kind"},
            {"type": "message", "role": "system", "content": [INPUT_TEXT]},
            user(
                {**INPUT_TEXT, "prompt_cache_breakpoint": BREAKPOINT},
                {"type": "input_image", "image_url": "u", "detail": "auto"},
                {"type": "input_file", "file_id": "f"},
            ),
            {"role": "assistant", "content": "hello"},
            OUTPUT_MESSAGE,
            instructions="be kind",
        ),
    ),
    (
        "openai-responses",
        "reasoning and parallel calls with outputs",
        responses(
            REASONING,
            CALL,
            {**CALL, "id": "fc_2", "call_id": "c2", "status": "completed"},
            OUTPUT,
            {**OUTPUT, "call_id": "c2", "output": [INPUT_TEXT]},
            {**REASONING, "summary": [{"type": "summary_text", "text": "s"}]},
            tools=[FUNCTION, {**FUNCTION, "strict": True, "description": "d"}],
        ),
    ),
    (
        "anthropic",
        "multi-part content with images",
        chat(
            user(
                TEXT,
                IMAGE,
                {"type": "image", "source": {"type": "url", "url": "u"}},
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                },
            ),
            {"role": "assistant", "content": "hello"},
            system="be kind",
        ),
    ),
    (
        "anthropic",
        "thinking, and parallel tool use with results",
        chat(
            assistant(
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                TEXT,
                TOOL_USE,
                {**TOOL_USE, "id": "t2"},
            ),
            user(
                TOOL_RESULT,
                {
                    "type": "tool_result",
                    "tool_use_id": "t2",
                    "is_error": True,
                    "content": [TEXT, IMAGE],
                },
                TEXT,
            ),
            tools=[TOOL],
        ),
    ),
    (
        "anthropic",
        "cache_control wherever it may be",
        chat(
            assistant(
                {**TEXT, "cache_control": EPHEMERAL},
                {**TOOL_USE, "cache_control": EPHEMERAL},
            ),
            user(
                {
                    **TOOL_RESULT,
                    "content": [{**TEXT, "cache_control": EPHEMERAL}],
                    "cache_control": {"type": "ephemeral", "ttl": "1h"},
                },
                {**IMAGE, "cache_control": EPHEMERAL},
            ),
            system=[TEXT, {**TEXT, "cache_control": EPHEMERAL}],
            tools=[{**TOOL, "cache_control": EPHEMERAL}],
        ),
    ),
    (
        "gemini",
        "multi-part content with images",
        gemini(
            parts(
                "user",
                {"text": "hi"},
                INLINE,
                {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org"}},
            ),
            parts("model", {"text": "hello"}, {"text": "hm", "thought": True}),
            {"parts": [{"text": "no role"}]},
            systemInstruction={"parts": [{"text": "be kind"}]},
        ),
    ),
    (
        "gemini",
        "parallel function calls with signature and responses",
        gemini(
            parts("model", {**FUNCTION_CALL, "thoughtSignature": "c2ln"}, FUNCTION_CALL),
            parts("user", FUNCTION_RESPONSE, FUNCTION_RESPONSE),
            parts("model", {"functionCall": {"id": "c", "name": "weather", "args": {}}}),
            parts("user", {"functionResponse": {"id": "c", "name": "w", "response": {}}}),
            tools=[
                {"functionDeclarations": [DECLARATION]},
                {"functionDeclarations": [{"name": "w", "parametersJsonSchema": SCHEMA}]},
            ],
        ),
    ),
]

# provider, name, body, path of the error
BROKEN = [
    ("openai", "no object", [], "body"),
    ("openai", "half a character", chat({"role": "user", "content": "\ud83d"}), "body"),
    ("openai", "no messages", {}, "messages"),
    ("openai", "unknown key of the body", chat(mesages=[]), "mesages"),
    ("openai", "messages no list", {"messages": "hi"}, "messages"),
    (
        "openai",
        "unknown key of a message",
        chat({"role": "user", "content": "hi", "id": "1"}),
        "messages.0.id",
    ),
    (
        "openai",
        "unknown key of a part",
        chat(user(CHAT_TEXT, {**CHAT_TEXT, "cache_control": EPHEMERAL})),
        "messages.0.content.1.cache_control",
    ),
    (
        "openai",
        "unknown key deep in a part",
        chat(user({"type": "image_url", "image_url": {"url": "u", "size": 1}})),
        "messages.0.content.0.image_url.size",
    ),
    (
        "openai",
        "unknown key in a breakpoint",
        chat(user({**CHAT_TEXT, "prompt_cache_breakpoint": {**BREAKPOINT, "a": 1}})),
        "messages.0.content.0.prompt_cache_breakpoint.a",
    ),
    ("openai", "no content", chat({"role": "user"}), "messages.0.content"),
    (
        "openai",
        "no tool_call_id",
        chat({"role": "tool", "content": "fine"}),
        "messages.0.tool_call_id",
    ),
    (
        "openai",
        "no name of a called function",
        chat({**assistant(), "tool_calls": [chat_call("c1", function={"arguments": ""})]}),
        "messages.0.tool_calls.0.function.name",
    ),
    (
        "openai",
        "arguments no string",
        chat(
            {
                "role": "assistant",
                "tool_calls": [chat_call("c1", function={"name": "n", "arguments": {}})],
            }
        ),
        "messages.0.tool_calls.0.function.arguments",
    ),
    ("openai", "number as text", chat(user({"type": "text", "text": 1})), None),
    (
        "openai",
        "wrong role",
        chat({"role": "user", "content": "hi"}, {"role": "human", "content": "hi"}),
        "messages.1.role",
    ),
    (
        "openai",
        "image in a tool message",
        chat({"role": "tool", "tool_call_id": "c1", "content": [CHAT_IMAGE]}),
        "messages.0.content.0.type",
    ),
    (
        "openai",
        "image in an assistant message",
        chat(assistant(CHAT_IMAGE)),
        "messages.0.content.0.type",
    ),
    (
        "openai",
        "reasoning_content",
        chat({"role": "assistant", "content": "a", "reasoning_content": "b"}),
        "messages.0.reasoning_content",
    ),
    (
        "openai",
        "input_schema in a tool",
        chat(tools=[chat_tool(input_schema=SCHEMA)]),
        "tools.0.function.input_schema",
    ),
    (
        "openai",
        "tool of the Responses API",
        chat(tools=[FUNCTION]),
        "tools.0.function",
    ),
    ("openai-responses", "no input", {"instructions": "a"}, "input"),
    (
        "openai-responses",
        "unknown key deep in a part",
        responses(user({**INPUT_TEXT, "prompt_cache_breakpoint": {"mode": "auto"}})),
        "input.0.content.0.prompt_cache_breakpoint.mode",
    ),
    (
        "openai-responses",
        "unknown key of a part",
        responses(user({**INPUT_TEXT, "detail": "low"})),
        "input.0.content.0.detail",
    ),
    (
        "openai-responses",
        "unknown key of an item",
        responses({**CALL, "role": "assistant"}),
        "input.0.role",
    ),
    (
        "openai-responses",
        "unknown key in a summary",
        responses(
            {**REASONING, "summary": [{"type": "summary_text", "text": "s", "a": 1}]}
        ),
        "input.0.summary.0.a",
    ),
    (
        "openai-responses",
        "reasoning without id",
        responses({"type": "reasoning", "summary": [], "encrypted_content": "g"}),
        "input.0.id",
    ),
    (
        "openai-responses",
        "output message without id",
        responses({k: v for k, v in OUTPUT_MESSAGE.items() if k != "id"}),
        "input.0.id",
    ),
    (
        "openai-responses",
        "call without call_id",
        responses({"type": "function_call", "name": "weather", "arguments": "{}"}),
        "input.0.call_id",
    ),
    ("openai-responses", "output no string", responses({**OUTPUT, "output": 1}), None),
    (
        "openai-responses",
        "wrong role",
        responses({"role": "tool", "content": "hi"}),
        "input.0.role",
    ),
    (
        "openai-responses",
        "part of the chat API",
        responses(user(CHAT_TEXT)),
        "input.0.content.0.type",
    ),
    (
        "openai-responses",
        "output_text in a user message",
        responses(user(OUTPUT_TEXT)),
        "input.0.content.0.type",
    ),
    (
        "openai-responses",
        "input_text in an output message",
        responses({**OUTPUT_MESSAGE, "content": [INPUT_TEXT]}),
        None,
    ),
    ("openai-responses", "wrong type of an item", responses({"type": "call"}), None),
    (
        "openai-responses",
        "tool of the chat API",
        responses(tools=[chat_tool()]),
        "tools.0.name",
    ),
    ("anthropic", "no messages", {"system": "a"}, "messages"),
    (
        "anthropic",
        "unknown key of a message",
        chat({**user(TEXT), "name": "u"}),
        "messages.0.name",
    ),
    (
        "anthropic",
        "unknown key of a text block",
        chat(user({**TEXT, "index": 1})),
        "messages.0.content.0.index",
    ),
    (
        "anthropic",
        "unknown key of a tool_use block",
        chat(assistant({**TOOL_USE, "index": 1})),
        "messages.0.content.0.index",
    ),
    (
        "anthropic",
        "unknown key in an image source",
        chat(user({"type": "image", "source": {**BASE64, "url": "u"}})),
        "messages.0.content.0.source.url",
    ),
    (
        "anthropic",
        "unknown key in a tool result's text",
        chat(user({**TOOL_RESULT, "content": [{**TEXT, "id": "1"}]})),
        "messages.0.content.0.content.0.id",
    ),
    (
        "anthropic",
        "unknown key in cache_control",
        chat(user({**TEXT, "cache_control": {**EPHEMERAL, "scope": "a"}})),
        "messages.0.content.0.cache_control.scope",
    ),
    (
        "anthropic",
        "unknown ttl in the system text",
        chat(system=[{**TEXT, "cache_control": {**EPHEMERAL, "ttl": "2h"}}]),
        "system.0.cache_control.ttl",
    ),
    (
        "anthropic",
        "cache_control on thinking",
        chat(
            assistant(
                {
                    "type": "thinking",
                    "thinking": "hm",
                    "signature": "s",
                    "cache_control": EPHEMERAL,
                }
            )
        ),
        "messages.0.content.0.cache_control",
    ),
    (
        "anthropic",
        "thinking without signature",
        chat(assistant({"type": "thinking", "thinking": "hm"})),
        "messages.0.content.0.signature",
    ),
    (
        "anthropic",
        "tool_result without tool_use_id",
        chat(user({"type": "tool_result", "content": "fine"})),
        "messages.0.content.0.tool_use_id",
    ),
    (
        "anthropic",
        "null as in answers",
        chat(assistant({**TOOL_USE, "caller": None})),
        "messages.0.content.0.caller",
    ),
    (
        "anthropic",
        "input no object",
        chat(assistant({**TOOL_USE, "input": "{}"})),
        "messages.0.content.0.input",
    ),
    (
        "anthropic",
        "is_error no truth value",
        chat(user({**TOOL_RESULT, "is_error": "true"})),
        "messages.0.content.0.is_error",
    ),
    (
        "anthropic",
        "wrong media type",
        chat(user({"type": "image", "source": {**BASE64, "media_type": "image/bmp"}})),
        "messages.0.content.0.source.media_type",
    ),
    (
        "anthropic",
        "wrong role",
        chat({"role": "tool", "content": "hi"}),
        "messages.0.role",
    ),
    (
        "anthropic",
        "part of the chat API",
        chat(user(CHAT_IMAGE)),
        "messages.0.content.0.type",
    ),
    (
        "anthropic",
        "tool result no text",
        chat(user({**TOOL_RESULT, "content": {"a": 1}})),
        "messages.0.content.0.content",
    ),
    (
        "anthropic",
        "tool_use in a tool result",
        chat(user({**TOOL_RESULT, "content": [TOOL_USE]})),
        "messages.0.content.0.content.0.type",
    ),
    ("anthropic", "image in the system text", chat(system=[IMAGE]), "system.0.type"),
    ("anthropic", "unknown key of a tool", chat(tools=[{**TOOL, "parameters": {}}]), None),
    ("anthropic", "tool without schema", chat(tools=[{"name": "weather"}]), None),
    ("gemini", "no object", "hi", "body"),
    ("gemini", "no contents", {}, "contents"),
    (
        "gemini",
        "unknown key of a content",
        gemini({**parts("user"), "content": "hi"}),
        "contents.0.content",
    ),
    (
        "gemini",
        "unknown key of a part",
        gemini(parts("user", {"text": "hi", "type": "text"})),
        "contents.0.parts.0.type",
    ),
    (
        "gemini",
        "unknown key deep in a part",
        gemini(parts("user", {"inlineData": {**INLINE["inlineData"], "uri": "u"}})),
        "contents.0.parts.0.inlineData.uri",
    ),
    (
        "gemini",
        "snake_case",
        gemini(parts("user", {"inline_data": INLINE["inlineData"]})),
        "contents.0.parts.0.inline_data",
    ),
    (
        "gemini",
        "snake_case deeper",
        gemini(parts("user", {"inlineData": {"mime_type": "image/png", "data": PNG}})),
        "contents.0.parts.0.inlineData.mimeType",
    ),
    (
        "gemini",
        "no mimeType",
        gemini(parts("user", {"inlineData": {"data": PNG}})),
        "contents.0.parts.0.inlineData.mimeType",
    ),
    (
        "gemini",
        "functionResponse without name",
        gemini(parts("user", {"functionResponse": {"response": {}}})),
        "contents.0.parts.0.functionResponse.name",
    ),
    (
        "gemini",
        "response no object",
        gemini(parts("user", {"functionResponse": {"name": "w", "response": "fine"}})),
        "contents.0.parts.0.functionResponse.response",
    ),
    (
        "gemini",
        "args no object",
        gemini(parts("model", {"functionCall": {"name": "w", "args": "{}"}})),
        "contents.0.parts.0.functionCall.args",
    ),
    (
        "gemini",
        "signature no base64",
        gemini(parts("model", {**FUNCTION_CALL, "thoughtSignature": "not base64!"})),
        "contents.0.parts.0.thoughtSignature",
    ),
    (
        "gemini",
        "parts no list",
        gemini({"role": "user", "parts": {"text": "hi"}}),
        "contents.0.parts",
    ),
    ("gemini", "wrong role", gemini(parts("assistant", {"text": "hi"})), "contents.0.role"),
    (
        "gemini",
        "two things in a part",
        gemini(parts("user", {"text": "hi", **INLINE})),
        "contents.0.parts.0",
    ),
    (
        "gemini",
        "nothing in a part",
        gemini(parts("user", {"thoughtSignature": "c2ln"})),
        "contents.0.parts.0",
    ),
    (
        "gemini",
        "unknown key in the system instruction",
        gemini(systemInstruction={"parts": [{"text": "a", "a": 1}]}),
        "systemInstruction.parts.0.a",
    ),
    (
        "gemini",
        "system instruction in two",
        gemini(systemInstruction={"parts": [{"text": "a", **INLINE}]}),
        "systemInstruction.parts.0",
    ),
    (
        "gemini",
        "unknown type in a declaration",
        gemini(
            tools=[
                {"functionDeclarations": [{"name": "w", "parameters": {"type": "strin"}}]}
            ]
        ),
        "tools.0.functionDeclarations.0.parameters.type",
    ),
    (
        "gemini",
        "declaration without name",
        gemini(tools=[{"functionDeclarations": [{"description": "d"}]}]),
        "tools.0.functionDeclarations.0.name",
    ),
]


def self_test():
    checkers = {provider: Checker(provider) for provider in PROVIDERS}
    failures = 0
    for provider, name, body in SOUND:
        error = checkers[provider].first_error(body)
        if error:
            failures += 1
            print(f"sound, but refused: {provider}: {name}: {error[0]}: {error[1]}")
    for provider, name, body, path in BROKEN:
        error = checkers[provider].first_error(body)
        if not error:
            failures += 1
            print(f"broken, but accepted: {provider}: {name}")
        elif path and error[0] != path:
            failures += 1
            print(f"not refused at {path}: {provider}: {name}: {error[0]}: {error[1]}")
    examples = f"{len(SOUND)} sound and {len(BROKEN)} broken examples"
    print(f"self-test: {examples}, {failures} failures")
    return 1 if failures else 0


def main(arguments):
    if arguments in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    if arguments == ["--self-test"]:
        return self_test()
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            give_up(f"unknown option {argument}; usage: [--self-test | FILE...]")
    return check(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
