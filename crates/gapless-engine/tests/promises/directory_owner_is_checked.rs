//! Sequencer, service host, member and relay refuse each other's directories, which each start would give another
//! history.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::{Adder, add, connect, options, start};
use crate::damages::{copy, files};
use crate::replicas::Cluster;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_engine::{ServiceHost, directory_consistency};
use gapless_journal::descriptor::LOCK_NAME;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use std::path::{Path, PathBuf};

fn content(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let is_kept = |file: &PathBuf| file.file_name().is_some_and(|name| name != LOCK_NAME);
    let read = |file: PathBuf| (file.clone(), std::fs::read(directory.join(file)).unwrap());
    files(directory).into_iter().filter(is_kept).map(read).collect()
}

#[track_caller]
fn is_refused<T, E: std::fmt::Display>(directory: &Path, words: &str, start: impl FnOnce() -> Result<T, E>) {
    let before = content(directory);
    let said = start().err().expect("the start is refused").to_string();
    assert!(said.contains(words) && said.contains(directory.to_str().unwrap()), "{said}");
    assert!(content(directory) == before, "something was changed: {said}");
}

#[test]
fn member_and_relay_are_protected() {
    for (marker, words) in
        [("instance", "member of a cluster"), ("voting", "member of a cluster"), ("origin", "a relay's")]
    {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        std::fs::write(place.join(marker), "something").unwrap();
        is_refused(place, words, || EventStream::start(&EventStreamOptions::in_directory(place)));
        is_refused(place, words, || ServiceHost::start(Adder::default(), options(place)));
    }
}

#[test]
fn stream_and_service_are_separate() {
    let directory = tempfile::tempdir().unwrap();
    let (service, stream) = (directory.path().join("service"), directory.path().join("stream"));
    let start_stream = |place: &Path| EventStream::start(&EventStreamOptions::in_directory(place));
    start(options(&service)).stop().unwrap();
    is_refused(&service, "a service's", || start_stream(&service));
    std::fs::remove_file(StreamLayout::new(&service).outputs()).unwrap();
    is_refused(&service, "a service's", || start_stream(&service));
    start(options(&service)).stop().unwrap();

    start_stream(&stream).unwrap().stop().unwrap();
    is_refused(&stream, "this is a stream's directory", || ServiceHost::start(Adder::default(), options(&stream)));
    // A sequencer of an older program was not refused here, but published nothing: the directory still belongs to the
    // service.
    std::fs::create_dir_all(StreamLayout::new(&service).state()).unwrap();
    start(options(&service)).stop().unwrap();
    is_refused(&service, "a service's", || start_stream(&service));
    start_stream(&stream).unwrap().stop().unwrap();
}

#[test]
fn pipe_as_a_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    start(options(place)).stop().unwrap();
    let layout = StreamLayout::new(place);
    let segment = std::fs::read_dir(layout.journal()).unwrap().map(|entry| entry.unwrap().path());
    let segment =
        segment.filter(|path| path.extension().is_some_and(|extension| extension == "segment")).min().unwrap();
    let targets = [
        segment,
        layout.journal().join("history"),
        layout.journal().join(LOCK_NAME),
        layout.state().join("state-00000000000000000009"),
        layout.snapshots().join("snapshot-9"),
        place.join(LOCK_NAME),
        layout.outputs(),
    ];
    for target in targets {
        let kept = std::fs::read(&target).ok();
        let refuses = || {
            let all = |words: &str| {
                let starts = [
                    EventStream::start(&EventStreamOptions::in_directory(place)).err().map(|error| error.to_string()),
                    ServiceHost::start(Adder::default(), options(place)).err().map(|error| error.to_string()),
                    directory_consistency::verify(&layout).err().map(|error| error.to_string()),
                    directory_consistency::restore(&layout).err().map(|error| error.to_string()),
                ];
                for said in starts {
                    let said = said.expect("each use is refused");
                    assert!(said.contains(words) && said.contains(target.to_str().unwrap()), "{said}");
                }
            };
            let _ = std::fs::remove_file(&target);
            std::fs::create_dir_all(target.parent().unwrap()).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&target).status().unwrap().success());
            all("neither a file nor a folder");
            std::fs::remove_file(&target).unwrap();
            std::os::unix::fs::symlink("nowhere", &target).unwrap();
            all("a link that cannot be followed");
            std::fs::remove_file(&target).unwrap();
        };
        refuses();
        if let Some(bytes) = kept {
            std::fs::write(&target, bytes).unwrap();
        }
    }
    // A link to a folder is accepted; one to a file may lead to another user's.
    let history = layout.journal().join("history");
    std::fs::rename(&history, directory.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &history).unwrap();
    let refused = ServiceHost::start(Adder::default(), options(place)).err().unwrap().to_string();
    assert!(refused.contains("history: it is a link, which is not followed"), "{refused}");
    std::fs::rename(directory.path().join("elsewhere"), &history).unwrap();
    std::fs::rename(layout.journal(), directory.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", layout.journal()).unwrap();
    start(options(place)).stop().unwrap();
}

#[test]
fn member_needs_own_directory() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("data");
    let host = start(options(&place));
    let mut client = connect(&place);
    let key = client.open_session(5, 8).unwrap();
    assert_eq!(add(&mut client, key, 10), 10);
    host.stop().unwrap();
    let config = |member: u64, place: &Path| {
        let text = format!(
            "[cluster]\nname = \"other\"\nmember = {member}\ntier = \"quorum\"\n[[member]]\nid = 1\naddresses = \
             [\"127.0.0.1:4\"]\n[[member]]\nid = 2\naddresses = [\"127.0.0.1:5\"]\n[stream]\ndirectory = {place:?}\n"
        );
        ClusterConfig::parse(&text, "test.toml").unwrap()
    };
    is_refused(&place, "is that of a service", || ClusterMember::start(&config(1, &place)));
    directory_consistency::restore(&StreamLayout::new(&place)).unwrap();

    let mut cluster = Cluster::new(3, "");
    (1..=3).for_each(|member| cluster.start(member, Adder::default()).unwrap());
    cluster.leader();
    for member in 1..=3 {
        cluster.members[member - 1].take().unwrap().stop().unwrap();
    }
    let config = |member: usize| ClusterConfig::load(cluster.file(member)).unwrap();
    let (own, others) = (config(1), config(2));
    let [own, others] = [own, others].map(|it| it.event_stream_options().directory.unwrap());
    is_refused(&own, "runs none", || ClusterMember::start(&config(1)));
    std::fs::remove_dir_all(&own).unwrap();
    copy(&others, &own);
    is_refused(&own, "another member's", || cluster.start(1, Adder::default()));
}
