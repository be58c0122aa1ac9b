//! The screen in a real terminal, through tmux: keys, sizes, signals, and the restored terminal afterwards.
//! Without tmux these tests report it and skip.

use crate::support::tmux::Tmux;
use crate::support::{running, skip};
use std::{ops::Deref, path::PathBuf, process::Command};

/// A terminal, and a folder for the compared files.
struct Terminal {
    tmux: Tmux,
    folder: PathBuf,
}

impl Deref for Terminal {
    type Target = Tmux;

    fn deref(&self) -> &Tmux {
        &self.tmux
    }
}

impl Terminal {
    /// Opens a terminal. Returns `None` with a message if tmux or `/proc` is missing.
    fn open(name: &str, size: (u16, u16)) -> Option<Self> {
        if !Tmux::is_here() {
            skip(&running(), "tmux or /proc is not here, so the screen was not tried in a real terminal");
            return None;
        }
        let name = format!("context-window-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        Some(Self { tmux: Tmux::open(name, size, &["NO_COLOR"]), folder })
    }

    fn start(&self, arguments: &str) {
        let binary = assert_cmd::cargo::cargo_bin("plan-inspect");
        let project = crate::support::root().display();
        self.type_in(&format!("cd {project}; stty -a > {0}/before; clear", self.folder.display()));
        self.waits();
        self.type_in(&arguments.replace("plan-inspect", binary.to_str().unwrap()));
    }

    /// Checks that the shell is back, the terminal's settings are restored, and the last exit code was
    /// `code`.
    fn is_sane(&self, code: i32) {
        self.waits();
        let folder = self.folder.display();
        self.type_in(&format!("echo code=$?; stty -a > {folder}/after; echo over"));
        let picture = self.becomes("the exit code", |picture| picture.lines().any(|line| line == "over"));
        assert!(picture.contains(&format!("code={code}\n")), "{picture}");
        // The first line contains the size, which a test may change.
        let read = |name: &str| {
            let settings = std::fs::read_to_string(self.folder.join(name)).unwrap();
            settings.split_once('\n').unwrap().1.to_owned()
        };
        assert_eq!(read("before"), read("after"), "the terminal's settings");
        let modes = self.tmux(&["display", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}"]);
        assert_eq!(
            String::from_utf8(modes.stdout).unwrap().trim(),
            "0 0 1",
            "alternate screen, mouse, cursor"
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

#[test]
fn a_walk_through_a_real_terminal() {
    let Some(it) = Terminal::open("walk", (120, 40)) else { return };
    it.start("plan-inspect tui examples/support-chat.json --budget 400");
    it.shows("- hours");
    it.keys(&["/", "c", "a", "r", "e", "Enter"]);
    // The screen may be captured while the next one is half drawn.
    it.becomes("only what the filter leaves", |picture| {
        picture.contains("filter care") && !picture.contains("hours")
    });
    it.shows("enters at      457");
    it.keys(&["Escape"]);
    it.shows("- hours");
    it.keys(&["+", ".", "."]);
    it.shows("480 (session 400)");
    it.shows("+*care");
    it.keys(&["u"]);
    it.shows("- care");
    it.keys(&["2"]);
    it.shows("[2 Timeline]");
    it.keys(&["g", "Enter"]);
    it.shows("prompt 1/4");
    it.keys(&["5"]);
    it.shows("[5 Items]");
    it.keys(&["?"]);
    it.shows("Keys");
    it.keys(&["Escape", "1"]);
    it.shows("[1 Plan]");
    it.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    it.becomes("a narrow screen", |picture| !picture.contains("2 Timeline") && picture.contains("[1 Plan]"));
    it.tmux(&["resize-window", "-x", "59", "-y", "14"]);
    it.shows("terminal too small: 59x14");
    it.tmux(&["resize-window", "-x", "100", "-y", "30"]);
    it.shows("2 Timeline");
    it.keys(&["q"]);
    it.is_sane(0);
}

/// Returns true if the parent process made this one ignore a signal, as `nohup` does; child processes ignore
/// it too.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
    mask & (1 << (signal - 1)) != 0
}

/// Returns the id of the process with these arguments.
fn process_of(arguments: &str) -> String {
    let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let started = |path: &PathBuf| {
        std::fs::read(path.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(arguments))
    };
    let found: Vec<PathBuf> = all.filter(started).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn signals_and_panics_give_the_terminal_back() {
    let Some(it) = Terminal::open("signals", (100, 30)) else { return };
    // A unique name on this machine, because the process is found by it.
    let session = it.folder.join("signals.json").display().to_string();
    std::fs::copy(crate::support::root().join("examples/long-talk.json"), &session).unwrap();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let code = 128 + number;
        if is_ignored(number) {
            skip(&running(), &format!("SIG{signal} is ignored here, so nothing was interrupted by it"));
            continue;
        }
        it.start(&format!("plan-inspect tui {session}"));
        it.shows("[1 Plan]");
        let process = process_of(&format!("plan-inspect\0tui\0{session}"));
        let killed = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
        assert!(killed.unwrap().success());
        it.is_sane(code);
    }
    it.start("plan-inspect tui examples/long-talk.json");
    it.shows("[1 Plan]");
    it.keys(&["C-c"]);
    it.is_sane(0);
    if cfg!(debug_assertions) {
        it.start("RUST_BACKTRACE=0 PLAN_INSPECT_PANIC=1 plan-inspect tui examples/long-talk.json");
        it.shows("as PLAN_INSPECT_PANIC asks");
        it.is_sane(101);
    }
    // Suspended to the shell and resumed.
    it.start("plan-inspect tui examples/long-talk.json");
    it.shows("[1 Plan]");
    it.keys(&["C-z"]);
    it.shows("Stopped");
    it.type_in("fg");
    it.becomes("the plan again", |picture| picture.contains("[1 Plan]") && !picture.contains("Stopped"));
    it.keys(&["j", "q"]);
    it.is_sane(0);
}

#[test]
fn no_color_variable_turns_colour_off() {
    let Some(it) = Terminal::open("colour", (100, 30)) else { return };
    let colours = |environment: &str| {
        it.start(&format!("{environment} plan-inspect tui examples/overflow.json"));
        it.shows("over budget");
        let picture = String::from_utf8(it.tmux(&["capture-pane", "-p", "-e"]).stdout).unwrap();
        it.keys(&["q"]);
        it.is_sane(0);
        // Only the first sixteen colours: 38;5;0 to 38;5;15.
        let colours: Vec<&str> =
            picture.split("38;").skip(1).map(|rest| rest.split('m').next().unwrap()).collect();
        for colour in &colours {
            let number = colour.strip_prefix("5;").and_then(|number| number.parse::<u8>().ok());
            assert!(number.is_some_and(|number| number < 16), "{colour}");
        }
        !colours.is_empty()
    };
    assert!(colours("TERM=xterm"), "16 colours");
    assert!(!colours("NO_COLOR=1"));
}

#[test]
fn growing_session_is_followed() {
    let Some(it) = Terminal::open("follow", (100, 30)) else { return };
    let path = it.folder.join("log.json");
    let session = |messages: usize| {
        let all: Vec<String> =
            (0..messages).map(|at| format!("{{\"role\":\"user\",\"content\":\"question {at}\"}}")).collect();
        std::fs::write(&path, format!("[{}]", all.join(","))).unwrap();
    };
    session(2);
    it.start(&format!("plan-inspect tui --follow {}", path.display()));
    it.shows("following");
    it.shows("+ m1");
    session(3);
    it.shows("+ m2");
    // An incomplete file is no session: the last one stays on the screen, and the file is read again when it
    // is complete.
    std::fs::write(&path, "[{\"role\":\"us").unwrap();
    it.shows("reload failed");
    session(5);
    it.shows("+ m4");
    it.keys(&["Space"]);
    it.shows("paused");
    session(7);
    it.shows("the session has grown");
    assert!(!it.picture().contains("+ m6"));
    it.keys(&["Space"]);
    it.shows("+ m6");
    it.keys(&["q"]);
    it.is_sane(0);
}

/// `y` copies through the terminal (OSC 52), and `w` writes a file. Both remain after the screen is closed.
#[test]
fn copied_and_written_output_remains_after_exit() {
    let Some(it) = Terminal::open("copy", (120, 40)) else { return };
    it.tmux(&["set-option", "-s", "set-clipboard", "on"]);
    let root = crate::support::root().display();
    let session = format!("{root}/examples/support-chat.json");
    it.start(&format!("cd {}; plan-inspect tui {session} --budget 400", it.folder.display()));
    it.shows("- hours");
    it.keys(&["/", "c", "a", "r", "e", "Enter", "y"]);
    it.shows("copied care");
    it.becomes("the copied id", |_| it.tmux(&["show-buffer"]).stdout == b"care");
    it.keys(&["Escape", "+", ".", ".", "w"]);
    it.shows("saved to what-if.json");
    it.keys(&["u", ".", "w"]);
    it.shows("saved to what-if-2.json");
    it.keys(&["q"]);
    it.is_sane(0);
    it.type_in(&format!("clear; cd {}", it.folder.display()));
    it.waits();
    let binary = assert_cmd::cargo::cargo_bin("plan-inspect");
    let again = format!("{} tui {session} --budget 400 --what-if what-if.json", binary.display());
    it.type_in(&again);
    it.shows("480 (session 400)");
    it.shows("+*care");
    it.keys(&["q"]);
    it.is_sane(0);
}

#[test]
fn missing_terminal_is_reported() {
    let output = Command::new(assert_cmd::cargo::cargo_bin("plan-inspect"))
        .args(["tui", "examples/support-chat.json"])
        .current_dir(crate::support::root())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("standard output is not a terminal; expected a terminal"), "{said}");
}
