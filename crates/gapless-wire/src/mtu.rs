//! `Mtu`: the longest IP packet of a stream, and the resulting limits of its frames and packets.

use crate::descriptor::aligned_length;
use std::fmt;
use std::str::FromStr;

/// Maximum transmission unit of a stream's networks, bytes: 576 to 65,535.
///
/// ```
/// use gapless_wire::mtu::Mtu;
/// let ethernet = Mtu::DEFAULT;
/// assert_eq!((ethernet.frame_length_max(), ethernet.packet_length_max()), (1_376, 1_400));
/// let jumbo: Mtu = "9000".parse()?;
/// assert_eq!(jumbo.frame_length_max(), 8_876);
/// assert!(Mtu::new(9).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtu(u16);

/// Headers of IP, UDP and both protocols, and room for a tunnel.
const OVERHEAD: u16 = 124;
/// Longest, in the upstream protocol, bytes.
pub const PACKET_HEADER_LENGTH: usize = 24;

impl Mtu {
    /// The MTU of Ethernet.
    pub const DEFAULT: Self = Self(1_500);
    /// Every IPv4 host accepts it.
    pub const MIN: u16 = 576;
    /// Longest IP packet.
    pub const MAX: u16 = u16::MAX;

    /// Creates an MTU of `bytes`.
    ///
    /// # Errors
    /// The value is out of range; the text gives the allowed range.
    pub fn new(bytes: u64) -> Result<Self, String> {
        match u16::try_from(bytes) {
            Ok(bytes) if bytes >= Self::MIN => Ok(Self(bytes)),
            _ => Err(format!("{} to {} bytes are allowed as MTU, not {bytes}", Self::MIN, Self::MAX)),
        }
    }

    #[must_use]
    pub const fn bytes(self) -> u16 {
        self.0
    }

    /// 0 for no MTU.
    #[must_use]
    pub fn to_field(mtu: Option<Self>) -> u16 {
        mtu.map_or(0, Self::bytes)
    }

    /// `None` for a value out of range.
    #[must_use]
    pub fn from_field(field: u16) -> Option<Option<Self>> {
        if field == 0 { Some(None) } else { Self::new(field.into()).ok().map(Some) }
    }

    /// Longest frame that fits one packet, bytes.
    #[must_use]
    pub const fn frame_length_max(self) -> usize {
        (self.0 - OVERHEAD) as usize
    }

    /// Longest packet, bytes of UDP payload.
    #[must_use]
    pub const fn packet_length_max(self) -> usize {
        PACKET_HEADER_LENGTH + aligned_length(self.frame_length_max())
    }

    /// Least MTU for frames of this length; `None` if no MTU does.
    #[must_use]
    pub fn of_frame(frame_length: usize) -> Option<Self> {
        let bytes = u16::try_from(frame_length).ok()?.checked_add(OVERHEAD)?;
        Some(Self(bytes.max(Self::MIN)))
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Mtu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.parse().map_err(|_| format!("a number of bytes is expected as MTU, not {text:?}"))?;
        Self::new(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::FRAME_LENGTH_UDP;

    #[test]
    fn default_keeps_the_old_limit() {
        assert_eq!(Mtu::DEFAULT.frame_length_max(), FRAME_LENGTH_UDP);
        assert_eq!(Mtu::DEFAULT.packet_length_max(), 1_400);
    }

    #[test]
    fn longest_frame_fits_one_packet() {
        /// IPv6; IPv4 has fewer.
        const IP_UDP: usize = 48;
        for bytes in Mtu::MIN..=Mtu::MAX {
            let mtu = Mtu::new(bytes.into()).unwrap();
            let (frame, packet) = (mtu.frame_length_max(), mtu.packet_length_max());
            assert!(PACKET_HEADER_LENGTH + aligned_length(frame) <= packet, "{mtu}");
            assert!(packet + IP_UDP <= usize::from(bytes), "{mtu}");
            assert_eq!(Mtu::of_frame(frame), Some(mtu));
        }
        assert_eq!(Mtu::of_frame(65_412), None);
        assert_eq!(Mtu::of_frame(64).map(Mtu::bytes), Some(Mtu::MIN));
    }

    #[test]
    fn out_of_range_is_refused() {
        for text in ["0", "575", "65536", "-1", "jumbo", ""] {
            assert!(text.parse::<Mtu>().is_err(), "{text}");
        }
        assert_eq!((Mtu::from_field(0), Mtu::from_field(575), Mtu::to_field(None)), (Some(None), None, 0));
        assert_eq!(Mtu::from_field(Mtu::to_field(Some(Mtu::DEFAULT))), Some(Some(Mtu::DEFAULT)));
    }
}
