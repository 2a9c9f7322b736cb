//! [`MemberDetails`]: agreed properties of a member besides its role.
//!
//! ```text
//! details   u8 count, each: u64 member, u8 flags: 1 joining, 2 replaces another; u64 whom it replaces, if it does,
//!           u8 number of addresses, each: u16 length, UTF-8
//! ```

use super::fields::{FieldError, Fields, put_u64};
use super::types::{CONSENSUS_MEMBERS_MAX, MemberId};
use crate::link::shared_memory_path;
use std::net::SocketAddr;

pub use crate::link::MEMBER_ADDRESSES_MAX;

/// Bytes: a host name and a port.
pub const ADDRESS_LENGTH_MAX: usize = 260;

const JOINING_FLAG: u8 = 1;
const REPLACES_FLAG: u8 = 2;

/// Agreed properties of a member besides its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDetails {
    pub member: MemberId,
    /// `host:port` in the order of the attempts, at most [`MEMBER_ADDRESSES_MAX`].
    pub addresses: Vec<String>,
    /// Learner that becomes a voter once it has nearly every entry.
    pub joining: Option<JoiningMember>,
}

/// Promotion of a learner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoiningMember {
    /// Removed in the same change.
    pub replaces: Option<MemberId>,
}

/// Whether `text` is `host:port`, without a name lookup, or a shared-memory path.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let is_named = || {
        text.rsplit_once(':').is_some_and(|(host, port)| {
            let is_host =
                !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
        })
    };
    if let Some(path) = shared_memory_path(text).transpose() {
        return path.is_ok();
    }
    text.len() <= ADDRESS_LENGTH_MAX && text.parse::<SocketAddr>().map_or_else(|_| is_named(), |it| it.port() != 0)
}

impl MemberDetails {
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.addresses.len() <= MEMBER_ADDRESSES_MAX && self.addresses.iter().all(|address| is_address(address))
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        put_u64(bytes, self.member.get());
        let replaces = self.joining.and_then(|joining| joining.replaces);
        let joining = if self.joining.is_some() { JOINING_FLAG } else { 0 };
        bytes.push(joining | if replaces.is_some() { REPLACES_FLAG } else { 0 });
        replaces.into_iter().for_each(|member| put_u64(bytes, member.get()));
        bytes.push(self.addresses.len() as u8);
        for address in &self.addresses {
            bytes.extend_from_slice(&(address.len() as u16).to_le_bytes());
            bytes.extend_from_slice(address.as_bytes());
        }
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        let member = fields.member("member of details")?;
        let joining = match fields.u8("flags of details")? {
            0 => None,
            JOINING_FLAG => Some(JoiningMember::default()),
            flags if flags == JOINING_FLAG | REPLACES_FLAG => {
                Some(JoiningMember { replaces: Some(fields.member("replaced member")?) })
            }
            _ => return Err(FieldError::Value { what: "flags of details" }),
        };
        let count = usize::from(fields.u8("number of addresses")?);
        let address = |_| {
            let length = usize::from(fields.u16("length of an address")?);
            let text = std::str::from_utf8(fields.bytes(length, "address")?).ok().filter(|text| is_address(text));
            text.map(str::to_owned).ok_or(FieldError::Value { what: "address" })
        };
        if count > MEMBER_ADDRESSES_MAX {
            return Err(FieldError::Value { what: "number of addresses" });
        }
        Ok(Self { member, addresses: (0..count).map(address).collect::<Result<_, _>>()?, joining })
    }
}

pub(super) fn put_details(bytes: &mut Vec<u8>, details: &[MemberDetails]) {
    debug_assert!(details.len() <= CONSENSUS_MEMBERS_MAX, "details are checked before they are encoded");
    bytes.push(details.len() as u8);
    details.iter().for_each(|each| each.put(bytes));
}

pub(super) fn take_details(fields: &mut Fields<'_>) -> Result<Vec<MemberDetails>, FieldError> {
    let count = usize::from(fields.u8("number of details")?);
    if count > CONSENSUS_MEMBERS_MAX {
        return Err(FieldError::Value { what: "number of details" });
    }
    let details = (0..count).map(|_| MemberDetails::take(fields)).collect::<Result<Vec<_>, _>>()?;
    let is_ordered = details.windows(2).all(|pair| pair[0].member < pair[1].member);
    if is_ordered { Ok(details) } else { Err(FieldError::Value { what: "order of details" }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_addresses_are_detected() {
        for right in ["10.0.0.1:1", "[::1]:2", "db-2.example.org:9100", "a:1"] {
            assert!(is_address(right), "{right}");
        }
        for wrong in ["", "host", ":1", "host:", "host:0", "10.0.0.1:0", "a b:1", "host:70000"] {
            assert!(!is_address(wrong), "{wrong}");
        }
        assert!(!is_address(&format!("{}:1", "a".repeat(ADDRESS_LENGTH_MAX))));
    }
}
