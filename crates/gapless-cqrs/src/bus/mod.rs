//! [`CommandBus`]: how commands are sent, and how their outcomes come back.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`CommandBus`], [`Pending`] of an outcome |
//! | `line` | the connection to the writer: sessions, what is in flight, who looks for answers |
//! | `queue` | the way to a bus that its one owner polls |
//! | `completion` | where one outcome arrives |

mod completion;
mod line;
mod queue;

use crate::draft::Draft;
use crate::envelope::Answered;
use crate::error::{BusError, CommandError};
use crate::handling;
use crate::identity::{Position, TypeKey};
use gapless_client::{Client, ClientError};
use gapless_message::Message;
use line::Line;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub(crate) use completion::{Arrived, Completion, Outcome};
pub use line::BusOptions;
pub(crate) use queue::{Queue, Queued};

/// A handle of the bus. Clones are handles of the same bus, for any thread.
#[derive(Clone)]
pub struct CommandBus {
    way: Way,
}

/// The way to the writer.
#[derive(Clone)]
enum Way {
    Line(Arc<Line>),
    Queue(Arc<Queue>),
}

impl std::fmt::Debug for CommandBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandBus").finish_non_exhaustive()
    }
}

/// What a command that was accepted has become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted<Reply = ()> {
    /// Of its first event; where it has none, where that would stand.
    pub position: Position,
    /// Its events.
    pub events: u32,
    /// The aggregate's version behind it; 0 of a handler's command.
    pub version: u64,
    /// The handler's reply.
    pub reply: Reply,
}

impl CommandBus {
    pub(crate) fn over(client: Client, options: &BusOptions) -> Result<Self, ClientError> {
        Ok(Self { way: Way::Line(Line::new(client, options)?) })
    }

    /// To a bus that its owner polls.
    pub(crate) const fn queued(queue: Arc<Queue>) -> Self {
        Self { way: Way::Queue(queue) }
    }

    /// Sends a command. Its outcome can be awaited, waited for, or left to a function; who does none of it has still sent it. Waits while the
    /// bus has as many commands in flight as it may.
    ///
    /// In a handler it does not wait: the command is sent when the handler's own is accepted, and else ends as [`BusError::NotSent`].
    pub fn send<Command: Message, Reply: Message, Refusal: Message>(
        &self,
        draft: Draft<'_, Command, Reply, Refusal>,
    ) -> Pending<Reply, Refusal> {
        let completion = Arc::new(Completion::default());
        if handling::is_handling() {
            self.way.send_behind(&draft, &completion);
        } else {
            self.way.send(&draft, &completion);
        }
        let expected = draft.expected_version();
        Pending { way: self.way.clone(), completion, expected, types: PhantomData }
    }

    /// Sends a command, and waits for its outcome.
    ///
    /// # Errors
    /// How it ended that was not accepted; [`BusError::CalledInHandler`] in a handler, and then it was not sent.
    pub fn call<Command: Message, Reply: Message, Refusal: Message>(
        &self,
        draft: Draft<'_, Command, Reply, Refusal>,
    ) -> Result<Accepted<Reply>, CommandError<Refusal>> {
        if handling::is_handling() {
            return Err(CommandError::Bus(BusError::CalledInHandler));
        }
        self.send(draft).wait()
    }
}

impl Way {
    fn send<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: &Arc<Completion>,
    ) {
        match self {
            Self::Line(line) => line.send(draft.command_key(), |into| draft.write(into), completion),
            Self::Queue(queue) => match written(draft, completion) {
                Ok(queued) => queue.send(queued, true),
                Err(reason) => drop(completion.arrive(Err(BusError::NotSent(reason)))),
            },
        }
    }

    /// The command follows the one that this thread handles, if that counts.
    #[cold]
    fn send_behind<Command: Message, Reply, Refusal>(
        &self,
        draft: &Draft<'_, Command, Reply, Refusal>,
        completion: &Arc<Completion>,
    ) {
        let queued = match written(draft, completion) {
            Ok(queued) => queued,
            Err(reason) => return drop(completion.arrive(Err(BusError::NotSent(reason)))),
        };
        let way = self.clone();
        handling::send_behind(Box::new(move |counts| match way {
            Self::Line(line) if counts => line.send_soon(queued.command, queued.bytes, queued.completion),
            Self::Queue(queue) if counts => queue.send(queued, false),
            _ => {
                let reason = "the command whose handler sent it was not accepted".to_owned();
                if let Some((callback, outcome)) = queued.completion.arrive(Err(BusError::NotSent(reason))) {
                    callback(outcome);
                }
            }
        }));
    }

    fn wait(&self, completion: &Arc<Completion>, until: Option<Instant>) -> Outcome {
        if handling::is_handling() {
            return completion.take().unwrap_or(Err(BusError::CalledInHandler));
        }
        match self {
            Self::Line(line) => line.wait(completion, until),
            Self::Queue(queue) => queue.wait(completion, until),
        }
    }

    fn attend(&self) {
        if let Self::Line(line) = self {
            line.attend();
        }
    }
}

