//! Objects of a store: changed in transactions, applied on a follower, written to a snapshot.

use super::{failed, named};
use crate::canonical::car::{CarForm, LENGTH_MAX, SERIAL_NUMBER, SbeSerial};
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use crate::{BenchError, Result};
use gapless::prelude::Decode;
use gapless_engine::store::{InlineMessage, Map, OrderedMap, Store, StoreError, StoreLimits, StoreObject, Transaction};
use gapless_measure::{Report, Row};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::time::Instant;

pub const TOGETHER: u64 = 100;
const SCANNED: u64 = 100;

#[derive(Clone, Copy)]
pub struct StoragePlan {
    pub objects: u64,
    pub operations: u64,
}

pub fn rows_of_cars(plan: StoragePlan, report: &mut Report) -> Result<()> {
    rows_of::<CarRecord>("Car", plan, report)
}

pub fn rows_of_pages(plan: StoragePlan, report: &mut Report) -> Result<()> {
    rows_of::<Page>("1 KB", plan, report)
}

fn of_store(error: StoreError) -> BenchError {
    failed("storage", error)
}

trait SampleObject: StoreObject + Clone {
    fn new(number: u64) -> Result<Self>;
    fn change(&mut self, number: u64) -> Result<()>;
    fn number(&self) -> Result<u64>;
}

type CarRecord = InlineMessage<gapless_car::Decoder, 256>;

mod gapless_car {
    pub(super) type Decoder = <crate::canonical::car::SbeSerial as crate::canonical::car::CarForm>::Inbound;
}

/// The first field after the message header.
const SERIAL_NUMBER_AT: usize = 8;

impl SampleObject for CarRecord {
    fn new(number: u64) -> Result<Self> {
        let mut buffer = [0; LENGTH_MAX];
        let length = SbeSerial::write(&mut buffer, Some(SERIAL_NUMBER.wrapping_add(number as i32)))
            .map_err(|error| failed("storage", error))?;
        Self::new(&buffer[..length]).map_err(|error| failed("storage", error))
    }

    #[inline]
    fn change(&mut self, number: u64) -> Result<()> {
        let serial_number = SERIAL_NUMBER.wrapping_add(number as i32);
        self.overwrite(SERIAL_NUMBER_AT, serial_number.to_le_bytes()).map_err(|error| failed("storage", error))
    }

    #[inline]
    fn number(&self) -> Result<u64> {
        let car = <gapless_car::Decoder as Decode>::decode(self.bytes()).map_err(|error| failed("storage", error))?;
        Ok(car.serial_number().map_or(0, |number| number.wrapping_sub(SERIAL_NUMBER) as u32).into())
    }
}

gapless_engine::store_object! {
    #[derive(Debug, PartialEq)]
    pub struct Page = 1, version 1 {
        pub first: [u64; 60],
        pub number: u64,
        pub second: [u64; 67],
    }
}

impl SampleObject for Page {
    fn new(number: u64) -> Result<Self> {
        Ok(Self { first: [number; 60], number, second: [!number; 67] })
    }

    #[inline]
    fn change(&mut self, number: u64) -> Result<()> {
        self.number = number;
        Ok(())
    }

    #[inline]
    fn number(&self) -> Result<u64> {
        Ok(self.number)
    }
}

struct StorePair<V> {
    leader: Store,
    objects: Map<u64, V>,
    in_order: OrderedMap<u64, V>,
    follower: Store,
    changes: Vec<u8>,
    ends: Vec<usize>,
}

impl<V: StoreObject> StorePair<V> {
    fn new() -> Self {
        let declare = |store: &mut Store| (store.map(1, "objects"), store.ordered_map(2, "in order"));
        let (mut leader, mut follower) = (Store::new(StoreLimits::default()), Store::new(StoreLimits::default()));
        let (objects, in_order) = declare(&mut leader);
        let (_, _): (Map<u64, V>, OrderedMap<u64, V>) = declare(&mut follower);
        Self { leader, objects, in_order, follower, changes: Vec::new(), ends: Vec::new() }
    }

