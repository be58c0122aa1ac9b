//! Connections to a server: timeouts, setup, and detection of lost connections.

use crate::error::{Error, Repr};
use postgres::{
    Client, Config,
    config::{Host, SslMode},
    error::SqlState,
};
use std::time::Duration;

/// The maximum time for a host to accept a connection, unless the address specifies another.
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum time without an answer to sent data, and the idle time before a keepalive probe.
const SILENCE: Duration = Duration::from_secs(30);
/// The driver's default of `keepalives_idle`, which is used if the address does not specify it.
const KEEPALIVE_UNSET: Duration = Duration::from_hours(2);

/// The oldest supported server version, in the server's numbering.
const OLDEST: i32 = 130_000;

/// Parses an address, and adds defaults for missing settings.
pub(super) fn settings(address: &str) -> Result<Config, Error> {
    // The driver's error text may quote a part of the address, and so of the password.
    let fault = || {
        let detail = "cannot be parsed; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE with percent-encoded parts";
        Error::new(Repr::Store { place: "address of a PostgreSQL store".into(), detail: detail.into() })
    };
    if !is_unambiguous(address) {
        return Err(fault());
    }
    let mut config: Config = address.parse().map_err(|_| fault())?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_keepalives_idle() == KEEPALIVE_UNSET {
        config.keepalives_idle(SILENCE);
    }
    if config.get_application_name().is_none() {
        config.application_name("context-window");
    }
    Ok(config)
}

/// Checks that the password in the address is unambiguous. An unencoded delimiter in it could make a part of
/// the password look like the host or the database, which errors name.
fn is_unambiguous(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.matches('@').count() == rest.matches('@').count() && authority.matches('@').count() < 2
}

/// Returns an error of the driver with the operation that failed.
pub(super) fn fault(name: &str, what: &str, error: &postgres::Error) -> Error {
    Error::new(Repr::Store { place: name.into(), detail: format!("{what}: {}", said(error)) })
}

/// Returns the error text of the server or the system. The driver's own text names only the category, so the
/// texts of its sources are appended.
fn said(error: &postgres::Error) -> String {
    if let Some(fault) = error.as_db_error() {
        let advice = match fault.code().code() {
            "55P03" => "; another writer has locked it for 10 s; try again",
            _ => "",
        };
        return format!("{} ({}){advice}", fault.message(), fault.code().code());
    }
    let (mut said, mut below) = (error.to_string(), std::error::Error::source(error));
    while let Some(source) = below {
        let words = source.to_string();
        if !said.ends_with(&words) {
            said.push_str(": ");
            said.push_str(&words);
        }
        below = source.source();
    }
    said
}

/// Returns the servers and the database of an address, without user and password.
pub(super) fn name(config: &Config) -> String {
    let mut name = "postgres://".to_owned();
    for (at, host) in config.get_hosts().iter().enumerate() {
        let port = config.get_ports().get(at).or(config.get_ports().first()).copied().unwrap_or(5432);
        let host = match host {
            Host::Tcp(host) => host.clone(),
            #[cfg(unix)]
            Host::Unix(folder) => folder.display().to_string(),
        };
        let comma = if at == 0 { "" } else { "," };
        name = format!("{name}{comma}{host}:{port}");
    }
    name.push('/');
    name.push_str(config.get_dbname().or(config.get_user()).unwrap_or_default());
    name
}

/// Connects and sets up the session for the store. Returns the connection and a unique name for its writes.
pub(super) fn begin(name: &str, config: &Config, reads_only: bool) -> Result<(Client, String), Error> {
    let cannot = |error: postgres::Error| fault(name, "cannot be connected to", &error);
    let refused = |detail: String| Error::new(Repr::Store { place: name.into(), detail });
    let mut client = connected(name, config)?;
    // These settings do not depend on the server's defaults. Appends need rows to be read again after a wait
    // for a lock, and a confirmed commit must be on disk.
    let setup = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
                 SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') = 'off'";
    client.batch_execute(setup).map_err(cannot)?;
    // A wait for a lock ends with an error, and a writer that has disappeared does not keep its locks for
    // long.
    let limits = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'";
    client.batch_execute(limits).map_err(cannot)?;
    if reads_only {
        client.batch_execute("SET default_transaction_read_only = on").map_err(cannot)?;
    }
    let asked = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')";
    let row = client.query_typed_one(asked, &[]).map_err(cannot)?;
    let version: i32 = row.try_get(0).map_err(cannot)?;
    if version < OLDEST {
        return Err(refused(format!("is PostgreSQL {}; expected 13 or later", version / 10_000)));
    }
    let encoding: String = row.try_get(1).map_err(cannot)?;
    if encoding != "UTF8" {
        return Err(refused(format!("has the encoding {encoding}; expected a database in UTF8")));
    }
    let row = client.query_typed_one("SELECT gen_random_uuid()::text", &[]).map_err(cannot)?;
    Ok((client, row.try_get(0).map_err(cannot)?))
}

/// Connects without encryption. Fails if the address requires it.
#[cfg(not(feature = "postgres-tls"))]
fn connected(name: &str, config: &Config) -> Result<Client, Error> {
    if config.get_ssl_mode() == SslMode::Require {
        let detail = "requests encryption (sslmode=require), but this program was built without it; build it with the feature `postgres-tls`";
        return Err(Error::new(Repr::Store { place: name.into(), detail: detail.into() }));
    }
    config.connect(postgres::NoTls).map_err(|error| fault(name, "cannot be connected to", &error))
}

/// Connects with encryption, unless the address disables it.
#[cfg(feature = "postgres-tls")]
fn connected(name: &str, config: &Config) -> Result<Client, Error> {
    let to = |error: postgres::Error| fault(name, "cannot be connected to", &error);
    if config.get_ssl_mode() == SslMode::Disable {
        return config.connect(postgres::NoTls).map_err(to);
    }
    config.connect(crate::tls::connector(name)?).map_err(|error| {
        let words = said(&error);
        if !words.contains("certificate") {
            return to(error);
        }
        let detail = format!(
            "cannot be connected to: the server's certificate is not trusted ({words}); set SSL_CERT_FILE to the certificate that signed it, or turn off encryption (sslmode=disable)"
        );
        Error::new(Repr::Store { place: name.into(), detail })
    })
}

/// Returns true if the connection is unusable.
pub(super) fn is_lost(client: &Client, error: &postgres::Error) -> bool {
    // The classes 08 (connection exception) and 57P (operator intervention, such as a shutdown) of SQL
    // states.
    let of_the_server = |state: &SqlState| state.code().starts_with("57P") || state.code().starts_with("08");
    client.is_closed() || error.is_closed() || error.code().is_some_and(of_the_server) || is_io(error)
}

fn is_io(error: &postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error + 'static>::is::<std::io::Error>)
}
