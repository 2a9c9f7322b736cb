//! [`ServiceClient`]: a shipped client that sends commands through the leader, moves on when that is gone or silent,
//! resends, and sometimes asks for a reply again. After a restart it first asks for each reply in its window.

use crate::checker::Violation;
use crate::options::MS;
use crate::random::Random;
use crate::reference::{ExpectedReply, ReferenceAnswers};
use crate::system_under_test::SystemUnderTest;
use crate::workload::{Workload, message_of};
use gapless_client::polled::ClientOptions;
use gapless_client::{ClientError, Incoming, PolledClient, Reply, SessionKey};
use gapless_log::LogError;
use gapless_stream::event_stream::EventStream;
use gapless_transport::RingSizes;
use gapless_wire::control::RefusalCode;
use std::collections::{BTreeMap, BTreeSet};

/// Fits a window of long commands; not always their replies.
const RINGS: RingSizes = RingSizes { command_ring_bytes: 512 << 10, reply_ring_bytes: 128 << 10 };
const WINDOWS: [u32; 3] = [1, 4, 8];
/// A member that owes an answer is left after this.
const SILENCE_NS_MAX: u64 = 400 * MS;

/// Opens the session of client `number`.
pub(crate) fn token_of(seed: u64, number: u64) -> u128 {
    let mut random = Random::of(seed, &[8, number]);
    u128::from(random.number()) << 64 | u128::from(random.number())
}

pub(crate) struct ServiceClient {
    number: u64,
    seed: u64,
    messages: u64,
    window_commands: u32,
    /// Sends as much as it may at once.
    is_in_haste: bool,
    /// `None` until a member accepted it in this life.
    client: Option<(PolledClient, SessionKey)>,
    at: Option<u64>,
    is_open: bool,
    session: Option<u64>,
    /// Number of the last frame of each command that any life sent, in order.
    sent: Vec<u64>,
    /// Replies of any life, by those frame numbers.
    replies: BTreeMap<u64, ExpectedReply>,
    /// Commands of a previous life that queries found in the stream.
    taken_over: usize,
    repeated: u64,
    mismatch_sequence: Option<u64>,
    /// Unanswered queries of this life about earlier lives.
    queried: BTreeSet<u64>,
    resolved: u64,
    waits_since_ns: Option<u64>,
}

impl ServiceClient {
    pub(crate) fn new(seed: u64, number: u64, messages: u64, crowd: Option<u32>) -> Self {
        Self {
            number,
            seed,
            messages,
            window_commands: crowd.unwrap_or_else(|| Random::of(seed, &[9, number]).pick(&WINDOWS)),
            is_in_haste: crowd.is_some(),
            client: None,
            at: None,
            is_open: false,
            session: None,
            sent: Vec::new(),
            replies: BTreeMap::new(),
            taken_over: 0,
            repeated: 0,
            mismatch_sequence: None,
            queried: BTreeSet::new(),
            resolved: 0,
            waits_since_ns: None,
        }
    }

    fn token(&self) -> u128 {
        token_of(self.seed, self.number)
    }

    fn broken(&self, what: std::fmt::Arguments<'_>) -> Violation {
        format!("client {}: {what}", self.number)
    }

    /// Depends on dice and window; returns whether it sent.
    fn send(&mut self, application: &impl SystemUnderTest, random: &mut Random) -> Result<bool, Violation> {
        let index = self.sent.len() as u64;
        let Some((client, key)) = &mut self.client else { return Ok(false) };
        let may_send = self.is_open && self.queried.is_empty() && client.can_send(*key);
        if index == self.messages || !may_send || !(self.is_in_haste || random.happens_per_100_000(30_000)) {
            return Ok(false);
        }
        let (message, payload) = message_of(application, self.seed, self.number, index);
        let encode = |room: &mut [u8]| {
            room.copy_from_slice(&payload);
            Ok(payload.len())
        };
        match client.send(*key, message, payload.len(), encode) {
            Ok(number) => self.sent.push(number),
            Err(ClientError::WindowFull { .. } | ClientError::Log(LogError::Full { .. })) => return Ok(false),
            Err(error) => return Err(self.broken(format_args!("{error}"))),
        }
        Ok(true)
    }

