use crate::program::{ProgramOutput, gapless, run};
use gapless::cqrs::{Aggregate, BusOptions, CommandBus, CommandModel, Creation, Decision, SnapshotPolicy};
use gapless::host::Aggregates;
use gapless::message::Headers;
use gapless::service::Persistence;
use gapless::{Host, Message, Running};
use gapless_testkit::process::Process;
use gapless_testkit::wait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

#[derive(Serialize, Deserialize, Message)]
enum BookingCommand {
    Book { seat: u16, passenger: String },
    Close,
}

#[derive(Serialize, Deserialize, Message)]
enum BookingEvent {
    Booked { seat: u16, passenger: String },
    Closed,
}

#[derive(Clone, Serialize, Deserialize, Message)]
struct Flight {
    is_closed: bool,
}

impl Aggregate for Flight {
    const NAME: &'static str = "flight";
    type Id = String;
    type Command = BookingCommand;
    type Event = BookingEvent;
    type Refusal = ();

    fn new(_: &String) -> Self {
        Self { is_closed: false }
    }

    fn creation(_: &BookingCommand) -> Creation {
        Creation::CreatesIfMissing
    }

    fn decide(&self, command: BookingCommand, decision: &mut Decision<'_, BookingEvent>) -> Result<(), ()> {
        match command {
            BookingCommand::Book { seat, passenger } => {
                let event = BookingEvent::Booked { seat, passenger: passenger.clone() };
                decision.emit(event).tag("seat", seat.to_string()).tag("passenger", passenger);
            }
            BookingCommand::Close => _ = decision.emit(BookingEvent::Closed).tag("gate=row", "B=7"),
        }
        Ok(())
    }

    fn apply(&mut self, event: &BookingEvent) {
        self.is_closed |= matches!(event, BookingEvent::Closed);
    }
}

fn start(directory: &Path) -> (Running<Aggregates>, CommandBus) {
    let model = CommandModel::new().aggregate::<Flight>();
    let host = Host::in_directory(directory.join("flights")).aggregates(model).start().unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

fn book(bus: &CommandBus, flight: &str, seat: u16, passenger: &str) {
    let headers = Headers::default().with("user", "anna");
    let command = BookingCommand::Book { seat, passenger: passenger.to_owned() };
    bus.call(
        Flight::command(&flight.to_owned(), &command)
            .with(&headers)
            .identified_by((flight.len() << 16) as u128 | u128::from(seat)),
    )
    .unwrap();
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_of_running_and_stopped_host() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    book(&bus, "LX 38", 17, "Bo");
    book(&bus, "LX 38", 18, "Cy");
    book(&bus, "BA 1", 17, "Di");
    bus.call(Flight::command(&"BA 1".to_owned(), &BookingCommand::Close)).unwrap();
    wait::until("all of it is counted", || run(path, &["events", "read", "flights"]).good().lines().count() == 4);
    check(path);
    host.stop().unwrap();
    check(path);
}

fn check(path: &Path) {
    let all = run(path, &["events", "read", "flights"]).good();
    assert_eq!(all.lines().count(), 4, "{all}");
    let first = all.lines().next().unwrap();
    assert!(
        first.ends_with(r#" BookingEvent flight/LX 38 #seat=17 #passenger=Bo {"Booked":{"seat":17,"passenger":"Bo"}}"#),
        "{first}"
    );
    assert!(all.lines().last().unwrap().ends_with(" BookingEvent flight/BA 1 #gate=row=B=7 \"Closed\""), "{all}");
    let position = first.split(' ').next().unwrap();
    let of_seat = run(path, &["events", "read", "flights", "--tag", "seat=17", "--json"]).good();
    let of_seat = lines(&of_seat);
    assert_eq!(of_seat.len(), 2);
    assert_eq!(of_seat[0]["position"], position);
    assert_eq!(of_seat[0]["payload"], json!({ "Booked": { "seat": 17, "passenger": "Bo" } }));
    assert_eq!((&of_seat[0]["aggregate"], &of_seat[1]["aggregate_id"]), (&json!("flight/LX 38"), &json!("BA 1")));
    assert_eq!(
        (&of_seat[0]["headers"], &of_seat[0]["identifier"]),
        (&json!({ "user": "anna" }), &json!(format!("{:032x}", 0x50011)))
    );
    for (tag, expected) in [("gate=row=B=7", 1), ("gate=row", 0), ("row=B=7", 0)] {
        let found = run(path, &["events", "read", "flights", "--tag", tag]).good();
        assert_eq!(found.lines().count(), expected, "{tag}: {found}");
    }
    let both = [
        "events",
        "read",
        "flights",
        "--aggregate",
        "flight/BA 1",
        "--tag",
        "seat=17",
        "--type",
        "BookingEvent",
        "--headers",
    ];
    let both = run(path, &both).good();
    assert!(
        both.lines().count() == 1 && both.contains(" | session ") && both.ends_with(" identifier 0x40011 user=anna\n"),
        "{both}"
    );
    let sequence = position.split('.').next().unwrap();
    let until = run(path, &["events", "read", "flights", "--until", sequence]).good();
    assert_eq!(until.lines().count(), 1);
    let limited = run(path, &["events", "read", "flights", "--limit", "3", "--from", position]).good();
    assert_eq!(limited.lines().count(), 3);
    for place in [position, sequence] {
        let shown = run(path, &["events", "show", "flights", place]).good();
        assert!(shown.starts_with("session ") && shown.lines().nth(1) == Some(first), "{shown}");
    }
    let listed = run(path, &["events", "ls", "flights"]).good();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.starts_with(&format!("flight/LX 38 events 2 first {position} last ")), "{listed}");
    let listed = lines(&run(path, &["events", "ls", "flights", "flight", "--json", "--limit", "1"]).good());
    assert_eq!((&listed[0]["aggregate"], &listed[0]["events"]), (&json!("flight/LX 38"), &json!(2)));
    let counted = run(path, &["events", "stats", "flights"]).good();
    for expected in
        ["events 4 in 4 transactions, ", "\naggregates 2\n  flight: 2 with 4 events\n", "\n  BookingEvent v1: 4\n"]
    {
        assert!(counted.contains(expected), "{counted}");
    }
    let counted: Value =
        serde_json::from_str(&run(path, &["events", "stats", "flights/journal", "--json"]).good()).unwrap();
    assert_eq!((&counted["events"], &counted["archived_segments"]), (&json!(4), &json!(0)));
}

#[test]
fn archived_events_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let model = CommandModel::new().aggregate::<Flight>();
    let persistence = Persistence { segment_length_bytes: 2 << 20, ..Persistence::default() };
    let host = Host::in_directory(path.join("flights")).persistence(persistence).aggregates(model).start().unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    let refused = run(path, &["events", "archive", "flights", "--to", "archive"]).error(1);
    assert!(refused.contains("nothing can be archived yet"), "{refused}");
    let name = "x".repeat(200);
    let sent: Vec<_> = (0..8_000)
        .map(|seat| {
            let command = BookingCommand::Book { seat, passenger: name.clone() };
            bus.send(Flight::command(&format!("F{}", seat % 7), &command))
        })
        .collect();
    sent.into_iter().for_each(|pending| _ = pending.wait().unwrap());
    host.stop().unwrap();
    let archived =
        lines(&run(path, &["events", "archive", "flights", "--to", "archive", "--compress", "--json"]).good());
    assert!(!archived.is_empty() && archived[0]["first_sequence"] == 1, "{archived:?}");
    let again = run(path, &["events", "archive", "flights", "--to", "archive"]).good();
    assert!(again.starts_with("archived 0 segments\n") && again.contains(" stays: it is the newest"), "{again}");
    let read = run(path, &["events", "read", "flights", "--aggregate", "flight/F3"]).good();
    assert_eq!(read.lines().count(), (3..8_000).step_by(7).count());
    assert!(run(path, &["journal", "verify", "flights"]).good().ends_with("\nwhole\n"));
    std::fs::rename(path.join("archive"), path.join("away")).unwrap();
    let missing = run(path, &["events", "read", "flights"]).error(1);
    assert!(missing.contains("are archived at ") && missing.contains("mount the archive"), "{missing}");
}

