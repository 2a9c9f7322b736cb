//! The reference's ESProcessor: reads every field of each Car and replies with a full Car. Its state is a fold of the
//! Cars, which the driver compares with its own.

use super::car::{CarForm, LENGTH_MAX, SCHEMA};
use gapless::prelude::*;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Queries the state; the reply is a [`ProcessorState`].
pub const QUERY: MessageType = MessageType { schema: SCHEMA & 0xffff_0000 | 0xffff, encoding: Encoding::Opaque };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorState {
    pub cars: u64,
    pub sum: u64,
}

impl ProcessorState {
    /// Two u64, little-endian.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.cars.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sum.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 16] = bytes.try_into().ok()?;
        Some(Self { cars: u64::from_le_bytes(*bytes.first_chunk()?), sum: u64::from_le_bytes(*bytes.last_chunk()?) })
    }
}

pub struct Processor<F> {
    state: ProcessorState,
    form: PhantomData<F>,
}

impl<F> Default for Processor<F> {
    fn default() -> Self {
        Self { state: ProcessorState::default(), form: PhantomData }
    }
}

impl<F: CarForm> Processor<F> {
    #[inline]
    fn car(&mut self, car: <F::Inbound as Decode>::Decoded<'_>, context: &mut Context<'_>) -> Result<(), Reject> {
        let read = F::read(&car)?;
        // Frees the object's memory before the response allocates some.
        drop(car);
        self.state.cars += 1;
        self.state.sum = self.state.sum.wrapping_add(read.sum);
        context.reply_bytes(SCHEMA, F::Inbound::ENCODING, LENGTH_MAX, |buffer| F::write(buffer, read.serial_number))
    }
}

impl<F: CarForm> Service for Processor<F> {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on::<F::Inbound>(Self::car);
        handlers.on_bytes(QUERY.schema, |processor, _, context| context.reply_with(QUERY, &processor.state.to_bytes()));
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.state.to_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.state = ProcessorState::from_bytes(state).ok_or("16 bytes are expected")?;
        Ok(())
    }
}
