//! A command whose handler panics on every member stops the cluster; skipped, it is refused once, and the members stay
//! equal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use crate::replicas::{Cluster, PATIENCE, wait};
use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_cluster::config::service::with_skip;
use gapless_engine::{Context, EngineError, Handlers, Reject, Service};
use gapless_schema::Encoding;
use gapless_transport::token::random_token;
use std::collections::BTreeMap;
use std::time::Duration;

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const COMMANDS: u64 = 60;
const POISON: u64 = 30;

#[derive(Default)]
struct Sum(u64);

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, |sum: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let number =
                payload.first_chunk().ok_or(Reject::from("8 bytes".to_owned())).map(|it| u64::from_le_bytes(*it))?;
            assert_ne!(number, POISON, "poison");
            sum.0 += number;
            context.reply_with(NUMBER, &sum.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn poisoned(error: &EngineError) -> u64 {
    let text = error.to_string();
    let behind = text.split_once("panicked at sequence ").unwrap_or_else(|| panic!("{text}")).1;
    assert!(text.contains("poison") && text.contains("skip this sequence"), "{text}");
    behind.split_once(' ').unwrap().0.parse().unwrap()
}

#[derive(Default)]
struct Answers {
    sums: BTreeMap<u64, u64>,
    refusals: Vec<(u64, String)>,
}

fn turn(
    client: &mut PolledClient,
    session: SessionKey,
    sent: &mut u64,
    answers: &mut Answers,
) -> Result<(), ClientError> {
    while *sent < COMMANDS && client.can_send(session) {
        let number = *sent + 1;
        let encode = |buffer: &mut [u8]| {
            buffer.copy_from_slice(&number.to_le_bytes());
            Ok(8)
        };
        if client.send(session, NUMBER, 8, encode).is_err() {
            break;
        }
        *sent = number;
    }
    client.poll(64, |incoming| {
        if let Incoming::Reply { reply, first: true, .. } = incoming {
            match reply.refusal {
                Some(refusal) => answers.refusals.push((reply.session_seq, refusal.text.to_owned())),
                None => {
                    let sum = u64::from_le_bytes(reply.payload.try_into().unwrap());
                    assert_eq!(answers.sums.insert(reply.session_seq, sum), None);
                }
            }
        }
    })?;
    client.wait(Duration::from_millis(1))
}

#[test]
fn poisoned_command_is_skipped() {
    let mut cluster = Cluster::new(3, "");
    (1..=3).for_each(|member| cluster.start(member, Sum::default()).unwrap());
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(&cluster.sockets(), options).unwrap();
    let session = client.open_session(random_token(), 8).unwrap();
    let (mut sent, mut answers) = (0, Answers::default());
    // Two members release it, so the third may not learn of it.
    let stopped = |cluster: &Cluster| -> Vec<u64> {
        cluster.members.iter().flatten().filter_map(|each| each.failure().map(|error| poisoned(&error))).collect()
    };
    let sequences = wait("the end of the members", || {
        // Fails when all members have stopped.
        let _ = turn(&mut client, session, &mut sent, &mut answers);
        Some(stopped(&cluster)).filter(|sequences| sequences.len() >= 2)
    });
    let sequence = sequences[0];
    assert!(sequences.iter().all(|each| *each == sequence), "{sequences:?}");
    // Earlier replies may still be on their way, but none to later commands.
    assert!(
        answers.refusals.is_empty() && answers.sums.keys().all(|number| *number < POISON),
        "no outputs of the command were sent"
    );
    cluster.members.iter_mut().for_each(|member| *member = None);

    let again: Vec<_> = (1..=3).filter_map(|member| cluster.start(member, Sum::default()).err()).collect();
    again.iter().for_each(|error| assert_eq!(poisoned(error), sequence));
    if again.len() < 2 {
        wait("the end of the members", || (again.len() + stopped(&cluster).len() >= 2).then_some(()));
    }
    cluster.members.iter_mut().for_each(|member| *member = None);

    for member in 1..=3 {
        let text = std::fs::read_to_string(cluster.file(member)).unwrap();
        std::fs::write(cluster.file(member), with_skip(&text, "its file", sequence).unwrap()).unwrap();
        cluster.start(member, Sum::default()).unwrap();
    }
    wait("all replies", || {
        match turn(&mut client, session, &mut sent, &mut answers) {
            Err(ClientError::Disconnected { .. }) => client.reconnect().unwrap(),
            other => other.unwrap(),
        }
        (answers.sums.len() as u64 == COMMANDS - 1 && !answers.refusals.is_empty()).then_some(())
    });
    assert_eq!(answers.refusals, [(POISON, "skipped by an operator".to_owned())]);
    let mut sum = 0;
    for number in (1..=COMMANDS).filter(|number| *number != POISON) {
        sum += number;
        assert_eq!(answers.sums[&number], sum, "command {number}");
    }
    drop(client);
    assert!((1..=3).all(|member| cluster.of(member).failure().is_none()));
    cluster.ends_equal(&[1, 2, 3]);
}

#[test]
fn cluster_fixes_its_fault_rules() {
    let mut cluster = Cluster::new(3, "[service]\non_panic = \"dead-letter\"\n");
    (1..=3).for_each(|member| cluster.start(member, Sum::default()).unwrap());
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(&cluster.sockets(), options).unwrap();
    let session = client.open_session(random_token(), 8).unwrap();
    let (mut sent, mut answers) = (0, Answers::default());
    wait("all replies", || {
        match turn(&mut client, session, &mut sent, &mut answers) {
            Err(ClientError::Disconnected { .. }) => client.reconnect().unwrap(),
            other => other.unwrap(),
        }
        (answers.sums.len() as u64 == COMMANDS - 1 && !answers.refusals.is_empty()).then_some(())
    });
    let (number, reason) = &answers.refusals[0];
    assert!(*number == POISON && reason.contains("the handler panicked: "), "{reason}");
    drop(client);
    cluster.ends_equal(&[1, 2, 3]);

    // A member whose file lacks the line would stop while the others continue, so it does not start.
    let text = std::fs::read_to_string(cluster.file(2)).unwrap();
    std::fs::write(cluster.file(2), text.replace("on_panic = \"dead-letter\"\n", "")).unwrap();
    let said = cluster.start(2, Sum::default()).unwrap_err().to_string();
    assert!(said.contains("for its whole life that a panic is a dead letter"), "{said}");
    std::fs::write(cluster.file(2), text).unwrap();
    (1..=3).for_each(|member| cluster.start(member, Sum::default()).unwrap());
    cluster.ends_equal(&[1, 2, 3]);
}
