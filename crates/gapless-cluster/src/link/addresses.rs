//! Known addresses of a peer in the order of the attempts, and a thread that resolves names, because the operating
//! system's call blocks.

use super::error::LinkError;
use super::options::{MEMBER_ADDRESSES_MAX, PeerOptions};
use super::wire::MemberNumber;
use gapless_transport::sockets::{Address, shared_memory_path};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

const RESOLVED_MAX: usize = 8;
const ANNOUNCED_MAX: usize = 2 * MEMBER_ADDRESSES_MAX;
const RESOLVE_INTERVAL_NS: u64 = 1_000_000_000;
/// A peer that finds no room asks again later.
const QUESTIONS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct PeerAddresses {
    member: MemberNumber,
    configured: Vec<ConfiguredAddress>,
    round: Vec<Address>,
    preferred: Option<Address>,
    /// The newest last; tried after all others.
    announced: Vec<Address>,
}

#[derive(Debug)]
enum ConfiguredAddress {
    Address(Address),
    Name { text: String, resolved: Vec<SocketAddr>, is_asked: bool, next_question_ns: u64 },
}

impl PeerAddresses {
    pub(super) fn new(peer: &PeerOptions) -> Result<Self, LinkError> {
        if peer.addresses.len() > MEMBER_ADDRESSES_MAX {
            return Err(LinkError::Peer { member: peer.member, rule: "it has more than 16 addresses" });
        }
        let configured = peer.addresses.iter().map(|text| {
            let wrong = || LinkError::Address { member: peer.member, address: text.clone() };
            if let Some(path) = shared_memory_path(text).map_err(|_| wrong())? {
                return Ok(ConfiguredAddress::Address(Address::SharedMemory(path.into())));
            }
            if let Ok(address) = text.parse() {
                return Ok(ConfiguredAddress::Address(Address::Network(address)));
            }
            let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains(':'));
            if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
                return Err(wrong());
            }
            Ok(ConfiguredAddress::Name {
                text: text.clone(),
                resolved: Vec::new(),
                is_asked: false,
                next_question_ns: 0,
            })
        });
        let configured = configured.collect::<Result<_, _>>()?;
        Ok(Self { configured, ..Self::empty(peer.member) })
    }

    pub(super) const fn empty(member: MemberNumber) -> Self {
        Self { member, configured: Vec::new(), round: Vec::new(), preferred: None, announced: Vec::new() }
    }

    pub(super) fn next(&mut self) -> Option<Address> {
        self.round.pop()
    }

    /// Begins with the last address, unless memory may be shared, and asks for the names that are due.
    pub(super) fn begin_round(&mut self, now_ns: u64, resolver: &mut Resolver) {
        self.round.clear();
        self.round.extend(self.announced.iter().cloned());
        for configured in self.configured.iter_mut().rev() {
            match configured {
                ConfiguredAddress::Address(address) => self.round.push(address.clone()),
                ConfiguredAddress::Name { text, resolved, is_asked, next_question_ns } => {
                    self.round.extend(resolved.iter().rev().copied().map(Address::Network));
                    if !*is_asked && now_ns >= *next_question_ns {
                        *is_asked = resolver.ask(self.member, text);
                        *next_question_ns = now_ns + RESOLVE_INTERVAL_NS;
                    }
                }
            }
        }
        if let Some(preferred) = &self.preferred {
            self.round.retain(|address| address != preferred);
            self.round.push(preferred.clone());
        }
        // Shared memory is free to try and gains the most; the sort is stable.
        self.round.sort_by_key(|address| matches!(address, Address::SharedMemory(_)));
    }

    /// The oldest announcement is dropped if there are too many.
    pub(super) fn add_announced(&mut self, addresses: &[SocketAddr]) {
        for address in addresses.iter().copied().map(Address::Network) {
            self.announced.retain(|hint| *hint != address);
            if self.announced.len() >= ANNOUNCED_MAX {
                self.announced.remove(0);
            }
            self.announced.push(address);
        }
    }

    pub(super) fn note_success(&mut self, address: Address) {
        self.preferred = Some(address);
    }

    pub(super) fn note_failure(&mut self, address: &Address) {
        self.preferred.take_if(|preferred| preferred == address);
    }

    pub(super) fn note_resolved(&mut self, answer: &ResolvedName) {
        for configured in &mut self.configured {
            if let ConfiguredAddress::Name { text, resolved, is_asked, .. } = configured
                && *text == answer.name
            {
                *is_asked = false;
                // An older answer is better than none.
                if !answer.addresses.is_empty() {
                    resolved.clone_from(&answer.addresses);
                }
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Resolver(Option<ResolverThread>);

#[derive(Debug)]
pub(super) struct ResolvedName {
    pub(super) member: MemberNumber,
    name: String,
    addresses: Vec<SocketAddr>,
}

#[derive(Debug)]
struct ResolverThread {
    questions: SyncSender<(MemberNumber, String)>,
    answers: Receiver<ResolvedName>,
}

impl Resolver {
    fn ask(&mut self, member: MemberNumber, name: &str) -> bool {
        let thread = match &mut self.0 {
            Some(thread) => thread,
            none => match ResolverThread::start() {
                Ok(thread) => none.insert(thread),
                Err(error) => {
                    tracing::warn!(%error, "no thread can be started to look up the names of members");
                    return false;
                }
            },
        };
        thread.questions.try_send((member, name.to_owned())).is_ok()
    }

    pub(super) fn next_answer(&mut self) -> Option<ResolvedName> {
        self.0.as_ref()?.answers.try_recv().ok()
    }
}

impl ResolverThread {
    /// The thread ends with the channel; it is not joined, because its current call may take long.
    fn start() -> std::io::Result<Self> {
        let (questions, asked) = sync_channel::<(MemberNumber, String)>(QUESTIONS_MAX);
        let (answer, answers) = channel();
        let work = move || {
            for (member, name) in asked {
                let addresses = match name.to_socket_addrs() {
                    Ok(addresses) => addresses.take(RESOLVED_MAX).collect(),
                    Err(error) => {
                        tracing::warn!(member, name, %error, "a member's name has no address");
                        Vec::new()
                    }
                };
                if answer.send(ResolvedName { member, name, addresses }).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("gapless-resolve".to_owned()).spawn(work)?;
        Ok(Self { questions, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn addresses(texts: &[&str]) -> Result<PeerAddresses, LinkError> {
        PeerAddresses::new(&PeerOptions { member: 2, addresses: texts.iter().map(|text| (*text).to_owned()).collect() })
    }

    fn round(addresses: &mut PeerAddresses, now_ns: u64, resolver: &mut Resolver) -> Vec<String> {
        addresses.begin_round(now_ns, resolver);
        std::iter::from_fn(|| addresses.next()).map(|address| address.to_string()).collect()
    }

    #[test]
    fn last_good_address_comes_first() {
        let mut its = addresses(&["10.0.0.1:1", "[::1]:2", "10.0.0.3:3"]).unwrap();
        let mut resolver = Resolver::default();
        assert_eq!(round(&mut its, 0, &mut resolver), ["10.0.0.1:1", "[::1]:2", "10.0.0.3:3"]);
        let third = Address::Network("10.0.0.3:3".parse().unwrap());
        its.note_success(third.clone());
        assert_eq!(round(&mut its, 0, &mut resolver), ["10.0.0.3:3", "10.0.0.1:1", "[::1]:2"]);
        its.note_failure(&Address::Network("10.0.0.1:1".parse().unwrap()));
        its.note_failure(&third);
        assert_eq!(round(&mut its, 0, &mut resolver), ["10.0.0.1:1", "[::1]:2", "10.0.0.3:3"]);
        assert!(resolver.0.is_none(), "without names no thread");
    }

    #[test]
    fn shared_memory_is_tried_first() {
        let mut its = addresses(&["10.0.0.1:1", "shm:/run/two", "10.0.0.3:3"]).unwrap();
        let mut resolver = Resolver::default();
        assert_eq!(round(&mut its, 0, &mut resolver), ["shm:/run/two", "10.0.0.1:1", "10.0.0.3:3"]);
        its.note_success(Address::Network("10.0.0.3:3".parse().unwrap()));
        assert_eq!(round(&mut its, 0, &mut resolver), ["shm:/run/two", "10.0.0.3:3", "10.0.0.1:1"]);
    }

    #[test]
    fn invalid_address_is_an_error() {
        for text in ["", "host", ":1", "host:", "host:70000", "::1:1x", "10.0.0.1", "shm:", "shm:here"] {
            assert!(addresses(&[text]).is_err(), "{text:?}");
        }
        assert!(addresses(&["10.0.0.1:1"; MEMBER_ADDRESSES_MAX + 1]).is_err());
    }

    #[test]
    fn name_resolves_for_a_later_round() {
        let mut its = addresses(&["10.0.0.1:1", "localhost:7"]).unwrap();
        let mut resolver = Resolver::default();
        assert_eq!(round(&mut its, 0, &mut resolver), ["10.0.0.1:1"]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while round(&mut its, 0, &mut resolver).len() == 1 {
            assert!(Instant::now() < deadline, "localhost has an address");
            std::thread::sleep(Duration::from_millis(1));
            if let Some(answer) = resolver.next_answer() {
                assert_eq!(answer.member, 2);
                its.note_resolved(&answer);
            }
        }
        let found = round(&mut its, 0, &mut resolver);
        assert!(found[1].ends_with(":7"), "{found:?}");
    }
}
