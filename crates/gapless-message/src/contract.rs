//! Typed requests in frames. A frame's `schema` is the key of the request's name. Its payload begins with the
//! *contract*: a hash of the client's shapes of request, reply and refusal. The contract selects the layout of the
//! command and of its answer.
//!
//! ```text
//! command  0  u32  contract     answer  0  u8   0: reply; 1: refusal; 2: the command took effect, its
//!          4  …    request                      reply has no form in the client's version
//!                                       1  u32  contract of the command
//!                                       5  …    the reply or the refusal
//! ```
//!
//! Messages that are not answered (notices, timers, events) have the form of a command; their contract is a hash of one
//! shape.

use crate::message::{Message, MessageError, OlderVersion};
use crate::request::Request;
use crate::shape::fingerprint;

/// Length of the contract at the start of a payload, bytes.
pub const CONTRACT_LENGTH: usize = 4;
/// Limit of version combinations of one request.
pub const CONTRACTS_MAX: usize = 256;

const REPLY: u8 = 0;
const REFUSAL: u8 = 1;
const REPLY_LOST: u8 = 2;

/// Versions of a request and its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    pub hash: u32,
    pub request_version: u32,
    pub reply_version: u32,
    pub refusal_version: u32,
}

/// An answer that its client cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The request took effect, and its reply has no form in the client's version. Update the client.
    #[error("the request took effect, and its reply has no form in the client's version")]
    ReplyLost,
    /// The bytes do not decode as an answer. Build client and service with the same types.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// A message that this program cannot decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// A sender with another type. Build both programs with the same types.
    #[error(
        "{name}: contract {hash:08x} is unknown to this program, whose type differs from the sender's: build both with the same types"
    )]
    Unknown { name: &'static str, hash: u32 },
    /// Malformed bytes.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// Key of a name in a frame's `schema`: FNV-1a of 32 bits, with the highest bit set.
#[must_use]
pub const fn name_key(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let (mut hash, mut index) = (0x811c_9dc5_u32, 0);
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u32).wrapping_mul(0x0100_0193);
        index += 1;
    }
    hash | 1 << 31
}

/// Contract of the newest versions, which a client speaks.
#[inline]
#[must_use]
pub fn newest<R: Request>() -> u32 {
    hash_of([known::<R>(), known::<R::Reply>(), known::<R::Refusal>()])
}

/// All combinations of the versions that this program reads and writes; the newest first.
///
/// # Panics
/// If there are more than [`CONTRACTS_MAX`], or two with the same hash.
#[must_use]
pub fn contracts_of<R: Request>() -> Vec<Contract> {
    let (requests, replies, refusals) = (versions_of::<R>(), versions_of::<R::Reply>(), versions_of::<R::Refusal>());
    let count = requests.len() * replies.len() * refusals.len();
    assert!(
        count <= CONTRACTS_MAX,
        "{}: {count} combinations of versions, {CONTRACTS_MAX} are the most; remove `since` from the oldest additions, so \
         that versions before them are no longer read, but never in a type of notices or timers: a service stores them",
        R::TYPE_NAME
    );
    let mut contracts: Vec<Contract> = Vec::with_capacity(count);
    for (request_version, request) in requests {
        for &(reply_version, reply) in &replies {
            for &(refusal_version, refusal) in &refusals {
                let hash = hash_of([request, reply, refusal]);
                let is_new = contracts.iter().all(|other| other.hash != hash);
                assert!(
                    is_new,
                    "{}: two combinations of versions have the same hash; rename a type with `#[message(name = …)]`",
                    R::TYPE_NAME
                );
                contracts.push(Contract { hash, request_version, reply_version, refusal_version });
            }
        }
    }
    contracts
}

fn versions_of<M: Message>() -> Vec<(u32, u64)> {
    let older = M::older().into_iter().map(|older| (older.version, older.fingerprint));
    std::iter::once((M::VERSION, known::<M>())).chain(older).collect()
}

/// Fingerprint; that of the name for types whose shapes are not compared.
#[inline]
fn known<M: Message>() -> u64 {
    match M::fingerprint() {
        0 => const { fingerprint(M::TYPE_NAME) },
        fingerprint => fingerprint,
    }
}

/// Mixes fingerprints, which are hashes already.
#[inline]
fn hash_of<const N: usize>(fingerprints: [u64; N]) -> u32 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    let hash = fingerprints.into_iter().fold(0, mix);
    (hash ^ hash >> 32) as u32
}

