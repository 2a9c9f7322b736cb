//! [`CallState`]: one command on its way, shared by its caller and the connection.

use super::waiting_bound::Waiting;
use crate::polled::{MessageType, QueryAnswer, Reply};
use crate::{ClientError, CommandNumber};
use gapless_agent::deadlines::DeadlineTarget;
use gapless_agent::foreign;
use gapless_log::LogError;
use gapless_wire::control::RefusalCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// A command's end, without the types of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Reply {
        sequence: u64,
        message: MessageType,
        payload: Vec<u8>,
    },
    /// Of a query.
    Answer(QueryAnswer),
    Refused {
        number: CommandNumber,
        sequence: u64,
        code: RefusalCode,
        detail: u64,
        text: String,
    },
    Unknown {
        number: CommandNumber,
        reason: String,
    },
    NotSent {
        reason: String,
    },
    /// Permanently unsendable.
    Invalid {
        reason: String,
    },
}

impl Ending {
    /// Whether the service has no handler for these types.
    pub fn is_unhandled(&self) -> bool {
        match self {
            Self::Refused { code, .. } => *code == RefusalCode::Unhandled,
            Self::Answer(answer) => answer.is_unhandled(),
            _ => false,
        }
    }

    pub fn unsendable(error: &ClientError) -> Self {
        let reason = error.to_string();
        match error {
            ClientError::TooLong { .. } | ClientError::Log(LogError::TooLong { .. }) | ClientError::Encode(_) => {
                Self::Invalid { reason }
            }
            _ => Self::NotSent { reason },
        }
    }

    /// End without a reply of a command with this number, or of one that has none.
    pub fn unknown(number: Option<CommandNumber>, reason: String) -> Self {
        match number {
            Some(number) => Self::Unknown { number, reason },
            None => Self::NotSent { reason },
        }
    }

