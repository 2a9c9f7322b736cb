//! A nondeterministic service is found, with the sequence after which its replicas differ.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_sim::{Application, ClusterShape, Options, Random, simulate};
use gapless_wire::Encoding;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

const SCHEMA: u32 = 9 << 16 | 1;
static REPLICAS: AtomicU64 = AtomicU64::new(0);
static ALONE: RwLock<()> = RwLock::new(());

#[derive(Clone, Copy, PartialEq)]
enum PlantedFault {
    Nothing,
    State,
    Reply,
    /// The ninth message gets another reply from services of restarted members.
    ReplyAfterStart,
}

/// First starts of the members, and the reference.
const FIRST_SERVICES: u64 = 4;

/// Counts or answers the ninth message differently, by the planted fault.
struct Count {
    messages: u64,
    planted: PlantedFault,
    who: u64,
}

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |count: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            count.messages += 1;
            match count.planted {
                PlantedFault::State if count.messages == 9 => count.messages += 1000 + count.who,
                PlantedFault::Reply if count.messages == 9 => {
                    let message = MessageType { schema: SCHEMA, encoding: Encoding::Opaque };
                    context.reply_with(message, &count.who.to_le_bytes())?;
                }
                PlantedFault::ReplyAfterStart if count.messages == 9 => {
                    let message = MessageType { schema: SCHEMA, encoding: Encoding::Opaque };
                    context.reply_with(message, &[u8::from(count.who >= FIRST_SERVICES)])?;
                }
                _ => {}
            }
            Ok(())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.messages.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.messages = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes are expected")?);
        Ok(())
    }
}

struct Counting {
    planted: PlantedFault,
}

impl Application for Counting {
    type Service = Count;

    fn service(&self) -> Count {
        Count { messages: 0, planted: self.planted, who: REPLICAS.fetch_add(1, Ordering::Relaxed) }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }
}

#[test]
fn differing_sequence_is_named() {
    let _together = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    simulate(&Counting { planted: PlantedFault::Nothing }, &options, 5).unwrap();
    let failure = simulate(&Counting { planted: PlantedFault::State }, &options, 5).unwrap_err();
    let reason = &failure.reason;
    assert!(reason.contains("has another state on member"), "{failure}");
    let first = reason.lines().next().unwrap();
    let sequence: u64 = first.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(reason.contains("message: schema 9 template 1, 8 bytes"), "{failure}");
    assert!(reason.contains("\n  folded once more, the snapshots of the state part at byte "), "{failure}");
    // Nine messages, a mark and two sessions are before it.
    assert!((9..=16).contains(&sequence), "{failure}");
}

#[test]
fn replay_difference_names_command() {
    let shape = Some(ClusterShape { full: 3, witnesses: 0 });
    let options = Options { messages: 10, faults_ms: 1_000, shape, ..Options::default() };
    // Other tests of this process make services, too.
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    // In other runs a restarted member handles the message first, and its client complains.
    let replays = "does not start: it replays its journal, and the handlers put out something else for the frames ";
    let failure = (1..200).find_map(|seed| {
        REPLICAS.store(0, Ordering::Relaxed);
        let failure = simulate(&Counting { planted: PlantedFault::ReplyAfterStart }, &options, seed).err()?.to_string();
        failure.contains(replays).then_some(failure)
    });
    let failure = failure.unwrap();
    let lines: Vec<_> = failure.lines().collect();
    assert!(lines[1].starts_with("  sequence ") && lines[1].contains(": command "), "{failure}");
    assert!(lines[2].starts_with("  message: schema 9 template 1, 8 bytes 0"), "{failure}");
    assert!(lines[3].starts_with("  folded once more, the replies, notices or timers part"), "{failure}");
}

#[test]
fn reply_difference_shows_both_texts() {
    let _together = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    let failure = simulate(&Counting { planted: PlantedFault::Reply }, &options, 5).unwrap_err();
    let reason = &failure.reason;
    let lines: Vec<_> = reason.lines().collect();
    assert_eq!(lines.len(), 7, "{failure}");
    assert!(lines[1].starts_with("  sequence ") && lines[1].contains(": command "), "{failure}");
    assert_eq!(lines[2], "  message: schema 9 template 1, 8 bytes 0700000000000000", "{failure}");
    assert_eq!(lines[3], "  folded once more, the replies, notices or timers part:", "{failure}");
    let said = |line: &str, side: &str| line.starts_with(&format!("  {side}reply to command 8 of session "));
    assert!(said(lines[4], "in one:     ") && said(lines[5], "in another: "), "{failure}");
    let mark = lines[6].len() - 1;
    assert!(lines[6].ends_with('^') && lines[4][..mark] != lines[5][..mark + 1], "{failure}");
    let prefix = |line: &str| line.chars().skip(14).take(mark - 14).collect::<String>();
    assert_eq!(prefix(lines[4]), prefix(lines[5]), "{failure}");
}
