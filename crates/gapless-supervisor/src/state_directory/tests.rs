//! The state directory as a whole: modes, locks, instances.

use super::*;
use gapless_testkit::process::Process;
use gapless_testkit::wait::{until, until_some};
use proptest::prelude::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn directory() -> (tempfile::TempDir, StateDirectory) {
    let parent = tempfile::tempdir().unwrap();
    let directory = StateDirectory::create(&parent.path().join("state"), None).unwrap();
    (parent, directory)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn plan(incarnation: u64) -> LaunchPlan {
    let text = r#"{"incarnation":1,"program":"true","folder":"/","log":"/dev/null"}"#;
    LaunchPlan { incarnation, ..serde_json::from_str(text).unwrap() }
}

/// The umask belongs to the process, so the test runs itself as a child process.
#[test]
fn modes_do_not_depend_on_the_mask() {
    const MASK: &str = "GAPLESS_TEST_MASK";
    if let Ok(mask) = std::env::var(MASK) {
        rustix::process::umask(Mode::from_raw_mode(mask.parse().unwrap()));
        let (_parent, directory) = directory();
        let instance = directory.instance(&"a.1".parse().unwrap());
        instance.prepare().unwrap();
        instance.write_launch(&plan(1)).unwrap();
        let _lock = instance.lock().unwrap().unwrap();
        let _role_lock = directory.take_role_lock(RoleLock::Guardian).unwrap().unwrap();
        for (path, expected) in [
            (directory.path().to_owned(), 0o700),
            (instance.path().to_owned(), 0o700),
            (instance.path().join("launch"), 0o600),
            (instance.path().join("lock"), 0o600),
            (directory.path().join("guardian.lock"), 0o600),
            (directory.path().join("logs"), 0o700),
        ] {
            assert_eq!(super::tests::mode(&path), expected, "{} with mask {mask}", path.display());
        }
        return;
    }
    for mask in [0, 0o777, 0o277] {
        let program = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new(program);
        let ended = command.arg("modes_do_not_depend_on_the_mask").env(MASK, mask.to_string()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

#[test]
fn group_may_read_logs_only() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("state");
    StateDirectory::create(&path, None).unwrap();
    assert_eq!((mode(&path), mode(&path.join("instances")), mode(&path.join("logs"))), (0o700, 0o700, 0o700));
    let group = rustix::process::getegid().as_raw();
    StateDirectory::create(&path, Some(group)).unwrap();
    assert_eq!((mode(&path), mode(&path.join("instances")), mode(&path.join("logs"))), (0o750, 0o700, 0o2750));
    assert_eq!(std::fs::metadata(&path).unwrap().gid(), group);
    StateDirectory::create(&path, None).unwrap();
    assert_eq!((mode(&path), mode(&path.join("logs"))), (0o700, 0o700));
}

#[test]
fn foreign_writers_are_refused() {
    let (_parent, directory) = directory();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o770)).unwrap();
    let error = StateDirectory::open(directory.path()).unwrap_err().to_string();
    assert!(error.contains("770") && error.contains("expected"), "{error}");
    let error = StateDirectory::open(&directory.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
    std::fs::write(directory.path().join("file"), "").unwrap();
    assert!(StateDirectory::create(&directory.path().join("file"), None).is_err());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(directory.path(), Some(65534), None).unwrap();
        let error = StateDirectory::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("of user 65534"), "{error}");
    }
}

#[test]
fn role_lock_has_one_holder() {
    let (_parent, directory) = directory();
    for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
        assert!(matches!(directory.role_holder(role_lock).unwrap(), Holder::Free { .. }));
        let lock = directory.take_role_lock(role_lock).unwrap().unwrap();
        assert!(directory.take_role_lock(role_lock).unwrap().is_none());
        let Holder::Recorded { record, .. } = directory.role_holder(role_lock).unwrap() else { panic!("it is held") };
        assert_eq!(record.process, ProcessIdentity::of_this().unwrap());
        drop(lock);
    }
}

