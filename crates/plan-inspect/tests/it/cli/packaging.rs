//! Files for packagers and editors: schemas, completions, manual pages.

use super::{fails, out};
use crate::support::{running, skip};
use std::{collections::BTreeSet, path::PathBuf, process::Command};

/// Returns the commands that `--help` lists, without `help` itself. Subcommands follow the name of their
/// command.
fn commands() -> BTreeSet<String> {
    let inside = |command: &[&str]| -> Vec<String> {
        let help = out(&[command, &["-h"]].concat());
        let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
        let lines = list
            .split("\n\n")
            .next()
            .unwrap()
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = lines.map(|line| line.split_whitespace().next().unwrap().to_owned());
        names.filter(|name| name != "help").collect()
    };
    let mut all = BTreeSet::new();
    for name in inside(&[]) {
        all.extend(inside(&[&name]).into_iter().map(|inner| format!("{name} {inner}")));
        all.insert(name);
    }
    assert!(all.len() >= 15 && all.contains("models import"), "{all:?}");
    all
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns true if a program is installed, and otherwise reports a skip.
fn there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        skip(&running(), &format!("{program} is not installed"));
    }
    there
}

#[test]
fn printed_schemas_equal_the_shipped_files() {
    for name in ["config", "plan", "session"] {
        let shipped = std::fs::read_to_string(
            crate::support::root().join(format!("crates/plan-inspect/schema/{name}.json")),
        )
        .unwrap();
        assert_eq!(out(&["schema", name]), shipped);
    }
    assert!(fails(&["schema", "plans"]).contains("a similar value exists: 'plan'"));
}

