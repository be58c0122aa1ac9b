//! The program in a real terminal, through tmux. Without tmux these tests report it and skip.

use crate::{
    server::{Reply, Server, Wire},
    support::Place,
};
use context_window::{Conversation, Role};
use context_window_store::SessionStore;
use std::{
    io::Write,
    ops::Deref,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

use context_window_testing::tmux::Tmux;

/// Environment variables that would select a model.
const UNSET: [&str; 4] = ["NO_COLOR", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];

/// A terminal for the program.
struct Terminal(Tmux);

impl Deref for Terminal {
    type Target = Tmux;

    fn deref(&self) -> &Tmux {
        &self.0
    }
}

impl Terminal {
    /// Opens a terminal. Returns `None` with a message if tmux is not installed.
    fn open(name: &str, size: (u16, u16)) -> Option<Self> {
        if !Tmux::is_here() {
            let reason = "tmux or /proc is not here, so the screen was not tried in a real terminal";
            eprintln!("*** {reason} ***");
            // `./check` lists the skipped tests.
            if let Some(list) = std::env::var_os("CONTEXT_WINDOW_SKIPPED") {
                let mut list = std::fs::OpenOptions::new().append(true).create(true).open(list).unwrap();
                writeln!(list, "rag-chat screen {name}\t{reason}").unwrap();
            }
            return None;
        }
        Some(Self(Tmux::open(format!("rag-chat-{name}-{}", std::process::id()), size, &UNSET)))
    }

    fn start(&self, folder: &Path, data: &Path, arguments: &str) {
        let binary = env!("CARGO_BIN_EXE_rag-chat");
        let project = folder.parent().unwrap().display();
        let folder = folder.file_name().unwrap().to_string_lossy();
        self.type_in(&format!(
            "cd {project}; clear; {binary} {folder} --data {} {arguments}",
            data.display()
        ));
    }

    /// Presses Escape `times` times.
    fn escape(&self, times: usize) {
        self.keys(&vec!["Escape"; times]);
    }

    /// Kills the program in the terminal.
    fn kill(&self) {
        self.signal("KILL");
    }

    /// Sends a signal to the program in the terminal.
    fn signal(&self, name: &str) {
        let shell = String::from_utf8(self.tmux(&["display", "-p", "#{pane_pid}"]).stdout).unwrap();
        let shell = shell.trim();
        let programs = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {programs}")]).status().unwrap();
        assert!(sent.success() && !programs.trim().is_empty(), "{programs}");
    }

    /// Saves the screen's content for the documentation.
    fn keep(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screens");
        std::fs::create_dir_all(&folder).unwrap();
        let lines: Vec<String> = self.picture().lines().map(|line| line.trim_end().to_owned()).collect();
        std::fs::write(folder.join(name), lines.join("\n") + "\n").unwrap();
    }
}

/// Returns the session on disk. A session starts with its first question, so it is empty until that is saved.
fn stored(data: &Path) -> Conversation {
    let store = SessionStore::open_read_only(&format!("sqlite:{}", data.join("chats.db").display()));
    match store.unwrap().load("chat") {
        Ok((log, _)) => log,
        Err(error) if error.kind() == context_window_store::ErrorKind::NotFound => Conversation::new(),
        Err(error) => panic!("{error}"),
    }
}

fn questions(log: &Conversation) -> usize {
    log.messages().iter().filter(|message| message.role() == Role::User).count()
}

/// Returns the folder of the project's own documentation.
fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize().unwrap()
}

const QUESTIONS: [&str; 30] = [
    "How does a pin with a TTL expire?",
    "What is a sticky window?",
    "How are tool calls kept with their results?",
    "What does the safety buffer do?",
    "How is the prompt budget computed?",
    "Which tokenizers are exact?",
    "How are tokens of an unknown model estimated?",
    "What does a usage report teach?",
    "When is a conversation compacted?",
    "What stays after a compaction?",
    "Can a compaction be undone?",
    "What is archived, and is anything deleted?",
    "How are sessions kept in SQLite?",
    "What happens when two writers meet?",
    "How does a journal survive a crash?",
    "What breaks a prompt cache?",
    "Where do cache breakpoints go?",
    "How are documents ordered in the prompt?",
    "What does backfill do with documents?",
    "Why is a document out?",
    "What does explain show?",
    "How do two plans differ?",
    "What does replay do?",
    "Which providers are known?",
    "How are thoughts of a model kept?",
    "What is a placeholder result?",
    "How are plans snapshot-tested?",
    "Which options are there for RAG?",
    "How does it compare with trim_messages?",
    "What is a notice?",
];

