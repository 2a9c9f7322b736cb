#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_transport::network::{Datagrams, UdpOptions, UdpSocket};
use nix::sys::socket::setsockopt;
use nix::{libc, setsockopt_impl, sockopt_impl};
use std::net::Ipv4Addr;

// The kernel joins only packets that it computes checksums for; without them it refuses like an interface without
// offload.
sockopt_impl!(NoChecksums, SetOnly, libc::SOL_SOCKET, libc::SO_NO_CHECK, bool);

fn pair() -> (UdpSocket, UdpSocket) {
    let options = UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into());
    (UdpSocket::open(&options).unwrap(), UdpSocket::open(&options).unwrap())
}

fn receive(receiver: &mut UdpSocket, count: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    while lengths.len() < count {
        receiver.receive(&mut |_, packet| lengths.push(packet.len())).unwrap();
    }
    assert_eq!(receiver.receive(&mut |_, _| ()).unwrap(), 0);
    lengths
}

#[test]
fn refusal_ends_joining_without_loss() {
    for is_even in [true, false] {
        let (mut sender, mut receiver) = pair();
        if !sender.offload().send {
            return eprintln!("SKIPPED: the kernel joins no packets");
        }
        setsockopt(&sender.fd().unwrap(), NoChecksums, &true).unwrap();
        let to = receiver.local_address();
        if is_even {
            assert_eq!(sender.send(to, &[1; 9_950], 100).unwrap(), 9_950);
        } else {
            assert_eq!(sender.send_uneven(to, &[1; 9_950], &[[100; 99].as_slice(), &[50]].concat()).unwrap(), 100);
        }
        assert_eq!(receive(&mut receiver, 100), [[100; 99].as_slice(), &[50]].concat());
        assert!(!sender.offload().send);
        assert_eq!(sender.send(to, &[1; 300], 100).unwrap(), 300);
        assert_eq!(receive(&mut receiver, 3), [100; 3]);
    }
}

#[test]
fn late_refusal_loses_nothing() {
    let (mut sender, mut receiver) = pair();
    let to = receiver.local_address();
    assert_eq!(sender.send(to, &[1; 300], 100).unwrap(), 300);
    assert_eq!(receive(&mut receiver, 3), [100; 3]);
    // Only the route to some peers supports joined packets.
    setsockopt(&sender.fd().unwrap(), NoChecksums, &true).unwrap();
    assert_eq!(sender.send(to, &[1; 100], 100).unwrap(), 100);
    assert_eq!(receive(&mut receiver, 1), [100]);
}
