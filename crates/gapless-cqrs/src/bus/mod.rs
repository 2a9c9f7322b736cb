//! [`CommandBus`]: sends commands and returns their outcomes.

mod completion;
mod connection;
mod queue;
mod send_policy;
mod timer;

use crate::draft::Draft;
use crate::envelope::{AnswerKind, CommandAnswer, CommandEnvelope};
use crate::error::{BusError, CommandError};
use crate::handling;
use crate::identity::Position;
use crate::interceptor::DispatchInterceptor;
use crate::origin::CommandOrigin;
use connection::WriterConnection;
use gapless_client::{ClientError, ClientOptions, PolledClient};
use gapless_message::Message;
use gapless_message::headers::Headers;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub(crate) use completion::{AnswerResult, Completion, WriterAnswer};
pub use connection::BusOptions;
pub(crate) use queue::{CommandQueue, QueuedCommand};
pub use send_policy::RetryPolicy;
pub(crate) use send_policy::{Attempts, SendPolicy, command_outcome};

const WITHIN_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// A handle of the bus; clones share it, for any thread.
#[derive(Clone)]
pub struct CommandBus {
    transport: BusTransport,
    policy: Option<Arc<SendPolicy>>,
}

#[derive(Clone)]
enum BusTransport {
    Connection(Arc<WriterConnection>),
    Queue(Arc<CommandQueue>),
}

impl std::fmt::Debug for CommandBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandBus").finish_non_exhaustive()
    }
}

/// Outcome of an accepted command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedCommand<Reply = ()> {
    /// Position of the first event; without events, the position that it would have.
    pub position: Position,
    /// Number of events.
    pub events: u32,
    /// Version of the aggregate afterwards; 0 for a handler's command.
    pub version: u64,
    pub reply: Reply,
}

impl CommandBus {
    /// Connects to a bus of another process, or to the members of a cluster, whose leader it follows: the address is one
    /// of [`Client::connect`](gapless_client::Client::connect).
    ///
    /// # Errors
    /// No address, no service accepts, or too little memory.
    pub fn connect(address: &str, options: &BusOptions) -> Result<Self, ClientError> {
        Self::over(PolledClient::connect_to(address, ClientOptions::default())?, options)
    }

    /// A handle over a client of the bus's host.
    ///
    /// # Errors
    /// There is too little memory.
    pub fn over(client: PolledClient, options: &BusOptions) -> Result<Self, ClientError> {
        Ok(Self { transport: BusTransport::Connection(WriterConnection::new(client, options)?), policy: None })
    }

    pub(crate) const fn queued(queue: Arc<CommandQueue>) -> Self {
        Self { transport: BusTransport::Queue(queue), policy: None }
    }

    /// Adds an interceptor for this handle and its clones.
    #[must_use]
    pub fn with_interceptor(mut self, interceptor: impl DispatchInterceptor) -> Self {
        Arc::make_mut(self.policy.get_or_insert_default()).add(Arc::new(interceptor));
        self
    }

