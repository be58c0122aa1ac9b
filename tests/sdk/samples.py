"""Builds samples of a type of an SDK from its type hints.

A sample is a JSON value with a label for the choice that it shows: the required fields
alone, one optional field alone, one member of a union, all fields, all fields in reverse
order. Texts and ids carry the mark `§`, for the number of the sample.
Numbers are `Num`, which keeps the spelling.
"""

import datetime
import enum
import inspect
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel
from typing_extensions import get_args, get_origin, get_type_hints, is_typeddict

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = (
    "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBv"
    "Ymo8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50IDE+PmVuZG9iagozIDAgb2JqPDwvVHlw"
    "ZS9QYWdlL1BhcmVudCAyIDAgUj4+ZW5kb2JqCnRyYWlsZXI8PC9Sb290IDEgMCBSPj4K"
)
LITERALS = 4  # number of values tried per enumeration
MARK = "§"
# Fields of which the server requires at least one, although the types do not.
ONE_OF = (
    ("image_url", "file_data", "file_url", "file_id"),
    ("content", "tool_calls", "function_call", "refusal", "audio"),
)
# Fields that only the server requires: a call without a name has no answer.
NEEDED = (("FunctionCall", "name"),)


class Num:
    """A number that keeps its spelling."""

    def __init__(self, spelt):
        self.spelt = spelt

    def __repr__(self):
        return self.spelt


def free_form():
    """Returns an object for an open type, with keys and numbers of the caller's own."""
    return {
        "zeta": Num("1.0"),
        "alpha": [Num("1e2"), None, True, {}],
        "cache_control": "a word of the caller's",
        "Large": Num("12345678901234567890123"),
        "text": f"free {MARK}",
    }


def json_schema():
    """Returns a JSON schema of an object, with keys and numbers in an unusual order."""
    return {
        "type": "object",
        "required": ["zeta"],
        "properties": {
            "zeta": {"minimum": Num("1.0"), "type": "number", "default": Num("1e2")},
            "alpha": {"description": f"alpha {MARK}", "type": "string"},
        },
        "additionalProperties": False,
    }


# Texts that need a certain form: key -> value.
TEXTS = {
    "arguments": '{"zeta": 1.0,  "alpha": [1e2, null], "text": "given %s"}' % MARK,
    "data": PNG,
    "image_url": f"data:image/png;base64,{PNG}",
    "file_data": f"data:application/pdf;base64,{PDF}",
    "url": f"https://example.com/{MARK}.png",
    "uri": f"https://example.com/{MARK}",
    "fileUri": f"https://example.com/{MARK}.png",
    "mimeType": "image/png",
    "media_type": "image/png",
}
SCHEMAS = {
    "parameters",
    "input_schema",
    "inputSchema",
    "output_schema",
    "schema",
    "parametersJsonSchema",
    "responseJsonSchema",
}


