use super::floor::{are_ready, down, find, place, process, up, wait_for};
use super::instance_program::{PRINT, STAY};
use super::test_place::{kill, lines, name};
use gapless_supervisor::logs::LogFollower;
use gapless_supervisor::state_directory::RoleLock;
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::path::Path;

/// Rotation cuts at multiples of the block size.
const BYTES_MAX: u64 = 1 << 20;

pub fn module(megabytes: u64) -> Module {
    Module::new(module_path!())
        .scenario("endless_output_fills_no_disk", move || endless_output_fills_no_disk(megabytes))
        .scenario("follower_misses_no_line", follower_misses_no_line)
        .scenario("full_log_disk_stops_nothing", full_log_disk_stops_nothing)
        .scenario("event_log_is_rotated", event_log_is_rotated)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn limits(bytes_max: u64, kept: u32) -> String {
    format!("log_bytes_max = {bytes_max}\nlogs_kept = {kept}\n")
}

fn endless_output_fills_no_disk(megabytes: u64) {
    let place = place();
    let talks = process(&place, "talks", &format!("{PRINT}{megabytes}"), "");
    up(&place, &[limits(BYTES_MAX, 2), talks, process(&place, "other", STAY, "")]);
    let log = place.directory.log(&name("talks.1"));
    let before = wait_for(&place, "both are ready", |status| are_ready(status, 2));
    kill(find(&before, "other.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "the other is back", |status| find(status, "other.1").restarts == 1 && are_ready(status, 2));
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    until("it has printed all", || !lines(&place.folder().join("printed")).is_empty());
    until("its log is below its limit", || length(&log) < BYTES_MAX);
    let kept = (1..=3).map(|number| length(Path::new(&format!("{}.{number}", log.display()))));
    let kept: Vec<u64> = kept.collect();
    assert!(kept[..2].iter().all(|length| (1..=2 * BYTES_MAX).contains(length)) && kept[2] == 0, "{kept:?}");
    let mut follower = LogFollower::before_end(&log, 200);
    let text = String::from_utf8(follower.read(1 << 20).unwrap().bytes).unwrap();
    assert!(text.ends_with("the last line\n"), "{text}");
    down(&place);
}

fn follower_misses_no_line() {
    let place = place();
    let megabytes = 4;
    up(&place, &[limits(BYTES_MAX, 100), process(&place, "talks", &format!("{PRINT}{megabytes}"), "")]);
    let log = place.directory.log(&name("talks.1"));
    let mut follower = LogFollower::at(&log, 0);
    let mut text = Vec::new();
    until("the last line comes", || {
        let piece = follower.read(1 << 20).unwrap();
        assert_eq!(piece.skipped, 0);
        text.extend(piece.bytes);
        text.ends_with(b"the last line\n")
    });
    let text = String::from_utf8(text).unwrap();
    let numbers = text.lines().filter_map(|line| line.strip_prefix("line ")?.split(' ').next()?.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    // On a busy machine the first lines may be in a file rotated before the follower began.
    let gap = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]);
    assert!(numbers.len() > 1000 && gap.is_none(), "{} lines from {:?} on, {gap:?}", numbers.len(), numbers.first());
    until("its log is below its limit", || length(&log) < BYTES_MAX);
    down(&place);
}

fn full_log_disk_stops_nothing() {
    let Some(disk) = SmallDisk::new(256) else { return };
    let place = place();
    let elsewhere = format!("log_folder = {:?}", disk.path);
    up(&place, &[process(&place, "talks", &format!("{PRINT}4"), &elsewhere), process(&place, "b", STAY, &elsewhere)]);
    let full = wait_for(&place, "the full disk is reported", |status| status.supervisor.problem.is_some());
    assert!(full.supervisor.problem.as_ref().unwrap().contains(disk.path.to_str().unwrap()), "{full:?}");
    until("it has printed all", || !lines(&place.folder().join("printed")).is_empty());
    kill(find(&full, "b.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "the dead instance is back", |status| find(status, "b.1").restarts == 1 && are_ready(status, 2));
    disk.remount("size=4m");
    wait_for(&place, "the problem is over", |status| status.supervisor.problem.is_none());
    let events = lines(&place.directory.events());
    let count = |what: &str| events.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("disk_full"), count("disk_has_room")), (1, 1), "{events:?}");
    down(&place);
}

fn event_log_is_rotated() {
    let place = place();
    let dies = process(
        &place,
        "a",
        "exit:1",
        "restart = { restarts_max = 100000, backoff_first = \"1 ms\", backoff_max = \"1 ms\" }",
    );
    up(&place, &[limits(4096, 1), dies]);
    let events = place.directory.events();
    until("the log is rotated", || length(Path::new(&format!("{}.1", events.display()))) > 0);
    until("it is below its limit", || length(&events) < 4096 + 4096);
    down(&place);
}
