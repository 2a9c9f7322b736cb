//! As `killed_replica_keeps_replies`, with a replicated state whose handler draws random numbers, refuses and panics at
//! random.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says what it has done")]

use crate::replica_processes;
use crate::replica_processes::{
    CLIENTS, COMMANDS, COUNTS, Cluster, HEARD, KILLS, PATIENCE, Sender, client, kill_leaders, number_of,
};
use gapless_client::ClientError;
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_cluster::config::ClusterConfig;
use gapless_engine::store::{Counter, Map, Singleton, Store, Transaction};
use gapless_engine::{Context, Reject, Replica, StateHandlers, StateOptions, StateService};
use gapless_testkit::scenarios::Module;
use gapless_transport::token::random_token;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

const REPLICA: &str = "killed_state_replica::replica";

pub fn run_as_replica_if_requested() {
    replica_processes::run_as_replica_if_requested(REPLICA, |config| {
        std::panic::set_hook(Box::new(|_| {}));
        let options = StateOptions { snapshot_interval_frames: Some(2_000), ..StateOptions::default() };
        Replica::start_state(NumberLog::new, options, config).unwrap()
    });
}

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("three_members", || survives(None))
        .scenario("with_a_witness", || survives(Some(3)))
}

gapless_engine::store_object! {
    struct Entry = 1, version 1 {
        times: u32,
        has_fired: bool,
        drawn: u64,
    }
}

gapless_engine::store_object! {
    struct Totals = 2, version 1 {
        drawn: u64,
    }
}

struct NumberLog {
    entries: Map<u64, Entry>,
    totals: Singleton<Totals>,
    heard: Counter,
    fired: Counter,
}

fn drawn() -> u64 {
    RandomState::new().hash_one(SystemTime::now())
}

impl NumberLog {
    fn new(store: &mut Store) -> Self {
        Self {
            entries: store.map(1, "entries"),
            totals: store.singleton(2, "totals"),
            heard: store.counter(3, "heard"),
            fired: store.counter(4, "fired"),
        }
    }

    fn hear(&self, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let number = number_of(payload)?;
        let drawn = drawn();
        let times = store.get(self.entries, &number).map_or(0, |entry| entry.times);
        store.insert(self.entries, number, Entry { times: times + 1, has_fired: false, drawn });
        let before = store.get(self.totals, &()).map_or(0, |totals| totals.drawn);
        store.insert(self.totals, (), Totals { drawn: before.wrapping_add(drawn) });
        store.add(self.heard, 1)?;
        if drawn.is_multiple_of(16) {
            return if drawn.is_multiple_of(32) { Err("not now".into()) } else { panic!("not now") };
        }
        context.set_numbered_timer(number, context.time_ns() + 3_000_000);
        context.reply_with(HEARD, &[number, drawn].map(u64::to_le_bytes).concat())
    }

    fn count(&self, store: &mut Transaction<'_>, _: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let drawn = store.get(self.totals, &()).map_or(0, |totals| totals.drawn);
        let counts = [store.value(self.heard) as u64, store.value(self.fired) as u64, drawn];
        context.reply_with(COUNTS, &counts.map(u64::to_le_bytes).concat())
    }
}

impl StateService for NumberLog {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(HEARD.schema, Self::hear);
        handlers.on_bytes(COUNTS.schema, Self::count);
    }

    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, _: &mut Context<'_>) -> Result<(), Reject> {
        let entry = store.get_mut(self.entries, &timer).ok_or("a timer that nobody has set")?;
        if std::mem::replace(&mut entry.has_fired, true) {
            return Err("it has fired before".into());
        }
        store.add(self.fired, 1)?;
        Ok(())
    }
}

struct Numbers {
    client: PolledClient,
    session: SessionKey,
    owner: u64,
    begun: u64,
    refused: VecDeque<u64>,
    sent: BTreeMap<u64, u64>,
    answers: BTreeMap<u64, Option<u64>>,
    drawn: BTreeMap<u64, u64>,
    again: u64,
}

impl Numbers {
    fn new(sockets: &[PathBuf], owner: u64) -> Self {
        let mut client = client(sockets);
        let session = client.open_session(random_token(), 16).unwrap();
        let (refused, sent, answers, drawn) = Default::default();
        Self { client, session, owner, begun: 0, refused, sent, answers, drawn, again: 0 }
    }
}

impl Sender for Numbers {
    fn answered(&self) -> u64 {
        self.drawn.len() as u64
    }

