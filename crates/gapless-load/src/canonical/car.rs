//! The reference's Car in four forms, each of which encodes and decodes every field. Every message has its own serial
//! number, so that a reply identifies its command; all other values are the reference's.

use gapless_schema::{Decode, DecodeError, Encode, EncodeError, MessageSchema, Protobuf, Sbe, schema_key};

// A build script would compile generator and parser twice, for the build and for the program.
include!("../../../gapless-schema/golden/car.rs");

use car::{
    Availability, Car, CarDecoder, CarEncoder, CarField, CarFuelFigure, CarFuelFigureField, CarPerformanceFigure,
    CarPerformanceFigureAcceleration, CarPerformanceFigureAccelerationField, CarPerformanceFigureField,
    CarProtobufDecoder, CarProtobufEncoder, Code, Engine, EngineField, Extra,
};

/// Schema id << 16 | template id of the Car.
pub const SCHEMA: u32 = schema_key(<Sbe<Car> as MessageSchema>::SCHEMA_ID, <Sbe<Car> as MessageSchema>::TEMPLATE_ID);

/// Longest Car in any encoding, bytes.
pub const LENGTH_MAX: usize = 512;

/// Serial number of the reference; message i has this plus i.
pub const SERIAL_NUMBER: i32 = 12345;

const FUEL: [(i16, f32); 3] = [(30, 35.9), (55, 49.0), (75, 40.0)];
const PERFORMANCE: [(i8, [(i16, f32); 3]); 2] =
    [(95, [(30, 4.0), (60, 7.5), (100, 12.2)]), (99, [(30, 3.8), (60, 7.1), (100, 11.8)])];

pub trait CarForm: Send + Sync + 'static {
    type Inbound: Decode;

    /// `None` leaves every field unset. Returns the length in bytes.
    ///
    /// # Errors
    /// The buffer is too short.
    fn write(buffer: &mut [u8], serial_number: Option<i32>) -> Result<usize, EncodeError>;

    /// Sums up every field, so that none can be optimised away.
    ///
    /// # Errors
    /// A field that cannot be decoded (protobuf is checked while it is read).
    fn read(car: &<Self::Inbound as Decode>::Decoded<'_>) -> Result<CarSum, DecodeError>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarSum {
    pub sum: u64,
    /// `None` in an empty message.
    pub serial_number: Option<i32>,
}

impl CarSum {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_add(value);
    }

    #[inline(always)]
    fn number(&mut self, value: Option<impl Into<i64>>) {
        self.add(value.map_or(1, |value| value.into() as u64));
    }

    #[inline(always)]
    fn float(&mut self, value: Option<f32>) {
        self.add(value.map_or(1, |value| u64::from(value.to_bits())));
    }

    #[inline(always)]
    fn text(&mut self, bytes: &[u8]) {
        // Each byte was checked and is reachable; none is copied.
        let first = bytes.first().copied().unwrap_or_default();
        let last = bytes.last().copied().unwrap_or_default();
        self.add(u64::from(first) << 16 | u64::from(last) << 8 | bytes.len() as u64);
    }
}

pub struct SbeSerial;
pub struct SbeRandom;
pub struct ProtobufSerial;
pub struct ProtobufRandom;

impl CarForm for SbeSerial {
    type Inbound = CarDecoder<'static>;

    #[inline]
    fn write(buffer: &mut [u8], serial_number: Option<i32>) -> Result<usize, EncodeError> {
        let mut car = CarEncoder::new(buffer)?;
        let Some(serial_number) = serial_number else { return car.finish() };
        car.serial_number(serial_number)
            .model_year(2005)
            .available(Availability::T)
            .code(Code::A)
            .vehicle_code(b"abcdef");
        car.engine().capacity(4200).num_cylinders(8).manufacturer_code(b"abc");
        let mut numbers = car.some_numbers()?;
        for number in 0..5 {
            numbers.entry()?.value(number);
        }
        let mut extras = car.extras()?;
        extras.entry()?.value(Extra::SportsPack);
        extras.entry()?.value(Extra::SunRoof);
        let mut fuel = car.fuel_figure()?;
        for (speed, mpg) in FUEL {
            fuel.entry()?.speed(speed).mpg(mpg);
        }
        let mut performance = car.performance_figure()?;
        for (octane_rating, accelerations) in PERFORMANCE {
            let mut figure = performance.entry()?;
            figure.octane_rating(octane_rating);
            let mut acceleration = figure.acceleration()?;
            for (mph, seconds) in accelerations {
                acceleration.entry()?.mph(mph).seconds(seconds);
            }
        }
        car.manufacturer("MANUFACTURER")?;
        car.model("MODEL")?;
        car.finish()
    }

