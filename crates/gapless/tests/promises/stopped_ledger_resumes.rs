use crate::ledger_fold::expected_report;
use crate::ledger_process::{Place, Run, shipped_transfers};
use rustix::process::Signal;

#[test]
fn signal_stops_and_next_run_resumes() {
    let content = shipped_transfers();
    for (signal, tier) in [(Signal::INT, "journal"), (Signal::TERM, "sync")] {
        let place = Place::with(&content);
        let mut run = Run::start(&mut place.command(&["--tier", tier, "--lines-per-second", "1000"]));
        assert!(run.hear() && run.hear(), "it begins and takes lines");
        run.signal(signal);
        let stopped = run.wait();
        assert_eq!(stopped.error(130).lines().filter(|line| line.starts_with("stopped after line ")).count(), 1);
        let stopped_after = stopped.err.lines().last().unwrap();
        let line = stopped_after["stopped after line ".len()..].split(';').next().unwrap();

        let ended = place.run(&["--tier", tier]);
        let expected = format!("tier {tier}: going on after line {line}\n");
        assert!(ended.err.starts_with(&expected), "{stopped_after}, and then: {}", ended.err);
        let report = ended.report();
        assert_eq!(report, expected_report("transfers.csv", &content));

        let again = place.run(&["--tier", tier]);
        assert!(again.err.ends_with("going on after line 10000\n"), "{}", again.err);
        assert_eq!(again.report(), report);
    }
}

#[test]
fn file_may_grow_at_its_end() {
    let first = b"id,from,to,amount,note\n1,,ann,10.00,\n2,,bob,5.00,\n3,ann,bob,20.00,".to_vec();
    let place = Place::with(&first);
    assert_eq!(place.run(&[]).report(), expected_report("transfers.csv", &first));
    let grown = [&first[..], b"\n4,ann,bob,1.50,\n5,bob,eve,1.00,\n"].concat();
    std::fs::write(&place.file, &grown).unwrap();
    let ended = place.run(&[]);
    assert!(ended.err.starts_with("tier journal: going on after line 4\n"), "{}", ended.err);
    assert_eq!(ended.report(), expected_report("transfers.csv", &grown));
}

#[test]
fn other_file_of_same_name_is_refused() {
    let place = Place::with(b"id,from,to,amount,note\n1,,ann,10.00,\n2,,bob,5.00,\n");
    let report = place.run(&[]).report();
    let before = std::fs::read(&place.file).unwrap();
    for other in [
        "id,from,to,amount,note\n1,,ann,10.01,\n2,,bob,5.00,\n3,,bob,5.00,\n",
        "id,from,to,amount,note\n1,,ann,10.00,\n",
        "id,from,to,amount,note\n1,,ann,10.00,\n2,,bob,5.00,more\n",
    ] {
        std::fs::write(&place.file, other).unwrap();
        let ended = place.run(&[]);
        let error = ended.error(1);
        assert!(error.contains("transfers.csv has changed in its first 3 lines"), "{error}");
    }
    std::fs::write(&place.file, before).unwrap();
    assert_eq!(place.run(&[]).report(), report, "nothing was taken from the others");
}

#[test]
fn several_files_go_into_one_ledger() {
    let place = Place::with(b"id,from,to,amount,note\n1,,ann,10.00,\n2,,bob,5.00,\n");
    place.run(&[]).report();
    let second = place.path().join("second.csv");
    std::fs::write(&second, "id,from,to,amount,note\n2,ann,bob,1.00,\n3,ann,bob,1.25,\n").unwrap();
    let report = Run::start(&mut place.command_on(&second, &[])).end().report();
    let expected = "line 2: duplicate id: 2,ann,bob,1.00,\n\
                    second.csv: 2 lines taken, 1 accepted, 1 refused\n       1 x duplicate id\n\
                    the ledger: 2 accounts hold 15.00; 15.00 was deposited\nchecksum of its bookings: ";
    assert!(report.starts_with(expected), "{report}");
}

#[test]
fn renamed_copy_is_booked_once() {
    let content = b"id,from,to,amount,note\n1,,ann,10.00,\n2,,bob,5.00,\n3,ann,bob,1.00,\n";
    let place = Place::with(content);
    place.run(&[]).report();
    let copy = place.path().join("copy.csv");
    std::fs::write(&copy, content).unwrap();
    let report = Run::start(&mut place.command_on(&copy, &[])).end().report();
    assert!(report.contains("copy.csv: 3 lines taken, 0 accepted, 3 refused\n"), "{report}");
    assert!(report.contains("2 accounts hold 15.00; 15.00 was deposited\n"), "{report}");
}
