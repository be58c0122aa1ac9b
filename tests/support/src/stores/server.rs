//! A PostgreSQL server of the tests' own: in a temporary folder, on a socket in it, ended with the process that began it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// A server that runs.
pub struct Server {
    binaries: PathBuf,
    folder: PathBuf,
    /// Beside those of every server.
    options: String,
    /// Ends the server when this process is gone, however that happens: its input closes then.
    _guard: Child,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The server that the tests of this process share; none where PostgreSQL is not installed.
pub fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    SHARED.get_or_init(Server::start).as_ref()
}

/// The folder with the newest server's programs.
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

/// A program of the server's: never as root, which it refuses.
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
    /// A new server with nothing in it, or none where none can be had.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| Some(String::new()))
    }

    /// One with options of its own, which may be about files that `prepare` puts into the folder of its data.
    pub fn start_with(prepare: impl FnOnce(&Path) -> Option<String>) -> Option<Self> {
        let binaries = binaries()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A socket's path is short.
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
        // Of this folder's server only: others may run.
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

    /// Starts it again after it was killed.
    pub fn resume(&self) -> bool {
        let folder = self.folder.display();
        // After a kill its children take a moment to go, and hold its memory until then.
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

    /// Its number among the processes.
    pub fn pid(&self) -> String {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().to_owned()
    }

    /// Ends it as a power failure would.
    pub fn kill(&self) {
        let pid = self.pid();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        // Its children end when they notice; a new server waits for that.
        while Path::new(&format!("/proc/{pid}")).exists() && !is_zombie(&pid) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// The address of a database of this name.
    pub fn address(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{database}")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// SQL in a database, by a connection of its own.
    pub fn sql(&self, database: &str, sql: &str) {
        let mut client = postgres::Client::connect(&self.address(database), postgres::NoTls).unwrap();
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// A new database, by its address.
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