    #[inline]
    fn transact(&mut self, change: impl FnOnce(&mut Transaction<'_>) -> Result<()>) -> Result<()> {
        let mut transaction = self.leader.begin();
        change(&mut transaction)?;
        transaction.commit(&mut self.changes).map_err(of_store)?;
        self.ends.push(self.changes.len());
        Ok(())
    }

    /// Records the time of each 100.
    fn follow(&mut self, histogram: &mut LatencyHistogram) -> Result<()> {
        let mut from = 0;
        for ends in self.ends.chunks(TOGETHER as usize) {
            let begin = Instant::now();
            for end in ends {
                self.follower.apply(&self.changes[from..*end]).map_err(of_store)?;
                from = *end;
            }
            histogram.record((elapsed_ns(begin) + ends.len() as u64 / 2) / ends.len() as u64);
        }
        self.ends.clear();
        self.changes.clear();
        Ok(())
    }
}

/// Key that is not predictable from the previous one.
fn scattered(step: u64, objects: u64) -> u64 {
    ((u128::from(step.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(objects)) >> 64) as u64
}

fn sample(operations: u64, mut once: impl FnMut(u64) -> Result<()>) -> Result<LatencyHistogram> {
    let mut histogram = LatencyHistogram::new();
    for first in (0..operations).step_by(TOGETHER as usize) {
        let begin = Instant::now();
        for number in first..first + TOGETHER {
            once(number)?;
        }
        histogram.record((elapsed_ns(begin) + TOGETHER / 2) / TOGETHER);
    }
    Ok(histogram)
}

fn rows_of<V: SampleObject>(size: &str, plan: StoragePlan, report: &mut Report) -> Result<()> {
    let sample_object = V::new(0)?;
    let mut bytes = Vec::new();
    sample_object.encode(&mut bytes).map_err(|error| failed("storage", error))?;
    let length = bytes.len() as u64;
    let StoragePlan { objects, operations } = plan;
    floors(&bytes, plan, report)?;
    let mut stores = StorePair::<V>::new();
    let (map, in_order) = (stores.objects, stores.in_order);
    let mut rows = Vec::new();
    let mut row = |report: &Report, what: &str, histogram: &LatencyHistogram, count: u64, floor: &str| {
        let mut row = named(&format!("{what}, {size}"), length, count);
        row.latency_ns = histogram.latency_ns();
        compare(&mut row, report, floor, length);
        rows.push(row);
    };

    let mut applying = LatencyHistogram::new();
    let new = sample(objects, |key| {
        stores.transact(|transaction| {
            transaction.insert(map, key, V::new(key)?);
            Ok(())
        })
    })?;
    row(report, "put new, commit", &new, objects, "hash_map_insert");
    stores.follow(&mut applying)?;
    row(report, "apply a new one", &applying, objects, "hash_map_insert");

    for (what, of_follower, is_two) in [
        ("change one field, commit", "apply one change", false),
        ("change two objects, commit", "apply two changes", true),
    ] {
        let (mut changing, mut applying) = (LatencyHistogram::new(), LatencyHistogram::new());
        for round in (0..operations).step_by(objects as usize) {
            let now = sample(objects.min(operations - round), |number| {
                let step = round + number;
                stores.transact(|transaction| {
                    let found = transaction.get_mut(map, &scattered(2 * step, objects));
                    found.ok_or_else(missing)?.change(step)?;
                    if is_two {
                        let found = transaction.get_mut(map, &scattered(2 * step + 1, objects));
                        found.ok_or_else(missing)?.change(step)?;
                    }
                    Ok(())
                })
            })?;
            changing.merge(&now);
            stores.follow(&mut applying)?;
        }
        row(report, what, &changing, operations, "copy_object");
        row(report, of_follower, &applying, operations, "copy_object");
    }

    let mut sum = 0;
    let reading = sample(operations, |number| {
        let object = stores.leader.get(map, &scattered(number, objects)).ok_or_else(missing)?;
        sum += object.number()?;
        Ok(())
    })?;
    black_box(sum);
    row(report, "read one field", &reading, operations, "copy_object");

    ordered_rows(&mut stores, in_order, plan, |what, histogram, count, floor| {
        row(report, what, histogram, count, floor);
    })?;

    let mut snapshot = Vec::with_capacity((stores.leader.usage().bytes * 11 / 10) as usize + (1 << 20));
    let begin = Instant::now();
    stores.leader.write_snapshot(&mut snapshot).map_err(of_store)?;
    let seconds = begin.elapsed().as_secs_f64().max(1e-9);
    let begin = Instant::now();
    let mut restored = StorePair::<V>::new().leader;
    restored.read_snapshot(&mut &snapshot[..]).map_err(of_store)?;
    let reading_seconds = begin.elapsed().as_secs_f64().max(1e-9);
    let mut megabytes = Vec::new();
    for (what, seconds) in [("snapshot, written", seconds), ("snapshot, read", reading_seconds)] {
        let mut row = named(&format!("{what}, {size}"), length, objects);
        row.throughput_per_s = Some((objects as f64 / seconds).round());
        let per_s = snapshot.len() as f64 / seconds / 1e6;
        row.config.extra.insert("megabytes_per_s".to_owned(), per_s.round().into());
        report.notes.push(format!("{what}, {size}: {per_s:.0} MB/s, {} bytes", snapshot.len()));
        compare(&mut row, report, "copy_object", length);
        megabytes.push(row);
    }
    rows.extend(megabytes);

    let mut removing = LatencyHistogram::new();
    removing.merge(&sample(objects, |number| {
        let remove = |transaction: &mut Transaction<'_>| transaction.remove(map, &(objects - 1 - number));
        stores.transact(|transaction| if remove(transaction) { Ok(()) } else { Err(missing()) })
    })?);
    let mut removed = named(&format!("remove, commit, {size}"), length, objects);
    removed.latency_ns = removing.latency_ns();
    compare(&mut removed, report, "hash_map_insert", length);
    rows.push(removed);

    let hash = stores.leader.state_hash();
    let is_restored = restored.recomputed_state_hash() == restored.state_hash();
    verify(is_restored, size, "the snapshot's objects do not make its hash")?;
    // Removals are not applied yet, so the follower is in the snapshot's state.
    verify(stores.follower.state_hash() == restored.state_hash(), size, "follower and snapshot do not agree")?;
    stores.follow(&mut LatencyHistogram::new())?;
    verify(stores.follower.state_hash() == hash, size, "leader and follower do not agree")?;
    verify(stores.leader.recomputed_state_hash() == hash, size, "the objects do not make the hash")?;
    for mut row in rows {
        row.verified = Some(true);
        report.rows.push(row);
    }
    Ok(())
}

fn ordered_rows<V: SampleObject>(
    stores: &mut StorePair<V>,
    in_order: OrderedMap<u64, V>,
    plan: StoragePlan,
    mut row: impl FnMut(&str, &LatencyHistogram, u64, &str),
) -> Result<()> {
    let StoragePlan { objects, operations } = plan;
    let ordered = objects / 10 / TOGETHER * TOGETHER + TOGETHER;
    let mut order: Vec<u64> = (0..ordered).collect();
    order.sort_unstable_by_key(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let new = sample(ordered, |number| {
        let key = order[number as usize];
        stores.transact(|transaction| {
            transaction.insert(in_order, key, V::new(key)?);
            Ok(())
        })
    })?;
    row("put new in order, commit", &new, ordered, "b_tree_map_insert");
    stores.follow(&mut LatencyHistogram::new())?;
    let scans = (operations / SCANNED).next_multiple_of(TOGETHER);
    let mut seen = 0;
    let scanning = sample(scans, |number| {
        let from = scattered(number, ordered - SCANNED + 1);
        for (_, object) in stores.leader.range(in_order, from..from + SCANNED) {
            seen += 1;
            black_box(object);
        }
        Ok(())
    })?;
    if seen != scans * SCANNED {
        return Err(failed("storage", format!("{seen} objects were scanned of {}", scans * SCANNED)));
    }
    row("scan 100 in order", &scanning, scans, "copy_object");
    Ok(())
}

fn missing() -> BenchError {
    failed("storage", "an object that was put is not there")
}

fn verify(is_so: bool, size: &str, reason: &str) -> Result<()> {
    if is_so { Ok(()) } else { Err(failed("storage", format!("{size}: {reason}"))) }
}

fn floors(bytes: &[u8], plan: StoragePlan, report: &mut Report) -> Result<()> {
    let length = bytes.len();
    let mut hashed: HashMap<u64, Box<[u8]>> = HashMap::new();
    let hash_map = sample(plan.objects, |key| {
        hashed.insert(key, bytes.into());
        Ok(())
    })?;
    let mut ordered: BTreeMap<u64, Box<[u8]>> = BTreeMap::new();
    let b_tree = sample(plan.objects, |key| {
        ordered.insert(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), bytes.into());
        Ok(())
    })?;
    let all = bytes.repeat(plan.objects as usize);
    let mut copy = vec![0; length];
    let copying = sample(plan.operations, |number| {
        let at = scattered(number, plan.objects) as usize * length;
        copy.copy_from_slice(&all[at..at + length]);
        black_box(&mut copy);
        Ok(())
    })?;
    for (name, histogram) in [("hash_map_insert", hash_map), ("b_tree_map_insert", b_tree), ("copy_object", copying)] {
        let row = histogram.floor_row(name, length as u64);
        report.floor.push(row.ok_or_else(|| failed("storage", "no sample was taken"))?);
    }
    black_box((hashed.len(), ordered.len()));
    Ok(())
}

/// Ratio of medians; a rate becomes the time of one object.
fn compare(row: &mut Row, report: &Report, floor: &str, length: u64) {
    let Some(floor_ns) = report.floor_row(floor, length).and_then(|floor| floor.p50_ns) else { return };
    let of_rate = row.throughput_per_s.map(|rate| 1e9 / rate.max(1e-9));
    if let Some(own_ns) = row.latency_ns.map(|latency| latency.p50 as f64).or(of_rate) {
        row.floor_ratio = Some((own_ns / floor_ns.max(1) as f64 * 100.0).round() / 100.0);
        row.floor_name = Some(floor.to_owned());
    }
}
