//! [`Process`]: an application with a shipped client. Only its notes survive its death.

use super::book::{DO, REFUSE, TELL, bytes, numbers};
use super::facts::{ClientAnswer, Facts};
use super::world::{EXPIRY, MS, STEP, SimulatedEnvironment};
use gapless_client::polled::{ClientOptions, MessageType, Outcome, OwnedReply, SavedSession};
use gapless_client::session_key::CommandNumber;
use gapless_client::{ClientError, Incoming, PolledClient, Reply, SessionKey};
use gapless_log::LogError;
use gapless_sim::Random;
use gapless_transport::RingSizes;
use gapless_wire::control::RefusalCode;
use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_millis(300);
/// Time beyond a call's timeout: an attempt to connect, and a poll.
const SLACK: Duration = Duration::from_millis(2);
const WINDOWS: [u32; 5] = [1, 2, 5, 16, 64];

/// Written before a command is sent.
#[derive(Clone, Debug)]
struct SentNote {
    id: u64,
    message: MessageType,
    payload: Vec<u8>,
}

pub struct Process {
    place: SimulatedEnvironment,
    random: Random,
    pub facts: Facts,
    client: Option<(PolledClient, SessionKey)>,
    saved: SavedSession,
    sessions: u64,
    /// Commands without an outcome, by number in this session.
    notes: BTreeMap<u64, SentNote>,
    /// All commands of this session, by number.
    ids: BTreeMap<u64, u64>,
    /// Last notice taken in this session.
    taken: u64,
    /// The first notice of this life may be an earlier one.
    may_hear_again: bool,
}

impl Process {
    pub fn new(place: SimulatedEnvironment, seed: u64) -> Self {
        let mut process = Self {
            place,
            random: Random::of(seed, &[2]),
            facts: Facts::default(),
            client: None,
            saved: SavedSession::new(1, 1),
            sessions: 0,
            notes: BTreeMap::new(),
            ids: BTreeMap::new(),
            taken: 0,
            may_hear_again: true,
        };
        process.begin_session();
        process
    }

    fn begin_session(&mut self) {
        self.sessions += 1;
        self.saved = SavedSession::new(u128::from(self.sessions) << 64 | 7, self.random.pick(&WINDOWS));
        (self.notes, self.ids) = (BTreeMap::new(), BTreeMap::new());
        (self.taken, self.may_hear_again) = (0, true);
    }

    fn die(&mut self) {
        self.facts.count("deaths");
        self.client = None;
        self.may_hear_again = true;
        self.place.world().break_wire();
    }

    /// The fate of commands without an outcome is unknown.
    fn lose_session(&mut self) {
        self.facts.count("sessions lost");
        self.begin_session();
        if let Some((mut client, _)) = self.client.take() {
            match client.resume_session(&self.saved) {
                Ok(key) => {
                    self.saved = client.saved_session(key).unwrap();
                    self.client = Some((client, key));
                }
                Err(_) => self.die(),
            }
        }
    }

    /// A success takes no longer than the timeout, a time-out no less.
    fn timed<T>(&mut self, timeout: Duration, is_late: impl Fn(&T) -> bool, act: impl FnOnce(&mut Self) -> T) -> T {
        let begun_ns = self.place.world().now_ns;
        let outcome = act(self);
        let took = Duration::from_nanos(self.place.world().now_ns - begun_ns);
        assert!(took <= timeout + SLACK, "{took:?} instead of {timeout:?}");
        if is_late(&outcome) {
            self.facts.count("time-outs");
            assert!(took >= timeout, "it gave up after {took:?} of {timeout:?}");
        }
        outcome
    }

    fn live(&mut self) -> bool {
        if self.client.is_some() {
            return true;
        }
        let link = RingSizes { command_ring_bytes: 64 << 10, reply_ring_bytes: 64 << 10 };
        let options = ClientOptions { timeout: TIMEOUT, link, ..ClientOptions::default() };
        let Ok(mut client) = PolledClient::connect_in(Box::new(self.place.clone()), options) else { return false };
        let saved = self.saved;
        let is_late = |resumed: &Result<_, _>| matches!(resumed, Err(ClientError::TimedOut { .. }));
        let key = match self.timed(TIMEOUT, is_late, |_| client.resume_session(&saved)) {
            Ok(key) => key,
            Err(ClientError::NoSuchSession(lost)) => {
                self.client = Some((client, lost));
                self.lose_session();
                return self.client.is_some();
            }
            // Another incarnation of the stream.
            Err(ClientError::OtherStream { .. }) => {
                self.lose_session();
                return false;
            }
            Err(ClientError::TimedOut { .. } | ClientError::Disconnected { .. }) => return false,
            Err(error) => panic!("{error}"),
        };
        self.saved = SavedSession::from_bytes(&client.saved_session(key).unwrap().to_bytes()).unwrap();
        let of = |saved: &SavedSession| (saved.session, saved.seen.identity);
        assert!(saved.session == 0 || of(&saved) == of(&self.saved));
        self.client = Some((client, key));
        // Against advice: an acknowledgement of notices may take the number of a command that has not arrived.
        while self.random.happens_per_100_000(30_000) {
            self.poll();
        }
        self.settle();
        self.client.is_some()
    }

