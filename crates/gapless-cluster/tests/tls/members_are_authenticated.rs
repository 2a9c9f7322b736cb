//! Members refuse plain text and certificates of another authority, time or name, whichever side dials.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::linked_members::{Member, PATIENCE, ScriptedPeer, identity, listening, peer};
use gapless_cluster::link::log_state::LogState;
use gapless_cluster::link::tls::certificate_name;
use gapless_cluster::link::wire::{Introduction, LinkRefusal, LinkRefusalCode, MessageHeader, MessageKind};
use gapless_cluster::link::{LinkError, LinkTls, MemberLinkOptions, MessageContent};
use gapless_testkit::rcgen::{
    BasicConstraints, Certificate, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};
use gapless_testkit::wait::turn_until;
use gapless_transport::sockets::tls::rustls;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

struct Credentials {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { certificate: parameters.self_signed(&key).unwrap(), issuer: Issuer::new(parameters, key) }
    }

    fn signs(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Credentials {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Credentials { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn member(&self, member: u64) -> Credentials {
        self.signs(&certificate_name("market", member), |_| ())
    }

    fn expired(&self, member: u64) -> Credentials {
        self.signs(&certificate_name("market", member), |parameters| {
            (parameters.not_before, parameters.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        })
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        roots
    }
}

struct Files {
    _directory: TempDir,
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
}

fn files(shown: &Credentials, authority: &Authority) -> Files {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let certificate = write("member.pem", &shown.certificate);
    let key = write("member.key", &shown.key);
    let authority = write("authority.pem", &authority.certificate.pem());
    Files { _directory: directory, certificate, key, authority }
}

fn load(files: &Files, member: u64) -> Result<LinkTls, LinkError> {
    LinkTls::load(&files.certificate, &files.key, &files.authority, "market", member)
}

fn tls(authority: &Authority, member: u64) -> Option<LinkTls> {
    Some(load(&files(&authority.member(member), authority), member).unwrap())
}

fn second(authority: &Authority) -> Member {
    let options = MemberLinkOptions { tls: tls(authority, 2), ..listening() };
    Member::new(options, identity(2), &[peer(1, &[])])
}

fn first(tls: Option<LinkTls>, at: SocketAddr) -> Member {
    let options = MemberLinkOptions { tls, back_off_ns_max: 20_000_000, ..MemberLinkOptions::default() };
    Member::new(options, identity(1), &[peer(2, &[at])])
}

#[test]
fn proven_members_exchange_messages() {
    let authority = Authority::new();
    let mut second = second(&authority);
    let mut first = first(tls(&authority, 1), second.address());
    turn_until("both are connected", || {
        first.idle();
        second.idle();
        !first.events.is_empty() && !second.events.is_empty()
    });
    assert_eq!(
        (first.event_texts(), second.event_texts()),
        (vec!["connected 2".to_owned()], vec!["connected 1".to_owned()])
    );
    for length in [0, 1, 8, 72, 5_000, 70_000, 9_000_000] {
        let frames: Vec<u8> = (0..length).map(|at: u32| (at * 7 % 251) as u8).collect();
        let (head, tail) = frames.split_at(frames.len() / 3);
        first.links.send(2, MessageContent::Consensus, b"there", &[head, tail]).unwrap();
        second.links.send(1, MessageContent::CatchUpFrames, b"and back", &[&frames]).unwrap();
        let (mut there, mut back) = (false, false);
        turn_until("a message each way", || {
            second.turn(|message| there = message.consensus == b"there" && message.frames == frames);
            first.turn(|message| back = message.consensus == b"and back" && message.frames == frames);
            there && back
        });
    }
    drop(second);
    turn_until("the end of the connection is noticed", || {
        first.idle();
        !first.events.is_empty()
    });
    assert_eq!(first.event_texts(), ["gone 2"]);
}

/// As member 1, with a TLS client. Returns the bytes read until the end.
fn dials(second: &mut Member, authority: &Authority, shown: Option<&Credentials>) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(authority.roots());
    let config = match shown {
        None => config.with_no_client_auth(),
        Some(shown) => {
            let chain = vec![CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let name = ServerName::try_from(certificate_name("market", 2)).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let tcp = TcpStream::connect(second.address()).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let visitor = std::thread::spawn(move || {
        let mut stream = StreamOwned::new(connection, tcp);
        let hello = Introduction { from: identity(1), to: 2, log: LogState::default() }.to_bytes();
        let header = MessageHeader::new(MessageKind::Hello, 1, &hello, 0).to_bytes();
        let mut read = Vec::new();
        // A refused client may notice it at any of these calls.
        let _ = stream.write_all(&[&header[..], &hello].concat()).and_then(|()| stream.read_to_end(&mut read));
        read
    });
    turn_until("the client has been answered", || {
        second.idle();
        visitor.is_finished() || second.links.is_connected(1)
    });
    assert!(!second.links.is_connected(1), "the client was accepted");
    visitor.join().unwrap()
}

#[test]
fn unproven_member_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut second = second(&authority);
    let not_for_clients = authority.signs(&certificate_name("market", 1), |parameters| {
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let cases = [
        ("no certificate", None),
        ("another authority's", Some(other.member(1))),
        ("an expired one", Some(authority.expired(1))),
        ("one that is not for clients", Some(not_for_clients)),
    ];
    for (at, (what, shown)) in cases.iter().enumerate() {
        let read = dials(&mut second, &authority, shown.as_ref());
        assert!(read.is_empty(), "{what}: {read:?}");
        assert_eq!(second.links.pending_statistics().garbage, at as u64 + 1, "{what}");
    }
    // The authority has signed these, so the refusal is sent.
    for name in ["member-3.market", "member-1.bazaar", "market"] {
        let read = dials(&mut second, &authority, Some(&authority.signs(name, |_| ())));
        let header = MessageHeader::parse(read.first_chunk().unwrap()).unwrap();
        assert_eq!(header.kind, MessageKind::Refusal, "{name}");
        let refusal = LinkRefusal::parse(header.parts(&read).unwrap().0).unwrap();
        assert_eq!(refusal.code, LinkRefusalCode::NotProven, "{name}: {refusal}");
    }
    assert_eq!(second.links.pending_statistics().refused, 3);
    let mut plain = ScriptedPeer::hello(second.address(), identity(1), 2);
    turn_until("plain text is refused", || {
        second.idle();
        second.links.pending_statistics().garbage == 5
    });
    turn_until("the connection is closed", || plain.is_closed());

    let mut good = first(tls(&authority, 1), second.address());
    turn_until("the member is still accepted", || {
        good.idle();
        second.idle();
        second.links.is_connected(1) && good.links.is_connected(2)
    });
}

fn is_dialled(authority: &Authority, shown: &Credentials) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut first = first(tls(authority, 1), listener.local_addr().unwrap());
    let impostor = std::thread::spawn(move || {
        let (tcp, _) = listener.accept().unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), tcp);
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => "closed".to_owned(),
            Ok(_) => "it was told something".to_owned(),
            Err(error) => error.to_string(),
        }
    });
    turn_until("the handshake has ended", || {
        first.idle();
        impostor.is_finished()
    });
    assert!(!first.links.is_connected(2));
    impostor.join().unwrap()
}

#[test]
fn unproven_server_gets_no_message() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (what, shown) in [
        ("another authority's", other.member(2)),
        ("an expired one", authority.expired(2)),
        ("another member's", authority.member(3)),
        ("another cluster's", authority.signs("member-2.bazaar", |_| ())),
    ] {
        let ended = is_dialled(&authority, &shown);
        assert!(ended.contains("alert"), "{what}: {ended}");
    }
}

#[test]
fn tls_and_plain_do_not_mix() {
    let authority = Authority::new();
    for has_first in [true, false] {
        let (of_first, of_second) = (tls(&authority, 1), tls(&authority, 2));
        let options = MemberLinkOptions { tls: of_second.filter(|_| !has_first), ..listening() };
        let mut second = Member::new(options, identity(2), &[peer(1, &[])]);
        let mut first = first(of_first.filter(|_| has_first), second.address());
        turn_until("three attempts were made", || {
            first.idle();
            second.idle();
            second.links.pending_statistics().garbage >= 3
        });
        assert!(!first.links.is_connected(2) && !second.links.is_connected(1));
        assert_eq!(first.links.statistics(2).unwrap().connections, 0);
    }
}

#[test]
fn invalid_files_stop_the_start() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = files(&authority.member(1), &authority);
    assert!(load(&good, 1).is_ok());
    let refuses = |files: &Files, member: u64, words: &[&str]| {
        let refused = load(files, member).unwrap_err().to_string();
        assert!(words.iter().all(|word| refused.contains(word)), "{words:?}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    };
    refuses(&good, 2, &["member.pem", "member-2.market"]);
    refuses(&files(&authority.expired(1), &authority), 1, &["member.pem", "expired"]);
    refuses(&files(&other.member(1), &authority), 1, &["member.pem", "does not vouch"]);
    let mixed = Credentials { certificate: authority.member(1).certificate, key: authority.member(1).key };
    refuses(&files(&mixed, &authority), 1, &["member.key"]);
    let empty = Credentials { certificate: "nothing".to_owned(), key: authority.member(1).key };
    refuses(&files(&empty, &authority), 1, &["member.pem", "no certificate"]);
    let missing = Files { key: "/nowhere/member.key".into(), ..files(&authority.member(1), &authority) };
    refuses(&missing, 1, &["/nowhere/member.key"]);
    let only_server = authority.signs("member-1.market", |parameters| {
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    refuses(&files(&only_server, &authority), 1, &["member.pem", "who connects"]);
    let options =
        MemberLinkOptions { listen_shared: Some("/nowhere/2".into()), tls: tls(&authority, 2), ..listening() };
    assert!(options.validate().unwrap_err().to_string().contains("shared memory"));
}

#[test]
fn guide_certificates_work() {
    let guide = include_str!("../../../../docs/guides/running-a-cluster.md");
    let section = guide.split("## Members that prove who they are").nth(1).unwrap();
    let commands = section.split("```sh").nth(1).unwrap().split("```").next().unwrap();
    if std::process::Command::new("openssl").arg("version").output().is_err() {
        println!("SKIPPED: openssl is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("sh").args(["-ec", commands]).current_dir(directory.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| directory.path().join(name);
    for member in 1..=3 {
        let (certificate, key) = (file(&format!("member-{member}.pem")), file(&format!("member-{member}.key")));
        LinkTls::load(&certificate, &key, &file("authority.pem"), "orders", member).unwrap();
    }
}
