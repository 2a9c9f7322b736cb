//! `PolledBus`: a command bus without threads, for its one owner.

use crate::bus::{
    AcceptedCommand, AnswerResult, Attempts, BusOptions, CommandBus, CommandQueue, Completion, QueuedCommand,
    RetryPolicy, SendPolicy, WriterAnswer, command_outcome, read,
};
use crate::draft::Draft;
use crate::error::{BusError, CommandError};
use crate::event_filter::EventFilter;
use crate::events::EventReader;
use crate::found_events::FoundEvents;
use crate::host::{
    AggregateOptions, BusParts, BusReader, CommandCounters, DeletionError, DeletionReport, HostError, bus_parts,
    refuse_retention,
};
use crate::identity::{Position, TypeKey};
use crate::interceptor::DispatchInterceptor;
use crate::model::CommandModel;
use gapless_engine::{CommandOutcome, EmbeddedHost, EngineError, ServiceHost, ServiceHostOptions};
use gapless_message::Message;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

const SLEEP_MAX: Duration = Duration::from_millis(100);

/// A command bus and its stream without threads for agents: its owner sends by `&mut`, each command decided when the
/// call returns, and polls. Otherwise like a [`CommandHost`](crate::CommandHost).
///
/// Outcomes arrive once they are as durable as the tier promises: in memory with the next turn, else once the journal
/// is written or synced. Waiting calls include turns; an owner that never waits has to call [`PolledBus::turn`].
pub struct PolledBus {
    host: EmbeddedHost,
    bus_reader: BusReader,
    queue: Arc<CommandQueue>,
    bytes: Vec<u8>,
    slots: Vec<OutcomeSlot>,
    next: u64,
    /// Outcomes for others, each held back until the stream is released up to its sequence.
    completing: VecDeque<(u64, AnswerResult, OutcomeReceiver)>,
    polled_by: Option<ThreadId>,
    is_disconnected: bool,
    policy: Option<Arc<SendPolicy>>,
}

enum OutcomeReceiver {
    Completion(Arc<Completion>),
    Function(Box<dyn FnOnce(AnswerResult) + Send>),
}

/// Final once the stream is released up to `sequence`.
#[derive(Default)]
struct OutcomeSlot {
    number: u64,
    sequence: u64,
    outcome: Option<AnswerResult>,
}

/// A sent command; its outcome is kept until [`BusOptions::in_flight_max`] further ones were sent.
#[must_use = "the outcome is taken or waited for"]
#[derive(Debug)]
pub struct Ticket<Reply, Refusal> {
    number: u64,
    expected: u64,
    types: PhantomData<fn() -> (Reply, Refusal)>,
}

impl PolledBus {
    /// Recovers `stream.directory`, and starts; ignores options about threads and the socket. Helper threads inherit
    /// the caller's CPU affinity, so pin it afterwards.
    ///
    /// # Errors
    /// An invalid model, senseless options, a directory in use, damage, too little memory.
    pub fn start(
        model: CommandModel,
        options: AggregateOptions,
        stream: ServiceHostOptions,
        bus: &BusOptions,
    ) -> Result<Self, HostError> {
        refuse_retention(&stream)?;
        let BusParts { released, make_writer, bus_reader } = bus_parts(model, options)?;
        let host = EmbeddedHost::start_transactions(released, make_writer, stream).map_err(HostError::of_start)?;
        bus_reader.resume_deletion(host.service());
        let in_flight_max = bus.in_flight_max.clamp(1, 1 << 16).next_power_of_two();
        let queue = CommandQueue::new(in_flight_max, host.waker().clone());
        let slots = std::iter::repeat_with(OutcomeSlot::default).take(in_flight_max).collect();
        let (bytes, completing) = (Vec::new(), VecDeque::new());
        let (polled_by, policy) = (None, None);
        Ok(Self {
            host,
            bus_reader,
            queue,
            bytes,
            slots,
            next: 1,
            completing,
            polled_by,
            is_disconnected: false,
            policy,
        })
    }

    /// Adds an interceptor of the owner's commands, not those of handles; a later turn reports outcomes to it.
    #[must_use]
    pub fn with_interceptor(mut self, interceptor: impl DispatchInterceptor) -> Self {
        Arc::make_mut(self.policy.get_or_insert_default()).add(Arc::new(interceptor));
        self
    }

