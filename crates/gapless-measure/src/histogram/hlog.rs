//! `.hlog` files: HdrHistogram's interval log, format version 1.3. Comment lines begin with `#`, among them
//! `#[StartTime: …]`; then a legend in quotes; then one line per interval: `Tag=row,begin,length,max,histogram`, begin
//! and length in seconds, max in milliseconds, the histogram in the V2 compressed encoding as Base64. Values are ns.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::RecordedRun;
use crate::{BenchError, Result};

const LEGEND: &str = r#""StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram""#;

/// ns to ms.
const MAX_VALUE_DIVISOR: f64 = 1_000_000.0;

#[derive(Debug)]
pub struct TaggedRun<'a> {
    /// Tag of every line; blanks and commas become underscores. Empty for none.
    pub tag: String,
    pub run: &'a RecordedRun,
    /// Time since `started` of the file.
    pub begin: Duration,
}

/// Replaces an existing file. `started` is the benchmark's begin, `comments` go to the head.
///
/// # Errors
/// When the file cannot be written.
pub fn write_file(path: &Path, started: SystemTime, comments: &[String], runs: &[TaggedRun<'_>]) -> Result<()> {
    let file = File::create(path).map_err(|source| BenchError::io("create", path, source))?;
    let mut writer = BufWriter::new(file);
    write(&mut writer, started, comments, runs)
        .and_then(|()| writer.flush())
        .map_err(|source| BenchError::io("write", path, source))
}

/// Writes the interval log to any writer.
///
/// # Errors
/// When the writer fails.
pub fn write(
    mut writer: &mut impl Write,
    started: SystemTime,
    comments: &[String],
    runs: &[TaggedRun<'_>],
) -> std::io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut head = IntervalLogWriterBuilder::new();
    head.add_comment("[Histogram log format version 1.3]");
    for comment in comments {
        head.add_comment(comment);
    }
    // Readers differ in which of the two they add to intervals.
    head.with_start_time(started).with_base_time(started);
    drop(head.begin_log_with(&mut writer, &mut serializer)?);
    writeln!(writer, "{LEGEND}")?;

    let mut body = IntervalLogWriterBuilder::new();
    let mut log = body.with_max_value_divisor(MAX_VALUE_DIVISOR).begin_log_with(&mut writer, &mut serializer)?;
    for TaggedRun { tag, run, begin } in runs {
        let tag = tag.replace(|c: char| c == ',' || c.is_whitespace(), "_");
        let tag = if tag.is_empty() { None } else { Tag::new(&tag) };
        for interval in &run.intervals {
            let begin = *begin + Duration::from_nanos(interval.start_ns);
            let length = Duration::from_nanos(interval.length_ns);
            log.write_histogram(interval.histogram.inner(), begin, length, tag).map_err(std::io::Error::other)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::histogram::IntervalRecorder;

    fn recorded() -> RecordedRun {
        let mut recorder = IntervalRecorder::new(0, 2_000_000_000);
        for value in 1..=1_000 {
            recorder.record(0, value);
        }
        for value in 1..=1_000 {
            recorder.record(1_000_000_000, value * 1_000);
        }
        recorder.finish(1_500_000_000)
    }

    #[test]
    fn hlog_intervals_are_readable() {
        let run = recorded();
        let mut log = Vec::new();
        let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let tagged = TaggedRun { tag: "es sbe.serial,journal".into(), run: &run, begin: Duration::from_secs(3) };
        write(&mut log, started, &["gapless canonical".into()], &[tagged]).unwrap();

        let text = String::from_utf8(log.clone()).unwrap();
        assert!(
            text.starts_with("#[Histogram log format version 1.3]\n#gapless canonical\n#[StartTime: 1700000000.000")
        );
        assert!(text.contains(LEGEND));

        let without_legend = text.replace(&format!("{LEGEND}\n"), "");
        let mut parts = Vec::new();
        for entry in IntervalLogIterator::new(without_legend.as_bytes()) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                assert_eq!(interval.tag().unwrap().as_str(), "es_sbe.serial_journal");
                let bytes = decode_base64(interval.encoded_histogram());
                let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                parts.push((interval.start_timestamp(), interval.duration(), histogram));
            }
        }
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].0, parts[0].1), (Duration::from_secs(3), Duration::from_secs(1)));
        assert_eq!((parts[1].0, parts[1].1), (Duration::from_secs(4), Duration::from_millis(500)));
        assert_eq!(&parts[0].2, run.intervals[0].histogram.inner());
        assert_eq!(parts[1].2.len(), 1_000);
    }

    #[test]
    fn hlog_missing_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let run = recorded();
        let path = directory.path().join("run.hlog");
        let tagged = TaggedRun { tag: String::new(), run: &run, begin: Duration::ZERO };
        write_file(&path, SystemTime::now(), &[], &[tagged]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().filter(|line| line.contains("HISTF")).count(), 2);
        let missing = directory.path().join("no/run.hlog");
        assert!(write_file(&missing, SystemTime::now(), &[], &[]).unwrap_err().to_string().contains("no/run.hlog"));
    }

    fn decode_base64(text: &str) -> Vec<u8> {
        let value = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let mut bytes = Vec::new();
        for group in text.trim_end_matches('=').as_bytes().chunks(4) {
            let bits = group.iter().fold(0_u32, |bits, &byte| bits << 6 | u32::from(value(byte)));
            let bits = bits << (6 * (4 - group.len()));
            bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
        }
        bytes
    }
}
