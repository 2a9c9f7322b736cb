//! The watcher of a [`Channel`]: one thread that takes replies while no caller does, and that reconnects. It is the
//! helper thread, or a thread in a blocking call. It sleeps without any lock but its own.

use super::channel::{Channel, wake_all};
use super::connection::Reconnection;
use super::watch::Watch;
use crate::ClientError;
use crate::polled::Attempt;
use gapless_transport::interest::{Interest, wait_for};
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::{Duration, Instant};

/// While callers take the replies themselves, the watcher looks this often, and costs the service no wake-ups.
const NAP: Duration = Duration::from_micros(50);
/// A service is looked for this long by one attempt.
const ATTEMPT_MAX: Duration = Duration::from_secs(1);
/// Heartbeats to another machine go on while no one waits for a reply.
const IDLE_MAX: Duration = Duration::from_millis(100);
const SLEEP_MAX: Duration = Duration::from_secs(10);

enum Step {
    Again,
    /// Connects without the lock.
    Connect(Attempt),
    Nap,
    /// Until a wake-up by a caller.
    Pause(Duration),
    Idle,
    /// Until the connection has something, too.
    Sleep {
        longest: Duration,
        sends: bool,
    },
}

impl Channel {
    /// Watches until `is_over`, and longer than `until` only by an attempt to connect.
    pub fn watch(&self, watch: &mut Watch, until: Option<Instant>, is_over: &dyn Fn() -> bool) {
        let is_helper = until.is_none();
        while !is_over() {
            let left = until.map_or(SLEEP_MAX, |until| until.saturating_duration_since(Instant::now()).min(SLEEP_MAX));
            let slept = match self.step(watch, left, is_helper) {
                Step::Again => continue,
                Step::Connect(attempt) => {
                    self.connect(&attempt);
                    continue;
                }
                Step::Nap => {
                    std::thread::sleep(NAP);
                    continue;
                }
                Step::Pause(pause) => wait_for(&*self.wake, pause.min(left)),
                Step::Idle => {
                    let slept = wait_for(&*self.wake, left.min(IDLE_MAX));
                    self.is_idle.store(false, Ordering::SeqCst);
                    slept
                }
                Step::Sleep { longest, sends } => match &watch.interest {
                    Some((_, interest)) => interest.wait(&*self.wake, sends, longest.min(left)),
                    None => wait_for(&*self.wake, longest.min(left).min(NAP)),
                },
            };
            if let Err(error) = slept {
                if !std::mem::replace(&mut watch.has_failed, true) {
                    tracing::error!("a client cannot wait, and polls instead: {error}");
                }
                std::thread::sleep(NAP);
            }
            // Fails if no caller has woken this thread, which is fine.
            let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
        }
        self.disarm(watch);
    }

    /// Sends and receives once, or makes one attempt to connect, and does not sleep.
    pub fn watch_once(&self, watch: &mut Watch) {
        if let Step::Connect(attempt) = self.step(watch, ATTEMPT_MAX, true) {
            self.connect(&attempt);
        }
        self.is_idle.store(false, Ordering::SeqCst);
        self.disarm(watch);
    }

    fn step(&self, watch: &mut Watch, left: Duration, is_helper: bool) -> Step {
        let mut wakers = Vec::new();
        let (mut connection, known) = self.connection.lock();
        if std::mem::take(&mut watch.is_armed) {
            connection.end_sleep(&self.outbox, &mut wakers);
        }
        let pass = connection.pass(&self.outbox, &mut wakers);
        let step = if connection.is_lost() {
            match connection.reconnect(left.min(ATTEMPT_MAX), &self.outbox, &mut wakers) {
                Reconnection::Connected | Reconnection::Ended => Step::Again,
                Reconnection::Attempt(attempt) => Step::Connect(attempt),
                Reconnection::Pause(pause) => Step::Pause(pause),
            }
        } else if connection.has_ended() {
            // The descriptors of its link are always ready.
            watch.interest = None;
            Step::Pause(SLEEP_MAX)
        } else if pass.received > 0 {
            Step::Again
        } else if connection.take_passes_of_callers() > 0 {
            Step::Nap
        } else if is_helper && self.sleeps_idly() {
            Step::Idle
        } else {
            match connection.begin_sleep(&self.outbox, &mut wakers) {
                None => Step::Again,
                Some(limit) => {
                    watch.is_armed = true;
                    let known = watch.interest.as_ref().map(|(generation, _)| *generation);
                    if let Some((generation, interest)) = connection.interest(known) {
                        watch.interest = kept(interest, &mut watch.has_failed).map(|interest| (generation, interest));
                    }
                    Step::Sleep { longest: limit.longest, sends: limit.sends }
                }
            }
        };
        drop(connection);
        wake_all(wakers);
        // A lost connection has no use for the news.
        if self.connection.has_news(known) && !matches!(step, Step::Connect(_)) {
            if matches!(step, Step::Idle) {
                self.is_idle.store(false, Ordering::SeqCst);
            }
            return Step::Again;
        }
        step
    }

    fn connect(&self, attempt: &Attempt) {
        let connected = attempt.connect();
        let mut wakers = Vec::new();
        let (mut connection, _) = self.connection.lock();
        connection.end_attempt(connected, &self.outbox, &mut wakers);
        drop(connection);
        wake_all(wakers);
    }

    fn disarm(&self, watch: &mut Watch) {
        if std::mem::take(&mut watch.is_armed) {
            let mut wakers: Vec<Waker> = Vec::new();
            let (mut connection, known) = self.connection.lock();
            connection.end_sleep(&self.outbox, &mut wakers);
            drop(connection);
            wake_all(wakers);
            if self.connection.has_news(known) {
                self.turn();
            }
        }
    }
}

/// Without copies of the descriptors the watcher polls.
fn kept(interest: Result<Interest, ClientError>, has_failed: &mut bool) -> Option<Interest> {
    interest
        .inspect_err(|error| {
            if !std::mem::replace(has_failed, true) {
                tracing::error!("a client polls instead of sleeping: {error}");
            }
        })
        .ok()
}
