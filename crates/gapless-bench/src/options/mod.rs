//! Every option of `gapless bench canonical`: as typed ([`CanonicalArguments`]) and as resolved ([`CanonicalOptions`]).
//!
//! | module | content |
//! |---|---|
//! | `arguments` | the command line: names, aliases, short letters, help |
//! | `settings` | defaults, and the runs that follow |
//! | `checks` | contradictions, and options that a mode does not use |

mod arguments;
mod checks;
mod settings;

pub use arguments::CanonicalArguments;
pub use gapless_load::values::{
    CpuConfiguration, CpuMask, HostRole, MessageAccess, MessageEncoding, ReplicationLink, RunMode, RunTier, ServiceKind,
};
pub use settings::{
    Affinity, BACKUP_ADDRESS, CanonicalOptions, ClusterSettings, HlogTarget, JournalSettings, OutputSettings,
    ReplicationThreads, RunPlan, RunSettings, SheetFigure, WorkbookTarget,
};

#[cfg(test)]
mod tests;