    /// Sets the retry policy of this handle and its clones. A command without an identifier gets one, so that a retry
    /// is the same command.
    #[must_use]
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        Arc::make_mut(self.policy.get_or_insert_default()).set_retry(retry);
        self
    }

    /// Open sessions of the stream, one for each 64 commands in flight; 0 for a bus that its owner polls.
    #[must_use]
    pub fn sessions(&self) -> usize {
        match &self.transport {
            BusTransport::Connection(connection) => connection.sessions(),
            BusTransport::Queue(_) => 0,
        }
    }

    /// Sends a command if there is room for it now; never sleeps. `None`: not sent, because the limit of commands in
    /// flight is reached, or a session or connection is being made. In a handler, as [`CommandBus::send`].
    pub fn try_send<Command: Message, Reply: Message, Refusal: Message>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> Option<PendingOutcome<Reply, Refusal>> {
        let completion = match (&self.policy, &self.transport) {
            // A handler never waits for room.
            _ if handling::is_handling() => self.send_now(draft),
            (None, BusTransport::Connection(connection)) => {
                let completion = Arc::new(Completion::default());
                connection.try_send(draft.command_key(), |into| draft.write(into), &completion).then_some(completion)?
            }
            (_, transport) if !transport.has_room() => return None,
            (Some(policy), _) => self.send_by(policy, draft, BusTransport::send_soon),
            (None, transport) => {
                let completion = Arc::new(Completion::default());
                transport.send_encoded(draft, &completion, BusTransport::send_soon);
                completion
            }
        };
        Some(self.pending(draft, completion))
    }

    /// Like [`CommandBus::send`], but `None`, and not sent, without room after `within`.
    pub fn send_within<Command: Message, Reply: Message, Refusal: Message>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        within: Duration,
    ) -> Option<PendingOutcome<Reply, Refusal>> {
        let until = Instant::now() + within.min(WITHIN_MAX);
        loop {
            if let Some(pending) = self.try_send(draft) {
                return Some(pending);
            }
            if Instant::now() >= until || !self.transport.wait_for_room(until) {
                return None;
            }
        }
    }

    /// Sends a command; waits while the limit of commands in flight is reached. In a handler: sent once the handler's
    /// own command is accepted, and else ends as [`BusError::NotSent`].
    pub fn send<Command: Message, Reply: Message, Refusal: Message>(
        &self,
        draft: Draft<'_, Command, Reply, Refusal>,
    ) -> PendingOutcome<Reply, Refusal> {
        let completion = self.send_now(&draft);
        self.pending(&draft, completion)
    }

    #[inline]
    fn send_now<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
    ) -> Arc<Completion> {
        match &self.policy {
            None => {
                let completion = Arc::new(Completion::default());
                self.send_for(draft, &completion);
                completion
            }
            Some(policy) => self.send_by(policy, draft, BusTransport::send_queued),
        }
    }

    #[inline]
    fn pending<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: Arc<Completion>,
    ) -> PendingOutcome<Reply, Refusal> {
        PendingOutcome {
            transport: self.transport.clone(),
            completion,
            expected: draft.expected_version(),
            types: PhantomData,
        }
    }

    #[inline]
    fn send_for<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: &Arc<Completion>,
    ) {
        if handling::is_handling() {
            self.transport.send_after_handler(draft, completion);
        } else {
            self.transport.send(draft, completion);
        }
    }

    fn send_by<Command: Message, Reply, Refusal>(
        &self,
        policy: &Arc<SendPolicy>,
        draft: &Draft<'_, Command, Reply, Refusal>,
        send: impl FnOnce(&BusTransport, QueuedCommand),
    ) -> Arc<Completion> {
        let (mut dispatched, asked) = policy.before(draft);
        if let Err(outcome) = asked {
            let completion = policy.completion(dispatched, None);
            completion.deliver_now(outcome);
            return completion;
        }
        let attempts = policy.retry().map(|retry| Attempts::new(retry, dispatched.identifier));
        if let Some(attempts) = &attempts {
            dispatched.identifier = attempts.identifier();
        }
        let (mut bytes, command, headers) = (Vec::new(), draft.command_key(), dispatched.headers.clone());
        if let Err(reason) = draft.with_identity(dispatched.identifier, &headers).write(&mut bytes) {
            let completion = policy.completion(dispatched, None);
            completion.deliver_now(Err(BusError::NotSent(reason)));
            return completion;
        }
        let again = attempts.map(|attempts| {
            let transport = self.transport.downgrade();
            let send = move |bytes: Vec<u8>, completion: &Arc<Completion>| {
                let queued = QueuedCommand { command, bytes, completion: Arc::clone(completion) };
                transport.upgrade().map(|transport| transport.send_again(queued)).is_some()
            };
            (attempts, bytes.clone(), Arc::new(send) as Arc<_>)
        });
        let completion = policy.completion(dispatched, again);
        let queued = QueuedCommand { command, bytes, completion: Arc::clone(&completion) };
        if handling::is_handling() {
            self.transport.send_queued_after_handler(queued);
        } else {
            send(&self.transport, queued);
            // Interceptors get every outcome, also one that no caller awaits.
            self.transport.start_poller();
        }
        completion
    }

    /// Sends a command, and waits for its outcome.
    ///
    /// # Errors
    /// Any outcome but an accepted one; in a handler [`BusError::CalledInHandler`], not sent.
    pub fn call<Command: Message, Reply: Message, Refusal: Message>(
        &self,
        draft: Draft<'_, Command, Reply, Refusal>,
    ) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
        if handling::is_handling() {
            return Err(CommandError::Bus(BusError::CalledInHandler));
        }
        self.send(draft).wait()
    }
}

