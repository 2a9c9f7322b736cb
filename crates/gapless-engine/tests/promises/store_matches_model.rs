//! Random transactions, some refused or ended by a panic, on a store and on plain maps, a second store that applies the
//! changes, and snapshots. `PROPTEST_RNG_SEED` replays a run.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_engine::store::{
    ByteKey, Counter, Map, ObjectError, OrderedMap, Queue, Singleton, Store, StoreLimits, StoreObject, Transaction,
};
use gapless_testkit::random::rounds;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

gapless_engine::store_object! {
    #[derive(Debug, PartialEq)]
    struct Account = 1, version 1 {
        balance: i64,
        history: [u64; 20],
        is_open: bool,
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Text(Vec<u8>);

impl StoreObject for Text {
    const TYPE: u64 = 2;
    const VERSION: u16 = 3;

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError> {
        if self.0.contains(&b'!') {
            return Err(ObjectError::Invalid("it shouts".to_owned()));
        }
        out.extend_from_slice(&self.0);
        Ok(())
    }

    fn decode(_: u16, bytes: &[u8]) -> Result<Self, ObjectError> {
        Ok(Self(bytes.to_vec()))
    }
}

#[derive(Clone, Copy)]
struct Handles {
    accounts: Map<u64, Account>,
    texts: OrderedMap<ByteKey, Text>,
    wide: Map<u128, Text>,
    title: Singleton<Text>,
    orders: Queue<Text>,
    total: Counter,
}

fn store() -> (Store, Handles) {
    let mut store = Store::new(StoreLimits::default());
    let handles = Handles {
        accounts: store.map(1, "accounts"),
        texts: store.ordered_map(20, "texts"),
        wide: store.map(300, "wide"),
        title: store.singleton(4, "title"),
        orders: store.queue(5, "orders"),
        total: store.counter(6, "total"),
    };
    (store, handles)
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    accounts: BTreeMap<u64, Account>,
    texts: BTreeMap<ByteKey, Text>,
    wide: BTreeMap<u128, Text>,
    title: Option<Text>,
    orders: VecDeque<Text>,
    total: i64,
}

#[derive(Clone, Debug)]
enum Step {
    Open(u64, i64),
    Change(u64, usize, u64),
    LookOnly(u64),
    Close(u64),
    Write(u8, Vec<u8>),
    Edit(u8, u8),
    Erase(u8),
    EraseRange(u8, u8),
    Wide(u8, Option<Vec<u8>>),
    Title(Option<Vec<u8>>),
    Push(Vec<u8>),
    Pop,
    Add(i64),
}

fn key(number: u8) -> ByteKey {
    ByteKey::new(&vec![b'k'; usize::from(number % 30)]).unwrap()
}

fn wide(number: u8) -> u128 {
    u128::from(number) << 90 | 7
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(b'a'..=b'z', 0..90),
        1 => proptest::collection::vec(b'a'..=b'z', 900..1100),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u64..12, any::<i64>()).prop_map(|(key, balance)| Step::Open(key, balance)),
        5 => (0u64..12, 0usize..20, any::<u64>()).prop_map(|(key, at, value)| Step::Change(key, at, value)),
        1 => (0u64..12).prop_map(Step::LookOnly),
        2 => (0u64..12).prop_map(Step::Close),
        3 => (0u8..12, text()).prop_map(|(key, text)| Step::Write(key, text)),
        3 => (0u8..12, b'a'..=b'z').prop_map(|(key, letter)| Step::Edit(key, letter)),
        2 => (0u8..12).prop_map(Step::Erase),
        1 => (0u8..12, 0u8..4).prop_map(|(from, length)| Step::EraseRange(from, length)),
        2 => (0u8..4, proptest::option::of(text())).prop_map(|(key, text)| Step::Wide(key, text)),
        1 => proptest::option::of(text()).prop_map(Step::Title),
        3 => text().prop_map(Step::Push),
        3 => Just(Step::Pop),
        2 => (-5i64..6).prop_map(Step::Add),
    ]
}

