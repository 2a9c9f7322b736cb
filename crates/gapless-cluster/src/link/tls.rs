//! Mutual TLS between members, each with a certificate for the DNS name [`certificate_name`].

use super::error::LinkError;
use super::wire::MemberNumber;
use gapless_transport::sockets::{MutualTls, TcpSocket, TlsSocket};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A member's certificate and key, and the authority of all members' certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkTls {
    cluster: Arc<str>,
    tls: MutualTls,
}

impl LinkTls {
    /// Reads the PEM files and checks that the others will accept the certificate: issued by the authority, for the
    /// member's name, valid now.
    ///
    /// # Errors
    /// [`LinkError::Tls`] with the file and its defect.
    pub fn load(
        certificate: &Path,
        key: &Path,
        authority: &Path,
        cluster: &str,
        member: MemberNumber,
    ) -> Result<Self, LinkError> {
        let tls = MutualTls::load(certificate, key, authority, &certificate_name(cluster, member))?;
        Ok(Self { cluster: cluster.into(), tls })
    }

    pub(super) fn dialled(&self, socket: TcpSocket, to: MemberNumber) -> io::Result<TlsSocket> {
        self.tls.dialled(socket, &certificate_name(&self.cluster, to))
    }

    pub(super) fn accepted(&self, socket: TcpSocket) -> io::Result<TlsSocket> {
        self.tls.accepted(socket)
    }
}

/// DNS name in a member's certificate: `member-2.orders`.
#[must_use]
pub fn certificate_name(cluster: &str, member: MemberNumber) -> String {
    format!("member-{member}.{cluster}")
}

/// Whether the name can end a DNS name: labels of letters, digits and hyphens, with dots between them.
#[must_use]
pub fn can_be_certified(cluster: &str) -> bool {
    cluster.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    }) && !cluster.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "tls"))]
    #[test]
    fn build_without_tls_is_an_error() {
        let file = std::path::Path::new("member.pem");
        let refused = LinkTls::load(file, file, file, "orders", 1).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("no TLS") && text.contains("--features tls")));
    }

    #[test]
    fn only_dns_names_are_certifiable() {
        assert_eq!(certificate_name("orders", 2), "member-2.orders");
        for good in ["orders", "orders-2", "eu.orders", "A1"] {
            assert!(can_be_certified(good), "{good:?}");
        }
        for bad in ["", "a b", "or_ders", "-a", "a-", "a..b", ".", "grün", "7", "orders.7"] {
            assert!(!can_be_certified(bad), "{bad:?}");
        }
    }
}
