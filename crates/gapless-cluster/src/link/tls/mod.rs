//! Mutual TLS between members: [`LinkTls`], the certificates, and `TlsSocket`, bytes over TLS over TCP. Built with the
//! feature `tls`, because its cryptography needs a C compiler; without it the types are there and have no value.
//!
//! TLS 1.3 alone. A member proves who it is by a certificate that the authority has signed and that is for the DNS name
//! [`certificate_name`]; both sides of a connection ask for it.

#[cfg(feature = "tls")]
mod certificates;
#[cfg(feature = "tls")]
mod names;
#[cfg(feature = "tls")]
mod socket;
#[cfg(feature = "tls")]
pub use certificates::LinkTls;
#[cfg(feature = "tls")]
pub(super) use socket::TlsSocket;

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(not(feature = "tls"))]
pub use absent::LinkTls;
#[cfg(not(feature = "tls"))]
pub(super) use absent::TlsSocket;

use super::wire::MemberId;

/// The DNS name that the certificate of a member has to be for: `member-2.orders`.
#[must_use]
pub fn certificate_name(cluster: &str, member: MemberId) -> String {
    format!("member-{member}.{cluster}")
}

/// Whether a cluster's name can be the end of a DNS name: labels of letters, digits and hyphens, with dots between them.
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
    fn a_build_without_it_says_so() {
        let file = std::path::Path::new("member.pem");
        let refused = LinkTls::load(file, file, file, "orders", 1).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|text| text.contains("no TLS") && text.contains("--features tls")));
    }

    #[test]
    fn names_that_can_stand_in_a_certificate() {
        assert_eq!(certificate_name("orders", 2), "member-2.orders");
        for good in ["orders", "orders-2", "eu.orders", "A1"] {
            assert!(can_be_certified(good), "{good:?}");
        }
        for bad in ["", "a b", "or_ders", "-a", "a-", "a..b", ".", "grün", "7", "orders.7"] {
            assert!(!can_be_certified(bad), "{bad:?}");
        }
    }
}
