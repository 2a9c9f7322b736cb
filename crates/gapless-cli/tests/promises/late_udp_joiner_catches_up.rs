//! A rewind over TCP if the stream has a rewind port, otherwise requests.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::run;
use crate::stream_process::{configured, sequencer, some_lines, stream, write_lines};
use gapless_testkit::ports::free_port;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

/// A gap of this many frames is rewound over TCP if possible.
const LINES: usize = 6_000;

fn resent_frames(here: &Path) -> (u64, Option<u64>) {
    let text = run(here, &["counters", "stream", "--json"]).good();
    let counters: Value = serde_json::from_str(&text).unwrap();
    (counters["replayer.frames"].as_u64().unwrap(), counters["rewind.frames"].as_u64())
}

fn late_joiner_catches_up(rewinds: bool) {
    let directory = configured("udp");
    let here = directory.path();
    if rewinds {
        let mut file = std::fs::OpenOptions::new().append(true).open(here.join("stream.toml")).unwrap();
        writeln!(file, "rewind = \"127.0.0.1:{}\"", free_port()).unwrap();
    }
    let mut running = sequencer(here);
    let lines = some_lines(LINES);
    write_lines(here, "lines", &lines);
    stream(here, "publish lines").good();
    let follows = format!("tail --raw --from first --count {LINES}");
    for words in ["tail --no-follow --raw", &follows, "replay --rewind --raw"] {
        let before = resent_frames(here);
        let met = stream(here, words).good();
        assert!(met.lines().eq(lines.iter().map(String::as_str)), "{words}: {} lines", met.lines().count());
        let after = resent_frames(here);
        match (before.1, after.1) {
            (Some(before), Some(after)) if rewinds => {
                assert!(after - before >= LINES as u64, "{words}: {} frames were rewound", after - before);
            }
            (None, None) if !rewinds => {
                let requested = after.0 - before.0;
                assert!(requested >= LINES as u64, "{words}: {requested} frames were asked for");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
    running.interrupt();
    assert!(running.rest()[0].starts_with("stopped at sequence "));
}

#[test]
fn by_a_rewind_over_tcp() {
    late_joiner_catches_up(true);
}

#[test]
fn by_requests() {
    late_joiner_catches_up(false);
}