    /// Sends a command, decided when this returns. Waits for the disk while the outcome of the command sent
    /// [`BusOptions::in_flight_max`] before is missing.
    #[inline]
    pub fn send<Command: Message, Reply: Message, Refusal: Message>(
        &mut self,
        draft: Draft<'_, Command, Reply, Refusal>,
    ) -> Ticket<Reply, Refusal> {
        let number = self.next;
        self.next += 1;
        let index = number as usize & (self.slots.len() - 1);
        while self.slots[index].sequence > self.host.released_sequence() && !self.is_disconnected {
            self.turn_or_sleep(SLEEP_MAX);
        }
        if self.policy.is_some() {
            let (sequence, outcome) = self.decide_intercepted(&draft);
            self.slots[index] = OutcomeSlot { number, sequence, outcome: Some(outcome) };
        } else {
            self.slots[index].number = number;
            self.decide_into_slot(index, &draft);
        }
        Ticket { number, expected: draft.expected_version(), types: PhantomData }
    }

    /// Sends a command; a later turn calls the function with its outcome, which can send only through a handle.
    pub fn send_then<Command: Message, Reply: Message, Refusal: Message>(
        &mut self,
        draft: Draft<'_, Command, Reply, Refusal>,
        function: impl FnOnce(Result<AcceptedCommand<Reply>, CommandError<Refusal>>) + Send + 'static,
    ) {
        let (sequence, outcome) = self.decide_draft(&draft);
        let expected = draft.expected_version();
        let function = Box::new(move |outcome| function(read(outcome, expected)));
        self.completing.push_back((sequence, outcome, OutcomeReceiver::Function(function)));
    }

