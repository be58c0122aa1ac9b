//! `plan-inspect completions`: completion scripts for shells.
//!
//! The command `plan` can be omitted, but the scripts of clap do not support that. The additions for bash,
//! zsh and fish complete a line without a command like one with `plan`.

use crate::args::Cli;
use crate::stdout::print;
use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

pub(crate) fn run(shell: Shell) -> Result<ExitCode> {
    print(&script(shell)?)?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> Result<String> {
    let mut command = command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "plan-inspect", &mut script);
    let script = String::from_utf8(script)?;
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let names = names.join(" ");
    Ok(match shell {
        // The hyphen in the tool's name makes clap_complete 4.6.11 use two different names in the bash
        // script. Parts of it would never match (github.com/clap-rs/clap/issues/6421).
        Shell::Bash => script.replace("plan__subcmd__inspect", "plan__inspect") + BASH,
        Shell::Zsh => script
            .replacen(ZSH_START, &format!("{ZSH_START}{}", ZSH.replace("NAMES", &names)), 1)
            .replacen(ZSH_COMMANDS, &format!("{ZSH_COMMANDS}\n    _files"), 1),
        Shell::Fish => script + &FISH.replace("NAMES", &names),
        _ => script,
    })
}

/// Returns the command line with the options of `plan` also at the top level, because `plan` can be omitted.
fn command() -> Command {
    let command = Cli::command();
    let plan = command.find_subcommand("plan");
    let options = plan.into_iter().flat_map(Command::get_arguments).filter(|arg| !arg.is_positional());
    let options: Vec<clap::Arg> = options.cloned().collect();
    // Positional arguments are left out, because the scripts complete the session file themselves.
    command.args(options)
}

/// The addition for bash: the first word can also be a file.
const BASH: &str = r#"
_plan__inspect_or_file() {
    _plan__inspect "$@"
    if [[ ${COMP_CWORD} -eq 1 && "$2" != -* ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r file; do
            COMPREPLY+=("${file}")
        done < <(compgen -f -- "$2")
    fi
}
complete -F _plan__inspect_or_file -o bashdefault -o default plan-inspect
"#;

/// The start of the zsh completion function, after which [`ZSH`] is inserted.
const ZSH_START: &str = "_plan-inspect() {\n";

/// The line of the zsh script that lists commands. A list of files is added after it.
const ZSH_COMMANDS: &str = "    _describe -t commands 'plan-inspect commands' commands \"$@\"";

/// The addition for zsh: if the first word is not a command, `plan` is inserted before it.
const ZSH: &str = r#"    if (( CURRENT > 2 )) && [[ " NAMES help " != *" ${words[2]} "* ]]; then
        words=("${words[1]}" plan "${(@)words[2,-1]}")
        (( CURRENT += 1 ))
    fi
"#;

/// The addition for fish: if the first word is not a command, `plan` is inserted before it.
const FISH: &str = r#"
function __fish_plan_inspect_using_subcommand
    set -l cmd (__fish_plan_inspect_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] NAMES help
    or set cmd plan $cmd
    contains -- $cmd[1] $argv
end
complete -c plan-inspect -n "__fish_plan_inspect_needs_command" -F
"#;
