//! Types of single option values, in command lines and in reports.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

/// Kind of service, by how it keeps its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum ServiceKind {
    /// Event sourcing: messages are the source of truth.
    Es,
    /// State replication: state changes are the source of truth.
    Sr,
}

/// Goal of a run and its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum RunMode {
    /// A fixed rate, no batching delay, hot waits.
    Latency,
    /// Highest rate, larger batches.
    Throughput,
}

/// Number of threads that are detached, and of those that are hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum CpuConfiguration {
    /// One hot thread for the business logic, the others not hot.
    Min,
    /// Decided from the cores there are.
    Default,
    /// Each detachable agent on a thread of its own.
    Max,
}

/// Durability of a message before it is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum RunTier {
    /// In this process.
    Memory,
    /// In the operating system's hands: survives the process.
    Journal,
    /// On the device: survives power.
    Sync,
    /// A majority has it at `journal`.
    Quorum,
    /// A majority has it at `sync`.
    QuorumSync,
}

/// Role of a process of a clustered run on two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum HostRole {
    /// Injects, and reports.
    Primary,
    /// Follows; started first.
    Backup,
}

/// Protocol between members of a clustered run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, ValueEnum)]
pub enum ReplicationLink {
    /// TCP, over loopback on one machine.
    #[default]
    Tcp,
    /// Memory that both share; on one machine only.
    SharedMemory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageAccess {
    Direct,
    Indirect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageEncoding {
    /// `sbe.serial`: SBE, direct. `quark.serial` is another name for it.
    SbeSerial,
    /// `sbe.random`: SBE, indirect. `quark.random` is another name for it.
    SbeRandom,
    /// `protobuf.serial`: protobuf, direct. `xbuf2.serial` is another name for it.
    ProtobufSerial,
    /// `protobuf.random`: protobuf, indirect. `xbuf2.random` is another name for it.
    ProtobufRandom,
}

macro_rules! named {
    ($type:ty { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

named!(ServiceKind { Es => "es", Sr => "sr" });
named!(RunMode { Latency => "latency", Throughput => "throughput" });
named!(CpuConfiguration { Min => "min", Default => "default", Max => "max" });
named!(RunTier {
    Memory => "memory", Journal => "journal", Sync => "sync", Quorum => "quorum", QuorumSync => "quorum-sync",
});
named!(HostRole { Primary => "primary", Backup => "backup" });
named!(MessageAccess { Direct => "direct", Indirect => "indirect" });
named!(MessageEncoding {
    SbeSerial => "sbe.serial", SbeRandom => "sbe.random",
    ProtobufSerial => "protobuf.serial", ProtobufRandom => "protobuf.random",
});

impl MessageEncoding {
    pub const fn access(self) -> MessageAccess {
        match self {
            Self::SbeSerial | Self::ProtobufSerial => MessageAccess::Direct,
            Self::SbeRandom | Self::ProtobufRandom => MessageAccess::Indirect,
        }
    }

    pub const fn is_sbe(self) -> bool {
        matches!(self, Self::SbeSerial | Self::SbeRandom)
    }
}

impl FromStr for MessageEncoding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "sbe.serial" | "quark.serial" => Ok(Self::SbeSerial),
            "sbe.random" | "quark.random" => Ok(Self::SbeRandom),
            "protobuf.serial" | "xbuf2.serial" => Ok(Self::ProtobufSerial),
            "protobuf.random" | "xbuf2.random" => Ok(Self::ProtobufRandom),
            _ => Err("expected sbe.serial, sbe.random, protobuf.serial or protobuf.random \
                      (quark.* is another name for sbe.*, xbuf2.* for protobuf.*)"
                .into()),
        }
    }
}

/// List of CPUs in brackets: `[1]`, `[2,3]`; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuMask(BTreeSet<usize>);

/// Exclusive: the kernel's limit.
pub const CPU_LIMIT: usize = rustix::thread::CpuSet::MAX_CPU;

impl CpuMask {
    pub fn cpus(&self) -> Vec<usize> {
        self.0.iter().copied().collect()
    }

    pub fn missing(&self, available: &BTreeSet<usize>) -> Vec<usize> {
        self.0.difference(available).copied().collect()
    }
}

impl FromStr for CpuMask {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a list of logical CPUs in brackets, such as [1] or [2,3]".to_owned();
        let list = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(expected)?;
        let mut cpus = BTreeSet::new();
        for part in list.split(',') {
            let cpu: usize = part.trim().parse().map_err(|_| expected())?;
            if cpu >= CPU_LIMIT {
                return Err(format!("CPU {cpu} is beyond the kernel's limit; the greatest is {}", CPU_LIMIT - 1));
            }
            cpus.insert(cpu);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuMask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(formatter, "[{}]", cpus.join(","))
    }
}

/// Accepts 1 to `max`; thousands may be separated by `,` or `_`.
pub fn whole_number(text: &str, max: u64) -> Result<u64, String> {
    let digits = text.replace([',', '_'], "");
    let expected = || format!("expected a whole number from 1 to {max}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(expected());
    }
    let value: u64 = digits.parse().map_err(|_| expected())?;
    if (1..=max).contains(&value) { Ok(value) } else { Err(expected()) }
}

pub fn decimal(text: &str, min: f64, max: f64, unit: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("expected a number of {unit} from {min} to {max}"))?;
    if (min..=max).contains(&value) { Ok(value) } else { Err(format!("expected {unit} from {min} to {max}")) }
}
