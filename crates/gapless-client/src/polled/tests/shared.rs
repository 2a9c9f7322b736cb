//! A client below a shared one, whose threads must not sleep.

use super::*;

/// A client that waits here would take 100 ms each time.
#[test]
fn shared_client_waits_for_no_reason() {
    let (mut client, service) = connected();
    client.wait_for_nothing();
    let pair = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    );
    let (ours, theirs) = pair.unwrap();
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
