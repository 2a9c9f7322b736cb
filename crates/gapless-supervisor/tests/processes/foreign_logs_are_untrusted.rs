//! Root's supervisor writes nothing but logs to another user's directory, whatever files the user puts there.

use super::floor::{are_ready, down, find, place, up, wait_for};
use super::test_place::TestPlace;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::supervision::event::OperatorCommand;
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("a_link_in_place_of_a_log", || {
            is_refused("it is a link", |logs, secret| {
                symlink(secret, logs.join("a.1.log")).unwrap();
            })
        })
        .scenario("a_second_name_of_a_file", || {
            is_refused("it has 2 names", |logs, secret| {
                std::fs::hard_link(secret, logs.join("a.1.log")).unwrap();
            })
        })
        .scenario("a_link_in_place_of_the_folder", || {
            is_refused("leads to", |logs, secret| {
                std::fs::remove_dir_all(logs).unwrap();
                symlink(secret.parent().unwrap(), logs).unwrap();
            })
        })
        .scenario("rotation_does_not_follow_links", rotation_does_not_follow_links)
}

const NOBODY: u32 = 65_534;
const SECRET: &str = "of root only\n";

fn give(path: &Path) {
    chownat(CWD, path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY)), AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// `None` without root privileges.
fn logs_of_a_user(place: &TestPlace) -> Option<(PathBuf, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root runs instances as somebody else");
        return None;
    }
    std::fs::set_permissions(place.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let [home, private] = ["home", "private"].map(|name| place.folder().join(name));
    let logs = home.join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    [&home, &logs].into_iter().for_each(|folder| give(folder));
    std::fs::create_dir(&private).unwrap();
    let secret = private.join("a.1.log");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    Some((logs, secret))
}

fn talker(logs: &Path) -> String {
    let script = "while :; do echo of the user; sleep 0.005; done";
    format!(
        "[process.a]\ncommand = {:?}\nuser = \"nobody\"\nfolder = \"/\"\nlog_folder = {logs:?}\n\
         restart = {{ policy = \"never\" }}\n",
        ["sh", "-c", script]
    )
}

fn has_grown(log: &Path, length: u64) -> bool {
    std::fs::metadata(log).is_ok_and(|log| log.len() > length)
}

fn is_refused(expected: &str, put: impl Fn(&Path, &Path)) {
    let place = place();
    let Some((logs, secret)) = logs_of_a_user(&place) else { return };
    let mut client = up(&place, &[talker(&logs)]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let log = logs.join("a.1.log");
    until("it talks", || has_grown(&log, 0));
    client.change(OperatorCommand::Stop(Vec::new())).unwrap();
    wait_for(&place, "it has stopped", |status| find(status, "a.1").state == InstanceCondition::Stopped);
    std::fs::remove_file(&log).unwrap();
    put(&logs, &secret);
    [&logs, &log].into_iter().filter(|path| path.is_symlink()).for_each(|link| give(link));
    client.change(OperatorCommand::Start(vec!["a".to_owned()])).unwrap();
    let found = wait_for(
        &place,
        "the reason is reported",
        |status| matches!(&find(status, "a.1").last_end, Some(InstanceEnd::NotStarted(reason)) if reason.contains(expected)),
    );
    assert!(!are_ready(&found, 1));
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), SECRET);
    assert_eq!(std::fs::read_dir(secret.parent().unwrap()).unwrap().count(), 1, "nothing was created next to it");

    std::fs::remove_file(if logs.is_symlink() { &logs } else { &log }).unwrap();
    if !logs.exists() {
        std::fs::create_dir(&logs).unwrap();
        give(&logs);
    }
    client.change(OperatorCommand::Start(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "it is ready again", |status| are_ready(status, 1));
    until("it talks again", || has_grown(&log, 0));
    down(&place);
}

fn rotation_does_not_follow_links() {
    let place = place();
    let Some((logs, secret)) = logs_of_a_user(&place) else { return };
    for name in ["a.1.log.1", "a.1.log.1.new", "a.1.log.2", "a.1.log.begin", "a.1.log.cut"] {
        symlink(&secret, logs.join(name)).unwrap();
        give(&logs.join(name));
    }
    up(&place, &["log_bytes_max = \"4 KiB\"\nlogs_kept = 2\n".to_owned(), talker(&logs)]);
    until("it is rotated", || {
        ["a.1.log.1", "a.1.log.2"]
            .iter()
            .all(|name| std::fs::symlink_metadata(logs.join(name)).is_ok_and(|file| file.is_file() && file.len() > 0))
    });
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), SECRET);
    down(&place);
}
