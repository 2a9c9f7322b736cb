//! How long the Car of the canonical benchmark takes to write and to read, in each of the four encodings.
//!
//! Every field is written and read. Each figure is the best and the median of many rounds, in nanoseconds per message.
//! Run with `cargo run --release -p gapless-schema --example car_speed`; one round of one encoding under callgrind
//! with `car_speed once sbe.serial`.

use std::hint::black_box;
use std::time::Instant;

use gapless_schema::{DecodeError, Encode, EncodeError, Message, Protobuf, Sbe};

include!("../golden/car.rs");
include!("../golden/reference_car.rs");

use car::*;

const MESSAGES: u32 = 500;
const ROUNDS: usize = 2001;

/// The values of a message, as a program would have them.
struct Values {
    serial_number: i32,
    model_year: i16,
    available: Availability,
    code: Code,
    vehicle_code: &'static [u8; 6],
    capacity: i16,
    num_cylinders: i8,
    max_rpm: Option<i16>,
    manufacturer_code: &'static [u8; 3],
    fuel_name: Option<&'static [u8; 6]>,
    numbers: [i32; 5],
    extras: [Extra; 2],
    fuel: [(i16, f32); 3],
    performance: [(i8, [(i16, f32); 3]); 2],
    manufacturer: &'static str,
    model: &'static str,
}

fn values() -> Values {
    Values {
        serial_number: 12_345,
        model_year: 2005,
        available: Availability::T,
        code: Code::A,
        vehicle_code: b"abcdef",
        capacity: 4200,
        num_cylinders: 8,
        max_rpm: None,
        manufacturer_code: b"abc",
        fuel_name: None,
        extras: [Extra::SportsPack, Extra::SunRoof],
        numbers: [0, 1, 2, 3, 4],
        fuel: [(30, 35.9), (55, 49.0), (75, 40.0)],
        performance: [(95, [(30, 4.0), (60, 7.5), (100, 12.2)]), (99, [(30, 3.8), (60, 7.1), (100, 11.8)])],
        manufacturer: "MANUFACTURER",
        model: "MODEL",
    }
}

fn encode_sbe(values: &Values, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let mut car = CarEncoder::new(buffer)?;
    car.serial_number(values.serial_number).model_year(values.model_year).available(values.available);
    car.code(values.code).vehicle_code(values.vehicle_code);
    let mut engine = car.engine();
    engine.capacity(values.capacity).num_cylinders(values.num_cylinders).max_rpm_or_null(values.max_rpm);
    engine.manufacturer_code(values.manufacturer_code).fuel_or_null(values.fuel_name);
    let mut numbers = car.some_numbers()?;
    for number in values.numbers {
        numbers.entry()?.value(number);
    }
    let mut extras = car.extras()?;
    for extra in values.extras {
        extras.entry()?.value(extra);
    }
    let mut figures = car.fuel_figure()?;
    for (speed, mpg) in values.fuel {
        figures.entry()?.speed(speed).mpg(mpg);
    }
    let mut figures = car.performance_figure()?;
    for (octane, accelerations) in &values.performance {
        let mut figure = figures.entry()?;
        figure.octane_rating(*octane);
        let mut acceleration = figure.acceleration()?;
        for (mph, seconds) in accelerations {
            acceleration.entry()?.mph(*mph).seconds(*seconds);
        }
    }
    car.manufacturer(values.manufacturer)?;
    car.model(values.model)?;
    car.finish()
}

fn decode_sbe(payload: &[u8]) -> Result<(), DecodeError> {
    let car = CarDecoder::parse(payload)?;
    black_box((car.serial_number(), car.model_year(), car.available(), car.code(), car.vehicle_code()));
    let engine = car.engine();
    black_box((engine.capacity(), engine.num_cylinders(), engine.max_rpm(), engine.manufacturer_code(), engine.fuel()));
    for number in car.some_numbers() {
        black_box(number.value());
    }
    for extra in car.extras() {
        black_box(extra.value());
    }
    for figure in car.fuel_figure() {
        black_box((figure.speed(), figure.mpg()));
    }
    for figure in car.performance_figure() {
        black_box(figure.octane_rating());
        for acceleration in figure.acceleration() {
            black_box((acceleration.mph(), acceleration.seconds()));
        }
    }
    black_box((car.manufacturer(), car.model()));
    Ok(())
}

fn encode_protobuf(values: &Values, buffer: &mut [u8]) -> Result<usize, EncodeError> {
    let mut car = CarProtobufEncoder::new(buffer);
    car.serial_number(values.serial_number).model_year(values.model_year).available(values.available);
    car.code(values.code).vehicle_code("abcdef");
    car.engine(|engine| {
        engine.capacity(values.capacity).num_cylinders(values.num_cylinders).manufacturer_code("abc");
    });
    car.some_numbers(values.numbers).extras(values.extras);
    for (speed, mpg) in values.fuel {
        car.fuel_figure(|figure| {
            figure.speed(speed).mpg(mpg);
        });
    }
    for (octane, accelerations) in &values.performance {
        car.performance_figure(|figure| {
            figure.octane_rating(*octane);
            for (mph, seconds) in accelerations {
                figure.acceleration(|acceleration| {
                    acceleration.mph(*mph).seconds(*seconds);
                });
            }
        });
    }
    car.manufacturer(values.manufacturer).model(values.model);
    car.finish()
}