    #[inline]
    fn read(car: &CarDecoder<'_>) -> Result<CarSum, DecodeError> {
        let mut read = CarSum { sum: 0, serial_number: car.serial_number() };
        read.number(car.serial_number());
        read.number(car.model_year());
        read.add(car.available().map_or(1, |value| u64::from(value.raw())));
        read.add(car.code().map_or(1, |value| u64::from(value.raw())));
        read.text(car.vehicle_code().map_or(&[][..], |text| &text[..]));
        let engine = car.engine();
        read.number(engine.capacity());
        read.number(engine.num_cylinders());
        read.number(engine.max_rpm());
        read.text(engine.manufacturer_code().map_or(&[][..], |text| &text[..]));
        read.text(engine.fuel().map_or(&[][..], |text| &text[..]));
        for number in car.some_numbers() {
            read.add(number.value() as u64);
        }
        for extra in car.extras() {
            read.add(u64::from(extra.value().raw()));
        }
        for figure in car.fuel_figure() {
            read.number(figure.speed());
            read.float(figure.mpg());
        }
        for figure in car.performance_figure() {
            read.number(figure.octane_rating());
            for acceleration in figure.acceleration() {
                read.number(acceleration.mph());
                read.float(acceleration.seconds());
            }
        }
        read.text(car.manufacturer());
        read.text(car.model());
        Ok(read)
    }
}

impl CarForm for SbeRandom {
    type Inbound = Sbe<Car>;

    #[inline]
    fn write(buffer: &mut [u8], serial_number: Option<i32>) -> Result<usize, EncodeError> {
        Sbe(object(serial_number)).encode(buffer)
    }

    #[inline]
    fn read(car: &Car) -> Result<CarSum, DecodeError> {
        Ok(read_object(car))
    }
}

impl CarForm for ProtobufRandom {
    type Inbound = Protobuf<Car>;

    #[inline]
    fn write(buffer: &mut [u8], serial_number: Option<i32>) -> Result<usize, EncodeError> {
        Protobuf(object(serial_number)).encode(buffer)
    }

    #[inline]
    fn read(car: &Car) -> Result<CarSum, DecodeError> {
        Ok(read_object(car))
    }
}

impl CarForm for ProtobufSerial {
    type Inbound = CarProtobufDecoder<'static>;

    #[inline]
    fn write(buffer: &mut [u8], serial_number: Option<i32>) -> Result<usize, EncodeError> {
        let mut car = CarProtobufEncoder::new(buffer);
        let Some(serial_number) = serial_number else { return car.finish() };
        car.serial_number(serial_number)
            .model_year(2005)
            .available(Availability::T)
            .code(Code::A)
            .vehicle_code("abcdef");
        car.engine(|engine| {
            engine.capacity(4200).num_cylinders(8).manufacturer_code("abc");
        });
        car.some_numbers(0..5).extras([Extra::SportsPack, Extra::SunRoof]);
        for (speed, mpg) in FUEL {
            car.fuel_figure(|figure| {
                figure.speed(speed).mpg(mpg);
            });
        }
        for (octane_rating, accelerations) in PERFORMANCE {
            car.performance_figure(|figure| {
                figure.octane_rating(octane_rating);
                for (mph, seconds) in accelerations {
                    figure.acceleration(|acceleration| {
                        acceleration.mph(mph).seconds(seconds);
                    });
                }
            });
        }
        car.manufacturer("MANUFACTURER").model("MODEL");
        car.finish()
    }