#[test]
fn role_lock_needs_no_disk_space() {
    let Some(disk) = gapless_testkit::folder::SmallDisk::new(64) else { return };
    let directory = StateDirectory::create(&disk.path.join("state"), None).unwrap();
    let _full = std::fs::write(disk.path.join("filler"), vec![1; 100_000]);
    let lock = directory.take_role_lock(RoleLock::Supervisor).unwrap().unwrap();
    let Holder::Descendants(found) = directory.role_holder(RoleLock::Supervisor).unwrap() else { panic!("it is held") };
    // A child forked by another test holds it too, until it calls exec.
    assert!(found.iter().any(|process| process.process_id == std::process::id()));
    drop(lock);
}

#[test]
fn live_instances_are_not_removed() {
    let (_parent, directory) = directory();
    for name in ["b.1", "a.10", "a.2"] {
        directory.instance(&name.parse().unwrap()).prepare().unwrap();
    }
    for other in ["instances/c", "instances/.x.1", "instances/a.01"] {
        std::fs::create_dir(directory.path().join(other)).unwrap();
    }
    std::fs::write(directory.path().join("instances/d.1"), "").unwrap();
    let listed = directory.instances().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(listed, ["a.2", "a.10", "b.1"]);

    let instance = directory.instance(&"b.1".parse().unwrap());
    instance.write_launch(&plan(7)).unwrap();
    let failure = LaunchFailure { incarnation: 7, already_runs: false, is_shortage: true, reason: "no".to_owned() };
    instance.write_launch_failure(&failure).unwrap();
    assert_eq!(instance.read_launch().unwrap().unwrap(), plan(7));
    assert_eq!(instance.read_launch_failure(7).unwrap(), Some(failure));
    assert_eq!(instance.read_launch_failure(8).unwrap(), None);
    std::fs::write(instance.path().join("launch.123.new"), "half").unwrap();
    let lock = instance.lock().unwrap().unwrap();
    assert!(instance.lock().unwrap().is_none());
    assert!(!instance.remove().unwrap());
    lock.record(&LockRecord::of_this(7).unwrap()).unwrap();
    drop(lock);
    assert!(instance.lock().unwrap().is_none());
    assert!(!instance.remove().unwrap());
    std::fs::write(instance.path().join("lock"), "").unwrap();
    assert!(instance.remove().unwrap());
    assert!(!instance.path().exists());
    assert!(instance.remove().unwrap(), "it was not there");
}

#[test]
fn former_directory_is_renamed() {
    let (_parent, directory) = directory();
    let at = |name: &str| directory.path().join(name);
    std::fs::remove_file(at("copies")).unwrap();
    std::fs::rename(at("instances"), at("copies")).unwrap();
    StateDirectory::create(directory.path(), None).unwrap();
    assert!(!at("instances").exists(), "only a supervisor renames it");
    let former = directory.instance(&"a.1".parse().unwrap());
    assert_eq!(former.path(), at("copies/a.1"));
    former.prepare().unwrap();
    former.write_launch(&plan(7)).unwrap();
    let _lock = lock_alone(&former);

    let warning = directory.rename_former().unwrap().unwrap();
    let place = directory.path().display().to_string();
    assert!([&place, "`copies`", "`instances`"].iter().all(|words| warning.contains(*words)), "{warning}");
    assert_eq!(directory.rename_former().unwrap(), None, "once");
    let instance = directory.instance(former.name());
    assert_eq!(instance.path(), at("instances/a.1"));
    assert_eq!(directory.instances().unwrap(), [former.name().clone()]);
    assert_eq!(instance.read_launch().unwrap(), Some(plan(7)));
    assert!(instance.lock().unwrap().is_none(), "its lock is still held");
    assert!(former.lock().unwrap().is_none());
    assert!(super::files::make_directory(&at("copies"), Mode::RWXU, None).is_err());
}

const OTHER: u32 = 65_534;

