"""Inserts samples into conversations, and finds them in the output body.

A `Wire` implements one wire format. `turn` returns one sample among messages that make it
valid: a call with its result, a result with its call, output of a provider's tool with the
reasoning before it. `units` returns the items or blocks of a body. Texts of the form
"Question 7?" and "Answer 7." mark the positions between samples.
"""

import re

from samples import PNG
from spelling import unmarked, written


class Wire:
    """One wire format, for the samples of one union."""

    list_key = "messages"
    alone = ()  # types that end or replace the conversation around them

    def __init__(self, provider, model):
        self.provider, self.model = provider, model

    def body(self, turns):
        """Returns the body of several turns, between a first and a last question."""
        return {
            "model": self.model,
            self.list_key: [
                *self.said("Question 0?", "Answer 0."),
                *(unit for turn in turns for unit in turn),
                *self.said("Question 999999?"),
            ],
        }

    def units(self, body):
        return [written(unmarked(item)) for item in body.get(self.list_key) or ()]

    def said(self, question, answer=None):
        messages = [{"role": "user", "content": question}]
        if answer:
            messages.append({"role": "assistant", "content": answer})
        return messages

    def takes(self, value):
        """Returns False for a value that the types allow and the server refuses."""
        return True

    def turn(self, name, value, n, smallest):
        """Returns one sample among its neighbours.

        `smallest` gives the smallest sample of another type, by its `type`.
        """
        raise NotImplementedError

    def words(self, body):
        """Yields the assistant's texts in a body."""
        for message in body.get(self.list_key) or ():
            if message.get("role") == "assistant":
                yield from texts_of(message.get("content"))
                if isinstance(message.get("refusal"), str):
                    yield message["refusal"]


def texts_of(content):
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                yield part[key]


class Responses(Wire):
    list_key = "input"
    alone = ("compaction", "compaction_trigger")

    def turn(self, name, value, n, smallest):
        kind, role = value.get("type"), value.get("role")
        question, answer = self.said(f"Question {n}?", f"Answer {n}.")
        if kind == "compaction_trigger":
            return [value]
        if role == "user":
            return [value, answer]
        if role == "assistant":
            return [question, value, *self.said(f"Question {n}b?", f"Answer {n}b.")]
        if role or kind in ("compaction", "configuration_update"):
            return [value, question, answer]
        return [question, *self.among_neighbours(kind, value, n, smallest), answer]

    def among_neighbours(self, kind, value, n, smallest):
        thought = {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "g"}
        if kind in (None, "reasoning", "item_reference"):
            return [value]
        if kind == "mcp_approval_response":
            request = smallest("mcp_approval_request")
            request["id"] = value["approval_request_id"]
            return [thought, request, value]
        run = [thought, value]
        pairs = self.pair(kind, smallest)
        if pairs and pairs[0] == kind:
            run.append(answer_to(value, smallest(pairs[1])))
        elif pairs:
            run.insert(1, call_for(value, smallest(pairs[0])))
        elif kind == "mcp_call" and value.get("approval_request_id"):
            request = {**smallest("mcp_approval_request"), "id": value["approval_request_id"]}
            response = smallest("mcp_approval_response")
            response["approval_request_id"] = value["approval_request_id"]
            run = [thought, request, response, value]
        program = (value.get("caller") or {}).get("caller_id")
        if program:
            begun = {**smallest("program"), "call_id": program}
            run = [thought, begun, *run[1:], {**smallest("program_output"), "call_id": program}]
            for item in run[2:-1]:
                if "caller" not in item:
                    item["caller"] = value["caller"]
        return run

    def pair(self, kind, smallest):
        """Returns the types of a call and of its result, found by their names."""
        for call in (kind, kind.removesuffix("_output"), kind.removesuffix("_output") + "_call"):
            for result in (f"{call}_output", f"{call.removesuffix('_call')}_output"):
                both = call != result and smallest(call) and smallest(result)
                if both and kind in (call, result):
                    return call, result
        if kind == "mcp_approval_request":
            return kind, "mcp_approval_response"
        return None

    def body(self, turns):
        """Returns the body of the turns; a trigger of a compaction is its last item."""
        last = [unit for turn in turns for unit in turn if unit.get("type") == "compaction_trigger"]
        body = super().body([turn for turn in turns if turn[0] not in last])
        body["input"] += last
        return body


def answer_to(call, result):
    """Returns the result with the id of its call, under the key of its type."""
    own = call.get("call_id", call.get("id"))
    if "approval_request_id" in result:
        result["approval_request_id"] = call["id"]
    elif result["type"] == "local_shell_call_output":
        result["id"] = own
    elif "call_id" in call:
        result["call_id"] = own
    return result


