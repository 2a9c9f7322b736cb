//! `Transport`: the transport of a stream to its nodes.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    SharedMemory,
    Udp,
    Multicast,
    Tcp,
}

impl Transport {
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("shared-memory", Self::SharedMemory),
        ("udp", Self::Udp),
        ("multicast", Self::Multicast),
        ("tcp", Self::Tcp),
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, transport)| *transport == self).map_or("", |(name, _)| name)
    }
}