#[test]
fn thirty_turns_with_compactions_a_switch_a_pin_that_expires_a_kill_and_a_resume() {
    let Some(terminal) = Terminal::open("turns", (120, 40)) else { return };
    let data = tempfile::TempDir::new().unwrap();
    terminal.start(&docs(), data.path(), "--model offline-4k");
    terminal.shows("new or changed, 0 removed.");
    let asked = |n: usize| {
        terminal.type_in(QUESTIONS[n]);
        let is_there = || stored(data.path()).messages().len() == 2 * n + 3;
        let picture = terminal.becomes(&format!("the answer to question {n}"), |picture| {
            picture.contains("┏Ask━") && is_there()
        });
        assert!(picture.contains("ctx tokens: "), "{picture}");
        let log = stored(data.path());
        assert_eq!(
            (questions(&log), log.messages().len()),
            (n + 1, 2 * n + 3),
            "question {n} and its answer are on disk"
        );
        assert_eq!(log.messages()[2 * n + 1].text(), QUESTIONS[n]);
    };
    asked(0);
    terminal.keep("first-answer.txt");

    // A note for one turn needs a decision in the turn after it.
    terminal.type_in("/pin Answer in short sentences.");
    terminal.shows("note-1 is pinned.");
    terminal.type_in("/ttl 1");
    terminal.shows("Turns that note-1 stays: 1.");
    asked(1);
    terminal.shows("An expired pin needs a decision");
    terminal.keys(&["Tab"]);
    terminal.shows("Up, Down: notices");
    terminal.keep("ask.txt");
    terminal.keys(&["Right", "Enter"]);
    terminal.shows("note-1: keep 3 turns.");
    assert_eq!(stored(data.path()).ttl("note-1"), Some(context_window::Ttl::turns(3)));
    terminal.keys(&["Escape"]);

    (2..10).for_each(asked);
    // The items of the prompt: a filter, and one item with its explanation.
    terminal.keys(&["Tab"]);
    terminal.keys(&["/"]);
    terminal.tmux(&["send-keys", "-l", "section:documents reason:relevant"]);
    terminal.shows("reason:relevant");
    terminal.keys(&["Enter", "Enter"]);
    terminal.shows("prompt budget ");
    terminal.keep("item.txt");
    terminal.escape(3);
    terminal.shows("Enter sends");

    // Killed during an answer: the question is saved, and the next start continues.
    terminal.type_in(QUESTIONS[10]);
    let mut tries = 0;
    while questions(&stored(data.path())) < 11 {
        tries += 1;
        assert!(tries < 6_000, "the question is never on disk");
        sleep(Duration::from_millis(5));
    }
    terminal.kill();
    let before = stored(data.path());
    assert_eq!((questions(&before), before.messages().len()), (11, 22), "a question without its reply");
    terminal.becomes("a shell", |picture| picture.contains("Killed") || picture.contains("ready>"));
    assert_eq!(stored(data.path()), before, "what was confirmed is there");
    terminal.type_in("reset");
    terminal.becomes("a shell", |picture| picture.trim_end().ends_with("ready>"));
    terminal.start(&docs(), data.path(), "--model offline-4k");
    let picture = terminal.shows("The last question has no reply; /retry asks again.");
    assert!(picture.contains(QUESTIONS[10]), "what was said is shown: {picture}");
    terminal.keep("resumed.txt");
    terminal.type_in("/retry");
    terminal.becomes("the answer", |picture| {
        picture.contains("┏Ask━") && stored(data.path()).messages().len() == 23
    });

    (11..20).for_each(asked);
    // By now the window was full at least once.
    let compactions = |log: &Conversation| log.compactions().count();
    let automatic = compactions(&stored(data.path()));
    assert!(automatic >= 1, "no compaction in twenty turns");
    terminal.type_in("/compact");
    terminal.shows("Compaction would archive");
    terminal.keep("compact.txt");
    terminal.keys(&["Enter"]);
    terminal.shows("messages are archived");
    assert_eq!(compactions(&stored(data.path())), automatic + 1);
    terminal.type_in("/model offline-8k");
    terminal.shows("Window 8,192");
    (20..30).for_each(asked);
    terminal.keep("thirty.txt");

    let log = stored(data.path());
    assert_eq!(questions(&log), 30, "nothing is lost");
    assert!(compactions(&log) >= 2);
    for (n, question) in QUESTIONS.iter().enumerate() {
        assert_eq!(log.messages()[2 * n + 1].text(), *question);
    }
    terminal.type_in("/quit");
    terminal.becomes("a shell", |picture| picture.trim_end().ends_with("ready>"));
}

