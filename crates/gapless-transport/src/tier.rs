//! `Tier`: durability of a frame before its release.

use std::fmt;
use std::str::FromStr;

/// Durability of a frame before any process acts on it: the promise of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Lost with the process.
    Memory,
    /// Page cache: survives the process, not a power failure.
    #[default]
    Journal,
    /// On the device: survives a power failure.
    Sync,
    /// Page caches of a majority: survives any minority of the machines.
    Quorum,
    /// Devices of a majority: survives a power failure of all machines.
    QuorumSync,
}

impl Tier {
    /// Tiers of a single node, weakest first.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Journal, Self::Sync];

    /// Tiers of a cluster's member, weakest first.
    pub const REPLICATED: [Self; 2] = [Self::Quorum, Self::QuorumSync];

    /// In options, files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Journal => "journal",
            Self::Sync => "sync",
            Self::Quorum => "quorum",
            Self::QuorumSync => "quorum-sync",
        }
    }

    #[must_use]
    pub const fn is_journaled(self) -> bool {
        !matches!(self, Self::Memory)
    }

    /// On the device of each counted member before any process acts on it.
    #[must_use]
    pub const fn is_synced(self) -> bool {
        matches!(self, Self::Sync | Self::QuorumSync)
    }

    /// On a majority of members before any process acts on it.
    #[must_use]
    pub const fn is_replicated(self) -> bool {
        matches!(self, Self::Quorum | Self::QuorumSync)
    }

    /// Number in handshakes.
    #[must_use]
    pub const fn from_value(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Memory,
            1 => Self::Journal,
            2 => Self::Sync,
            3 => Self::Quorum,
            4 => Self::QuorumSync,
            _ => return None,
        })
    }

    /// `None` if the tier is allowed without a cluster.
    #[must_use]
    pub fn refusal_outside_a_cluster(self) -> Option<String> {
        self.is_replicated().then(|| format!("tier {self} needs a cluster, and none is configured"))
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses a tier without a cluster: replicated ones are refused with the reason.
impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "memory" => Ok(Self::Memory),
            "journal" => Ok(Self::Journal),
            "sync" => Ok(Self::Sync),
            "quorum" | "quorum-sync" => Err(format!("tier {text} needs a cluster; `gapless cluster new` begins one")),
            _ => Err(format!("unknown tier {text}; expected memory, journal or sync")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_have_their_properties() {
        let says = |tier: Tier| (tier.is_journaled(), tier.is_synced(), tier.is_replicated());
        assert_eq!(says(Tier::Memory), (false, false, false));
        assert_eq!(says(Tier::Journal), (true, false, false));
        assert_eq!(says(Tier::Sync), (true, true, false));
        assert_eq!(says(Tier::Quorum), (true, false, true));
        assert_eq!(says(Tier::QuorumSync), (true, true, true));
        for tier in Tier::ALL.into_iter().chain(Tier::REPLICATED) {
            assert_eq!(Tier::from_value(tier as u32), Some(tier));
            assert_eq!(tier.name().parse::<Tier>().ok(), Some(tier).filter(|tier| !tier.is_replicated()));
            assert_eq!(tier.refusal_outside_a_cluster().is_some(), tier.is_replicated());
        }
        assert_eq!(Tier::from_value(5), None);
        assert!("quorum".parse::<Tier>().unwrap_err().contains("needs a cluster"));
    }
}
