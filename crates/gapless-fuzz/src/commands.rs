//! An answer is read back as it stands in the stream, by the reader of the bus and by an independent one.

use crate::input::{FuzzInput, assert_says_something};
use gapless_bus_checker::Decision as Checked;
use gapless_cqrs::bare_writer::{BareResult, BareWriter};
use gapless_cqrs::transaction::RecordedEvents;
use gapless_cqrs::{
    Aggregate, CommandHandler, CommandModel, Creation, Decision, HandlerContext, HandlerError, Message, TypeKey,
};
use gapless_engine::transaction_service::{changes_of, write_done};
use serde::{Deserialize, Serialize};

const LENGTH_MAX: usize = 1 << 16;

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
enum Ask {
    Add(u64),
    Name(String),
    Repeat(u16),
    Refuse,
}

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
#[message(version = 2)]
enum Happened {
    Added(u64),
    Named(String),
    #[message(since = 2)]
    Repeated,
}

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
struct No(u64);

#[derive(Clone)]
struct Sum(u64);

impl Aggregate for Sum {
    const NAME: &'static str = "sum";
    type Id = u64;
    type Command = Ask;
    type Event = Happened;
    type Refusal = No;

    fn new(_: &u64) -> Self {
        Self(0)
    }

    fn creation(_: &Ask) -> Creation {
        Creation::CreatesIfMissing
    }

    fn decide(&self, command: Ask, decision: &mut Decision<'_, Happened>) -> Result<(), No> {
        match command {
            Ask::Add(number) => _ = decision.emit(Happened::Added(number)).tag("number", number.to_string()),
            Ask::Name(name) => _ = decision.emit(Happened::Named(name)),
            Ask::Repeat(times) => (0..times).for_each(|_| _ = decision.emit(Happened::Repeated)),
            Ask::Refuse => return Err(No(self.0)),
        }
        Ok(())
    }

    fn apply(&mut self, event: &Happened) {
        if let Happened::Added(number) = event {
            self.0 = self.0.wrapping_add(*number);
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, Message)]
struct AddToBoth(u64, u64);

struct BothHandler;

impl CommandHandler for BothHandler {
    type Command = AddToBoth;
    type Reply = No;
    type Refusal = No;

