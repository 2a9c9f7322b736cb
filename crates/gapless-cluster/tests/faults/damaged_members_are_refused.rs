//! After a crash with a damaged journal (torn or missing end, flipped bit, full disk) it is cut, fetched again or
//! refused.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::processes::load::PublisherLoad;
use crate::processes::{self, Cluster, ClusterPlan, THREE, streams};
use gapless_journal::JournalReader;
use gapless_journal::descriptor::{BOOT_MARK_OFFSET, MARK_WORDS, frames_offset};
use gapless_testkit::folder::{self, SmallDisk};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_wire::checksum::crc32c;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .with_choices("torn_end_is_truncated", torn_end_is_truncated)
        .scenario("shorter_log_is_completed", shorter_log_is_completed)
        .with_choices("a_flipped_bit_is_refused", a_flipped_bit_is_refused)
        .scenario("a_full_disk_stops_one_member", a_full_disk_stops_one_member)
}

fn begin() -> (Cluster, PublisherLoad, usize) {
    let mut cluster = Cluster::start(THREE);
    let leader = cluster.leader();
    let load = PublisherLoad::start(&cluster, 2);
    load.wait_more(500);
    (cluster, load, leader % 3 + 1)
}

fn end(mut cluster: Cluster, load: PublisherLoad) {
    load.wait_more(100);
    let count = streams::check(&mut cluster, load);
    println!("{count} messages, each there once and in order on all members");
}

fn newest_segment(journal: &Path) -> PathBuf {
    let files = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "segment")
            && !path.file_name().unwrap().to_str().unwrap().starts_with("prepared")
    };
    let found = files.filter(is_segment).max();
    found.unwrap_or_else(|| panic!("no segment in {}", journal.display()))
}

