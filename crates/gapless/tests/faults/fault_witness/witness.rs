use super::bank::{ASK, MOVE, MOVE_LENGTH, link};
use super::process::ServiceProcess;
use gapless::client::LogError;
use gapless::prelude::*;
use gapless_testkit::random::Random;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

const SESSIONS: usize = 4;
const WINDOW_MESSAGES: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(60);
const ATTEMPT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    sequence: u64,
    timestamp_ns: u64,
    schema: u32,
    payload: Vec<u8>,
}

struct Sent {
    payload: Vec<u8>,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    ServiceGone,
    Answered,
}

pub struct Witness {
    client: PolledClient,
    keys: Vec<SessionKey>,
    sent: HashMap<(SessionKey, u64), Sent>,
    acknowledged: HashMap<SessionKey, Vec<u64>>,
    pub repeats_checked: u64,
    problem: Option<String>,
}

impl Witness {
    pub fn connect(socket: &Path, random: &mut Random) -> Result<Self, String> {
        let tokens: Vec<u128> = (0..SESSIONS).map(|_| u128::from(random.below(u64::MAX)) << 32 | 1).collect();
        let deadline = Instant::now() + PATIENCE;
        let try_once = || -> Result<(PolledClient, Vec<SessionKey>), ClientError> {
            let options = ClientOptions { timeout: ATTEMPT, ..ClientOptions::default() };
            let mut client = PolledClient::connect(socket, options)?;
            let keys =
                tokens.iter().map(|token| client.open_session(*token, WINDOW_MESSAGES)).collect::<Result<_, _>>();
            Ok((client, keys?))
        };
        let (client, keys) = loop {
            match try_once() {
                Ok(connected) => break connected,
                Err(error) if Instant::now() > deadline => return Err(text(error)),
                Err(_) => {}
            }
        };
        let acknowledged = keys.iter().map(|key| (*key, Vec::new())).collect();
        Ok(Self { client, keys, sent: HashMap::new(), acknowledged, repeats_checked: 0, problem: None })
    }

    pub fn acknowledged_count(&self) -> usize {
        self.acknowledged.values().map(Vec::len).sum()
    }

