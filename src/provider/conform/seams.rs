//! Counts of adjacent messages. They determine the number of messages that merge and of placeholder messages
//! that a target requires (turn order, rule H5). The counts of a sequence are sums over its parts and contain
//! no text. A change of one message therefore updates the sum of a long sequence without reading it again.

use super::{Missing, TargetProfile};
use crate::{
    message::{Message, Role, WireFormat},
    provider::model::SystemPlace,
};

/// The counts of adjacent messages in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seams {
    /// The roles of the first and the last message, or `None` for an empty sequence.
    ends: Option<(Role, Role)>,
    /// The number of pairs of adjacent user messages.
    users: u32,
    /// The number of pairs of adjacent assistant messages.
    assistants: u32,
    /// The number of tool results with a user message right after them.
    after_results: u32,
    /// The number of messages whose form depends on more than the roles of their neighbours.
    others: u32,
}

impl Seams {
    pub(crate) const NOTHING: Self =
        Self { ends: None, users: 0, assistants: 0, after_results: 0, others: 0 };

    fn from_role(role: Role) -> Self {
        Self { ends: Some((role, role)), ..Self::NOTHING }
    }

    /// Returns the counts of this sequence followed by another one.
    pub(crate) fn join(self, after: Self) -> Self {
        // An empty sequence adds nothing, so sequences can be joined in any grouping with the same result.
        let (Some((first, before)), Some((next, last))) = (self.ends, after.ends) else {
            return if self.is_nothing() { after } else { self };
        };
        let is = |pair: (Role, Role)| u32::from((before, next) == pair);
        Self {
            ends: Some((first, last)),
            users: self.users + after.users + is((Role::User, Role::User)),
            assistants: self.assistants + after.assistants + is((Role::Assistant, Role::Assistant)),
            after_results: self.after_results + after.after_results + is((Role::Tool, Role::User)),
            others: self.others + after.others,
        }
    }

    pub(crate) fn is_nothing(self) -> bool {
        self.ends.is_none()
    }

    /// Returns the role of the first message, or `None` for an empty sequence.
    pub(crate) fn first(self) -> Option<Role> {
        self.ends.map(|(first, _)| first)
    }

    /// Returns the role of the last message, or `None` for an empty sequence.
    pub(crate) fn last(self) -> Option<Role> {
        self.ends.map(|(_, last)| last)
    }
}

/// The changes that a target makes to a sequence: the numbers of placeholder messages, and of messages that
/// merge with their neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeamChanges {
    pub(crate) leads: bool,
    pub(crate) continues: bool,
    pub(crate) bridges: u32,
    pub(crate) merged_users: u32,
    pub(crate) merged_assistants: u32,
}

impl TargetProfile {
    /// Returns the counts of a single message of the conversation, as this target accepts it.
    pub(crate) fn seams(&self, sent: &Message) -> Seams {
        let thinks = !sent.reasoning().is_empty()
            && matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::ChatTemplate);
        // Instructions move with their neighbours. Opaque parts may be dropped together with others. The
        // reasoning of merged messages becomes one text.
        let is_other = sent.role().instructs() || sent.has_opaque_parts() || thinks;
        Seams { others: u32::from(is_other), ..Seams::from_role(sent.role()) }
    }

    /// Returns the changes that [`TargetProfile::sequence`] makes to messages with these counts, behind the
    /// leading instructions. Returns `None` if the changes depend on more than roles.
    pub(crate) fn changes_at(&self, seams: Seams) -> Option<SeamChanges> {
        let (first, last) = seams.ends.filter(|_| seams.others == 0)?;
        let accepts = &self.accepts;
        // Anthropic continues an assistant message at the end, which is sent without its trailing white
        // space. That depends on the text.
        if last == Role::Assistant && !accepts.user_last && self.wire_format == WireFormat::Anthropic {
            return None;
        }
        let count = |counts: bool, number: u32| if counts { number } else { 0 };
        Some(SeamChanges {
            leads: accepts.user_first && first != Role::User,
            continues: accepts.user_last && last == Role::Assistant,
            bridges: count(!accepts.user_after_results, seams.after_results),
            merged_users: count(accepts.alternates, seams.users),
            merged_assistants: count(accepts.alternates, seams.assistants),
        })
    }

    /// Returns the placeholder messages that a target may require: a first, a middle and a last one.
    pub(crate) fn placeholders() -> [Message; 3] {
        [Missing::Lead, Missing::Bridge, Missing::Continue].map(Missing::message)
    }

    /// Returns true if several instructions at the beginning become one text.
    pub(crate) fn joins_instructions(&self) -> bool {
        self.accepts.system == SystemPlace::Leading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::model::Model;
    use proptest::prelude::*;

    fn role() -> impl Strategy<Value = Role> {
        prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool)]
    }

    proptest! {
        /// The counts summed over any split predict the changes that the sequence makes.
        #[test]
        fn seams_count_the_changes_of_the_sequence(
            roles in prop::collection::vec(role(), 1..12),
            cut in 0usize..12,
            name in prop_oneof![
                Just("claude-sonnet-5"), Just("claude-3-opus"), Just("mistral-large-latest"),
                Just("gemini-2.5-pro"), Just("gpt-4o"),
            ],
        ) {
            let profile = TargetProfile::from_model(&Model::named(name).unwrap());
            let messages: Vec<Message> = roles.iter().enumerate().map(|(at, role)| match role {
                Role::Assistant => Message::assistant(format!("text {at}")),
                Role::Tool => Message::tool(format!("c{at}"), "result"),
                _ => Message::user(format!("text {at}")),
            }).collect();
            let fold = |messages: &[Message]| {
                messages.iter().fold(Seams::NOTHING, |all, one| all.join(profile.seams(one)))
            };
            let (before, after) = messages.split_at(cut.min(messages.len()));
            let seams = fold(before).join(fold(after));
            prop_assert_eq!(seams, fold(&messages));
            prop_assert_eq!(Seams::NOTHING.join(seams), seams.join(Seams::NOTHING));
            let Some(changes) = profile.changes_at(seams) else {
                return Ok(());
            };
            let sent = profile.sequence(messages);
            let inserted = |why: Missing| sent.inserted.iter().filter(|one| one.why == why).count() as u32;
            let merged = |role: Role| sent.merged.iter().filter(|one| **one == role).count() as u32;
            prop_assert!(sent.rewritten.is_empty());
            prop_assert_eq!(changes, SeamChanges {
                leads: inserted(Missing::Lead) > 0,
                continues: inserted(Missing::Continue) > 0,
                bridges: inserted(Missing::Bridge),
                merged_users: merged(Role::User),
                merged_assistants: merged(Role::Assistant),
            });
        }
    }
}
