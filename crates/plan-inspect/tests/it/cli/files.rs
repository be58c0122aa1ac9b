//! Written files: never one that is read through any flag or variable, never two results in one file, and
//! never a new file that another process has just created.

use super::{EXAMPLE, fails, file, inspect, out, packed};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Creates a separate folder with every kind of file that a run can read.
fn readable(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("tokenizer")).unwrap();
    fs::copy(crate::support::root().join(EXAMPLE), folder.join("session.json")).unwrap();
    for entry in fs::read_dir(crate::support::root().join("tests/tokenizers/small")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join("tokenizer").join(path.file_name().unwrap())).unwrap();
    }
    fs::write(folder.join("hits.json"), r#"[{"id": "d", "text": "t", "score": 1}]"#).unwrap();
    fs::write(folder.join("config.toml"), "[rag]\nmax_items = 5\n").unwrap();
    let tokenizer = folder.join("tokenizer/tokenizer.json");
    fs::write(
        folder.join("counted.toml"),
        format!("[model.default]\ntokenizer = {:?}\n", tokenizer.display().to_string()),
    )
    .unwrap();
    let models = out(&["models", "show", "gpt-4o", "--format", "json"]);
    let mut model: Value = serde_json::from_str(&models).unwrap();
    model["name"] = "mine".into();
    model["tokenizer"] = tokenizer.display().to_string().into();
    let toml = "[[model]]\nname = \"mine\"\nprovider = \"acme\"\ncontext_len = 9000\nsource = \"us\"\ndate = \"2026-11-23\"\ntokenizer = ";
    fs::write(folder.join("models.toml"), format!("{toml}{:?}\n", tokenizer.display().to_string())).unwrap();
    out(&[
        folder.join("session.json").to_str().unwrap(),
        "--save-anchor",
        folder.join("anchor.json").to_str().unwrap(),
    ]);
    folder
}

fn bytes_of(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes_of(&path))
        } else {
            all.push((path.clone(), fs::read(&path).unwrap()))
        }
    }
    all.sort();
    all
}

/// Combines every way to read a file with every way to write one.
#[test]
fn input_files_are_never_overwritten() {
    let folder = readable("read-and-written");
    let at = |name: &str| folder.join(name).display().to_string();
    let (session, tokenizer) = (at("session.json"), at("tokenizer/tokenizer.json"));
    let [config, counted, models, hits, anchor, vocabulary] =
        ["config.toml", "counted.toml", "models.toml", "hits.json", "anchor.json", "tokenizer"].map(at);
    // The kind of input, its flags, and the file that must not be written.
    let reads: Vec<(Vec<&str>, &str)> = vec![
        (vec![], &session),
        (vec!["--config", &config], &config),
        (vec!["--config", &counted], &counted),
        (vec!["--config", &counted], &tokenizer),
        (vec!["--models", &models, "--model", "mine"], &models),
        (vec!["--models", &models, "--model", "mine"], &tokenizer),
        (vec!["--tokenizer", &tokenizer], &tokenizer),
        (vec!["--tokenizer", &vocabulary], &tokenizer),
    ];
    let of_a_plan: Vec<(Vec<&str>, &str)> =
        vec![(vec!["--rag", &hits], &hits), (vec!["--previous", &anchor], &anchor)];
    let template = at("tokenizer/tokenizer_config.json");
    let before = bytes_of(&folder);
    let mut tried = 0;
    let mut refused = |args: &[&str]| {
        let error = fails(args);
        assert!(error.contains("inputs are never changed"), "{args:?}: {error}");
        assert_eq!(bytes_of(&folder), before, "{args:?}");
        tried += 1;
    };
    for (flags, written) in &reads {
        refused(&[&["replay", &session, "-o", written], &flags[..]].concat());
        refused(&[&["replay", &session, "--format", "html", "-o", written], &flags[..]].concat());
    }
    for (flags, written) in reads.iter().chain(&of_a_plan) {
        for format in ["text", "json", "messages", "html"] {
            refused(&[&[&*session, "--format", format, "-o", written], &flags[..]].concat());
        }
        // A new anchor may replace only the previous anchor.
        if flags.first() != Some(&"--previous") {
            refused(&[&[&*session, "--save-anchor", written], &flags[..]].concat());
        }
    }
    refused(&["models", "import", &hits, "-o", &hits]);
    refused(&["rag", &format!("words={hits}"), "-o", &hits]);
    // The files next to a tokenizer include the model's template.
    refused(&[&session, "--tokenizer", &tokenizer, "--wire-format", "chat-template", "-o", &template]);
    assert!(tried > 60, "{tried}");
    // The same through the variable.
    let output = inspect(&[&session, "-o", &config]).env("CONTEXT_WINDOW_CONFIG", &config).assert().code(2);
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("never changed"));
    assert_eq!(bytes_of(&folder), before);
    // The anchor may be replaced, and a new file in the tokenizer's folder is allowed.
    out(&[&session, "--previous", &anchor, "--save-anchor", &anchor]);
    out(&[&session, "--tokenizer", &vocabulary, "-o", &at("tokenizer/plan.txt")]);
}

