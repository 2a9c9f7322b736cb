use crate::ledger_fold::expected_report;
use crate::ledger_process::{Place, Run, example, shipped_transfers};
use gapless_testkit::random::rounds;

/// Lines after two deposits of 1000.00, and their reasons; `""` for booked lines.
const CASES: &[(&[u8], &str)] = &[
    (b"3,ann,bob,1.00,", ""),
    (b"4,ann,bob,1,no decimals", ""),
    (b"5,ann,bob,1.5,one decimal", ""),
    (b"6,ann,bob,001.50,zeros in front", ""),
    (b"7,\"ann\",\"bob\",\"1.00\",\"quotes, all over\"", ""),
    (b"8,ann,bob,0.01,\"a \"\"quote\"\" in quotes\"", ""),
    (b"9,ann,bob,1.00,carriage return\r", ""),
    ("10,ann,bob,1.00,größer 😀".as_bytes(), ""),
    (b"11,,new.account_1-x,0.01,opens an account", ""),
    (b"", "empty line"),
    (b"\r", "empty line"),
    (b"12,ann,bob,1.00,caf\xe9", "not UTF-8"),
    (b"\x00\xff", "not UTF-8"),
    (b"12,ann,bob,1.00,\"open", "bad quoting"),
    (b"12,ann,bob,1.00,\"", "bad quoting"),
    (b"12,ann,bob,1.00,\"closed\"early", "bad quoting"),
    (b"12,ann,bob,1.00,in \"the\" middle", "bad quoting"),
    (b"12", "not five columns"),
    (b"12,ann,bob,1.00", "not five columns"),
    (b"\"12,ann,bob,1.00,\"", "not five columns"),
    (b"12,ann,bob,1.00,,", "not five columns"),
    (b",ann,bob,1.00,", "malformed id"),
    (b"0,ann,bob,1.00,", "malformed id"),
    (b"+12,ann,bob,1.00,", "malformed id"),
    (b"twelve,ann,bob,1.00,", "malformed id"),
    (b"18446744073709551616,ann,bob,1.00,", "malformed id"),
    (b"12,ann ,bob,1.00,", "malformed account"),
    (b"12,ann,a-name-of-17-long,1.00,", "malformed account"),
    ("12,ann,bób,1.00,".as_bytes(), "malformed account"),
    (b"12,ann\x00,bob,1.00,", "malformed account"),
    (b"12,ann,,1.00,", "no receiver"),
    (b"12,,,1.00,", "no receiver"),
    (b"12,ann,bob,,", "malformed amount"),
    (b"12,ann,bob,one,", "malformed amount"),
    (b"12,ann,bob,1.,", "malformed amount"),
    (b"12,ann,bob,.5,", "malformed amount"),
    (b"12,ann,bob,1.234,", "malformed amount"),
    (b"12,ann,bob,1.2.3,", "malformed amount"),
    (b"12,ann,bob,+1,", "malformed amount"),
    (b"12,ann,bob,--1,", "malformed amount"),
    (b"12,ann,bob,1e2,", "malformed amount"),
    (b"12,ann,bob, 1,", "malformed amount"),
    (b"12,ann,bob,NaN,", "malformed amount"),
    ("12,ann,bob,١,".as_bytes(), "malformed amount"),
    (b"12,ann,bob,-1.00,", "negative amount"),
    (b"12,ann,bob,-0,", "negative amount"),
    (b"12,ann,bob,0,", "zero amount"),
    (b"12,ann,bob,0.00,", "zero amount"),
    (b"12,ann,bob,184467440737095516.16,", "amount too large"),
    (b"12,ann,bob,99999999999999999999999999999999999999999999,", "amount too large"),
    (b"12,ann,ann,1.00,", "sender is receiver"),
    (b"1,ann,bob,1.00,", "duplicate id"),
    (b"12,nobody,bob,1.00,", "unknown sender"),
    (b"12,ann,nobody,1.00,", "unknown receiver"),
    (b"12,ann,bob,10000.00,", "insufficient funds"),
    (b"12,,bob,184467440737095516.15,", "balance too large"),
    (b"12,ann,bob,1.00,the id is free still", ""),
];

fn long_lines() -> [(Vec<u8>, &'static str); 3] {
    let line = |length: usize| [&b"13,ann,bob,0.01,"[..], &vec![b'x'; length - 16]].concat();
    [(line(4096), ""), ([line(4097 - 1), b"\r".to_vec()].concat(), "duplicate id"), (line(4097), "line too long")]
}

#[test]
fn every_kind_of_bad_line() {
    let cases: Vec<(Vec<u8>, &str)> =
        CASES.iter().map(|(line, reason)| (line.to_vec(), *reason)).chain(long_lines()).collect();
    let mut content = b"id,from,to,amount,note\n1,,ann,1000.00,\n2,,bob,1000.00,\n".to_vec();
    for (line, _) in &cases {
        content.extend_from_slice(line);
        content.push(b'\n');
    }
    for tier in ["memory", "journal"] {
        let report = Place::with(&content).run(&["--tier", tier]).report();
        let refused = cases.iter().zip(4..).filter(|((_, reason), _)| !reason.is_empty());
        let mut said = report.lines();
        for ((line, reason), number) in refused.clone() {
            let expected = format!("line {number}: {reason}: ");
            let said = said.next().unwrap();
            assert!(said.starts_with(&expected), "{expected}{}\nbut it said\n{said}", String::from_utf8_lossy(line));
        }
        let (all, refused) = (cases.len() + 2, refused.count());
        let totals = format!("transfers.csv: {all} lines taken, {} accepted, {refused} refused", all - refused);
        assert_eq!(said.next(), Some(totals.as_str()));
        assert_eq!(report, expected_report("transfers.csv", &content), "the fold of this test's own");
    }
}

#[test]
fn shipped_and_large_file() {
    let content = shipped_transfers();
    let report = Place::with(&content).run(&["--tier", "memory"]).report();
    assert_eq!(report, expected_report("transfers.csv", &content));

    let lines = rounds(60_000, 12_000).to_string();
    let made = std::process::Command::new(example("transfers")).arg(lines).output().unwrap();
    assert!(made.status.success());
    let report = Place::with(&made.stdout).run(&["--tier", "journal"]).report();
    assert_eq!(report, expected_report("transfers.csv", &made.stdout));
}

#[test]
fn file_of_bad_lines_only() {
    for content in [&b"id,from,to,amount,note"[..], b"\xef\xbb\xbfid,from,to,amount,note\r\n\n"] {
        let report = Place::with(content).run(&[]).report();
        assert_eq!(report, expected_report("transfers.csv", content));
    }
    let content = [b"id,from,to,amount,note\n".to_vec(), b"x\n".repeat(10_000)].concat();
    assert_eq!(Place::with(&content).run(&[]).report(), expected_report("transfers.csv", &content));
    let content = [b"id,from,to,amount,note\n".to_vec(), b"x\n".repeat(10_001)].concat();
    let ended = Run::start(&mut Place::with(&content).command(&["--tier", "memory"])).end();
    let error = ended.error(1);
    assert!(error.contains("10000 lines of this file were refused; is it the right one?"), "{error}");
}