fn act(step: &Step, transaction: &mut Transaction<'_>, handles: Handles, model: &mut Model) {
    match step {
        Step::Open(key, balance) => {
            let account = Account { balance: *balance, history: [*key; 20], is_open: true };
            let was_there = transaction.insert(handles.accounts, *key, account);
            assert_eq!(was_there, model.accounts.insert(*key, account).is_some());
        }
        Step::Change(key, at, value) => {
            let account = transaction.get_mut(handles.accounts, key);
            let expected = model.accounts.get_mut(key);
            assert_eq!(account.as_deref(), expected.as_deref());
            if let (Some(account), Some(expected)) = (account, expected) {
                account.history[*at] = *value;
                expected.history[*at] = *value;
            }
        }
        Step::LookOnly(key) => {
            assert_eq!(transaction.get_mut(handles.accounts, key).copied(), model.accounts.get(key).copied());
        }
        Step::Close(key) => {
            let was_there = transaction.remove(handles.accounts, key);
            assert_eq!(was_there, model.accounts.remove(key).is_some());
            assert_eq!(transaction.get(handles.accounts, key), None);
        }
        Step::Write(number, text) => {
            transaction.insert(handles.texts, key(*number), Text(text.clone()));
            model.texts.insert(key(*number), Text(text.clone()));
        }
        Step::Edit(number, letter) => {
            let text = transaction.get_mut(handles.texts, &key(*number));
            if let Some(text) = text {
                text.0.push(*letter);
                text.0[0] = *letter;
                model.texts.insert(key(*number), text.clone());
            }
        }
        Step::Erase(number) => {
            let was_there = transaction.remove(handles.texts, &key(*number));
            assert_eq!(was_there, model.texts.remove(&key(*number)).is_some());
        }
        Step::EraseRange(from, length) => {
            let range = key(*from)..=key(from + length);
            let removed = transaction.remove_range(handles.texts, range.clone());
            let before = model.texts.len();
            model.texts.retain(|key, _| !range.contains(key));
            assert_eq!(removed, before - model.texts.len());
        }
        Step::Wide(number, Some(text)) => {
            transaction.insert(handles.wide, wide(*number), Text(text.clone()));
            model.wide.insert(wide(*number), Text(text.clone()));
        }
        Step::Wide(number, None) => {
            transaction.remove(handles.wide, &wide(*number));
            model.wide.remove(&wide(*number));
        }
        Step::Title(Some(text)) => {
            transaction.insert(handles.title, (), Text(text.clone()));
            model.title = Some(Text(text.clone()));
        }
        Step::Title(None) => assert_eq!(transaction.remove(handles.title, &()), model.title.take().is_some()),
        Step::Push(text) => {
            transaction.push(handles.orders, Text(text.clone())).unwrap();
            model.orders.push_back(Text(text.clone()));
        }
        Step::Pop => assert_eq!(transaction.pop(handles.orders), model.orders.pop_front().as_ref()),
        Step::Add(number) => {
            model.total += number;
            assert_eq!(transaction.add(handles.total, *number).unwrap(), model.total);
        }
    }
}

#[track_caller]
fn compare(store: &Store, handles: Handles, model: &Model) {
    let keys = store.sorted_keys(handles.accounts);
    let accounts = keys.iter().map(|key| (*key, *store.get(handles.accounts, key).unwrap())).collect();
    let wide = store.sorted_keys(handles.wide);
    let found = Model {
        accounts,
        texts: store.range(handles.texts, ..).map(|(key, text)| (*key, text.clone())).collect(),
        wide: wide.iter().map(|key| (*key, store.get(handles.wide, key).unwrap().clone())).collect(),
        title: store.get(handles.title, &()).cloned(),
        orders: store.items(handles.orders).cloned().collect(),
        total: store.value(handles.total),
    };
    assert_eq!(&found, model);
    assert_eq!(store.state_hash(), store.recomputed_state_hash());
    let (objects, bytes) =
        store.usages().fold((0, 0), |sums, (_, usage)| (sums.0 + usage.objects, sums.1 + usage.bytes));
    assert_eq!((store.usage().objects, store.usage().bytes), (objects, bytes));
    let expected = model.accounts.len() + model.texts.len() + model.wide.len() + model.orders.len();
    assert_eq!(objects, (expected + usize::from(model.title.is_some())) as u64);
    assert_eq!((store.len(handles.accounts), store.queue_len(handles.orders)), (keys.len() as u64, model.orders.len()));
}

#[derive(Clone, Copy, Debug)]
enum TransactionEnd {
    Commit,
    RollBack,
    Panic,
    Unencodable,
}

fn end() -> impl Strategy<Value = TransactionEnd> {
    prop_oneof![6 => Just(TransactionEnd::Commit), 1 => Just(TransactionEnd::RollBack), 1 => Just(TransactionEnd::Panic), 1 => Just(TransactionEnd::Unencodable)]
}

fn transact(
    steps: &[Step],
    end: TransactionEnd,
    store: &mut Store,
    handles: Handles,
    model: &mut Model,
) -> Option<Vec<u8>> {
    let before = model.clone();
    let hash_before = store.state_hash();
    let usage_before = store.usage();
    let mut changes = b"what was there".to_vec();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut transaction = store.begin();
        for step in steps {
            act(step, &mut transaction, handles, model);
        }
        match end {
            TransactionEnd::Commit => transaction.commit(&mut changes).unwrap(),
            TransactionEnd::RollBack => transaction.roll_back(),
            // Skips the panic hook, which would print a message.
            TransactionEnd::Panic => std::panic::resume_unwind(Box::new("of the handler")),
            TransactionEnd::Unencodable => {
                transaction.insert(handles.texts, key(3), Text(b"no!".to_vec()));
                let error = transaction.commit(&mut changes).unwrap_err().to_string();
                assert!(error.contains("texts") && error.contains("\"kkk\"") && error.contains("it shouts"), "{error}");
            }
        }
    }));
    match end {
        TransactionEnd::Panic => assert_eq!(*ended.unwrap_err().downcast::<&str>().unwrap(), "of the handler"),
        _ => ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
    let changes = changes.strip_prefix(b"what was there").unwrap().to_vec();
    if matches!(end, TransactionEnd::Commit) {
        return Some(changes);
    }
    assert!(changes.is_empty());
    assert_eq!(store.state_hash(), hash_before);
    assert_eq!((store.usage().objects, store.usage().bytes), (usage_before.objects, usage_before.bytes));
    *model = before;
    None
}

