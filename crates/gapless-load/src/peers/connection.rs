//! A TCP connection to a broker on this machine, which waits by spinning or blocking.

use crate::peers::subject::{POLL_INTERVAL, REPLY_TIME_MAX, WaitMode};
use crate::peers::{PeerError, Result};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

const READ_LENGTH: usize = 64 << 10;
/// Longer output is sent at once.
const WRITE_LENGTH: usize = 32 << 10;
const TURNS_PER_CLOCK: u32 = 64;

pub(crate) struct BrokerConnection {
    stream: TcpStream,
    waiting: WaitMode,
    /// `begin..end` is not taken yet.
    input: Vec<u8>,
    begin: usize,
    end: usize,
    output: Vec<u8>,
}

impl BrokerConnection {
    pub(crate) fn open(address: SocketAddr, waiting: WaitMode) -> Result<Self> {
        let failed = |error| PeerError::io(format!("connect to {address}"), error);
        let stream = TcpStream::connect_timeout(&address, REPLY_TIME_MAX).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        match waiting {
            WaitMode::Spinning => stream.set_nonblocking(true),
            WaitMode::Blocking => stream
                .set_read_timeout(Some(POLL_INTERVAL))
                .and_then(|()| stream.set_write_timeout(Some(REPLY_TIME_MAX))),
        }
        .map_err(failed)?;
        Ok(Self { stream, waiting, input: vec![0; 2 * READ_LENGTH], begin: 0, end: 0, output: Vec::new() })
    }

    pub(crate) fn unread(&self) -> &[u8] {
        &self.input[self.begin..self.end]
    }

    pub(crate) fn take(&mut self, count: usize) {
        assert!(count <= self.end - self.begin, "only what has come can be taken");
        self.begin += count;
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
    }

    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    pub(crate) fn flush_if_long(&mut self) -> Result<()> {
        if self.output.len() >= WRITE_LENGTH { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let mut sent = 0;
        let mut since = None;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(0) => return Err(PeerError::io("send to the broker", ErrorKind::WriteZero)),
                Ok(count) => (sent, since) = (sent + count, None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let begin = *since.get_or_insert_with(Instant::now);
                    if begin.elapsed() > REPLY_TIME_MAX {
                        return Err(PeerError::io("send to the broker", ErrorKind::TimedOut));
                    }
                    std::thread::yield_now();
                }
                Err(error) => return Err(PeerError::io("send to the broker", error)),
            }
        }
        self.output.clear();
        Ok(())
    }

    /// `false` if nothing came for [`POLL_INTERVAL`].
    pub(crate) fn fill(&mut self) -> Result<bool> {
        self.make_room();
        let begin = Instant::now();
        let mut turns = 0_u32;
        loop {
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => return Err(PeerError::io("receive from the broker", ErrorKind::UnexpectedEof)),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    turns = turns.wrapping_add(1);
                    let is_over = turns.is_multiple_of(TURNS_PER_CLOCK) && begin.elapsed() >= POLL_INTERVAL;
                    if self.waiting == WaitMode::Blocking || is_over {
                        return Ok(false);
                    }
                    // The broker between the ends needs a CPU, too.
                    std::thread::yield_now();
                }
                Err(error) => return Err(PeerError::io("receive from the broker", error)),
            }
        }
    }

    /// Like [`BrokerConnection::fill`], but [`REPLY_TIME_MAX`] without bytes since `begin` is an error.
    pub(crate) fn fill_since(&mut self, begin: &mut Option<Instant>, silence: PeerError) -> Result<()> {
        if self.fill()? {
            return Ok(());
        }
        let begin = *begin.get_or_insert_with(Instant::now);
        if begin.elapsed() + POLL_INTERVAL >= REPLY_TIME_MAX { Err(silence) } else { Ok(()) }
    }

    /// Replaces [`POLL_INTERVAL`], if it blocks.
    #[cfg(test)]
    pub(crate) fn set_read_timeout(&self, timeout: std::time::Duration) {
        self.stream.set_read_timeout(Some(timeout)).expect("not zero");
    }

    fn make_room(&mut self) {
        if self.input.len() - self.end >= READ_LENGTH {
            return;
        }
        self.input.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.input.len() - self.end < READ_LENGTH {
            self.input.resize(self.end + 2 * READ_LENGTH, 0);
        }
    }
}

pub(crate) fn silence(protocol: &'static str, what: &'static str) -> PeerError {
    PeerError::Silence { protocol, what, seconds: REPLY_TIME_MAX.as_secs() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair(waiting: WaitMode) -> (BrokerConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = BrokerConnection::open(listener.local_addr().unwrap(), waiting).unwrap();
        (connection, listener.accept().unwrap().0)
    }

    #[test]
    fn small_takes_yield_all_bytes() {
        for waiting in [WaitMode::Spinning, WaitMode::Blocking] {
            let (mut connection, mut other) = pair(waiting);
            let sent: Vec<u8> = (0..1_000_000_u32).map(|index| (index % 251) as u8).collect();
            let expected = sent.clone();
            let writer = std::thread::spawn(move || other.write_all(&sent).map(|()| other));
            let mut found = Vec::new();
            while found.len() < expected.len() {
                while connection.unread().len() >= 7 {
                    found.extend_from_slice(&connection.unread()[..7]);
                    connection.take(7);
                }
                if found.len() + connection.unread().len() == expected.len() {
                    let rest = connection.unread().len();
                    found.extend_from_slice(&connection.unread()[..rest]);
                    break;
                }
                connection.fill().unwrap();
            }
            assert!(found == expected);
            let mut other = writer.join().unwrap().unwrap();
            connection.output().extend_from_slice(&expected);
            let reader = std::thread::spawn(move || {
                let mut found = vec![0; expected.len()];
                other.read_exact(&mut found).unwrap();
                assert!(found == expected);
            });
            connection.flush().unwrap();
            reader.join().unwrap();
        }
    }

    #[test]
    fn silence_and_end_are_told_apart() {
        for waiting in [WaitMode::Spinning, WaitMode::Blocking] {
            let (mut connection, other) = pair(waiting);
            if waiting == WaitMode::Blocking {
                connection.set_read_timeout(std::time::Duration::from_millis(1));
            }
            assert!(!connection.fill().unwrap());
            drop(other);
            let error = loop {
                match connection.fill() {
                    Ok(came) => assert!(!came),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.contains("receive from the broker"), "{error}");
        }
    }
}