fn of_another_user(directory: &StateDirectory) -> InstanceDirectory {
    let instance = directory.instance(&"a.1".parse().unwrap());
    instance.prepare().unwrap();
    let identity = Some(UserIdentity { user: OTHER, group: OTHER, groups: Vec::new() });
    instance.write_launch(&LaunchPlan { identity, ..plan(1) }).unwrap();
    instance
}

fn sleeper(input: impl Into<Stdio>, user: Option<u32>) -> Process {
    let mut command = Command::new("sleep");
    command.arg("1000").stdin(input).stdout(Stdio::null());
    user.map(|user| command.uid(user));
    Process::start_as(&mut command)
}

fn lock_alone(instance: &InstanceDirectory) -> HeldLock {
    HeldLock::take(&instance.path().join("lock"), Inheritance::No).unwrap().unwrap()
}

fn record_of(process: u32) -> LockRecord {
    let process = ProcessIdentity::of(process).unwrap().unwrap();
    LockRecord { process, ..LockRecord::of_this(1).unwrap() }
}

fn record_of_the_dead() -> LockRecord {
    let process = sleeper(Stdio::null(), None);
    record_of(process.pid().as_raw_pid() as u32)
}

fn number(process: &Process) -> u32 {
    process.pid().as_raw_pid() as u32
}

#[test]
fn foreign_process_is_spared() {
    let (_parent, directory) = directory();
    let instance = of_another_user(&directory);
    let victim = sleeper(Stdio::null(), None);
    let lock = instance.lock().unwrap().unwrap();
    lock.record(&record_of(number(&victim))).unwrap();
    let is_foreign = |holder| matches!(holder, Holder::Foreign { process_id } if process_id == number(&victim));
    assert!(is_foreign(instance.holder().unwrap()), "{:?}", instance.holder());
    drop(lock);
    assert!(is_foreign(instance.holder().unwrap()), "{:?}", instance.holder());
    assert!(instance.lock().unwrap().is_none(), "no start while the foreign process is alive");
}

#[test]
fn passed_lock_makes_no_heir() {
    let (_parent, directory) = directory();
    let instance = of_another_user(&directory);
    let lock = lock_alone(&instance);
    lock.record(&record_of_the_dead()).unwrap();
    let victim = sleeper(rustix::io::dup(&lock).unwrap(), None);
    drop(lock);
    until("the victim alone holds it", || match instance.holder().unwrap() {
        Holder::Foreign { process_id } => process_id == number(&victim),
        Holder::Descendants(found) if found.iter().all(|orphan| orphan.process_id != number(&victim)) => false,
        other => panic!("{other:?}"),
    });
}

#[test]
fn foreign_instances_are_found() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root starts processes as somebody else");
    }
    let (_parent, directory) = directory();
    let instance = of_another_user(&directory);
    let lock = lock_alone(&instance);
    let first = sleeper(Stdio::null(), Some(OTHER));
    lock.record(&record_of(number(&first))).unwrap();
    let found = instance.holder().unwrap();
    assert!(
        matches!(&found, Holder::Recorded { record, .. } if record.process.process_id == number(&first)),
        "{found:?}"
    );
    lock.record(&record_of_the_dead()).unwrap();
    let heir = sleeper(rustix::io::dup(&lock).unwrap(), Some(OTHER));
    let _victim = sleeper(rustix::io::dup(&lock).unwrap(), None);
    drop(lock);
    until("the heir is the only one", || {
        let Holder::Descendants(found) = instance.holder().unwrap() else { panic!("{:?}", instance.holder()) };
        found.iter().map(|orphan| orphan.process_id).eq([number(&heir)])
    });
}