fn restored(bytes: &[u8]) -> (Store, Handles) {
    let (mut store, handles) = store();
    store.read_snapshot(&mut &bytes[..]).unwrap();
    (store, handles)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(800, 80) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replicas_and_snapshots_agree(
        transactions in proptest::collection::vec((proptest::collection::vec(step(), 0..10), end()), 1..60),
        snapshot_at in 0usize..40,
        piece_length in 1usize..4000,
    ) {
        let (mut leader, handles) = store();
        let (mut follower, of_follower) = store();
        let mut model = Model::default();
        let (mut snapshot, mut of_snapshot) = (Vec::new(), None);
        for (number, (steps, end)) in transactions.iter().enumerate() {
            if number == snapshot_at {
                leader.begin_snapshot(&mut snapshot).unwrap();
                of_snapshot = Some((model.clone(), leader.state_hash()));
            }
            if leader.is_taking_snapshot() {
                leader.snapshot_step(&mut snapshot, piece_length).unwrap();
            }
            if let Some(changes) = transact(steps, *end, &mut leader, handles, &mut model) {
                follower.apply(&changes).unwrap();
            }
            compare(&leader, handles, &model);
            compare(&follower, of_follower, &model);
            prop_assert_eq!(leader.state_hash(), follower.state_hash());
        }
        if let Some((model, hash)) = of_snapshot {
            while leader.is_taking_snapshot() {
                leader.snapshot_step(&mut snapshot, piece_length).unwrap();
            }
            let (store, handles) = restored(&snapshot);
            compare(&store, handles, &model);
            prop_assert_eq!(store.state_hash(), hash);
        }
        let mut whole = Vec::new();
        follower.write_snapshot(&mut whole).unwrap();
        let (mut store, handles) = restored(&whole);
        compare(&store, handles, &model);
        let steps = [Step::Open(3, 1), Step::Push(vec![1]), Step::Change(3, 4, 5), Step::Add(2)];
        let changes = transact(&steps, TransactionEnd::Commit, &mut leader, of_follower, &mut model).unwrap();
        store.apply(&changes).unwrap();
        compare(&store, handles, &model);
        prop_assert_eq!(store.state_hash(), leader.state_hash());
    }

    #[test]
    fn damaged_changes_change_nothing(
        first in proptest::collection::vec(step(), 0..20),
        second in proptest::collection::vec(step(), 1..20),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut leader, handles) = store();
        let (mut follower, of_follower) = store();
        let mut model = Model::default();
        let changes = transact(&first, TransactionEnd::Commit, &mut leader, handles, &mut model).unwrap();
        follower.apply(&changes).unwrap();
        let before = model.clone();
        let good = transact(&second, TransactionEnd::Commit, &mut leader, handles, &mut model).unwrap();
        let short = &good[..cut.index(good.len())];
        prop_assert!(follower.apply(short).unwrap_err().to_string().contains("at byte"));
        compare(&follower, of_follower, &before);
        let mut bad = good.clone();
        for (place, value) in flips {
            let place = place.index(bad.len());
            bad[place] = value;
        }
        let hash = follower.state_hash();
        match follower.apply(&bad) {
            Ok(()) => prop_assert_eq!(follower.state_hash(), follower.recomputed_state_hash()),
            Err(_) => {
                compare(&follower, of_follower, &before);
                prop_assert_eq!(follower.state_hash(), hash);
                follower.apply(&good).unwrap();
                compare(&follower, of_follower, &model);
            }
        }
    }

    #[test]
    fn damaged_snapshot_is_an_error(
        steps in proptest::collection::vec(step(), 0..30),
        place in any::<prop::sample::Index>(),
        bits in 1u8..=255,
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut leader, handles) = store();
        transact(&steps, TransactionEnd::Commit, &mut leader, handles, &mut Model::default()).unwrap();
        let mut bytes = Vec::new();
        leader.write_snapshot(&mut bytes).unwrap();
        let (mut other, of_other) = store();
        other.begin().insert(of_other.title, (), Text(Vec::new()));
        prop_assert!(other.read_snapshot(&mut &bytes[..cut.index(bytes.len())]).is_err());
        let place = place.index(bytes.len());
        bytes[place] ^= bits;
        prop_assert!(other.read_snapshot(&mut &bytes[..]).is_err());
        compare(&other, of_other, &Model::default());
    }
}
