//! Prints the machine's own floor: shared memory, disk, sockets and wake-ups. `cargo run --release -p gapless-measure
//! --example floor -- [DIRECTORY]`; files of the disk floors go to the directory, by default the current one.

use std::path::PathBuf;

use gapless_measure::environment::Environment;
use gapless_measure::floor::FloorPlan;
use gapless_measure::progress::BenchProgress;
use gapless_measure::table::{TableStyle, floors};

fn main() {
    let directory = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let plan = FloorPlan::complete(&directory);
    let progress = BenchProgress::new(plan.items.len() as u64, "floor", false);
    let report = plan.measure_with(|index, kind| {
        progress.set_position(index as u64);
        progress.set_label(kind.name());
    });
    progress.finish();
    println!("{}\n{}", Environment::capture().summary(), floors(&report.rows, TableStyle::Terminal));
    for reason in &report.skipped {
        println!("{reason}");
    }
}