    /// Covers commands of earlier lives in the window.
    fn ask(&mut self) -> Result<(), Violation> {
        let Some((client, key)) = &mut self.client else { return Ok(()) };
        for number in &self.queried {
            match client.repeat(*key, *number) {
                // Repeated once the session is open here.
                Ok(()) | Err(ClientError::NotOpen | ClientError::Log(LogError::Full { .. })) => {}
                Err(error) => return Err(self.broken(format_args!("{error}"))),
            }
        }
        Ok(())
    }

    fn repeat(&mut self, random: &mut Random) -> Result<(), Violation> {
        let Some((client, key)) = &mut self.client else { return Ok(()) };
        if !self.is_open || self.sent.is_empty() || !random.happens_per_100_000(1_000) {
            return Ok(());
        }
        let back = random.below(self.sent.len().min(WINDOWS[2] as usize) as u64) as usize;
        match client.repeat(*key, self.sent[self.sent.len() - 1 - back]) {
            Ok(()) | Err(ClientError::NotOpen | ClientError::Log(LogError::Full { .. })) => Ok(()),
            Err(error) => Err(self.broken(format_args!("{error}"))),
        }
    }

    fn take(
        &mut self,
        incoming: &Incoming<'_>,
        application: &impl SystemUnderTest,
        answers: &ReferenceAnswers,
    ) -> Result<(), Violation> {
        match incoming {
            Incoming::Opened { .. } => Ok(()),
            Incoming::Reply { reply, first, .. } => {
                let taken = self.reply(reply, *first, application, answers);
                taken.inspect_err(|_| self.mismatch_sequence = Some(reply.sequence))
            }
            Incoming::Notice { notice, .. } => {
                let (number, said) = (notice.session_seq, ExpectedReply::of(notice));
                let known = answers.notices.get(&(self.session.unwrap_or(0), number));
                if known == Some(&said) {
                    return Ok(());
                }
                self.mismatch_sequence = Some(notice.sequence);
                Err(self.broken(format_args!("notice {number} is {said:?}; the service has sent {known:?}")))
            }
            Incoming::SessionLost { .. } => Err(self.broken(format_args!("its session is lost"))),
        }
    }

    fn reply(
        &mut self,
        reply: &Reply<'_>,
        is_first: bool,
        application: &impl SystemUnderTest,
        answers: &ReferenceAnswers,
    ) -> Result<(), Violation> {
        let number = reply.session_seq;
        let session = self.session.unwrap_or(0);
        self.resolved += u64::from(self.queried.remove(&number));
        if let Some(refusal) = reply.refusal.as_ref().filter(|_| reply.sequence == 0) {
            // Correct for a number before the client's window.
            let later = answers.replies.range((session, number + 1)..=(session, u64::MAX)).count();
            let is_behind = later >= self.window_commands as usize && refusal.detail > number;
            if refusal.code == RefusalCode::ReplyExpired && !is_first && is_behind {
                return Ok(());
            }
            return Err(self.broken(format_args!("command {number} is refused: {:?} {}", refusal.code, refusal.text)));
        }
        let said = ExpectedReply::of(reply);
        if let Some(before) = self.replies.get(&number).filter(|before| **before != said) {
            return Err(self.broken(format_args!("the reply to {number} was {before:?} and is {said:?} now")));
        }
        match answers.replies.get(&(session, number)) {
            Some(known) if *known == said => {}
            Some(known) => {
                return Err(
                    self.broken(format_args!("the reply to {number} is {said:?}; the service has said {known:?}"))
                );
            }
            None => return Err(self.broken(format_args!("a reply to {number}, which is not released"))),
        }
        if reply.refusal.is_some_and(|refusal| refusal.code == RefusalCode::NotACommand) {
            let is_none = !is_first && !self.sent.contains(&number);
            return if is_none { Ok(()) } else { Err(self.broken(format_args!("{number} is said to be no command"))) };
        }
        let Some(index) = self.sent.iter().position(|sent| *sent == number) else {
            return Err(self.broken(format_args!("a reply to {number}, which begins no command")));
        };
        let had_it = self.replies.insert(number, said).is_some();
        self.repeated += u64::from(had_it);
        if is_first && had_it {
            return Err(self.broken(format_args!("the reply to {number} is handed out as the first once more")));
        }
        let right = application.check_reply(self.number, index as u64, reply);
        right.map_err(|reason| self.broken(format_args!("the reply to message {index}: {reason}")))
    }

