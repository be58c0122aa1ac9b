//! PostgreSQL over an encrypted connection, with certificates that this test creates.

use crate::support;
use crate::support::stores::server::{Server, is_root};
use context_window::*;
use context_window_store::SessionStore;
use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

/// Creates a certificate authority `ca.pem` and a certificate for `localhost` signed by it, in a server's
/// data folder.
fn certificates(data: &Path) -> bool {
    fs::write(data.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    let openssl = |words: &str| {
        let arguments: Vec<&str> = words.split(' ').collect();
        let done = Command::new("openssl").args(arguments).current_dir(data).stderr(Stdio::null()).status();
        done.is_ok_and(|done| done.success())
    };
    openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=tests -days 2")
        && openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost")
        && openssl(
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile names",
        )
}

/// Connects from a separate process, which trusts the authority that the variable `SSL_CERT_FILE` names.
fn connects(address: &str) {
    match SessionStore::open(address) {
        Err(error) => println!("said {error}"),
        Ok(mut store) => {
            let saved = store.update("s", |log| {
                log.push(Message::user("a"));
                Ok(())
            });
            println!("said {}", saved.unwrap().1);
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
    }
}

#[test]
fn an_encrypted_connection_checks_certificates() {
    if let Some(address) = std::env::var_os("STORE_TEST_TASK") {
        return connects(address.to_str().unwrap());
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::start_with(|data| {
        if !certificates(data) {
            return None;
        }
        let mine = |name: &str| {
            if is_root() {
                Command::new("chown")
                    .arg("postgres")
                    .arg(data.join(name))
                    .status()
                    .is_ok_and(|done| done.success())
            } else {
                true
            }
        };
        let safe = Command::new("chmod").arg("600").arg(data.join("server.key")).status();
        (mine("server.key") && mine("server.crt") && safe.is_ok_and(|done| done.success()))
            .then(|| format!("-c listen_addresses=localhost -c port={port} -c ssl=on"))
    });
    let Some(server) = server else {
        return support::skip(&support::running(), "PostgreSQL or openssl is not here: nothing is encrypted");
    };
    let trusted = server.folder().join("ca.pem");
    fs::copy(server.folder().join("data/ca.pem"), &trusted).unwrap();
    let nobody = server.folder().join("nobody.pem");
    fs::write(&nobody, "").unwrap();
    let address = |mode: &str| format!("postgres://postgres:s3cr3t@localhost:{port}/postgres?sslmode={mode}");
    let run = |mode: &str, trusts: &Path| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "stores::encrypted::an_encrypted_connection_checks_certificates",
                "--nocapture",
            ])
            .env("STORE_TEST_TASK", address(mode))
            .env("SSL_CERT_FILE", trusts)
            .env_remove("SSL_CERT_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        while !said.starts_with("said ") {
            said.clear();
            assert!(std::io::BufRead::read_line(&mut out, &mut said).unwrap() > 0, "it says something");
        }
        let socket = server.folder().display().to_string().replace('/', "%2F");
        let other = format!("postgres://postgres@{socket}:{port}/postgres");
        let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'context-window'";
        let mut client = postgres::Client::connect(&other, postgres::NoTls).unwrap();
        let encrypted: i64 = client.query_one(encrypted, &[]).unwrap().get(0);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!said.contains("s3cr3t"), "{said}");
        (said.trim().to_owned(), encrypted)
    };
    if cfg!(not(feature = "postgres-tls")) {
        return assert!(run("require", &trusted).0.contains("build it with the feature `postgres-tls`"));
    }
    assert_eq!(run("require", &trusted), ("said 1".into(), 1));
    assert_eq!(run("prefer", &trusted), ("said 2".into(), 1));
    assert_eq!(run("disable", &trusted), ("said 3".into(), 0));
    for (mode, trusts, words) in [
        ("require", &server.folder().join("data/server.csr"), "trusts no certificate"),
        ("require", &nobody, "trusts no certificate"),
        ("prefer", &another_authority(&server), "the server's certificate is not trusted"),
    ] {
        let (said, encrypted) = run(mode, trusts);
        assert!(said.contains(words) && said.contains("SSL_CERT_FILE") && encrypted == 0, "{said}");
    }
}

/// Creates a certificate authority that signed no certificate here.
fn another_authority(server: &Server) -> std::path::PathBuf {
    let folder = server.folder().join("another");
    fs::create_dir_all(&folder).unwrap();
    assert!(certificates(&folder));
    folder.join("ca.pem")
}
