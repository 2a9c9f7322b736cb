//! Sleeping until the service sends something, and noticing that it is gone.

use super::PolledClient;
use super::session::CommandSession;
use crate::ClientError;
use gapless_agent::monotonic::saturating_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_transport::TransportError;
use gapless_transport::interest::Interest;
use gapless_transport::peer_process::PeerProcess;
use rustix::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A member that owes an answer for so long is left for the next, if there are others.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);
pub(super) const RESEND_INTERVAL: Duration = Duration::from_millis(1);

/// A stalled process keeps its socket open.
#[derive(Default)]
pub(super) struct ServiceSilence {
    since: Option<Instant>,
    /// The next attempt goes to another member.
    pub is_left: bool,
}

impl ServiceSilence {
    #[inline]
    pub fn end(&mut self) {
        self.since = None;
    }

    fn left(&mut self, now: Option<Instant>) -> Option<Duration> {
        let Some(now) = now else {
            self.since = None;
            return None;
        };
        let since = *self.since.get_or_insert(now);
        Some(SILENCE_MAX.saturating_sub(now.saturating_duration_since(since)))
    }
}

#[derive(Clone, Copy)]
pub(super) struct TimeLimit {
    pub given: Duration,
    pub end: Instant,
}

impl TimeLimit {
    pub fn new(begun: Instant, given: Duration) -> Self {
        // Centuries are no limit.
        let end = begun.checked_add(given).unwrap_or(begun + Duration::from_secs(100 * 365 * 24 * 3600));
        Self { given, end }
    }

    /// Replaces the rest that the last attempt had.
    pub fn stated_in(self, error: ClientError) -> ClientError {
        match error {
            ClientError::TimedOut { peer, request, .. } => {
                ClientError::TimedOut { peer, request, timeout_ms: self.given.as_millis() as u64 }
            }
            other => other,
        }
    }
}

pub(super) struct CallWaits {
    notices: WaitNotices,
    begun: Instant,
    next: Instant,
}

const CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl CallWaits {
    pub fn since(begun: Instant) -> Self {
        let mut notices = WaitNotices::after_a_second();
        notices.begin(0);
        Self { notices, begun, next: begun + CHECK_INTERVAL }
    }

    /// Time of the next wake-up.
    pub fn until(&self, deadline: Instant) -> Instant {
        self.next.min(deadline)
    }

    #[cold]
    pub fn log_if_due(&mut self, client: &PolledClient, what: &str) {
        let now = client.now();
        if now < self.next {
            return;
        }
        self.next = now + CHECK_INTERVAL;
        if let Some(waited) = self.notices.take_due(saturating_ns(now.saturating_duration_since(self.begun))) {
            let (waited_s, peer) = (waited.as_secs(), client.peer());
            let process = client.link.socket.as_ref().and_then(PeerProcess::of);
            let why =
                process.and_then(|process| Some(format!("its process {} {}", process.id(), process.standstill()?)));
            let why = why.unwrap_or_else(|| {
                "the service stands still, its members have no majority, or its handler works".to_owned()
            });
            tracing::warn!(waited_s, "a call waits for {what} from {peer}: {why}");
        }
    }
}

/// Limits of a sleep for a client that other threads use meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SleepLimit {
    pub longest: Duration,
    /// Whether it also ends once bytes can be sent.
    pub sends: bool,
}

/// Wakes a client that sleeps in [`PolledClient::wait`], from any thread.
#[derive(Debug)]
pub struct ClientWaker(OwnedFd);

impl ClientWaker {
    /// Ends the current sleep, or the next one.
    pub fn wake(&self) {
        // Fails only if the counter is full; then the client is awake.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl PolledClient {
    /// Waker for [`PolledClient::wait`]. Has no effect after the client has moved to another member, whose sleeps end by
    /// themselves.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub fn waker(&self) -> Result<ClientWaker, ClientError> {
        let copied = rustix::io::fcntl_dupfd_cloexec(&self.link.wake_publisher, 0);
        Ok(ClientWaker(copied.map_err(TransportError::system("copying a descriptor"))?))
    }