fn end_of(segment: &Path) -> u64 {
    let bytes = std::fs::read(segment).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

/// The last of the vouched frames and records may end with zeros.
fn vouched_end(journal: &Path, segment: &Path) -> u64 {
    let info = gapless_journal::info(journal).unwrap();
    let found = info.segments.iter().find(|known| known.path == segment);
    let found = found.unwrap_or_else(|| panic!("{} is not listed", segment.display()));
    frames_offset(found.length_bytes) + found.used_bytes
}

/// Damage before the frames is detected in other ways, or has no effect.
fn frames_of(segment: &Path) -> std::ops::Range<u64> {
    let begin = frames_offset(std::fs::metadata(segment).unwrap().len());
    begin..end_of(segment).max(begin)
}

fn torn_end_is_truncated(random: &mut Random) {
    let (mut cluster, load, victim) = begin();
    for _ in 0..4 {
        cluster.kill(victim);
        let segment = newest_segment(&cluster.journal(victim));
        let position = end_of(&segment).next_multiple_of(8).max(vouched_end(&cluster.journal(victim), &segment));
        let file = std::fs::File::options().write(true).open(&segment).unwrap();
        let room = file.metadata().unwrap().len() - position;
        let length = (1 + random.below(4000)).min(room);
        let garbage: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        file.write_all_at(&garbage, position).unwrap();
        cluster.start_member(victim, &[]);
        cluster.caught_up(victim);
        load.wait_more(100);
    }
    end(cluster, load);
}

/// Power cut at tier `quorum`: the last frames and records were never on the device.
fn shorter_log_is_completed() {
    let (mut cluster, load, victim) = begin();
    for round in 0..3 {
        cluster.kill(victim);
        let before = cluster.root.path().join("before");
        folder::copy(&cluster.directory(victim), &before);
        let had = JournalReader::open(cluster.journal(victim)).unwrap().last_sequence().unwrap();
        cluster.start_member(victim, &[]);
        load.wait_more(300);
        cluster.caught_up(victim);
        cluster.kill(victim);
        let has = JournalReader::open(cluster.journal(victim)).unwrap().last_sequence().unwrap();
        assert!(has > had);
        std::fs::remove_dir_all(cluster.directory(victim)).unwrap();
        std::fs::rename(&before, cluster.directory(victim)).unwrap();
        println!("member {victim} had acknowledged {has}, and returns with {had}");
        let is_other_boot = round > 0;
        if is_other_boot {
            put_on_other_boot(&cluster.journal(victim));
        }
        let warned = cluster.log(victim).matches("this machine has started anew").count();
        cluster.start_member(victim, &[]);
        if !is_other_boot {
            assert_eq!(cluster.wait_end(victim).code(), Some(3));
            println!("{}", cluster.wait_log(victim, &["member failed", "it has less than it has acknowledged"]));
            put_on_other_boot(&cluster.journal(victim));
            cluster.start_member(victim, &[]);
        }
        cluster.caught_up(victim);
        let voting = cluster.directory(victim).join("voting");
        let deadline = std::time::Instant::now() + processes::PATIENCE;
        while !std::fs::read_to_string(&voting).unwrap().contains("level ") {
            assert!(std::time::Instant::now() < deadline, "the member never votes again: {}", cluster.log(victim));
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let warned = cluster.log(victim).matches("this machine has started anew").count() - warned;
        assert_eq!(warned, 1, "{}", cluster.log(victim));
        cluster.wait("a member that has caught up", |cluster| (!cluster.status(victim)?.is_behind).then_some(()));
        load.wait_more(100);
    }
    end(cluster, load);
}

/// The newest segment may have no final name yet.
fn put_on_other_boot(journal: &Path) {
    let files = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .for_each(|segment| mark_other_boot(&segment));
}

fn mark_other_boot(segment: &Path) {
    const SLOT_BYTES: usize = MARK_WORDS / 2 * 8;
    let file = std::fs::File::options().read(true).write(true).open(segment).unwrap();
    let mut slots = [[0u8; SLOT_BYTES]; 2];
    for (slot, position) in slots.iter_mut().zip((BOOT_MARK_OFFSET..).step_by(SLOT_BYTES)) {
        file.read_exact_at(slot, position as u64).unwrap();
        if slot.iter().all(|byte| *byte == 0) {
            continue;
        }
        slot[0] ^= 1;
        let check = 1 << 32 | u64::from(crc32c(&slot[..24]));
        slot[24..].copy_from_slice(&check.to_le_bytes());
        file.write_all_at(slot, position as u64).unwrap();
    }
}

fn a_flipped_bit_is_refused(random: &mut Random) {
    let (mut cluster, load, victim) = begin();
    for _ in 0..4 {
        cluster.kill(victim);
        let mut segment = newest_segment(&cluster.journal(victim));
        let mut frames = frames_of(&segment);
        // A segment that has only begun holds nothing that is certainly journaled.
        while frames.end - frames.start < 64 << 10 {
            cluster.start_member(victim, &[]);
            cluster.caught_up(victim);
            load.wait_more(100);
            cluster.kill(victim);
            segment = newest_segment(&cluster.journal(victim));
            frames = frames_of(&segment);
        }
        let position = frames.start + random.below((frames.end - frames.start) / 2);
        let file = std::fs::File::options().read(true).write(true).open(&segment).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, position).unwrap();
        let flip = 1u8 << random.below(8);
        file.write_all_at(&[byte[0] ^ flip], position).unwrap();
        cluster.start_member(victim, &[]);
        let status = cluster.wait_end(victim);
        let log = cluster.log(victim);
        let last = log.lines().rfind(|line| line.starts_with("member failed")).unwrap_or_default();
        println!("flipped at {position}: {last}");
        assert_eq!(status.code(), Some(3), "{log}");
        let name = segment.file_name().unwrap().to_str().unwrap();
        assert!(last.contains(name) && last.chars().any(|each| each.is_ascii_digit()), "{last}");
        load.wait_more(100);
        file.write_all_at(&byte, position).unwrap();
        cluster.start_member(victim, &[]);
        cluster.caught_up(victim);
        load.wait_more(100);
    }
    end(cluster, load);
}

fn a_full_disk_stops_one_member() {
    let mut cluster = Cluster::prepare(ClusterPlan { ..THREE });
    let Some(small) = SmallDisk::mount(&cluster.directory(3), 9 << 10) else { return };
    for member in cluster.all() {
        cluster.start_member(member, &[]);
    }
    cluster.leader();
    let load = PublisherLoad::start(&cluster, 2);
    let mut rounds = 0;
    while cluster.ends_within(3, std::time::Duration::from_millis(20)).is_none() {
        rounds += 1;
        assert!(rounds < 200, "the disk does not fill");
        load.wait_more_fast(500);
    }
    let log = cluster.log(3);
    let last = log.lines().rfind(|line| line.starts_with("member failed")).unwrap_or_default();
    println!("{last}");
    assert!(last.contains("No space left") || last.contains("no room") || last.contains("full"), "{log}");
    load.wait_more(200);
    cluster.start_member(3, &[]);
    load.wait_more(200);
    if cluster.is_running(3) && cluster.ends_within(3, std::time::Duration::from_millis(500)).is_none() {
        cluster.kill(3);
    }
    small.remount("size=512m");
    cluster.start_member(3, &[]);
    cluster.caught_up(3);
    end(cluster, load);
    drop(small);
}
