//! [`LinkTls`]: a member's certificate and key, and the authority that every member's must come from.

use super::certificate_name;
use super::names::server_name;
use super::socket::TlsSocket;
use crate::link::error::LinkError;
use crate::link::wire::MemberId;
use gapless_transport::sockets::TcpSocket;
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

/// A member's certificate and key, and the authority of all of them.
#[derive(Clone)]
pub struct LinkTls {
    cluster: Arc<str>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl LinkTls {
    /// Reads the PEM files of member `member` of the cluster named so, and checks that the others will take the
    /// certificate: that it is the authority's, for the member's name, and valid now.
    ///
    /// # Errors
    /// [`LinkError::Tls`] with the file and what is wrong with it.
    pub fn load(
        certificate: &Path,
        key: &Path,
        authority: &Path,
        cluster: &str,
        member: MemberId,
    ) -> Result<Self, LinkError> {
        let wrong = |path: &Path, reason: String| LinkError::Tls { path: path.to_owned(), reason };
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
        let name = certificate_name(cluster, member);
        verifier
            .verify_server_cert(&chain[0], &chain[1..], &server_name(&name)?, &[], UnixTime::now())
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
        // Every connection proves anew who is there.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(of_versions)?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(chain, secret)
            .map_err(|error| wrong(key, error.to_string()))?;
        client.resumption = Resumption::disabled();
        Ok(Self { cluster: cluster.into(), client: Arc::new(client), server: Arc::new(server) })
    }

    /// TLS over a connection to a member, which has to prove that it is that one.
    pub(in crate::link) fn dialled(&self, socket: TcpSocket, to: MemberId) -> io::Result<TlsSocket> {
        let name = server_name(&certificate_name(&self.cluster, to)).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        Ok(TlsSocket::new(socket, Connection::Client(connection), Arc::clone(&self.cluster)))
    }

    /// TLS over a connection from a member, which has to prove that it is one.
    pub(in crate::link) fn accepted(&self, socket: TcpSocket) -> io::Result<TlsSocket> {
        let connection = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(TlsSocket::new(socket, Connection::Server(connection), Arc::clone(&self.cluster)))
    }
}

/// The same value, or a copy of it.
impl PartialEq for LinkTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client)
    }
}

impl Eq for LinkTls {}

impl fmt::Debug for LinkTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkTls").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

/// One at least.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LinkError> {
    let wrong = |reason: String| LinkError::Tls { path: path.to_owned(), reason };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match all {
        Ok(all) if all.is_empty() => Err(wrong("it holds no certificate in PEM".to_owned())),
        Ok(all) => Ok(all),
        Err(error) => Err(wrong(error.to_string())),
    }
}
