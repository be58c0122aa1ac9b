//! Behaviour at a terminal: colours, widths, broken pipes, full disks, and Ctrl-C.

use super::{fails, file, inspect, out};
use crate::support::{running, skip};
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::Duration,
};
use unicode_width::UnicodeWidthStr;

const EXAMPLE: &str = "examples/support-chat.json";

/// Every command once, with arguments that give output.
const COMMANDS: [&[&str]; 26] = [
    &[EXAMPLE],
    &["plan", EXAMPLE, "--format", "json"],
    &["plan", EXAMPLE, "--format", "messages"],
    &["plan", EXAMPLE, "--list"],
    &["explain", EXAMPLE],
    &["explain", EXAMPLE, "hours", "--budget", "400"],
    &["rag", "examples/hits/titles.json", "examples/hits/bodies.json"],
    &["diff", EXAMPLE, EXAMPLE, "--then-budget", "300"],
    &["compact", "examples/long-talk.json"],
    &["history", "examples/long-talk.json"],
    &["history", "examples/long-talk.json", "--format", "markdown"],
    &["replay", "examples/long-talk.json"],
    &["replay", EXAMPLE, "--format", "json"],
    &["tui", EXAMPLE, "--print", "80x24"],
    &["vectors", "tests/vectors/s8_not_monotone_16.json"],
    &["config", "show"],
    &["models", "list"],
    &["models", "show", "gpt-5"],
    &["schema", "plan"],
    &["completions", "bash"],
    &["man"],
    &["man", "plan"],
    &["help"],
    &["--help"],
    &["help", "explain"],
    &["--version"],
];

fn binary() -> PathBuf {
    assert_cmd::cargo::cargo_bin("plan-inspect")
}

/// Returns a command for the binary in a clean environment.
pub(super) fn plain(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).current_dir(crate::support::root());
    for name in ["RUST_LOG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CONTEXT_WINDOW_CONFIG"] {
        command.env_remove(name);
    }
    command
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_command_takes_the_flags_of_the_screen() {
    for args in COMMANDS.iter().filter(|args| args[0] != "help") {
        let usual = out(args);
        assert_eq!(out(&[&["--color", "never"], *args].concat()), usual, "{args:?}");
        let coloured = out(&[*args, &["--color=always", "--width", "100"]].concat());
        assert!(!coloured.is_empty(), "{args:?}");
    }
    assert_eq!(out(&["--width=100", "--color", "never", EXAMPLE]), out(&[EXAMPLE, "--width", "100"]));
    assert!(fails(&[EXAMPLE, "--color", "sometimes"]).contains("possible values: auto, always, never"));
    assert!(fails(&["--color"]).contains("a value is required"));
}

#[test]
fn help_and_errors_have_the_requested_colours() {
    let escapes = |args: &[&str], variable: Option<&str>| {
        let mut command = plain(args);
        if let Some(name) = variable {
            command.env(name, "1");
        }
        let Output { stdout, stderr, .. } = command.output().unwrap();
        assert!(!stdout.is_empty() || !stderr.is_empty());
        stdout.contains(&0x1b) || stderr.contains(&0x1b)
    };
    for args in [
        &["--help"][..],
        &["help", "plan"],
        &["plan", "--help"],
        &["plan", "--nope"],
        &["plam", "x"],
        &[EXAMPLE],
    ] {
        assert!(!escapes(args, None), "{args:?}: piped");
        assert!(escapes(args, Some("CLICOLOR_FORCE")), "{args:?}");
        assert!(!escapes(args, Some("NO_COLOR")), "{args:?}");
        let with =
            |when| -> Vec<&str> { ["--color", when].into_iter().chain(args.iter().copied()).collect() };
        assert!(escapes(&with("always"), None), "{args:?}");
        assert!(escapes(&with("always"), Some("NO_COLOR")), "{args:?}: the flag is nearer");
        assert!(!escapes(&with("never"), Some("CLICOLOR_FORCE")), "{args:?}");
    }
}

/// Writes a session of wide letters, letters with marks, and emoji of several characters, in every text
/// field.
fn of_every_script(name: &str) -> PathBuf {
    let family = "👩\u{200d}👩\u{200d}👧\u{200d}👦";
    let names = [
        "質問".to_owned(),
        "e\u{301}e\u{301}a".into(),
        format!("{family}{family}"),
        "plain".into(),
        "한국어답".into(),
        "ก็ลู".into(),
    ];
    let messages: Vec<_> = names.iter().enumerate().map(|(at, id)| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "id": id, "content": format!("{} {family} e\u{301} ", "日本語 ".repeat(at + 1)).repeat(6)})
    }).collect();
    let documents: Vec<_> = (0..4).map(|at| {
        json!({"id": format!("{}{at}", ["文書", "🦀🏽", "d\u{323}\u{307}", "🇩🇪"][at].repeat(at * 9 + 1)), "text": "x ".repeat(20 * (at + 1)), "score": at})
    }).collect();
    let session = json!({"model": "モデル", "messages": messages, "rag": documents, "pinned": [{"id": "注".repeat(30), "text": "ok"}]});
    file(name, session.to_string().as_bytes())
}