/// Returns the completions of a shell for the words before the cursor.
fn completed(program: &str, script: &str) -> BTreeSet<String> {
    let output =
        Command::new(program).arg("-c").arg(script).current_dir(crate::support::root()).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_values_and_files() {
    let script = out(&["completions", "bash"]);
    let path = super::file("completions.bash", script.as_bytes());
    let check = Command::new("bash").arg("-n").arg(&path).output().unwrap();
    assert!(check.status.success() && check.stderr.is_empty());
    let complete = |words: &str| {
        let count = words.split(' ').count();
        let (last, previous) = (words.rsplit(' ').next().unwrap(), words.rsplit(' ').nth(1).unwrap());
        let function = "$(complete -p plan-inspect | sed 's/.*-F \\([^ ]*\\).*/\\1/')";
        completed(
            "bash",
            &format!(
                "source {}; COMP_WORDS=({words}{}); COMP_CWORD={}; {function} plan-inspect '{last}' '{previous}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
                path.display(),
                if last.is_empty() { "''" } else { "" },
                count - 1,
            ),
        )
    };
    let first = complete("plan-inspect ");
    for command in commands().iter().filter(|name| !name.contains(' ')) {
        assert!(first.contains(command), "{command}");
    }
    assert!(first.contains("examples"), "a session is a file");
    assert_eq!(complete("plan-inspect exp"), BTreeSet::from(["explain".into()]));
    assert_eq!(complete("plan-inspect exa"), BTreeSet::from(["examples".into()]));
    assert_eq!(complete("plan-inspect expl x --bud"), BTreeSet::from(["--budget".into()]));
    assert_eq!(
        complete("plan-inspect examples/overflow.json --save"),
        BTreeSet::from(["--save-anchor".into()])
    );
    assert_eq!(complete("plan-inspect models imp"), BTreeSet::from(["import".into()]));
    assert_eq!(complete("plan-inspect compact x --format j"), BTreeSet::from(["json".into()]));
    assert_eq!(complete("plan-inspect x --color al"), BTreeSet::from(["always".into()]));
    assert_eq!(complete("plan-inspect schema p"), BTreeSet::from(["plan".into()]));
    assert_eq!(complete("plan-inspect completions z"), BTreeSet::from(["zsh".into()]));
    for command in commands() {
        let found = complete(&format!("plan-inspect {command} --"));
        assert!(found.contains("--help") && found.contains("--color"), "{command}: {found:?}");
    }
}

#[test]
fn fish_completes_bare_sessions_too() {
    let path = super::file("completions.fish", out(&["completions", "fish"]).as_bytes());
    if !there("fish") {
        return;
    }
    let complete = |words: &str| -> BTreeSet<String> {
        let found = completed("fish", &format!("source {}; complete -C '{words}'", path.display()));
        found.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    assert!(complete("plan-inspect expl").contains("explain"));
    assert!(complete("plan-inspect exam").contains("examples/"));
    assert!(complete("plan-inspect examples/overflow.json --save").contains("--save-anchor"));
    assert!(complete("plan-inspect compact x --app").contains("--apply"));
    assert!(!complete("plan-inspect compact x --sa").contains("--save-anchor"));
}

#[test]
fn scripts_for_other_shells_exist() {
    for (shell, sign) in [
        ("zsh", "#compdef plan-inspect"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = out(&["completions", shell]);
        assert!(script.contains(sign) && script.contains("--save-anchor"), "{shell}");
        assert!(commands().iter().all(|name| script.contains(name.rsplit(' ').next().unwrap())), "{shell}");
    }
    // Completion scripts contain the project's additions.
    let zsh = out(&["completions", "zsh"]);
    assert!(zsh.contains("words=(\"${words[1]}\" plan") && zsh.matches("    _files\n").count() == 1);
    if there("zsh") {
        let path = super::file("completions.zsh", zsh.as_bytes());
        assert!(completed("zsh", &format!("zsh -n {}", path.display())).is_empty());
    }
    assert!(fails(&["completions", "tcsh"]).contains("possible values: bash, elvish, fish, powershell, zsh"));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder("man");
    assert_eq!(out(&["man", "--output-dir", folder.to_str().unwrap()]), "");
    let files: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = commands().into_iter().map(|name| format!("plan-inspect-{}.1", name.replace(' ', "-")));
    assert_eq!(files, expected.chain(["plan-inspect.1".into()]).collect());
    let formatter = there("groff");
    for name in commands().into_iter().chain([String::new()]) {
        let words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
        let page = out(&[&["man"], &words[..]].concat());
        let dashed = ["plan-inspect"].into_iter().chain(words).collect::<Vec<_>>().join("-");
        assert_eq!(page, std::fs::read_to_string(folder.join(format!("{dashed}.1"))).unwrap());
        for part in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"] {
            assert!(page.contains(part), "{dashed}: {part}");
        }
        if formatter {
            let path = folder.join(format!("{dashed}.1"));
            let args = ["-man", "-Tutf8", "-ww", "-rHY=0"];
            let output = Command::new("groff").args(args).arg(path).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.stderr.is_empty(), "{dashed}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(text.contains("plan‐inspect") || text.contains("plan-inspect"), "{dashed}: {text}");
        }
    }
    assert!(out(&["man"]).contains(".SH SUBCOMMANDS"));
    assert!(fails(&["man", "nope"]).contains("has no command `nope`; expected plan, explain"));
    assert!(fails(&["man", "plan", "x"]).contains("`plan-inspect plan` has no command `x`"));
}

/// Every command of docs/reference/tool.md has its described effect in a folder with the examples and the
/// vectors. The page names every command.
#[test]
fn tool_page_matches_the_behaviour() {
    let page = std::fs::read_to_string(crate::support::root().join("docs/reference/tool.md")).unwrap();
    let folder = folder("page");
    let root = crate::support::root();
    for name in ["examples", "tests", "crates"] {
        std::os::unix::fs::symlink(root.join(name), folder.join(name)).unwrap();
    }
    let binary = assert_cmd::cargo::cargo_bin("plan-inspect");
    let others = std::env::var_os("PATH").unwrap();
    let path = format!("{}:{}", binary.parent().unwrap().display(), others.to_string_lossy());
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines: Vec<&str> = blocks.flat_map(str::lines).collect();
    assert!(lines.len() > 25, "{lines:?}");
    for line in &lines {
        let mut command = Command::new("bash");
        command
            .args(["-o", "pipefail", "-c", line])
            .current_dir(&folder)
            .env("PATH", &path)
            .env_remove("NO_COLOR");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let says_nothing = line.contains('>') || line.contains("--output");
        assert_eq!(output.stdout.is_empty(), says_nothing, "{line}");
    }
    for page in ["docs/guide/compaction.md", "docs/guide/counting.md", "docs/reference/formats.md"] {
        let page = std::fs::read_to_string(crate::support::root().join(page)).unwrap();
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("plan-inspect ")).collect();
        assert!(!lines.is_empty(), "{page}");
        for line in lines {
            let args = line.split(' ').skip(1);
            let output = Command::new(&binary).args(args).current_dir(&folder).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    for name in [
        "shorter.json",
        "compacted.json",
        "anchor.json",
        "plan-inspect.1",
        "_plan-inspect",
        "man/plan-inspect-config-show.1",
    ] {
        assert!(std::fs::metadata(folder.join(name)).unwrap().len() > 100, "{name}");
    }
    let shown: BTreeSet<&str> = lines.iter().flat_map(|line| line.split(' ')).collect();
    for name in commands().iter().filter(|name| !name.contains(' ')) {
        assert!(
            page.contains(&format!("| `{name} ")) || page.contains(&format!("| `{name}`")),
            "{name} is not in the table"
        );
        assert!(shown.contains(&**name) || name == "plan", "{name} is not shown");
    }
}
