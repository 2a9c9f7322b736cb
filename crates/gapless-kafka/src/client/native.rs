//! Calls for which `rdkafka` has no safe function. All other modules of this crate deny `unsafe`.

use rdkafka::bindings;
use rdkafka::message::BorrowedMessage;
use rdkafka::types::RDKafkaRespErr;
use std::ffi::{CStr, c_char, c_void};
use std::{ptr, slice};

/// Name and value of a received header; the name may be any bytes without a zero byte.
pub type KafkaHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// Persistence of a record in the broker's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordPersistence {
    NotPersisted,
    PossiblyPersisted,
    Persisted,
}

pub(super) fn persistence(message: &BorrowedMessage<'_>) -> RecordPersistence {
    // SAFETY: the pointer is that of a message of a delivery report, which lives as long as `message`; the call reads one field of it.
    match unsafe { bindings::rd_kafka_message_status(message.ptr()) } {
        bindings::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_NOT_PERSISTED => RecordPersistence::NotPersisted,
        bindings::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED => RecordPersistence::PossiblyPersisted,
        bindings::rd_kafka_msg_status_t::RD_KAFKA_MSG_STATUS_PERSISTED => RecordPersistence::Persisted,
    }
}

/// Microseconds from the hand-over to now, during the delivery report.
pub(super) fn latency_us(message: &BorrowedMessage<'_>) -> Option<u64> {
    // SAFETY: the pointer is that of a message of a delivery report, which lives as long as `message`; the call reads one field of it.
    u64::try_from(unsafe { bindings::rd_kafka_message_latency(message.ptr()) }).ok()
}

/// `rdkafka` reads names as text and panics at other bytes, which any program may write: one such record would end a
/// bridge at each start.
pub(super) fn headers<'a>(message: &'a BorrowedMessage<'_>) -> Option<Vec<KafkaHeader<'a>>> {
    let mut list = ptr::null_mut();
    // SAFETY: the message lives as long as `message`; the list that is stored belongs to it, and is parsed by the first call alone,
    // which this thread makes: a message is not shared between threads.
    match unsafe { bindings::rd_kafka_message_headers(message.ptr(), &mut list) } {
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => (),
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__NOENT => return Some(Vec::new()),
        _ => return None,
    }
    let mut found = Vec::new();
    loop {
        let (mut name, mut value, mut length) = (ptr::null::<c_char>(), ptr::null::<c_void>(), 0);
        // SAFETY: the list is that of the call above; an index beyond its end is an error of the call.
        let result =
            unsafe { bindings::rd_kafka_header_get_all(list, found.len(), &mut name, &mut value, &mut length) };
        if result != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Some(found);
        }
        // SAFETY: librdkafka stores a name with a zero byte at its end, in memory of the list, which lives as long as the message.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        // SAFETY: a value that is not null has `length` bytes in the same memory.
        let value = (!value.is_null()).then(|| unsafe { slice::from_raw_parts(value.cast::<u8>(), length) });
        found.push((name, value));
    }
}