/// A pipe can be read only once, and is.
#[cfg(unix)]
#[test]
fn options_and_models_may_come_through_pipes() {
    let folder = readable("piped");
    let session = folder.join("session.json");
    let run = |shell: &str| {
        let output = folder.join("plan.json");
        let script = format!("\"$0\" session.json {shell} --format json -o plan.json");
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).arg(assert_cmd::cargo::cargo_bin("plan-inspect"));
        let done = command.current_dir(&folder).env_remove("CONTEXT_WINDOW_CONFIG").output().unwrap();
        assert!(done.status.success(), "{shell}: {}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_str::<Value>(&fs::read_to_string(&output).unwrap()).unwrap()
    };
    for piped in ["--config <(sleep 0.1; cat config.toml)", "--config /dev/stdin < config.toml"] {
        assert_ne!(run(piped)["config"], "default");
    }
    assert_eq!(run("--config /dev/null")["config"], "default");
    assert_eq!(run("--models <(cat models.toml) --model mine")["model_context_len"], 9_000);
    // Sessions can come through any pipe.
    let shown = out(&["history", session.to_str().unwrap()]);
    for piped in
        ["history <(cat session.json)", "history /dev/stdin < session.json", "history - < session.json"]
    {
        let mut command = Command::new("bash");
        command.arg("-c").arg(format!("\"$0\" {piped}"));
        let done = command.arg(assert_cmd::cargo::cargo_bin("plan-inspect")).current_dir(&folder).output();
        assert_eq!(String::from_utf8(done.unwrap().stdout).unwrap(), shown, "{piped}");
    }
    // The output is then a log, because the input's text cannot be read again.
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (talk, to) =
        (fs::read(crate::support::root().join("examples/long-talk.json")).unwrap(), pipe.clone());
    let writer = std::thread::spawn(move || fs::write(to, talk).unwrap());
    let new = folder.join("new.log");
    out(&["compact", pipe.to_str().unwrap(), "--apply", new.to_str().unwrap()]);
    writer.join().unwrap();
    assert!(out(&["history", new.to_str().unwrap()]).contains("Context compacted"));
}

/// A named pipe without a writer would block for ever.
#[cfg(unix)]
#[test]
fn named_pipe_is_no_file_of_options() {
    let folder = readable("unwritten-pipe");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    let patience = std::time::Duration::from_secs(20);
    for flag in ["--config", "--models"] {
        let output = inspect(&[EXAMPLE, flag, pipe]).timeout(patience).assert().code(2);
        let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert!(
            said.contains(pipe) && said.contains("is a named pipe, not a regular file"),
            "{flag}: {said}"
        );
    }
    let output = inspect(&[EXAMPLE]).env("CONTEXT_WINDOW_CONFIG", pipe).timeout(patience).assert().code(2);
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("not a regular file"));
    let output = inspect(&["repair", pipe]).timeout(patience).assert().code(2);
    assert!(String::from_utf8_lossy(&output.get_output().stderr).contains("not a regular file"));
}

