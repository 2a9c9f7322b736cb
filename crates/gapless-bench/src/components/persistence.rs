//! `gapless bench persistence`: appending Car frames to a journal (mapped, written, synced) and
//! replaying them with both checksums.

use super::{ComponentArguments, TimeUnit, compare, is_interrupted, measure_floors, named, print_measured};
use crate::Result;
use crate::floor::FloorKind;
use crate::own_directory::OwnDirectory;
use clap::Args;
use gapless_journal::Flush;
use gapless_load::components::persistence::{CarFrame, appends, batches_and_replay};
use gapless_measure::Report;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

const APPENDS: u64 = 50_000;
/// A sync takes as long as many appends.
const SYNCS_MAX: u64 = 1_000;
const FRAMES_PER_APPEND: u64 = 20;
/// Options of its own.
#[derive(Debug, Clone, Default, Args)]
pub struct PersistenceArguments {
    /// Common options.
    #[command(flatten)]
    pub part: ComponentArguments,

    /// Directory for the journals, on the device to measure; they are removed afterwards
    #[arg(long, short = 'k', value_name = "DIRECTORY", default_value = ".")]
    pub log_location: PathBuf,
}

pub fn run(arguments: &PersistenceArguments, interrupted: &AtomicBool) -> Result<String> {
    let count = arguments.part.count.unwrap_or(APPENDS);
    let mut report = Report::new("persistence");
    let name = format!(".gapless-persistence-{}", std::process::id());
    let directory = OwnDirectory::create(&arguments.log_location, &name)?;
    let mut frame = CarFrame::new()?;
    let frame_bytes = frame.bytes.len() as u64;
    let items = vec![
        (FloorKind::Pwrite, frame_bytes),
        (FloorKind::PwriteFdatasync, frame_bytes),
        (FloorKind::SequentialWrite, 0),
        (FloorKind::Memcpy, 0),
    ];
    measure_floors(&mut report, directory.path(), items);
    for (name, tier, flush, floor) in [
        ("append and commit, mapped", "journal", Flush::Mapped, FloorKind::Pwrite),
        ("append and commit, written", "journal", Flush::Write, FloorKind::Pwrite),
        ("append, commit and sync", "sync", Flush::Write, FloorKind::PwriteFdatasync),
    ] {
        if is_interrupted(&mut report, interrupted) {
            break;
        }
        let is_synced = floor == FloorKind::PwriteFdatasync;
        let count = if is_synced { count.min(SYNCS_MAX) } else { count };
        let mut row = named(name, frame.payload_bytes(), count);
        row.config.tier = Some(tier.to_owned());
        row.latency_ns = appends(directory.path(), name, flush, is_synced, &mut frame, count)?.latency_ns();
        compare(&mut row, &report, floor, frame_bytes);
        row.verified = Some(true);
        print_measured(std::slice::from_ref(&row));
        report.rows.push(row);
    }
    if !is_interrupted(&mut report, interrupted) {
        let rows = batches_and_replay(directory.path(), &mut frame, count * FRAMES_PER_APPEND, &report)?;
        print_measured(&rows);
        report.rows.extend(rows);
    }
    report.notes.push("one Car (sbe.serial) a frame, both checksums written, and checked in the replay".to_owned());
    arguments.part.finish(&report, TimeUnit::Microseconds)
}
