//! A form of the Car, selected at run time. Only its functions are compiled for each form; driver, run and report are
//! compiled once.

use super::car::{CarForm, CarSum, LENGTH_MAX, ProtobufRandom, ProtobufSerial, SCHEMA, SbeRandom, SbeSerial};
use super::failed;
use super::processor::Processor;
use super::state_processor::StateProcessor;
use crate::Result;
use crate::values::{MessageEncoding, ServiceKind};
use gapless::prelude::*;
use gapless_cluster::config::ClusterConfig;
use gapless_engine::state::StateOptions;
use gapless_engine::{Replica, ReplicaOptions, ServiceHost, ServiceHostOptions};
use gapless_schema::{DecodeError, EncodeError};

#[derive(Clone, Copy)]
pub struct CarFunctions {
    pub message: MessageType,
    write: fn(&mut [u8], Option<i32>) -> std::result::Result<usize, EncodeError>,
    read: fn(&[u8]) -> std::result::Result<CarSum, DecodeError>,
    host: fn(ServiceKind, ServiceHostOptions) -> std::result::Result<ServiceHost, EngineError>,
    replica: fn(ServiceKind, bool, &ClusterConfig) -> std::result::Result<Replica, EngineError>,
}

impl CarFunctions {
    /// Must not be inlined: its functions would be compiled again in the calling crate, without optimisation.
    #[inline(never)]
    pub fn of(encoding: MessageEncoding) -> Self {
        match encoding {
            MessageEncoding::SbeSerial => Self::new::<SbeSerial>(),
            MessageEncoding::SbeRandom => Self::new::<SbeRandom>(),
            MessageEncoding::ProtobufSerial => Self::new::<ProtobufSerial>(),
            MessageEncoding::ProtobufRandom => Self::new::<ProtobufRandom>(),
        }
    }

    fn new<F: CarForm>() -> Self {
        Self {
            message: MessageType { schema: SCHEMA, encoding: F::Inbound::ENCODING },
            write: F::write,
            read: |bytes| F::Inbound::decode(bytes).and_then(|car| F::read(&car)),
            host: |program, options| match program {
                ServiceKind::Es => ServiceHost::start(Processor::<F>::default(), options),
                ServiceKind::Sr => ServiceHost::start_state(StateProcessor::<F>::new, options),
            },
            replica: replica::<F>,
        }
    }

    /// `None` leaves every field unset. Returns the length in bytes, at most [`LENGTH_MAX`].
    ///
    /// # Errors
    /// The buffer is too short.
    #[inline]
    pub fn write(&self, buffer: &mut [u8], serial_number: Option<i32>) -> std::result::Result<usize, EncodeError> {
        (self.write)(buffer, serial_number)
    }

    pub fn read(&self, bytes: &[u8]) -> std::result::Result<CarSum, DecodeError> {
        (self.read)(bytes)
    }

    /// Length in bytes; `None` leaves every field unset.
    ///
    /// # Errors
    /// The Car cannot be encoded.
    pub fn length(&self, serial_number: Option<i32>) -> Result<u64> {
        let written = self.write(&mut [0; LENGTH_MAX], serial_number);
        written.map(|length| length as u64).map_err(failed)
    }

    pub fn start_host(
        &self,
        program: ServiceKind,
        options: ServiceHostOptions,
    ) -> std::result::Result<ServiceHost, EngineError> {
        (self.host)(program, options)
    }

    /// Leaves polling to the caller if `is_by_hand`. Counters end with the run; snapshots are taken on request.
    pub fn start_replica(
        &self,
        program: ServiceKind,
        is_by_hand: bool,
        config: &ClusterConfig,
    ) -> std::result::Result<Replica, EngineError> {
        (self.replica)(program, is_by_hand, config)
    }
}

fn replica<F: CarForm>(
    program: ServiceKind,
    is_by_hand: bool,
    config: &ClusterConfig,
) -> std::result::Result<Replica, EngineError> {
    let options =
        ReplicaOptions { snapshot_interval_frames: None, snapshot_on_stop: false, ..ReplicaOptions::default() };
    let of_state = StateOptions { snapshot_interval_frames: None, snapshot_on_stop: false, ..StateOptions::default() };
    match (program, is_by_hand) {
        (ServiceKind::Es, false) => Replica::start(Processor::<F>::default(), options, config),
        (ServiceKind::Es, true) => Replica::start_by_hand(Processor::<F>::default(), options, config),
        (ServiceKind::Sr, false) => Replica::start_state(StateProcessor::<F>::new, of_state, config),
        (ServiceKind::Sr, true) => Replica::start_state_by_hand(StateProcessor::<F>::new, of_state, config),
    }
}