/// Returns the display column at which a part of a line starts.
fn column(line: &str, part: &str) -> Option<usize> {
    line.find(part).map(|at| line[..at].width())
}

#[test]
fn columns_line_up_and_lines_fit_in_every_script() {
    let session = of_every_script("every-script.json");
    let session = session.to_str().unwrap();
    for width in ["60", "80", "120"] {
        let most: usize = width.parse().unwrap();
        let shown = |args: &[&str]| {
            let text = out(&[args, &["--width", width]].concat());
            for line in text.lines() {
                assert!(line.width() <= most, "{} of {most} columns: {line}", line.width());
                assert_eq!(line, line.trim_end());
                // A character of several code points is never cut: no cut is at a joiner or a mark.
                let before_a_cut = line.split('…').rev().skip(1).filter_map(|part| part.chars().last());
                assert!(before_a_cut.into_iter().all(|c| c != '\u{200d}'), "{line}");
            }
            text
        };
        for budget in ["40", "150", "9000"] {
            let plan = shown(&[session, "--budget", budget]);
            let rows: Vec<&str> = plan
                .lines()
                .skip_while(|line| !line.starts_with("in the prompt"))
                .skip(1)
                .take_while(|line| !line.is_empty())
                .collect();
            assert!(!rows.is_empty(), "{plan}");
            let whys = ["user message", "assistant message", "required:", "document", "pinned note"];
            let starts = rows.iter().filter_map(|row| whys.iter().find_map(|why| column(row, why)));
            assert_eq!(starts.collect::<BTreeSet<_>>().len(), 1, "{plan}");
        }
        let history = shown(&["history", session]);
        let starts =
            history.lines().map(|line| column(line, "  user ").or(column(line, "  assistant ")).unwrap());
        assert_eq!(starts.collect::<BTreeSet<_>>().len(), 1, "{history}");
        let explained = shown(&["explain", session, "--budget", "150"]);
        let table: Vec<&str> = explained.lines().skip(2).take_while(|line| !line.is_empty()).collect();
        let now = column(table[0], "now").unwrap();
        let cells = table[1..].iter().filter(|line| !line.starts_with(' '));
        let starts = cells.map(|line| column(line, " in  ").or(column(line, " out ")).unwrap() + 1);
        assert_eq!(starts.collect::<BTreeSet<_>>(), BTreeSet::from([now]), "{explained}");
        // Without near-duplicates, each row begins with "in" or "out".
        let budgets = ["--budget", "3000", "--then-budget", "400", "--set", "rag.near_duplicates=0"];
        let differs = shown(&[["diff", session, session].as_slice(), &budgets].concat());
        let before = differs.lines().find(|line| line.starts_with("item"));
        let before = column(before.unwrap(), "before").unwrap();
        let starts = differs.lines().skip_while(|line| !line.starts_with("item")).filter_map(|line| {
            column(line, " in: ")
                .min(column(line, " out: "))
                .or(column(line, " in: "))
                .or(column(line, " out: "))
        });
        assert!(starts.clone().count() >= 2 && starts.map(|at| at + 1).all(|at| at == before), "{differs}");
        shown(&["compact", "examples/long-talk.json"]);
        shown(&["models", "show", "gpt-5-mini"]);
        shown(&["explain", session, "文書0", "--budget", "150"]);
    }
    // Output that does not go to a terminal is neither cut nor wrapped.
    let whole = out(&["explain", session, "--budget", "150"]);
    assert!(whole.lines().any(|line| line.width() > 120) && !whole.contains('…'), "{whole}");
}

#[test]
fn closed_output_pipe_is_no_error() {
    for args in COMMANDS {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = plain(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    }
    // A standard error that cannot be written does not change the result.
    let unread = file(
        "unread-notes.json",
        br#"{"modle": "x", "model": "gtp-4o", "messages": [{"role": "user", "content": "hi"}]}"#,
    );
    let args = [unread.to_str().unwrap(), "--format", "messages"];
    let usual = plain(&args).output().unwrap();
    assert!(usual.status.success() && text(&usual.stderr).contains("note:"));
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    for beside in [Stdio::from(writer), Stdio::from(File::options().write(true).open("/dev/full").unwrap())] {
        let output = plain(&args).stderr(beside).output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(0), usual.stdout.clone()));
    }
    let closed = |args: &str| {
        let script = format!("\"$0\" {args} 2>&-");
        Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg(binary())
            .current_dir(crate::support::root())
            .output()
            .unwrap()
    };
    assert_eq!(closed(&args.join(" ")).stdout, usual.stdout);
    assert_eq!(closed("nowhere.json").status.code(), Some(2));
    assert_eq!(closed("--nope").status.code(), Some(2));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in COMMANDS {
        let output = plain(args).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(
            said.starts_with("plan-inspect: standard output cannot be written: No space left on device"),
            "{args:?}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
    }
    let said = fails(&[EXAMPLE, "--save-anchor", "/dev/full"]);
    assert!(said.contains("/dev/full cannot be written: No space left on device"), "{said}");
}

