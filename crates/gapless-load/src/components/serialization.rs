//! Encodes and decodes all fields of a Car.

use super::{failed, named};
use crate::Result;
use crate::canonical::car::{
    CarForm, CarSum, LENGTH_MAX, ProtobufRandom, ProtobufSerial, SERIAL_NUMBER, SbeRandom, SbeSerial,
};
use crate::histogram::LatencyHistogram;
use crate::time_sources::elapsed_ns;
use crate::values::MessageEncoding;
use gapless::prelude::Decode;
use gapless_measure::{Report, Row};
use std::hint::black_box;
use std::time::Instant;

pub const TOGETHER: u64 = 100;

/// Adds the rows of one form, and its floor.
///
/// # Errors
/// A Car that cannot be encoded or decoded, or does not round-trip.
pub fn rows_of(encoding: MessageEncoding, count: u64, report: &mut Report) -> Result<()> {
    match encoding {
        MessageEncoding::SbeSerial => rows_of_form::<SbeSerial>(encoding, count, report),
        MessageEncoding::SbeRandom => rows_of_form::<SbeRandom>(encoding, count, report),
        MessageEncoding::ProtobufSerial => rows_of_form::<ProtobufSerial>(encoding, count, report),
        MessageEncoding::ProtobufRandom => rows_of_form::<ProtobufRandom>(encoding, count, report),
    }
}

fn rows_of_form<F: CarForm>(encoding: MessageEncoding, count: u64, report: &mut Report) -> Result<()> {
    let mut buffer = [0; LENGTH_MAX];
    let length = F::write(&mut buffer, Some(SERIAL_NUMBER)).map_err(|error| failed("serialization", error))?;
    let message = buffer[..length].to_vec();
    let car = read::<F>(&message)?;
    if car.serial_number != Some(SERIAL_NUMBER) {
        return Err(failed("serialization", format!("{encoding}: what was written is not what is read")));
    }
    let mut copy = [0; LENGTH_MAX];
    let copying = sample(count, || {
        black_box(&mut copy[..length]).copy_from_slice(black_box(&message));
        black_box(&copy);
        Ok(())
    })?;
    let encoding_time = sample(count, || {
        let written = F::write(black_box(&mut buffer), black_box(Some(SERIAL_NUMBER)));
        black_box(&buffer);
        written
            .map(|length| {
                black_box(length);
            })
            .map_err(|error| failed("serialization", error))
    })?;
    let decoding_time = sample(count, || {
        read::<F>(black_box(&message)).map(|read| {
            black_box(read);
        })
    })?;
    // Outside the clock: the last encoding must equal the message.
    let is_same = buffer[..length] == message[..];
    let floor = copying.latency_ns().ok_or_else(|| failed("serialization", "no sample was taken"))?;
    report.floor.extend(copying.floor_row("copy_message", length as u64));
    for (name, histogram) in [("encode", encoding_time), ("decode", decoding_time)] {
        let mut row = named(name, length as u64, count);
        row.config.encoding = Some(encoding.to_string());
        row.config.access = Some(encoding.access().to_string());
        row.latency_ns = histogram.latency_ns();
        row.throughput_per_s =
            row.latency_ns.filter(|latency| latency.mean > 0.0).map(|latency| (1e9 / latency.mean).round());
        row.verified = Some(is_same);
        // A ratio of means, because a copy takes too few whole nanoseconds.
        set_ratio(&mut row, floor.mean);
        report.rows.push(row);
    }
    Ok(())
}

fn set_ratio(row: &mut Row, floor_mean_ns: f64) {
    if let Some(latency) = row.latency_ns.filter(|_| floor_mean_ns > 0.0) {
        row.floor_ratio = Some((latency.mean / floor_mean_ns * 100.0).round() / 100.0);
        row.floor_name = Some("copy_message".to_owned());
    }
}

fn read<F: CarForm>(message: &[u8]) -> Result<CarSum> {
    <F::Inbound as Decode>::decode(message)
        .and_then(|car| F::read(&car))
        .map_err(|error| failed("serialization", error))
}

/// Warms up by a tenth.
fn sample(count: u64, mut once: impl FnMut() -> Result<()>) -> Result<LatencyHistogram> {
    let samples = count.div_ceil(TOGETHER);
    let mut histogram = LatencyHistogram::new();
    for sample in 0..samples + samples.div_ceil(10) {
        let begin = Instant::now();
        for _ in 0..TOGETHER {
            once()?;
        }
        let elapsed_ns = elapsed_ns(begin);
        if sample >= samples.div_ceil(10) {
            histogram.record((elapsed_ns + TOGETHER / 2) / TOGETHER);
        }
    }
    Ok(histogram)
}
