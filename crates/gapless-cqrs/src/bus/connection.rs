//! [`WriterConnection`]: one waiting thread polls for the answers of all; for tasks and callbacks the poller thread
//! does.

use super::completion::{AnswerResult, Completion, OutcomeCallback, WriterAnswer};
use crate::error::BusError;
use crate::identity::TypeKey;
use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_client::polled::{ClientWaker, Incoming, MessageType, PolledClient};
use gapless_client::{ClientError, SessionKey};
use gapless_log::LogError;
use gapless_transport::token::random_token;
use gapless_wire::Encoding;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Options of a bus handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusOptions {
    /// Most commands in flight, of all clones together, 1 to 65,536; further ones wait. Handles round up to a multiple
    /// of 64 (the stream has a session for each 64), a direct bus to a power of two. The commands of one thread for one
    /// aggregate are decided in order, also across sessions and leaders.
    pub in_flight_max: usize,
}

impl Default for BusOptions {
    fn default() -> Self {
        Self { in_flight_max: 4096 }
    }
}

const SESSION_COMMANDS_MAX: u32 = 64;
const ANSWERS_MAX: usize = 256;
const SLEEP_MAX: Duration = Duration::from_millis(100);
const RECONNECTING_PAUSE: Duration = Duration::from_millis(5);

pub(crate) struct WriterConnection {
    inner: Mutex<ConnectionInner>,
    /// Threads that want `inner` while its owner may sleep.
    wanted: AtomicU32,
    /// The owner of `inner` looks for a service, which may take seconds.
    is_reconnecting: AtomicBool,
    waker: Arc<Mutex<ClientWaker>>,
    /// Threads that wait while another one polls; one of these takes over from it.
    waiters: Mutex<VecDeque<Arc<Completion>>>,
    waiting: AtomicUsize,
    poller: OnceLock<Thread>,
    is_poller_active: AtomicBool,
    handler_commands: Mutex<VecDeque<HandlerCommand>>,
    this: Weak<Self>,
}

type HandlerCommand = (TypeKey, Vec<u8>, Arc<Completion>);

struct ConnectionInner {
    client: PolledClient,
    sessions: Vec<ConnectionSession>,
    current: usize,
    sessions_max: usize,
    bytes: Vec<u8>,
    is_disconnected: bool,
    is_lost: bool,
    waits: WaitNotices,
    waker: Arc<Mutex<ClientWaker>>,
}

struct ConnectionSession {
    key: SessionKey,
    /// Commands by number, in the order in which they were sent.
    in_flight: VecDeque<(u64, Arc<Completion>)>,
}

type DueCallbacks = Vec<(OutcomeCallback, AnswerResult)>;

impl WriterConnection {
    pub fn new(client: PolledClient, options: &BusOptions) -> Result<Arc<Self>, ClientError> {
        let waker = Arc::new(Mutex::new(client.waker()?));
        let sessions_max = options.in_flight_max.clamp(1, 1 << 16).div_ceil(SESSION_COMMANDS_MAX as usize);
        let inner = ConnectionInner {
            client,
            sessions: Vec::new(),
            current: 0,
            sessions_max,
            bytes: Vec::new(),
            is_disconnected: false,
            is_lost: false,
            waits: WaitNotices::after_a_second(),
            waker: Arc::clone(&waker),
        };
        Ok(Arc::new_cyclic(|this| Self {
            inner: Mutex::new(inner),
            wanted: AtomicU32::new(0),
            is_reconnecting: AtomicBool::new(false),
            waker,
            waiters: Mutex::default(),
            waiting: AtomicUsize::new(0),
            poller: OnceLock::new(),
            is_poller_active: AtomicBool::new(false),
            handler_commands: Mutex::default(),
            this: Weak::clone(this),
        }))
    }

