//! A run continues after the last whole line of the previous one.

use gapless_client::node::{SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_stream::event_stream::EventStream;
use gapless_stream::logger::{LogFormat, Logger};
use std::fs::{File, OpenOptions};
use std::io;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BLOCK_BYTES: u64 = 64 << 10;
pub(super) const FRAMES_PER_POLL: usize = 4096;

pub(super) type BoxedError = Box<dyn std::error::Error>;

pub(super) struct TextFile {
    path: PathBuf,
    file: BufWriter<File>,
    start: Start,
    line: Vec<u8>,
    node: Option<StreamNode<SharedMemoryLink>>,
}

impl TextFile {
    pub(super) fn open(path: &Path) -> Result<Self, BoxedError> {
        let said = |error: io::Error| format!("{}: {error}", path.display());
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(said)?;
        let length = end_of_lines(&mut file).map_err(said)?;
        let start = match last_line(&mut file, length).map_err(said)? {
            None => Start::First,
            Some(line) => {
                let sequence = line.split(' ').next().and_then(|word| word.parse::<u64>().ok());
                let no_line =
                    || format!("{}: its last line begins with no sequence; it is no text of a stream", path.display());
                Start::Sequence(sequence.ok_or_else(no_line)? + 1)
            }
        };
        file.set_len(length).map_err(said)?;
        file.seek(SeekFrom::End(0)).map_err(said)?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), start, line: Vec::new(), node: None })
    }

    /// Returns the number of new frames. Unusable after an error.
    pub(super) fn follow(&mut self, stream: &EventStream) -> Result<usize, BoxedError> {
        if self.node.is_none() {
            // A relay that was restarted from the beginning receives these frames again.
            if matches!(self.start, Start::Sequence(next) if next > stream.released_sequence() + 1) {
                return Ok(0);
            }
            let link = stream.local_link(SharedMemoryOptions::default())?;
            self.node = Some(StreamNode::new(link, StreamNodeOptions::reading(self.start)));
        }
        let Self { file, line, node: Some(node), path, .. } = self else { return Ok(0) };
        let mut written = Ok(());
        let polled = node.poll(FRAMES_PER_POLL, |event| {
            line.clear();
            if written.is_ok() && (Logger { format: LogFormat::Text }).line(&event, line) {
                written = file.write_all(line);
            }
        });
        written.and_then(|()| file.flush()).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(polled?)
    }

    pub(super) fn discard(self) {
        let _unwritten = self.file.into_parts();
    }
}

fn end_of_lines(file: &mut File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    Ok(line_feed_before(file, length)?.map_or(0, |position| position + 1))
}

fn last_line(file: &mut File, length: u64) -> io::Result<Option<String>> {
    let Some(before) = length.checked_sub(1) else { return Ok(None) };
    let start = line_feed_before(file, before)?.map_or(0, |position| position + 1);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take((length - start).min(64)).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn line_feed_before(file: &mut File, length: u64) -> io::Result<Option<u64>> {
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES);
        let mut block = vec![0; (end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(position) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(start + position as u64));
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says where it failed")]
    use super::*;
    use gapless_client::polled::MessageType;
    use gapless_stream::options::EventStreamOptions;
    use gapless_wire::Encoding;
    use std::time::{Duration, Instant};

    #[test]
    fn text_ahead_waits_for_stream() {
        let patience = Duration::from_secs(60);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        let stream = EventStream::start(&EventStreamOptions::in_memory()).unwrap();
        let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
        let mut node = StreamNode::new(link, StreamNodeOptions::default());
        node.wait_open(patience).unwrap();
        let ahead = stream.released_sequence() + 2;
        std::fs::write(&path, format!("{ahead} from before\n")).unwrap();
        let mut text = TextFile::open(&path).unwrap();
        assert_eq!(text.follow(&stream).unwrap(), 0);
        let message = MessageType { schema: 0, encoding: Encoding::Opaque };
        for payload in [&b"before"[..], b"from before", b"behind it"] {
            node.publish(message, payload).unwrap();
        }
        node.poll_until(patience, "all come back", |node| node.in_flight() == 0, |_| {}).unwrap();
        let begun = Instant::now();
        let written = loop {
            text.follow(&stream).unwrap();
            let written = std::fs::read_to_string(&path).unwrap();
            if written.contains("behind it") {
                break written;
            }
            assert!(begun.elapsed() < patience, "{written}");
        };
        let lines: Vec<_> = written.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, format!("{ahead} from before").as_str()), "{written}");
        assert!(lines[1].starts_with(&format!("{} ", ahead + 1)), "{written}");
        drop(node);
        stream.stop().unwrap();
    }

    #[test]
    fn file_resumes_after_last_whole_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        let opened = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            let start = TextFile::open(&path).map(|text| text.start).map_err(|error| error.to_string());
            (start, std::fs::read(&path).unwrap())
        };
        assert_eq!(opened(b""), (Ok(Start::First), Vec::new()));
        assert_eq!(opened(b"12 part of"), (Ok(Start::First), Vec::new()));
        assert_eq!(opened(b"1 a\n12 b\n13 par"), (Ok(Start::Sequence(13)), b"1 a\n12 b\n".to_vec()));
        let long = [b"7 a\n8 ".to_vec(), vec![b'x'; 200_000], b"\n9 torn".to_vec()].concat();
        assert_eq!(opened(&long), (Ok(Start::Sequence(9)), long[..long.len() - 6].to_vec()));
        let (refused, kept) = opened(b"1 a\nnonsense\n");
        assert!(refused.unwrap_err().contains("its last line begins with no sequence"));
        assert_eq!(kept, b"1 a\nnonsense\n", "it is somebody's");
    }
}