fn written<Command: Message, Reply, Refusal>(
    draft: &Draft<'_, Command, Reply, Refusal>,
    completion: &Arc<Completion>,
) -> Result<Queued, String> {
    let mut bytes = Vec::new();
    draft.write(&mut bytes)?;
    Ok(Queued { command: draft.command_key(), bytes, completion: Arc::clone(completion) })
}

/// The outcome of a command that was sent.
#[must_use = "the outcome is awaited, waited for, or left to a function"]
pub struct Pending<Reply, Refusal> {
    way: Way,
    completion: Arc<Completion>,
    expected: u64,
    types: PhantomData<fn() -> (Reply, Refusal)>,
}

impl<Reply: Message, Refusal: Message> Pending<Reply, Refusal> {
    /// Waits for it.
    ///
    /// # Errors
    /// How it ended that was not accepted; [`BusError::CalledInHandler`] in a handler, whose command it is behind.
    pub fn wait(self) -> Result<Accepted<Reply>, CommandError<Refusal>> {
        read(self.way.wait(&self.completion, None), self.expected)
    }

    /// Waits for it, but not for longer. The command goes on.
    ///
    /// # Errors
    /// How it ended that was not accepted; [`BusError::TimedOut`].
    pub fn wait_within(self, within: Duration) -> Result<Accepted<Reply>, CommandError<Refusal>> {
        read(self.way.wait(&self.completion, Some(Instant::now() + within)), self.expected)
    }

    /// Has a function called with it, on a thread of the bus: it must not sleep, nor wait for another command.
    pub fn then(self, function: impl FnOnce(Result<Accepted<Reply>, CommandError<Refusal>>) + Send + 'static) {
        let expected = self.expected;
        let callback = Box::new(move |outcome| function(read(outcome, expected)));
        if let Some((callback, outcome)) = self.completion.call(callback) {
            callback(outcome);
        } else {
            self.way.attend();
        }
    }
}

impl<Reply: Message, Refusal: Message> Future for Pending<Reply, Refusal> {
    type Output = Result<Accepted<Reply>, CommandError<Refusal>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.completion.poll(context);
        if polled.is_pending() {
            self.way.attend();
        }
        polled.map(|outcome| read(outcome, self.expected))
    }
}

/// What the bytes of an answer say.
pub(crate) fn read<Reply: Message, Refusal: Message>(
    outcome: Outcome,
    expected: u64,
) -> Result<Accepted<Reply>, CommandError<Refusal>> {
    let answer = match outcome? {
        Arrived::Answer(answer) => answer,
        Arrived::Failed(reason) => return Err(CommandError::Failed(reason)),
    };
    let unreadable = |error: &dyn std::fmt::Display| CommandError::Bus(BusError::Unreadable(error.to_string()));
    Err(match answer.answered {
        Answered::Accepted => {
            let reply = match answer.message {
                // An aggregate's answer has none.
                TypeKey::NONE => Reply::decode(&[]),
                _ => Reply::decode_as(answer.message_version, &answer.rest),
            };
            return Ok(Accepted {
                position: answer.position,
                events: answer.events,
                version: answer.aggregate_version,
                reply: reply.map_err(|error| unreadable(&error))?,
            });
        }
        Answered::Refused => match Refusal::decode_as(answer.message_version, &answer.rest) {
            Ok(refusal) => CommandError::Refused(refusal),
            Err(error) => unreadable(&error),
        },
        Answered::NotFound => CommandError::NotFound,
        Answered::AlreadyExists => CommandError::AlreadyExists,
        Answered::Conflict => CommandError::Conflict { expected, found: answer.aggregate_version },
        Answered::ConditionFailed => CommandError::ConditionFailed(Position {
            sequence: answer.position.sequence,
            ordinal: answer.aggregate_version as u16,
        }),
        Answered::IdentifierReused => CommandError::IdentifierReused,
        Answered::Quarantined => CommandError::Quarantined(String::from_utf8_lossy(&answer.rest).into_owned()),
    })
}
