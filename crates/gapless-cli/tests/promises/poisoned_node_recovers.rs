#![allow(clippy::unwrap_used, reason = "a test")]

use gapless::host::{HostError, Running};
use gapless::prelude::*;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const NUMBER: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

#[derive(Default)]
struct Sum(u64);

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(NUMBER.schema, |sum, payload, context| {
            sum.0 += u64::from(payload[0]);
            context.reply_with(NUMBER, &sum.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

fn start(directory: &Path) -> Result<Running, HostError> {
    Host::in_directory(directory).snapshot_on_stop(false).service_from(Sum::default).start()
}

fn journal(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gapless")).arg("journal").args(arguments).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// Has added 4, and stops at sequence 3.
fn poison(place: &Path) {
    let host = start(place).unwrap();
    let mut client = host.polled_client(ClientOptions::default()).unwrap();
    let session = client.open_session(5, 8).unwrap();
    client.call(session, NUMBER, &[4], Duration::from_secs(30)).unwrap();
    assert!(client.call(session, NUMBER, &[], Duration::from_secs(30)).is_err());
    let limit = Instant::now() + Duration::from_secs(30);
    while host.status().failure.is_none() && Instant::now() < limit {
        std::thread::yield_now();
    }
    assert!(host.stop().unwrap_err().to_string().contains("`gapless journal skip DIRECTORY 3`"));
}

#[test]
fn skips_work_with_a_linked_journal() {
    let root = tempfile::tempdir().unwrap();
    let (place, other) = (root.path().join("orders"), root.path().join("disk"));
    poison(&place);
    std::fs::create_dir(&other).unwrap();
    std::fs::rename(place.join("journal"), other.join("journal")).unwrap();
    std::os::unix::fs::symlink(other.join("journal"), place.join("journal")).unwrap();
    for named in [place.clone(), place.join("journal")] {
        let (code, said) = journal(&["skip", named.to_str().unwrap(), "3"]);
        assert!(code == 0 && place.join("skips").exists() && !other.join("skips").exists(), "{code}: {said}");
    }
    let (code, said) = journal(&["verify", place.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    start(&place).unwrap().stop().unwrap();
}

#[test]
fn poison_command_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    let (place, directory) = (root.path(), root.path().to_str().unwrap());
    poison(place);
    let again = start(place).err().unwrap().to_string();
    assert!(again.contains("panicked at sequence 3"), "{again}");
    assert_eq!(journal(&["dead-letters", directory]), (0, String::new()));

    let (code, said) = journal(&["skip", directory, "2"]);
    assert!(code == 1 && said.contains("its outputs are recorded"), "{code}: {said}");
    let (code, said) = journal(&["skip", directory, "3"]);
    assert!(code == 0 && said.contains("sequence 3") && said.contains("says so at sequence 4"), "{code}: {said}");
    let (code, said) = journal(&["skip", "--json", directory, "3"]);
    let object: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &object["mark"], &object["repeated"]), (0, &4.into(), &true.into()), "{said}");

    start(place).unwrap().stop().unwrap();
    let (code, said) = journal(&["verify", directory]);
    assert!(code == 0 && said.contains("sequence 3 is skipped, as the stream says at 4"), "{code}: {said}");
    let (_, said) = journal(&["verify", "--json", directory]);
    let object: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(object["skipped"], serde_json::json!([{ "sequence": 3, "mark": 4 }]), "{said}");
    let (_, said) = journal(&["dump", directory, "--from", "4"]);
    assert!(said.trim_end().ends_with(" skips 3"), "{said}");
    let (code, said) = journal(&["dead-letters", directory]);
    assert!(code == 0 && said.starts_with("3 20") && said.ends_with("schema 1:1 skipped by an operator\n"), "{said}");
    let (_, said) = journal(&["dead-letters", "--json", directory]);
    let object: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&object["sequence"], &object["session"]), (&3.into(), &1.into()), "{said}");

    let file = place.join("dead-letters.jsonl");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], &whole[..20]].concat()).unwrap();
    let (code, said) = journal(&["dead-letters", directory]);
    assert!(code == 1 && said.starts_with("3 20") && said.contains("1 lines of"), "{code}: {said}");
    let (code, said) = journal(&["dead-letters", &format!("{directory}/none")]);
    assert!(code == 1 && said.contains("none/dead-letters.jsonl"), "{code}: {said}");
}