def call_for(result, call):
    if result["type"] == "local_shell_call_output":
        call["call_id"] = result["id"]
    elif "call_id" in result and (result["call_id"] or call["type"] == "tool_search_call"):
        call["call_id"] = result["call_id"]
    return call


class Chat(Wire):
    def turn(self, name, value, n, smallest):
        question, answer = self.said(f"Question {n}?", f"Answer {n}.")
        role = value["role"]
        if role == "user":
            return [value, answer]
        if role in ("system", "developer"):
            return [value, question, answer]
        if role == "tool":
            function = {"name": "weather", "arguments": "{}"}
            call = {"id": value["tool_call_id"], "type": "function", "function": function}
            return [question, {"role": "assistant", "tool_calls": [call]}, value, answer]
        if role == "function":
            call = {"name": value["name"], "arguments": "{}"}
            asked = {"role": "assistant", "content": None, "function_call": call}
            return [question, asked, value, answer]
        calls = value.get("tool_calls") or ()
        if calls:  # these replace the deprecated one
            value.pop("function_call", None)
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": f"result_{n}"} for call in calls
        ]
        if value.get("function_call"):
            name = value["function_call"]["name"]
            results.append({"role": "function", "name": name, "content": f"result_{n}"})
        if results:
            return [question, value, *results, answer]
        return [question, value, *self.said(f"Question {n}b?", f"Answer {n}b.")]


class Anthropic(Wire):
    alone = ("compaction",)
    by_user = ("image", "document", "search_result", "container_upload")
    by_system = ("tool_addition", "tool_removal")

    def said(self, question, answer=None):
        messages = [{"role": "user", "content": [text(question)]}]
        if answer:
            messages.append({"role": "assistant", "content": [text(answer)]})
        return messages

    def units(self, body):
        """Returns the blocks, and a unit for the start of each message with its other keys."""
        found = []
        for message in body.get("messages") or ():
            rest = {key: value for key, value in message.items() if key != "content"}
            found.append("message " + written(rest))
            content = message.get("content")
            blocks = [text(content)] if isinstance(content, str) else content or ()
            found.extend(written(unmarked(block)) for block in blocks)
        return found

    def turn(self, name, value, n, smallest):
        kind = value["type"]
        question, answer = self.said(f"Question {n}?", f"Answer {n}.")
        if kind == "compaction":
            answer["content"].insert(0, value)
            return [question, answer]
        if kind in self.by_system:
            return [question, {"role": "system", "content": [value]}, answer]
        if kind in self.by_user or kind == "text" and "citations" not in value:
            question["content"] += [value, text(f"said_{n}")]
            return [question, answer]
        head = [
            {"type": "thinking", "thinking": f"thought_{n}", "signature": f"sign_{n}"},
            text(f"said_{n}"),
        ]
        own, back, late = self.calls(kind, value, n, smallest)
        if back:
            results = {"role": "user", "content": back}
            answer["content"][:0] = late
            return [question, {"role": "assistant", "content": head + own}, results, answer]
        answer["content"][:0] = head + own + late
        return [question, answer]

    def calls(self, kind, value, n, smallest):
        """Returns the assistant's blocks, results in the user's message, and the blocks after those."""
        own, back, late = [value], [], []
        if kind == "tool_use":
            back = [{"type": "tool_result", "tool_use_id": value["id"], "content": f"result_{n}"}]
        elif kind == "tool_result":
            call = {"type": "tool_use", "id": value["tool_use_id"], "name": "weather", "input": {}}
            if value.get("toolset_name"):
                call["toolset_name"] = value["toolset_name"]
            own, back = [call], [value]
        elif kind == "mcp_tool_use":
            own.append({**smallest("mcp_tool_result"), "tool_use_id": value["id"]})
        elif kind == "server_tool_use":
            result = re.sub("_tool_(regex|bm25)$", "", value["name"]) + "_tool_result"
            own.append({**smallest(result), "tool_use_id": value["id"]})
        elif kind == "mcp_tool_result":
            own.insert(0, {**smallest("mcp_tool_use"), "id": value["tool_use_id"]})
        elif kind.endswith("_tool_result"):
            tool = kind.removesuffix("_tool_result")
            tool = "tool_search_tool_regex" if tool == "tool_search" else tool
            own.insert(0, {**smallest("server_tool_use"), "id": value["tool_use_id"], "name": tool})
        program = (value.get("caller") or {}).get("tool_id")
        if program:
            begun = {"id": program, "name": "code_execution"}
            own.insert(0, {**smallest("server_tool_use"), **begun})
            late = [{**smallest("code_execution_tool_result"), "tool_use_id": program}]
        return own, back, late

    def words(self, body):
        for message in body.get("messages") or ():
            if message.get("role") == "assistant":
                content = message.get("content")
                yield from texts_of(content if isinstance(content, str) else spoken(content))