fn interrupted(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

/// Returns true if the process was ended by the signal, or exited with its code.
fn died_of_it(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(2) || status.code() == Some(130)
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A write that the disk refuses leaves no new or partial file, and keeps an old file unchanged.
#[test]
fn full_disk_keeps_the_old_file() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-room");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let contents: Vec<_> = (0..20)
        .map(|at| json!({"role": (["user", "model"][at % 2]), "parts": [{"text": "word ".repeat(99)}]}))
        .collect();
    let gemini = file("no-room-gemini.json", json!({ "contents": contents }).to_string().as_bytes());
    let gemini = gemini.to_str().unwrap();
    let old = folder.join("old.json");
    fs::write(&old, "").unwrap();
    for (args, target) in [
        (&[EXAMPLE, "--save-anchor"][..], "anchor.json"),
        (&[EXAMPLE, "--save-anchor"], "old.json"),
        (&["compact", "examples/long-talk.json", "--apply"], "compacted.json"),
        (&["compact", gemini, "--apply"], "compacted.log"),
        (&["man", "--output-dir"], "."),
    ] {
        // A file size limit of zero, which is the closest simulation of a full disk for an ordinary user.
        let mut command = Command::new("bash");
        command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]).arg(binary()).args(args);
        let output = command.arg(folder.join(target)).current_dir(crate::support::root()).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("cannot be written") && said.contains("File too large"), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert_eq!(names_in(&folder), BTreeSet::from(["old.json".into()]), "{args:?}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "interrupts are spread over the time that the work takes")]
fn ctrl_c_leaves_no_half_of_a_file() {
    // A process started in the background may inherit an ignored Ctrl-C, and then nothing interrupts it.
    if fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
        ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 2 != 0)
    }) {
        skip(&running(), "Ctrl-C is ignored here, so nothing was interrupted");
        return;
    }
    let models: serde_json::Map<String, serde_json::Value> = (0..4_000)
        .map(|at| {
            (
                format!("wren-{at}"),
                json!({"limit": {"context": 5000, "output": 900}, "cost": {"input": 1, "output": 2}}),
            )
        })
        .collect();
    let catalogue = file("many-models.json", json!({"acme": {"models": models}}).to_string().as_bytes());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let target = folder.join("models.toml");
    let run = || plain(&["models", "import", catalogue.to_str().unwrap(), "-o", target.to_str().unwrap()]);
    let started = std::time::Instant::now();
    assert!(run().output().unwrap().status.success());
    let took = started.elapsed();
    let whole = fs::read(&target).unwrap();
    fs::remove_file(&target).unwrap();
    let mut ends = BTreeSet::new();
    for part in 0..24 {
        let mut child = run().stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(took * part / 20);
        interrupted(&child);
        let status = child.wait().unwrap();
        assert!(status.success() || died_of_it(status), "{status}");
        let names = names_in(&folder);
        assert!(names.iter().all(|name| name == "models.toml"), "{names:?}");
        if target.exists() {
            assert!(fs::read(&target).unwrap() == whole, "a half-written file");
            fs::remove_file(&target).unwrap();
        }
        ends.insert((status.success(), names.len()));
    }
    // The number of interrupted runs depends on the machine, but the first one, at once, is always
    // interrupted.
    assert!(ends.contains(&(false, 0)), "{ends:?}");
    assert!(run().output().unwrap().status.success());
    assert!(fs::read(&target).unwrap() == whole);
}