/// Results contain conversation texts, so only their owner may read them under any umask. Manual pages are
/// readable by all.
#[cfg(unix)]
#[test]
fn results_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    for umask in ["000", "022", "277"] {
        let folder = readable("rights");
        let before: Vec<_> = bytes_of(&folder).into_iter().map(|(path, _)| path).collect();
        let talk = crate::support::root().join("examples/long-talk.json");
        let script = format!(
            "umask {umask} && \"$0\" session.json --save-anchor new-anchor.json -o report.txt \
             && \"$0\" session.json --format messages -o body.json && \"$0\" replay session.json -o replay.txt \
             && \"$0\" compact \"$1\" --apply compacted.json"
        );
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).arg(assert_cmd::cargo::cargo_bin("plan-inspect")).arg(&talk);
        let done = command.current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let new: Vec<_> = bytes_of(&folder)
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| !before.contains(path))
            .collect();
        assert_eq!(new.len(), 5, "{new:?}");
        for path in new {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "umask {umask}: {}", path.display());
        }
    }
    let pages = readable("rights-of-pages");
    let script = format!("umask 022 && \"$0\" man --output-dir {}", pages.join("tokenizer").display());
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).arg(assert_cmd::cargo::cargo_bin("plan-inspect"));
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let page = pages.join("tokenizer/plan-inspect.1");
    assert_eq!(fs::metadata(page).unwrap().permissions().mode() & 0o777, 0o644);
}

/// A killed process leaves its partial file. A later process may have the same number, such as the first one
/// in each container.
#[cfg(unix)]
#[test]
fn leftover_partial_files_are_no_obstacle() {
    let folder = readable("leftovers");
    // `exec` keeps the shell's process id, so the tool gets it.
    let script = "for name in report.txt new.json; do echo left > $name.$$.part; echo left > $name.$$-2.part; done; \
                  exec \"$0\" \"$@\"";
    let run = |args: &[&str]| {
        let mut command = Command::new("bash");
        command.args(["-c", script]).arg(assert_cmd::cargo::cargo_bin("plan-inspect")).args(args);
        let done = command.current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let talk = crate::support::root().join("examples/long-talk.json");
    run(&["session.json", "-o", "report.txt"]);
    run(&["compact", talk.to_str().unwrap(), "--apply", "new.json"]);
    for name in ["report.txt", "new.json"] {
        assert_ne!(fs::read_to_string(folder.join(name)).unwrap(), "left\n");
    }
    let parts =
        bytes_of(&folder).into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "part"));
    assert!(parts.map(|(_, bytes)| bytes).all(|bytes| bytes == b"left\n"), "they are not ours");
}

#[test]
fn two_results_never_go_into_one_file() {
    let folder = readable("two-results");
    let [session, new] = ["session.json", "new.json"].map(|name| folder.join(name).display().to_string());
    let dotted = folder.join("tokenizer/../new.json").display().to_string();
    for other in [&new, &dotted] {
        let error = fails(&[&session, "--save-anchor", &new, "-o", other, "--format", "json"]);
        assert!(error.contains("--output and --save-anchor both write to"), "{error}");
        assert!(!Path::new(&new).exists());
    }
    fs::write(&new, "old").unwrap();
    fails(&[&session, "--save-anchor", &new, "-o", &dotted]);
    assert_eq!(fs::read_to_string(&new).unwrap(), "old");
    // A device is not a result file, so two results may go to it.
    #[cfg(unix)]
    out(&[&session, "--save-anchor", "/dev/null", "-o", "/dev/null"]);
}