    /// Sends a command encoded by `write`; blocks while there is no room.
    pub fn send(
        &self,
        command: TypeKey,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
        completion: &Arc<Completion>,
    ) {
        let mut inner = self.lock();
        let mut bytes = std::mem::take(&mut inner.bytes);
        bytes.clear();
        if let Err(reason) = write(&mut bytes) {
            inner.bytes = bytes;
            self.unlock(inner, DueCallbacks::new());
            return completion.deliver_now(Err(BusError::NotSent(reason)));
        }
        loop {
            if inner.is_disconnected {
                drop(inner);
                return completion.deliver_now(Err(BusError::Disconnected));
            }
            match inner.try_send(command, &bytes, completion) {
                Ok(true) => {
                    inner.bytes = bytes;
                    return self.unlock(inner, DueCallbacks::new());
                }
                Ok(false) => {
                    let mut due = DueCallbacks::new();
                    self.poll_or_sleep(&mut inner, SLEEP_MAX, &mut due);
                    // A connection that is still lost is left to the threads that want the lock.
                    if inner.is_lost || !due.is_empty() {
                        self.unlock(inner, due);
                        inner = self.lock();
                    }
                }
                Err(reason) => {
                    self.unlock(inner, DueCallbacks::new());
                    return completion.deliver_now(Err(BusError::NotSent(reason)));
                }
            }
        }
    }

    /// Like [`WriterConnection::send`]; `false` instead of blocking.
    pub fn try_send(
        &self,
        command: TypeKey,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
        completion: &Arc<Completion>,
    ) -> bool {
        let (Some(mut inner), mut due) = (self.lock_now(), DueCallbacks::new()) else { return false };
        let mut bytes = std::mem::take(&mut inner.bytes);
        bytes.clear();
        let sent = match write(&mut bytes) {
            Ok(()) if inner.is_disconnected => Err(BusError::Disconnected),
            Ok(()) => inner.try_send(command, &bytes, completion).map_err(BusError::NotSent),
            Err(reason) => Err(BusError::NotSent(reason)),
        };
        inner.bytes = bytes;
        if sent == Ok(false) {
            inner.poll(&mut due);
        }
        self.unlock_at_once(inner, due);
        sent.unwrap_or_else(|error| {
            completion.deliver_now(Err(error));
            true
        })
    }

    /// Takes answers and opens another session to make room.
    pub fn has_room(&self) -> bool {
        let (Some(mut inner), mut due) = (self.lock_now(), DueCallbacks::new()) else { return false };
        let has_room = inner.find_room().is_some() || {
            inner.poll(&mut due);
            inner.is_disconnected || inner.find_room().is_some()
        };
        self.unlock_at_once(inner, due);
        has_room
    }

    /// Takes answers, sleeping until `until` at most.
    pub fn wait_for_room(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let mut due = DueCallbacks::new();
        match self.lock_now() {
            Some(mut inner) if !inner.is_lost => {
                self.poll_or_sleep(&mut inner, left.min(SLEEP_MAX), &mut due);
                return self.unlock(inner, due);
            }
            Some(inner) => self.unlock_at_once(inner, due),
            None => {}
        }
        std::thread::sleep(left.min(RECONNECTING_PAUSE));
    }

    /// Takes arrived answers, unless another thread does.
    pub fn take_answers(&self) {
        if let Some(mut inner) = self.try_lock() {
            let mut due = DueCallbacks::new();
            inner.poll(&mut due);
            self.unlock_at_once(inner, due);
        }
    }

    /// Waits for the outcome; a timeout error after `until`.
    pub fn wait(&self, completion: &Arc<Completion>, until: Option<Instant>) -> AnswerResult {
        loop {
            if let Some(outcome) = completion.take() {
                return outcome;
            }
            let left = until.map_or(SLEEP_MAX, |until| until.saturating_duration_since(Instant::now()).min(SLEEP_MAX));
            if left.is_zero() {
                return Err(BusError::TimedOut);
            }
            if let Some(mut inner) = self.try_lock() {
                if inner.is_lost && until.is_some() {
                    self.unlock_at_once(inner, DueCallbacks::new());
                    completion.sleep_for(left);
                    continue;
                }
                let mut due = DueCallbacks::new();
                self.poll_or_sleep(&mut inner, left, &mut due);
                let is_disconnected = inner.is_disconnected;
                self.unlock(inner, due);
                if is_disconnected {
                    // Only a command that is going to be retried is still without an outcome.
                    completion.sleep_for(left);
                }
                continue;
            }
            let mut waiters = lock(&self.waiters);
            waiters.push_back(Arc::clone(completion));
            self.waiting.fetch_add(1, Ordering::Relaxed);
            drop(waiters);
            fence(Ordering::SeqCst);
            // The owner of the lock may have left before this waiter was visible to it.
            if let Some(inner) = self.try_lock() {
                self.unlock(inner, DueCallbacks::new());
                continue;
            }
            completion.sleep_for(left);
        }
    }