    /// A reply, in the memory of its request.
    pub fn of_reply(number: Option<CommandNumber>, mut bytes: Vec<u8>, reply: &Reply<'_>) -> Self {
        let sequence = reply.sequence;
        match &reply.refusal {
            None => {
                bytes.clear();
                bytes.extend_from_slice(reply.payload);
                Self::Reply { sequence, message: reply.message_type(), payload: bytes }
            }
            Some(refusal) => {
                let number = number.unwrap_or(CommandNumber { session: 0, session_seq: reply.session_seq });
                let (code, detail, text) = (refusal.code, refusal.detail, refusal.text.to_owned());
                Self::Refused { number, sequence, code, detail, text }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Command,
    /// A read of a state that contains the frame `after`.
    Query {
        after: u64,
        wait_max: Duration,
    },
    /// A question for the outcome of a command that was sent earlier.
    Outcome(CommandNumber),
}

impl CallKind {
    /// Number of a command that was sent before this call.
    const fn earlier_number(self) -> Option<CommandNumber> {
        match self {
            Self::Outcome(number) => Some(number),
            Self::Command | Self::Query { .. } => None,
        }
    }
}

/// Record of a command that outlives its process.
pub(super) trait CommandRecord: Send + Sync {
    /// Records a number before the command is sent under it.
    ///
    /// # Errors
    /// It must not be sent.
    fn number(&self, number: CommandNumber) -> Result<(), ClientError>;

    /// Takes the ending.
    fn end(&self, ending: Ending);
}

/// Waits in the queue, then in its session for the reply. Its number exists only from the moment of sending on, so that
/// a command whose caller gives up before that leaves no gap.
pub(super) struct CallState {
    pub kind: CallKind,
    pub lane: usize,
    pub message: MessageType,
    /// `None` for an ordinary call.
    pub record: Option<Box<dyn CommandRecord>>,
    /// Set after the ending is in `progress`.
    is_ended: AtomicBool,
    progress: Mutex<Progress>,
}

struct Progress {
    stage: Stage,
    /// The payload; its memory is reused for the reply.
    bytes: Vec<u8>,
    waker: Option<Waker>,
}

enum Stage {
    Waiting,
    Sent(CommandNumber),
    Ended(Ending),
    /// The caller has its ending, or has left.
    Abandoned,
}

/// Result of an attempt to send.
#[derive(Debug)]
pub(super) enum Sending {
    Sent(CommandNumber),
    /// Abandoned by its caller.
    Skipped,
    Failed(ClientError),
}

impl CallState {
    pub fn new(kind: CallKind, lane: usize, message: MessageType, bytes: Vec<u8>) -> Self {
        let progress = Progress { stage: Stage::Waiting, bytes, waker: None };
        Self { kind, lane, message, record: None, is_ended: AtomicBool::new(false), progress: Mutex::new(progress) }
    }

    /// A command whose ending goes to its record, before the waker is woken.
    pub fn recorded(
        kind: CallKind,
        lane: usize,
        message: MessageType,
        bytes: Vec<u8>,
        record: Box<dyn CommandRecord>,
        waker: Waker,
    ) -> Self {
        let mut state = Self::new(kind, lane, message, bytes);
        state.record = Some(record);
        state.lock().waker = Some(waker);
        state
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn length(&self) -> usize {
        self.lock().bytes.len()
    }

    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Like [`CallState::is_ended`], ordered with the ending by the lock.
    pub fn has_ending(&self) -> bool {
        matches!(self.lock().stage, Stage::Ended(_))
    }

    /// Whether the caller has left before the command was sent.
    pub fn is_abandoned(&self) -> bool {
        matches!(self.lock().stage, Stage::Abandoned)
    }

    /// Sends by `send`, unless the caller has left.
    pub fn send_by(
        &self,
        waiting: &Waiting,
        send: impl FnOnce(MessageType, &[u8]) -> Result<CommandNumber, ClientError>,
    ) -> Sending {
        let mut progress = self.lock();
        if !matches!(progress.stage, Stage::Waiting) {
            return Sending::Skipped;
        }
        match send(self.message, &progress.bytes) {
            Ok(number) => {
                progress.stage = Stage::Sent(number);
                waiting.leave(progress.bytes.len());
                Sending::Sent(number)
            }
            Err(error) => Sending::Failed(error),
        }
    }

    /// Takes back a command that the service has refused without effect; `false` if no one waits for it.
    pub fn unsend(&self, waiting: &Waiting) -> bool {
        let mut progress = self.lock();
        let is_sent = matches!(progress.stage, Stage::Sent(_));
        if is_sent {
            progress.stage = Stage::Waiting;
            waiting.enter_again(progress.bytes.len());
        }
        is_sent
    }

    /// Ends a waiting or sent command. Wake the returned waker with no lock held.
    #[must_use]
    pub fn end(
        &self,
        waiting: &Waiting,
        ending: impl FnOnce(Option<CommandNumber>, Vec<u8>) -> Ending,
    ) -> Option<Waker> {
        let mut progress = self.lock();
        let number = match progress.stage {
            Stage::Waiting => {
                waiting.leave(progress.bytes.len());
                self.kind.earlier_number()
            }
            Stage::Sent(number) => Some(number),
            Stage::Ended(_) | Stage::Abandoned => return None,
        };
        let bytes = std::mem::take(&mut progress.bytes);
        let ending = ending(number, bytes);
        progress.stage = match &self.record {
            None => Stage::Ended(ending),
            Some(record) => {
                record.end(ending);
                Stage::Abandoned
            }
        };
        self.is_ended.store(true, Ordering::Release);
        progress.waker.take()
    }

    /// Takes the ending, once.
    pub fn take(&self) -> Option<Ending> {
        if self.is_ended() { self.lock().take() } else { None }
    }

    /// Takes the ending, or registers the waker for it.
    pub fn take_or_register(&self, waker: &Waker) -> Option<Ending> {
        // Dropped after the lock: its drop may be the application's code.
        let mut _former = None;
        let mut progress = self.lock();
        let ending = progress.take();
        if ending.is_none() && !progress.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            _former = progress.waker.replace(waker.clone());
        }
        ending
    }

    /// Ends without a reply, for `reason`, unless the ending is there already. A sent command keeps its place in the
    /// window until its reply arrives.
    pub fn give_up(&self, waiting: &Waiting, reason: impl FnOnce() -> String) -> Option<Ending> {
        // Dropped after the lock.
        let _former;
        let mut progress = self.lock();
        _former = progress.waker.take();
        match std::mem::replace(&mut progress.stage, Stage::Abandoned) {
            Stage::Waiting => {
                let bytes = std::mem::take(&mut progress.bytes);
                waiting.leave(bytes.len());
                Some(Ending::unknown(self.kind.earlier_number(), reason()))
            }
            Stage::Sent(number) => {
                progress.bytes = Vec::new();
                Some(Ending::Unknown { number, reason: reason() })
            }
            Stage::Ended(ending) => Some(ending),
            Stage::Abandoned => None,
        }
    }
}

impl Progress {
    fn take(&mut self) -> Option<Ending> {
        if !matches!(self.stage, Stage::Ended(_)) {
            return None;
        }
        match std::mem::replace(&mut self.stage, Stage::Abandoned) {
            Stage::Ended(ending) => Some(ending),
            _ => None,
        }
    }
}

/// At the deadline the caller is woken, and ends its call by itself.
impl DeadlineTarget for CallState {
    fn expire(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            foreign::wake(waker);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use gapless_wire::Encoding;
    use std::sync::Arc;
    use std::task::Wake;

    const NUMBER: CommandNumber = CommandNumber { session: 7, session_seq: 1 };

    fn state(waiting: &Waiting) -> CallState {
        waiting.enter(3).unwrap();
        CallState::new(CallKind::Command, 0, MessageType { schema: 1, encoding: Encoding::Postcard }, vec![1, 2, 3])
    }

    fn reply(_: Option<CommandNumber>, mut bytes: Vec<u8>) -> Ending {
        bytes.push(4);
        Ending::Reply { sequence: 9, message: MessageType { schema: 1, encoding: Encoding::Postcard }, payload: bytes }
    }

    #[test]
    fn ending_is_taken_once() {
        let waiting = Waiting::new(10);
        let state = state(&waiting);
        assert!(matches!(
            state.send_by(&waiting, |_, bytes| Err(ClientError::Encode(format!("{bytes:?}")))),
            Sending::Failed(_)
        ));
        assert_eq!(waiting.count(), 1);
        assert!(matches!(state.send_by(&waiting, |_, _| Ok(NUMBER)), Sending::Sent(NUMBER)));
        assert_eq!(waiting.count(), 0);
        assert!(state.take().is_none() && state.take_or_register(Waker::noop()).is_none());
        assert!(state.end(&waiting, reply).is_some(), "the waker is due");
        assert!(state.end(&waiting, |_, _| unreachable!("it has its ending")).is_none());
        assert!(matches!(state.take(), Some(Ending::Reply { payload, .. }) if payload == [1, 2, 3, 4]));
        assert!(state.take().is_none() && state.take_or_register(Waker::noop()).is_none());
    }

    #[test]
    fn abandoned_command_is_skipped() {
        let waiting = Waiting::new(10);
        let state = state(&waiting);
        assert_eq!(state.give_up(&waiting, || "late".to_owned()), Some(Ending::NotSent { reason: "late".to_owned() }));
        assert!(state.is_abandoned() && waiting.count() == 0);
        assert!(matches!(state.send_by(&waiting, |_, _| unreachable!("no one wants it")), Sending::Skipped));
        assert!(state.end(&waiting, reply).is_none() && state.take().is_none());
        assert_eq!(state.give_up(&waiting, String::new), None);
    }

    #[test]
    fn sent_command_has_unknown_end() {
        let waiting = Waiting::new(10);
        let state = state(&waiting);
        assert!(matches!(state.send_by(&waiting, |_, _| Ok(NUMBER)), Sending::Sent(NUMBER)));
        let unknown = state.give_up(&waiting, || "late".to_owned());
        assert_eq!(unknown, Some(Ending::Unknown { number: NUMBER, reason: "late".to_owned() }));
        assert!(state.end(&waiting, reply).is_none(), "its reply is discarded");
    }

    /// A retry would fail, too.
    #[test]
    fn command_longer_than_the_ring_is_invalid() {
        let error = ClientError::from(LogError::TooLong { length_bytes: 9, limit_bytes: 8 });
        assert!(matches!(Ending::unsendable(&error), Ending::Invalid { .. }));
        assert!(matches!(Ending::unsendable(&ClientError::NotOpen), Ending::NotSent { .. }));
    }

    /// Its drop may be that of another call.
    #[test]
    fn former_waker_is_dropped_without_lock() {
        struct Task(Arc<CallState>, Arc<Waiting>);
        impl Wake for Task {
            fn wake(self: Arc<Self>) {}
        }
        impl Drop for Task {
            fn drop(&mut self) {
                assert!(self.0.progress.try_lock().is_ok());
                self.1.leave(0);
            }
        }
        let waiting = Arc::new(Waiting::new(10));
        let state = Arc::new(state(&waiting));
        let task = || Waker::from(Arc::new(Task(Arc::clone(&state), Arc::clone(&waiting))));
        (0..3).for_each(|_| waiting.enter(0).unwrap());
        (0..3).for_each(|_| assert!(state.take_or_register(&task()).is_none()));
        assert_eq!(waiting.count(), 2, "two are dropped");
        assert!(state.give_up(&waiting, String::new).is_some());
        assert_eq!(waiting.count(), 0);
    }

    #[test]
    fn late_caller_gets_its_ending() {
        let waiting = Waiting::new(10);
        let state = state(&waiting);
        assert!(state.end(&waiting, reply).is_none(), "without a waker");
        assert_eq!(waiting.count(), 0);
        assert!(matches!(state.give_up(&waiting, String::new), Some(Ending::Reply { .. })));
    }
}
