//! A real terminal through tmux: sends keys and reads the screen. Other test programs of the project include
//! this file too.

use std::{
    process::{Command, Output},
    thread::sleep,
    time::Duration,
};

/// A separate terminal with a shell whose prompt is `ready> `.
pub struct Tmux {
    name: String,
}

impl Tmux {
    /// Returns true if tmux is installed, and `/proc` exists to find processes in.
    pub fn is_here() -> bool {
        Command::new("tmux").arg("-V").output().is_ok() && std::path::Path::new("/proc/self").exists()
    }

    /// Opens a terminal of this size under a unique name. The shell does not get the variables in `unset`.
    pub fn open(name: String, (width, height): (u16, u16), unset: &[&str]) -> Self {
        let terminal = Self { name };
        let (width, height) = (width.to_string(), height.to_string());
        let unset: String = unset.iter().map(|name| format!("-u {name} ")).collect();
        let shell = format!("env {unset}PS1='ready> ' bash --norc --noprofile");
        let output =
            terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &shell]);
        assert!(output.status.success(), "{output:?}");
        terminal.type_in("PS1='ready> '; clear");
        terminal.waits();
        terminal
    }

    pub fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux").args(["-L", &self.name]).args(args).output().unwrap()
    }

    /// Types a line and sends it.
    pub fn type_in(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Presses keys by their tmux names, and waits after Escape. A terminal program reads Escape with an
    /// immediate letter as Alt and that letter, and two of them as one.
    pub fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.tmux(&["send-keys", key]);
            if *key == "Escape" {
                sleep(Duration::from_millis(300));
            }
        }
    }

    /// Returns the content of the screen.
    pub fn picture(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Waits until this text is on the screen.
    pub fn shows(&self, text: &str) -> String {
        self.becomes(text, |picture| picture.contains(text))
    }

    /// Waits until the condition holds for the screen.
    pub fn becomes(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        for _ in 0..600 {
            let picture = self.picture();
            if is(&picture) {
                return picture;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("the screen never shows {what}:\n{}", self.picture());
    }

    /// Waits until the shell's prompt is the last line on the screen.
    pub fn waits(&self) {
        self.becomes("a prompt", |picture| picture.trim_end().lines().next_back() == Some("ready>"));
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
