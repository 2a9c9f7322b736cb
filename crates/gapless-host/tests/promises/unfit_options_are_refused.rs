//! A place refuses the options that it lacks, by name, and says what to do instead.

use crate::clusters::Files;
use crate::programs::{Calls, Sum, model};
use gapless_cqrs::BusOptions;
use gapless_engine::store::StoreLimits;
use gapless_engine::{Persistence, Policy, Threads};
use gapless_host::{Host, HostError};
use gapless_transport::Tier;
use std::path::PathBuf;
use std::time::Duration;

#[track_caller]
fn check<T>(started: Result<T, HostError>, expected: &str, advice: &str) {
    let error = started.err().expect("a refusal");
    let said = error.to_string();
    let HostError::Option { option, .. } = error else { panic!("{said}") };
    assert_eq!(option, expected, "{said}");
    assert!(said.contains(advice), "{said}");
}

type Set = fn(Host) -> Host;

#[test]
fn member_names_the_key_of_its_file() {
    let files = Files::new(&["full"], "");
    let table: [(Set, &str, &str); 9] = [
        (|host| host.tier(Tier::Sync), "tier", "`cluster.tier`"),
        (Host::manual_time, "manual_time", "Host::in_memory"),
        (|host| host.threads(Threads::default()), "threads", "`threads`"),
        (|host| host.window_bytes(1 << 20), "window_bytes", "`stream.window`"),
        (|host| host.frame_length_max(1024), "frame_length_max", "`stream.frame_length_max`"),
        (|host| host.frames_per_poll_max(1), "frames_per_poll_max", "`threads.optimize_for`"),
        (|host| host.session_expiry(Duration::from_secs(1)), "session_expiry", "`stream.session_expiry`"),
        (|host| host.persistence(Persistence::default()), "persistence", "`journal`"),
        (|host| host.socket(PathBuf::from("socket")), "socket", "`clients.address`"),
    ];
    for (set, option, advice) in table {
        check(set(files.host(1)).service(Sum::default()).start(), option, advice);
        check(set(files.host(1)).replicated_state(Calls::new).start(), option, advice);
        check(set(files.host(1)).aggregates(model()).start(), option, advice);
    }
    check(files.host(1).snapshot_every(1000).aggregates(model()).start(), "snapshot_every", "leave it out");
    assert!(!files.directory(1).exists(), "nothing is made before the options are checked");
}

#[test]
fn node_leaves_much_to_its_sequencer() {
    let host = || Host::on_stream("stream.toml").token(1);
    let table: [(Set, &str, &str); 9] = [
        (|host| host.tier(Tier::Sync), "tier", "sequencer"),
        (Host::manual_time, "manual_time", "Host::in_memory"),
        (|host| host.threads(Threads::default()), "threads", "one thread"),
        (|host| host.window_bytes(1 << 20), "window_bytes", "sequencer"),
        (|host| host.frame_length_max(1024), "frame_length_max", "sequencer"),
        (|host| host.frames_per_poll_max(1), "frames_per_poll_max", "one thread"),
        (|host| host.session_expiry(Duration::from_secs(1)), "session_expiry", "sequencer"),
        (|host| host.persistence(Persistence::default()), "persistence", "sequencer"),
        (|host| host.socket(PathBuf::from("socket")), "socket", "no commands"),
    ];
    for (set, option, advice) in table {
        check(set(host()).service(Sum::default()).start(), option, advice);
    }
    check(Host::on_stream("stream.toml").service(Sum::default()).start(), "token", "all instances");
    let table: [(Set, &str); 3] = [
        (|host| host.token(1), "token"),
        (|host| host.directory("data"), "directory"),
        (|host| host.kept_bytes_max(1 << 20), "kept_bytes_max"),
    ];
    let files = Files::new(&["full"], "");
    for (set, option) in table {
        check(set(Host::in_memory()).service(Sum::default()).start(), option, "Host::on_stream");
        check(set(files.host(1)).service(Sum::default()).start(), option, "Host::on_stream");
        check(set(Host::in_memory()).aggregates(model()).start_polled(&BusOptions::default()), option, "on_stream");
    }
}

#[test]
fn memory_has_no_durability() {
    check(Host::in_memory().tier(Tier::Journal).service(Sum::default()).start(), "tier", "Host::in_directory");
    let persistence = Persistence::default();
    check(Host::in_memory().persistence(persistence).service(Sum::default()).start(), "persistence", "in_directory");
    let harmless = Host::in_memory().tier(Tier::Memory).snapshot_every(5).snapshot_on_stop(true);
    harmless.service(Sum::default()).start().unwrap();
}

#[test]
fn programs_have_options_of_their_own() {
    let limits = StoreLimits::default();
    check(Host::in_memory().limits(limits).service(Sum::default()).start(), "limits", "replicated state");
    check(Host::in_memory().limits(limits).aggregates(model()).start(), "limits", "replicated state");
    let policy = Policy::default;
    check(Host::in_memory().policy(policy()).replicated_state(Calls::new).start(), "policy", "leave it out");
    check(Host::in_memory().policy(policy()).aggregates(model()).start(), "policy", "leave it out");
    Host::in_memory().limits(limits).replicated_state(Calls::new).start().unwrap();
    Host::in_memory().policy(policy()).service(Sum::default()).start().unwrap();
}

#[test]
fn engine_checks_values() {
    let host = Host::in_memory().snapshot_every(0).service(Sum::default());
    let error = host.start().err().expect("a refusal").to_string();
    assert!(error.contains("snapshot_interval_frames"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let quiet = Host::in_directory(folder.path().join("quiet")).snapshot_every(None).socket(None);
    quiet.service(Sum::default()).start().unwrap();
    assert!(!folder.path().join("quiet/node.socket").exists());
    let host = Host::in_directory(folder.path().join("data")).tier(Tier::Quorum).service(Sum::default());
    let error = host.start().err().expect("a refusal").to_string();
    assert!(error.contains("tier"), "{error}");
}

#[test]
fn polled_host_has_no_threads() {
    let table: [(Set, &str); 3] = [
        (|host| host.threads(Threads::default()), "threads"),
        (|host| host.socket(None), "socket"),
        (Host::manual_time, "manual_time"),
    ];
    for (set, option) in table {
        let started = set(Host::in_memory()).aggregates(model()).start_polled(&BusOptions::default());
        check(started, option, "Host::start");
    }
}
