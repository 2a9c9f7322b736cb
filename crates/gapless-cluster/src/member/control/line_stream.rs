//! One line each way over a Unix stream. A whole line has one deadline, so trickling bytes gain no time.

use gapless_transport::socket_path::connect_stream;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CONNECT_INTERVAL: Duration = Duration::from_millis(5);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct LineStream {
    stream: UnixStream,
    deadline: Instant,
    stopping: Arc<AtomicBool>,
}

impl LineStream {
    /// Connects to `path`; everything up to the answer ends at `deadline`.
    ///
    /// # Errors
    /// No listener; `TimedOut` if the backlog is full until then.
    pub fn connect(path: &Path, deadline: Instant) -> io::Result<Self> {
        loop {
            match connect_stream(path) {
                Ok(socket) => return Ok(Self { stream: socket.into(), deadline, stopping: Arc::default() }),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(error) if Instant::now() >= deadline => return Err(io::Error::new(ErrorKind::TimedOut, error)),
                Err(_) => std::thread::sleep(CONNECT_INTERVAL),
            }
        }
    }

    /// Takes over an accepted connection, which does not wait once `stopping` is set.
    ///
    /// # Errors
    /// An error of the system.
    pub fn accepted(stream: UnixStream, deadline: Instant, stopping: Arc<AtomicBool>) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, deadline, stopping })
    }

    /// Deadline for the next line.
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline, ..self }
    }

    pub const fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Reads to the end of a line or of the stream.
    ///
    /// # Errors
    /// `TimedOut`; an error of the system; no UTF-8.
    pub fn read_line(&self, length_max: usize) -> io::Result<String> {
        let (mut line, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let room = piece.len().min(length_max - line.len());
            let length = self.attempt(PollFlags::IN, |mut stream| stream.read(&mut piece[..room]))?;
            let read = &piece[..length];
            let end = read.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&read[..end.unwrap_or(length)]);
            if end.is_some() || length == 0 {
                return String::from_utf8(line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Sends `text` and the end of the line.
    ///
    /// # Errors
    /// `TimedOut`; an error of the system.
    pub fn write_line(&self, text: &str) -> io::Result<()> {
        let line = format!("{text}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            let length = self.attempt(PollFlags::OUT, |mut stream| stream.write(rest))?;
            rest = &rest[length..];
        }
        Ok(())
    }

    fn attempt(
        &self,
        flags: PollFlags,
        mut attempt: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match attempt(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(flags)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        // Relaxed: the flag guards no data.
        if self.stopping.load(Ordering::Relaxed) {
            return Err(io::Error::other("the member stops"));
        }
        let pause = left.min(CHECK_INTERVAL);
        let pause = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        match poll(&mut [PollFd::new(&self.stream, flags)], Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
