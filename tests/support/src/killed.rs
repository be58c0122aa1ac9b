//! A test that starts itself as a process of its own and kills it at any moment.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// The first word of a line with which a process confirms that its work is on disk.
const CONFIRMED: &str = "confirmed";

/// Random moments of the kills. They are the same in every run.
pub struct Moments(u64);

impl Moments {
    pub fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    fn next(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Duration::from_micros(self.0 % 9_000)
    }
}

/// Starts the test `name` as a process that finds `path` in the variable `variable`, and kills it some time
/// after its first confirmation. Returns the numbers of each confirmation: a line that begins with
/// `confirmed`, such as `confirmed 17 3`.
pub fn confirmations(name: &str, variable: &str, path: &Path, moments: &mut Moments) -> Vec<Vec<usize>> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(variable, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // After its first line, the process can be killed at any moment.
    let first = lines.by_ref().find(|line| line.as_ref().is_ok_and(|line| line.contains(CONFIRMED)));
    std::thread::sleep(moments.next());
    child.kill().unwrap();
    child.wait().unwrap();
    let said = first.into_iter().chain(lines).map_while(Result::ok);
    said.filter(|line| line.contains(CONFIRMED))
        .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .collect()
}
