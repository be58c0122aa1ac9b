//! Sessions that are replayed: every k-th prompt is planned and answered, and due compactions are made.

use crate::{application::Application, error::Error, result::TurnSums};
use context_window::{Conversation, ItemId, Message, Role};

/// A replayed session up to a message.
#[derive(Default)]
pub(crate) struct Replay {
    pub(crate) log: Conversation,
    pub(crate) sums: TurnSums,
    prompts: usize,
}

impl Replay {
    /// Adds a message of the recorded session. Before a reply, plans its prompt if its turn has come.
    pub(crate) fn push(&mut self, message: &Message, application: &Application<'_>) -> Result<(), Error> {
        // A conversation that begins with a reply has no prompt before it.
        if message.role() != Role::Assistant || self.log.messages().is_empty() {
            self.log.push(message.clone());
            return Ok(());
        }
        self.prompts += 1;
        if application.every == 0 || !self.prompts.is_multiple_of(application.every) {
            self.log.push(message.clone());
            return Ok(());
        }
        let plan = application.plan(&self.log)?;
        self.sums.add(&application.sums(&plan));
        // The recorded reply is committed in place of a model's, so the window continues as in the
        // application.
        self.log.push_reply(&plan, message.clone(), None);
        self.sums.compactions += u64::from(application.compact_if_due(&mut self.log)?);
        Ok(())
    }
}

/// Returns an id that no message or note of a conversation has. The default id of a message is its position,
/// which a recorded message may have as its own id.
pub(crate) fn free_id(log: &Conversation, name: &str) -> ItemId {
    let is_taken =
        |id: &str| log.position_of_message(id).is_some() || log.notes().any(|note| note.id().as_str() == id);
    let mut id = name.to_owned();
    while is_taken(&id) {
        id.push('+');
    }
    id.into()
}
