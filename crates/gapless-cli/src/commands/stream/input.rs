//! Lines are read ahead by a thread, a few blocks at most, so that the caller never waits.

use crate::standard_streams;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

const BLOCKS: usize = 16;
const BLOCK_BYTES: usize = 64 << 10;

type OpenInput = Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>;

/// Whole lines; the last one of the input may lack its line feed.
type LineBlock = Result<Vec<u8>, String>;

pub(super) enum NextLine<'a> {
    Line(&'a [u8]),
    NotYet,
    End,
}

pub(super) struct InputLines {
    blocks: Receiver<LineBlock>,
    block: Vec<u8>,
    position: usize,
    count: u64,
    is_ended: bool,
}

impl InputLines {
    /// A line has at most `length_max` bytes.
    pub(super) fn open(file: Option<&Path>, length_max: usize) -> Result<Self, String> {
        let (name, open): (String, OpenInput) = match file.filter(|file| *file != Path::new("-")) {
            Some(file) => {
                let (name, file) = (file.display().to_string(), file.to_owned());
                if std::fs::metadata(&file).is_ok_and(|found| found.file_type().is_fifo()) {
                    // Opening a named pipe waits for a writer.
                    (name, Box::new(move || Ok(Box::new(File::open(file)?))))
                } else {
                    let opened = File::open(file).map_err(|error| format!("reading {name}: {error}"))?;
                    (name, Box::new(move || Ok(Box::new(opened))))
                }
            }
            None => {
                standard_streams::check_input().map_err(|error| format!("standard input: {error}"))?;
                ("standard input".to_owned(), Box::new(|| Ok(Box::new(io::stdin()))))
            }
        };
        let (sender, blocks) = sync_channel(BLOCKS);
        let thread = Builder::new().name("input".to_owned());
        // Never joined: the thread may wait forever for a terminal or a pipe's writer.
        thread
            .spawn(move || {
                let opened = open().map_err(|error| error.to_string());
                if let Err(reason) = opened.and_then(|reader| read_ahead(reader, &sender, length_max)) {
                    let _ = sender.send(Err(format!("reading {name}: {reason}")));
                }
            })
            .map_err(|error| format!("making a thread: {error}"))?;
        Ok(Self { blocks, block: Vec::new(), position: 0, count: 0, is_ended: false })
    }

    pub(super) fn next(&mut self) -> Result<NextLine<'_>, String> {
        if self.position == self.block.len() && !self.is_ended {
            match self.blocks.try_recv() {
                Ok(block) => (self.block, self.position) = (block?, 0),
                Err(TryRecvError::Empty) => return Ok(NextLine::NotYet),
                Err(TryRecvError::Disconnected) => self.is_ended = true,
            }
        }
        if self.position == self.block.len() {
            return Ok(NextLine::End);
        }
        let rest = &self.block[self.position..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        self.position += length.map_or(rest.len(), |length| length + 1);
        self.count += 1;
        let line = &rest[..length.unwrap_or(rest.len())];
        Ok(NextLine::Line(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    pub(super) fn wait(&mut self, timeout: Duration) -> Result<(), String> {
        if self.position < self.block.len() || self.is_ended {
            std::thread::sleep(timeout);
            return Ok(());
        }
        match self.blocks.recv_timeout(timeout) {
            Ok(block) => (self.block, self.position) = (block?, 0),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.is_ended = true,
        }
        Ok(())
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

fn read_ahead(
    mut reader: Box<dyn Read + Send>,
    sender: &SyncSender<LineBlock>,
    length_max: usize,
) -> Result<(), String> {
    let mut rest = Vec::new();
    loop {
        let begin = rest.len();
        rest.resize(begin + BLOCK_BYTES, 0);
        let read = match reader.read(&mut rest[begin..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                rest.truncate(begin);
                continue;
            }
            other => other.map_err(|error| error.to_string())?,
        };
        rest.truncate(begin + read);
        let whole = if read == 0 {
            rest.len()
        } else {
            rest[begin..].iter().rposition(|byte| *byte == b'\n').map_or(0, |index| begin + index + 1)
        };
        if rest.len() - whole > length_max {
            return Err(format!("a line of more than {length_max} bytes, which is the longest message"));
        }
        if whole > 0 {
            let after = rest.split_off(whole);
            if sender.send(Ok(std::mem::replace(&mut rest, after))).is_err() {
                return Ok(());
            }
        }
        if read == 0 {
            return Ok(());
        }
    }
}
