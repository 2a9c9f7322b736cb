//! Typed requests in frames. A frame's `schema` is the key of the request's name. Its payload begins with the
//! *contract*: a hash over the shapes of request, reply and refusal in the versions that the client speaks. So the frame
//! says how to read it, and in which versions to answer; no program reads it by another layout.
//!
//! ```text
//! command  0  u32  contract     answer  0  u8  0: reply; 1: refusal; 2: the command took effect, its
//!          4  …    request                     reply does not exist in the client's version
//!                                       1  …   the reply, the refusal, or a text in UTF-8
//! ```

use crate::message::{Message, MessageError};
use crate::request::Request;

/// Length of the contract at the begin of a payload, bytes.
pub const CONTRACT_LENGTH: usize = 4;
/// Most combinations of versions of one request.
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
    /// The request took effect, and its reply does not exist in the client's version. Update the client.
    #[error("the reply does not exist in this version: {reason}")]
    ReplyLost { reason: String },
    /// The bytes are no such answer. Build client and service with the same types.
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
    hash_of([R::fingerprint(), R::Reply::fingerprint(), R::Refusal::fingerprint()])
}

/// All combinations of the versions that this program reads and writes; the newest first.
///
/// # Panics
/// If there are more than [`CONTRACTS_MAX`], or two of one hash.
#[must_use]
pub fn contracts_of<R: Request>() -> Vec<Contract> {
    let mut contracts = Vec::new();
    for (request_version, request) in versions_of::<R>() {
        for (reply_version, reply) in versions_of::<R::Reply>() {
            for (refusal_version, refusal) in versions_of::<R::Refusal>() {
                let hash = hash_of([request, reply, refusal]);
                let is_new = contracts.iter().all(|other: &Contract| other.hash != hash);
                assert!(is_new, "{}: two combinations of versions have one hash: rename a type", R::TYPE_NAME);
                contracts.push(Contract { hash, request_version, reply_version, refusal_version });
            }
        }
    }
    assert!(
        contracts.len() <= CONTRACTS_MAX,
        "{}: {} combinations of versions; {CONTRACTS_MAX} are the most",
        R::TYPE_NAME,
        contracts.len()
    );
    contracts
}

fn versions_of<M: Message>() -> impl Iterator<Item = (u32, u64)> {
    let older = M::older().into_iter().map(|older| (older.version, older.fingerprint));
    std::iter::once((M::VERSION, M::fingerprint())).chain(older)
}

/// Mixes three fingerprints, which are hashes already.
#[inline]
fn hash_of(fingerprints: [u64; 3]) -> u32 {
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

/// Splits the payload of a command; `None` if it is too short.
#[inline]
#[must_use]
pub fn split_request(payload: &[u8]) -> Option<(u32, &[u8])> {
    let (contract, request) = payload.split_first_chunk::<CONTRACT_LENGTH>()?;
    Some((u32::from_le_bytes(*contract), request))
}

/// Appends the answer of a request that took effect. If the reply does not exist in `version`, the answer says so.
#[inline]
pub fn encode_reply<M: Message>(reply: &M, version: u32, into: &mut Vec<u8>) {
    into.push(REPLY);
    if let Err(error) = reply.encode_as(version, into) {
        let at = into.len() - 1;
        into[at] = REPLY_LOST;
        into.extend_from_slice(error.reason.as_bytes());
    }
}

/// Appends the answer of a request that was refused.
///
/// # Errors
/// As [`Message::encode_as`]; `into` is then unchanged.
pub fn encode_refusal<M: Message>(refusal: &M, version: u32, into: &mut Vec<u8>) -> Result<(), MessageError> {
    let start = into.len();
    into.push(REFUSAL);
    let encoded = refusal.encode_as(version, into);
    if encoded.is_err() {
        into.truncate(start);
    }
    encoded
}

/// Decodes an answer to the newest version of a request.
///
/// # Errors
/// The reply is lost, or the bytes are no answer.
#[inline]
pub fn decode_answer<R: Request>(payload: &[u8]) -> Result<Result<R::Reply, R::Refusal>, AnswerError> {
    match payload.split_first() {
        Some((&REPLY, reply)) => Ok(Ok(R::Reply::decode(reply)?)),
        Some((&REFUSAL, refusal)) => Ok(Err(R::Refusal::decode(refusal)?)),
        Some((&REPLY_LOST, text)) => Err(AnswerError::ReplyLost { reason: String::from_utf8_lossy(text).into_owned() }),
        other => {
            let found = other.map_or_else(|| "no byte".to_owned(), |(kind, _)| format!("kind {kind}"));
            Err(MessageError::of::<R::Reply>(format!("an answer to {} has {found}", R::TYPE_NAME)).into())
        }
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

    #[test]
    fn answers_round_trip() {
        let mut bytes = vec![9];
        encode_reply(&Taken::Seat(7), 2, &mut bytes);
        assert_eq!(decode_answer::<Take>(&bytes[1..]), Ok(Ok(Taken::Seat(7))));
        bytes.truncate(1);
        encode_refusal(&Full(3), 1, &mut bytes).unwrap();
        assert_eq!(decode_answer::<Take>(&bytes[1..]), Ok(Err(Full(3))));
        assert!(encode_refusal(&Full(3), 5, &mut bytes).is_err());
        assert_eq!(bytes.len(), 3, "an error leaves nothing behind");
    }

    #[test]
    fn reply_without_old_form_is_lost() {
        let mut bytes = Vec::new();
        encode_reply(&Taken::Standing, 1, &mut bytes);
        let lost = decode_answer::<old::Take>(&bytes).unwrap_err();
        assert!(matches!(&lost, AnswerError::ReplyLost { reason } if reason.contains("Standing")), "{lost}");
    }

    #[test]
    fn malformed_answers_are_errors() {
        for bytes in [&[][..], &[3], &[REPLY], &[REFUSAL], &[REFUSAL, 0x80], &[REPLY, 0, 1, 2]] {
            assert!(matches!(decode_answer::<Take>(bytes), Err(AnswerError::Message(_))), "{bytes:?}");
        }
        assert_eq!(split_request(&[1, 2, 3]), None);
        assert_eq!(split_request(&[1, 0, 0, 0, 5]), Some((1, &[5][..])));
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
