//! Decision models: courses with a limited number of seats, and students with a limited number of courses.

use super::*;
use crate::{
    AcceptedCommand, CommandError, CommandHandler, DecisionModel, HandlerContext, HandlerError, Message, MessageError,
    RecordedEvent,
};
use gapless_testkit::random::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const SEATS: u32 = 5;
const COURSES: u64 = 12;
const COURSES_OF_A_STUDENT: u32 = 3;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct Subscribe {
    course: u64,
    student: u64,
    times: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct Subscribed;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct Cancelled;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
enum SubscribeRefusal {
    CourseIsFull,
    StudentHasEnough,
}

fn count_change(count: &mut u32, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
    if event.read::<Subscribed>()?.is_some() {
        *count += 1;
    }
    if event.read::<Cancelled>()?.is_some() {
        *count = count.checked_sub(1).expect("a cancelled seat was subscribed");
    }
    Ok(())
}

#[derive(Clone)]
struct Taken(u32);

impl DecisionModel for Taken {
    type Id = u64;

    fn new(_: &u64) -> Self {
        Self(0)
    }

    fn events(course: &u64) -> EventFilter {
        let either = EventFilter::event::<Subscribed>().or(EventFilter::event::<Cancelled>());
        EventFilter::tag("course", course.to_string()).and(either)
    }

    fn apply(&mut self, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
        count_change(&mut self.0, event)
    }
}

#[derive(Clone)]
struct Courses(u32);

impl DecisionModel for Courses {
    type Id = u64;

    fn new(_: &u64) -> Self {
        Self(0)
    }

    fn events(student: &u64) -> EventFilter {
        EventFilter::tag("student", student.to_string())
    }

    fn apply(&mut self, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
        count_change(&mut self.0, event)
    }
}

struct SubscribeHandler;

impl CommandHandler for SubscribeHandler {
    type Command = Subscribe;
    type Reply = u32;
    type Refusal = SubscribeRefusal;

    fn handle(&self, command: Subscribe, work: &mut HandlerContext<'_>) -> Result<u32, HandlerError<SubscribeRefusal>> {
        let Subscribe { course, student, times } = command;
        for _ in 0..times {
            if work.read::<Taken>(&course)?.0 >= SEATS {
                return Err(HandlerError::Refused(SubscribeRefusal::CourseIsFull));
            }
            if work.read::<Courses>(&student)?.0 >= COURSES_OF_A_STUDENT {
                return Err(HandlerError::Refused(SubscribeRefusal::StudentHasEnough));
            }
            let tags = work.record(&Subscribed)?;
            tags.tag("course", course.to_string()).tag("student", student.to_string());
        }
        Ok(work.read::<Taken>(&course)?.0)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct Cancel {
    course: u64,
    student: u64,
}

struct CancelHandler;

impl CommandHandler for CancelHandler {
    type Command = Cancel;
    type Reply = ();
    type Refusal = ();

    fn handle(
        &self,
        Cancel { course, student }: Cancel,
        work: &mut HandlerContext<'_>,
    ) -> Result<(), HandlerError<()>> {
        let tags = work.record(&Cancelled)?;
        tags.tag("course", course.to_string()).tag("student", student.to_string());
        Ok(())
    }
}

fn model() -> CommandModel {
    CommandModel::new()
        .handler(SubscribeHandler)
        .handler(CancelHandler)
        .handler(CancelManyHandler)
        .event::<Subscribed>()
        .event::<Cancelled>()
        .decision_model::<Taken>()
        .decision_model::<Courses>()
}

fn start(directory: Option<&Path>, decision_models_max: usize) -> (CommandHost, CommandBus) {
    let options = AggregateOptions { decision_models_max, ..AggregateOptions::default() };
    let stream = directory.map_or_else(ServiceHostOptions::in_memory, ServiceHostOptions::in_directory);
    let host = CommandHost::start(model(), options, stream).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

fn subscribe(
    bus: &CommandBus,
    course: u64,
    student: u64,
    times: u32,
) -> Result<AcceptedCommand<u32>, CommandError<SubscribeRefusal>> {
    bus.call(SubscribeHandler::command(&Subscribe { course, student, times }))
}

#[derive(Default)]
struct Expected(BTreeMap<(u64, u64), u32>);

impl Expected {
    fn of_course(&self, course: u64) -> u32 {
        self.0.iter().filter(|((of, _), _)| *of == course).map(|(_, count)| count).sum()
    }

    fn of_student(&self, student: u64) -> u32 {
        self.0.iter().filter(|((_, of), _)| *of == student).map(|(_, count)| count).sum()
    }

    fn decide(&mut self, bus: &CommandBus, random: &mut Random) {
        let (course, student) = (random.below(COURSES), random.below(30));
        let count = self.0.get(&(course, student)).copied().unwrap_or(0);
        if count > 0 && random.below(2) == 0 {
            bus.call(CancelHandler::command(&Cancel { course, student })).unwrap();
            *self.0.entry((course, student)).or_default() -= 1;
            return;
        }
        let times = 1 + random.below(2) as u32;
        let (taken, courses) = (self.of_course(course), self.of_student(student));
        let expected = (0..times).try_for_each(|more| match (taken + more < SEATS, courses + more) {
            (false, _) => Err(SubscribeRefusal::CourseIsFull),
            (true, courses) if courses >= COURSES_OF_A_STUDENT => Err(SubscribeRefusal::StudentHasEnough),
            _ => Ok(()),
        });
        match (subscribe(bus, course, student, times), expected) {
            (Ok(accepted), Ok(())) => {
                assert_eq!((accepted.reply, accepted.events), (taken + times, times));
                *self.0.entry((course, student)).or_default() += times;
            }
            (Err(CommandError::Refused(refused)), Err(expected)) => assert_eq!(refused, expected),
            (outcome, expected) => panic!("{outcome:?} where {expected:?} was expected"),
        }
    }
}

#[test]
fn decisions_see_all_earlier_events() {
    let random = &mut Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let mut expected = Expected::default();
    for round in 0..6 {
        let (host, bus) = start(Some(directory.path()), [1, 3, 1000][round % 3]);
        (0..150).for_each(|_| expected.decide(&bus, random));
        host.stop().unwrap();
        if random.below(2) == 0 {
            std::fs::remove_dir_all(directory.path().join("index")).unwrap();
        }
    }
    let (host, bus) = start(None, 1);
    let mut expected = Expected::default();
    (0..300).for_each(|_| expected.decide(&bus, random));
    host.stop().unwrap();
}

#[test]
fn concurrent_decisions_keep_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (host, _) = start(Some(directory.path()), 4);
    let accepted: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let bus = host.bus(&BusOptions::default()).unwrap();
                scope.spawn(move || {
                    let outcomes =
                        (0..COURSES * 2).map(|index| subscribe(&bus, index % COURSES, thread * 100 + index, 1));
                    outcomes
                        .filter(|outcome| match outcome {
                            Ok(_) => true,
                            Err(error) => {
                                assert_eq!(*error, CommandError::Refused(SubscribeRefusal::CourseIsFull));
                                false
                            }
                        })
                        .count() as u32
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(accepted, SEATS * COURSES as u32);
    for course in 0..COURSES {
        let mut found = host.found_events(Taken::events(&course), Position::default());
        for _ in 0..SEATS {
            let (_, event) = found.next_event().unwrap().unwrap();
            assert_eq!(event.read::<Subscribed>().unwrap(), Some(Subscribed));
        }
        assert!(found.next_event().unwrap().is_none());
    }
    host.stop().unwrap();
}

#[test]
fn outside_decision_needs_no_new_event() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let (host, _) = start(Some(directory.path()), 1);
        let (wins, losses): (u64, u64) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (bus, host) = (host.bus(&BusOptions::default()).unwrap(), &host);
                    scope.spawn(move || {
                        let (mut wins, mut losses) = (0, 0);
                        for course in 100..120 {
                            let filter = EventFilter::tag("course", course.to_string());
                            let mut found = host.found_events(filter.clone(), Position::default());
                            if found.next_event().unwrap().is_some() {
                                continue;
                            }
                            let command = Subscribe { course, student: 1000 + thread * 100 + course, times: 1 };
                            let draft = SubscribeHandler::command(&command);
                            match bus.call(draft.only_if_none(&filter, found.read_through())) {
                                Ok(_) => wins += 1,
                                Err(CommandError::ConditionFailed(at)) => {
                                    let (_, event) = found.next_event().unwrap().unwrap();
                                    assert_eq!(event.position, at);
                                    losses += 1;
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                        (wins, losses)
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
        });
        println!("{wins} won, {losses} lost");
        let mut found = host.found_events(EventFilter::event::<Subscribed>(), Position::default());
        let mut count = 0;
        while found.next_event().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 20, "one for each course");
        let filter = EventFilter::tag("course", "100");
        let bus = host.bus(&BusOptions::default()).unwrap();
        let command = Subscribe { course: 100, student: 9, times: 1 };
        let outcome = bus.call(SubscribeHandler::command(&command).only_if_none(&filter, Position::default()));
        assert!(matches!(outcome, Err(CommandError::ConditionFailed(_))), "{outcome:?}");
        host.stop().unwrap();
    }
}

#[test]
fn unknown_types_fail_the_handler() {
    let directory = tempfile::tempdir().unwrap();
    let incomplete = [
        (
            "decision model",
            CommandModel::new().handler(SubscribeHandler).event::<Subscribed>().decision_model::<Taken>(),
        ),
        ("the event", CommandModel::new().handler(CancelHandler)),
    ];
    for (missing, model) in incomplete {
        let stream = ServiceHostOptions::in_directory(directory.path());
        let host = CommandHost::start(model, AggregateOptions::default(), stream).unwrap();
        let bus = host.bus(&BusOptions::default()).unwrap();
        let failed = match missing {
            "the event" => bus.call(CancelHandler::command(&Cancel { course: 1, student: 1 })).unwrap_err().to_string(),
            _ => subscribe(&bus, 1, 1, 1).unwrap_err().to_string(),
        };
        assert!(failed.contains(missing), "{failed}");
        host.stop().unwrap();
    }
    let twice = model().decision_model::<Taken>().finish().err().unwrap();
    assert!(matches!(twice, ModelError::Twice(name) if name.contains("Taken")), "{twice}");
}

#[test]
fn unloadable_state_fails_decisions() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let (host, bus) = start(Some(directory.path()), 100);
        let course = 1;
        if subscribe(&bus, course, 1, 1).is_ok() {
            for _ in 0..2 {
                bus.call(CancelHandler::command(&Cancel { course, student: 2 })).unwrap();
            }
        }
        let outcome = subscribe(&bus, course, 3, 1);
        assert!(matches!(outcome, Err(CommandError::Quarantined(_))), "{outcome:?}");
        subscribe(&bus, 2, 3, 1).unwrap();
        host.stop().unwrap();
    }
}

#[test]
fn refused_handler_leaves_no_events() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(Some(directory.path()), 100);
    for student in 0..u64::from(SEATS) - 1 {
        subscribe(&bus, 1, student, 1).unwrap();
    }
    let two = Subscribe { course: 1, student: 9, times: 2 };
    let refused = Err(CommandError::Refused(SubscribeRefusal::CourseIsFull));
    assert_eq!(bus.call(SubscribeHandler::command(&two).identified_by(7)), refused);
    subscribe(&bus, 2, 9, 1).unwrap();
    let found = |host: &CommandHost, course| {
        let mut found = host.found_events(Taken::events(&course), Position::default());
        std::iter::from_fn(move || found.next_event().unwrap().map(drop)).count()
    };
    assert_eq!((found(&host, 1), found(&host, 2)), (SEATS as usize - 1, 1));
    drop(bus);
    host.stop().unwrap();
    let (host, bus) = start(Some(directory.path()), 100);
    assert_eq!(bus.call(SubscribeHandler::command(&two).identified_by(7)), refused);
    // The condition is no part of a command's identity. A failed condition is not remembered; a decision is.
    let condition = EventFilter::tag("course", "1");
    let command = Subscribe { course: 4, student: 4, times: 1 };
    let draft = || SubscribeHandler::command(&command).identified_by(8);
    let failed = bus.call(draft().only_if_none(&condition, Position::default()));
    assert!(matches!(failed, Err(CommandError::ConditionFailed(_))), "{failed:?}");
    let accepted = bus.call(draft().only_if_none(&condition, failed_at(&failed))).unwrap();
    assert_eq!(bus.call(draft().only_if_none(&condition, Position::default())), Ok(accepted));
    assert_eq!(subscribe(&bus, 1, 8, 1).unwrap().reply, SEATS);
    assert_eq!((found(&host, 1), found(&host, 2)), (SEATS as usize, 1));
    host.stop().unwrap();
}

fn failed_at<T, F>(outcome: &Result<T, CommandError<F>>) -> Position {
    match outcome {
        Err(CommandError::ConditionFailed(at)) => Position { sequence: at.sequence + 1000, ordinal: 0 },
        _ => Position::default(),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct CountAll;

struct CountAllHandler;

impl CommandHandler for CountAllHandler {
    type Command = CountAll;
    type Reply = u32;
    type Refusal = ();

    fn handle(&self, _: CountAll, work: &mut HandlerContext<'_>) -> Result<u32, HandlerError<()>> {
        let mut all = 0;
        for course in 0..COURSES {
            all += work.read::<Taken>(&course)?.0;
        }
        Ok(all)
    }
}

#[test]
fn handler_may_exceed_states_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(Some(directory.path()), 100);
    (0..COURSES).for_each(|course| _ = subscribe(&bus, course, course, 1).unwrap());
    host.stop().unwrap();
    let options = AggregateOptions { decision_models_max: 1, ..AggregateOptions::default() };
    let stream = ServiceHostOptions::in_directory(directory.path());
    let host = CommandHost::start(model().handler(CountAllHandler), options, stream).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let bus = host.bus(&BusOptions::default()).unwrap();
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_eq!(bus.call(CountAllHandler::command(&CountAll)).unwrap().reply, COURSES as u32);
                }
            });
        }
    });
    host.stop().unwrap();
}