fn decode_protobuf(payload: &[u8]) -> Result<(), DecodeError> {
    let mut car = CarProtobufDecoder::new(payload);
    while let Some(field) = car.next_field()? {
        match field {
            CarField::SerialNumber(number) => drop(black_box(number)),
            CarField::ModelYear(year) => drop(black_box(year)),
            CarField::Available(available) => drop(black_box(available)),
            CarField::Code(code) => drop(black_box(code)),
            CarField::VehicleCode(code) => drop(black_box(code)),
            CarField::Engine(engine) => decode_engine(engine)?,
            CarField::SomeNumbers(numbers) => {
                for number in numbers {
                    black_box(number?);
                }
            }
            CarField::Extras(extras) => {
                for extra in extras {
                    black_box(extra?);
                }
            }
            CarField::FuelFigure(mut figure) => {
                while let Some(field) = figure.next_field()? {
                    match field {
                        CarFuelFigureField::Speed(speed) => drop(black_box(speed)),
                        CarFuelFigureField::Mpg(mpg) => drop(black_box(mpg)),
                    }
                }
            }
            CarField::PerformanceFigure(figure) => decode_performance(figure)?,
            CarField::Manufacturer(manufacturer) => drop(black_box(manufacturer)),
            CarField::Model(model) => drop(black_box(model)),
        }
    }
    Ok(())
}

fn decode_engine(mut engine: EngineProtobufDecoder<'_>) -> Result<(), DecodeError> {
    while let Some(field) = engine.next_field()? {
        match field {
            EngineField::Capacity(capacity) => drop(black_box(capacity)),
            EngineField::NumCylinders(count) => drop(black_box(count)),
            EngineField::MaxRpm(speed) => drop(black_box(speed)),
            EngineField::ManufacturerCode(code) => drop(black_box(code)),
            EngineField::Fuel(fuel) => drop(black_box(fuel)),
        }
    }
    Ok(())
}

fn decode_performance(mut figure: CarPerformanceFigureProtobufDecoder<'_>) -> Result<(), DecodeError> {
    while let Some(field) = figure.next_field()? {
        match field {
            CarPerformanceFigureField::OctaneRating(octane) => drop(black_box(octane)),
            CarPerformanceFigureField::Acceleration(mut acceleration) => {
                while let Some(field) = acceleration.next_field()? {
                    match field {
                        CarPerformanceFigureAccelerationField::Mph(mph) => drop(black_box(mph)),
                        CarPerformanceFigureAccelerationField::Seconds(seconds) => drop(black_box(seconds)),
                    }
                }
            }
        }
    }
    Ok(())
}

/// Best and median nanoseconds per call.
fn time(rounds: usize, mut call: impl FnMut()) -> (f64, f64) {
    let mut figures: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..MESSAGES {
                call();
            }
            start.elapsed().as_nanos() as f64 / f64::from(MESSAGES)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    (figures[0], figures[rounds / 2])
}

fn measure(
    name: &str,
    rounds: usize,
    encode: impl Fn(&mut [u8]) -> Result<usize, EncodeError>,
    decode: impl Fn(&[u8]) -> Result<(), DecodeError>,
) {
    let mut buffer = [0; 512];
    let length = encode(&mut buffer).expect("the reference car fits into 512 bytes");
    let (encode_best, encode_median) = time(rounds, || {
        let buffer = black_box(&mut buffer[..]);
        black_box(encode(buffer)).expect("it was encoded before");
        black_box(buffer);
    });
    let (decode_best, decode_median) = time(rounds, || {
        decode(black_box(&buffer[..length])).expect("it was encoded before");
    });
    println!(
        "{name:<16} {length:>4} bytes   encode {encode_best:>6.1} ns (median {encode_median:>6.1})   \
         decode {decode_best:>6.1} ns (median {decode_median:>6.1})"
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (rounds, only) = match arguments.first().map(String::as_str) {
        Some("once") => (1, arguments.get(1).cloned()),
        other => (ROUNDS, other.map(str::to_owned)),
    };
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let values = black_box(values());
    let object = reference_car();
    if wanted("sbe.serial") {
        measure("sbe.serial", rounds, |buffer| encode_sbe(black_box(&values), buffer), decode_sbe);
    }
    if wanted("sbe.random") {
        let object = Sbe(object.clone());
        let decode = |payload: &[u8]| Sbe::<Car>::decode(payload).map(|car| drop(black_box(car)));
        measure("sbe.random", rounds, |buffer| black_box(&object).encode(buffer), decode);
    }
    if wanted("protobuf.serial") {
        measure("protobuf.serial", rounds, |buffer| encode_protobuf(black_box(&values), buffer), decode_protobuf);
    }
    if wanted("protobuf.random") {
        let object = Protobuf(object);
        let decode = |payload: &[u8]| Protobuf::<Car>::decode(payload).map(|car| drop(black_box(car)));
        measure("protobuf.random", rounds, |buffer| black_box(&object).encode(buffer), decode);
    }
}