def spoken(content):
    return [block for block in content or () if block.get("type") == "text"]


def text(said):
    return {"type": "text", "text": said}


class AnthropicMessages(Anthropic):
    """Whole messages: a text equals one text block, and a message is role and content, in any order."""

    def units(self, body):
        def usual(message):
            content = message.get("content")
            text = isinstance(content, str)
            message["content"] = [{"type": "text", "text": content}] if text else content
            keys = ["role", "content", *(set(message) - {"role", "content"})]
            return {key: message[key] for key in keys if message[key] is not None}

        return [written(usual(unmarked(message))) for message in body.get(self.list_key) or ()]
    blocks = {
        "user": ("text", *Anthropic.by_user),
        "assistant": ("text", "thinking", "redacted_thinking"),
        "system": ("text", *Anthropic.by_system),
    }

    def takes(self, value):
        content = value.get("content")
        blocks = content if isinstance(content, list) else ()
        return all(block["type"] in self.blocks[value["role"]] for block in blocks)

    def turn(self, name, value, n, smallest):
        question, answer = self.said(f"Question {n}?", f"Answer {n}.")
        if value["role"] == "user":
            return [value, answer]
        if value["role"] == "system":
            return [question, value, answer]
        return [question, value, *self.said(f"Question {n}b?", f"Answer {n}b.")]


class Gemini(Wire):
    list_key = "contents"
    by_user = ("inlineData", "fileData")

    def said(self, question, answer=None):
        contents = [{"role": "user", "parts": [{"text": question}]}]
        if answer:
            contents.append({"role": "model", "parts": [{"text": answer}]})
        return contents

    def units(self, body):
        found = []
        for content in body.get("contents") or ():
            rest = {key: value for key, value in content.items() if key != "parts"}
            found.append("content " + written(rest))
            found.extend(written(part) for part in content.get("parts") or ())
        return found

    def turn(self, name, value, n, smallest):
        question, answer = self.said(f"Question {n}?", f"Answer {n}.")
        own, back = [value], []
        call, response = value.get("functionCall"), value.get("functionResponse")
        if any(key in value for key in self.by_user):
            question["parts"] += [value, {"text": f"said_{n}"}]
            return [question, answer]
        if call is not None:
            result = {"name": call.get("name"), "response": {"output": f"result_{n}"}}
            result.update({"id": call["id"]} if call.get("id") else {})
            back = [{"functionResponse": result}]
        elif response is not None:
            asked = {"name": response.get("name"), "args": {}}
            asked.update({"id": response["id"]} if response.get("id") else {})
            own, back = [{"functionCall": asked, "thoughtSignature": PNG}], [value]
        else:
            own = paired(value, n)
        said = {"role": "model", "parts": [{"text": f"said_{n}"}, *own]}
        if back:
            return [question, said, {"role": "user", "parts": back}, answer]
        said["parts"] += answer["parts"]
        return [question, said]

    def words(self, body):
        for content in body.get("contents") or ():
            if content.get("role") == "model":
                for part in content.get("parts") or ():
                    if isinstance(part.get("text"), str) and not part.get("thought"):
                        yield part["text"]


def paired(value, n):
    """Returns a part with its counterpart, if it belongs to a tool that the provider runs."""
    pairs = (
        (
            "executableCode",
            "codeExecutionResult",
            {"code": "x", "language": "PYTHON"},
            {"outcome": "OUTCOME_OK"},
        ),
        ("toolCall", "toolResponse", {"toolType": "URL_CONTEXT"}, {"toolType": "URL_CONTEXT"}),
    )
    for first, second, call, result in pairs:
        for key, other, half in ((first, second, result), (second, first, call)):
            if value.get(key) is not None:
                own = value[key].get("id")
                half = {**half, **({"id": own} if own else {})}
                half = {other: half}
                return [value, half] if key == first else [half, value]
    return [value]


class Tools(Wire):
    """The tools of a body, between tools that are functions."""

    def __init__(self, provider, model, conversation, function):
        super().__init__(provider, model)
        self.conversation, self.function = conversation, function

    def body(self, turns):
        body = self.conversation.body([])
        body["tools"] = [self.function("mark_0"), *(tool for turn in turns for tool in turn)]
        return body

    def units(self, body):
        return [written(unmarked(tool)) for tool in body.get("tools") or ()]

    def turn(self, name, value, n, smallest):
        return [value, self.function(f"mark_{n}")]

    def words(self, body):
        return self.conversation.words(body)


class OneTool(Tools):
    """A tool alone: functions of several of Google's tools are one list to the model."""

    def body(self, turns):
        return {**self.conversation.body([]), "tools": [tool for turn in turns for tool in turn]}

    def turn(self, name, value, n, smallest):
        return [value]
