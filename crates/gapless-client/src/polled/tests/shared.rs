//! A client below a shared one, whose threads must not sleep.

use super::*;
use rustix::fd::OwnedFd;

fn sockets() -> (OwnedFd, OwnedFd) {
    let pair = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    );
    pair.unwrap()
}

/// A client that waits here would take 100 ms each time.
#[test]
fn shared_client_waits_for_no_reason() {
    let (mut client, service) = connected();
    client.wait_for_nothing();
    let (ours, theirs) = sockets();
    client.link.socket = Some(ours);
    assert!(!client.awaits_failure());
    service.lock().rings = None;
    assert!(client.awaits_failure());
    let begun = Instant::now();
    for _ in 0..100 {
        assert!(matches!(client.check_connected(), Err(ClientError::Disconnected { reason: None, .. })));
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(theirs);
    assert!(!client.awaits_failure(), "there is none");
}

/// Commands of other threads may meet a service that stands still.
#[test]
fn member_is_checked_during_a_sleep() {
    let (mut client, _service) = connected();
    let (ours, _theirs) = sockets();
    client.link.socket = Some(ours);
    client.open_session(7, 8).unwrap();
    let longest = |client: &mut PolledClient| client.begin_sleep().unwrap().unwrap().longest;
    assert_eq!(longest(&mut client), Duration::MAX);
    client.addresses = Some(Addresses::new(vec![ServiceAddress::ClientEnvironment, ServiceAddress::ClientEnvironment]));
    assert_eq!(longest(&mut client), SILENCE_MAX);
    send(&mut client, SessionKey(0), 8).unwrap();
    assert!(longest(&mut client) <= SILENCE_MAX);
}
