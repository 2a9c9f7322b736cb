//! [`Tier`]: how durable a frame is before anybody acts on it.

use std::fmt;
use std::str::FromStr;

/// How durable a frame is before anybody acts on it, and so what an acknowledgement promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// In this process; lost with it.
    Memory,
    /// In the operating system's hands: survives the process, not the machine's power.
    #[default]
    Journal,
    /// On the device: survives the machine's power.
    Sync,
}

impl Tier {
    /// All tiers of one node, weakest first.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Journal, Self::Sync];

    /// The name in options, files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Journal => "journal",
            Self::Sync => "sync",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "memory" => Ok(Self::Memory),
            "journal" => Ok(Self::Journal),
            "sync" => Ok(Self::Sync),
            "quorum" | "quorum-sync" => Err(format!("tier {text} needs a cluster, which is not there yet")),
            _ => Err(format!("unknown tier {text}; expected memory, journal or sync")),
        }
    }
}
