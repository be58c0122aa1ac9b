//! Encrypted connections to PostgreSQL. Certificates are checked against those that the system trusts.

use crate::error::{Error, Repr};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Creates a connector for encrypted connections. The variable `SSL_CERT_FILE` can name another file of
/// trusted certificates.
///
/// # Errors
///
/// `ErrorKind::Store` if the system has no trusted certificates.
pub(super) fn connector(name: &str) -> Result<MakeRustlsConnect, Error> {
    let fault = |detail: String| Error::new(Repr::Store { place: name.into(), detail });
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        let detail = format!(
            "cannot be connected to: the system trusts no certificate{why}; install certificates (ca-certificates), or set SSL_CERT_FILE to a file"
        );
        return Err(fault(detail));
    }
    // The provider is set explicitly, because another crate of the program may have chosen another default.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(format!("cannot be connected to: {error}")))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}
