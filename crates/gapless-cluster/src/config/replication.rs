//! Table `[replication]`: settings of one member, which may differ between members.

use gapless_agent::CpuMask;
use gapless_config::{ConfigError, Table};
use gapless_stream::options::{EventStreamOptions, MemberThreads};

const QUEUE_DEPTH_MAX: u64 = 1 << 24;

/// Additional threads of a member, outside of the thread plan, and its flush policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationConfig {
    /// Gives each TCP connection without TLS to a member a sending thread.
    pub detached_send: bool,
    pub send_cpus: Option<CpuMask>,
    /// CPUs of the service thread with [`MemberThreads::detached_service`].
    pub dispatch_cpus: Option<CpuMask>,
    /// Threads of the member, the service and the replies.
    pub threads: MemberThreads,
    /// Passes each frame to the operating system separately instead of once a turn.
    pub flush_on_commit: bool,
    /// CPUs of the sync thread of the journal, at tier `quorum-sync`.
    pub sync_cpus: Option<CpuMask>,
}

impl ReplicationConfig {
    pub(super) fn applied_to(&self, mut options: EventStreamOptions) -> EventStreamOptions {
        options.persistence.flush_on_commit = self.flush_on_commit;
        EventStreamOptions {
            member_threads: self.threads.clone(),
            service_cpus: self.dispatch_cpus,
            sync_cpus: self.sync_cpus,
            ..options
        }
    }
}

pub(super) fn read(mut table: Table<'_>) -> Result<ReplicationConfig, ConfigError> {
    let mut config = ReplicationConfig::default();
    let threads = &mut config.threads;
    table.set("spin", &mut threads.spins, |value| value.switch())?;
    table.set("detached_send", &mut config.detached_send, |value| value.switch())?;
    table.set("detached_dispatch", &mut threads.detached_service, |value| value.switch())?;
    table.set("detached_replies", &mut threads.detached_sender, |value| value.switch())?;
    table.set("reply_queue_depth", &mut threads.send_queue_depth, |value| {
        value.whole(1..=QUEUE_DEPTH_MAX).map(|depth| depth as usize)
    })?;
    table.set("flush_on_commit", &mut config.flush_on_commit, |value| value.switch())?;
    let [send_cpus, dispatch_cpus, reply_cpus, sync_cpus] =
        ["send_cpus", "dispatch_cpus", "reply_cpus", "sync_cpus"].map(|key| table.take(key));
    let needs = [
        (&send_cpus, config.detached_send, "detached_send"),
        (&dispatch_cpus, threads.detached_service, "detached_dispatch"),
        (&reply_cpus, threads.detached_sender, "detached_replies"),
    ];
    for (value, is_detached, key) in needs {
        if let Some(value) = value.as_ref().filter(|_| !is_detached) {
            return Err(value.refuse(format!("there is no such thread; {key} = true is expected beside it")));
        }
    }
    let mask =
        |value: Option<gapless_config::Value<'_>>| value.map(|value| value.read(str::parse::<CpuMask>)).transpose();
    config.send_cpus = mask(send_cpus)?;
    config.dispatch_cpus = mask(dispatch_cpus)?;
    config.threads.sender_cpus = mask(reply_cpus)?;
    config.sync_cpus = mask(sync_cpus)?;
    table.end()?;
    Ok(config)
}
