//! `DetachedConnection`: a TCP connection written by its own thread, which saves the member's thread the system call of
//! each message at the price of a hand-over. Accepted bytes leave in order; after a close within `DRAIN_NS_MAX`, or
//! they are lost as if the connection had broken.

use gapless_agent::plan::{SPREADING_CORES_MIN, cores_available};
use gapless_agent::{Agent, AgentError, AgentThread, Clock, CpuMask, IdleStrategy, Now, ThreadSpec, Waker};
use gapless_transport::mailbox::Mailbox;
use gapless_transport::sockets::{Pipe, SocketRead, TcpSocket};
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub const THREAD_NAME: &str = "replica-sender";
const QUEUE_MESSAGES: usize = 1024;
/// Further bytes wait in the connection's own queue.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// Delay after a write that the operating system did not accept.
const RETRY_NS: u64 = 50_000;
/// Longest wait of a closing connection for queued bytes.
const DRAIN_NS_MAX: u64 = 20_000_000;

/// A sending thread for each connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetachedSend {
    /// CPUs of these threads.
    pub cpus: Option<CpuMask>,
}

struct SenderState {
    queue: Mailbox<Vec<u8>>,
    spare: Mailbox<Vec<u8>>,
    queued_bytes: AtomicUsize,
    is_broken: AtomicBool,
    is_finishing: AtomicBool,
}

pub(super) struct DetachedConnection {
    socket: TcpSocket,
    shared: Arc<SenderState>,
    waker: Waker,
    _thread: AgentThread,
}

impl fmt::Debug for DetachedConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("DetachedConnection").field(&self.socket).finish()
    }
}

impl DetachedConnection {
    pub(super) fn start(socket: BorrowedFd<'_>, options: &DetachedSend) -> io::Result<Self> {
        let duplicate = || socket.try_clone_to_owned().and_then(TcpSocket::over);
        let shared = Arc::new(SenderState {
            queue: Mailbox::new(QUEUE_MESSAGES),
            spare: Mailbox::new(QUEUE_MESSAGES),
            queued_bytes: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            is_finishing: AtomicBool::new(false),
        });
        let sender = ReplicationSender {
            socket: duplicate()?,
            shared: Arc::clone(&shared),
            rest: Vec::new(),
            sent: 0,
            retry_at_ns: None,
            is_pinned: options.cpus.is_some(),
        };
        let waker = Waker::new()?;
        let (spec, clock) = (spec(options), Clock::fastest().0);
        let thread =
            AgentThread::spawn(spec, vec![Box::new(sender)], clock, waker.clone()).map_err(io::Error::other)?;
        if let Some(warning) = thread.pin_warning() {
            tracing::warn!(%warning, "the thread that sends replication is not pinned");
        }
        Ok(Self { socket: duplicate()?, shared, waker, _thread: thread })
    }
}

/// The thread spins if a CPU is configured for it and there are enough cores.
fn spec(options: &DetachedSend) -> ThreadSpec {
    let mut spec = ThreadSpec::new(THREAD_NAME);
    let has_cores = cores_available() >= SPREADING_CORES_MIN;
    spec.cpus = options.cpus;
    spec.hot = has_cores && options.cpus.is_some_and(|cpus| cpus.count() == 1);
    spec.idle = if has_cores { IdleStrategy::SPIN_YIELD_PARK } else { IdleStrategy::SHARED_CORE };
    spec.drain_ns_max = DRAIN_NS_MAX;
    spec
}

impl Pipe for DetachedConnection {
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.socket.receive(room)? {
            SocketRead::Bytes(length) => Ok(length),
            SocketRead::Nothing => Err(ErrorKind::WouldBlock.into()),
            SocketRead::End => Ok(0),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Acquire: pairs with the sender's release.
        if self.shared.is_broken.load(Ordering::Acquire) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        // Relaxed: the count bounds memory, and guards no data.
        let room = QUEUE_BYTES_MAX.saturating_sub(self.shared.queued_bytes.load(Ordering::Relaxed));
        let taken = bytes.len().min(room);
        if taken == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let mut buffer = self.shared.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(&bytes[..taken]);
        self.shared.queued_bytes.fetch_add(taken, Ordering::Relaxed);
        if self.shared.queue.push(buffer).is_err() {
            self.shared.queued_bytes.fetch_sub(taken, Ordering::Relaxed);
            return Err(ErrorKind::WouldBlock.into());
        }
        self.waker.wake();
        Ok(taken)
    }