/// Text about the types of a request, for a peer whose types differ.
#[must_use]
pub fn describe<R: Request>() -> String {
    format!("{} → {} ! {}", R::shape(), R::Reply::shape(), R::Refusal::shape())
}

/// Appends the payload of a command.
///
/// # Errors
/// As [`Message::encode`]; `into` is then unchanged.
#[inline]
pub fn encode_request<R: Request>(request: &R, into: &mut Vec<u8>) -> Result<(), MessageError> {
    let start = into.len();
    into.extend_from_slice(&newest::<R>().to_le_bytes());
    let encoded = request.encode(into);
    if encoded.is_err() {
        into.truncate(start);
    }
    encoded
}

/// Appends the payload of a message that is not answered, in the oldest version that loses nothing of it. So programs of
/// different versions write the same bytes for the same value, and older ones read all that they can know. A program
/// that no longer reads an old version writes other bytes.
///
/// # Errors
/// As [`Message::encode`]; `into` is then unchanged.
pub fn encode_message<M: Message>(message: &M, into: &mut Vec<u8>) -> Result<(), MessageError> {
    let mut older = M::older();
    if !older.is_empty() {
        let mut newest = Vec::new();
        message.encode(&mut newest)?;
        older.sort_unstable_by_key(|older| older.version);
        for OlderVersion { version, fingerprint, .. } in older {
            let start = into.len();
            let is_encoded = encode_version(message, (version, fingerprint), into).is_ok();
            if is_encoded && is_whole::<M>(version, &into[start + CONTRACT_LENGTH..], &newest) {
                return Ok(());
            }
            into.truncate(start);
        }
    }
    encode_version(message, (M::VERSION, known::<M>()), into)
}

/// Contracts of a message that is not answered, of all versions that this program reads; the newest first.
pub fn message_contracts<M: Message>() -> impl Iterator<Item = u32> {
    versions_of::<M>().into_iter().map(|(_, known)| hash_of([known]))
}

/// Whether the bytes of an older version give the same message again.
fn is_whole<M: Message>(version: u32, older: &[u8], newest: &[u8]) -> bool {
    let mut again = Vec::with_capacity(newest.len());
    M::decode_as(version, older).is_ok_and(|message| message.encode(&mut again).is_ok()) && again == newest
}

fn encode_version<M: Message>(
    message: &M,
    (version, fingerprint): (u32, u64),
    into: &mut Vec<u8>,
) -> Result<(), MessageError> {
    let start = into.len();
    into.extend_from_slice(&hash_of([fingerprint]).to_le_bytes());
    let encoded = message.encode_as(version, into);
    if encoded.is_err() {
        into.truncate(start);
    }
    encoded
}

/// Decodes a message that is not answered, of any version that this program reads.
///
/// # Errors
/// [`ContractError`].
pub fn decode_message<M: Message>(payload: &[u8]) -> Result<M, ContractError> {
    let short = || MessageError::of::<M>(format!("a payload of {} bytes is too short for a contract", payload.len()));
    let (hash, message) = split_request(payload).ok_or_else(short)?;
    let version = match hash == hash_of([known::<M>()]) {
        true => Some(M::VERSION),
        false => {
            versions_of::<M>().into_iter().find(|(_, known)| hash_of([*known]) == hash).map(|(version, _)| version)
        }
    };
    let version = version.ok_or(ContractError::Unknown { name: M::TYPE_NAME, hash })?;
    Ok(M::decode_as(version, message)?)
}

/// Splits the payload of a command; `None` if it is too short.
#[inline]
#[must_use]
pub fn split_request(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (contract, request) = payload.split_first_chunk::<CONTRACT_LENGTH>()?;
    Some((u32::from_le_bytes(*contract), request))
}

/// Appends the answer of a request that took effect. If the reply has no form in the agreed version, the answer says so.
#[inline]
pub fn encode_reply<M: Message>(reply: &M, agreed: &Contract, into: &mut Vec<u8>) {
    let start = begin_answer(REPLY, agreed, into);
    let end = into.len();
    if reply.encode_as(agreed.reply_version, into).is_err() {
        into.truncate(end);
        into[start] = REPLY_LOST;
    }
}