    fn handle(
        &self,
        AddToBoth(first, second): AddToBoth,
        work: &mut HandlerContext<'_>,
    ) -> Result<No, HandlerError<No>> {
        for id in [first, second] {
            work.execute::<Sum>(&id, Ask::Add(1)).map_err(|undone| undone.refuse(|_| No(id)))?;
        }
        Ok(No(work.state::<Sum>(&first)?.map_or(0, |sum| sum.0)))
    }
}

/// Creates a writer with an aggregate and a handler.
///
/// # Panics
/// Never: the model is valid.
#[must_use]
pub fn writer() -> BareWriter {
    BareWriter::new(CommandModel::new().aggregate::<Sum>().handler(BothHandler)).expect("the model is one")
}

/// Each command follows its length of two bytes; before them, bit 0 of a byte says that the heads are repaired.
pub fn envelope(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let is_healed = input.byte() & 1 != 0;
    let mut writer = writer();
    while !input.is_empty() {
        let length = usize::from(input.u16());
        let mut command = input.bytes(length).to_vec();
        if is_healed && command.len() >= 16 {
            (command[0], command[1], command[15]) = (1, command[1] & 3, 0);
            let key = if command[4] & 1 == 0 { TypeKey::of(Sum::NAME) } else { TypeKey::NONE };
            let name = if key == TypeKey::NONE { AddToBoth::TYPE_NAME } else { Ask::TYPE_NAME };
            command[4..8].copy_from_slice(&key.0.to_le_bytes());
            command[8..12].copy_from_slice(&TypeKey::of(name).0.to_le_bytes());
        }
        match writer.decide(&command, LENGTH_MAX) {
            BareResult::Answered(answer, changes) => {
                assert!(answer.len() + changes.len() <= LENGTH_MAX, "a transaction is longer than it may be");
                let mut transaction = Vec::new();
                write_done(&mut transaction, 1, answer, changes);
                assert_eq!(changes_of(&transaction), Ok(Some(changes)));
                let Ok(Checked::Answered { answer, events, .. }) = Checked::read(&transaction) else {
                    panic!("what the writer has made is no transaction: {transaction:?}");
                };
                // The answer of an earlier command is repeated without its events.
                assert!(events.is_empty() || events.len() == answer.events as usize, "{answer:?}: {}", events.len());
            }
            BareResult::Failed(text) => assert_says_something(&text),
            BareResult::Later => {}
        }
    }
}

pub fn transaction(bytes: &[u8]) {
    let read = || {
        let mut all = Vec::new();
        let mut events = RecordedEvents::read(7, bytes)?;
        let _ = events.headers();
        while let Some(event) = events.next_event()? {
            assert_eq!(usize::from(event.position.ordinal), all.len());
            let tags: Vec<_> = event.tags().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
            all.push((
                event.event.0,
                event.version,
                event.aggregate.0,
                event.id.to_vec(),
                tags,
                event.payload.to_vec(),
            ));
        }
        Ok::<_, gapless_wire::fields::FieldError>((events.identity(), all))
    };
    let read = read();
    if let Err(error) = &read {
        assert_says_something(error);
    }
    let mut answer = [0; 32];
    answer[0] = 1;
    let mut whole = Vec::new();
    write_done(&mut whole, 1, &answer, bytes);
    match (Checked::read(&whole), read) {
        (Ok(Checked::Answered { identity, events, .. }), Ok((read_identity, read_events))) => {
            assert_eq!(identity.map(|it| (it.identifier, it.hash)), read_identity.map(|it| (it.identifier, it.hash)));
            let events = events.into_iter().map(|event| {
                (event.event, u32::from(event.version), event.aggregate, event.id, event.tags, event.payload)
            });
            assert!(events.eq(read_events), "two readers have read other events");
        }
        (Ok(_), Err(_)) => assert!(bytes.is_empty(), "one reader refuses what the other reads"),
        (Ok(Checked::Failed { .. }), Ok(_)) => unreachable!("it was written as done"),
        (Err(reason), _) => assert_says_something(&reason),
    }
}

/// Returns commands in the form of a bus, for seeds.
///
/// # Panics
/// Never: all can be encoded.
#[must_use]
pub fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let headers = gapless_cqrs::Headers::default().with("user", "x");
    let draft = |ask| bytes_of(Some(5), ask, &[], None, None);
    let encoded = |headers: &gapless_cqrs::Headers| {
        let mut bytes = Vec::new();
        headers.encode(&mut bytes).expect("they are short");
        bytes
    };
    let mut both = Vec::new();
    AddToBoth(5, 6).encode(&mut both).expect("it can be encoded");
    vec![
        ("add", draft(&Ask::Add(300))),
        ("name", bytes_of(Some(6), &Ask::Name("somebody".to_owned()), &encoded(&headers), None, None)),
        ("repeat", draft(&Ask::Repeat(3))),
        ("refused", draft(&Ask::Refuse)),
        ("identified", bytes_of(Some(5), &Ask::Add(1), &encoded(&headers), Some(1 << 100), None)),
        ("identified-again", bytes_of(Some(5), &Ask::Add(1), &[], Some(1 << 100), None)),
        ("identified-other", bytes_of(Some(5), &Ask::Add(2), &[], Some(1 << 100), None)),
        ("expecting", bytes_of(Some(5), &Ask::Add(1), &[], Some(7), Some(9))),
        ("to-both", head(TypeKey::NONE, AddToBoth::TYPE_NAME, &[], &[], (None, None), &both)),
    ]
}

fn bytes_of(id: Option<u64>, ask: &Ask, headers: &[u8], identifier: Option<u128>, expected: Option<u64>) -> Vec<u8> {
    let mut payload = Vec::new();
    ask.encode(&mut payload).expect("it can be encoded");
    let id = id.map_or(Vec::new(), |id| id.to_be_bytes().to_vec());
    head(TypeKey::of(Sum::NAME), Ask::TYPE_NAME, headers, &id, (identifier, expected), &payload)
}

fn head(
    aggregate: TypeKey,
    command: &str,
    headers: &[u8],
    id: &[u8],
    (identifier, expected): (Option<u128>, Option<u64>),
    payload: &[u8],
) -> Vec<u8> {
    let flags = u8::from(identifier.is_some()) | u8::from(expected.is_some()) << 1;
    let mut bytes = vec![1, flags, 1, 0];
    bytes.extend_from_slice(&aggregate.0.to_le_bytes());
    bytes.extend_from_slice(&TypeKey::of(command).0.to_le_bytes());
    bytes.extend_from_slice(&(headers.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&[id.len() as u8, 0]);
    identifier.iter().for_each(|identifier| bytes.extend_from_slice(&identifier.to_le_bytes()));
    expected.iter().for_each(|expected| bytes.extend_from_slice(&expected.to_le_bytes()));
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(id);
    bytes.extend_from_slice(payload);
    bytes
}
