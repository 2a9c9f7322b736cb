//! Calls without a pause, each with a number that its handler prints: one outcome, long before the deadline; no handler
//! begins twice.

use crate::machines::{NOTED, ROUTE, TestMachine, Work};
use gapless_rpc::{Call, CallError, CallOptions, Retry};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

const IN_FLIGHT: usize = 8;
const PAUSE: Duration = Duration::from_millis(10);
const TIME: Duration = Duration::from_secs(600);

type CallOutcomes = BTreeMap<u32, Result<Vec<u8>, CallError>>;

pub struct Traffic {
    is_over: Arc<AtomicBool>,
    begun: Arc<AtomicU32>,
    thread: JoinHandle<CallOutcomes>,
}

impl Traffic {
    pub fn start(machine: &TestMachine) -> Self {
        let (is_over, begun) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
        let domain = machine.open();
        let thread = std::thread::spawn({
            let (is_over, begun) = (Arc::clone(&is_over), Arc::clone(&begun));
            move || {
                let caller = domain.caller::<Work, Vec<u8>>(ROUTE).unwrap();
                let options = CallOptions { timeout: Some(TIME), retry: Retry::Never, ..CallOptions::default() };
                let (mut outcomes, mut calls) = (CallOutcomes::new(), VecDeque::<(u32, Call<Vec<u8>>)>::new());
                loop {
                    // Relaxed: flag and count guard no data.
                    let is_last = is_over.load(Ordering::Relaxed);
                    let left = if is_last { 0 } else { IN_FLIGHT - 1 };
                    while calls.len() > left
                        && let Some((number, call)) = calls.pop_front()
                    {
                        outcomes.insert(number, call.wait());
                    }
                    if is_last {
                        return outcomes;
                    }
                    let number = begun.fetch_add(1, Ordering::Relaxed);
                    calls.push_back((number, caller.start_with(Work::Note(number), &options)));
                    std::thread::sleep(PAUSE);
                }
            }
        });
        Self { is_over, begun, thread }
    }

    /// All earlier calls have ended then.
    #[track_caller]
    pub fn wait_for_calls(&self, calls: u32) {
        let until_number = self.begun.load(Ordering::Relaxed) + calls.max(IN_FLIGHT as u32);
        until("further calls begin", || self.begun.load(Ordering::Relaxed) >= until_number);
    }

    /// Checks each outcome against the instances' lines.
    ///
    /// # Panics
    /// A handler began twice, or against its outcome; a call ended by its deadline alone.
    #[track_caller]
    pub fn end(self, notes: &mut NotedCalls) -> BTreeMap<&'static str, usize> {
        self.is_over.store(true, Ordering::Relaxed);
        let outcomes = self.thread.join().expect("the calls are made");
        let replied = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
        let replied: BTreeSet<u32> = replied.map(|(number, _)| *number).collect();
        until("all handlers with a reply have said so", || replied.is_subset(notes.read()));
        let (mut kinds, mut words) = (BTreeMap::new(), BTreeMap::new());
        for (number, outcome) in &outcomes {
            let kind = outcome.as_ref().map_or_else(CallError::kind, |_| "reply");
            *kinds.entry(kind).or_default() += 1;
            if let Err(error) = outcome {
                words.entry(kind).or_insert_with(|| error.to_string());
            }
            let has_begun = notes.seen.contains(number);
            let may_have = matches!(outcome, Ok(_) | Err(CallError::Unknown { .. }));
            assert!(may_have || !has_begun, "call {number} began, and ended with {outcome:?}");
        }
        println!("{kinds:?} {words:?}");
        let known = ["busy", "no_route", "not_begun", "reply", "unavailable", "unknown"];
        assert!(kinds.keys().all(|kind| known.contains(kind)), "{kinds:?}");
        kinds
    }
}

pub struct NotedCalls {
    lines: Vec<Receiver<String>>,
    seen: BTreeSet<u32>,
}

impl NotedCalls {
    pub fn of(instances: &mut [&mut Process]) -> Self {
        let mut notes = Self { lines: Vec::new(), seen: BTreeSet::new() };
        instances.iter_mut().for_each(|instance| notes.add(instance));
        notes
    }

    pub fn add(&mut self, instance: &mut Process) {
        self.lines.push(instance.lines_in_background());
    }

    /// Panics if a number comes twice.
    #[track_caller]
    fn read(&mut self) -> &BTreeSet<u32> {
        for line in self.lines.iter().flat_map(Receiver::try_iter) {
            if let Some(number) = line.strip_prefix(NOTED) {
                let number = number.parse().expect("a number is printed");
                assert!(self.seen.insert(number), "call {number} was handled twice");
            }
        }
        &self.seen
    }
}