class Samples:
    """Walks type hints; `of` yields (label, value), the smallest value first."""

    def __init__(self, walked=()):
        self.walked = walked  # types with their own walk: inside others, two samples
        self.within = []  # types that are being walked: a type in itself gets one sample

    def of(self, hint, key=""):
        origin = get_origin(hint)
        if origin is Annotated:
            yield from self.of(get_args(hint)[0], key)
        elif str(origin).rpartition(".")[2] in ("Required", "NotRequired"):
            yield from self.of(get_args(hint)[0], key)
        elif origin is Union or origin is types.UnionType:
            yield from self.of_union(get_args(hint), key)
        elif origin is Literal:
            yield from ((repr(value), value) for value in some(get_args(hint)))
        elif hint is None or hint is type(None):
            yield "null", None
        elif hint is str:
            yield "", TEXTS.get(key, f"{key}_{MARK}")
        elif hint is bool:
            yield from (("true", True), ("false", False))
        elif hint is int:
            yield "", Num("7")
        elif hint is float:
            yield from ((spelt, Num(spelt)) for spelt in ("0.5", "1.0", "1e2"))
        elif hint is bytes:
            yield "", PNG
        elif hint is datetime.datetime:
            yield "", "2026-11-01T12:00:00Z"
        elif hint is object or hint is Any:
            yield from self.of_object(key)
        elif origin is dict or origin is Mapping:
            yield from self.of_dict(get_args(hint), key)
        elif is_a_list(hint, origin):
            yield from self.of_list(get_args(hint), key)
        elif is_typeddict(hint):
            yield from self.of_fields(hint, fields_of_typed_dict(hint))
        elif inspect.isclass(hint) and issubclass(hint, enum.Enum):
            values = [member.value for member in hint]
            stated = [value for value in values if not value.endswith("_UNSPECIFIED")]
            yield from ((repr(value), value) for value in some(stated or values))
        elif inspect.isclass(hint) and issubclass(hint, BaseModel):
            yield from self.of_fields(hint, fields_of_model(hint))
        else:
            raise TypeError(f"{key}: no sample is known for a {hint!r}")

    def of_union(self, members, key):
        members = [member for member in members if can_be_json(member)]
        # A model among typed dicts is the parsed form of a response, equal on the wire.
        if any(is_typeddict(bare(member)) for member in members):
            members = [member for member in members if not is_model(member)]
        members.sort(key=lambda member: member is type(None))
        for member in members:
            name = getattr(bare(member), "__name__", "")
            for label, value in self.of(member, key):
                named = is_typeddict(bare(member)) and len(members) > 1
                yield (f"{name}{':' if label else ''}{label}" if named else label), value

    def of_object(self, key):
        yield "", json_schema() if key in SCHEMAS else free_form()
        if key not in SCHEMAS:
            yield "a text", f"{key}_{MARK}"

    def of_dict(self, args, key):
        if len(args) < 2 or args[1] in (object, Any):
            yield "", json_schema() if key in SCHEMAS else free_form()
            if key not in SCHEMAS:
                yield "{}", {}
            return
        for label, value in self.of(args[1], key):
            yield label, {f"zeta_{MARK}": value, "alpha": value}

    def of_list(self, args, key):
        every = list(self.of(args[0] if args else object, key))
        if not every:
            return
        yield "", [every[0][1]]
        yield "[]", []
        for label, value in every[1:]:
            yield f"[{label}]", [value]
        if len(every) > 1:
            yield "[several]", [every[-1][1], every[0][1]]

    def of_fields(self, owner, fields):
        """Yields the required fields, each choice of a field alone, all, all in reverse."""
        smallest = {}
        choices = {}
        if owner in self.within:
            fields = {name: field for name, field in fields.items() if field[1]}
        self.within.append(owner)
        try:
            for name, (hint, required) in fields.items():
                choices[name] = list(self.of(hint, name))
                if required:
                    smallest[name] = choices[name][0][1]
        finally:
            self.within.pop()
        for names in ONE_OF:
            held = [name for name in names if name in fields]
            if len(held) > 1:
                break
        for label, sample in self.chosen(owner, fields, choices, smallest):
            if len(held) > 1 and not any(sample.get(name) for name in held):
                sample = {**sample, held[0]: choices[held[0]][0][1]}
            yield label, sample

    def chosen(self, owner, fields, choices, smallest):
        yield "", smallest
        full = {name: choices[name][0][1] for name in fields if choices[name]}
        if len(full) > len(smallest) and owner not in self.within:
            yield "all", full
        is_deep = len(self.within) > 1 or self.within and owner in self.walked
        if is_deep or owner in self.within:
            return
        for name, (_, required) in fields.items():
            for label, value in choices[name][1 if required else 0 :]:
                sample = {**smallest, name: value}
                yield f"{name}{'=' if label else ''}{label}", sample
        if len(full) > 1:
            yield "reversed", dict(reversed(full.items()))


def some(values):
    return values if len(values) <= LITERALS else (*values[: LITERALS - 1], values[-1])


def bare(hint):
    return bare(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def is_model(hint):
    hint = bare(hint)
    if get_origin(hint) is Union:
        return all(is_model(member) for member in get_args(hint))
    return inspect.isclass(hint) and issubclass(hint, BaseModel)


def can_be_json(hint):
    """Returns False for a file or path, which the SDK reads before it sends anything."""
    hint = bare(hint)
    if get_origin(hint) is Union:
        return any(can_be_json(member) for member in get_args(hint))
    module = getattr(get_origin(hint) or hint, "__module__", "")
    name = getattr(get_origin(hint) or hint, "__name__", "")
    return module not in ("io", "os", "pathlib") and name not in ("IO", "PathLike")


def is_a_list(hint, origin):
    name = getattr(origin, "__name__", "") or getattr(hint, "__name__", "")
    return name in ("list", "List", "Iterable", "Sequence", "SequenceNotStr")


def fields_of_typed_dict(owner):
    """Returns name -> (hint, is_required) in the SDK's order."""
    hints = get_type_hints(owner, include_extras=True)
    return {name: (hint, is_required(hint)) for name, hint in hints.items()}


def is_required(hint):
    if get_origin(hint) is Annotated:
        return is_required(get_args(hint)[0])
    return str(get_origin(hint)).endswith("Required") and not str(get_origin(hint)).endswith(
        "NotRequired"
    )


def fields_of_model(owner):
    """Returns the fields of a pydantic model under their names on the wire.

    In google-genai every field is optional, with "Required." in the description.
    """
    found = {}
    for name, info in owner.model_fields.items():
        hint = info.annotation
        if get_origin(hint) in (Union, types.UnionType):
            members = [m for m in get_args(hint) if m is not type(None)]
            hint = Union[tuple(members)]
        required = (info.description or "").startswith("Required.")
        required |= (owner.__name__, name) in NEEDED
        found[info.alias or name] = (hint, required)
    return found


def members_of(union):
    """Returns the types of a union by name, without the classes of responses."""
    if get_origin(union) is Annotated:
        return members_of(get_args(union)[0])
    if get_origin(union) is not Union:
        return {union.__name__: union}
    found = {}
    for member in get_args(union):
        if not is_model(member):
            found.update(members_of(member))
    return found


def fill(value, number):
    """Returns a deep copy of the value with the number of the sample in its texts."""
    if isinstance(value, str):
        return value.replace(MARK, str(number))
    if isinstance(value, list):
        return [fill(item, number) for item in value]
    if isinstance(value, dict):
        return {fill(key, number): fill(item, number) for key, item in value.items()}
    return value