#[test]
fn unusable_index_folder_fails_start() {
    let directory = tempfile::tempdir().unwrap();
    start(Some(directory.path()), 1).0.stop().unwrap();
    std::fs::remove_dir_all(directory.path().join("index")).unwrap();
    std::fs::write(directory.path().join("index"), b"no folder").unwrap();
    let stream = ServiceHostOptions::in_directory(directory.path());
    let refused = CommandHost::start(model(), AggregateOptions::default(), stream).err().unwrap().to_string();
    assert!(refused.contains("index"), "{refused}");
}

#[test]
fn large_transactions_are_searchable() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(Some(directory.path()), 1);
    for count in [1, 20_000, 2] {
        bus.call(CancelManyHandler::command(&CancelMany { count })).unwrap();
    }
    let all = EventFilter::event::<Cancelled>();
    for (filter, expected) in [(all.clone(), 20_003), (all.and(EventFilter::tag("third", "yes")), 6_669)] {
        let mut found = host.found_events(filter, Position::default());
        let mut last = Position::default();
        for _ in 0..expected {
            let position = found.next_event().unwrap().unwrap().1.position;
            assert!(position > last);
            last = position;
        }
        assert!(found.next_event().unwrap().is_none());
    }
    host.stop().unwrap();
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
struct CancelMany {
    count: u32,
}

struct CancelManyHandler;

impl CommandHandler for CancelManyHandler {
    type Command = CancelMany;
    type Reply = ();
    type Refusal = ();

    fn handle(&self, CancelMany { count }: CancelMany, work: &mut HandlerContext<'_>) -> Result<(), HandlerError<()>> {
        for index in 0..count {
            let tags = work.record(&Cancelled)?;
            if index % 3 == 0 {
                tags.tag("third", "yes");
            }
        }
        Ok(())
    }
}
