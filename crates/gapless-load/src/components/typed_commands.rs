//! Commands with the contents of the Car, at the highest rate of one session: typed, and as an object of the schema.

use super::failed;
use crate::Result;
use crate::canonical::car::{CarForm, LENGTH_MAX, SCHEMA, SERIAL_NUMBER, SbeRandom};
use crate::time_sources::elapsed_ns;
use gapless::client::{ClientError, LogError};
use gapless::prelude::*;
use gapless_engine::{ServiceHost, ServiceHostOptions};
use gapless_message::{Message, NoRefusal, contract};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Commands in flight.
pub const WINDOW: u32 = 64;
const REPLY_TIME_MAX: Duration = Duration::from_secs(10);

/// Serde twin of the schema's Car.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(reply = TypedCar)]
pub struct TypedCar {
    serial_number: i32,
    model_year: Option<i16>,
    is_available: Option<bool>,
    code: Option<TypedCode>,
    vehicle_code: String,
    engine: TypedEngine,
    numbers: Vec<i32>,
    extras: Vec<TypedExtra>,
    fuel: Vec<TypedConsumption>,
    performance: Vec<TypedPerformance>,
    manufacturer: String,
    model: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Message)]
enum TypedCode {
    A,
    B,
    C,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Message)]
enum TypedExtra {
    SunRoof,
    SportsPack,
    CruiseControl,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
struct TypedEngine {
    capacity: u16,
    cylinders: u8,
    rotations_max: Option<u16>,
    manufacturer_code: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
struct TypedConsumption {
    speed: i16,
    miles_per_gallon: f32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
struct TypedPerformance {
    octane_rating: i8,
    acceleration: Vec<(i16, f32)>,
}

impl TypedCar {
    fn reference(serial_number: i32) -> Self {
        let performance = |octane_rating, acceleration: [(i16, f32); 3]| TypedPerformance {
            octane_rating,
            acceleration: acceleration.into(),
        };
        let fuel = |speed, miles_per_gallon| TypedConsumption { speed, miles_per_gallon };
        Self {
            serial_number,
            model_year: Some(2005),
            is_available: Some(true),
            code: Some(TypedCode::A),
            vehicle_code: "abcdef".to_owned(),
            engine: TypedEngine {
                capacity: 4200,
                cylinders: 8,
                rotations_max: None,
                manufacturer_code: "abc".to_owned(),
            },
            numbers: (0..5).collect(),
            extras: vec![TypedExtra::SportsPack, TypedExtra::SunRoof],
            fuel: vec![fuel(30, 35.9), fuel(55, 49.0), fuel(75, 40.0)],
            performance: vec![
                performance(95, [(30, 4.0), (60, 7.5), (100, 12.2)]),
                performance(99, [(30, 3.8), (60, 7.1), (100, 11.8)]),
            ],
            manufacturer: "MANUFACTURER".to_owned(),
            model: "MODEL".to_owned(),
        }
    }

    /// Encoded length with its contract, bytes.
    ///
    /// # Errors
    /// Encoding fails.
    pub fn length() -> Result<u64> {
        let mut bytes = Vec::new();
        contract::encode_request(&Self::reference(SERIAL_NUMBER), &mut bytes)
            .map_err(|error| failed("messaging", error))?;
        Ok(bytes.len() as u64)
    }
}

/// Replies with a Car to each Car: the typed one in the next model year.
#[derive(Default)]
struct CarService {
    cars: u64,
}

impl Service for CarService {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.command(|service: &mut Self, mut car: TypedCar, _: &mut Context<'_>| {
            service.cars += 1;
            car.model_year = car.model_year.map(|year| year + 1);
            Ok::<_, NoRefusal>(car)
        });
        handlers.on::<<SbeRandom as CarForm>::Inbound>(|service, car, context| {
            service.cars += 1;
            let read = SbeRandom::read(&car)?;
            context
                .reply_bytes(SCHEMA, Encoding::Sbe, LENGTH_MAX, |buffer| SbeRandom::write(buffer, read.serial_number))
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.cars.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> std::result::Result<(), String> {
        self.cars = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
        Ok(())
    }
}

pub fn start(options: ServiceHostOptions) -> Result<ServiceHost> {
    ServiceHost::start(CarService::default(), options).map_err(|error| failed("messaging", error))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarCommand {
    Typed,
    SbeObject,
}

/// Commands per second; each reply is decoded and compared with its command.
///
/// # Errors
/// A late or a wrong reply.
pub fn commands_per_s(client: &mut PolledClient, session: SessionKey, kind: CarCommand, count: u64) -> Result<f64> {
    let of_client = |error: ClientError| failed("messaging", error);
    let of_sbe = MessageType { schema: SCHEMA, encoding: Encoding::Sbe };
    let serial_number = |number: u64| SERIAL_NUMBER.wrapping_add(number as i32);
    let (mut sent, mut received) = (0, 0);
    let mut command = TypedCar::reference(SERIAL_NUMBER);
    let next_year = command.model_year.map(|year| year + 1);
    let begin = Instant::now();
    let mut last = begin;
    while received < count {
        while sent < count {
            let queued = match kind {
                CarCommand::Typed => {
                    command.serial_number = serial_number(sent);
                    client.enqueue_request(session, &command)
                }
                CarCommand::SbeObject => client.enqueue(session, of_sbe, LENGTH_MAX, |buffer| {
                    SbeRandom::write(buffer, Some(serial_number(sent)))
                        .map_err(|error| ClientError::Encode(error.to_string()))
                }),
            };
            match queued {
                Ok(_) => sent += 1,
                Err(
                    ClientError::WindowFull { .. } | ClientError::NotOpen | ClientError::Log(LogError::Full { .. }),
                ) => {
                    break;
                }
                Err(error) => return Err(of_client(error)),
            }
        }
        let before = received;
        let mut wrong = None;
        let polled = client.poll(usize::MAX, |incoming| {
            let Incoming::Reply { reply, .. } = incoming else { return };
            let found = match kind {
                CarCommand::Typed => reply
                    .answer::<TypedCar>()
                    .map(|Ok(car)| Some(car.serial_number).filter(|_| car.model_year == next_year)),
                CarCommand::SbeObject => reply.decode::<<SbeRandom as CarForm>::Inbound>().map(|car| car.serial_number),
            };
            match found {
                Ok(Some(found)) if found == serial_number(received) => received += 1,
                other => wrong = Some(format!("reply {received} is {other:?}")),
            }
        });
        polled.map_err(of_client)?;
        if let Some(wrong) = wrong {
            return Err(failed("messaging", wrong));
        }
        if received > before {
            last = Instant::now();
        } else if last.elapsed() > REPLY_TIME_MAX {
            return Err(failed("messaging", format!("no reply within {} s", REPLY_TIME_MAX.as_secs())));
        } else {
            // Needed if client and service share a CPU.
            std::thread::yield_now();
        }
    }
    Ok((count as f64 * 1e9 / elapsed_ns(begin).max(1) as f64).round())
}
