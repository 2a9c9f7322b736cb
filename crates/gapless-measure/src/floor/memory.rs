//! The cost of memory: ping-pong and stream between two cores, copying, reading the clock.

use gapless_agent::monotonic::saturating_ns;
use std::hint::black_box;
use std::time::Instant;

use super::sampling::{FloorEffort, SpinWait, StopFlag};
use super::shared;
use crate::FloorRow;
use crate::Result;
use crate::histogram::LatencyHistogram;
use crate::statistics::median;

pub(super) fn ping_pong(effort: &FloorEffort, payload: usize, is_paced: bool) -> Result<LatencyHistogram> {
    let (mut first, mut second) = shared::ping_pong(payload)?;
    let partner = |stop: &StopFlag| answer(&mut second, payload, stop);
    effort.on_two_threads(partner, |stop| {
        let mut bytes = vec![1; payload];
        let once = || {
            first.send(&bytes);
            let mut spin = SpinWait::default();
            while !first.try_receive(&mut bytes) {
                if !spin.turn(stop) {
                    return Err(effort.abandoned());
                }
            }
            Ok(())
        };
        if is_paced { effort.sample_paced(once) } else { effort.sample(once) }
    })
}

fn answer(endpoint: &mut shared::PingPongSide, payload: usize, stop: &StopFlag) -> Result<()> {
    let mut bytes = vec![0; payload];
    loop {
        let mut spin = SpinWait::default();
        while !endpoint.try_receive(&mut bytes) {
            if !spin.turn(stop) {
                return Ok(());
            }
        }
        endpoint.send(&bytes);
    }
}

/// The first warms up; the rate is the median of the others.
const PARTS: u64 = 6;

pub(super) fn stream(effort: &FloorEffort, payload: usize) -> Result<FloorRow> {
    let (mut producer, mut consumer) = shared::ring(payload)?;
    let part = (effort.samples / PARTS).max(1);
    let partner = |stop: &StopFlag| {
        let bytes = vec![1; payload];
        for _ in 0..part * PARTS {
            let mut spin = SpinWait::default();
            while !producer.try_push(&bytes) {
                if !spin.turn(stop) {
                    return Ok(());
                }
            }
        }
        producer.publish();
        Ok(())
    };
    let (rate, samples) = effort.on_two_threads(partner, |stop| {
        let mut bytes = vec![0; payload];
        let begin = Instant::now();
        let mut rates = Vec::new();
        for index in 0..PARTS {
            let part_begin = Instant::now();
            for _ in 0..part {
                let mut spin = SpinWait::default();
                let popped = loop {
                    if consumer.try_pop(&mut bytes) {
                        break true;
                    }
                    if !spin.turn(stop) {
                        // The producer may have ended and left messages in the ring.
                        break consumer.try_pop(&mut bytes);
                    }
                };
                if !popped {
                    return Err(effort.abandoned());
                }
                black_box(&bytes);
            }
            if index > 0 {
                rates.push(part as f64 / part_begin.elapsed().as_secs_f64());
            }
            if !rates.is_empty() && begin.elapsed() > effort.time_limit {
                break;
            }
        }
        Ok((median(&rates), part * rates.len() as u64))
    })?;
    Ok(FloorRow { rate_per_s: Some(rate.round()), samples: Some(samples), ..effort.row(payload) })
}

pub(super) fn memcpy(effort: &FloorEffort) -> Result<FloorRow> {
    /// Well beyond the caches.
    const BYTES: usize = 32 << 20;
    copying(effort, BYTES, BYTES)
}

pub(super) fn memcpy_cold(effort: &FloorEffort, payload: usize) -> Result<FloorRow> {
    /// A piece has left the caches when its turn comes again.
    const BYTES: usize = 64 << 20;
    copying(effort, payload, (BYTES / payload).max(1) * payload)
}

fn copying(effort: &FloorEffort, piece: usize, all: usize) -> Result<FloorRow> {
    let (rate, samples) = effort.on_one_thread(|| {
        let begin = Instant::now();
        let (from, mut to) = (vec![1_u8; all], vec![2_u8; all]);
        let mut rates = Vec::new();
        for _ in 0..effort.samples {
            let pass = Instant::now();
            for (from, to) in black_box(&from).chunks_exact(piece).zip(to.chunks_exact_mut(piece)) {
                to.copy_from_slice(from);
                black_box(to);
            }
            rates.push(all as f64 / pass.elapsed().as_secs_f64());
            if begin.elapsed() > effort.time_limit {
                break;
            }
        }
        Ok((median(&rates), rates.len() as u64))
    })?;
    let mut row = effort.row(piece);
    row.cpus.iter_mut().for_each(|cpus| cpus.truncate(1));
    Ok(FloorRow { bytes_per_s: Some(rate.round()), samples: Some(samples), ..row })
}

pub(super) fn clock_read(effort: &FloorEffort) -> Result<FloorRow> {
    /// One reading is too short to be timed by the same clock.
    const READS: u64 = 100;
    let histogram = effort.on_one_thread(|| {
        let mut histogram = crate::histogram::LatencyHistogram::new();
        for _ in 0..effort.samples {
            let begin = Instant::now();
            for _ in 1..READS {
                black_box(Instant::now());
            }
            let elapsed = begin.elapsed();
            histogram.record(saturating_ns(elapsed) / READS);
        }
        Ok(histogram)
    })?;
    let mut row = effort.latency_row(0, &histogram)?;
    row.cpus.iter_mut().for_each(|cpus| cpus.truncate(1));
    Ok(row)
}