    fn turn(&mut self, until: u64) {
        while (self.begun < until || !self.refused.is_empty()) && self.client.can_send(self.session) {
            let number = self.refused.front().copied().unwrap_or(self.owner << 32 | (self.begun + 1));
            let encode = |buffer: &mut [u8]| {
                buffer.copy_from_slice(&number.to_le_bytes());
                Ok(8)
            };
            // Fails between two leaders.
            let Ok(session_seq) = self.client.send(self.session, HEARD, 8, encode) else { break };
            self.sent.insert(session_seq, number);
            if self.refused.pop_front().is_none() {
                self.begun += 1;
            }
        }
        let Self { sent, answers, drawn, again, refused, .. } = self;
        let outcome = self.client.poll(256, |incoming| match incoming {
            Incoming::Reply { reply, first, .. } => {
                let answer = match &reply.refusal {
                    Some(refusal) => {
                        assert!(refusal.text.contains("not now"), "{reply:?}");
                        None
                    }
                    None => {
                        assert_eq!(number_of(reply.payload).unwrap(), sent[&reply.session_seq]);
                        Some(number_of(&reply.payload[8..]).unwrap())
                    }
                };
                let before = answers.insert(reply.session_seq, answer);
                assert_eq!(first, before.is_none(), "{reply:?}");
                assert!(before.is_none_or(|before| before == answer), "the same reply again");
                *again += u64::from(!first);
                match answer {
                    _ if !first => {}
                    None => refused.push_back(sent[&reply.session_seq]),
                    Some(number) => assert!(drawn.insert(sent[&reply.session_seq], number).is_none()),
                }
            }
            Incoming::SessionLost { .. } => panic!("a session is kept over a change of leader"),
            Incoming::Opened { .. } | Incoming::Notice { .. } => {}
        });
        match outcome.and_then(|_| self.client.wait(Duration::from_millis(1))) {
            Err(ClientError::Disconnected { .. }) => self.client.reconnect().unwrap(),
            other => other.unwrap(),
        }
    }
}

fn survives(witness: Option<usize>) {
    let mut cluster = Cluster::start(REPLICA, witness);
    cluster.leader();
    let sockets = cluster.sockets();
    let mut senders: Vec<_> = (1..=CLIENTS).map(|owner| Numbers::new(&sockets, owner)).collect();
    let longest = kill_leaders(&mut cluster, &mut senders);
    for sender in &senders {
        let numbers: Vec<u64> = sender.drawn.keys().copied().collect();
        let expected: Vec<u64> = (1..=sender.begun).map(|n| sender.owner << 32 | n).collect();
        assert!(numbers == expected, "each number of client {} has its reply", sender.owner);
    }
    let sum =
        senders.iter().flat_map(|sender| sender.drawn.values()).fold(0, |sum: u64, drawn| sum.wrapping_add(*drawn));
    let all = CLIENTS * COMMANDS * KILLS as u64;
    let deadline = Instant::now() + PATIENCE;
    let sender = &mut senders[0];
    loop {
        let counts = sender.client.call(sender.session, COUNTS, &[], PATIENCE).unwrap().payload;
        let [heard, fired, drawn] = [0, 8, 16].map(|at| u64::from_le_bytes(counts[at..at + 8].try_into().unwrap()));
        assert_eq!(heard, all, "each command has had its effect once");
        assert_eq!(drawn, sum, "the effects are those that the replies tell of");
        assert!(fired <= all, "each timer fires once");
        if fired == all {
            break;
        }
        assert!(Instant::now() < deadline, "{fired} of {all} timers have fired");
    }
    let again: u64 = senders.iter().map(|sender| sender.again).sum();
    let refusals: usize =
        senders.iter().map(|sender| sender.answers.values().filter(|answer| answer.is_none()).count()).sum();
    assert!(refusals > 0, "handlers refuse and panic");
    drop(senders);
    let hash = cluster.settle();
    let last = cluster.stop();
    for member in cluster.full() {
        let config = ClusterConfig::load(cluster.file(member)).unwrap();
        let replica = Replica::start_state_by_hand(NumberLog::new, StateOptions::default(), &config).unwrap();
        assert!(replica.recovered().snapshot_sequence > 0, "{:?}", replica.recovered());
        assert_eq!(replica.state_hash(), Some(hash), "member {member}");
    }
    println!(
        "witness {witness:?}: {KILLS} leaders killed, {all} commands and timers once, {refusals} refused, {again} \
         replies again, longest silence {longest:?}, stopped at {last:?}"
    );
}
