//! Commands: `/name` and its arguments, as an alternative to a question.

/// Name, arguments and effect of each command.
pub const COMMANDS: [(&str, &str, &str); 16] = [
    ("pin", "TEXT or ID", "keeps a note, or a message, in every prompt"),
    ("unpin", "ID", "removes a pin"),
    ("ttl", "[ID] TURNS", "sets the number of turns that a pin stays; without an id, of the newest pin"),
    ("drop", "ID", "excludes a document from now on, or includes it again; removes a pin"),
    ("compact", "", "previews a compaction, and applies it if you confirm"),
    ("fresh", "", "archives all messages so far; they stay in the history"),
    (
        "undo",
        "[ID]",
        "reverts the newest compaction or fresh start, or archives a message and all later ones",
    ),
    (
        "model",
        "[NAME]",
        "shows or changes the model: offline, offline-4k, gpt-5.4-mini, ollama/NAME, local/NAME",
    ),
    ("retry", "", "asks the last question again, if it has no reply"),
    ("explain", "ID", "explains why an item is in or out, and which budgets would change that"),
    ("diff", "", "shows the changes between the last two prompts, with causes"),
    ("cost", "", "shows tokens and dollars so far, and of the next prompt"),
    ("save", "FILE", "writes the session for plan-inspect"),
    ("sessions", "[NAME]", "lists the sessions of this folder, or opens one"),
    ("help", "", "shows this list"),
    ("quit", "", "ends the chat; the next run continues it"),
];

/// A line of user input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Question(String),
    /// A command of [`COMMANDS`], with its arguments.
    Command(&'static str, String),
    /// An error: the command does not exist.
    Unknown(String),
}

/// Reads a line. Returns `None` if it is empty. `//` begins a question with a slash.
pub fn read(line: &str) -> Option<Line> {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return (!line.is_empty()).then(|| Line::Question(line.into()));
    };
    if command.starts_with('/') {
        return Some(Line::Question(command.into()));
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let known = COMMANDS.iter().find(|(known, ..)| *known == name);
    Some(match known {
        Some((known, ..)) => Line::Command(known, rest.trim().into()),
        None => {
            let near = COMMANDS.iter().find(|(known, ..)| known.starts_with(name.get(..1).unwrap_or("?")));
            let near = near.map(|(near, ..)| format!(" Did you mean /{near}?")).unwrap_or_default();
            Line::Unknown(format!(
                "There is no command /{name}.{near} /help lists them; // starts a question with a slash."
            ))
        }
    })
}

/// Returns the list of commands.
pub fn help() -> String {
    let lines =
        COMMANDS.iter().map(|(name, after, does)| format!("{:<22} {does}", format!("/{name} {after}")));
    let keys = "Tab goes to notices, to the items of the prompt, and back. Among items: arrows, p pins or unpins, x excludes, / filters, \
        a i o show all, included or excluded ones, s sorts, r reverses, Enter shows one. PgUp and PgDn scroll. Alt-Enter breaks \
        the line, and pasted lines stay lines. Ctrl-C stops a reply, Ctrl-D ends.";
    lines.chain([keys.to_owned()]).collect::<Vec<_>>().join("\n")
}
