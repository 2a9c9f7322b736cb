//! [`EmbeddedHost`]: a stream and its service without threads for their agents. Its one owner polls it, and hands commands in by calls; what
//! must sleep, the sync of the disk and the writing of snapshots, has its helper threads.

use crate::service_host::{Held, ServiceHost};
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

/// A stream and its service, which their one owner polls. Nothing happens but in its calls.
pub struct EmbeddedHost {
    /// Before the host: it is dropped first.
    ingress: Ingress,
    host: ServiceHost,
    session: Option<DirectSession>,
    clock: Clock,
    window: Window,
    waker: Waker,
    /// Commands since the last turn.
    unpublished: usize,
    /// After so many of them there is a turn.
    batch: usize,
    length_max: usize,
    failure: Option<AgentFailure>,
}

/// Commands between two turns, where the options say nothing.
const BATCH: usize = 64;

/// What the writer has made of a command. It counts when the stream is released up to `last_sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided<'a> {
    /// Of its transaction's last frame.
    pub last_sequence: u64,
    /// The reply; or the text of a refusal by the engine.
    pub reply: Result<&'a [u8], &'a str>,
}

impl EmbeddedHost {
    /// As [`ServiceHost::start_transactions`], polled by its owner. Of the options, those of threads and of a socket mean nothing here.
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
        let Held { ingress, clock, window, waker } = held;
        let (session, unpublished, failure) = (None, 0, None);
        Ok(Self { ingress, host, session, clock, window, waker, unpublished, batch, length_max, failure })
    }

    /// Has a command run and appends its transaction. `schema` is the command's. `None`: it cannot be run yet; it may after a turn.
    ///
    /// # Errors
    /// A command that is too long; what made the host stop.
    #[inline]
    pub fn command(&mut self, schema: u32, payload: &[u8]) -> Result<Option<Decided<'_>>, EngineError> {
        if self.unpublished >= self.batch {
            self.turn()?;
        }
        if self.unpublished == 0 {
            self.check(payload.len())?;
            self.ingress.turn_to(self.clock.now());
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
                    return Ok(Some(Decided { last_sequence, reply: Ok(reply) }));
                }
                let corrupt = |reason| EngineError::Corrupt { sequence: last_sequence, reason };
                let reply = transaction_layout::read_reply(transaction).map_err(corrupt)?;
                Ok(Some(Decided { last_sequence, reply }))
            }
            DirectCommand::NotYet => Ok(None),
            DirectCommand::SessionUnknown => {
                // The next one opens another.
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

    /// Polls every agent once: what was appended is journaled, released and applied. Returns the work done.
    ///
    /// # Errors
    /// What made the host stop; the same again for each further call.
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

    /// As [`EmbeddedHost::turn`]; sleeps where there was nothing to do, until there is or for `most`.
    ///
    /// # Errors
    /// As for [`EmbeddedHost::turn`].
    pub fn turn_or_sleep(&mut self, most: Duration) -> Result<usize, EngineError> {
        self.turn_or_sleep_unless(most, || false)
    }

    /// As [`EmbeddedHost::turn_or_sleep`], for an owner that has more to do than this: it does not sleep where `has_more` says so. Who gives it
    /// something to do makes that true before it calls [`EmbeddedHost::waker`].
    ///
    /// # Errors
    /// As for [`EmbeddedHost::turn`].
    pub fn turn_or_sleep_unless(&mut self, most: Duration, has_more: impl Fn() -> bool) -> Result<usize, EngineError> {
        let work = self.turn()?;
        if work > 0 {
            return Ok(work);
        }
        self.waker.announce();
        // Once more: what came before the announcement woke nobody.
        let turned = self.turn();
        if matches!(turned, Ok(0)) && !has_more() {
            self.waker.wait(gapless_agent::monotonic::saturating_ns(most));
        }
        self.waker.withdraw();
        turned
    }

    /// As [`ServiceHost::snapshot`]; everything goes on meanwhile.
    ///
    /// # Errors
    /// As for [`ServiceHost::snapshot`].
    pub fn snapshot(&mut self) -> Result<u64, EngineError> {
        let number = self.host.snapshot_requests()?.begin();
        loop {
            if let Some(taken) = self.host.snapshot_requests()?.taken(number) {
                return taken;
            }
            self.turn_or_sleep(SNAPSHOT_LOOK)?;
        }
    }

    /// Wakes the owner where it sleeps.
    #[must_use]
    pub const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// The last sequence that has reached the tier.
    #[inline]
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// The host below, of which nothing is polled but by [`EmbeddedHost::turn`].
    #[must_use]
    pub const fn service(&self) -> &ServiceHost {
        &self.host
    }

    /// Stops cleanly: what was taken is released and applied, and a snapshot written if that was asked for. Returns the last sequence.
    /// Nothing can be done with it any more.
    ///
    /// # Errors
    /// What made the host stop by itself, before or now.
    pub fn stop(&mut self) -> Result<u64, EngineError> {
        self.turn()?;
        let shared = self.ingress.shared();
        // Release: pairs with the Acquire in Ingress::poll.
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

/// What a stop waits for wakes its owner; but for the files of a snapshot.
const CLOSING_SLEEP_NS_MAX: u64 = 1_000_000;
/// How often it is looked whether a snapshot is written, which wakes nobody.
const SNAPSHOT_LOOK: Duration = Duration::from_millis(1);