impl BusTransport {
    fn send<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: &Arc<Completion>,
    ) {
        match self {
            Self::Connection(connection) => connection.send(draft.command_key(), |into| draft.write(into), completion),
            Self::Queue(_) => self.send_encoded(draft, completion, Self::send_queued),
        }
    }

    fn has_room(&self) -> bool {
        match self {
            Self::Connection(connection) => connection.has_room(),
            Self::Queue(queue) => queue.has_room(),
        }
    }

    fn wait_for_room(&self, until: Instant) -> bool {
        match self {
            Self::Connection(connection) => {
                connection.wait_for_room(until);
                true
            }
            Self::Queue(queue) => queue.wait_for_room(until),
        }
    }

    fn send_queued(&self, queued: QueuedCommand) {
        match self {
            Self::Connection(connection) => {
                let write = |into: &mut Vec<u8>| {
                    into.extend_from_slice(&queued.bytes);
                    Ok(())
                };
                connection.send(queued.command, write, &queued.completion);
            }
            Self::Queue(queue) => queue.send(queued, true),
        }
    }

    fn send_again(&self, queued: QueuedCommand) {
        if let Self::Connection(connection) = self {
            connection.reconnect_for_retry();
        }
        self.send_soon(queued);
    }

    fn send_soon(&self, queued: QueuedCommand) {
        match self {
            Self::Connection(connection) => connection.send_soon(queued.command, queued.bytes, queued.completion),
            Self::Queue(queue) => queue.send(queued, false),
        }
    }

    #[cold]
    fn send_after_handler<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: &Arc<Completion>,
    ) {
        self.send_encoded(draft, completion, Self::send_queued_after_handler);
    }

    fn send_encoded<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: &Arc<Completion>,
        send: impl FnOnce(&Self, QueuedCommand),
    ) {
        match encode_queued(draft, completion) {
            Ok(queued) => send(self, queued),
            Err(reason) => completion.deliver_now(Err(BusError::NotSent(reason))),
        }
    }

    fn send_queued_after_handler(&self, mut queued: QueuedCommand) {
        let transport = self.clone();
        handling::send_after_handler(Box::new(move |origin| {
            let caused = match origin {
                Some(origin) => caused_by(origin, &mut queued),
                None => Err("the command whose handler sent it was not accepted".to_owned()),
            };
            match caused {
                Ok(()) => transport.send_soon(queued),
                Err(reason) => queued.completion.deliver_now(Err(BusError::NotSent(reason))),
            }
        }));
    }

    fn downgrade(&self) -> WeakBusTransport {
        match self {
            Self::Connection(connection) => WeakBusTransport::Connection(Arc::downgrade(connection)),
            Self::Queue(queue) => WeakBusTransport::Queue(Arc::downgrade(queue)),
        }
    }

    fn wait(&self, completion: &Arc<Completion>, until: Option<Instant>) -> AnswerResult {
        if handling::is_handling() {
            return completion.take().unwrap_or(Err(BusError::CalledInHandler));
        }
        match self {
            Self::Connection(connection) => connection.wait(completion, until),
            Self::Queue(queue) => queue.wait(completion, until),
        }
    }

    fn take_answers(&self) {
        if let Self::Connection(connection) = self {
            connection.take_answers();
        }
    }

    fn start_poller(&self) {
        if let Self::Connection(connection) = self {
            connection.start_poller();
        }
    }
}

enum WeakBusTransport {
    Connection(Weak<WriterConnection>),
    Queue(Weak<CommandQueue>),
}

impl WeakBusTransport {
    fn upgrade(&self) -> Option<BusTransport> {
        match self {
            Self::Connection(connection) => connection.upgrade().map(BusTransport::Connection),
            Self::Queue(queue) => queue.upgrade().map(BusTransport::Queue),
        }
    }
}

fn caused_by(origin: &CommandOrigin<'_>, queued: &mut QueuedCommand) -> Result<(), String> {
    let envelope = CommandEnvelope::read(&queued.bytes).map_err(|error| error.to_string())?;
    let mut headers = Headers::decode(envelope.metadata).unwrap_or_default();
    origin.carry_on(origin.command(), &mut headers);
    let bytes = envelope.with_headers(&headers)?;
    if let Some(observer) = queued.completion.observer() {
        observer.on_change(&bytes, headers);
    }
    queued.bytes = bytes;
    Ok(())
}

fn encode_queued<Command: Message, Reply, Refusal>(
    draft: &Draft<'_, Command, Reply, Refusal>,
    completion: &Arc<Completion>,
) -> Result<QueuedCommand, String> {
    let mut bytes = Vec::new();
    draft.write(&mut bytes)?;
    Ok(QueuedCommand { command: draft.command_key(), bytes, completion: Arc::clone(completion) })
}