    /// Sleeps until the service sends something, or for `timeout`.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if the service is gone, or if there are other members and this one has owed an
    /// answer for a second.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.flush();
        if self.has_deferred() {
            return Ok(());
        }
        self.sleep_for_reply(timeout)
    }

    pub(super) fn sleep_for_reply(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.flush();
        self.sleep(if self.is_resending() { timeout.min(RESEND_INTERVAL) } else { timeout })
    }

    /// Whether frames wait for room in the ring, which causes no wake-up.
    fn is_resending(&self) -> bool {
        !self.resending.is_empty() || !self.reopening.is_empty() || self.queries.are_resent()
    }

    pub(super) fn sleep(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let until = self.now().checked_add(timeout);
        loop {
            let left = until.map_or(timeout, |until| until.saturating_duration_since(self.now()));
            let silence = self.silence_left();
            self.link.reader.arm();
            if self.link.reader.next_length()?.is_none() {
                let left = silence.map_or(left, |silence| silence.min(left));
                match &mut self.environment {
                    Some(environment) => environment.sleep(left),
                    None => self.link.sleep(left)?,
                }
            }
            self.link.reader.disarm();
            if self.link.reader.next_length()?.is_some() {
                return Ok(());
            }
            self.check_connected()?;
            // A wake-up without a message also ends the sleep, unless it only checked the silence.
            if silence.is_none_or(|silence| silence >= left) {
                return Ok(());
            }
        }
    }

    /// Prepares a sleep for this client, during which other threads may use it. `None` if there is something to poll.
    /// [`PolledClient::end_sleep`] follows.
    pub(crate) fn begin_sleep(&mut self) -> Result<Option<SleepLimit>, ClientError> {
        self.flush();
        if self.has_deferred() {
            return Ok(None);
        }
        // Another thread may send a command during the sleep, whose silence is noticed after it.
        let silence = self.silence_left().or_else(|| self.has_several_addresses().then_some(SILENCE_MAX));
        self.link.reader.arm();
        if self.link.reader.next_length()?.is_some() {
            self.link.reader.disarm();
            return Ok(None);
        }
        if let Err(gone) = self.check_connected() {
            self.link.reader.disarm();
            return Err(gone);
        }
        let (longest, sends) = self.link.sleep_limit();
        let resending = self.is_resending().then_some(RESEND_INTERVAL);
        let longest = [silence, resending].into_iter().flatten().fold(longest, Duration::min);
        Ok(Some(SleepLimit { longest, sends }))
    }

    /// Ends a sleep, or any number of them.
    pub(crate) fn end_sleep(&mut self) -> Result<(), ClientError> {
        self.link.take_wake_up();
        self.link.reader.disarm();
        if self.link.reader.next_length()?.is_some() { Ok(()) } else { self.check_connected() }
    }

    /// Descriptors that end a sleep; of this connection only.
    pub(crate) fn interest(&self) -> Result<Interest, ClientError> {
        Ok(self.link.interest()?)
    }

    /// Whether a poll would take something now.
    pub(crate) fn has_input(&mut self) -> bool {
        self.has_deferred() || self.link.reader.next_length().is_ok_and(|length| length.is_some())
    }

    /// Whether bytes of commands wait for room in a connection to another machine.
    pub(crate) fn has_unsent(&self) -> bool {
        self.link.sleep_limit().1
    }

    pub(super) fn now(&self) -> Instant {
        self.environment.as_ref().map_or_else(Instant::now, |environment| environment.now())
    }

    pub(super) fn pause(&mut self, pause: Duration) {
        match &mut self.environment {
            Some(environment) => environment.sleep(pause),
            None if pause.is_zero() => std::thread::yield_now(),
            None => std::thread::sleep(pause),
        }
    }

    fn has_several_addresses(&self) -> bool {
        self.address_count() > 1
    }

    fn silence_left(&mut self) -> Option<Duration> {
        let has_others = self.has_several_addresses();
        let owes = |session: &CommandSession| session.in_flight() > 0 || (!session.is_open() && !session.is_lost());
        let awaits = has_others && (self.asks || self.queries.are_owed() || self.sessions.iter().any(owes));
        let now = awaits.then(|| self.now());
        self.silence.left(now)
    }

    pub(super) fn check_connected(&mut self) -> Result<(), ClientError> {
        let is_silent = self.silence_left().is_some_and(|left| left.is_zero());
        if !is_silent && !self.link.is_gone() || self.link.reader.next_length()?.is_some() {
            return Ok(());
        }
        self.silence.is_left = is_silent;
        Err(self.disconnected())
    }

    /// Never waits for anything from now on, not even for the reason of a failure.
    pub(crate) const fn wait_for_nothing(&mut self) {
        self.waits_for_nothing = true;
    }

    /// The end of the connection, with its reason as far as it is known.
    pub(crate) fn disconnected(&self) -> ClientError {
        let reason = if self.waits_for_nothing { self.link.known_failure() } else { self.link.failure() };
        ClientError::Disconnected { peer: self.peer(), reason }
    }

    /// Whether the reason of a failure may arrive, within 100 ms.
    pub(crate) fn awaits_failure(&self) -> bool {
        self.link.awaits_failure()
    }

    /// Whether a frame can still arrive at the service. If not, the next empty poll fails.
    pub(crate) fn is_connected(&mut self) -> bool {
        self.flush();
        let is_gone = self.link.is_gone();
        if is_gone {
            self.quiet_polls.check_next();
        }
        !is_gone
    }
}
