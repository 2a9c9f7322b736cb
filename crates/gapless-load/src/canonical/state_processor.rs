//! The reference's SRProcessor: reads every field of each Car and replies with a full Car. Each message changes both
//! objects of the store, which are replicated.

use super::car::{CarForm, LENGTH_MAX, SCHEMA};
use super::processor::{ProcessorState, QUERY};
use gapless::prelude::*;
use gapless_engine::store::{Map, Store, Transaction};
use std::marker::PhantomData;

gapless_engine::store_object! {
    pub struct Totals = 1, version 1 {
        pub cars: u64,
        pub sum: u64,
    }
}

gapless_engine::store_object! {
    pub struct LastCar = 2, version 1 {
        /// The smallest number if the Car has none.
        pub serial_number: i64,
        pub sum: u64,
    }
}

/// Selected by the number of the command.
const SLOTS: u64 = 1024;

pub struct StateProcessor<F> {
    totals: Map<u64, Totals>,
    last_cars: Map<u64, LastCar>,
    form: PhantomData<fn() -> F>,
}

impl<F: CarForm> StateProcessor<F> {
    pub fn new(store: &mut Store) -> Self {
        Self { totals: store.map(1, "totals"), last_cars: store.map(2, "last cars"), form: PhantomData }
    }

    #[inline]
    fn car(
        &self,
        store: &mut Transaction<'_>,
        car: <F::Inbound as Decode>::Decoded<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Reject> {
        let read = F::read(&car)?;
        drop(car);
        match store.get_mut(self.totals, &0) {
            Some(totals) => {
                totals.cars += 1;
                totals.sum = totals.sum.wrapping_add(read.sum);
            }
            None => _ = store.insert(self.totals, 0, Totals { cars: 1, sum: read.sum }),
        }
        let slot = context.session_seq() % SLOTS;
        let serial_number = read.serial_number.map_or(i64::MIN, i64::from);
        match store.get_mut(self.last_cars, &slot) {
            Some(last) => (last.serial_number, last.sum) = (serial_number, read.sum),
            None => _ = store.insert(self.last_cars, slot, LastCar { serial_number, sum: read.sum }),
        }
        context.reply_bytes(SCHEMA, F::Inbound::ENCODING, LENGTH_MAX, |buffer| F::write(buffer, read.serial_number))
    }

    fn query(&self, store: &mut Transaction<'_>, _: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let totals = store.get(self.totals, &0);
        let state =
            totals.map_or(ProcessorState::default(), |totals| ProcessorState { cars: totals.cars, sum: totals.sum });
        context.reply_with(QUERY, &state.to_bytes())
    }
}

impl<F: CarForm> StateService for StateProcessor<F> {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on::<F::Inbound>(Self::car);
        handlers.on_bytes(QUERY.schema, Self::query);
    }
}