#[test]
fn older_processes_are_no_heirs() {
    let (_parent, directory) = directory();
    let instance = directory.instance(&"a.1".parse().unwrap());
    instance.prepare().unwrap();
    instance.write_launch(&plan(1)).unwrap();
    let lock = lock_alone(&instance);
    let older = sleeper(rustix::io::dup(&lock).unwrap(), None);
    let begun = record_of(number(&older)).process.started_ticks;
    let record = until_some("a process started more than a tick later", || {
        Some(record_of_the_dead()).filter(|record| record.process.started_ticks > begun + 1)
    });
    lock.record(&record).unwrap();
    drop(lock);
    let is_older = |found| matches!(found, Holder::Foreign { process_id } if process_id == number(&older));
    until("the older one alone holds it", || is_older(instance.holder().unwrap()));
}

#[test]
fn links_of_other_users_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root can give links away");
    }
    let parent = tempfile::tempdir().unwrap();
    let (secret, home) = (parent.path().join("secret"), parent.path().join("home"));
    std::fs::create_dir_all(secret.join("state")).unwrap();
    std::fs::set_permissions(secret.join("state"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::symlink(&secret, home.join("run")).unwrap();
    for path in [&home, &home.join("run")] {
        std::os::unix::fs::lchown(path, Some(OTHER), Some(OTHER)).unwrap();
    }
    for name in ["state", "new"] {
        let error = StateDirectory::create(&home.join("run").join(name), Some(OTHER)).unwrap_err().to_string();
        assert!(error.contains("a link of user 65534 leads to"), "{error}");
    }
    assert_eq!(mode(&secret.join("state")), 0o755);
    let found = std::fs::read_dir(&secret).unwrap().count() + std::fs::read_dir(secret.join("state")).unwrap().count();
    assert_eq!(
        (found, std::fs::metadata(secret.join("state")).unwrap().gid()),
        (1, 0),
        "nothing was made or given away"
    );
}

#[test]
fn configuration_round_trips() {
    let (_parent, directory) = directory();
    assert_eq!(directory.read_config_in_force().unwrap(), None);
    let in_force = ConfigInForce { path: "/etc/in_force.toml".into(), text: "[process.a]\n".to_owned() };
    assert!(!format!("{in_force:?}").contains("process.a"), "its text has values of variables");
    directory.write_config_in_force(&in_force).unwrap();
    assert_eq!(directory.read_config_in_force().unwrap(), Some(in_force));
    directory.remove_config_in_force().unwrap();
    directory.remove_config_in_force().unwrap();
    assert_eq!(directory.read_config_in_force().unwrap(), None);
}

#[test]
fn state_for_the_successor_is_kept() {
    let (_parent, directory) = directory();
    assert_eq!(directory.read_state::<u32>().unwrap(), None);
    directory.write_state(&7).unwrap();
    assert_eq!(directory.read_state::<u32>().unwrap(), Some(7));
    assert!(directory.read_state::<String>().unwrap_err().to_string().contains("memory"));
}

fn spoiled(original: &str, cut: usize, at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = original.as_bytes().to_vec();
    let length = bytes.len();
    bytes[at % length] = byte;
    bytes.truncate(cut % (length + 1));
    bytes
}

proptest! {
    #[test]
    fn damaged_files_cause_no_panic(cut in 0_usize..10_000, at in 0_usize..10_000, byte: u8, noise in ".{0,60}") {
        let (_parent, directory) = directory();
        let instance = directory.instance(&"a.1".parse().unwrap());
        instance.prepare().unwrap();
        let record = LockRecord::of_this(1).unwrap();
        for (name, original) in [
            ("launch", serde_json::to_string(&plan(1)).unwrap()),
            ("launch-error", r#"{"incarnation":1,"reason":"x"}"#.to_owned()),
            ("lock", serde_json::to_string(&record).unwrap()),
        ] {
            for bytes in [spoiled(&original, cut, at, byte), noise.clone().into_bytes()] {
                std::fs::write(instance.path().join(name), bytes).unwrap();
                let (launch, failure) = (instance.read_launch(), instance.read_launch_failure(1));
                for error in [launch.err(), failure.err()].into_iter().flatten() {
                    prop_assert!(error.to_string().contains("a.1"), "{error}");
                }
                instance.holder().unwrap();
            }
        }
    }
}