    pub fn go_on(&mut self, service: &mut ServiceProcess) -> Result<Ended, String> {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.client.reconnect() {
            if !service.is_alive() {
                return Ok(Ended::ServiceGone);
            }
            // Acknowledged commands are missing: a retry would not find them.
            let is_certain = matches!(error, ClientError::OtherHistory { .. });
            if is_certain || Instant::now() > deadline {
                return Err(format!("a live service accepts no reconnection: {error}"));
            }
        }
        if let Some(key) =
            self.keys.iter().find(|key| self.client.in_flight(**key) == 0 && !self.client.can_send(**key))
        {
            return Err(format!("the service has forgotten session {key:?} or what it acknowledged there"));
        }
        let mut asked: Vec<(SessionKey, u64)> = Vec::new();
        for key in self.keys.clone() {
            // Later commands have acknowledged older replies.
            let newest = self.sent.keys().filter(|(of, _)| *of == key).map(|(_, number)| *number).max().unwrap_or(0);
            let is_kept = |number: &u64| number + u64::from(WINDOW_MESSAGES) > newest;
            let acknowledged = self.acknowledged[&key].iter().rev().copied();
            for number in acknowledged.filter(is_kept).take(WINDOW_MESSAGES as usize).collect::<Vec<_>>() {
                match self.client.repeat(key, number) {
                    Ok(()) => asked.push((key, number)),
                    Err(error) => return self.gone_or(error),
                }
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while !asked.is_empty() {
            let mut again = Vec::new();
            let polled = self.take_replies(&mut again);
            asked.retain(|each| !again.contains(each));
            self.repeats_checked += again.len() as u64;
            match polled {
                Ok(Ended::Answered) => {}
                other => return other,
            }
            if Instant::now() > deadline {
                return Err(format!("no reply to the repeats of {asked:?}"));
            }
        }
        Ok(Ended::Answered)
    }

    pub fn load(&mut self, random: &mut Random, wanted: usize) -> Result<Ended, String> {
        let goal = self.acknowledged_count() + wanted;
        let mut last = (self.acknowledged_count(), Instant::now());
        while self.acknowledged_count() < goal {
            for (index, key) in self.keys.clone().into_iter().enumerate() {
                // Sessions with room have acknowledged commands that can be repeated after a death.
                let most = if index % 2 == 0 { WINDOW_MESSAGES } else { random.below(4) as u32 };
                while self.client.can_send(key) && self.client.in_flight(key) < most {
                    if let Err(error) = self.send_one(key, random) {
                        match error {
                            ClientError::Log(LogError::Full { .. }) => break,
                            other => return self.gone_or(other),
                        }
                    }
                }
            }
            match self.take_replies(&mut Vec::new())? {
                Ended::ServiceGone => return Ok(Ended::ServiceGone),
                Ended::Answered if self.acknowledged_count() > last.0 => {
                    last = (self.acknowledged_count(), Instant::now());
                }
                Ended::Answered if last.1.elapsed() > PATIENCE => return Err(format!("no reply for {PATIENCE:?}")),
                Ended::Answered => {}
            }
        }
        Ok(Ended::Answered)
    }

    fn send_one(&mut self, key: SessionKey, random: &mut Random) -> Result<(), ClientError> {
        // Some commands and some replies need several frames.
        let padding = if random.below(40) == 0 { 4000 + random.below(8000) } else { random.below(400) } as usize;
        let filling = if random.below(40) == 0 { 4000 + random.below(8000) } else { random.below(300) } as u32;
        let mut payload = Vec::with_capacity(MOVE_LENGTH + padding);
        payload.extend_from_slice(&(random.below(50) as u32).to_le_bytes());
        payload.extend_from_slice(&(random.below(1000) as i64 - 400).to_le_bytes());
        payload.extend_from_slice(&filling.to_le_bytes());
        payload.extend((0..padding).map(|_| random.below(256) as u8));
        let number = self.client.enqueue(key, MOVE, payload.len(), |buffer| {
            buffer.copy_from_slice(&payload);
            Ok(payload.len())
        })?;
        self.sent.insert((key, number), Sent { payload, answer: None });
        Ok(())
    }

    fn take_replies(&mut self, again: &mut Vec<(SessionKey, u64)>) -> Result<Ended, String> {
        let Self { client, sent, acknowledged, problem, .. } = self;
        let polled = client.poll(usize::MAX, |incoming| match incoming {
            Incoming::Reply { session, reply, first } => {
                let payload = match reply.refusal {
                    None => reply.payload.to_vec(),
                    Some(refusal) => format!("{:?}: {}", refusal.code, refusal.text).into_bytes(),
                };
                let (sequence, timestamp_ns, schema) = (reply.sequence, reply.timestamp_ns, reply.schema);
                let answer = Answer { sequence, timestamp_ns, schema, payload };
                let number = reply.session_seq;
                match sent.get_mut(&(session, number)) {
                    None => *problem = Some(format!("a reply to command {number}, which was never sent")),
                    Some(Sent { answer: Some(before), .. }) => {
                        again.push((session, number));
                        if *before != answer {
                            *problem = Some(format!("command {number} was answered {before:?}, and then {answer:?}"));
                        }
                    }
                    Some(of) => {
                        if !first {
                            *problem = Some(format!("the first reply to command {number} is said to be a repeat"));
                        }
                        of.answer = Some(answer);
                        acknowledged.get_mut(&session).unwrap().push(number);
                    }
                }
            }
            Incoming::SessionLost { session } => {
                *problem = Some(format!("the service has forgotten session {session:?} or what it acknowledged there"));
            }
            Incoming::Opened { .. } | Incoming::Notice { .. } => {}
        });
        if let Some(problem) = problem.take() {
            return Err(problem);
        }
        match polled {
            Ok(0) => {}
            Ok(_) => return Ok(Ended::Answered),
            Err(error) => return self.gone_or(error),
        }
        match self.client.wait(Duration::from_millis(20)) {
            Ok(()) => Ok(Ended::Answered),
            Err(error) => self.gone_or(error),
        }
    }

    fn gone_or(&mut self, error: ClientError) -> Result<Ended, String> {
        match error {
            ClientError::Disconnected { .. } => Ok(Ended::ServiceGone),
            ClientError::Transport(_) => Ok(Ended::ServiceGone),
            other => Err(other.to_string()),
        }
    }

    /// Every command sent has one reply, the replies are those of an independent fold of the commands in their order,
    /// and so is the final state.
    pub fn check_everything(&mut self, random: &mut Random) -> Result<usize, String> {
        let deadline = Instant::now() + PATIENCE;
        while self.keys.iter().any(|key| self.client.in_flight(*key) > 0) {
            if self.take_replies(&mut Vec::new())? == Ended::ServiceGone {
                return Err("the service ended without a kill".to_owned());
            }
            if Instant::now() > deadline {
                return Err("commands without a reply".to_owned());
            }
        }
        let key = self.keys[random.below(SESSIONS as u64) as usize];
        let state = self.client.call(key, ASK, &[], PATIENCE).map_err(text)?;

        let mut order: Vec<(u64, SessionKey, &Sent)> = Vec::new();
        for ((session, number), sent) in &self.sent {
            let answer = sent.answer.as_ref().ok_or_else(|| format!("command {number} has no reply"))?;
            order.push((answer.sequence, *session, sent));
        }
        order.sort_unstable_by_key(|(sequence, ..)| *sequence);
        let mut balances: HashMap<u32, i64> = HashMap::new();
        let mut counters: HashMap<SessionKey, u64> = HashMap::new();
        let (mut chain, mut last_sequence, mut last_time) = (0, 0, 0);
        for (sequence, session, sent) in &order {
            let answer = sent.answer.as_ref().unwrap();
            if *sequence == last_sequence || answer.timestamp_ns <= last_time {
                return Err(format!("two commands at sequence {sequence}, or time does not rise"));
            }
            (last_sequence, last_time) = (*sequence, answer.timestamp_ns);
            let payload = &sent.payload;
            let account = u32::from_le_bytes(payload[..4].try_into().unwrap());
            let amount = i64::from_le_bytes(payload[4..12].try_into().unwrap());
            let filling = u32::from_le_bytes(payload[12..16].try_into().unwrap()) as usize;
            let before = balances.get(&account).copied().unwrap_or_default();
            let expected = if before + amount < 0 {
                format!("Rejected: account {account} would stand at {}", before + amount).into_bytes()
            } else {
                balances.insert(account, before + amount);
                *counters.entry(*session).or_default() += 1;
                chain = link(chain, payload);
                let mut reply = (before + amount).to_le_bytes().to_vec();
                reply.extend_from_slice(&counters[session].to_le_bytes());
                reply.extend_from_slice(&chain.to_le_bytes());
                reply.extend(std::iter::repeat_n(chain as u8, filling));
                reply
            };
            if answer.payload != expected {
                return Err(format!(
                    "at sequence {sequence} the reply is not that of the fold: something was lost or doubled"
                ));
            }
        }
        let mut expected = chain.to_le_bytes().to_vec();
        expected.extend_from_slice(&(balances.len() as u64).to_le_bytes());
        for (account, balance) in BTreeMap::from_iter(balances) {
            expected.extend_from_slice(&account.to_le_bytes());
            expected.extend_from_slice(&balance.to_le_bytes());
        }
        let by_session: BTreeMap<u64, u64> =
            counters.iter().map(|(key, counter)| (self.client.session_id(*key).unwrap(), *counter)).collect();
        for (session, counter) in by_session {
            expected.extend_from_slice(&session.to_le_bytes());
            expected.extend_from_slice(&counter.to_le_bytes());
        }
        if state.payload != expected {
            return Err("the final state is not that of the fold".to_owned());
        }
        Ok(order.len())
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
