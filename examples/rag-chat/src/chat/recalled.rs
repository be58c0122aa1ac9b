//! Earlier turns that left the window, and that a question needs again. Their index is in a file next to the
//! conversations. It can be lost: it is built again from the conversation.

use super::Chat;
use crate::fingerprint::fingerprint;
use crate::private;
use context_window::{Conversation, PlanRequest, RetrievedItems};
use context_window_recall::{Opened, RebuildReason, Recall};
use std::path::{Path, PathBuf};

/// The index over the messages of the session.
pub(super) struct Recalled {
    folder: PathBuf,
    path: PathBuf,
    /// `None` with `--no-recall`.
    recall: Option<Recall>,
    /// True if the user knows that the index is not on disk.
    is_behind: bool,
}

impl Recalled {
    /// Creates a place for index files.
    pub(super) fn new(data: &Path) -> Self {
        Self { folder: data.to_owned(), path: PathBuf::new(), recall: None, is_behind: false }
    }
}

impl Chat {
    /// Opens the index of the session. Returns a remark on an index that was built again. The next save
    /// replaces its file.
    pub(super) fn open_recall(&mut self) -> Option<String> {
        if self.args.no_recall {
            return None;
        }
        // A session may have any name, and a file may not.
        let name = format!("chats-{:016x}.recall", fingerprint(self.saved.id.as_bytes()));
        let path = self.recalled.folder.join(name);
        let (recall, said) = match Recall::open(&path, &self.log) {
            Ok((recall, opened)) => (recall, remark(opened, &self.log)),
            Err(error) => {
                self.fail(format!("Earlier turns are found, but not indexed on disk: {error}"));
                (Recall::new(), None)
            }
        };
        (self.recalled.path, self.recalled.recall) = (path, Some(recall));
        self.recalled.is_behind = false;
        said
    }

    /// Saves the index, after the conversation.
    pub(super) fn save_recall(&mut self) {
        let recalled = &mut self.recalled;
        let Some(recall) = recalled.recall.as_mut().filter(|_| !self.saved.is_behind) else { return };
        recall.update(&self.log);
        let saved = recall.save().map_err(|error| error.to_string());
        let saved = saved.and_then(|()| {
            let is_file = recalled.path.is_file();
            let restricted = if is_file { private::restrict_file(&recalled.path) } else { Ok(()) };
            restricted.map_err(|error| format!("{}: {error}", recalled.path.display()))
        });
        let was_behind = std::mem::replace(&mut recalled.is_behind, saved.is_err());
        if let Err(error) = saved
            && !was_behind
        {
            self.fail(format!("The index of earlier turns is not saved; the conversation is: {error}"));
        }
    }

    /// Adds the earlier turns that the live question needs to its documents.
    pub(super) fn with_recalled(&mut self, documents: RetrievedItems) -> RetrievedItems {
        let Some(recall) = &mut self.recalled.recall else { return documents };
        let request = PlanRequest::new(&self.log).with_retrieved(documents);
        recall.for_request(request).retrieved().clone()
    }
}

/// Returns a remark on an index that was built again, unless the session is new.
fn remark(opened: Opened, log: &Conversation) -> Option<String> {
    let Opened::Rebuilt(reason) = opened else { return None };
    let why = match reason {
        RebuildReason::Missing if log.messages().len() <= 1 => return None,
        RebuildReason::Missing => "did not exist",
        RebuildReason::OtherVersion => "was of another version",
        RebuildReason::OtherConversation => "was of another conversation",
        _ => "was damaged",
    };
    Some(format!("The index of earlier turns {why}; it is built from the conversation."))
}