    /// Sends a command, and waits for its outcome.
    ///
    /// # Errors
    /// Any outcome but an accepted one.
    pub fn call<Command: Message, Reply: Message, Refusal: Message>(
        &mut self,
        draft: Draft<'_, Command, Reply, Refusal>,
    ) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
        let ticket = self.send(draft);
        self.wait(ticket)
    }

    /// Sends a command, waits, and retries as the policy says; the bus goes on meanwhile. A command without an
    /// identifier gets one, so that a retry is the same command.
    ///
    /// # Errors
    /// The last outcome, if not accepted.
    pub fn call_with_retry<Command: Message, Reply: Message, Refusal: Message>(
        &mut self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        retry: RetryPolicy,
    ) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
        let (_, _, identifier, _, headers) = draft.parts();
        let (mut attempts, headers) = (Attempts::new(retry, identifier), headers.cloned().unwrap_or_default());
        loop {
            let ticket = self.send(draft.with_identity(attempts.identifier(), &headers));
            let outcome = loop {
                match self.take_outcome(ticket.number) {
                    Some(outcome) => break outcome,
                    None => _ = self.turn_or_sleep(SLEEP_MAX),
                }
            };
            let Some(delay) = attempts.next_delay(&command_outcome(&outcome)) else {
                return read(outcome, ticket.expected);
            };
            let until = Instant::now() + delay;
            while let left = until.saturating_duration_since(Instant::now())
                && !left.is_zero()
            {
                if self.turn_or_sleep(left) == 0 && self.is_disconnected {
                    std::thread::sleep(left);
                }
            }
        }
    }

    /// Takes an outcome, once, if it is there.
    #[inline]
    pub fn take<Reply: Message, Refusal: Message>(
        &mut self,
        ticket: &Ticket<Reply, Refusal>,
    ) -> Option<Result<AcceptedCommand<Reply>, CommandError<Refusal>>> {
        self.take_outcome(ticket.number).map(|outcome| read(outcome, ticket.expected))
    }

    #[inline]
    fn take_outcome(&mut self, number: u64) -> Option<AnswerResult> {
        let index = number as usize & (self.slots.len() - 1);
        let slot = &mut self.slots[index];
        if slot.number != number {
            return Some(Err(BusError::NotKept));
        }
        if slot.sequence > self.host.released_sequence() {
            return self.is_disconnected.then_some(Err(BusError::Disconnected));
        }
        Some(slot.outcome.take().unwrap_or(Err(BusError::NotKept)))
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// Any outcome but an accepted one.
    #[inline]
    pub fn wait<Reply: Message, Refusal: Message>(
        &mut self,
        ticket: Ticket<Reply, Refusal>,
    ) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
        loop {
            if let Some(outcome) = self.take(&ticket) {
                return outcome;
            }
            self.turn_or_sleep(SLEEP_MAX);
        }
    }

    /// Does pending work (handles' commands, journal, releases, outcomes); returns its amount.
    pub fn turn(&mut self) -> usize {
        self.turn_by(EmbeddedHost::turn)
    }

    /// [`PolledBus::turn`]; without work, sleeps for `most` at most.
    pub fn turn_or_sleep(&mut self, most: Duration) -> usize {
        let queue = Arc::clone(&self.queue);
        self.turn_by(|host| host.turn_or_sleep_unless(most, || queue.length() > 0))
    }

    /// A handle for handlers and other threads. The owner's turns run its commands, so the owner cannot wait on it.
    #[must_use]
    pub fn handle(&self) -> CommandBus {
        CommandBus::queued(Arc::clone(&self.queue))
    }

    /// All events from a position on.
    #[must_use]
    pub fn events(&self, from: Position) -> EventReader {
        let service = self.host.service();
        self.bus_reader.events(service.reader(from.sequence), from, service.progress())
    }

    /// Like [`CommandHost::found_events`](crate::CommandHost::found_events).
    #[must_use]
    pub fn found_events(&self, filter: EventFilter, from: Position) -> FoundEvents {
        let service = self.host.service();
        self.bus_reader.found_events(filter, from, service.reader(1), service.progress())
    }

    /// Like [`CommandHost::delete_events_before`](crate::CommandHost::delete_events_before); blocks the owner
    /// meanwhile.
    ///
    /// # Errors
    /// The same; commands in flight are not lost.
    pub fn delete_events_before(&mut self, sequence: u64) -> Result<DeletionReport, DeletionError> {
        let Self { host, bus_reader, .. } = self;
        let reader = EventReader::over(host.service().reader(1), Position::default());
        let report = bus_reader.write_base(sequence, reader, || host.snapshot())?;
        host.service().delete_journal_before(report.before);
        Ok(report)
    }

    #[must_use]
    pub fn counters(&self) -> CommandCounters {
        self.bus_reader.counters()
    }

    #[must_use]
    pub const fn service(&self) -> &ServiceHost {
        self.host.service()
    }

    /// Stops cleanly, after sent commands; returns the last sequence.
    ///
    /// # Errors
    /// The error that made it stop by itself.
    pub fn stop(mut self) -> Result<u64, HostError> {
        while !self.is_disconnected && (self.queue.length() > 0 || !self.completing.is_empty()) {
            self.turn_or_sleep(SLEEP_MAX);
        }
        self.end();
        Ok(self.host.stop()?)
    }

    fn turn_by(&mut self, turn: impl FnOnce(&mut EmbeddedHost) -> Result<usize, EngineError>) -> usize {
        let this = std::thread::current().id();
        if self.polled_by != Some(this) {
            self.polled_by = Some(this);
            self.queue.polled_by(this);
        }
        let run = self.run_queued();
        let work = match turn(&mut self.host) {
            Ok(work) => work,
            Err(error) => {
                self.fail(&error);
                0
            }
        };
        run + work + self.complete()
    }

    #[inline]
    fn decide_draft<Command: Message, Reply, Refusal>(
        &mut self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> (u64, AnswerResult) {
        if self.policy.is_some() { self.decide_intercepted(draft) } else { self.decide_encoded(draft) }
    }

    #[cold]
    fn decide_intercepted<Command: Message, Reply, Refusal>(
        &mut self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> (u64, AnswerResult) {
        let policy = self.policy.clone().unwrap_or_default();
        let (dispatched, interception) = policy.before(draft);
        let (sequence, outcome) = match interception {
            Ok(()) => self.decide_encoded(&draft.with_identity(dispatched.identifier, &dispatched.headers)),
            Err(outcome) => (0, outcome),
        };
        let reported = outcome.clone();
        let report = move |outcome: AnswerResult| policy.after(&dispatched, &outcome);
        self.completing.push_back((sequence, reported, OutcomeReceiver::Function(Box::new(report))));
        (sequence, outcome)
    }

    #[inline]
    fn decide_encoded<Command: Message, Reply, Refusal>(
        &mut self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> (u64, AnswerResult) {
        self.with_encoded(draft, |bus, written| match written {
            Ok(bytes) => bus.decide(draft.command_key(), bytes),
            Err(reason) => (0, Err(BusError::NotSent(reason))),
        })
    }

    #[inline]
    fn decide_into_slot<Command: Message, Reply, Refusal>(
        &mut self,
        index: usize,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) {
        self.with_encoded(draft, |bus, written| match written {
            Ok(bytes) => bus.decide_bytes_into_slot(index, draft.command_key(), bytes),
            Err(reason) => {
                let slot = &mut bus.slots[index];
                (slot.sequence, slot.outcome) = (0, Some(Err(BusError::NotSent(reason))));
            }
        });
    }

    #[inline]
    fn with_encoded<Command: Message, Reply, Refusal, T>(
        &mut self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        decide: impl FnOnce(&mut Self, Result<&[u8], String>) -> T,
    ) -> T {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let written = draft.write(&mut bytes);
        let decided = decide(self, written.map(|()| &bytes[..]));
        self.bytes = bytes;
        if self.queue.length() > 0 {
            self.run_queued();
        }
        decided
    }

    fn decide_bytes_into_slot(&mut self, index: usize, command: TypeKey, bytes: &[u8]) {
        let Self { host, slots, .. } = self;
        let slot = &mut slots[index];
        // Written in place: a wide load of a value just stored in parts would stall until the stores have reached the
        // cache.
        let (sequence, outcome) = match host.command(command.0, bytes) {
            Ok(Some(CommandOutcome { last_sequence, reply })) => {
                slot.sequence = last_sequence;
                if let Some(accepted) = reply.ok().and_then(WriterAnswer::read_accepted) {
                    slot.outcome = Some(Ok(accepted));
                } else {
                    slot.outcome = Some(outcome_of(reply));
                }
                return;
            }
            Ok(None) => self.decide(command, bytes),
            Err(error) => (0, Err(self.fail_undecided(error))),
        };
        let slot = &mut self.slots[index];
        (slot.sequence, slot.outcome) = (sequence, Some(outcome));
    }

    /// Returns the outcome, and the sequence up to which the stream has to be released for it.
    fn decide(&mut self, command: TypeKey, bytes: &[u8]) -> (u64, AnswerResult) {
        loop {
            let error = match self.host.command(command.0, bytes) {
                Ok(Some(CommandOutcome { last_sequence, reply })) => return (last_sequence, outcome_of(reply)),
                Ok(None) => match self.host.turn_or_sleep(SLEEP_MAX) {
                    Ok(_) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            return (0, Err(self.fail_undecided(error)));
        }
    }

    #[cold]
    fn fail_undecided(&mut self, error: EngineError) -> BusError {
        if let EngineError::Option { reason, .. } = error {
            return BusError::NotSent(reason);
        }
        self.fail(&error);
        BusError::Disconnected
    }

    /// Commands that handlers send meanwhile wait for the next turn.
    fn run_queued(&mut self) -> usize {
        let waiting = self.queue.length();
        for _ in 0..waiting {
            let Some(QueuedCommand { command, bytes, completion }) = self.queue.take() else { break };
            let (sequence, outcome) = self.decide(command, &bytes);
            self.completing.push_back((sequence, outcome, OutcomeReceiver::Completion(completion)));
        }
        waiting
    }

    fn complete(&mut self) -> usize {
        let released = self.host.released_sequence();
        let mut count = 0;
        while let Some((_, outcome, receiver)) = self.completing.pop_front_if(|(sequence, ..)| *sequence <= released) {
            receiver.deliver(outcome);
            count += 1;
        }
        count
    }

    #[cold]
    fn fail(&mut self, error: &EngineError) {
        if !self.is_disconnected {
            tracing::warn!("the bus is gone: {error}");
            self.end();
        }
    }

    /// Commands not known to be released get no outcome.
    fn end(&mut self) {
        self.is_disconnected = true;
        self.complete();
        for queued in self.queue.end() {
            OutcomeReceiver::Completion(queued.completion).deliver(Err(BusError::Disconnected));
        }
        for (_, _, receiver) in self.completing.drain(..) {
            receiver.deliver(Err(BusError::Disconnected));
        }
    }
}

#[inline]
fn outcome_of(reply: Result<&[u8], &str>) -> AnswerResult {
    match reply {
        Ok(reply) => WriterAnswer::read(reply),
        Err(text) => Ok(WriterAnswer::Failed(text.to_owned())),
    }
}

impl Drop for PolledBus {
    fn drop(&mut self) {
        self.end();
    }
}

impl OutcomeReceiver {
    fn deliver(self, outcome: AnswerResult) {
        match self {
            Self::Completion(completion) => completion.deliver_now(outcome),
            Self::Function(function) => function(outcome),
        }
    }
}
