//! Runs a service with a planted bug on simulated clusters until the replicas differ, and prints after which sequence.
//! The bug takes "the first" player of a `HashMap`, whose order differs between processes. `cargo run --release -p
//! gapless-sim --example replicas_differ`.

use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_sim::{Application, Options, Random, simulate};
use gapless_wire::Encoding;
use std::collections::{BTreeMap, HashMap};

const JOIN: u32 = 7 << 16 | 1;
const PRIZE: u32 = 7 << 16 | 2;

#[derive(Default)]
struct Game {
    players: HashMap<u64, u64>,
}

impl Service for Game {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(JOIN, |game: &mut Self, payload: &[u8], _: &mut Context<'_>| -> Result<(), Reject> {
            let player = payload.first_chunk().ok_or("a player has a number")?;
            game.players.entry(u64::from_le_bytes(*player)).or_default();
            Ok(())
        });
        handlers.on_bytes(PRIZE, |game: &mut Self, _: &[u8], _: &mut Context<'_>| -> Result<(), Reject> {
            // The bug: an unordered map has no first entry.
            if let Some(prizes) = game.players.values_mut().next() {
                *prizes += 1;
            }
            Ok(())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        // Sorted, so that equal states are equal bytes.
        for (player, prizes) in self.players.iter().collect::<BTreeMap<_, _>>() {
            state.extend_from_slice(&player.to_le_bytes());
            state.extend_from_slice(&prizes.to_le_bytes());
        }
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (numbers, []) = state.as_chunks::<16>() else { return Err("a player takes 16 bytes".to_owned()) };
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        self.players = numbers.iter().map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect();
        Ok(())
    }
}

struct Games;

impl Application for Games {
    type Service = Game;

    fn service(&self) -> Game {
        Game::default()
    }

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>) {
        let is_prize = index > 5 && random.percent(20);
        let schema = if is_prize { PRIZE } else { JOIN };
        let player = publisher << 32 | index;
        (MessageType { schema, encoding: Encoding::Opaque }, player.to_le_bytes().to_vec())
    }

    fn describe(&self, message: MessageType, payload: &[u8]) -> Option<String> {
        let player = u64::from_le_bytes(*payload.first_chunk()?);
        Some(if message.schema == JOIN { format!("Join {{ player: {player} }}") } else { "Prize".to_owned() })
    }
}

fn main() {
    for seed in 1..=10 {
        if let Err(failure) = simulate(&Games, &Options::default(), seed) {
            println!("{failure}");
            assert!(failure.reason.contains("another state"), "the planted bug was to be found, not {failure}");
            return;
        }
    }
    panic!("the replicas of a service with a planted bug were the same in ten runs");
}
