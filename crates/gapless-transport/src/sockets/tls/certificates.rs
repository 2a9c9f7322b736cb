//! `MutualTls`: this side's certificate and key, and the authority that must sign every certificate.

use super::error::TlsError;
use super::names::server_name;
use super::socket::TlsSocket;
use crate::sockets::tcp::TcpSocket;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

#[derive(Clone)]
pub struct MutualTls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl MutualTls {
    /// Reads the PEM files, and checks that other sides will accept the certificate: signed by the authority, for
    /// `name`, valid now.
    ///
    /// # Errors
    /// [`TlsError::File`] with the file and its fault; [`TlsError::Name`].
    pub fn load(certificate: &Path, key: &Path, authority: &Path, name: &str) -> Result<Self, TlsError> {
        let wrong = |path: &Path, reason: String| TlsError::File { path: path.to_owned(), reason };
        let chain = certificates(certificate)?;
        let mut roots = RootCertStore::empty();
        for root in certificates(authority)? {
            roots.add(root).map_err(|error| wrong(authority, error.to_string()))?;
        }
        let roots = Arc::new(roots);
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| wrong(authority, error.to_string()))?;
        verifier
            .verify_server_cert(&chain[0], &chain[1..], &server_name(name)?, &[], UnixTime::now())
            .map_err(|error| wrong(certificate, format!("it does not vouch for {name}: {error}")))?;
        let client_verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| wrong(authority, error.to_string()))?;
        client_verifier
            .verify_client_cert(&chain[0], &chain[1..], UnixTime::now())
            .map_err(|error| wrong(certificate, format!("it is not for who connects: {error}")))?;

        let of_versions = |error: rustls::Error| wrong(certificate, error.to_string());
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(of_versions)?
            .with_client_cert_verifier(client_verifier)
            .with_single_cert(chain.clone(), secret.clone_key())
            .map_err(|error| wrong(key, error.to_string()))?;
        // Every connection proves its identity again.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(of_versions)?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(chain, secret)
            .map_err(|error| wrong(key, error.to_string()))?;
        client.resumption = Resumption::disabled();
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// The other side must prove that it has this name.
    ///
    /// # Errors
    /// The name is not valid.
    pub fn dialled(&self, socket: TcpSocket, name: &str) -> io::Result<TlsSocket> {
        let name = server_name(name).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        Ok(TlsSocket::new(socket, Connection::Client(connection)))
    }

    /// The other side must show a certificate of the authority; [`TlsSocket::proves`] checks its name.
    ///
    /// # Errors
    /// An error of the TLS library.
    pub fn accepted(&self, socket: TcpSocket) -> io::Result<TlsSocket> {
        let connection = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(TlsSocket::new(socket, Connection::Server(connection)))
    }
}

/// Equal only to itself and its clones.
impl PartialEq for MutualTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client)
    }
}

impl Eq for MutualTls {}

impl fmt::Debug for MutualTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutualTls").finish_non_exhaustive()
    }
}

/// At least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: String| TlsError::File { path: path.to_owned(), reason };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match all {
        Ok(all) if all.is_empty() => Err(wrong("it holds no certificate in PEM".to_owned())),
        Ok(all) => Ok(all),
        Err(error) => Err(wrong(error.to_string())),
    }
}
