//! Conversations for tests.

use context_window::{Conversation, Message, Role, ToolCall};
use proptest::prelude::*;
use std::path::PathBuf;

const WORDS: [&str; 24] = [
    "key", "pot", "blue", "door", "refund", "days", "cat", "sofa", "the", "a", "is", "my", "to", "city",
    "Ida", "train", "report", "plan", "钥匙", "花盆", "кот", "Straße", "3.50", "naïve",
];

/// A step of a conversation: a message, a rewind to one of the last messages, a fresh start or its end.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Say(Message),
    Rewind(usize),
    /// A call of the tool `recall` with its result, or of another tool.
    Call(String, bool),
    StartFresh,
    Undo,
}

/// Returns a text of up to `most` words.
fn text(most: usize) -> impl Strategy<Value = String> {
    let word = prop::sample::select(&WORDS[..]);
    let end = prop::sample::select(&[" ", " ", " ", ". ", "\n", "! "][..]);
    prop::collection::vec((word, end), 0..most)
        .prop_map(|words| words.into_iter().flat_map(|(word, end)| [word, end]).collect())
}

fn step() -> impl Strategy<Value = Step> {
    let role = prop::sample::select(&[Role::User, Role::Assistant, Role::User, Role::System][..]);
    let result = (text(12), any::<bool>()).prop_map(|(text, reads_back)| Step::Call(text, reads_back));
    let text = prop_oneof![6 => text(12), 3 => text(90), 1 => text(900)];
    let name = prop::option::of(prop::sample::select(&["Ida", "Ben"][..]));
    prop_oneof![
        24 => (role, text, name).prop_map(|(role, text, name)| {
            let message = Message::new(role, text);
            Step::Say(match name {
                Some(name) => message.with_name(name),
                None => message,
            })
        }),
        2 => (1usize..6).prop_map(Step::Rewind),
        2 => result,
        1 => Just(Step::StartFresh),
        1 => Just(Step::Undo),
    ]
}

/// Returns steps of a conversation.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..most)
}

/// Does a step.
pub(crate) fn apply(log: &mut Conversation, step: &Step) {
    match step {
        Step::Say(message) => drop(log.push(message.clone())),
        Step::Call(text, reads_back) => {
            let (id, name) =
                (format!("c{}", log.messages().len()), if *reads_back { "recall" } else { "run" });
            log.push(Message::assistant("").with_tool_calls([ToolCall::new(&id, name, "{}")]));
            log.push(Message::tool(id, text));
        }
        Step::Rewind(back) => {
            if let Some(at) = log.messages().len().checked_sub(*back) {
                // A message that an earlier rewind removed is refused.
                drop(log.rewind_before(format!("m{at}")));
            }
        }
        Step::StartFresh => log.start_fresh(),
        Step::Undo => drop(log.undo_compaction()),
    }
}

pub(crate) fn talk(steps: &[Step]) -> Conversation {
    let mut log = Conversation::new();
    steps.iter().for_each(|step| apply(&mut log, step));
    log
}

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("context-window-recall-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