/// Appends the answer of a request that was refused.
///
/// # Errors
/// As [`Message::encode_as`]; `into` is then unchanged.
pub fn encode_refusal<M: Message>(refusal: &M, agreed: &Contract, into: &mut Vec<u8>) -> Result<(), MessageError> {
    let start = begin_answer(REFUSAL, agreed, into);
    let encoded = refusal.encode_as(agreed.refusal_version, into);
    if encoded.is_err() {
        into.truncate(start);
    }
    encoded
}

#[inline]
fn begin_answer(kind: u8, agreed: &Contract, into: &mut Vec<u8>) -> usize {
    let start = into.len();
    into.push(kind);
    into.extend_from_slice(&agreed.hash.to_le_bytes());
    start
}

/// Whether an answer, if it is one, is a refusal. For answers that do not decode.
#[must_use]
pub fn is_refusal(payload: &[u8]) -> bool {
    payload.first() == Some(&REFUSAL)
}

/// Decodes an answer to a request of any version that this program reads.
///
/// # Errors
/// The reply is lost, or the bytes are no answer.
#[inline]
pub fn decode_answer<R: Request>(payload: &[u8]) -> Result<Result<R::Reply, R::Refusal>, AnswerError> {
    let malformed = |reason: String| MessageError::of::<R::Reply>(format!("the answer to {} {reason}", R::TYPE_NAME));
    let Some((&kind, Some((hash, answer)))) = payload.split_first().map(|(kind, rest)| (kind, split_request(rest)))
    else {
        return Err(malformed(format!("has {} bytes", payload.len())).into());
    };
    let (reply_version, refusal_version) = if hash == newest::<R>() {
        (R::Reply::VERSION, R::Refusal::VERSION)
    } else {
        let agreed = contracts_of::<R>().into_iter().find(|contract| contract.hash == hash);
        let agreed = agreed.ok_or_else(|| malformed(format!("has the unknown contract {hash:08x}")))?;
        (agreed.reply_version, agreed.refusal_version)
    };
    match kind {
        REPLY => Ok(Ok(R::Reply::decode_as(reply_version, answer)?)),
        REFUSAL => Ok(Err(R::Refusal::decode_as(refusal_version, answer)?)),
        REPLY_LOST => Err(AnswerError::ReplyLost),
        kind => Err(malformed(format!("begins with kind {kind}; 0 to 2 are known")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoRefusal;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize, crate::Message)]
    #[message(version = 3, reply = Taken, refusal = Full)]
    struct Take {
        seat: u32,
        #[serde(default)]
        #[message(since = 2)]
        name: String,
        #[serde(default)]
        #[message(since = 3)]
        child: bool,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, crate::Message)]
    #[message(version = 2)]
    enum Taken {
        Seat(u32),
        #[message(since = 2)]
        Standing,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, crate::Message)]
    pub struct Full(u32);

    /// The same types a year ago.
    mod old {
        use super::*;

        #[derive(Debug, PartialEq, Serialize, Deserialize, crate::Message)]
        #[message(reply = Taken, refusal = Full)]
        pub struct Take {
            pub seat: u32,
        }

        #[derive(Debug, PartialEq, Serialize, Deserialize, crate::Message)]
        pub enum Taken {
            Seat(u32),
        }
    }

    #[test]
    fn every_combination_has_a_contract() {
        let contracts = contracts_of::<Take>();
        assert_eq!(contracts.len(), 3 * 2);
        assert_eq!(contracts[0].hash, newest::<Take>());
        let versions =
            |contract: &Contract| (contract.request_version, contract.reply_version, contract.refusal_version);
        assert_eq!(contracts.iter().map(versions).collect::<Vec<_>>()[..3], [(3, 2, 1), (3, 1, 1), (2, 2, 1)]);
        let old = newest::<old::Take>();
        assert_eq!(contracts.iter().find(|contract| contract.hash == old).map(versions), Some((1, 1, 1)));
    }

    fn agreed(versions: (u32, u32, u32)) -> Contract {
        let is_it = |contract: &Contract| {
            (contract.request_version, contract.reply_version, contract.refusal_version) == versions
        };
        contracts_of::<Take>().into_iter().find(is_it).unwrap()
    }

    #[test]
    fn answers_round_trip() {
        for versions in [(3, 2, 1), (1, 1, 1)] {
            let agreed = agreed(versions);
            let mut bytes = vec![9];
            encode_reply(&Taken::Seat(7), &agreed, &mut bytes);
            assert_eq!(decode_answer::<Take>(&bytes[1..]), Ok(Ok(Taken::Seat(7))));
            assert!(!is_refusal(&bytes[1..]) && !is_refusal(&[]));
            bytes.truncate(1);
            encode_refusal(&Full(3), &agreed, &mut bytes).unwrap();
            assert_eq!(decode_answer::<Take>(&bytes[1..]), Ok(Err(Full(3))));
            assert!(is_refusal(&bytes[1..]));
            let length = bytes.len();
            assert!(encode_refusal(&Full(3), &Contract { refusal_version: 5, ..agreed }, &mut bytes).is_err());
            assert_eq!(bytes.len(), length, "an error leaves nothing behind");
        }
    }

    #[test]
    fn reply_without_old_form_is_lost() {
        let mut bytes = Vec::new();
        encode_reply(&Taken::Standing, &agreed((1, 1, 1)), &mut bytes);
        assert_eq!(decode_answer::<old::Take>(&bytes), Err(AnswerError::ReplyLost));
    }

    #[test]
    fn malformed_answers_are_errors() {
        let mut head = Vec::new();
        begin_answer(REFUSAL, &agreed((3, 2, 1)), &mut head);
        let of_kind = |kind: u8, rest: &[u8]| [&[kind][..], &head[1..], rest].concat();
        for bytes in [
            vec![],
            vec![REPLY],
            vec![REPLY, 0, 0, 0],
            vec![REPLY, 0, 0, 0, 0, 1],
            of_kind(3, &[]),
            of_kind(REPLY, &[]),
            of_kind(REFUSAL, &[0x80]),
            of_kind(REPLY, &[0, 1, 2]),
        ] {
            assert!(matches!(decode_answer::<Take>(&bytes), Err(AnswerError::Message(_))), "{bytes:?}");
        }
        assert_eq!(split_request(&[1, 2, 3]), None);
        assert_eq!(split_request(&[1, 0, 0, 0, 5]), Some((1, &[5][..])));
    }

    #[test]
    fn messages_are_written_in_oldest_whole_version() {
        let payload = |seat, name: &str, child| {
            let mut bytes = Vec::new();
            encode_message(&Take { seat, name: name.to_owned(), child }, &mut bytes).unwrap();
            let read = decode_message::<Take>(&bytes).unwrap();
            assert_eq!((read.seat, read.name.as_str(), read.child), (seat, name, child));
            bytes
        };
        let mut old = Vec::new();
        encode_message(&old::Take { seat: 7 }, &mut old).unwrap();
        assert_eq!(payload(7, "", false), old, "as the old program writes it");
        for newer in [payload(7, "Ada", false), payload(7, "", true)] {
            assert!(matches!(decode_message::<old::Take>(&newer), Err(ContractError::Unknown { .. })));
        }
        assert!(matches!(decode_message::<Take>(&old[..3]), Err(ContractError::Message(_))));
        assert!(matches!(decode_message::<Take>(&[&old[..], &[1]].concat()), Err(ContractError::Message(_))));
    }

    #[test]
    fn uncompared_types_have_contracts() {
        #[derive(Serialize, Deserialize, crate::Message)]
        #[message(name = "Ask", request)]
        struct AskNothing;
        #[derive(Serialize, Deserialize, crate::Message)]
        #[message(name = "Ask", reply = Vec<u8>)]
        struct AskBytes;
        #[derive(Serialize, Deserialize, crate::Message)]
        #[message(name = "Ask", reply = crate::Json)]
        struct AskJson;
        let contracts = [newest::<AskNothing>(), newest::<AskBytes>(), newest::<AskJson>()];
        assert!(contracts[0] != contracts[1] && contracts[1] != contracts[2] && contracts[0] != contracts[2]);
    }

    #[test]
    fn names_and_shapes_tell_requests_apart() {
        #[derive(Serialize, Deserialize, crate::Message)]
        #[message(request)]
        struct Give {
            seat: u32,
        }
        assert_ne!(name_key("Give"), name_key("Take"));
        assert_ne!(newest::<Give>(), newest::<Take>());
        assert_eq!(describe::<Give>(), "Give v1 {seat: u32} → nothing ! NoRefusal v1 enum {}");
        assert!(NoRefusal::decode(&[0]).is_err());
    }
}
