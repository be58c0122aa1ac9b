//! A folder of documents, and a chat over it.

use clap::Parser;
use rag_chat::{
    args::Args,
    chat::Chat,
    event::{Event, Tasks},
    models::Environment,
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Documents of a small shop.
pub const SHOP: [(&str, &str); 4] = [
    (
        "kettles.md",
        "# Kettles\n\nThe Wren holds one litre and whistles when the water boils.\n\nThe Finch holds two litres and is quiet.",
    ),
    ("terms/refunds.md", "# Refunds\n\nA refund takes five days after the parcel came back to us."),
    ("terms/post.txt", "Postage is four crowns. Parcels above two kilograms cost nine crowns."),
    ("hours.md", "# Hours\n\nThe shop is open from nine to six, and on Saturdays from nine to one."),
];

/// A folder with these files, and one for index and conversations.
pub struct Place {
    pub folder: TempDir,
    pub data: TempDir,
}

impl Place {
    pub fn with(files: &[(&str, &str)]) -> Self {
        let place = Self { folder: TempDir::new().unwrap(), data: TempDir::new().unwrap() };
        files.iter().for_each(|(path, text)| place.write(path, text.as_bytes()));
        place
    }

    pub fn shop() -> Self {
        Self::with(&SHOP)
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// Returns an environment with these variables.
pub fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Arc::new(move |name| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
}

/// A chat with its event channel and runtime.
pub struct Run {
    pub chat: Chat,
    events: Receiver<Event>,
    _runtime: Runtime,
}

impl Run {
    /// Starts a chat with these arguments, and waits until the folder is indexed.
    pub fn new(place: &Place, arguments: &[&str], environment: &Environment) -> Self {
        let mut run =
            Self::unsettled(place.folder.path(), place.data.path(), arguments, environment).unwrap();
        run.settle();
        run
    }

    pub fn unsettled(
        folder: &Path,
        data: &Path,
        arguments: &[&str],
        environment: &Environment,
    ) -> anyhow::Result<Self> {
        let folder: PathBuf = folder.into();
        let args = ["rag-chat", folder.to_str().unwrap()].into_iter().chain(arguments.iter().copied());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (sender, events) = channel();
        let tasks = Tasks { runtime: runtime.handle().clone(), sender };
        let chat = Chat::open(Args::parse_from(args), data, environment.clone(), tasks)?;
        Ok(Self { chat, events, _runtime: runtime })
    }

    /// Starts a chat with the offline answerer.
    pub fn offline(place: &Place, arguments: &[&str]) -> Self {
        Self::new(place, arguments, &environment(&[]))
    }

    /// Handles events until no work is running.
    pub fn settle(&mut self) {
        self.until("nothing to be on its way", |chat| !chat.is_busy());
    }

    /// Handles events until the condition holds.
    pub fn until(&mut self, what: &str, is: impl Fn(&Chat) -> bool) {
        while !is(&self.chat) {
            let event = self.events.recv_timeout(Duration::from_secs(60));
            self.chat.handle(
                event.unwrap_or_else(|error| panic!("waited for {what}: {error}; {:?}", self.chat.remarks)),
            );
        }
    }

    /// Sends a line and waits for its result.
    pub fn enter(&mut self, line: &str) -> &mut Self {
        assert!(self.chat.enter(line), "{line} ends the chat");
        self.settle();
        self
    }

    /// Ends the chat and returns its number of messages.
    pub fn close(self) -> usize {
        let messages = self.chat.log.messages().len();
        self.chat.close().unwrap();
        messages
    }

    /// Returns the text of the newest message.
    pub fn last(&self) -> &str {
        self.chat.log.messages().last().unwrap().text()
    }

    /// Returns the chat's last remark.
    pub fn said(&self) -> &str {
        &self.chat.remarks.last().unwrap().text
    }

    /// Returns true if the chat made this remark.
    pub fn has_said(&self, text: &str) -> bool {
        self.chat.remarks.iter().any(|remark| remark.text.contains(text))
    }

    /// Returns the texts of the conversation.
    pub fn texts(&self) -> Vec<String> {
        self.chat.log.messages().iter().map(|message| message.text().to_owned()).collect()
    }
}