    /// Number of open sessions.
    pub fn sessions(&self) -> usize {
        let inner = self.lock();
        let count = inner.sessions.len();
        self.unlock(inner, DueCallbacks::new());
        count
    }

    /// Polls until no one awaits any.
    pub fn start_poller(&self) {
        if self.is_poller_active.swap(true, Ordering::SeqCst) {
            return;
        }
        let thread = self.poller.get_or_init(|| {
            let connection = Weak::clone(&self.this);
            let spawned =
                std::thread::Builder::new().name("gapless-answers".to_owned()).spawn(move || run_poller(&connection));
            spawned.expect("a thread can be started").thread().clone()
        });
        thread.unpark();
    }

    /// Reconnects for a retry.
    #[cold]
    pub fn reconnect_for_retry(&self) {
        loop {
            let (mut inner, mut due) = (self.lock(), DueCallbacks::new());
            let has_tried = !inner.is_disconnected || self.reconnect(&mut inner, &mut due);
            self.unlock(inner, due);
            if has_tried {
                return;
            }
        }
    }

    /// Connects to the current leader and sends unanswered commands again; the writer recognises duplicates. May take
    /// seconds, so threads that want the lock get it first.
    #[cold]
    fn reconnect(&self, inner: &mut ConnectionInner, due: &mut DueCallbacks) -> bool {
        // SeqCst: pairs with `lock_now`, which counts itself in `wanted` before it reads `is_reconnecting`.
        self.is_reconnecting.store(true, Ordering::SeqCst);
        let is_free = self.wanted.load(Ordering::SeqCst) == 0;
        if is_free {
            inner.reconnect(due);
        }
        self.is_reconnecting.store(false, Ordering::SeqCst);
        is_free
    }

    /// Queues a command for the poller: the calling thread may be the one that makes room.
    #[cold]
    pub fn send_soon(&self, command: TypeKey, bytes: Vec<u8>, completion: Arc<Completion>) {
        lock(&self.handler_commands).push_back((command, bytes, completion));
        // The owner of `inner` may sleep for answers.
        lock(&self.waker).wake();
        self.start_poller();
    }

    fn send_handler_commands(&self) {
        loop {
            let next = lock(&self.handler_commands).pop_front();
            let Some((command, bytes, completion)) = next else { return };
            let write = |into: &mut Vec<u8>| {
                into.extend_from_slice(&bytes);
                Ok(())
            };
            self.send(command, write, &completion);
        }
    }

