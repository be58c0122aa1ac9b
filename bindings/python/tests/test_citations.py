"""Citations in replies: labels of documents, and quotes of their texts."""

from __future__ import annotations

import pickle

import context_window as cw
import pytest
from context_window import Conversation, Manager

DOCUMENTS = [
    {"id": "refunds", "text": "Refunds take 5 days. We pay by card.", "score": 0.9},
    {"id": "hours", "text": "Open from 9 to 18.", "score": 0.2},
]


def plan(labels: bool = True) -> cw.Plan:
    log = Conversation([{"role": "user", "content": "How long do refunds take?"}])
    return Manager("gpt-4o", config={"rag": {"labels": labels}}).plan(log, documents=DOCUMENTS)


def test_documents_have_labels() -> None:
    labelled = plan()
    assert labelled.citations == {1: "refunds", 2: "hours"}
    assert [item.label for item in labelled.included] == [1, 2, None]
    assert '<document label="[1]" id="refunds">' in str(labelled.messages())
    assert plan(False).citations == {} and "label" not in str(plan(False).messages())


def test_citations_are_checked() -> None:
    reply = 'Bär: they \u201ctake 5 days.\u201d [1], "by cash" [1] or [2, 7] and `code[9]`.'
    found = plan().check_citations(reply)
    assert [(one["label"], one["document"], one["verdict"]) for one in found] == [
        (1, "refunds", "valid"),
        (1, "refunds", "misquoted"),
        (2, "hours", "valid"),
        (7, None, "unknown"),
    ]
    assert [one["quote"] for one in found] == ["take 5 days.", "by cash", None, None]
    assert [reply[one["start"] : one["end"]] for one in found] == ["[1]", "[1]", "[2, 7]", "[2, 7]"]
    assert pickle.loads(pickle.dumps(plan())).check_citations(reply) == found


def test_a_document_keeps_its_label_in_the_conversation() -> None:
    log = Conversation([{"role": "user", "content": "How long do refunds take?"}])
    manager = Manager("gpt-4o", config={"rag": {"labels": True}})
    first = manager.plan(log, documents=DOCUMENTS)
    log.push_reply(first, {"role": "assistant", "content": "5 days [1]."})
    log.push({"role": "user", "content": "And on Sundays?"})
    new = {"id": "sundays", "text": "Closed on Sundays.", "score": 1.0}
    second = manager.plan(log, documents=[new, DOCUMENTS[1]])
    assert second.citations == {2: "hours", 3: "sundays"}
    assert second.check_citations("Refunds [1]")[0]["verdict"] == "not_sent"


def test_native_citations_are_checked() -> None:
    log = Conversation([{"role": "user", "content": "How long do refunds take?"}])
    manager = Manager("claude-sonnet-4-5", config={"rag": {"format": "native"}})
    native = manager.plan(log, documents=DOCUMENTS)
    assert native.native_documents == ["refunds", "hours"] and plan().native_documents == []
    blocks = native.messages("anthropic")[0]["content"]
    assert [block.get("title") for block in blocks] == ["refunds", "hours", None]
    assert all(block["citations"] == {"enabled": True} for block in blocks[:2])

    def cited(document: int, text: str) -> dict[str, object]:
        return {"type": "char_location", "document_index": document, "cited_text": text}

    citations = [cited(0, "take  5 days"), cited(1, "take 5 days"), cited(2, "by card")]
    reply = {"role": "assistant", "content": [{"type": "text", "text": "Soon.", "citations": citations}]}
    found = native.check_native_citations(reply)
    assert [(one["document"], one["verdict"]) for one in found] == [
        ("refunds", "valid"),
        ("hours", "misquoted"),
        (None, "unknown"),
    ]
    assert pickle.loads(pickle.dumps(native)).check_native_citations(reply) == found


def test_structured_output_and_citations_exclude_each_other() -> None:
    manager = Manager("claude-sonnet-4-5", config={"rag": {"format": "native"}})
    log = Conversation([{"role": "user", "content": "How long do refunds take?"}])
    with pytest.raises(cw.InputError, match="structured output"):
        manager.plan(log, documents=DOCUMENTS, structured_output=True)
    assert manager.plan(log, structured_output=True).included
