//! [`EmbeddedHost`]: a stream and its service, polled by their owner. Only disk syncs and snapshot writes run on helper
//! threads.

use crate::service_host::{EmbeddedParts, ServiceHost};
use crate::transaction_service::{ReleasedTransactions, TransactionService, WriterParts};
use crate::{EngineError, Fold, ServiceHostOptions, Threads, transaction_layout};
use gapless_agent::{Agent, AgentFailure, Clock, PlanKind, Waker};
use gapless_log::Window;
use gapless_stream::Ingress;
use gapless_stream::ingress::direct::{DirectCommand, DirectSession};
use gapless_stream::transactions::Transactions;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A stream and its service, polled by their owner. Makes progress only inside its method calls.
pub struct EmbeddedHost {
    /// Declared before `host`, so that it is dropped first.
    ingress: Ingress,
    host: ServiceHost,
    session: Option<DirectSession>,
    clock: Clock,
    window: Window,
    waker: Waker,
    unpublished: usize,
    batch: usize,
    length_max: usize,
    failure: Option<AgentFailure>,
}

const BATCH: usize = 64;

/// Outcome of a command, final once the stream is released up to `last_sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandOutcome<'a> {
    pub last_sequence: u64,
    /// `Err`: text of a refusal by the engine.
    pub reply: Result<&'a [u8], &'a str>,
}

impl EmbeddedHost {
    /// Starts like [`ServiceHost::start_transactions`], but polled by the owner. Options for threads and sockets are
    /// ignored.
    ///
    /// # Errors
    /// As for [`ServiceHost::start_transactions`].
    pub fn start_transactions(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        options: ServiceHostOptions,
    ) -> Result<Self, EngineError> {
        options.check_of_state()?;
        if options.manual_time {
            let reason = "the time of a host that its owner polls is that of its clock".to_owned();
            return Err(EngineError::Option { option: "manual_time", reason });
        }
        let threads = Threads { plan: PlanKind::Min, detach_persister: false, detach_sender: false, ..options.threads };
        let frames_per_poll_max = Some(options.frames_per_poll_max.unwrap_or(BATCH));
        let options = ServiceHostOptions { threads, socket_path: None, frames_per_poll_max, ..options };
        let (batch, length_max) = (options.frames_per_poll(), options.stream_options().message_length_max);
        let service = TransactionService::new(released, make_writer);
        let (host, held) = ServiceHost::start_embedded(Fold::applying_transactions(Box::new(service)), options)?;
        let EmbeddedParts { ingress, clock, window, waker } = held;
        let (session, unpublished, failure) = (None, 0, None);
        Ok(Self { ingress, host, session, clock, window, waker, unpublished, batch, length_max, failure })
    }