#[test]
fn index_is_verified_with_journal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    book(&bus, "LX 38", 1, "Bo");
    host.stop().unwrap();
    let verified = run(path, &["journal", "verify", "flights"]).good();
    assert!(
        verified.contains("\nindex of events: 1 files with 4 positions, up to sequence ")
            && verified.ends_with("\nwhole\n"),
        "{verified}"
    );
    let index = path.join("flights/index");
    let file = std::fs::read_dir(&index).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    for at in [10, whole.len() - 50] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        let verified = run(path, &["journal", "verify", "flights", "--json"]).good();
        let verified: Value = serde_json::from_str(&verified).unwrap();
        let found = ["files", "positions", "last_sequence"].map(|key| &verified["index"][key]);
        assert_eq!((&verified["verdict"], found), (&json!("whole"), [&json!(0); 3]), "{verified}");
        assert!(
            run(path, &["journal", "verify", "flights"]).good().contains("\nindex of events: no file that can be used")
        );
        let named = verified["index"]["unusable"][0]["path"].as_str().unwrap();
        assert!(named.ends_with(file.file_name().unwrap().to_str().unwrap()), "{verified}");
    }
    let restored = run(path, &["journal", "restore", "flights"]).good();
    assert!(restored.contains("removed, made anew of the journal: ") && !index.exists(), "{restored}");
    let (host, bus) = start(path);
    book(&bus, "LX 38", 2, "Bo");
    host.stop().unwrap();
    assert_eq!(run(path, &["events", "read", "flights", "--aggregate", "flight/LX 38"]).good().lines().count(), 2);
}