/// Ctrl-C during a write ends the process only after the file is whole. `strace` delays the disk's
/// confirmation by two seconds; without `strace` the test is skipped.
#[test]
fn ctrl_c_waits_for_a_running_write() {
    let usable = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status()
        .is_ok_and(|status| status.success())
        && Command::new("pgrep").arg("-V").output().is_ok();
    if !usable {
        skip(&running(), "strace or pgrep is not installed, or must not trace");
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("slow-disk");
    for (name, args) in [
        ("anchor.json", &[EXAMPLE, "--save-anchor"][..]),
        ("compacted.json", &["compact", "examples/long-talk.json", "--apply"]),
        ("man", &["man", "--output-dir"]),
    ] {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let target = folder.join(name);
        let log = folder.with_extension("strace");
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-e", "trace=fsync,execve", "-e", "inject=fsync:delay_enter=2000000", "-o"])
            .arg(&log);
        command.arg(binary()).args(args).arg(&target).current_dir(crate::support::root());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // As soon as it waits for the disk.
        let part = |names: &BTreeSet<String>| names.iter().any(|name| name.ends_with(".part"));
        let place = if name == "man" { &target } else { &folder };
        for _ in 0..400 {
            if place.is_dir() && part(&names_in(place)) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(part(&names_in(place)), "{name}: it never wrote");
        let traced =
            text(&Command::new("pgrep").args(["-P", &child.id().to_string()]).output().unwrap().stdout);
        assert!(Command::new("kill").args(["-INT", traced.trim()]).status().unwrap().success());
        let status = child.wait().unwrap();
        assert!(died_of_it(status), "{name}: {status}");
        let names = names_in(place);
        assert!(!part(&names) && names.len() == 1, "{name}: {names:?}");
        if name == "anchor.json" {
            let saved: serde_json::Value = serde_json::from_slice(&fs::read(&target).unwrap()).unwrap();
            assert!(saved["window_start"].is_string());
        }
    }
}

/// Returns the terminal output of a shell command and its exit status. `keys` are pressed as soon as there is
/// output.
pub(super) fn on_a_terminal(command: &str, keys: &str) -> Option<(String, ExitStatus)> {
    let mut script = Command::new("script");
    script.args(["-qefc", command, "/dev/null"]).current_dir(crate::support::root());
    script.env("PLAN_INSPECT", binary()).env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR");
    // Sets a known shell, because `script` would run the user's.
    script.env("SHELL", "/bin/sh");
    let spawned = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        skip(&running(), "`script` is not installed");
        return None;
    };
    // Kept open until all output is shown, because closing it would close the terminal.
    let mut typist = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut pressed = keys.is_empty();
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stdout.read(&mut part).unwrap() {
            0 => break,
            length => shown.extend_from_slice(&part[..length]),
        }
        if !pressed {
            typist.write_all(keys.as_bytes()).unwrap_or_else(|error| panic!("{error}: {:?}", text(&shown)));
            pressed = true;
        }
    }
    assert!(pressed, "nothing was shown, and so nothing was pressed");
    Some((text(&shown), child.wait().unwrap()))
}

/// Returns the text of the cursor's line at the end of the output.
fn last_line(shown: &str) -> &str {
    let line = shown.rsplit('\n').next().unwrap();
    let after = line.rsplit("\u{1b}[2K").next().unwrap();
    after.trim_matches(['\r', ' '])
}

const SLOW: &str = "(sleep 2; cat examples/support-chat.json) | \"$PLAN_INSPECT\" - --format json";

#[test]
fn long_work_is_shown_on_a_terminal_and_leaves_nothing_there() {
    let Some((shown, status)) = on_a_terminal(&format!("{SLOW} >/dev/null"), "") else { return };
    assert!(status.success() && shown.contains("reading standard input"), "{shown:?}");
    assert_eq!(last_line(&shown), "", "{shown:?}");
    assert!(
        !shown.contains("\u{1b}[?25l") && !shown.contains("\u{1b}[3"),
        "no cursor is hidden, no colour is used: {shown:?}"
    );
    // Progress is never part of the result, and is not shown if standard error is no terminal or the work is
    // quick.
    let (shown, _) = on_a_terminal(&format!("{SLOW} 2>/dev/null"), "").unwrap();
    assert!(shown.starts_with('{') && !shown.contains("reading"), "{shown:?}");
    let (shown, _) = on_a_terminal("\"$PLAN_INSPECT\" examples/support-chat.json >/dev/null", "").unwrap();
    assert_eq!(shown, "");
    let output = inspect(&["-", "--format", "json"])
        .write_stdin(fs::read(crate::support::root().join(EXAMPLE)).unwrap())
        .assert()
        .success();
    assert!(output.get_output().stderr.is_empty());
}

#[test]
fn ctrl_c_clears_the_line() {
    let command = "(sleep 3; cat examples/support-chat.json) | exec \"$PLAN_INSPECT\" -";
    let Some((shown, status)) = on_a_terminal(command, "\u{3}") else { return };
    assert!(shown.contains("reading standard input"), "{shown:?}");
    assert!(!status.success(), "{status}");
    let end = shown.rsplit("^C").next().unwrap();
    assert_eq!(last_line(end), "", "{shown:?}");
    assert!(!shown.contains("\u{1b}[?25l"), "{shown:?}");
}
