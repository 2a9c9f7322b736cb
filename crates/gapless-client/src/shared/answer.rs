//! Typed results of commands.

use super::call_error::CallError;
use super::call_state::Ending;
use crate::ClientError;
use crate::error::QueryError;
use crate::polled::{MessageType, OwnedReply};
use gapless_message::{Request, contract};
use gapless_wire::control::RefusalCode;

/// Capacity of a payload before it grows, bytes.
const PAYLOAD_LENGTH_USUAL: usize = 128;

/// Encoded request.
///
/// # Errors
/// Reason of the encoder.
pub(super) fn encode<R: Request>(request: &R) -> Result<Vec<u8>, String> {
    let mut payload = Vec::with_capacity(PAYLOAD_LENGTH_USUAL);
    contract::encode_request(request, &mut payload).map_err(|error| error.to_string())?;
    Ok(payload)
}

pub(super) fn result_of<R: Request>(ending: Ending) -> Result<R::Reply, CallError<R::Refusal>> {
    match ending {
        Ending::Reply { sequence, message, payload } => {
            if message == MessageType::typed::<R>()
                && let Ok(answer) = contract::decode_answer::<R>(&payload)
            {
                return answer.map_err(CallError::Refused);
            }
            Err(unreadable::<R>(OwnedReply {
                sequence,
                timestamp_ns: 0,
                schema: message.schema,
                encoding: message.encoding,
                payload,
            }))
        }
        Ending::Refused { number, sequence, code, detail, text } => Err(match code {
            RefusalCode::ReplyTooLong => {
                let reason = ClientError::ReplyTooLong { sequence, length_bytes: detail }.to_string();
                CallError::Done { sequence, reason }
            }
            // The command had an outcome that is no longer kept.
            RefusalCode::ReplyExpired => CallError::Unknown { number, reason: text },
            code => CallError::Failed { sequence, code, reason: text },
        }),
        Ending::Unknown { number, reason } => Err(CallError::Unknown { number, reason }),
        Ending::NotSent { reason } => Err(CallError::NotSent { reason }),
        Ending::Invalid { reason } => Err(CallError::Invalid { reason }),
        Ending::Answer(_) => unreachable!("only a query has an answer"),
    }
}

pub(super) fn query_result_of<Q: Request>(ending: Ending) -> Result<Q::Reply, QueryError<Q::Refusal>> {
    match ending {
        Ending::Answer(answer) => answer.result::<Q>().map_err(QueryError::with_refusal)?.map_err(QueryError::Refused),
        Ending::NotSent { reason } | Ending::Unknown { reason, .. } => Err(QueryError::Unavailable { reason }),
        Ending::Invalid { reason } => Err(QueryError::Client(ClientError::Encode(reason))),
        Ending::Reply { .. } | Ending::Refused { .. } => unreachable!("only a command has a reply"),
    }
}

#[cold]
fn unreadable<R: Request>(reply: OwnedReply) -> CallError<R::Refusal> {
    let sequence = reply.sequence;
    let reason = match reply.answer::<R>() {
        Ok(_) => unreachable!("it was not readable"),
        Err(error) => error.to_string(),
    };
    if reply.message_type() == MessageType::typed::<R>() && contract::is_refusal(&reply.payload) {
        return CallError::Failed { sequence, code: RefusalCode::Rejected, reason };
    }
    CallError::Done { sequence, reason }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::CommandNumber;
    use gapless_wire::Encoding;

    /// Unit is the request, the reply and the refusal of these tests.
    #[derive(Debug, PartialEq)]
    struct Ask;

    impl gapless_message::Message for Ask {
        const TYPE_NAME: &'static str = "Ask";
        const VERSION: u32 = 1;
        const ENCODING: gapless_message::Encoding = gapless_message::Encoding::Bytes;

        fn fingerprint() -> u64 {
            1
        }

        fn encode(&self, into: &mut Vec<u8>) -> Result<(), gapless_message::MessageError> {
            into.push(5);
            Ok(())
        }

        fn decode(bytes: &[u8]) -> Result<Self, gapless_message::MessageError> {
            match bytes {
                [5] => Ok(Self),
                _ => Err(gapless_message::MessageError { type_name: "Ask", reason: "not 5".to_owned() }),
            }
        }
    }

    impl Request for Ask {
        type Reply = Self;
        type Refusal = Self;
    }

    fn reply(message: MessageType, payload: &[u8]) -> Result<Ask, CallError<Ask>> {
        result_of::<Ask>(Ending::Reply { sequence: 9, message, payload: payload.to_vec() })
    }

    #[test]
    fn answers_are_told_apart() {
        let message = MessageType::typed::<Ask>();
        let agreed = contract::contracts_of::<Ask>().into_iter().next().unwrap();
        let (mut replied, mut refused) = (Vec::new(), Vec::new());
        contract::encode_reply(&Ask, &agreed, &mut replied);
        contract::encode_refusal(&Ask, &agreed, &mut refused).unwrap();
        assert_eq!(reply(message, &replied), Ok(Ask));
        assert_eq!(reply(message, &refused), Err(CallError::Refused(Ask)));
        let is_done = |answer| matches!(answer, Err(CallError::Done { sequence: 9, .. }));
        assert!(is_done(reply(MessageType { schema: 1, encoding: Encoding::Opaque }, &refused)));
        *replied.last_mut().unwrap() = 6;
        assert!(is_done(reply(message, &replied)) && is_done(reply(message, &[])));
        *refused.last_mut().unwrap() = 6;
        let unreadable = reply(message, &refused).unwrap_err();
        assert!(matches!(unreadable, CallError::Failed { code: RefusalCode::Rejected, .. }), "{unreadable}");
        assert_eq!(unreadable.took_effect(), Some(false));
    }

    #[test]
    fn refusals_of_the_engine_are_told_apart() {
        let number = CommandNumber { session: 7, session_seq: 8 };
        let of = |code| {
            let text = "text".to_owned();
            result_of::<Ask>(Ending::Refused { number, sequence: 9, code, detail: 4, text }).unwrap_err()
        };
        for (code, effect) in [
            (RefusalCode::Unhandled, Some(false)),
            (RefusalCode::Malformed, Some(false)),
            (RefusalCode::HandlerPanicked, Some(false)),
            (RefusalCode::Rejected, Some(false)),
            (RefusalCode::ReplyTooLong, Some(true)),
            (RefusalCode::ReplyExpired, None),
        ] {
            assert_eq!(of(code).took_effect(), effect, "{code:?}");
        }
        assert!(of(RefusalCode::ReplyTooLong).to_string().contains("its reply of 4 bytes"));
        assert_eq!(of(RefusalCode::ReplyExpired), CallError::Unknown { number, reason: "text".to_owned() });
    }
}