/// Outcome of a sent command.
#[must_use = "the outcome is awaited, waited for, or left to a function"]
pub struct PendingOutcome<Reply, Refusal> {
    transport: BusTransport,
    completion: Arc<Completion>,
    expected: u64,
    types: PhantomData<fn() -> (Reply, Refusal)>,
}

impl<Reply: Message, Refusal: Message> PendingOutcome<Reply, Refusal> {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// Any outcome but an accepted one; in a handler [`BusError::CalledInHandler`], because the awaited command follows
    /// the handler's.
    pub fn wait(self) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
        read(self.transport.wait(&self.completion, None), self.expected)
    }

    /// Waits for the outcome for `within` at most; the command goes on.
    ///
    /// # Errors
    /// Any outcome but an accepted one; [`BusError::TimedOut`].
    pub fn wait_within(self, within: Duration) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
        read(self.transport.wait(&self.completion, Instant::now().checked_add(within)), self.expected)
    }

    /// Takes the outcome if there is one now; polls for answers but never sleeps.
    ///
    /// # Errors
    /// `self`, while there is no outcome.
    pub fn try_wait(self) -> Result<Result<AcceptedCommand<Reply>, CommandError<Refusal>>, Self> {
        let found = self.completion.take().or_else(|| {
            self.transport.take_answers();
            self.completion.take()
        });
        found.map(|outcome| read(outcome, self.expected)).ok_or(self)
    }

    /// Calls `function` with the outcome on a thread of the bus: it must not sleep, nor wait for another command.
    pub fn then(self, function: impl FnOnce(Result<AcceptedCommand<Reply>, CommandError<Refusal>>) + Send + 'static) {
        let expected = self.expected;
        let callback = Box::new(move |outcome| function(read(outcome, expected)));
        if let Some((callback, outcome)) = self.completion.call(callback) {
            callback(outcome);
        } else {
            self.transport.start_poller();
        }
    }
}

impl<Reply: Message, Refusal: Message> Future for PendingOutcome<Reply, Refusal> {
    type Output = Result<AcceptedCommand<Reply>, CommandError<Refusal>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.completion.poll(context);
        if polled.is_pending() {
            self.transport.start_poller();
        }
        polled.map(|outcome| read(outcome, self.expected))
    }
}

pub(crate) fn read<Reply: Message, Refusal: Message>(
    outcome: AnswerResult,
    expected: u64,
) -> Result<AcceptedCommand<Reply>, CommandError<Refusal>> {
    let unreadable = |error: &dyn std::fmt::Display| CommandError::Bus(BusError::Unreadable(error.to_string()));
    let answer = match outcome? {
        WriterAnswer::Accepted { sequence, version, events } => {
            let reply = Reply::decode(&[]).map_err(|error| unreadable(&error))?;
            return Ok(AcceptedCommand { position: Position { sequence, ordinal: 0 }, events, version, reply });
        }
        WriterAnswer::Answer(answer) => answer,
        WriterAnswer::Failed(reason) => return Err(CommandError::Failed(reason)),
    };
    Err(match answer.kind {
        AnswerKind::Accepted => {
            let reply = Reply::decode_as(answer.message_version, &answer.rest).map_err(|error| unreadable(&error))?;
            let CommandAnswer { position, events, aggregate_version: version, .. } = *answer;
            return Ok(AcceptedCommand { position, events, version, reply });
        }
        AnswerKind::Refused => match Refusal::decode_as(answer.message_version, &answer.rest) {
            Ok(refusal) => CommandError::Refused(refusal),
            Err(error) => unreadable(&error),
        },
        AnswerKind::NotFound => CommandError::NotFound,
        AnswerKind::AlreadyExists => CommandError::AlreadyExists,
        AnswerKind::Conflict => CommandError::Conflict { expected, found: answer.aggregate_version },
        AnswerKind::ConditionFailed => CommandError::ConditionFailed(Position {
            sequence: answer.position.sequence,
            ordinal: answer.aggregate_version as u16,
        }),
        AnswerKind::IdentifierReused => CommandError::IdentifierReused,
        AnswerKind::Quarantined => CommandError::Quarantined(String::from_utf8_lossy(&answer.rest).into_owned()),
        AnswerKind::Intercepted => CommandError::Intercepted(String::from_utf8_lossy(&answer.rest).into_owned()),
    })
}