    pub fn settle(&mut self) {
        let sessions = self.sessions;
        for (number, note) in self.notes.clone() {
            if self.sessions != sessions {
                return;
            }
            let mut sends = self.random.happens_per_100_000(50_000);
            loop {
                if sends && !self.send_as(number, &note) {
                    break;
                }
                let Some(outcome) = self.outcome(number) else { return };
                if outcome == QueryOutcome::NotArrived && self.random.happens_per_100_000(50_000) {
                    // The command is sent after all, under its number.
                    sends = true;
                    continue;
                }
                break;
            }
        }
    }

    /// False if it was not sent.
    fn send_as(&mut self, number: u64, note: &SentNote) -> bool {
        let Some((client, key)) = &mut self.client else { return false };
        self.facts.sent_again(note.id);
        // A process learns only in the call that its session is lost.
        let session = client.session_id(*key).unwrap_or(self.saved.session);
        let number_of = CommandNumber { session, session_seq: number };
        match client.send_as(*key, number_of, note.message, &note.payload) {
            Ok(()) => {
                self.facts.count("sent under its number");
                self.notes.insert(number, note.clone());
                self.ids.insert(number, note.id);
                true
            }
            // The number belongs to another command or to nothing.
            Err(ClientError::NotSent { .. } | ClientError::Option { option: "session_seq", .. }) => {
                self.facts.say(note.id, ClientAnswer::Never);
                self.forget(number);
                false
            }
            Err(ClientError::WindowFull { .. } | ClientError::Log(LogError::Full { .. }) | ClientError::NotOpen) => {
                false
            }
            Err(ClientError::NoSuchSession(_)) => {
                self.lose_session();
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn forget(&mut self, number: u64) {
        self.notes.remove(&number);
        self.ids.remove(&number);
    }

    fn timeout(&mut self) -> Duration {
        let longest = self.random.pick(&[2, 30, 300, 1_000]);
        Duration::from_millis(1 + self.random.below(longest))
    }

    /// `None` without one, for any reason.
    fn outcome(&mut self, number: u64) -> Option<QueryOutcome> {
        let timeout = self.timeout();
        let (mut client, key) = self.client.take()?;
        let is_late = |outcome: &Result<Outcome, _>| {
            matches!(outcome, Ok(Outcome::NotYetDone) | Err(ClientError::OutcomeUnknown { .. } | ClientError::NotOpen))
        };
        let outcome = self.timed(timeout, is_late, |_| client.outcome(key, number, timeout));
        let next = client.next_session_seq(key);
        self.client = Some((client, key));
        let Some(id) = self.ids.get(&number).copied() else {
            if matches!(outcome, Ok(Outcome::NoCommand { .. })) {
                self.facts.count("no command");
            }
            let is_any =
                matches!(outcome, Ok(Outcome::Done(_) | Outcome::Refused { .. } | Outcome::ReplyTooLong { .. }));
            assert!(!is_any, "{number} was never sent, and has the outcome {outcome:?}");
            return None;
        };
        match outcome {
            Ok(Outcome::Done(reply)) => self.done(number, id, &reply.payload),
            Ok(Outcome::Refused { code, detail, .. }) => self.refused(number, id, code, detail),
            Ok(Outcome::NotYetDone) => {
                self.facts.count("not yet done");
                self.facts.say(id, ClientAnswer::WillBe);
            }
            Ok(Outcome::NotArrived { next_session_seq }) => {
                self.facts.count("not arrived");
                assert!(next_session_seq <= number);
                self.facts.say(id, ClientAnswer::Never);
                self.forget(number);
                return Some(QueryOutcome::NotArrived);
            }
            Ok(Outcome::NoLongerKept { first_kept }) => {
                self.facts.count("no longer kept");
                let window = u64::from(self.saved.window_messages);
                let next = next.unwrap();
                assert!(
                    number < first_kept && number + window < next,
                    "{number} of {next}, window {window}: {first_kept}"
                );
                if !self.facts.is_refused(id) {
                    self.facts.say(id, ClientAnswer::WillBe);
                }
                self.notes.remove(&number);
            }
            Ok(Outcome::NoCommand { .. }) => {
                self.facts.count("no command");
                self.facts.say(id, ClientAnswer::Never);
                self.forget(number);
            }
            Err(ClientError::OutcomeUnknown { session_seq, .. }) => {
                self.facts.count("outcome unknown");
                assert_eq!(session_seq, number);
            }
            Err(ClientError::NotOpen | ClientError::Disconnected { .. } | ClientError::TimedOut { .. }) => {}
            Err(ClientError::NoSuchSession(_)) => {
                self.lose_session();
                return None;
            }
            other => panic!("{other:?}"),
        }
        Some(QueryOutcome::Other)
    }

    fn done(&mut self, number: u64, id: u64, payload: &[u8]) {
        self.facts.count("done");
        let (said, place) = numbers(payload);
        assert_eq!(said, id, "the reply to {number} belongs to another command");
        self.facts.say(id, ClientAnswer::Done(place));
        self.notes.remove(&number);
    }

    fn refused(&mut self, number: u64, id: u64, code: RefusalCode, detail: u64) {
        self.facts.count("refused");
        assert!(self.facts.is_refused(id), "{number}: {code:?}");
        assert_eq!((code, detail), (RefusalCode::Rejected, id), "the refusal of {number} belongs to another command");
        self.facts.say(id, ClientAnswer::Never);
        self.notes.remove(&number);
    }

    fn hear(&mut self, incoming: &Incoming<'_>) {
        match incoming {
            Incoming::Reply { reply, .. } => self.hear_reply(reply),
            Incoming::Notice { notice, .. } => {
                let number = notice.session_seq;
                let is_due = number == self.taken + 1;
                let is_again = self.may_hear_again && number <= self.taken;
                assert!(is_due || is_again, "notice {number} after {}", self.taken);
                assert_eq!(numbers(notice.payload).0, number, "notice {number} has other content");
                self.facts.count(if is_due { "notices" } else { "notices told again" });
                (self.taken, self.may_hear_again) = (number, false);
            }
            Incoming::SessionLost { .. } => self.facts.count("losses told by a poll"),
            Incoming::Opened { .. } => {}
        }
    }

    fn hear_reply(&mut self, reply: &Reply<'_>) {
        let number = reply.session_seq;
        match (self.ids.get(&number).copied(), &reply.refusal) {
            (Some(id), None) => self.done(number, id, reply.payload),
            (Some(id), Some(refusal)) if refusal.code == RefusalCode::Rejected => {
                self.refused(number, id, refusal.code, refusal.detail);
            }
            (_, Some(refusal)) if [RefusalCode::ReplyExpired, RefusalCode::NotACommand].contains(&refusal.code) => {}
            (None, _) => panic!("a reply to {number}, which was never sent: {reply:?}"),
            (_, Some(refusal)) => panic!("{number}: {refusal:?}"),
        }
    }

    pub fn poll(&mut self) {
        let Some((mut client, key)) = self.client.take() else { return };
        let most = 1 + self.random.below(100) as usize;
        let mut is_lost = false;
        let polled = client.poll(most, |incoming| {
            let (Incoming::Reply { session, .. }
            | Incoming::Notice { session, .. }
            | Incoming::Opened { session }
            | Incoming::SessionLost { session }) = incoming;
            if session == key {
                is_lost |= matches!(incoming, Incoming::SessionLost { .. });
                self.hear(&incoming);
            }
        });
        let waited = polled.and_then(|_| client.wait(STEP * 5));
        self.client = Some((client, key));
        if is_lost {
            return self.lose_session();
        }
        match waited {
            Ok(()) => {}
            Err(ClientError::Disconnected { .. }) => self.reconnect(),
            Err(error) => panic!("{error}"),
        }
    }

    fn reconnect(&mut self) {
        let Some((mut client, key)) = self.client.take() else { return };
        let is_late = |outcome: &Result<_, _>| outcome.is_err();
        let outcome = self.timed(TIMEOUT, is_late, |_| client.reconnect());
        let is_lost = outcome.is_ok() && client.saved_session(key).is_none();
        self.client = Some((client, key));
        match outcome {
            Ok(()) => self.facts.count("reconnects"),
            Err(ClientError::TimedOut { .. } | ClientError::Disconnected { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if is_lost {
            self.lose_session();
        }
    }

    fn command(&mut self) -> SentNote {
        let (message, notices) = match self.random.below(10) {
            0 | 1 => (REFUSE, 0),
            2 | 3 => (TELL, 1 + self.random.below(60)),
            _ => (DO, 0),
        };
        let id = self.facts.begin(message == REFUSE);
        let mut payload = bytes(id, notices).to_vec();
        // Sometimes of several frames.
        payload.resize(
            16 + if self.random.happens_per_100_000(10_000) { self.random.below(12_000) as usize } else { 0 },
            0,
        );
        SentNote { id, message, payload }
    }

    /// No note of a command that may be sent again has the next number.
    fn is_free(&self) -> bool {
        let next = self.client.as_ref().and_then(|(client, key)| client.next_session_seq(*key));
        next.is_some_and(|next| self.notes.range(next..).next().is_none())
    }

    fn noted(&mut self) {
        let note = self.command();
        let Some((client, key)) = &self.client else { return };
        let Some(CommandNumber { session_seq: number, .. }) = client.number_for(*key, note.payload.len()) else {
            return;
        };
        if !self.send_as(number, &note) {
            return self.facts.say(note.id, ClientAnswer::Never);
        }
        if self.random.happens_per_100_000(60_000) {
            self.outcome(number);
        }
    }

    fn call(&mut self) {
        let SentNote { id, message, payload } = self.command();
        let timeout = self.timeout();
        let Some((mut client, key)) = self.client.take() else { return };
        let is_late = |outcome: &Result<OwnedReply, _>| matches!(outcome, Err(ClientError::OutcomeUnknown { .. }));
        // Includes the wait before it can send.
        let outcome = self.timed(timeout, is_late, |_| client.call(key, message, &payload, timeout));
        // If sent, the command has the last number of the session.
        let number = client.next_session_seq(key).map(|next| next - 1);
        self.client = Some((client, key));
        match outcome {
            Ok(reply) => {
                self.facts.count("calls done");
                let (said, place) = numbers(&reply.payload);
                assert_eq!(said, id, "the reply of a call belongs to another command");
                self.facts.say(id, ClientAnswer::Done(place));
                self.ids.extend(number.map(|number| (number, id)));
            }
            Err(ClientError::Refused { code, detail, .. }) => {
                self.facts.count("calls refused");
                assert_eq!((code, detail), (RefusalCode::Rejected, id));
                assert!(self.facts.is_refused(id));
                self.facts.say(id, ClientAnswer::Never);
                self.ids.extend(number.map(|number| (number, id)));
            }
            Err(ClientError::OutcomeUnknown { session_seq, .. }) => {
                self.facts.count("calls unknown");
                self.ids.insert(session_seq, id);
                self.notes.insert(session_seq, SentNote { id, message, payload });
            }
            Err(ClientError::WindowFull { .. } | ClientError::Log(LogError::Full { .. }) | ClientError::NotOpen) => {
                self.facts.count("calls not sent");
                self.facts.say(id, ClientAnswer::Never);
            }
            Err(ClientError::NoSuchSession(_)) => self.lose_session(),
            // Lost while it waited for room.
            Err(ClientError::Disconnected { .. } | ClientError::TimedOut { .. }) => {
                self.facts.say(id, ClientAnswer::Never)
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub fn act(&mut self) {
        if !self.live() {
            return self.rest(Duration::from_millis(20));
        }
        match self.random.below(100) {
            0..60 if !self.is_free() => self.settle(),
            0..35 => self.noted(),
            35..60 => self.call(),
            60..85 => self.poll(),
            85..88 => self.settle(),
            88..90 => self.reconnect(),
            90..94 => self.die(),
            94 => self.rest(EXPIRY + Duration::from_secs(2)),
            _ => {
                let next = self.client.as_ref().and_then(|(client, key)| client.next_session_seq(*key)).unwrap_or(1);
                let any = self.random.below(next + 3);
                self.outcome(any);
            }
        }
    }

    pub fn rest(&mut self, time: Duration) {
        let until_ns = self.place.world().now_ns + time.as_nanos() as u64;
        while self.place.world().now_ns < until_ns {
            self.place.world().step(STEP);
        }
    }

    /// Each command has its outcome, and every notice was taken.
    pub fn is_settled(&self) -> bool {
        let world = self.place.world();
        let pages = world.pages.lock().unwrap();
        let told = pages.told.get(&self.saved.session).copied().unwrap_or(0);
        self.client.is_some() && self.notes.is_empty() && self.taken == told
    }

    /// Runs without faults until everything has arrived.
    pub fn come_to_rest(&mut self) {
        let until_ns = self.place.world().now_ns + 60_000 * MS;
        while !self.is_settled() {
            assert!(self.place.world().now_ns < until_ns, "not everything has arrived: {:?}", self.notes);
            if !self.live() {
                self.rest(Duration::from_millis(20));
                continue;
            }
            self.settle();
            self.poll();
            // A client learns of lost notices only when it reconnects.
            if self.random.happens_per_100_000(5_000) {
                self.reconnect();
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueryOutcome {
    NotArrived,
    Other,
}