/// Of several processes that write one new file together, one succeeds and the others report that it exists.
/// Its text is that of the successful one.
#[test]
fn one_of_several_writers_makes_a_new_file() {
    let folder = readable("writers");
    let talk = fs::canonicalize(crate::support::root().join("examples/long-talk.json")).unwrap();
    let gemini = folder.join("gemini.json");
    let contents: Vec<Value> = (0..12)
        .map(|at| serde_json::json!({"role": (["user", "model"][at % 2]), "parts": [{"text": format!("{at} {}", "word ".repeat(60))}]}))
        .collect();
    fs::write(&gemini, serde_json::json!({"contents": contents}).to_string()).unwrap();
    for (session, round) in [(&talk, 0), (&talk, 1), (&talk, 2), (&gemini, 3), (&gemini, 4)] {
        let new = folder.join(format!("new-{round}.json"));
        let summaries: Vec<String> =
            (0..4).map(|writer| format!("The summary of writer {writer}.")).collect();
        let writers: Vec<_> = summaries
            .iter()
            .enumerate()
            .map(|(writer, summary)| {
                let from = folder.join(format!("summary-{writer}.txt"));
                fs::write(&from, summary).unwrap();
                let mut command = Command::new(assert_cmd::cargo::cargo_bin("plan-inspect"));
                command.args([
                    "compact".as_ref(),
                    session.as_os_str(),
                    "--summary".as_ref(),
                    from.as_os_str(),
                ]);
                command.args(["--apply".as_ref(), new.as_os_str()]);
                command
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let outputs: Vec<_> = writers.into_iter().map(|writer| writer.wait_with_output().unwrap()).collect();
        let wrote: Vec<usize> = (0..4).filter(|writer| outputs[*writer].status.success()).collect();
        let text = fs::read_to_string(&new).unwrap();
        assert_eq!(wrote.len(), 1, "{round}: {wrote:?}");
        assert!(text.contains(&summaries[wrote[0]]), "{round}");
        for other in (0..4).filter(|writer| *writer != wrote[0]) {
            assert_eq!(outputs[other].status.code(), Some(2));
            assert!(String::from_utf8_lossy(&outputs[other].stderr).contains("exists; expected a new file"));
        }
        let left: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.iter().all(|path| path.extension().is_none_or(|end| end != "part")), "{left:?}");
    }
}

/// A compaction adds one entry, and every other byte stays the same: marks, blanks, line breaks, the other
/// sessions of a file, gzip.
#[test]
fn a_compaction_changes_no_other_byte() {
    let talk: Value = serde_json::from_str(
        &fs::read_to_string(crate::support::root().join("examples/long-talk.json")).unwrap(),
    )
    .unwrap();
    let messages: Vec<Value> = talk["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["content"].is_string())
        .cloned()
        .collect();
    let compact = serde_json::to_string(&messages).unwrap();
    let session = format!("{{\"id\":\"talk\",\"messages\":{compact},\"model\":\"gpt-4o\"}}");
    let spread =
        format!("{{\n  \"messages\": {} \n}}", compact.replace("},{", "},\n{").replace("}]", "}\n\t ]"));
    let texts = [
        ("bare.json", compact.clone(), None),
        ("marked.json", format!("\u{feff}{session}"), None),
        ("broken-off.json", session.clone(), None),
        ("lines.json", format!("{session}\n\n"), None),
        ("spread.json", spread + "  \n", None),
        ("several.jsonl", format!("{{\"id\":\"a\",\"query\":\"?\"}}\n{session}\r\n[ ]\n"), Some("talk")),
    ];
    for (name, text, id) in texts {
        for gz in [false, true] {
            let bytes = if gz { packed(&text) } else { text.clone().into_bytes() };
            let path = file(&format!("kept-{gz}-{name}"), &bytes);
            let new = path.with_extension("new");
            let _ = fs::remove_file(&new);
            let (path, to) = (path.to_str().unwrap(), new.to_str().unwrap());
            let id: Vec<&str> = id.iter().flat_map(|id| ["--id", *id]).collect();
            out(&[&["compact", path, "--apply", to], &id[..]].concat());
            let written = fs::read(&new).unwrap();
            assert_eq!(written.starts_with(&[0x1f, 0x8b]), gz, "{name}");
            let mut changed = String::new();
            if gz {
                std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&written[..]), &mut changed)
                    .unwrap();
            } else {
                changed = String::from_utf8(written).unwrap();
            }
            // The new text without one piece, the entry, is the old text.
            let same = text.bytes().zip(changed.bytes()).take_while(|(old, new)| old == new).count();
            let same = (0..=same).rev().find(|at| changed.is_char_boundary(*at)).unwrap();
            let more = changed.len() - text.len();
            let piece = (0..=same)
                .rev()
                .find(|at| changed[..*at] == text[..*at] && changed.get(at + more..) == text.get(*at..));
            let piece = piece.unwrap_or_else(|| panic!("{name}: other bytes changed:\n{changed}"));
            let entry = &changed[piece..piece + more];
            assert!(entry.contains("context_compaction"), "{name}: {entry}");
            assert_eq!(
                entry.contains('\n'),
                text.trim_end().contains('\n') && name == "spread.json",
                "{name}: {entry:?}"
            );
            assert!(out(&[&["history", to], &id[..]].concat()).contains("Context compacted #1"), "{name}");
        }
    }
}
