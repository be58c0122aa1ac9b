//! The tests' own PostgreSQL server: in a temporary folder, on a socket in it, stopped with the process that
//! started it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// A running server.
pub struct Server {
    binaries: PathBuf,
    folder: PathBuf,
    /// Options in addition to those of every server.
    options: String,
    /// Stops the server when this process ends in any way, because its input closes then.
    _guard: Child,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Returns the server that the tests of this process share, or `None` if PostgreSQL is not installed.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    SHARED.get_or_init(Server::start).as_ref()
}

/// Returns the folder with the newest server's programs.
fn binaries() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = debian.map(|version| version.path().join("bin")).collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let elsewhere = std::env::split_paths(&path).collect::<Vec<_>>();
    found
        .into_iter()
        .rev()
        .chain(elsewhere)
        .find(|folder| ["initdb", "pg_ctl", "postgres"].iter().all(|name| folder.join(name).exists()))
}

pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout == b"0\n")
}

/// Returns a command for a program of the server. It never runs as root, which the server refuses.
fn program(binaries: &Path, name: &str) -> Command {
    let path = binaries.join(name);
    let mut command = if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(path);
        command
    } else {
        Command::new(path)
    };
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Server {
    /// Starts a new empty server. Returns `None` if that is impossible.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| Some(String::new()))
    }

    /// Starts a server with additional options, which may name files that `prepare` writes to its data
    /// folder.
    pub fn start_with(prepare: impl FnOnce(&Path) -> Option<String>) -> Option<Self> {
        let binaries = binaries()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A short path, because the length of a socket's path is limited.
        let folder = PathBuf::from(format!("/tmp/cw-pg-{}-{number}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).ok()?;
        if is_root() {
            Command::new("chown").arg("postgres").arg(&folder).status().ok().filter(|done| done.success())?;
        }
        let data = folder.join("data");
        let made = program(&binaries, "initdb")
            .arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"])
            .status();
        made.ok().filter(|made| made.success())?;
        let options = prepare(&data)?;
        // Stops only the server of this folder, because others may run.
        let stop = format!(
            "cat; pid=$(head -n 1 {0}/data/postmaster.pid 2>/dev/null) && kill -QUIT \"$pid\"; sleep 1; rm -rf {0}",
            folder.display()
        );
        let guard = Command::new("sh")
            .args(["-c", &stop])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Self { binaries, folder, options, _guard: guard.ok()? };
        server.resume().then_some(server)
    }

    /// Starts it again after a kill.
    pub fn resume(&self) -> bool {
        let folder = self.folder.display();
        // After a kill, its child processes take a moment to end and hold its memory until then.
        (0..50).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            let options = format!(
                "-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=100 -c password_encryption=scram-sha-256 {}",
                self.options
            );
            let started = program(&self.binaries, "pg_ctl")
                .args(["-w", "-D"])
                .arg(self.folder.join("data"))
                .arg("-l")
                .arg(self.folder.join("log"))
                .args(["-o", &options, "start"])
                .status();
            started.is_ok_and(|started| started.success())
        })
    }

    /// Returns its process id.
    pub fn pid(&self) -> String {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().to_owned()
    }

    /// Kills it, like a power failure.
    pub fn kill(&self) {
        let pid = self.pid();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        // Its child processes end when they notice; a new server waits for that.
        while Path::new(&format!("/proc/{pid}")).exists() && !is_zombie(&pid) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Returns the address of a database with this name.
    pub fn address(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{database}")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs SQL in a database, on a new connection.
    pub fn sql(&self, database: &str, sql: &str) {
        let mut client = postgres::Client::connect(&self.address(database), postgres::NoTls).unwrap();
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// Creates a database and returns its address.
    pub fn database(&self) -> String {
        let name = format!("d{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }
}

fn is_zombie(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
}