    fn poll_or_sleep(&self, inner: &mut ConnectionInner, most: Duration, due: &mut DueCallbacks) {
        if inner.is_lost {
            self.reconnect(inner, due);
        } else if inner.poll(due) == 0 && !inner.is_disconnected && self.wanted.load(Ordering::SeqCst) == 0 {
            inner.sleep(most);
            match inner.poll(due) {
                0 => inner.log_wait(),
                _ => inner.waits.end(),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionInner> {
        if let Some(inner) = self.try_lock() {
            return inner;
        }
        self.wanted.fetch_add(1, Ordering::SeqCst);
        lock(&self.waker).wake();
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        inner
    }

    /// `None` while the lock's owner looks for a service.
    fn lock_now(&self) -> Option<MutexGuard<'_, ConnectionInner>> {
        self.try_lock().or_else(|| self.lock_unless_reconnecting())
    }

    #[cold]
    fn lock_unless_reconnecting(&self) -> Option<MutexGuard<'_, ConnectionInner>> {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        // SeqCst: pairs with `reconnect`, which gives up the lock if another thread wants it.
        let inner = (!self.is_reconnecting.load(Ordering::SeqCst)).then(|| {
            lock(&self.waker).wake();
            self.inner.lock().unwrap_or_else(PoisonError::into_inner)
        });
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        inner
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, ConnectionInner>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn nudge_next(&self) {
        let mut waiters = lock(&self.waiters);
        while let Some(next) = waiters.pop_front() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            // A waiter that is not nudged has its outcome already.
            if next.nudge() {
                return;
            }
        }
    }

    /// Like [`WriterConnection::unlock`], for callers that never sleep: the poller reconnects a lost connection.
    fn unlock_at_once(&self, inner: MutexGuard<'_, ConnectionInner>, due: DueCallbacks) {
        let is_lost = inner.is_lost;
        self.unlock(inner, due);
        if is_lost {
            self.start_poller();
        }
    }

    fn unlock(&self, inner: MutexGuard<'_, ConnectionInner>, due: DueCallbacks) {
        drop(inner);
        due.into_iter().for_each(|(callback, outcome)| callback(outcome));
        // SeqCst: pairs with the fence in `wait`. A waiter counts itself before it tries the lock once more.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.nudge_next();
        }
    }
}