#[test]
fn startup_error_is_reported_with_exit_code_2() {
    let place = Place::shop();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_rag-chat"))
            .args(arguments)
            .env_remove("OPENAI_API_KEY")
            .env("XDG_DATA_HOME", place.data.path())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let folder = place.folder.path().to_str().unwrap();
    let file = place.folder.path().join("hours.md");
    for (arguments, expected) in [
        (vec!["/no/such/folder", "--ask", "x"], "/no/such/folder: expected a folder of documents"),
        (vec![file.to_str().unwrap(), "--ask", "x"], "is a file; expected the folder that contains it"),
        (vec![folder], "standard output is not a terminal; expected one, or --ask QUESTION"),
        (vec![folder, "--ask", "x", "--model", "gpt-5.4-mini"], "Set OPENAI_API_KEY"),
        (
            vec![folder, "--ask", "x", "--data", "/proc/nothing"],
            "/proc/nothing: expected a folder to write to; see --data",
        ),
        (vec![folder, "--ask", "x", "--config", "/no/options.toml"], "/no/options.toml"),
        (vec![folder, "--context", "5"], "5 is not in 1000..=10000000"),
        (vec![], "<FOLDER>"),
    ] {
        let (code, _, said) = run(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let (code, answer, said) = run(&[folder, "--ask", "How long does a refund take?"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        answer.contains("A refund takes five days")
            && said.contains("Sources: [1] terms/refunds.md#1.\n")
            && said.contains("documents: terms/refunds.md#1"),
        "{answer}{said}"
    );
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for variable in ["RAG_CHAT_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_HOST"] {
        assert!(help.contains(variable), "{variable}");
    }
}

#[test]
fn small_terminals_keys_and_an_end_by_ctrl_c() {
    let Some(terminal) = Terminal::open("small", (40, 10)) else { return };
    let place = Place::shop();
    terminal.start(place.folder.path(), place.data.path(), "");
    terminal.shows("the chat needs 50 x 16");
    terminal.tmux(&["resize-window", "-x", "70", "-y", "24"]);
    terminal.shows("4 files in 4 chunks");
    // A control character in a file or a question does not reach the terminal.
    place.write("evil.md", b"Evil kettles \x1b[2J\x1b]0;owned\x07 whistle in the night.");
    terminal.type_in("Which evil kettles whistle?");
    terminal.shows("Evil kettles ?[2J?]0;owned? whistle");
    terminal.shows("┏Ask");
    terminal.keys(&["Up"]);
    terminal.becomes("the last line", |picture| {
        picture.lines().rev().take(4).any(|line| line.contains("Which evil kettles"))
    });
    terminal.keys(&["C-u"]);
    // At the smallest size with a notice and a banner, the input line is visible.
    terminal.type_in(&format!("/pin {}", "A note that is far too long for this window. ".repeat(60)));
    terminal.shows("┏Ask");
    terminal.type_in("/model offline-1k");
    terminal.shows("Window 1,024");
    terminal.tmux(&["resize-window", "-x", "50", "-y", "16"]);
    terminal.tmux(&["send-keys", "-l", "typed here"]);
    terminal.shows("typed here");
    terminal.tmux(&["resize-window", "-x", "70", "-y", "24"]);
    terminal.keys(&["C-u"]);
    terminal.type_in("/unpin note-1");
    terminal.keys(&["Tab"]);
    terminal.shows("Items · in");
    terminal.shows("┌Ask");
    terminal.keys(&["Escape"]);
    terminal.tmux(&["send-keys", "-l", "x"]);
    terminal.keys(&["C-c"]);
    terminal.keys(&["C-c"]);
    terminal.shows("Ctrl-C again ends the chat");
    terminal.keys(&["C-c"]);
    terminal.becomes("a shell", |picture| picture.trim_end().ends_with("ready>"));
    let modes = terminal.tmux(&["display", "-p", "#{alternate_on} #{cursor_flag}"]);
    assert_eq!(String::from_utf8(modes.stdout).unwrap().trim(), "0 1", "alternate screen, cursor");
}

/// A slow or stopped chat reads all keys waiting in the terminal. The last of them does not wait for another
/// key.
#[test]
fn keys_that_wait_in_the_terminal_are_all_read() {
    let Some(terminal) = Terminal::open("waiting", (80, 24)) else { return };
    let place = Place::shop();
    // Without job control, the shell does not take the terminal from a stopped program.
    terminal.type_in("set +m");
    terminal.start(place.folder.path(), place.data.path(), "");
    terminal.shows("4 files in 4 chunks");
    terminal.signal("STOP");
    let question = "yes ".repeat(700) + "?";
    terminal.type_in(&question);
    terminal.signal("CONT");
    terminal.becomes("the question on disk", |_| questions(&stored(place.data.path())) == 1);
    assert_eq!(stored(place.data.path()).messages()[1].text(), question);
    terminal.type_in("/quit");
    terminal.becomes("a shell", |picture| picture.trim_end().ends_with("ready>"));
}

#[test]
fn the_screen_has_the_grid_keys_for_items_and_pasted_lines() {
    let Some(terminal) = Terminal::open("keys", (100, 30)) else { return };
    let place = Place::shop();
    // A notice without actions comes first in every plan.
    let config = place.data.path().join("options.toml");
    std::fs::write(&config, "[conversation]\ntool_results = \"provider\"\n[ttl]\npolicy = \"ask\"\n")
        .unwrap();
    terminal.start(place.folder.path(), place.data.path(), &format!("--config {}", config.display()));
    terminal.shows("4 files in 4 chunks");
    terminal.shows("┌Prompt");
    terminal.type_in("/pin Answer in short sentences.");
    terminal.type_in("/ttl 1");
    terminal.type_in("When are you open?");
    terminal.shows("An expired pin needs a decision");
    let asks = terminal.shows("[re-pin]");
    assert!(asks.contains("C12"), "another notice comes before it: {asks}");
    terminal.keys(&["Tab"]);
    terminal.shows("Up, Down: notices");
    terminal.keys(&["Right", "Enter"]);
    terminal.shows("note-1: keep 3 turns.");

    // With the focus on the items, the grid stays, p pins and x excludes.
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.keys(&["BTab"]);
    terminal.keys(&["Tab", "Tab"]);
    let items = terminal.shows("┏Items");
    assert!(items.contains("┌Prompt") && items.contains("reply reserve"), "{items}");
    terminal.keys(&["G", "p"]);
    terminal.shows("m2 and its exchange are pinned");
    terminal.tmux(&["send-keys", "-l", "/id:hours"]);
    terminal.keys(&["Enter", "x"]);
    terminal.shows("hours.md#1 is excluded from now on");
    terminal.escape(2);
    terminal.shows("┏Ask");
    // Text pasted while a filter is typed goes into the filter.
    terminal.keys(&["Tab", "/"]);
    terminal.shows("A filter, such as");
    terminal.tmux(&["set-buffer", "no such item"]);
    terminal.tmux(&["paste-buffer", "-p"]);
    terminal.shows("no item matches");
    terminal.escape(2);
    terminal.shows("┏Ask");

    // Pasted text keeps its lines, also when it is sent.
    terminal.tmux(&["set-buffer", "first line\nsecond line\n\tindented"]);
    terminal.tmux(&["paste-buffer", "-p"]);
    let pasted = terminal.shows("┃    indented");
    assert!(pasted.contains("┃first line ") && pasted.contains("┃second line "), "{pasted}");
    terminal.keys(&["M-Enter", "d", "o", "n", "e", "Enter"]);
    terminal.becomes("the question on disk", |_| questions(&stored(place.data.path())) == 2);
    let log = stored(place.data.path());
    let question = log.messages().iter().rev().find(|message| message.role() == Role::User).unwrap();
    assert_eq!(question.text(), "first line\nsecond line\n    indented\ndone");
    terminal.type_in("/quit");
    terminal.becomes("a shell", |picture| picture.trim_end().ends_with("ready>"));
}

#[test]
fn nothing_that_a_terminal_acts_on_is_printed_by_ask() {
    let name = "refund\u{1b}[31m\u{1b}]0;title\u{7}\u{202e}.md";
    let place = Place::with(&[(name, "A refund\u{1b}[2J takes five days.")]);
    let folder = place.folder.path().to_str().unwrap();
    let data = place.data.path().join("da\u{1b}[31mta");
    let run = |arguments: &[&str], url: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rag-chat"));
        command.args(arguments).args(["--data", data.to_str().unwrap()]);
        for name in UNSET {
            command.env_remove(name);
        }
        if let Some(url) = url {
            command.env("RAG_CHAT_URL", url);
        }
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        for said in &said {
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!said.contains(acts), "{arguments:?}: {said:?}");
        }
        let [out, err] = said;
        (output.status.code(), out, err)
    };
    let (code, answer, said) = run(&[folder, "--ask", "How long does a refund take?"], None);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        answer.contains("A refund?[2J takes five days") && said.contains("documents: refund?[31m"),
        "{said}"
    );
    let bad = "no\u{1b}[31m";
    for arguments in [
        vec![bad, "--ask", "x"],
        vec![folder, "--ask", "x", "--context", bad],
        vec![folder, "--ask", "x", "--config", bad],
        vec![folder, "--ask", "x", "--model", bad],
        vec![folder, "--ask", bad, "--session", bad],
        vec![folder, "--ask", "x", bad],
        vec![folder, "--ask", "x", "--flag\u{1b}"],
    ] {
        run(&arguments, None);
    }
    let server = Server::start(Wire::OpenAi, vec![Reply::Words("", 0)]);
    let (code, answer, said) = run(&[folder, "--ask", "How long?"], Some(&server.url));
    assert_eq!((code, answer.trim()), (Some(1), ""), "{said}");
    assert!(said.contains("The reply is empty"), "{said}");
}