    fn finish(&self) {
        // Release: after the bytes that were queued before.
        self.shared.is_finishing.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl AsFd for DetachedConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

struct ReplicationSender {
    socket: TcpSocket,
    shared: Arc<SenderState>,
    rest: Vec<u8>,
    sent: usize,
    retry_at_ns: Option<u64>,
    is_pinned: bool,
}

impl ReplicationSender {
    const fn is_idle(&self) -> bool {
        self.sent == self.rest.len()
    }

    fn send_rest(&mut self) -> io::Result<bool> {
        while !self.is_idle() {
            let sent = self.socket.send(&self.rest[self.sent..])?;
            if sent == 0 {
                return Ok(false);
            }
            self.sent += sent;
            self.shared.queued_bytes.fetch_sub(sent, Ordering::Relaxed);
        }
        Ok(true)
    }

    fn next(&mut self) -> bool {
        let Some(next) = self.shared.queue.pop() else { return false };
        let used = std::mem::replace(&mut self.rest, next);
        self.sent = 0;
        // A full pool needs no more.
        let _ = self.shared.spare.push(used);
        true
    }
}

impl Agent for ReplicationSender {
    fn name(&self) -> &str {
        THREAD_NAME
    }

    fn on_start(&mut self, _: Now) -> Result<(), AgentError> {
        if !self.is_pinned {
            CpuMask::unpin_current_thread();
        }
        Ok(())
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut work = 0;
        self.retry_at_ns = None;
        loop {
            match self.send_rest() {
                Ok(true) => {}
                Ok(false) => {
                    self.retry_at_ns = Some(now.monotonic_ns + RETRY_NS);
                    return Ok(work);
                }
                Err(_) => {
                    // The user finds the connection broken at the next message; queued bytes are lost.
                    self.shared.is_broken.store(true, Ordering::Release);
                    (self.sent, work) = (self.rest.len(), work + 1);
                }
            }
            if !self.next() {
                break;
            }
            work += 1;
        }
        // Acquire: pairs with the release in `finish`.
        if self.shared.is_finishing.load(Ordering::Acquire) && !self.next() {
            self.shared.is_finishing.store(false, Ordering::Relaxed);
            self.socket.finish();
        }
        Ok(work)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.retry_at_ns
    }

    fn is_drained(&self) -> bool {
        self.is_idle()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn pair(options: &DetachedSend) -> (DetachedConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        (DetachedConnection::start(near.as_fd(), options).unwrap(), listener.accept().unwrap().0)
    }

    fn send_all(connection: &mut DetachedConnection, bytes: &[u8]) {
        let mut sent = 0;
        while sent < bytes.len() {
            match connection.send(&bytes[sent..]) {
                Ok(taken) => sent += taken,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
    }

    #[test]
    fn bytes_leave_in_order_until_close() {
        let (mut connection, mut far) = pair(&DetachedSend::default());
        let sent: Vec<u8> = (0..20_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            far.read_to_end(&mut read).unwrap();
            read
        });
        sent.chunks(33_333).for_each(|chunk| send_all(&mut connection, chunk));
        while connection.shared.queued_bytes.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        drop(connection);
        assert!(reader.join().unwrap() == sent);
    }

    #[test]
    fn peer_close_ends_connection() {
        let (mut connection, far) = pair(&DetachedSend::default());
        drop(far);
        let broken = (0..10_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            connection.send(b"frame").err().filter(|error| error.kind() != ErrorKind::WouldBlock)
        });
        assert_eq!(broken.unwrap().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn full_queue_accepts_nothing() {
        let (mut connection, far) = pair(&DetachedSend::default());
        let piece = vec![7; 1 << 20];
        let refused = (0..10_000).find_map(|_| connection.send(&piece).err());
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::WouldBlock));
        drop((connection, far));
    }

    #[test]
    fn thread_has_its_name_and_cpus() {
        let first = CpuMask::of_current_thread().unwrap().iter().next().unwrap();
        let cpu = CpuMask::of(&[first]);
        let (connection, _far) = pair(&DetachedSend { cpus: cpu });
        assert_eq!(connection._thread.spec().name, THREAD_NAME);
        assert!(connection._thread.pin_warning().is_none());
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let is_ours = |name: &str| name.trim() == THREAD_NAME;
        let found = tasks.flatten().any(|task| {
            let allowed = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| is_ours(&name))
                && allowed.lines().any(|line| line == format!("Cpus_allowed_list:\t{first}"))
        });
        assert!(found, "no thread {THREAD_NAME} on CPU {first}");
    }
}