#[test]
fn deleted_events_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let model = CommandModel::new().aggregate_with_snapshots::<Flight>(SnapshotPolicy::default());
    let persistence = Persistence { segment_length_bytes: 256 << 10, ..Persistence::default() };
    let host = Host::in_directory(path.join("flights")).persistence(persistence).window_bytes(1 << 20);
    let host = host.frame_length_max(4096).aggregates(model).start().unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (1..1500).for_each(|seat| book(&bus, "LX 38", seat, &"Bo".repeat(120)));
    let report = host.delete_events_before(u64::MAX).unwrap().unwrap();
    let before = report.before;
    host.stop().unwrap();
    wait::until("the segments are gone", || {
        let info = run(path, &["journal", "info", "flights", "--json"]).good();
        serde_json::from_str::<Value>(&info).unwrap()["first_sequence"] == before
    });
    let read = run(path, &["events", "read", "flights", "--aggregate", "flight/LX 38"]);
    assert!(read.stderr.contains(&format!("note: events before {before} are deleted")), "{}", read.stderr);
    let left = read.good().lines().count();
    assert!(left > 0 && left < 1499, "{left}");
    let refused = run(path, &["events", "read", "flights", "--from", "1"]).stderr;
    assert!(refused.ends_with(&format!("begins at 1; read from {before} on\n")), "{refused}");
    let statistics = run(path, &["events", "stats", "flights", "--json"]).good();
    let statistics: Value = serde_json::from_str(&statistics).unwrap();
    assert_eq!((&statistics["deleted"]["before"], &statistics["deleted"]["aggregates"]), (&json!(before), &json!(1)));
    let verified = run(path, &["journal", "verify", "flights"]).good();
    assert!(verified.contains(&format!("the states of 1 aggregates, for deleted events before {before}, whole")));
    let mut damaged = std::fs::read(&report.file).unwrap();
    let whole = damaged.clone();
    damaged[20] ^= 1;
    std::fs::write(&report.file, damaged).unwrap();
    let error = run(path, &["journal", "verify", "flights"]).error(1);
    assert!(error.contains("base-") && error.contains("damaged"), "{error}");
    let report_of_it = run(path, &["journal", "verify", "flights", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&report_of_it.stdout).unwrap()["verdict"], "damaged");
    std::fs::remove_file(&report.file).unwrap();
    for command in [&["journal", "verify", "flights"], &["events", "stats", "flights"], &["events", "ls", "flights"]] {
        let ProgramOutput { code, stderr, .. } = run(path, command);
        let error = stderr.lines().last().unwrap_or_default();
        assert!(code == Some(1) && error.contains("base") && error.contains("missing"), "{error}");
    }
    std::fs::write(&report.file, whole).unwrap();
    run(path, &["journal", "verify", "flights"]).good();
}

#[test]
fn follower_prints_new_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    book(&bus, "LX 38", 1, "Bo");
    let mut follower = Process::start(&mut gapless(path, &["events", "read", "flights", "-f", "--json"]));
    let mut next = || serde_json::from_str::<Value>(&follower.line()).unwrap()["payload"]["Booked"]["seat"].clone();
    assert_eq!(next(), 1);
    for seat in 2..20 {
        book(&bus, "LX 38", seat, "Bo");
        assert_eq!(next(), seat);
    }
    host.stop().unwrap();
    let (host, bus) = start(path);
    book(&bus, "LX 38", 20, "Bo");
    assert_eq!(next(), 20);
    host.stop().unwrap();
}

#[test]
fn error_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for action in ["ls", "read", "stats"] {
        let missing = run(path, &["events", action, "missing"]).error(1);
        assert!(missing.contains("missing"), "{missing}");
    }
    let (host, bus) = start(path);
    book(&bus, "LX 38", 1, "Bo");
    host.stop().unwrap();
    for (words, code, expected) in [
        (
            &["read", "flights", "--aggregate", "order/7"][..],
            1,
            "there are no aggregates of that type; there are flight",
        ),
        (&["read", "flights", "--aggregate", "order"], 1, "TYPE/ID is expected"),
        (&["read", "flights", "--type", "Booked"], 1, "there are BookingEvent"),
        (&["read", "flights", "--tag", "seat"], 2, "NAME=VALUE is expected"),
        (&["read", "flights", "--from", "9.0", "--until", "8"], 2, "--from 9.0 lies behind --until 8.65535"),
        (&["read", "flights", "--from", "x"], 2, "is no position"),
        (&["show", "flights", "1"], 1, "there is no event at 1"),
        (&["show", "flights", "99.0"], 1, "sequence 99 is not in the journal"),
    ] {
        let error = run(path, &[&["events"], words].concat()).error(code);
        assert!(error.contains(expected), "{error}");
    }
    std::fs::remove_file(path.join("flights/types.json")).unwrap();
    let ended = run(path, &["events", "read", "flights", "--aggregate", "flight/LX 38"]);
    assert!(ended.stderr.starts_with("note: types are shown by their numbers: "), "{}", ended.stderr);
    let text = ended.good();
    assert!(text.contains(" 0x") && text.contains("/LX 38 #seat=1 #passenger=Bo hex "), "{text}");
    let supervisor = run(path, &["events"]).error(2);
    assert!(supervisor.contains("no supervisor"), "{supervisor}");
}
