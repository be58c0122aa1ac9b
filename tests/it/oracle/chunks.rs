//! Joined chunks (rule S14). The oracle chooses none, but it knows which documents follow each other.

use super::{texts::words, *};
use context_window::{ContextPlan, RagItem};

/// Returns the bytes with which a document begins and another one of its source ends, if it follows that one.
fn overlap(before: &RagItem, after: &RagItem) -> Option<usize> {
    if before.origin.is_none()
        || before.origin != after.origin
        || before.messages.is_some() != after.messages.is_some()
    {
        return None;
    }
    let (first, second) = (&*before.text, &*after.text);
    let is_overlap = |bytes: &usize| {
        second.is_char_boundary(*bytes) && *bytes < second.len() && first.ends_with(&second[..*bytes])
    };
    if let (Some(one), Some(two)) = (&before.span, &after.span)
        && let Some(length) = one.end.checked_sub(two.start)
    {
        let length = length as usize;
        let characters: String = second.chars().take(length).collect();
        let whole = second.chars().count() > length;
        let found = [Some(length), whole.then_some(characters.len())];
        if let Some(bytes) = found.into_iter().flatten().find(is_overlap) {
            return (one.start < two.start && one.end < two.end).then_some(bytes);
        }
    }
    let least = match (before.position, after.position) {
        (Some(one), Some(two)) if two.checked_sub(1) == Some(one) => 3,
        (Some(_), Some(_)) => return None,
        _ => 8,
    };
    let longest = (1..first.len().min(second.len())).rev().find(is_overlap)?;
    (words(&second[..longest]).len() >= least).then_some(longest)
}

/// Checks that joined chunks follow each other, and that no two texts of one chunk are apart although one
/// follows the other. Texts of the last prompt are not looked at.
fn chunks_are_joined_where_they_follow(session: &Session, plan: &ContextPlan) -> Result<(), TestCaseError> {
    let documents = session.retrieved();
    let oracle = Oracle::new(session);
    let is_new = |id: &str| !oracle.set().contains(&id);
    // A shorter form is no part of its source (rule S17).
    let is_whole = |row: &&PlannedItem| row.section == Section::Rag && row.form().is_none();
    let rows: Vec<&PlannedItem> = plan.included.iter().filter(is_whole).collect();
    // The text of each document, if only one has its id.
    let item = |row: &PlannedItem| {
        let mut items = documents.iter().filter(|item| *item.id() == row.id);
        let first = items.next()?;
        items.all(|other| other == first).then_some(first)
    };
    let mut chains: Vec<Vec<&RagItem>> = Vec::new();
    for row in rows {
        let Some(item) = item(row) else { return Ok(()) };
        if row.continues().is_none() {
            chains.push(vec![item]);
            continue;
        }
        let chain = chains.last_mut().unwrap();
        let before = chain[chain.len() - 1];
        prop_assert!(overlap(before, item).is_some(), "{:?} is joined to {:?}", item, before);
        chain.push(item);
    }
    for before in &chains {
        for after in &chains {
            let (end, start) = (before[before.len() - 1], after[0]);
            // A chunk that follows and precedes parts of one text is joined to one end only.
            let are_single = before.len() == 1 && after.len() == 1;
            if are_single
                && start.id() != end.id()
                && is_new(start.id().as_str())
                && is_new(end.id().as_str())
            {
                prop_assert_eq!(overlap(end, start), None, "{:?} is apart from {:?}", start, end);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(generate::cases(3_000, 100_000))]

    #[test]
    fn joined_chunks_follow_each_other(mut session in prop_oneof![generate::session(), generate::crowded()]) {
        session.config.rag.join_chunks = true;
        let plan = session.plan().unwrap();
        chunks_are_joined_where_they_follow(&session, &plan)?;
    }
}