fn run_poller(connection: &Weak<WriterConnection>) {
    while let Some(connection) = connection.upgrade() {
        connection.send_handler_commands();
        let mut due = DueCallbacks::new();
        let mut inner = connection.lock();
        connection.poll_or_sleep(&mut inner, SLEEP_MAX, &mut due);
        let is_awaited = inner.is_awaited();
        connection.unlock(inner, due);
        if is_awaited {
            continue;
        }
        connection.is_poller_active.store(false, Ordering::SeqCst);
        // A new waiter may have seen the poller as active meanwhile.
        let is_awaited = connection.lock().is_awaited();
        if is_awaited || !lock(&connection.handler_commands).is_empty() {
            connection.is_poller_active.store(true, Ordering::SeqCst);
            continue;
        }
        drop(connection);
        // The timeout serves to notice the end of the connection.
        std::thread::park_timeout(SLEEP_MAX);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConnectionInner {
    /// An error means that the command can never be sent.
    fn try_send(&mut self, command: TypeKey, bytes: &[u8], completion: &Arc<Completion>) -> Result<bool, String> {
        if self.is_lost {
            return Ok(false);
        }
        let Some(index) = self.find_room() else { return Ok(false) };
        let Self { client, sessions, .. } = self;
        let session = &mut sessions[index];
        let message = MessageType { schema: command.0, encoding: Encoding::Opaque };
        let sent = client.send(session.key, message, bytes.len(), |buffer| {
            buffer.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        match sent {
            Ok(number) => {
                session.in_flight.push_back((number, Arc::clone(completion)));
                Ok(true)
            }
            Err(ClientError::WindowFull { .. } | ClientError::NotOpen | ClientError::Log(LogError::Full { .. })) => {
                Ok(false)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Opens another session if all are full and the limit allows it.
    fn find_room(&mut self) -> Option<usize> {
        let count = self.sessions.len();
        let found = (self.current..count).chain(0..self.current.min(count)).find(|index| {
            let session = &self.sessions[*index];
            self.client.can_send(session.key)
        });
        if let Some(index) = found {
            self.current = index;
            return found;
        }
        let is_opening = self.sessions.iter().any(|session| self.client.next_session_seq(session.key).is_none());
        if count < self.sessions_max && !is_opening {
            // A session that cannot be begun now is tried again by the next call.
            if let Ok(key) = self.client.begin_session(random_token(), SESSION_COMMANDS_MAX) {
                self.sessions.push(ConnectionSession { key, in_flight: VecDeque::new() });
            }
        }
        None
    }

    fn poll(&mut self, due: &mut DueCallbacks) -> usize {
        if self.is_disconnected || self.is_lost {
            return 0;
        }
        let Self { client, sessions, .. } = self;
        let mut lost = false;
        let mut last = 0;
        let polled = client.poll(ANSWERS_MAX, |incoming| match incoming {
            Incoming::Reply { session, reply, first: true } => {
                let arrived = match &reply.refusal {
                    Some(refusal) => Ok(WriterAnswer::Failed(refusal.text.to_owned())),
                    None => WriterAnswer::read(reply.payload),
                };
                if sessions.get(last).is_none_or(|known| known.key != session) {
                    last = sessions.iter().position(|known| known.key == session).unwrap_or(usize::MAX);
                }
                let in_flight = sessions.get_mut(last).map(|session| &mut session.in_flight);
                let completion = in_flight.and_then(|in_flight| {
                    if let first @ Some(_) = in_flight.pop_front_if(|(number, _)| *number == reply.session_seq) {
                        return first;
                    }
                    let at = in_flight.iter().position(|(number, _)| *number == reply.session_seq)?;
                    in_flight.remove(at)
                });
                due.extend(completion.and_then(|(_, completion)| completion.deliver(arrived)));
            }
            Incoming::SessionLost { session } => {
                lost = true;
                for known in sessions.iter_mut().filter(|known| known.key == session) {
                    let forgotten = known.in_flight.drain(..);
                    due.extend(forgotten.filter_map(|(_, completion)| completion.deliver(Err(BusError::Forgotten))));
                }
                sessions.retain(|known| known.key != session);
            }
            Incoming::Reply { .. } | Incoming::Opened { .. } | Incoming::Notice { .. } => {}
        });
        if lost {
            self.current = 0;
        }
        match polled {
            Ok(count) => count,
            Err(error) => {
                self.failed(&error, due);
                0
            }
        }
    }

    #[cold]
    fn log_wait(&mut self) {
        let in_flight: usize = self.sessions.iter().map(|session| session.in_flight.len()).sum();
        let is_opening = self.sessions.iter().any(|session| self.client.next_session_seq(session.key).is_none());
        if in_flight == 0 && !is_opening {
            return self.waits.end();
        }
        let Some(waited) = self.waits.take_due(monotonic_ns()) else { return };
        let waited_s = waited.as_secs();
        if is_opening {
            tracing::warn!(
                waited_s,
                in_flight,
                "a session for commands is not open yet: the host stands still, or no member leads"
            );
        } else {
            tracing::warn!(
                waited_s,
                in_flight,
                "no command has an outcome: an aggregate is made of its events, a handler works, the members have no majority, or the \
                 host stands still"
            );
        }
    }

    #[cold]
    fn failed(&mut self, error: &ClientError, due: &mut DueCallbacks) {
        match error {
            ClientError::Disconnected { .. } if self.client.reconnects_at_once() => self.reconnect(due),
            ClientError::Disconnected { .. } => self.is_lost = true,
            other => self.end(other, due),
        }
    }

    #[cold]
    fn reconnect(&mut self, due: &mut DueCallbacks) {
        self.is_lost = false;
        match self.connect_again() {
            Ok(()) => self.is_disconnected = false,
            Err(error) => self.end(&error, due),
        }
    }

    fn connect_again(&mut self) -> Result<(), ClientError> {
        self.client.reconnect()?;
        *lock(&self.waker) = self.client.waker()?;
        Ok(())
    }

    fn is_awaited(&self) -> bool {
        self.is_lost || self.sessions.iter().any(|session| !session.in_flight.is_empty())
    }

    fn sleep(&mut self, most: Duration) {
        // The next poll reports errors.
        let _ = self.client.wait(most);
    }

    #[cold]
    fn end(&mut self, error: &ClientError, due: &mut DueCallbacks) {
        tracing::warn!("the bus is gone: {error}");
        self.is_disconnected = true;
        for session in &mut self.sessions {
            let in_flight = session.in_flight.drain(..);
            due.extend(in_flight.filter_map(|(_, completion)| completion.deliver(Err(BusError::Disconnected))));
        }
    }
}
