//! A dead process whose child has inherited its socket and its lock.

use super::Domain;
use crate::registry::callbacks::{CallingSide, InstanceNumber, PeerProcess};
use crate::registry::instance_files::InstanceFiles;
use crate::registry::instances::InstanceConnections;
use crate::registry::packets::{AttachRefusal, RouteDescription};
use crate::registry::reactor::Reactor;
use crate::registry::watch::DirectoryWatch;
use gapless_testkit::process::this_program;
use rustix::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LISTENS: &str = "GAPLESS_REGISTRY_LISTENS";

#[test]
fn listener() {
    if std::env::var_os(LISTENS).is_some() {
        rustix::net::listen(std::io::stdin(), 1).unwrap();
    }
}

#[derive(Default)]
struct HasSettled(AtomicBool);

impl CallingSide for HasSettled {
    fn instance_found(&self, _: InstanceNumber, _: &Arc<PeerProcess>) {}
    fn route_changed(&self, _: InstanceNumber, _: &RouteDescription) {}
    fn instance_listed(&self, _: InstanceNumber) {}
    fn attached(&self, _: InstanceNumber, _: u64, _: OwnedFd, _: OwnedFd) {}
    fn refused(&self, _: InstanceNumber, _: u64, _: AttachRefusal) {}
    fn instance_closed(&self, _: InstanceNumber) {}
    fn instance_dead(&self, _: InstanceNumber) {}
    fn completions(&self, _: u64) {}

    fn settled(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn orphaned_socket_delays_no_one() {
    let domain = Domain::new();
    let (_files, socket) = InstanceFiles::create(&domain.directory, |_| ()).unwrap();
    // Like a child that has inherited the socket: it belongs to the process that listened last.
    let mut process = this_program();
    process.args(["--exact", "registry::tests::orphans::listener"]).env(LISTENS, "").stdout(Stdio::null());
    assert!(process.stdin(socket.try_clone().unwrap()).status().unwrap().success());
    let (watch, listed_instances) = DirectoryWatch::begin(&domain.directory).unwrap();
    assert_eq!(listed_instances.len(), 1);
    let side = Arc::new(HasSettled::default());
    let hello: Arc<[u8]> = Arc::new([]);
    let mut instances =
        InstanceConnections::new(Arc::clone(&side) as Arc<dyn CallingSide>, Arc::clone(&domain.directory), hello);
    instances.discover(&mut Reactor::new().unwrap(), Some(watch), listed_instances, 1);
    assert!(side.0.load(Ordering::SeqCst));
}
