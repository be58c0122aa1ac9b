"""An application's use of the module, for type checkers only. Nothing here is run."""

from __future__ import annotations

from context_window import (
    Conversation,
    Document,
    Frame,
    Hit,
    Manager,
    Plan,
    Recall,
    Store,
    evaluate,
    plan_batch,
)


def turn(manager: Manager, log: Conversation, question: str) -> Plan:
    log.push({"role": "user", "content": question})
    plan = manager.plan(log, documents=[Document("a", 0.5, "text"), ("b", 0.4, "text")], prompt_budget=2_000)
    tokens: int = plan.estimated_tokens_total + plan.usage["limit"]
    names: list[str] = [item.id for item in plan.included if item.token_estimate > tokens]
    why: list[str] = [item.why for item in plan.excluded] + names
    reply = {"role": "assistant", "content": " ".join(why)}
    committed = log.push_reply(plan, reply, {"prompt_tokens": 3, "completion_tokens": 4})
    print(committed.id, plan.messages("anthropic"), plan.explain("a").enters_at)
    return plan


def recalled(manager: Manager, log: Conversation) -> list[str]:
    recall = Recall(log, "talk.recall", max_hits=20, dates={"m0": 1_700_000_000})
    built = recall.opened is not None and recall.opened["reason"] == "missing"
    plan = manager.plan(log, recall=recall if built else True)
    recall.save()
    hits: list[Hit] = recall.search("refund")
    dates: list[int] = [hit.date for hit in hits if hit.date is not None]
    first: list[str] = [item.quoted_messages[0] for item in plan.included if item.quoted_messages is not None]
    return [*first, str(recall.forget(["m0"]) + recall.update()), *map(str, dates)]


def measured(sessions: list[str]) -> list[str]:
    options = {"compaction": {"enabled": False}}
    scores = evaluate(sessions, budgets=[512], policies=["default", ("few+recall", options)], baselines=["oracle"])
    found: int = sum(row["questions_whole"] for row in scores.rows if not row["baseline"])
    frame: Frame = scores.to_frame()
    return [str(found), *frame.column_names, *(id for row in scores.questions for id in row["missing"])]


async def other(manager: Manager, store: Store) -> int:
    log, revision = store.load("talk")
    plan = await manager.plan_async(log, focus="refunds")
    job = manager.compaction_due(log)
    if job is not None:
        manager.apply_summary(log, job, job.digest())
    frame: Frame = plan_batch(plan.to_frame(), model=plan.model)
    columns: list[str] = frame.column_names
    over: int = plan.overflow["tokens"] if plan.overflow is not None else 0
    text: str | None = store.pop_item("items")
    print(columns, over, text, store.list()[0]["revision"])
    return store.save("talk", log, revision)
