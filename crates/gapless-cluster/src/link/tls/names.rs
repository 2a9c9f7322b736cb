//! Whether a certificate is of a member.

use super::certificate_name;
use crate::link::error::LinkError;
use crate::link::wire::MemberId;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;

/// Whether a certificate is that of a member.
pub(super) fn is_of(certificate: &CertificateDer<'_>, cluster: &str, member: MemberId) -> bool {
    let Ok(name) = server_name(&certificate_name(cluster, member)) else { return false };
    ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, LinkError> {
    ServerName::try_from(name.to_owned()).map_err(|_| LinkError::CertificateName { name: name.to_owned() })
}