    fn opened(&mut self, answers: &ReferenceAnswers) -> Result<(), Violation> {
        let Some((client, key)) = &self.client else { return Ok(()) };
        let (session, next) = (client.session_id(*key), client.next_session_seq(*key));
        if self.session.is_some() && self.session != session {
            return Err(self.broken(format_args!("its token opens session {session:?}, and was {:?}", self.session)));
        }
        self.session = session;
        if std::mem::replace(&mut self.is_open, true) {
            return self.ask();
        }
        // First opening in this life: commands of the earlier life that are not in the stream are lost for good.
        let next = next.unwrap_or(1);
        let id = self.session.unwrap_or(0);
        let released = || answers.replies.range((id, 0)..=(id, u64::MAX)).map(|((_, number), _)| *number);
        let last = released().next_back().unwrap_or(0);
        if next <= last {
            return Err(self.broken(format_args!("its session goes on at {next}, and {last} is done")));
        }
        self.sent.retain(|number| *number < next);
        self.taken_over = self.sent.len();
        self.queried = released().rev().take(self.window_commands as usize).collect();
        self.ask()
    }
}

impl<A: SystemUnderTest> Workload<A> for ServiceClient {
    fn restart(&mut self) {
        (self.client, self.at, self.is_open, self.waits_since_ns) = (None, None, false, None);
        self.queried.clear();
    }

    fn is_done(&self) -> bool {
        Workload::<A>::acknowledged(self) >= self.messages && self.queried.is_empty()
    }

    fn is_searching(&self) -> bool {
        self.at.is_none()
    }

    fn mismatch_sequence(&self) -> Option<u64> {
        self.mismatch_sequence
    }

    fn connected_member(&self) -> Option<u64> {
        self.at
    }

    fn connect_to(&mut self, member: u64, stream: &EventStream) -> Result<(), Violation> {
        let (token, window) = (self.token(), self.window_commands);
        let connect_to = match &mut self.client {
            Some((client, _)) => {
                stream.connect(RINGS).map_err(ClientError::from).and_then(|link| client.resume_over(link))
            }
            None => stream.client(ClientOptions { link: RINGS, ..ClientOptions::default() }).and_then(|mut client| {
                let key = client.begin_session(token, window)?;
                self.client = Some((client, key));
                Ok(())
            }),
        };
        connect_to.map_err(|error| self.broken(format_args!("{error}")))?;
        self.at = Some(member);
        self.waits_since_ns = None;
        Ok(())
    }

    fn disconnect(&mut self) {
        self.at = None;
    }

    fn poll(
        &mut self,
        now_ns: u64,
        application: &A,
        answers: &ReferenceAnswers,
        random: &mut Random,
    ) -> Result<usize, Violation> {
        if self.at.is_none() {
            return Ok(0);
        }
        while self.send(application, random)? && self.is_in_haste {}
        self.repeat(random)?;
        let Some((mut client, key)) = self.client.take() else { return Ok(0) };
        let (mut outcome, mut is_opened) = (Ok(()), false);
        let polled = client.poll(64, |incoming| match incoming {
            Incoming::Opened { .. } => is_opened = true,
            _ if outcome.is_ok() => outcome = self.take(&incoming, application, answers),
            _ => {}
        });
        let awaits = client.in_flight(key) > 0 || !client.can_send(key) || !self.queried.is_empty();
        self.client = Some((client, key));
        outcome?;
        if is_opened {
            self.opened(answers)?;
        }
        let polled = match polled {
            Ok(polled) => polled,
            Err(ClientError::Disconnected { .. }) => {
                self.at = None;
                return Ok(0);
            }
            Err(error) => return Err(self.broken(format_args!("{error}"))),
        };
        if polled > 0 || !awaits {
            self.waits_since_ns = None;
        } else if now_ns - *self.waits_since_ns.get_or_insert(now_ns) > SILENCE_NS_MAX {
            self.at = None;
        }
        Ok(polled)
    }

    fn acknowledged(&self) -> u64 {
        let taken_over = self.taken_over;
        let replied = self.sent[taken_over..].iter().filter(|number| self.replies.contains_key(number)).count();
        (taken_over + replied) as u64
    }

    fn repeated(&self) -> u64 {
        self.repeated
    }

    fn resolved(&self) -> u64 {
        self.resolved
    }

    fn describe(&self) -> String {
        let (number, sent, messages, at) = (self.number, self.sent.len(), self.messages, self.at);
        let acknowledged = Workload::<A>::acknowledged(self);
        format!("  client {number}: {acknowledged} of {messages} acknowledged, {sent} sent, at member {at:?}")
    }
}