    #[inline]
    fn read(car: &CarProtobufDecoder<'_>) -> Result<CarSum, DecodeError> {
        let mut read = CarSum::default();
        let mut car = *car;
        while let Some(field) = car.next_field()? {
            match field {
                CarField::SerialNumber(value) => {
                    read.serial_number = Some(value);
                    read.number(Some(value));
                }
                CarField::ModelYear(value) => read.number(Some(value)),
                CarField::Available(value) => read.add(u64::from(value.raw())),
                CarField::Code(value) => read.add(u64::from(value.raw())),
                CarField::VehicleCode(text) | CarField::Manufacturer(text) | CarField::Model(text) => {
                    read.text(text.as_bytes());
                }
                CarField::Engine(mut engine) => {
                    while let Some(field) = engine.next_field()? {
                        match field {
                            EngineField::Capacity(value) | EngineField::MaxRpm(value) => read.number(Some(value)),
                            EngineField::NumCylinders(value) => read.number(Some(value)),
                            EngineField::ManufacturerCode(text) | EngineField::Fuel(text) => read.text(text.as_bytes()),
                        }
                    }
                }
                CarField::SomeNumbers(numbers) => {
                    for number in numbers {
                        read.add(number? as u64);
                    }
                }
                CarField::Extras(extras) => {
                    for extra in extras {
                        read.add(u64::from(extra?.raw()));
                    }
                }
                CarField::FuelFigure(mut figure) => {
                    while let Some(field) = figure.next_field()? {
                        match field {
                            CarFuelFigureField::Speed(value) => read.number(Some(value)),
                            CarFuelFigureField::Mpg(value) => read.float(Some(value)),
                        }
                    }
                }
                CarField::PerformanceFigure(mut figure) => {
                    while let Some(field) = figure.next_field()? {
                        match field {
                            CarPerformanceFigureField::OctaneRating(value) => read.number(Some(value)),
                            CarPerformanceFigureField::Acceleration(mut acceleration) => {
                                while let Some(field) = acceleration.next_field()? {
                                    match field {
                                        CarPerformanceFigureAccelerationField::Mph(value) => read.number(Some(value)),
                                        CarPerformanceFigureAccelerationField::Seconds(value) => {
                                            read.float(Some(value))
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(read)
    }
}

#[inline]
fn object(serial_number: Option<i32>) -> Car {
    let Some(serial_number) = serial_number else { return Car::default() };
    Car {
        serial_number: Some(serial_number),
        model_year: Some(2005),
        available: Some(Availability::T),
        code: Some(Code::A),
        vehicle_code: Some("abcdef".to_owned()),
        engine: Engine {
            capacity: Some(4200),
            num_cylinders: Some(8),
            max_rpm: None,
            manufacturer_code: Some("abc".to_owned()),
            fuel: None,
        },
        some_numbers: vec![0, 1, 2, 3, 4],
        extras: vec![Extra::SportsPack, Extra::SunRoof],
        fuel_figure: FUEL.map(|(speed, mpg)| CarFuelFigure { speed: Some(speed), mpg: Some(mpg) }).into(),
        performance_figure: PERFORMANCE
            .map(|(octane_rating, accelerations)| CarPerformanceFigure {
                octane_rating: Some(octane_rating),
                acceleration: accelerations
                    .map(|(mph, seconds)| CarPerformanceFigureAcceleration { mph: Some(mph), seconds: Some(seconds) })
                    .into(),
            })
            .into(),
        manufacturer: "MANUFACTURER".to_owned(),
        model: "MODEL".to_owned(),
    }
}

#[inline]
fn read_object(car: &Car) -> CarSum {
    let mut read = CarSum { sum: 0, serial_number: car.serial_number };
    read.number(car.serial_number);
    read.number(car.model_year);
    read.add(car.available.map_or(1, |value| u64::from(value.raw())));
    read.add(car.code.map_or(1, |value| u64::from(value.raw())));
    read.text(car.vehicle_code.as_deref().unwrap_or_default().as_bytes());
    read.number(car.engine.capacity);
    read.number(car.engine.num_cylinders);
    read.number(car.engine.max_rpm);
    read.text(car.engine.manufacturer_code.as_deref().unwrap_or_default().as_bytes());
    read.text(car.engine.fuel.as_deref().unwrap_or_default().as_bytes());
    for number in &car.some_numbers {
        read.add(*number as u64);
    }
    for extra in &car.extras {
        read.add(u64::from(extra.raw()));
    }
    for figure in &car.fuel_figure {
        read.number(figure.speed);
        read.float(figure.mpg);
    }
    for figure in &car.performance_figure {
        read.number(figure.octane_rating);
        for acceleration in &figure.acceleration {
            read.number(acceleration.mph);
            read.float(acceleration.seconds);
        }
    }
    read.text(car.manufacturer.as_bytes());
    read.text(car.model.as_bytes());
    read
}

#[cfg(test)]
mod tests {
    //! Reading detects a change of any value.
    use super::*;

    fn round_trip<F: CarForm>(serial_number: Option<i32>) -> (usize, CarSum) {
        let mut buffer = [0; LENGTH_MAX];
        let length = F::write(&mut buffer, serial_number).unwrap();
        let car = <F::Inbound as Decode>::decode(&buffer[..length]).unwrap();
        (length, F::read(&car).unwrap())
    }

    #[test]
    fn serial_and_random_agree() {
        for serial_number in [Some(SERIAL_NUMBER), Some(-1), None] {
            assert_eq!(round_trip::<SbeSerial>(serial_number), round_trip::<SbeRandom>(serial_number));
            if serial_number.is_some() {
                // An empty object still writes its engine, as an empty part of two bytes.
                assert_eq!(
                    round_trip::<ProtobufSerial>(serial_number).0,
                    round_trip::<ProtobufRandom>(serial_number).0
                );
            }
            let serial = round_trip::<ProtobufSerial>(serial_number).1.serial_number;
            assert_eq!(serial, serial_number);
        }
    }

    #[test]
    fn message_length_matches_reference() {
        for (length, _) in
            [round_trip::<SbeSerial>(Some(SERIAL_NUMBER)), round_trip::<ProtobufSerial>(Some(SERIAL_NUMBER))]
        {
            assert!((140..=210).contains(&length), "{length} bytes");
        }
    }

    #[test]
    fn sum_depends_on_serial_number() {
        let sum = |serial| round_trip::<SbeSerial>(Some(serial)).1.sum;
        assert_eq!(sum(SERIAL_NUMBER + 7), sum(SERIAL_NUMBER) + 7);
    }
}