    /// Runs a command of `schema` and appends its transaction. `None`: it cannot run yet; try again after a turn.
    ///
    /// # Errors
    /// The command is too long, or the host has stopped.
    #[inline]
    pub fn command(&mut self, schema: u32, payload: &[u8]) -> Result<Option<CommandOutcome<'_>>, EngineError> {
        if self.unpublished >= self.batch {
            self.turn()?;
        }
        if self.unpublished == 0 {
            self.check(payload.len())?;
            self.ingress.set_now(self.clock.now());
        } else if payload.len() > self.length_max {
            self.check(payload.len())?;
        }
        let Self { ingress, session, unpublished, .. } = self;
        let opened = match session {
            Some(opened) => opened,
            None => match ingress.open_direct()? {
                Some(opened) => {
                    *unpublished += 1;
                    session.insert(opened)
                }
                None => return Ok(None),
            },
        };
        match ingress.direct_command(opened, schema, payload)? {
            DirectCommand::Appended { last_sequence, transaction } => {
                *unpublished += 1;
                if let Some(reply) = transaction_layout::read_done_reply(transaction) {
                    return Ok(Some(CommandOutcome { last_sequence, reply: Ok(reply) }));
                }
                let corrupt = |reason| EngineError::Corrupt { sequence: last_sequence, reason };
                let reply = transaction_layout::read_reply(transaction).map_err(corrupt)?;
                Ok(Some(CommandOutcome { last_sequence, reply }))
            }
            DirectCommand::NotYet => Ok(None),
            DirectCommand::SessionUnknown => {
                *session = None;
                Ok(None)
            }
        }
    }

    #[cold]
    fn check(&self, length: usize) -> Result<(), EngineError> {
        match &self.failure {
            Some(failure) => return Err(EngineError::Stopped(failure.clone())),
            None if length <= self.length_max => {}
            None => {
                let reason = format!("a command of {length} bytes; the longest has {}", self.length_max);
                return Err(EngineError::Option { option: "command", reason });
            }
        }
        Ok(())
    }

    /// Polls every agent once, to journal, release and apply appended frames. Returns the amount of work done.
    ///
    /// # Errors
    /// The host's failure; later calls return it again.
    pub fn turn(&mut self) -> Result<usize, EngineError> {
        self.check(0)?;
        let now = self.clock.now();
        let appended = std::mem::take(&mut self.unpublished);
        if appended > 0 {
            self.ingress.publish();
        }
        let polled = self.ingress.poll(now).map_err(|error| AgentFailure::new(self.ingress.name(), error));
        let turned = polled.and_then(|work| Ok(work + self.host.turn(now)?));
        turned.map(|work| work + appended).map_err(|failure| {
            self.failure = Some(failure.clone());
            EngineError::Stopped(failure)
        })
    }

    /// Takes a turn; without work, sleeps until there is some, for at most `most`.
    ///
    /// # Errors
    /// As for [`EmbeddedHost::turn`].
    pub fn turn_or_sleep(&mut self, most: Duration) -> Result<usize, EngineError> {
        self.turn_or_sleep_unless(most, || false)
    }

    /// Like [`EmbeddedHost::turn_or_sleep`], but does not sleep if `has_more` returns true. A thread that adds such
    /// work must make `has_more` true before calling [`EmbeddedHost::waker`].
    ///
    /// # Errors
    /// As for [`EmbeddedHost::turn`].
    pub fn turn_or_sleep_unless(&mut self, most: Duration, has_more: impl Fn() -> bool) -> Result<usize, EngineError> {
        let work = self.turn()?;
        if work > 0 {
            return Ok(work);
        }
        self.waker.announce();
        // Work that arrived before the announcement has woken no thread.
        let turned = self.turn();
        if matches!(turned, Ok(0)) && !has_more() {
            self.waker.wait(gapless_agent::monotonic::saturating_ns(most));
        }
        self.waker.withdraw();
        turned
    }

    /// Takes a snapshot like [`ServiceHost::snapshot`]; commands continue meanwhile.
    ///
    /// # Errors
    /// As for [`ServiceHost::snapshot`].
    pub fn snapshot(&mut self) -> Result<u64, EngineError> {
        let number = self.host.snapshot_requests()?.begin();
        loop {
            if let Some(taken) = self.host.snapshot_requests()?.taken(number) {
                return taken;
            }
            self.turn_or_sleep(SNAPSHOT_CHECK_INTERVAL)?;
        }
    }

    #[must_use]
    pub const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns the last sequence that has reached the stream's tier.
    #[inline]
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// Returns the underlying host. Only [`EmbeddedHost::turn`] polls it.
    #[must_use]
    pub const fn service(&self) -> &ServiceHost {
        &self.host
    }

    /// Releases and applies all accepted commands, and writes a final snapshot if configured. Returns the last
    /// sequence. The host cannot be used afterwards.
    ///
    /// # Errors
    /// The host failed, before or during the stop.
    pub fn stop(&mut self) -> Result<u64, EngineError> {
        self.turn()?;
        let shared = self.ingress.shared();
        // Pairs with the Acquire in Ingress::poll.
        shared.stopped.store(true, Ordering::Release);
        self.turn()?;
        while !self.host.close_step(self.clock.now())? {
            self.waker.announce();
            let is_closed = self.host.close_step(self.clock.now())?;
            if !is_closed {
                self.waker.wait(CLOSING_SLEEP_NS_MAX);
            }
            self.waker.withdraw();
            if is_closed {
                break;
            }
        }
        self.failure = Some(AgentFailure::new("owner", "it was stopped".into()));
        Ok(self.host.handled_sequence())
    }
}

/// Written snapshot files do not wake the owner.
const CLOSING_SLEEP_NS_MAX: u64 = 1_000_000;
/// A completed snapshot wakes no thread.
const SNAPSHOT_CHECK_INTERVAL: Duration = Duration::from_millis(1);
